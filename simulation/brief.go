package simulation

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

// describe says what an actor is about to take.
func describe(msg any) string {
	switch m := msg.(type) {
	case *actors.Envelope:
		from := m.From.String()
		if m.From.IsZero() {
			from = "-"
		}
		return from + " " + describe(m.Msg)
	case messages.Message:
		return brief(m)
	case *messages.Frame:
		return "Frame to " + m.GetToKey()
	case actors.Local:
		return local(m)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", msg), "*")
}

// local says a message that stays within its session or node: its name, and
// what it carries that a reader looks for.
func local(m actors.Local) string {
	v := reflect.ValueOf(m)
	name := v.Type().Name()
	if v.Kind() != reflect.Struct {
		return name
	}
	var b strings.Builder
	b.WriteString(name)
	for i := range v.NumField() {
		switch f := v.Field(i).Interface().(type) {
		case messages.Message:
			b.WriteString(" " + brief(f))
		case string, bool, int64, uint32, uint64:
			fmt.Fprintf(&b, " %s=%v", v.Type().Field(i).Name, f)
		}
	}
	return b.String()
}

// brief says a message in few words, always the same ones: protobuf's own text
// changes its spacing from build to build, to keep anybody from relying on it.
func brief(m messages.Message) string {
	if m == nil {
		return "nothing"
	}
	r := m.ProtoReflect()
	var b strings.Builder
	name := string(r.Descriptor().Name())
	b.WriteString(strings.TrimSuffix(name, "Request"))
	writeFields(&b, r, 0)
	return b.String()
}

func writeFields(b *strings.Builder, r protoreflect.Message, depth int) {
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !r.Has(f) || skipped[f.Name()] {
			continue
		}
		fmt.Fprintf(b, " %s=", f.Name())
		writeValue(b, f, r.Get(f), depth)
	}
}

// skipped fields say nothing that a reader of a trace looks for.
var skipped = map[protoreflect.Name]bool{"arguments": true, "json": true, "remedy": true, "result": true, "message": true}

func writeValue(b *strings.Builder, f protoreflect.FieldDescriptor, v protoreflect.Value, depth int) {
	switch {
	case f.IsList():
		list := v.List()
		b.WriteByte('[')
		for i := range list.Len() {
			if i > 0 {
				b.WriteByte(' ')
			}
			writeOne(b, f, list.Get(i), depth)
		}
		b.WriteByte(']')
	default:
		writeOne(b, f, v, depth)
	}
}

func writeOne(b *strings.Builder, f protoreflect.FieldDescriptor, v protoreflect.Value, depth int) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		b.WriteByte('{')
		if depth < 3 {
			var inner strings.Builder
			writeFields(&inner, v.Message(), depth+1)
			b.WriteString(strings.TrimPrefix(inner.String(), " "))
		}
		b.WriteByte('}')
	case protoreflect.EnumKind:
		fmt.Fprint(b, int32(v.Enum()))
	case protoreflect.StringKind:
		s := v.String()
		if len(s) > 60 {
			s = s[:60] + "…"
		}
		b.WriteString(strings.ReplaceAll(s, "\n", " "))
	default:
		fmt.Fprint(b, v.Interface())
	}
}
