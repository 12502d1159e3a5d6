package query

import (
	"sync"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// textsBytesMax bounds the cache of question texts.
const textsBytesMax = 8 << 20

// textKey names one state of one call. A position is never used twice, so what
// it names never changes, and nothing ever has to be invalidated.
type textKey struct {
	session, call, state string
	at                   journal.Position
}

// text is what the log says about a call in one state. It is shared between
// rows and must not be changed.
type text struct {
	questions  []*messages.Question
	askedMS    int64
	unkeyed    bool
	settlement *messages.Settlement
	answers    []*messages.Answer
	size       int
}

func (t *text) fill(row *messages.QuestionRow) {
	row.Questions, row.AskedMs, row.Unkeyed = t.questions, t.askedMS, t.unkeyed
	row.Settlement, row.Answers = t.settlement, t.answers
}

// texts keeps the youngest texts, up to textsBytesMax; the oldest go first.
type texts struct {
	mu    sync.Mutex
	known map[textKey]*text
	order []textKey
	bytes int
}

func (c *texts) get(key textKey) (*text, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.known[key]
	return t, ok
}

func (c *texts) put(key textKey, t *text) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[key]; ok || t.size > textsBytesMax/8 {
		return
	}
	if c.known == nil {
		c.known = map[textKey]*text{}
	}
	c.known[key] = t
	c.order = append(c.order, key)
	c.bytes += t.size
	for c.bytes > textsBytesMax {
		c.bytes -= c.known[c.order[0]].size
		delete(c.known, c.order[0])
		c.order = c.order[1:]
	}
}
