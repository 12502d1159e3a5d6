package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	widthDefault = 80
	widthMin     = 20
)

// isTerminal reports whether a person may read what is written there; the null device is no terminal.
func isTerminal(f *os.File) bool {
	return term.IsTerminal(int(f.Fd()))
}

// terminalWidth is how many cells a line may have: what COLUMNS says, else the terminal's own.
func terminalWidth(env func(string) (string, bool)) int {
	text, _ := env("COLUMNS")
	if n, err := strconv.Atoi(text); err == nil && n >= widthMin {
		return n
	}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && width >= widthMin {
		return width
	}
	return widthDefault
}

// hostile reports a rune that may not reach a terminal: control characters could move the cursor or forge output,
// and direction overrides could make a text read as another.
func hostile(r rune) bool {
	switch {
	case unicode.IsControl(r), r == utf8.RuneError:
		return true
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r == 0x200E, r == 0x200F, r == 0x061C:
		return true
	case r == 0x2028, r == 0x2029:
		return true
	}
	return false
}

// escapeRune spells a hostile rune; none lies beyond four digits.
func escapeRune(r rune) string { return fmt.Sprintf(`\u%04x`, r) }

// clean makes stored text safe for a terminal and keeps its lines. What it takes away stays visible as an escape.
func clean(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case r == '\n':
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		case hostile(r):
			b.WriteString(escapeRune(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// oneLine is clean text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(clean(text)), " ") }

// indented is clean text whose further lines stand behind its first: none of them can be taken for a line of ours.
func indented(text string) string {
	return strings.ReplaceAll(strings.Trim(clean(text), " \n"), "\n", "\n  ")
}

// escapeJSON writes what encoding/json leaves raw but a terminal would act on as escapes; the meaning stays the same.
func escapeJSON(text []byte) []byte {
	if bytes.IndexFunc(text, hostile) < 0 {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		if hostile(r) {
			out = append(out, escapeRune(r)...)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// jsonLine is one JSON document on one line.
func jsonLine(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("a document of this program is not JSON: " + err.Error())
	}
	return escapeJSON(bytes.TrimSpace(b.Bytes()))
}

func (c *cli) printJSON(v any) error {
	_, err := fmt.Fprintf(c.out, "%s\n", jsonLine(v))
	return err
}

func (c *cli) printf(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }

// notef is for the person at the terminal: it goes to stderr, and with --json nowhere.
func (c *cli) notef(format string, args ...any) {
	if !c.json {
		_, _ = fmt.Fprintf(c.err, format, args...)
	}
}

func (c *cli) paint(code, text string) string {
	if !c.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (c *cli) bold(text string) string { return c.paint("1", text) }
func (c *cli) dim(text string) string  { return c.paint("2", text) }

// state paints the word for a question's state.
func (c *cli) state(word string) string {
	switch strings.TrimSpace(word) {
	case "open":
		return c.paint("32", word)
	case "continued":
		return c.paint("33", word)
	}
	return word
}

// cells is the width of clean text on a terminal: East Asian letters and most pictures take two.
func cells(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case r < 0x300: // Latin, and by far the most
			n++
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
			r >= 0x3000 && r <= 0x303E, r >= 0xFF01 && r <= 0xFF60, r >= 0xFFE0 && r <= 0xFFE6, r >= 0x1F300 && r <= 0x1FAFF:
			n += 2
		default:
			n++
		}
	}
	return n
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-cells(text)))
}

// wrap breaks clean text into lines of at most width cells. Nothing is cut away.
func wrap(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(clean(text), "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			for fitting(word, width) != word { // an id, or a language without spaces; a long one must not cost its square
				head := fitting(word, width-cells(line)-len(gap(line)))
				if head == "" {
					lines, line = append(lines, line), ""
					continue
				}
				lines, line, word = append(lines, line+gap(line)+head), "", word[len(head):]
			}
			if line != "" && cells(line)+1+cells(word) > width {
				lines, line = append(lines, line), ""
			}
			line += gap(line) + word
		}
		lines = append(lines, line)
	}
	return lines
}

