package query

import (
	"sync"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/messages"
)

// textsBytesMax bounds the cache of question texts.
const textsBytesMax = 64 << 20

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

// texts keeps texts, up to textsBytesMax. Which one goes is as good as drawn:
// readers of long lists come by in order, and whichever goes by age, of a list
// a little longer than the cache, would always be the one wanted next.
type texts struct {
	mu    sync.Mutex
	drawn uint64
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
		c.drawn = c.drawn*6364136223846793005 + 1442695040888963407
		i, last := int((c.drawn>>33)%uint64(len(c.order))), len(c.order)-1
		c.bytes -= c.known[c.order[i]].size
		delete(c.known, c.order[i])
		c.order[i], c.order[last] = c.order[last], textKey{}
		c.order = c.order[:last]
	}
}
