package panics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

// byDefault are messages that a machine takes in the default of its switch:
// being spoken to is all they are for.
var byDefault = map[string][]string{
	"session": {"Wake"}, // it activates the session; Resume does what is due
}

// takes reads the table's left side from the source: for each kind of machine
// the messages that its type switches on an envelope's message name. An
// interface of the messages package stands for all who have its method.
func takes(t *testing.T) map[string][]string {
	t.Helper()
	machines := parse(t, "../../actors")
	kinds, cases := map[string]int{}, map[string][]string{}
	for _, fn := range machines {
		kind := strings.ToLower(receiver(fn))
		switch fn.Name.Name {
		case "Step", "Apply", "Resume":
			kinds[kind]++
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if sw, ok := n.(*ast.TypeSwitchStmt); ok && switchesOnMsg(sw) {
				for _, c := range sw.Body.List {
					for _, typ := range c.(*ast.CaseClause).List {
						cases[kind] = append(cases[kind], named(t, typ)...)
					}
				}
			}
			return true
		})
	}
	out := map[string][]string{}
	for kind, methods := range kinds {
		if methods == 3 { // it is a Machine
			list := append(cases[kind], byDefault[kind]...)
			slices.Sort(list)
			out[kind] = slices.Compact(list)
		}
	}
	return out
}

// said are all the types that may be said: to an address, and within a session.
func said(t *testing.T) []string {
	t.Helper()
	return append(withMethod(parse(t, "../../actors"), "local"), withMethod(parse(t, "../../messages"), "parley")...)
}

func TestEveryMessageIsHandledSomewhere(t *testing.T) {
	table := takes(t)
	handled := slices.Concat(slices.Collect(maps.Values(table))...)
	for _, typ := range said(t) {
		if !slices.Contains(handled, typ) {
			t.Errorf("no machine takes %s", typ)
		}
	}
	for _, kind := range []string{"session", "wait", "inbox", "claim", "door"} {
		if len(table[kind]) < 4 {
			t.Errorf("the table of %s is read wrongly: %v", kind, table[kind])
		}
	}
}

func switchesOnMsg(sw *ast.TypeSwitchStmt) bool {
	found := false
	ast.Inspect(sw.Assign, func(n ast.Node) bool {
		if x, ok := n.(*ast.TypeAssertExpr); ok && x.Type == nil {
			sel, ok := x.X.(*ast.SelectorExpr)
			found = ok && sel.Sel.Name == "Msg"
		}
		return true
	})
	return found
}

// named are the types that one case stands for.
func named(t *testing.T, typ ast.Expr) []string {
	switch x := typ.(type) {
	case *ast.Ident:
		return []string{x.Name}
	case *ast.StarExpr:
		return named(t, x.X)
	case *ast.SelectorExpr:
		if all := withMethod(parse(t, "../../messages"), strings.ToLower(x.Sel.Name)); len(all) > 0 {
			return all
		}
		return []string{x.Sel.Name}
	}
	t.Fatalf("a case of a machine's switch is neither a type nor a pointer to one: %T", typ)
	return nil
}

func withMethod(fns []*ast.FuncDecl, name string) []string {
	var out []string
	for _, fn := range fns {
		if fn.Name.Name == name {
			out = append(out, receiver(fn))
		}
	}
	slices.Sort(out)
	return out
}

func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	return typ.(*ast.Ident).Name
}

// parse returns the methods of a folder's own code.
func parse(t *testing.T, dir string) []*ast.FuncDecl {
	t.Helper()
	own := func(f fs.FileInfo) bool {
		return !strings.HasSuffix(f.Name(), "_test.go") && !strings.HasSuffix(f.Name(), ".pb.go")
	}
	packs, err := parser.ParseDir(token.NewFileSet(), dir, own, parser.SkipObjectResolution) //nolint:staticcheck // one folder without build tags
	if err != nil {
		t.Fatal(err)
	}
	var out []*ast.FuncDecl
	for _, pack := range packs {
		for _, f := range pack.Files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
					out = append(out, fn)
				}
			}
		}
	}
	return out
}
