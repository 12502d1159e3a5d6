package history

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parleyrun/parley/messages"
)

// Linked returns a Config.Workspace for deployments whose workspaces are reached
// by several paths: two names are one workspace if both lead, links followed, to
// the same folder and that folder is inside root. Every other name stays equal
// to itself alone (S-012). known lists the workspaces that stand in headers.
//
// Who can place links inside root decides what agents may read there: it must
// be a folder that only the operator writes.
func Linked(root string, known func(context.Context) ([]string, error)) (func(context.Context, string) ([]string, error), error) {
	folder, err := filepath.EvalSymlinks(root)
	if err != nil || !filepath.IsAbs(folder) {
		return nil, messages.Refuse(messages.BadRequest, "the root of workspaces must be the absolute path of a folder that exists; %q is not", root)
	}
	inside := strings.TrimSuffix(folder, string(filepath.Separator)) + string(filepath.Separator)
	resolve := func(cwd string) string {
		if !filepath.IsAbs(cwd) {
			return ""
		}
		to, err := filepath.EvalSymlinks(cwd)
		if err != nil || to != folder && !strings.HasPrefix(to, inside) {
			return ""
		}
		return to
	}
	return func(ctx context.Context, cwd string) ([]string, error) {
		names := []string{cwd}
		to := resolve(cwd)
		if to == "" {
			return names, nil
		}
		all, err := known(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			if name != cwd && resolve(name) == to {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return slices.Compact(names), nil
	}, nil
}
