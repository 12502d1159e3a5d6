package messages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"github.com/parleyrun/parley/messages"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// schemas compiles the .proto files of this folder, without buf or protoc.
func schemas(t *testing.T) []protoreflect.FileDescriptor {
	t.Helper()
	names, err := filepath.Glob("*.proto")
	if err != nil || len(names) == 0 {
		t.Fatalf("no schemas: %v", err)
	}
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{})}
	files, err := c.Compile(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	var out []protoreflect.FileDescriptor
	for _, f := range files {
		out = append(out, f)
	}
	return out
}

// The Go beside the schemas was generated from them as they are now.
func TestGeneratedMessagesAreCurrent(t *testing.T) {
	for _, f := range schemas(t) {
		linked, err := protoregistry.GlobalFiles.FindFileByPath(f.Path())
		if err != nil {
			t.Errorf("%s is not generated at all; run make generate: %v", f.Path(), err)
			continue
		}
		want, got := protodesc.ToFileDescriptorProto(f), protodesc.ToFileDescriptorProto(linked)
		want.SourceCodeInfo, got.SourceCodeInfo = nil, nil
		if proto.Equal(want, got) {
			continue
		}
		t.Errorf("the Go of %s is stale in %s; run make generate", f.Path(), strings.Join(differing(want, got), ", "))
	}
}

// differing names what one file has and the other has not, or has otherwise.
func differing(a, b *descriptorpb.FileDescriptorProto) []string {
	index := func(f *descriptorpb.FileDescriptorProto) map[string]proto.Message {
		out := map[string]proto.Message{}
		for _, m := range f.MessageType {
			out["message "+m.GetName()] = m
		}
		for _, e := range f.EnumType {
			out["enum "+e.GetName()] = e
		}
		for _, s := range f.Service {
			out["service "+s.GetName()] = s
		}
		return out
	}
	x, y := index(a), index(b)
	var out []string
	for name := range x {
		if y[name] == nil || !proto.Equal(x[name], y[name]) {
			out = append(out, name)
		}
	}
	for name := range y {
		if x[name] == nil {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return []string{"its options or its order"}
	}
	slices.Sort(out)
	return out
}

// The Connect stubs serve exactly the services and procedures of the schemas.
func TestConnectStubsAreCurrent(t *testing.T) {
	stub, err := parser.ParseFile(token.NewFileSet(), "messagesconnect/service.connect.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{} // constant → value
	ast.Inspect(stub, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if got[spec.Names[0].Name], err = strconv.Unquote(lit.Value); err != nil {
				t.Fatal(err)
			}
		}
		return true
	})
	want := map[string]string{}
	eachMethod(t, func(m protoreflect.MethodDescriptor) {
		s := m.Parent()
		want[string(s.Name())+"Name"] = string(s.FullName())
		want[string(s.Name())+string(m.Name())+"Procedure"] = "/" + string(s.FullName()) + "/" + string(m.Name())
	})
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, the schema says %q; run make generate", name, got[name], value)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s names nothing in the schemas; run make generate", name)
		}
	}
}

func eachMethod(t *testing.T, visit func(protoreflect.MethodDescriptor)) {
	t.Helper()
	for _, f := range schemas(t) {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for j := range s.Methods().Len() {
				visit(s.Methods().Get(j))
			}
		}
	}
}

// A method that changes something is a command to a session and its reply;
// one that only reads never reaches a session, so neither of its messages may
// be sent to one. The verbs of a claim go to the claim beside the stream, which
// speaks to the session in messages of its own (ClaimOpen, ClaimRelease). An
// import makes a session, so there is none to be told of it.
func TestMethodsAreCommandsAndReplies(t *testing.T) {
	elsewhere := []protoreflect.Name{"AttachWait", "ReleaseWait", "ImportSession"}
	reads := func(m protoreflect.MethodDescriptor) bool {
		return m.IsStreamingServer() || slices.Contains(elsewhere, m.Name()) || slices.ContainsFunc([]string{"Get", "List", "Read", "Search", "Trace", "CallQueryTool"}, func(verb string) bool {
			return strings.HasPrefix(string(m.Name()), verb)
		})
	}
	eachMethod(t, func(m protoreflect.MethodDescriptor) {
		in, out := linked(t, m.Input()), linked(t, m.Output())
		if in == nil || out == nil {
			return
		}
		_, command := in.(messages.Command)
		_, reply := out.(messages.Reply)
		if changes := !reads(m); command != changes || reply != changes {
			t.Errorf("%s changes something: %v; its request is a Command: %v; its response is a Reply: %v", m.FullName(), changes, command, reply)
		}
	})
}

// Every request and response belongs to a method, or is one of the messages
// that travel between addresses without a door.
func TestEveryRequestHasItsMethod(t *testing.T) {
	inner := []string{"AskDetachRequest"} // the door's, when its caller went away
	used := map[protoreflect.FullName]bool{}
	eachMethod(t, func(m protoreflect.MethodDescriptor) {
		used[m.Input().FullName()], used[m.Output().FullName()] = true, true
	})
	for _, f := range schemas(t) {
		for i := range f.Messages().Len() {
			name := f.Messages().Get(i).FullName()
			if s := string(name.Name()); !used[name] && (strings.HasSuffix(s, "Request") || strings.HasSuffix(s, "Response")) && !slices.Contains(inner, s) {
				t.Errorf("%s belongs to no method", name)
			}
		}
	}
}

// A command names its session in field 1, so that a router needs no table.
func TestCommandsNameTheirSession(t *testing.T) {
	for _, f := range schemas(t) {
		for i := range f.Messages().Len() {
			d := f.Messages().Get(i)
			if _, command := linked(t, d).(messages.Command); !command {
				continue
			}
			if session := d.Fields().ByNumber(1); session == nil || session.Name() != "session" || session.Kind() != protoreflect.StringKind {
				t.Errorf("%s has no string session = 1", d.FullName())
			}
		}
	}
}

func linked(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	typ, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Errorf("%s: %v; run make generate", d.FullName(), err)
		return nil
	}
	return typ.New().Interface()
}
