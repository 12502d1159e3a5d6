package parley_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// This file is the diagram of the house: who may import whom, which room holds
// which library, and the rules every file keeps. It reads the source files
// themselves, so that go test knows when to run it again.

const module = "github.com/parleyrun/parley"

// mayImport: a room imports itself, its own folders and the rooms named here.
// Anything not listed is refused. The longest matching folder is the room.
var mayImport = map[string]string{
	"messages":                 "",
	"messages/messagesconnect": "messages",
	"sessionlog":               "messages",
	"actors":                   "messages sessionlog",
	"journal":                  "messages sessionlog",
	"query":                    "messages sessionlog journal",
	"supervisor":               "messages sessionlog actors journal",
	"gateway":                  "messages messages/messagesconnect query", // its port is satisfied by the root package
	".":                        "messages messages/messagesconnect sessionlog actors journal query supervisor gateway",
	"simulation":               "messages sessionlog actors journal query supervisor .",
	"cmd":                      ". simulation messages messages/messagesconnect",
	"internal":                 "messages simulation", // generators of pages; nobody imports them
	"e2e":                      "",                    // tools of tests that drive the binary; nobody imports them
}

// library confines one outside module (a prefix of import paths) to folders.
// Tests may use it in the folders of tests too; "*" is everywhere.
var libraries = []struct{ path, code, tests string }{
	{"connectrpc.com/connect", "gateway messages/messagesconnect cmd/node", ". messages simulation e2e"},
	{"connectrpc.com/grpchealth", "gateway", ""},
	{"connectrpc.com/grpcreflect", "gateway", ""},
	{"github.com/BurntSushi/toml", "cmd/node", ""},
	{"github.com/anishathalye/porcupine", "simulation", ""},
	{"github.com/asynkron/protoactor-go", "supervisor", ""},
	{"github.com/bufbuild/protocompile", "", "messages"},
	{"github.com/creack/pty", "", "cmd/node"},
	{"github.com/jackc/pgx", "journal/postgres", ""},
	{"github.com/klauspost/compress", "sessionlog/compressed", "."},
	{"github.com/modelcontextprotocol/go-sdk", "gateway", ". cmd/node e2e"},
	{"github.com/ncruces/go-sqlite3", "journal/sqlite", ""},
	{"github.com/spf13/cobra", "cmd/node", ""},
	{"github.com/spf13/pflag", "cmd/node", ""},
	{"github.com/stretchr/testify", "", "*"},
	{"go.etcd.io/etcd", "supervisor", ""},
	{"golang.org/x/sys", "gateway", ""},
	{"golang.org/x/term", "cmd/node", ""},
	{"golang.org/x/text", "journal/words", ""},
	{"google.golang.org/protobuf", "*", "*"},
	{"pgregory.net/rapid", "", "*"},
}

// pureRooms are the deterministic core. pureImports is all of the standard
// library that it may use: nothing that does I/O, knows the time, draws a
// number or starts something.
var pureRooms = []string{"actors", "sessionlog"}

const pureImports = "bufio bytes cmp crypto/sha256 encoding/base64 encoding/binary encoding/hex encoding/json errors fmt hash/fnv io iter maps math math/bits slices strconv strings unicode unicode/utf16 unicode/utf8"

// The import table of docs/architecture.md, on every file that is not a test.
func TestRoomsImportOneWay(t *testing.T) {
	for _, p := range house(t) {
		room := roomOf(p.dir)
		if room == "" {
			t.Errorf("%s belongs to no room: give it a line in mayImport and in docs/architecture.md", p.dir)
			continue
		}
		for _, f := range p.code {
			for _, imp := range f.imports() {
				dir, ours := ownDir(imp)
				if !ours {
					continue
				}
				if support(dir) && !support(p.dir) && room != "simulation" {
					t.Errorf("%s imports %s, which is for tests and simulation only", f.name, imp)
				}
				if to := roomOf(dir); to != room && !slices.Contains(strings.Fields(mayImport[room]), to) {
					t.Errorf("%s imports %s: the room %q may import only %q", f.name, imp, room, mayImport[room])
				}
			}
		}
	}
}

