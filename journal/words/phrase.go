package words

// Phrase is what a query asks for: its tokens, next to each other and in this
// order (S-060). Nothing in a query means anything else: quotes, stars and
// operators are text. The zero value matches nothing.
type Phrase struct {
	query  string
	cut    Cut
	tokens []string
	back   []int // how many tokens still stand if the one at an index does not fit
}

// NewPhrase cuts a query. One without any token finds nothing (S-061).
func NewPhrase(query string, cut Cut) Phrase {
	query = Clean(query)
	p := Phrase{query: query, cut: cut, tokens: Tokens(query, cut)}
	p.back = make([]int, len(p.tokens)+1)
	for i, k := 1, 0; i < len(p.tokens); i++ {
		for k > 0 && p.tokens[i] != p.tokens[k] {
			k = p.back[k]
		}
		if p.tokens[i] == p.tokens[k] {
			k++
		}
		p.back[i+1] = k
	}
	return p
}

// Empty reports whether the phrase has no token.
func (p Phrase) Empty() bool { return len(p.tokens) == 0 }

// Cut returns how the phrase is cut.
func (p Phrase) Cut() Cut { return p.cut }

// In returns the same query cut another way.
func (p Phrase) In(cut Cut) Phrase { return NewPhrase(p.query, cut) }

// Tokens returns the tokens of the phrase, which must not be changed.
func (p Phrase) Tokens() []string { return p.tokens }

// Span is a highlighted part of a text, in bytes.
type Span struct{ Start, End int }

// Spans walks the parts of a text that the phrase covers, in order. Occurrences
// that overlap make one (S-062); ones that only touch do not.
func (p Phrase) Spans(text string, yield func(Span) bool) {
	if p.Empty() {
		return
	}
	var (
		s       = scan(text, p.cut)
		starts  = make([]int, len(p.tokens)) // of the last tokens, by their number
		matched int                          // tokens of the phrase that the last ones are
		open    Span
		last    = -1 // number of the last token of the open span
	)
	for n := 0; ; n++ {
		token, start, end := s.next()
		if token == nil {
			break
		}
		starts[n%len(starts)] = start
		for matched > 0 && (matched == len(p.tokens) || string(token) != p.tokens[matched]) {
			matched = p.back[matched]
		}
		if string(token) == p.tokens[matched] {
			matched++
		}
		if matched < len(p.tokens) {
			continue
		}
		first := n - len(p.tokens) + 1
		if last < first {
			if last >= 0 && !yield(open) {
				return
			}
			open.Start = starts[first%len(starts)]
		}
		open.End, last = end, n
	}
	if last >= 0 {
		yield(open)
	}
}

// Count returns how many spans the phrase has in a text.
func (p Phrase) Count(text string) int {
	n := 0
	p.Spans(text, func(Span) bool { n++; return true })
	return n
}

// first returns the first span; its zero value if there is none.
func (p Phrase) first(text string) (first Span) {
	p.Spans(text, func(s Span) bool { first = s; return false })
	return first
}
