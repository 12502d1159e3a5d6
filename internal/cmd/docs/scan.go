package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// scan reads every test of the repository and gives, for each rule, the tests
// that hold it, as `package.TestName`, sorted.
func scan(root string) (map[string][]string, error) {
	dirs := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a file that came and went
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{".git", "bin", "data", "node_modules", "testdata"}, d.Name()) || name == filepath.Join(root, "internal")):
			return filepath.SkipDir // the tests in internal are about this scan
		case strings.HasSuffix(name, "_test.go"):
			dirs[filepath.Dir(name)] = append(dirs[filepath.Dir(name)], name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	held := map[string][]string{}
	for dir, files := range dirs {
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return nil, err
		}
		pkg := path.Base(filepath.ToSlash(rel))
		if pkg == "." {
			pkg = "parley"
		}
		if err := scanDir(dir, pkg, files, held); err != nil {
			return nil, err
		}
	}
	for id := range held {
		slices.Sort(held[id])
		held[id] = slices.Compact(held[id])
	}
	return held, nil
}

// decl is what one declaration of a test file says: the rules it names, the
// strings it holds, and the other declarations it mentions.
type decl struct {
	rules   []string
	strings []string
	uses    []string
}

func scanDir(dir, pkg string, files []string, held map[string][]string) error {
	decls, tests := map[string]*decl{}, []string(nil)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				read := readDecl(d)
				if isTest(d) {
					read.rules = append(read.rules, idsOfComment(d.Doc.Text())...)
					read.rules = append(read.rules, idsOfName(d.Name.Name)...)
					tests = append(tests, d.Name.Name)
				}
				merge(decls, d.Name.Name, read)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						for _, n := range v.Names {
							merge(decls, n.Name, readDecl(v))
						}
					}
				}
			}
		}
	}
	for _, test := range tests {
		whole := closure(decls, test)
		rules, err := vectorRules(dir, whole.strings)
		if err != nil {
			return err
		}
		for _, id := range append(rules, whole.rules...) {
			held[id] = append(held[id], fmt.Sprintf("`%s.%s`", pkg, test))
		}
	}
	return nil
}

func isTest(f *ast.FuncDecl) bool {
	return f.Recv == nil && slices.ContainsFunc([]string{"Test", "Fuzz", "Example"}, func(p string) bool {
		return strings.HasPrefix(f.Name.Name, p)
	})
}

// merge adds a declaration; methods and values of one name count as one.
func merge(decls map[string]*decl, name string, d decl) {
	if old := decls[name]; old != nil {
		d = decl{append(old.rules, d.rules...), append(old.strings, d.strings...), append(old.uses, d.uses...)}
	}
	decls[name] = &d
}

func readDecl(n ast.Node) decl {
	var d decl
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if text, err := strconv.Unquote(n.Value); err == nil {
					d.strings = append(d.strings, text)
					d.rules = append(d.rules, id.FindAllString(text, -1)...)
				}
			}
		case *ast.Ident:
			d.uses = append(d.uses, n.Name)
		}
		return true
	})
	return d
}

// closure is a test with everything of its package's tests that it mentions.
// Another test's own claims are never part of it.
func closure(decls map[string]*decl, test string) decl {
	var whole decl
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		d := decls[name]
		if d == nil || seen[name] {
			return
		}
		seen[name] = true
		whole.rules = append(whole.rules, d.rules...)
		whole.strings = append(whole.strings, d.strings...)
		for _, use := range d.uses {
			add(use)
		}
	}
	add(test)
	return whole
}

var (
	id     = regexp.MustCompile(`\b[QLS]-\d{3}\b`)
	stem   = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	inName = regexp.MustCompile(`([QLS])(\d{3})`)
	ranges = regexp.MustCompile(`\b([QLS])-(\d{3})(?: to |…| … |–|\.\.\.?)[QLS]?-?(\d{3})\b`)
)

// rangeMax is the widest range in a comment that counts as naming its rules.
// A wider one is a heading: it says where one is, not what is held.
const rangeMax = 8

func idsOfComment(text string) []string {
	var out []string
	text = ranges.ReplaceAllStringFunc(text, func(r string) string {
		m := ranges.FindStringSubmatch(r)
		from, _ := strconv.Atoi(m[2]) // three digits
		to, _ := strconv.Atoi(m[3])   // likewise
		for n := from; to-from < rangeMax && n <= to; n++ {
			out = append(out, fmt.Sprintf("%s-%03d", m[1], n))
		}
		return " "
	})
	return append(out, id.FindAllString(text, -1)...)
}

// idsOfName reads TestQ104ReplyMessage.
func idsOfName(test string) []string {
	var out []string
	for _, m := range inName.FindAllStringSubmatch(test, -1) {
		out = append(out, m[1]+"-"+m[2])
	}
	return out
}

// vectorRules are the rules of the vectors that a test plays: the test names a
// file of its testdata (whole, or as a stem beside ".jsonl") and, when the
// vectors have kinds, the kind as well.
func vectorRules(dir string, names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		file := path.Base(name)
		if stem.MatchString(name) && slices.Contains(names, ".jsonl") {
			file = name + ".jsonl"
		}
		if path.Ext(file) != ".jsonl" {
			continue
		}
		f, err := os.Open(filepath.Join(dir, "testdata", file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		rules, err := readVectors(f, names)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		out = append(out, rules...)
	}
	return out, nil
}

func readVectors(f *os.File, names []string) ([]string, error) {
	var out []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v struct {
			Kind  string   `json:"kind"`
			Rules []string `json:"rules"`
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, err
		}
		if v.Kind != "" && !slices.Contains(names, v.Kind) {
			continue
		}
		out = append(out, v.Rules...)
	}
	slices.Sort(out)
	return slices.Compact(out), lines.Err()
}
