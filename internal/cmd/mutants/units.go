package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// room is a package with unit tests, and the packages that they can see.
type room struct {
	dir  string // below the top of the repository: actors
	sees map[string]bool
}

// A test that ends neither way within this time is an error of the run.
const unitTimeout = "-timeout=10m"

// unitRooms finds every package with tests, and what they are built from.
func (o *options) unitRooms() ([]room, error) {
	module, err := o.goList("-m")
	if err != nil {
		return nil, err
	}
	out, err := o.goList("-test", "-json=ForTest,Deps", "./...")
	if err != nil {
		return nil, err
	}
	return roomsOf(strings.TrimSpace(string(module)), bytes.NewReader(out))
}

// goList asks the go tool; what it says by the way is no part of its answer.
func (o *options) goList(args ...string) ([]byte, error) {
	var said bytes.Buffer
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stderr = o.root, &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, last(said.String()))
	}
	return out, nil
}

// roomsOf reads what the go tool says of packages. It leaves out the tests that
// run worlds or whole nodes: those of the simulation's rooms, all that is built
// from package simulation, and the end-to-end tests. What remains of the
// simulation is its disk: a mistake in it is seen by the tests of that room.
func roomsOf(module string, listed io.Reader) (rooms []room, err error) {
	sees := map[string]map[string]bool{}
	for dec := json.NewDecoder(listed); ; {
		var p struct {
			ForTest string
			Deps    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.ForTest == "" {
			continue
		}
		dir := within(module, p.ForTest)
		if sees[dir] == nil {
			sees[dir] = map[string]bool{dir: true}
		}
		for _, dep := range p.Deps {
			dep, _, _ = strings.Cut(dep, " ") // actors [actors.test]
			sees[dir][within(module, dep)] = true
		}
	}
	for dir, all := range sees {
		top, _, _ := strings.Cut(dir, "/")
		if worlds := all["simulation"] || top == "simulation" && dir != "simulation/disk"; !worlds && top != "e2e" {
			rooms = append(rooms, room{dir, all})
		}
	}
	slices.SortFunc(rooms, func(a, b room) int { return strings.Compare(a.dir, b.dir) })
	return rooms, nil
}

// within is a package's folder in the repository; of one outside, its path.
func within(module, pkg string) string {
	if pkg == module {
		return "."
	}
	return strings.TrimPrefix(pkg, module+"/")
}

// seenBy returns the first unit test that fails with a mistake, the rooms that
// it is in before all others; empty: all pass.
func (o *options) seenBy(m *mutant, overlay string) (string, error) {
	for _, r := range m.rooms(o.rooms) {
		test, err := o.confirmed(overlay, r.dir)
		if err != nil {
			return "", err
		}
		if test != "" {
			return r.dir + ": " + test, nil
		}
	}
	return "", nil
}

// rooms are those whose tests can see what the mistake changes.
func (m *mutant) rooms(all []room) []room {
	var own, others []room
	for _, r := range all {
		in := func(file string) bool { return path.Dir(file) == r.dir }
		switch {
		case slices.ContainsFunc(m.files, in):
			own = append(own, r)
		case slices.ContainsFunc(m.files, func(file string) bool { return r.sees[path.Dir(file)] }):
			others = append(others, r)
		}
	}
	return append(own, others...)
}

// confirmed runs the tests of a room until one fails that fails every time, or
// all pass. A mistake with which tests fail again and again, and not every time,
// has been seen too: a table that says otherwise would claim too much.
func (o *options) confirmed(overlay, dir string) (test string, err error) {
	for range 3 {
		test, err = o.unitTests(overlay, dir)
		if err != nil || test == "" {
			return test, err
		}
		again, err := o.unitTests(overlay, dir, "-count=1", "-run=^"+test+"$")
		if err != nil || again == test {
			return test, err
		}
	}
	return test + " (now and then)", nil
}

// unitTests runs the tests of a room, and returns the one that fails.
func (o *options) unitTests(overlay, dir string, flags ...string) (string, error) {
	args := append([]string{"test", "-json", "-failfast", unitTimeout, "-overlay=" + overlay}, flags...)
	out, err := o.goTool(append(args, "./"+filepath.ToSlash(dir))...)
	if err == nil {
		return "", nil
	}
	test, verr := verdict(out)
	if verr != nil {
		return "", fmt.Errorf("the unit tests of %s: %w (%w)", dir, verr, err)
	}
	return test, nil
}

// verdict reads the events of a failed go test. Only a test that fails says
// something of a mistake: what does not build, or does not end, has not been
// tried.
func verdict(events []byte) (test string, err error) {
	var output strings.Builder
	running := map[string]bool{}
	var order []string
	for line := range bytes.Lines(events) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			output.Write(line) // the go tool itself speaks
			continue
		}
		output.WriteString(e.Output)
		name, _, _ := strings.Cut(e.Test, "/")
		switch {
		case e.Action == "build-fail":
			return "", fmt.Errorf("they do not build:\n%s", last(output.String()))
		case name == "":
		case e.Action == "run" && !running[name]:
			running[name] = true
			order = append(order, name)
		case e.Action == "fail" && test == "":
			test = name
		case e.Test == name && (e.Action == "pass" || e.Action == "skip"):
			delete(running, name)
		}
	}
	text := output.String()
	switch {
	case strings.Contains(text, "panic: test timed out after"):
		return "", fmt.Errorf("they do not end:\n%s", last(text))
	case test == "" && strings.Contains(text, "panic: "): // on a goroutine of its own
		for _, name := range order {
			if running[name] {
				return name, nil
			}
		}
	}
	if test == "" {
		return "", fmt.Errorf("no test fails, and yet they do:\n%s", last(text))
	}
	return test, nil
}

// last is the end of a long text.
func last(text string) string { return text[max(0, len(text)-2000):] }
