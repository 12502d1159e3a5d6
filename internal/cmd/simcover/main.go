// Command simcover says which statements of the machines the simulation never
// reaches, and holds each against simulation/unreached.txt, which says why that
// is fine. It writes what it found into docs/simulation.md.
//
// It decides that a statement nobody reaches needs a reason, that a reason needs
// such a statement, and that what is said to be tested elsewhere is. It never
// decides whether a reason is a good one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// machines are the rooms that the simulation runs as production does.
var machines = []string{"actors", "sessionlog", "supervisor", "query", "journal", "messages"}

// elsewhere is where what the simulation leaves out may be tested.
var elsewhere = []string{".", "./actors", "./sessionlog", "./supervisor", "./query/...", "./gateway", "./journal", "./journal/memory", "./messages",
	"./simulation/panics", "./simulation/conformance"}

type options struct {
	root   string
	seeds  int
	keep   string
	reuse  bool
	stdout io.Writer
}

func main() {
	o := options{stdout: os.Stdout}
	flag.StringVar(&o.root, "C", ".", "the top of the repository")
	flag.IntVar(&o.seeds, "seeds", 4000, "how many seeds, every profile in turn")
	flag.StringVar(&o.keep, "keep", "", "a folder for the two coverage profiles; else they are thrown away")
	flag.BoolVar(&o.reuse, "reuse", false, "do not run anything: take the profiles of -keep")
	flag.Parse()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "simcover:", err)
		os.Exit(1)
	}
}

func run(o *options) error {
	dir := o.keep
	if dir == "" {
		tmp, err := os.MkdirTemp("", "simcover-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(tmp) }()
		dir = tmp
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	simulated, tested := filepath.Join(dir, "simulation.cover"), filepath.Join(dir, "elsewhere.cover")
	if !o.reuse {
		if err := o.cover(simulated, "-run=^(TestSwarmIsClean|TestScripts)$", "./simulation"); err != nil {
			return err
		}
		if err := o.cover(tested, elsewhere...); err != nil {
			return err
		}
	}
	blocks, err := read(o.root, simulated, tested)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(o.root, "simulation", "unreached.txt"))
	if err != nil {
		return err
	}
	reasons, err := parse(string(text))
	if err != nil {
		return err
	}
	if faults := join(blocks, reasons); len(faults) > 0 {
		_, _ = fmt.Fprintln(o.stdout, strings.Join(faults, "\n"))
		return fmt.Errorf("%d faults in simulation/unreached.txt", len(faults))
	}
	section := page(blocks, reasons, o.seeds)
	_, _ = fmt.Fprint(o.stdout, section)
	return writePage(filepath.Join(o.root, "docs", "simulation.md"), section)
}

// cover runs tests, and writes which statements of the machines they reach.
func (o *options) cover(profile string, tests ...string) error {
	var of []string
	for _, room := range machines {
		of = append(of, "./"+room)
	}
	tool := os.Getenv("GO")
	if tool == "" {
		tool = "go"
	}
	cmd := exec.Command(tool, append([]string{"test", "-count=1", "-timeout=0", "-coverpkg=" + strings.Join(of, ","), "-coverprofile=" + profile}, tests...)...)
	cmd.Dir = o.root
	cmd.Env = append(os.Environ(), fmt.Sprintf("PARLEY_SIM_SEEDS=%d", o.seeds))
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}
