// Command docs writes the pages of docs/ that are derived from code:
// rules.md, which tests hold which rule, and errors.md, the registry of codes.
//
// It decides how those pages look and which test counts for which rule. It
// never writes another file, and with -check none at all.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "compare with what is there; write nothing")
	root := flag.String("C", ".", "the top of the repository")
	flag.Parse()
	stale, err := run(*root, *check)
	for _, name := range stale {
		fmt.Fprintf(os.Stderr, "docs: %s is stale; run make generate\n", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
	}
	if err != nil || len(stale) > 0 {
		os.Exit(1)
	}
}

// pages makes every derived page, by its place in the repository.
func pages(root string) (map[string][]byte, error) {
	held, err := scan(root)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"docs/rules.md": rulesPage(held), "docs/errors.md": errorsPage()}, nil
}

// run writes the pages, or names the stale ones when it only checks.
func run(root string, check bool) (stale []string, err error) {
	made, err := pages(root)
	if err != nil {
		return nil, err
	}
	for name, text := range made {
		at := filepath.Join(root, filepath.FromSlash(name))
		switch old, err := os.ReadFile(at); {
		case err == nil && bytes.Equal(old, text):
		case check:
			stale = append(stale, name)
		default:
			if err := os.WriteFile(at, text, 0o644); err != nil {
				return nil, err
			}
		}
	}
	return stale, nil
}