// A replaceable engine, transport or database is known by one room only.
func TestLibrariesStayInTheirRoom(t *testing.T) {
	for _, p := range house(t) {
		for _, f := range p.all() {
			for _, imp := range f.imports() {
				if _, ours := ownDir(imp); ours || isStd(imp) {
					continue
				}
				at := slices.IndexFunc(libraries, func(l struct{ path, code, tests string }) bool { return under(imp, l.path) })
				if at < 0 {
					t.Errorf("%s imports %s: a new library needs a line in libraries and in docs/dependencies.md", f.name, imp)
					continue
				}
				l := libraries[at]
				if within(p.dir, l.code) || (f.test || support(p.dir)) && within(p.dir, l.tests) {
					continue
				}
				t.Errorf("%s imports %s: it is confined to %q, in tests also to %q", f.name, imp, l.code, l.tests)
			}
		}
	}
}

// The deviations judge the machines, so they must not be able to ask them. What
// they share with them is the reading of the log, which other vectors judge.
func TestDeviationsKnowNothingOfTheMachines(t *testing.T) {
	for _, p := range house(t) {
		for _, f := range p.code {
			if !strings.HasPrefix(f.name, "simulation/conformance/deviation") {
				continue
			}
			for _, imp := range f.imports() {
				if dir, ours := ownDir(imp); ours && dir != "sessionlog" {
					t.Errorf("%s imports %s", f.name, imp)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItDecidesAndNeverDoes(t *testing.T) {
	decides, never := regexp.MustCompile(`\bdecides?\b`), regexp.MustCompile(`\bnever\b`)
	for _, p := range house(t) {
		if len(p.code) == 0 || p.generated() {
			continue
		}
		var doc string
		for _, f := range p.code {
			doc += f.Doc.Text()
		}
		if doc == "" {
			t.Errorf("%s has no package comment", p.dir)
		} else if !decides.MatchString(doc) || !never.MatchString(doc) {
			t.Errorf("%s: the package comment must say what the package decides and what it never does", p.dir)
		}
	}
}

// The core must give the same effects for the same inputs, always. What Go
// leaves open (scheduling, the order of a map, the clock) must not get in.
func TestPureRoomsAreDeterministic(t *testing.T) {
	check := newTypeChecker(house(t))
	for _, p := range house(t) {
		if !slices.Contains(pureRooms, roomOf(p.dir)) || support(p.dir) {
			continue
		}
		info := check.bodies(p)
		for _, f := range p.code {
			for _, imp := range f.imports() {
				if isStd(imp) && !slices.Contains(strings.Fields(pureImports), imp) {
					t.Errorf("%s imports %s, which is not in pureImports", f.name, imp)
				}
			}
			complain := func(n ast.Node, what string) { t.Errorf("%s: %s", check.fset.Position(n.Pos()), what) }
			sorted := map[ast.Node]bool{} // calls whose unordered result is sorted at once
			ast.Inspect(f.File, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					complain(n, "starts a goroutine")
				case *ast.SelectStmt:
					complain(n, "selects")
				case *ast.ChanType:
					complain(n, "names a channel type")
				case *ast.RangeStmt:
					if bad := unordered(info.Types[n.X].Type); bad != "" {
						complain(n, "ranges over "+bad)
					}
				case *ast.CallExpr:
					switch name := calledName(info, n); {
					case strings.HasPrefix(name, "slices.Sorted"):
						sorted[n.Args[0]] = true
					case (name == "maps.Keys" || name == "maps.Values" || name == "maps.All") && !sorted[n]:
						complain(n, "uses "+name+" without slices.Sorted around it")
					case strings.HasPrefix(name, "fmt.Print") || strings.HasPrefix(name, "fmt.Scan") || name == "print" || name == "println":
						complain(n, "calls "+name)
					}
				}
				return true
			})
		}
	}
}

// Whatever reads bytes from outside is fuzzed: an exported Parse, Decode, Read
// or Scan of bytes or a reader (for Parse, Decode and Scan also of a string)
// is named in a fuzz target of its package.
func TestEveryParserIsFuzzed(t *testing.T) {
	parser := regexp.MustCompile(`^(Parse|Decode|Read|Scan)([^a-z]|$)`)
	for _, p := range house(t) {
		fuzzed := map[string]bool{}
		for _, f := range p.tests {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Fuzz") {
					ast.Inspect(fn, func(n ast.Node) bool {
						if id, ok := n.(*ast.Ident); ok {
							fuzzed[id.Name] = true
						}
						return true
					})
				}
			}
		}
		for _, f := range p.code {
			if f.generated() {
				continue
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || !parser.MatchString(fn.Name.Name) || fuzzed[fn.Name.Name] || isReader(fn) {
					continue
				}
				if takesBytes(fn.Type.Params, !strings.HasPrefix(fn.Name.Name, "Read")) {
					t.Errorf("%s: %s has no fuzz target that calls it", f.name, fn.Name.Name)
				}
			}
		}
	}
}

// A test waits for what it needs, never for a while; and says why it skips.
func TestTestsNeitherSleepNorSkipSilently(t *testing.T) {
	for _, p := range house(t) {
		for _, f := range p.tests {
			ast.Inspect(f.File, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				recv, _ := sel.X.(*ast.Ident)
				switch name := sel.Sel.Name; {
				case recv != nil && recv.Name == "time" && name == "Sleep":
					t.Errorf("%s sleeps", f.at(call))
				case recv != nil && slices.Contains([]string{"t", "b", "f", "tb"}, recv.Name) && (name == "SkipNow" || (name == "Skip" || name == "Skipf") && !saysWhy(call)):
					t.Errorf("%s skips without a reason", f.at(call))
				}
				return true
			})
		}
	}
}

