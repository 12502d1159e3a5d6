package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	folder       = "simulation/mutants"
	seedsPackage = "./internal/cmd/mutants/seeds"
)

// mutant is one mistake, and what became of it.
type mutant struct {
	name  string // of its file, without the ending
	fault string // what it stands for
	patch string // the absolute path of its file
	files []string

	found found
	units string // the unit test that fails, with its room; empty: none, or they were not run
	err   error
}

// found is what the seeds came to: the words of command seeds.
type found struct {
	Seeds     int
	Seed      uint64
	Profile   string
	Invariant string
	Text      string
	Also      []string
	Panics    int
	Took      time.Duration
}

// list reads the mutants, in the order of their numbers.
func list(root string) ([]*mutant, error) {
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b)) })
	var all []*mutant
	for _, path := range paths {
		m, err := read(path)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// number is the one that a patch's name begins with.
func number(path string) int {
	digits, _, _ := strings.Cut(filepath.Base(path), "-")
	n, _ := strconv.Atoi(digits) // 0: a name that the tests refuse
	return n
}

// read takes a patch apart: what it stands for is in its first lines.
func read(path string) (*mutant, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	path, err = filepath.Abs(path)
	m := &mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), patch: path}
	var words []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if said, comment := strings.CutPrefix(line, "# "); comment && len(m.files) == 0 {
			words = append(words, said)
		}
		if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
			m.files = append(m.files, file)
		}
	}
	m.fault = strings.Join(words, " ")
	return m, err
}

func (m *mutant) caught() bool { return m.err == nil && m.found.Invariant != "" }

// try builds the simulation with the mistake in it and runs seeds.
func (m *mutant) try(o *options, tmp string) {
	overlay, err := m.apply(o.root, tmp)
	if err != nil {
		m.err = err
		return
	}
	runner := filepath.Join(tmp, "seeds")
	if out, err := o.goTool("build", "-overlay="+overlay, "-o", runner, seedsPackage); err != nil {
		m.err = fmt.Errorf("it does not build: %w\n%s", err, out)
		return
	}
	m.found, m.err = o.hunt(runner)
	if m.err == nil && o.units {
		m.units, m.err = o.seenBy(m, overlay)
	}
}

// hunt runs seeds until one breaks an invariant that the tree as it is keeps.
func (o *options) hunt(runner string) (f found, err error) {
	var skip []uint64
	for {
		f, err = runSeeds(runner, fmt.Sprintf("-seeds=%d", o.seeds), "-budget="+o.budget.String(), "-skip="+joined(skip))
		if err != nil || f.Invariant == "" {
			return f, err
		}
		clean, err := runSeeds(o.tree, fmt.Sprintf("-from=%d", f.Seed), "-seeds=1")
		if err != nil || clean.Invariant == "" {
			return f, err
		}
		fmt.Printf("seed %d fails without any mutant and does not count: %s: %s\n", f.Seed, clean.Invariant, clean.Text)
		skip = append(skip, f.Seed)
	}
}

// apply writes the changed files beside the tree, and says which stands for which.
func (m *mutant) apply(root, tmp string) (overlay string, err error) {
	replace := map[string]string{}
	for _, file := range m.files {
		from, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		to := filepath.Join(tmp, file)
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, text, 0o644)
		}
		if err != nil {
			return "", err
		}
		replace[from] = to
	}
	if out, err := gitApply(tmp, m.patch); err != nil {
		return "", fmt.Errorf("it does not apply: %w\n%s", err, out)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(tmp, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

func gitApply(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"apply"}, args...)...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

func (o *options) goTool(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = o.root
	return cmd.CombinedOutput()
}

// runSeeds runs command seeds. A crash of its process is not a finding.
func runSeeds(runner string, args ...string) (f found, err error) {
	var errs bytes.Buffer
	cmd := exec.Command(runner, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		text := errs.String()
		return f, errors.Join(err, errors.New(text[:min(len(text), 2000)]))
	}
	return f, json.Unmarshal(out, &f)
}

func joined(seeds []uint64) string {
	words := make([]string, len(seeds))
	for i, s := range seeds {
		words[i] = strconv.FormatUint(s, 10)
	}
	return strings.Join(words, ",")
}
