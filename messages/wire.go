package messages

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Party is one end of what is said between nodes: an address as actors.Addr
// has it, to which it converts.
type Party struct {
	Key  string
	Corr uint64
}

// wire is what reflection knows of a Frame: its body, and the body's fields by
// the message each one holds. The generated code is ready only after the
// variables of this package are, so it is asked for at the first use.
var wire = sync.OnceValue(func() (w struct {
	body   protoreflect.OneofDescriptor
	fields map[protoreflect.FullName]protoreflect.FieldDescriptor
}) {
	w.body = (*Frame)(nil).ProtoReflect().Descriptor().Oneofs().ByName("body")
	w.fields = map[protoreflect.FullName]protoreflect.FieldDescriptor{}
	for i := range w.body.Fields().Len() {
		field := w.body.Fields().Get(i)
		w.fields[field.Message().FullName()] = field
	}
	return w
})

// Wrap puts a message into a frame. The frame shares it: what is in a frame is
// not changed any more. A message without a variant is a bug, and panics.
func Wrap(to, from Party, msg Message) *Frame {
	m := msg.ProtoReflect()
	field := wire().fields[m.Descriptor().FullName()]
	if field == nil {
		panic("messages: a frame has no variant for " + string(m.Descriptor().FullName()))
	}
	f := &Frame{ToKey: to.Key, ToCorr: to.Corr, FromKey: from.Key, FromCorr: from.Corr}
	f.ProtoReflect().Set(field, protoreflect.ValueOfMessage(m))
	return f
}

// Open takes a frame apart. A frame of a newer node may hold a message that
// this build does not know, and one of anybody may hold none: that is
// BAD_REQUEST, and nobody's crash.
func Open(f *Frame) (to, from Party, msg Message, err error) {
	to, from = Party{f.GetToKey(), f.GetToCorr()}, Party{f.GetFromKey(), f.GetFromCorr()}
	m := f.ProtoReflect()
	if field := m.WhichOneof(wire().body); field != nil {
		msg, _ = m.Get(field).Message().Interface().(Message)
	}
	if msg == nil {
		return to, from, nil, Refuse(BadRequest, "a frame from %q to %q holds no message that this build knows; its node may run a newer one", from.Key, to.Key)
	}
	return to, from, msg, nil
}
