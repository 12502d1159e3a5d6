package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// heldAfter is how long after its deadline a call that has not returned is taken to be held: a node lets go at once.
const heldAfter = 2 * time.Second

// statusLine is the line that an ask rewrites each second while it waits at a terminal. It stands between the program
// and stderr, so that nothing else is written into it. A nil one says nothing.
type statusLine struct {
	c    *cli
	out  *os.File
	done chan struct{}
	over sync.WaitGroup

	mu       sync.Mutex
	shown    bool
	since    time.Time
	deadline time.Time // zero: none known
	lost     bool      // the node does not answer
	known    bool      // the question is durable
}

// statusLine starts the line, if stderr is a terminal that can rewrite one.
func (c *cli) statusLine(quiet bool) *statusLine {
	out := terminalOf(c.err)
	if name, _ := c.env("TERM"); out == nil || quiet || c.json || name == "dumb" {
		return nil
	}
	l := &statusLine{c: c, out: out, done: make(chan struct{}), since: c.now()}
	c.err = l
	l.over.Add(1)
	go l.run()
	return l
}

func (l *statusLine) run() {
	defer l.over.Done()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-tick.C:
			l.mu.Lock()
			l.draw()
			l.mu.Unlock()
		}
	}
}

// stop takes the line away.
func (l *statusLine) stop() {
	if l == nil {
		return
	}
	close(l.done)
	l.over.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	l.c.err = l.out
}

// Write lets a text through and puts the line below it again with the next second.
func (l *statusLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	return l.out.Write(p)
}

// note is a text for a person at a terminal only.
func (l *statusLine) note(format string, args ...any) {
	if l != nil {
		_, _ = fmt.Fprintf(l, format, args...)
	}
}

// waits says that the node holds the call, and until when.
func (l *statusLine) waits(deadline time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline, l.lost, l.known = deadline, false, true
	l.draw()
}

// away says that the node does not answer.
func (l *statusLine) away() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
}

func (l *statusLine) clear() {
	if l.shown {
		_, _ = fmt.Fprint(l.out, "\r\x1b[K")
		l.shown = false
	}
}

func (l *statusLine) draw() {
	if !l.known {
		return
	}
	width, _, err := term.GetSize(int(l.out.Fd()))
	if err != nil || width < widthMin {
		width = widthDefault
	}
	now := l.c.now()
	words := fitting(countdownWords(now.Sub(l.since), l.deadline.Sub(now), l.deadline.IsZero(), l.lost), width-1)
	_, _ = fmt.Fprint(l.out, "\r"+l.c.dim(words)+"\x1b[K")
	l.shown = true
}

// countdownWords says how a wait stands: for how long, and what is left of it.
func countdownWords(waited, left time.Duration, endless, lost bool) string {
	switch {
	case lost && !endless && left > 0:
		return span(left.Milliseconds()) + " left; the node does not answer"
	case lost:
		return "the node does not answer"
	case endless:
		return "waiting for " + span(waited.Milliseconds()) + ", without end"
	case left > 0:
		return span((left + time.Second - 1).Truncate(time.Second).Milliseconds()) + " left"
	case left > -heldAfter:
		return "0s left"
	}
	return "held by a person who has it open; waiting for " + span(waited.Milliseconds())
}