func gap(line string) string {
	if line == "" {
		return ""
	}
	return " "
}

// fitting is the longest head of the word within width cells.
func fitting(word string, width int) string {
	used := 0
	for i, r := range word {
		if used += cells(string(r)); used > width {
			return word[:i]
		}
	}
	return word
}

// block writes wrapped text with a first mark and an indent for the lines that follow.
func (c *cli) block(w io.Writer, mark, text string) { c.bounded(w, mark, text, nil) }

// The readable part of a text in a list.
const (
	linesShown   = 12
	lettersShown = 1000
)

// bound is what of a text may still be printed, and how much was not. A nil one has no end.
type bound struct{ lines, letters, cut int }

func newBound(full bool) *bound {
	if full {
		return nil
	}
	return &bound{lines: linesShown, letters: lettersShown}
}

// take reports whether another line may be printed.
func (b *bound) take(line string) bool {
	n := utf8.RuneCountInString(line)
	if b == nil {
		return true
	}
	if b.cut > 0 || b.lines == 0 || n > b.letters {
		b.cut += n + 1
		return false
	}
	b.lines, b.letters = b.lines-1, b.letters-n
	return true
}

// bounded writes a block as far as the bound lets it. No line of a text can be taken for a line of ours: those that
// follow stand further in than any mark, and a first one that begins like a mark gets a backslash.
func (c *cli) bounded(w io.Writer, mark, text string, b *bound) {
	indent, width := strings.Repeat(" ", max(4, cells(mark))), max(widthMin/2, c.width-max(4, cells(mark)))
	text = strings.Trim(clean(text), " \n")
	if strings.TrimSpace(mark) == "" && text != "" && strings.ContainsRune("-+=*!|@…", []rune(text)[0]) {
		text = `\` + text
	}
	for i, line := range wrap(text, width) {
		lead := mark
		if i > 0 {
			lead = indent
		}
		if b.take(line) {
			_, _ = fmt.Fprintln(w, strings.TrimRight(lead+line, " "))
		}
	}
}

// columns lines up rows of clean cells under their heads and leaves the last column as it is. wide is the width
// of all of it.
func (c *cli) columns(head []string, rows [][]string) (top string, lines []string, wide int) {
	width := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], cells(cell))
		}
	}
	line := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			if i < len(row)-1 {
				cell = pad(cell, width[i]+2)
			}
			b.WriteString(c.state(cell))
		}
		return b.String()
	}
	for _, row := range rows {
		lines = append(lines, line(row))
	}
	for _, n := range width {
		wide += n + 2
	}
	return c.dim(line(head)), lines, wide - 2
}

// idShown is how much of an id stays in a table: enough to tell it from others, and to name it by its beginning.
const idShown = 12

// squeeze shortens ids in a table until it fits the terminal, those of the first column first. What is not read by a
// person keeps them whole.
func (c *cli) squeeze(head []string, rows [][]string, ids ...int) {
	for _, col := range ids {
		_, _, wide := c.columns(head, rows)
		if !c.tty || c.full || wide <= c.width {
			return
		}
		widest := 0
		for _, row := range rows {
			widest = max(widest, cells(row[col]))
		}
		for _, row := range rows {
			row[col] = middle(row[col], max(idShown, widest-(wide-c.width)))
		}
	}
}

// middle takes from the middle of clean text what is too much for the width: ids differ at their ends.
func middle(text string, width int) string {
	if cells(text) <= width {
		return text
	}
	head := fitting(text, width*2/3)
	tail := text[len(head):]
	for cells(tail) > width-1-cells(head) {
		_, size := utf8.DecodeRuneInString(tail)
		tail = tail[size:]
	}
	return head + "…" + tail
}

// span words a duration in its two largest units.
func span(ms int64) string {
	d := (time.Duration(max(ms, 0)) * time.Millisecond).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
