package simulation

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"strconv"
)

// Line is one thing that happened: when, where and what. Ref joins a sending to
// its arrivals.
type Line struct {
	N    int
	At   int64 // milliseconds since the start
	Lane string
	Kind string // see the constants
	To   string // another lane, of a message
	Ref  int    // of a message: the same number at each end; 0: none
	Text string
}

// Kinds of lines.
const (
	KindSend    = "send"    // a message leaves for another lane
	KindArrive  = "arrive"  // it arrives
	KindDrop    = "drop"    // it is lost
	KindDeliver = "deliver" // an actor takes a message
	KindTimer   = "timer"
	KindDisk    = "disk" // an operation meets its fate
	KindFault   = "fault"
	KindDo      = "do"   // a party begins to do something
	KindTold    = "told" // a party is told something final
	KindHold    = "hold" // a claim begins or ends, as its client sees it
	KindShow    = "show" // a tab shows a card otherwise
	KindMark    = "mark" // the world says something of itself
)

// Bytes appends the line as the trace has it.
func (l Line) Bytes(dst []byte) []byte {
	dst = strconv.AppendInt(dst, l.At, 10)
	dst = append(append(append(dst, ' '), l.Lane...), ' ')
	dst = append(dst, l.Kind...)
	if l.To != "" {
		dst = append(append(dst, " -> "...), l.To...)
	}
	if l.Ref != 0 {
		dst = strconv.AppendInt(append(dst, " #"...), int64(l.Ref), 10)
	}
	if l.Text != "" {
		dst = append(append(dst, ' '), l.Text...)
	}
	return append(dst, '\n')
}

// String is the line without its end.
func (l Line) String() string { b := l.Bytes(nil); return string(b[:len(b)-1]) }

// trace keeps lines, or only what they hash to, or only counts them.
type trace struct {
	n      int
	keep   bool
	silent bool
	all    []Line
	sum    hash.Hash
	buf    []byte
}

func newTrace(o Options) *trace {
	if o.Silent {
		return &trace{silent: true}
	}
	return &trace{keep: o.Keep, sum: sha256.New()}
}

func (t *trace) add(l Line) {
	t.n++
	if t.silent {
		return
	}
	l.N = t.n
	t.buf = l.Bytes(t.buf[:0])
	_, _ = t.sum.Write(t.buf) // a hash never fails
	if t.keep {
		t.all = append(t.all, l)
	}
}

// Sum is the hash of all lines so far; of a silent trace it is empty.
func (t *trace) Sum() string {
	if t.silent {
		return ""
	}
	return fmt.Sprintf("%x", t.sum.Sum(nil)[:16])
}
