package messages_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
)

// The TypeScript client was generated from the schemas as they are now. It
// carries its descriptors, so that this needs no generator.
func TestGeneratedTypeScriptIsCurrent(t *testing.T) {
	const dir = "../sdk/typescript/src/gen"
	embedded := regexp.MustCompile(`fileDesc\("([A-Za-z0-9+/]+)"`)
	want := map[string]bool{}
	for _, f := range schemas(t) {
		if f.Path() == "wire.proto" {
			continue // what nodes say to each other is no client's
		}
		name := strings.TrimSuffix(f.Path(), ".proto") + "_pb.ts"
		want[name] = true
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err, "run make generate")
		found := embedded.FindSubmatch(text)
		require.NotNil(t, found, "%s holds no descriptor", name)
		raw, err := base64.RawStdEncoding.DecodeString(string(found[1]))
		require.NoError(t, err)
		got := &descriptorpb.FileDescriptorProto{}
		require.NoError(t, proto.Unmarshal(raw, got))
		schema := protodesc.ToFileDescriptorProto(f)
		plain(schema)
		plain(got)
		if !proto.Equal(schema, got) {
			t.Errorf("%s is stale in %s; run make generate", name, strings.Join(differing(schema, got), ", "))
		}
	}
	files, err := filepath.Glob(dir + "/*")
	require.NoError(t, err)
	for _, f := range files {
		if !want[filepath.Base(f)] {
			t.Errorf("%s belongs to no schema; remove it", f)
		}
	}
}

// plain drops what the TypeScript generator leaves out: comments, JSON names,
// which follow from the names, and imports, which are imports there too.
func plain(f *descriptorpb.FileDescriptorProto) {
	f.SourceCodeInfo, f.Dependency = nil, nil
	var walk func(*descriptorpb.DescriptorProto)
	walk = func(m *descriptorpb.DescriptorProto) {
		for _, field := range m.Field {
			field.JsonName = nil
		}
		for _, nested := range m.NestedType {
			walk(nested)
		}
	}
	for _, m := range f.MessageType {
		walk(m)
	}
}