// Nothing in the tree knows the machine it was written on, or says that it is unfinished.
func TestFilesHoldNoMachineAndNoMarks(t *testing.T) {
	machine := regexp.MustCompile(`(^|[^A-Za-z0-9_./>-])/(home|root|work)\b`)
	host := regexp.MustCompile(`(proxy|sum)\.golang` + `\.org|registry\.npm` + `js\.org|deb\.debian` + `\.org|py` + `pi\.org`)
	mark := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	err := walk(func(name string, d fs.DirEntry) error {
		if strings.Contains(name, "testdata/") || strings.HasSuffix(name, "go.sum") {
			return nil // recorded input; checksums
		}
		text, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			for what, re := range map[string]*regexp.Regexp{"a path of a machine": machine, "the host of a package registry": host, "a mark of unfinished work": mark} {
				if hit := re.FindString(line); hit != "" {
					t.Errorf("%s:%d holds %s: %q", name, i+1, what, hit)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every library and tool that go.mod asks for by itself is argued for.
func TestEveryDependencyIsArgued(t *testing.T) {
	page, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, mod := range []string{"go.mod", "tools/go.mod", "tools/lint/go.mod", "tools/grpcurl/go.mod"} {
		text, err := os.ReadFile(mod)
		if err != nil {
			t.Fatal(err)
		}
		block := ""
		for _, line := range strings.Split(string(text), "\n") {
			words := strings.Fields(line)
			switch {
			case len(words) == 2 && words[1] == "(":
				block = words[0]
				continue
			case len(words) == 1 && words[0] == ")":
				block = ""
				continue
			case len(words) > 1 && block == "":
				words = words[1:]
				if d := strings.Fields(line)[0]; d != "require" && d != "tool" {
					continue
				}
			}
			if len(words) == 0 || strings.Contains(line, "// indirect") {
				continue
			}
			if !bytes.Contains(page, []byte("| `"+words[0]+"`")) {
				t.Errorf("%s names %s, docs/dependencies.md does not", mod, words[0])
			}
		}
	}
}

// ---- reading the house ----

type file struct {
	*ast.File
	fset *token.FileSet
	name string // with slashes, from the top of the repository
	test bool
}

func (f file) imports() []string {
	var out []string
	for _, imp := range f.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			panic(err)
		}
		out = append(out, p)
	}
	return out
}

func (f file) generated() bool      { return ast.IsGenerated(f.File) }
func (f file) at(n ast.Node) string { return f.fset.Position(n.Pos()).String() }
func (p *pack) all() []file         { return slices.Concat(p.code, p.tests) }
func (p *pack) generated() bool {
	return !slices.ContainsFunc(p.code, func(f file) bool { return !f.generated() })
}
func isStd(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}
func under(imp, prefix string) bool    { return imp == prefix || strings.HasPrefix(imp, prefix+"/") }
func ownDir(imp string) (string, bool) { return cutDir(imp), under(imp, module) }

func cutDir(imp string) string {
	if dir := strings.TrimPrefix(strings.TrimPrefix(imp, module), "/"); dir != "" {
		return dir
	}
	return "."
}

// pack is one folder of Go files.
type pack struct {
	dir         string
	code, tests []file
}

var load = sync.OnceValues(func() ([]*pack, error) {
	fset := token.NewFileSet()
	byDir := map[string]*pack{}
	err := walk(func(name string, _ fs.DirEntry) error {
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			return nil
		}
		parsed, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p := byDir[path.Dir(name)]
		if p == nil {
			p = &pack{dir: path.Dir(name)}
			byDir[p.dir] = p
		}
		f := file{File: parsed, fset: fset, name: name, test: strings.HasSuffix(name, "_test.go")}
		if f.test {
			p.tests = append(p.tests, f)
		} else {
			p.code = append(p.code, f)
		}
		return nil
	})
	var out []*pack
	for _, p := range byDir {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *pack) int { return strings.Compare(a.dir, b.dir) })
	return out, err
})

func house(t *testing.T) []*pack {
	t.Helper()
	packs, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return packs
}

// walk visits every file of this module that is not ignored by git.
func walk(visit func(name string, d fs.DirEntry) error) error {
	return filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a file that came and went
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "data", "node_modules"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !d.Type().IsRegular() || name == "parley" || name == ".git" || path.Ext(name) == ".test" || path.Ext(name) == ".prof":
			return nil
		}
		return visit(name, d)
	})
}

