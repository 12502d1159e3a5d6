package history

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

func TestLinkedWorkspaces(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path := func(p string) string { return filepath.Join(top, p) }
	require.NoError(t, os.MkdirAll(path("root/a"), 0o755))
	require.NoError(t, os.MkdirAll(path("root/b"), 0o755))
	require.NoError(t, os.MkdirAll(path("rootless"), 0o755))
	require.NoError(t, os.Symlink(path("root/a"), path("root/link")))
	require.NoError(t, os.Symlink(path("root/a"), path("elsewhere"))) // leads inside
	require.NoError(t, os.Symlink(path("rootless"), path("root/out")))
	known := []string{path("root/a"), path("root/a") + "/", path("root/b"), path("root/link"), path("elsewhere"), path("root/out"), path("rootless"), path("root/gone"), "a", ""}
	workspace, err := Linked(path("root"), func(context.Context) ([]string, error) { return known, nil })
	require.NoError(t, err)
	one := []string{path("elsewhere"), path("root/a"), path("root/a") + "/", path("root/link")}
	for cwd, want := range map[string][]string{
		path("root/a"): one, path("root/link"): one, path("root/b"): {path("root/b")},
		path("root/out"): {path("root/out")}, path("rootless"): {path("rootless")}, path("root/gone"): {path("root/gone")}, "a": {"a"},
	} {
		got, err := workspace(t.Context(), cwd)
		require.NoError(t, err)
		assert.Equal(t, want, got, cwd)
	}
	_, err = Linked(path("nowhere"), nil)
	assert.Equal(t, messages.BadRequest, messages.CodeOf(err))
}
