package main

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// block is a run of statements of which all are reached or none, as the
// compiler counts them.
type block struct {
	file       string // from the top of the repository
	from, to   place
	statements int
	function   string // such as (*Session).ask
	text       string // its lines, with one space between them
	simulated  bool   // reached by the simulation
	tested     bool   // reached by tests elsewhere
	reason     *reason
}

type place struct{ line, column int }

const module = "github.com/parleyrun/parley/"

// read merges the two profiles, in the order of the source. What is generated
// is left out.
func read(root, simulated, tested string) ([]*block, error) {
	all := map[string]*block{}
	err := scan(simulated, all, func(b *block) { b.simulated = true })
	if err == nil {
		err = scan(tested, all, func(b *block) { b.tested = true })
	}
	if err != nil {
		return nil, err
	}
	var blocks []*block
	for _, b := range all {
		if !strings.HasSuffix(b.file, ".pb.go") && b.statements > 0 {
			blocks = append(blocks, b)
		}
	}
	slices.SortFunc(blocks, func(a, b *block) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.from.line, b.from.line), cmp.Compare(a.from.column, b.from.column))
	})
	sources := map[string]*source{}
	for _, b := range blocks {
		if sources[b.file] == nil {
			if sources[b.file], err = parseSource(filepath.Join(root, filepath.FromSlash(b.file))); err != nil {
				return nil, err
			}
		}
		b.function, b.text = sources[b.file].function(b.from.line), sources[b.file].between(b.from.line, b.to.line)
	}
	return blocks, nil
}

// scan reads a profile. A block is in it once for each package tested.
func scan(profile string, all map[string]*block, reached func(*block)) error {
	f, err := os.Open(profile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "mode: ") {
			continue
		}
		where, counts, ok := strings.Cut(line, " ")
		b := &block{}
		var count int
		file, span, found := strings.Cut(where, ":")
		_, err := fmt.Sscanf(span+" "+counts, "%d.%d,%d.%d %d %d", &b.from.line, &b.from.column, &b.to.line, &b.to.column, &b.statements, &count)
		if !ok || !found || err != nil {
			return fmt.Errorf("%s: no line of a coverage profile: %q", profile, line)
		}
		b.file = strings.TrimPrefix(file, module)
		if all[where] == nil {
			all[where] = b
		}
		if count > 0 {
			reached(all[where])
		}
	}
	return lines.Err()
}

// source is a file and who is where in it.
type source struct {
	lines []string
	decls []decl
}

type decl struct {
	from, to int
	name     string
}

func parseSource(path string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, 0)
	if err != nil {
		return nil, err
	}
	s := &source{lines: strings.Split(string(text), "\n")}
	for _, d := range file.Decls {
		s.decls = append(s.decls, decl{set.Position(d.Pos()).Line, set.Position(d.End()).Line, nameOf(d)})
	}
	return s, nil
}

// nameOf is the name of a function with its receiver, or of the first thing that
// a declaration of others declares.
func nameOf(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		of := d.Recv.List[0].Type
		pointer, isPointer := of.(*ast.StarExpr)
		if isPointer {
			of = pointer.X
		}
		if generic, ok := of.(*ast.IndexExpr); ok {
			of = generic.X
		}
		name := fmt.Sprint(of)
		if isPointer {
			name = "(*" + name + ")"
		}
		return name + "." + d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				return v.Names[0].Name
			}
		}
	}
	return "?"
}

func (s *source) function(line int) string {
	for _, d := range s.decls {
		if d.from <= line && line <= d.to {
			return d.name
		}
	}
	return "?"
}

func (s *source) between(from, to int) string {
	var words []string
	for _, line := range s.lines[from-1 : to] {
		words = append(words, strings.Fields(line)...)
	}
	return strings.Join(words, " ")
}