// roomOf is the longest key of mayImport that holds dir, "" when none does.
func roomOf(dir string) string {
	if dir == "." {
		return "."
	}
	for d := dir; d != "."; d = path.Dir(d) {
		if _, ok := mayImport[d]; ok {
			return d
		}
	}
	return ""
}

// support reports whether a folder is a rig for tests, like journaltest: test
// code in its own package. Only tests, other rigs and the simulation import it.
func support(dir string) bool { return strings.HasSuffix(dir, "test") }

func within(dir, dirs string) bool {
	return slices.ContainsFunc(strings.Fields(dirs), func(d string) bool {
		return d == "*" || dir == d || d != "." && strings.HasPrefix(dir, d+"/")
	})
}

func saysWhy(call *ast.CallExpr) bool {
	if len(call.Args) == 0 {
		return false
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	return !ok || len(strings.Trim(lit.Value, "\"` ")) > 0
}

// isReader tells io.Reader's method, which fills its bytes.
func isReader(fn *ast.FuncDecl) bool {
	return fn.Recv != nil && fn.Name.Name == "Read" && fn.Type.Params.NumFields() == 1 && fn.Type.Results.NumFields() == 2
}

func takesBytes(params *ast.FieldList, orString bool) bool {
	for _, field := range params.List {
		switch s := types.ExprString(field.Type); {
		case s == "[]byte" || s == "io.Reader" || s == "json.RawMessage" || s == "string" && orString:
			return true
		}
	}
	return false
}

// ---- types, for the ranges ----

// typeChecker resolves our packages and the standard library from source.
// Other libraries are empty packages: what they would have told is unknown,
// and a range over something unknown is refused.
type typeChecker struct {
	fset  *token.FileSet
	packs []*pack
	std   types.Importer
	seen  map[string]*types.Package
}

func newTypeChecker(packs []*pack) *typeChecker {
	fset := token.NewFileSet()
	if len(packs) > 0 && len(packs[0].all()) > 0 {
		fset = packs[0].all()[0].fset
	}
	return &typeChecker{fset, packs, importer.ForCompiler(fset, "source", nil), map[string]*types.Package{}}
}

func (c *typeChecker) find(dir string) *pack {
	at := slices.IndexFunc(c.packs, func(p *pack) bool { return p.dir == dir })
	if at < 0 {
		return nil
	}
	return c.packs[at]
}

func (c *typeChecker) Import(imp string) (*types.Package, error) {
	dir, ours := ownDir(imp)
	switch p := c.find(dir); {
	case c.seen[imp] != nil:
	case ours && p != nil:
		c.seen[imp] = c.check(p, imp, nil)
	case isStd(imp):
		return c.std.Import(imp)
	default:
		c.seen[imp] = types.NewPackage(imp, path.Base(imp))
		c.seen[imp].MarkComplete()
	}
	return c.seen[imp], nil
}

func (c *typeChecker) check(p *pack, imp string, info *types.Info) *types.Package {
	var files []*ast.File
	for _, f := range p.code {
		files = append(files, f.File)
	}
	conf := types.Config{Importer: c, IgnoreFuncBodies: info == nil, Error: func(error) {}} // unknown libraries
	pkg, _ := conf.Check(imp, c.fset, files, info)                                          // likewise
	return pkg
}

// bodies checks a package with its function bodies.
func (c *typeChecker) bodies(p *pack) *types.Info {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	c.check(p, module+"/"+p.dir, info)
	return info
}

// unordered says what is wrong with ranging over a type, "" when its order is fixed.
func unordered(typ types.Type) string {
	if typ == nil {
		return "something of unknown type"
	}
	if param, ok := typ.(*types.TypeParam); ok {
		constraint, _ := param.Constraint().Underlying().(*types.Interface)
		for i := range constraint.NumEmbeddeds() {
			union, ok := constraint.EmbeddedType(i).(*types.Union)
			for j := 0; ok && j < union.Len(); j++ {
				if bad := unordered(union.Term(j).Type()); bad != "" {
					return bad
				}
			}
		}
		return ""
	}
	switch u := typ.Underlying().(type) {
	case *types.Map:
		return "a map"
	case *types.Chan:
		return "a channel"
	case *types.Basic:
		if u.Kind() == types.Invalid {
			return "something of unknown type"
		}
	}
	return ""
}

// calledName is "package.Function" or the name of a builtin, "" for anything else.
func calledName(info *types.Info, call *ast.CallExpr) string {
	fun := call.Fun
	if ix, ok := fun.(*ast.IndexExpr); ok {
		fun = ix.X
	}
	switch fun := fun.(type) {
	case *ast.Ident:
		if b, ok := info.Uses[fun].(*types.Builtin); ok {
			return b.Name()
		}
	case *ast.SelectorExpr:
		if id, ok := fun.X.(*ast.Ident); ok {
			if pkg, ok := info.Uses[id].(*types.PkgName); ok {
				return fmt.Sprintf("%s.%s", pkg.Imported().Path(), fun.Sel.Name)
			}
		}
	}
	return ""
}
