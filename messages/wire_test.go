package messages_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/parleyrun/parley/messages"
)

var (
	wireTo   = messages.Party{Key: "s/a", Corr: 1}
	wireFrom = messages.Party{Key: "door/n", Corr: 1<<64 - 1}
)

// eachMessage visits every type that may be said, filled.
func eachMessage(t *testing.T, visit func(messages.Message)) {
	t.Helper()
	for _, f := range schemas(t) {
		for i := range f.Messages().Len() {
			if m, ok := linked(t, f.Messages().Get(i)).(messages.Message); ok {
				fill(m.ProtoReflect())
				visit(m)
			}
		}
	}
}

// fill sets every field of a message to something.
func fill(m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		switch {
		case field.IsMap():
			continue
		case field.IsList() && field.Message() != nil:
			fill(m.Mutable(field).List().AppendMutable().Message())
		case field.IsList():
			m.Mutable(field).List().Append(something(field))
		case field.Message() != nil:
			fill(m.Mutable(field).Message())
		default:
			m.Set(field, something(field))
		}
	}
}

func something(field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1 << 40)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, 1})
	default:
		return protoreflect.ValueOfString(string(field.Name()))
	}
}

// Every message has exactly one variant, and comes out as it went in.
func TestEveryMessageTravelsInAFrame(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	eachMessage(t, func(m messages.Message) {
		raw, err := proto.Marshal(messages.Wrap(wireTo, wireFrom, m))
		require.NoError(t, err)
		f := &messages.Frame{}
		require.NoError(t, proto.Unmarshal(raw, f))
		to, from, back, err := messages.Open(f)
		require.NoError(t, err)
		require.Equal(t, wireTo, to)
		require.Equal(t, wireFrom, from)
		require.True(t, proto.Equal(m, back), "%T came out as %v", m, back)
		seen[m.ProtoReflect().Descriptor().FullName()] = true
	})
	fields := (&messages.Frame{}).ProtoReflect().Descriptor().Oneofs().Get(0).Fields()
	require.Len(t, seen, fields.Len(), "a variant is twice, or holds what is no Message")
	for i := range fields.Len() {
		require.True(t, seen[fields.Get(i).Message().FullName()], "%s may not be said", fields.Get(i).Message().FullName())
	}
}

func TestFrameOfANewerNodeIsRefused(t *testing.T) {
	for name, raw := range map[string][]byte{
		"no body":           {},
		"an unknown body":   {0xfa, 0x3f, 0}, // field 1023, empty
		"an unknown number": {0x98, 0x06, 1}, // field 99, a number
	} {
		t.Run(name, func(t *testing.T) {
			f := &messages.Frame{}
			require.NoError(t, proto.Unmarshal(raw, f))
			_, _, msg, err := messages.Open(f)
			require.Nil(t, msg)
			require.Equal(t, messages.BadRequest, messages.CodeOf(err))
		})
	}
	_, _, _, err := messages.Open(nil)
	require.Error(t, err)
}

// Whatever bytes come: an error, or a message that can be put into a frame again.
func FuzzOpen(f *testing.F) {
	for _, m := range []messages.Message{
		&messages.ClaimOpen{Session: "s", CallId: "c", LeaseMs: 10_000}, &messages.Wake{},
		&messages.AskResponse{Outcome: &messages.AskResponse_Waiting{Waiting: &messages.Waiting{}}},
		messages.Refuse(messages.Unavailable, "no").Wire(),
	} {
		raw, err := proto.Marshal(messages.Wrap(wireTo, wireFrom, m))
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Add([]byte{0xfa, 0x3f, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := &messages.Frame{}
		if proto.Unmarshal(raw, in) != nil {
			return
		}
		to, from, msg, err := messages.Open(in)
		if err != nil {
			require.Nil(t, msg)
			return
		}
		again, err := proto.Marshal(messages.Wrap(to, from, msg))
		require.NoError(t, err)
		out := &messages.Frame{}
		require.NoError(t, proto.Unmarshal(again, out))
		_, _, back, err := messages.Open(out)
		require.NoError(t, err)
		require.True(t, proto.Equal(msg, back))
	})
}
