package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// console is the terminal of a person: keys come in, frames go out. The rest of the program does not know that a
// terminal has modes.
type console struct {
	in, out *os.File
	was     *term.State

	top   int    // the first line of the body that is shown
	shown string // what was painted last, so that nothing is painted twice
}

// terminalOf is the file behind a stream, if it is a terminal.
func terminalOf(stream any) *os.File {
	if s, ok := stream.(*sticky); ok {
		stream = s.Writer
	}
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// console is the person's terminal, or nil when there is none that can show a card.
func (c *cli) console() *console {
	in, out := terminalOf(c.in), terminalOf(c.out)
	if name, _ := c.env("TERM"); in == nil || out == nil || c.json || name == "dumb" {
		return nil
	}
	return &console{in: in, out: out}
}

// open takes the terminal over, close gives it back as it was.
func (s *console) open() (err error) {
	if s.was, err = term.MakeRaw(int(s.in.Fd())); err != nil {
		return err
	}
	s.write(terminalOpen)
	return nil
}

func (s *console) close() {
	s.write(terminalClose)
	_ = term.Restore(int(s.in.Fd()), s.was)
}

func (s *console) write(text string) { _, _ = io.WriteString(s.out, text) }

// size is asked for again before every frame: a person may pull at the window.
func (s *console) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return widthDefault, 24
	}
	return width, height
}

// paint shows a frame, if it differs from what is there. pages is how many pages the person turned; follow keeps the
// place where the person is in sight.
func (s *console) paint(f frame, width, height, pages int, follow bool, dim func(string) string) {
	room := max(1, height-len(f.head)-len(f.foot)-2) // two rules
	s.top += pages * max(1, room-1)
	if follow {
		s.top = min(s.top, f.from)
		s.top = max(s.top, min(f.to, f.from+room)-room)
	}
	s.top = max(0, min(s.top, len(f.body)-room))
	end := min(len(f.body), s.top+room)

	lines := append([]string{}, f.head...)
	lines = append(lines, dim(rule(width, s.top > 0, "↑ more")))
	lines = append(lines, f.body[s.top:end]...)
	for len(lines) < len(f.head)+1+room {
		lines = append(lines, "")
	}
	lines = append(lines, dim(rule(width, end < len(f.body), "↓ more: PgDn")))
	lines = append(lines, f.foot...)
	lines = lines[:min(len(lines), height)]

	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[?25l\x1b[H") // shown at once, where a terminal can
	// What was there is erased before a line is written: behind a full line the cursor still stands on its last letter.
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		erase := "\x1b[K"
		if i == len(lines)-1 { // and what is below it
			erase = "\x1b[J"
		}
		b.WriteString(erase + line)
	}
	if row := f.caretRow - s.top; f.caretRow >= 0 && row >= 0 && row < room { // an input method opens at the caret
		b.WriteString(moveTo(len(f.head)+1+row, min(f.caret, width-1)) + "\x1b[?25h")
	}
	b.WriteString("\x1b[?2026l")
	if text := b.String(); text != s.shown {
		s.shown = text
		s.write(text)
	}
}

// rule is a line across, with a word in it when there is more than fits.
func rule(width int, more bool, word string) string {
	if !more {
		return strings.Repeat("─", width)
	}
	return "── " + word + " " + strings.Repeat("─", max(0, width-4-cells(word)))
}

// moveTo puts the cursor into a line and a column, counted from 0.
func moveTo(row, col int) string {
	return fmt.Sprintf("\x1b[%d;%dH", row+1, col+1)
}
