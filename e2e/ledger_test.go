package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// ledger is the account kept outside the node: what people submitted and were told about it, against what the agent's
// side read. Every question and every answer has a text of its own, so that whatever turns up anywhere is known again.
type ledger struct {
	mu          sync.Mutex
	submissions map[string]*submission // by the text of the answer
	byID        map[string]*submission
	items       map[string]*item    // by message id
	lists       map[string][]string // message ids, by the token of their list
	calls       map[string]int      // how many calls of a question the log may hold, when not one
	discarded   map[string]bool     // questions whose call its client gave up, and would read no more
	wrong       []string
}

type submission struct {
	id, session, call, question, text string

	acknowledged     bool
	refused          bool
	outcome, message string

	results int             // how often it was read as the result of its call
	ids     map[string]bool // the message ids it was collected under
}

// item is one message that collect_replies listed.
type item struct {
	answers      []string
	listed       int
	acknowledged bool
}

func newLedger() *ledger {
	return &ledger{submissions: map[string]*submission{}, byID: map[string]*submission{}, items: map[string]*item{},
		lists: map[string][]string{}, calls: map[string]int{}, discarded: map[string]bool{}}
}

var serial atomic.Int64

// newQuestion makes up a question that nobody has asked before.
func newQuestion() string {
	return fmt.Sprintf("Shall build %d be shipped to everybody today?", serial.Add(1))
}

// answerText matches every answer that this package makes up.
var answerText = regexp.MustCompile(`answer a-\d+ of ada`)

// questionText matches the part of a question of this package that no other has.
var questionText = regexp.MustCompile(`Shall build \d+ be shipped`)

// callID is the call that an event is about.
var callID = regexp.MustCompile(`"callId":"[^"]*"`)

// submitting says that an answer is about to be submitted, and makes up its id and its text.
func (l *ledger) submitting(session, call, question string) (id, text string) {
	id = fmt.Sprintf("a-%d", serial.Add(1))
	text = fmt.Sprintf("answer %s of ada", id)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &submission{id: id, session: session, call: call, question: question, text: text, ids: map[string]bool{}}
	l.submissions[text], l.byID[id] = s, s
	return id, text
}

// acknowledged says what the submitter was told.
func (l *ledger) acknowledged(id, outcome, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.byID[id]
	if outcome != "answered" && outcome != "queued" {
		l.blame("submission %s to %q came to %q", id, s.question, outcome)
	}
	s.acknowledged, s.outcome, s.message = true, outcome, message
}

// refused says that a submission was not accepted: nobody may read it.
func (l *ledger) refused(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byID[id].refused = true
}

// repeated says that the network itself sent a call of this question n times, which nobody can tell from n questions.
func (l *ledger) repeated(question string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := questionText.FindString(question)
	l.calls[q] = max(1, l.calls[q]) + n - 1
}

// interrupted says that a client gave up a call of this question without closing its stream. An answer that the node
// writes before it hears of that has arrived, as far as anybody can tell, and the client throws it away. The question
// is then over, and asked again it is another one.
func (l *ledger) interrupted(question string) {
	l.repeated(question, 2)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.discarded[questionText.FindString(question)] = true
}

// may is how many calls of a question the log may hold.
func (l *ledger) may(question string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(1, l.calls[questionText.FindString(question)])
}

// count adds up how answers arrived.
func (l *ledger) count(sum *tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.submissions {
		sum.results.Add(int64(s.results))
		sum.replies.Add(int64(len(s.ids)))
	}
	for _, it := range l.items {
		sum.again.Add(int64(it.listed - 1))
	}
}

// asking says that a call of a question is about to be made, and returns what takes its result. An answer that its
// submitter knew to be given before is no answer to this call: what was allowed once would be done twice.
func (l *ledger) asking(question string) func(reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := map[string]string{}
	for text, s := range l.submissions {
		if s.outcome == "answered" && strings.Contains(question, s.question) {
			old[text] = s.id
		}
	}
	return func(r reply) {
		l.result(question, r)
		l.mu.Lock()
		defer l.mu.Unlock()
		for text, id := range old {
			if !r.isError && strings.Contains(r.text, text) {
				l.blame("%s was given before the call was made whose result it is", id)
			}
		}
	}
}

// result takes the result of an ask_user_question call as the agent read it.
func (l *ledger) result(question string, r reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.isError && r.text != "" { // each client shows its model only one of the two
		var text map[string]any
		if err := json.Unmarshal([]byte(r.text), &text); err != nil || !reflect.DeepEqual(text, r.structured) {
			l.blame("the text of %q is %s, and its structure %s", question, r.text, compact(r.structured))
		}
	}
	answers := answerText.FindAllString(r.text+compact(r.structured), -1)
	slices.Sort(answers)
	answers = slices.Compact(answers)
	if r.isError || r.structured["pending"] == true {
		if len(answers) > 0 || r.structured["answers"] != nil {
			l.blame("what is no answer to %q carries one: %s", question, r.text)
		}
		return
	}
	if len(answers) != 1 {
		l.blame("the result of %q has %d answers: %s", question, len(answers), r.text)
	}
	for _, text := range answers {
		s := l.submissions[text]
		if !l.fits(s, text, question) {
			continue
		}
		if s.results++; s.results > 1 {
			l.blame("%s is the result of two calls", s.id)
		}
		if len(s.ids) > 0 {
			l.blame("%s is a result after it was collected as %v", s.id, slices.Sorted(maps.Keys(s.ids)))
		}
	}
}

// fits reports whether an answer that was read is one that was given, to this question.
func (l *ledger) fits(s *submission, text, question string) bool {
	switch {
	case s == nil:
		l.blame("nobody submitted %q, read for %q", text, question)
	case s.refused:
		l.blame("%s was refused and is read all the same", s.id)
	case !strings.Contains(question, s.question):
		l.blame("%s was given to %q and is read for %q", s.id, s.question, question)
	default:
		return true
	}
	return false
}

// collected is what a collect_replies call returned, as the agent read it.
type collected struct {
	Replies []listed `json:"replies"`
	Token   string   `json:"token"`
	More    int      `json:"more"`
}

type listed struct {
	ID          string          `json:"reply_id"`
	Kind        string          `json:"kind"`
	CallID      string          `json:"callId"`
	Text        string          `json:"text"`
	Questions   json.RawMessage `json:"questions"`
	Answers     json.RawMessage `json:"answers"`
	Delivery    int             `json:"delivery"`
	Redelivered bool            `json:"redelivered"`
}

// words are all that the model reads of it.
func (r listed) words() string { return r.Text + string(r.Questions) + string(r.Answers) }

func readCollected(r reply) (collected, error) {
	var c collected
	if r.isError {
		return c, fmt.Errorf("collect_replies: %s", r.text)
	}
	err := json.Unmarshal([]byte(compact(r.structured)), &c)
	return c, err
}

// collected takes the result of a collect_replies call that acknowledged with after.
func (l *ledger) collected(after string, c collected) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.lists[after] {
		l.items[id].acknowledged = true
	}
	for _, r := range c.Replies {
		l.collect(r.ID, r.Kind, r.words(), r.Redelivered)
		if r.Redelivered != (r.Delivery > 1) && r.Kind != "result" {
			l.blame("%s is delivery %d and says redelivered: %v", r.ID, r.Delivery, r.Redelivered)
		}
		if c.Token == "" {
			l.blame("a list with %s has no token", r.ID)
		}
		l.lists[c.Token] = append(l.lists[c.Token], r.ID)
	}
}

func (l *ledger) collect(id, kind, text string, redelivered bool) {
	answers := answerText.FindAllString(text, -1)
	slices.Sort(answers)
	answers = slices.Compact(answers)
	it := l.items[id]
	switch {
	case id == "":
		l.blame("a reply without an id: %s", text)
	case it == nil:
		it = &item{answers: answers}
		l.items[id] = it
	case it.acknowledged:
		l.blame("%s is listed after it was acknowledged", id)
	case !redelivered:
		l.blame("%s is listed again and does not say so", id)
	case !slices.Equal(it.answers, answers):
		l.blame("%s meant %v and now means %v", id, it.answers, answers)
	}
	if it != nil {
		it.listed++
	}
	if kind != "message" && len(answers) != 1 {
		l.blame("%s has %d answers: %s", id, len(answers), text)
	}
	for _, answer := range answers {
		s := l.submissions[answer]
		if !l.fits(s, answer, text) {
			continue
		}
		s.ids[id] = true
		if len(s.ids) > 1 {
			l.blame("%s is collected under %v", s.id, slices.Sorted(maps.Keys(s.ids)))
		}
		if s.results > 0 && !redelivered && kind != "result" {
			l.blame("%s was a result, and %s lists it as if it were new", s.id, id)
		}
		if s.message != "" && s.message != id {
			l.blame("%s was queued as %s and is collected as %s", s.id, s.message, id)
		}
	}
}

// close returns all that is wrong once everything has been collected and acknowledged. events is the log of the session.
func (l *ledger) close(events []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sorted() {
		if s.outcome == "answered" && l.discarded[questionText.FindString(s.question)] {
			continue
		}
		if s.acknowledged && s.results == 0 && len(s.ids) == 0 {
			l.blame("%s to %q was acknowledged as %s and never read", s.id, s.question, s.outcome)
		}
	}
	posted, asks := map[string]int{}, map[string]string{}
	for _, e := range events {
		if strings.Contains(e, `"type":"tool/call"`) {
			for _, q := range slices.Compact(questionText.FindAllString(e, -1)) {
				posted[q]++
				asks[callID.FindString(e)] = q
			}
		}
		if strings.Contains(e, `"outcome":"withdrawn"`) && strings.Contains(e, `"reason":"asked again"`) { // before anybody answered it
			posted[asks[callID.FindString(e)]]--
		}
	}
	for _, q := range slices.Sorted(maps.Keys(posted)) {
		if posted[q] > max(1, l.calls[q]) {
			l.blame("%q was posted %d times", q, posted[q])
		}
	}
	return l.wrong
}

func (l *ledger) sorted() []*submission {
	return slices.SortedFunc(maps.Values(l.submissions), func(a, b *submission) int { return strings.Compare(a.id, b.id) })
}

func (l *ledger) blame(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// ---- the ledger itself ----

// entry makes a list of one reply.
func entry(id, kind, text string, redelivered bool, token string) collected {
	var c collected
	if err := json.Unmarshal([]byte(compact(map[string]any{"token": token, "replies": []any{map[string]any{
		"reply_id": id, "kind": kind, "text": text, "redelivered": redelivered, "delivery": map[bool]int{false: 1, true: 2}[redelivered]}}})), &c); err != nil {
		panic(err)
	}
	return c
}

func answered(text string) reply {
	value := map[string]any{"answers": []any{map[string]any{"id": "ship", "selected": []any{}, "custom": text}}}
	return reply{text: compact(value), structured: value}
}

// Each rule of the ledger finds the fault it is there for, and none that is not.
func TestLedger(t *testing.T) {
	t.Parallel()
	const q = "Shall build 0 be shipped to everybody today?"
	posted := `{"type":"tool/call","arguments":"` + q + `"}`
	for _, c := range []struct {
		name string
		do   func(l *ledger, id, text string)
		log  []string
		want string
	}{
		{name: "in time", do: func(l *ledger, _, text string) { l.result(q, answered(text)) }, log: []string{posted}},
		{name: "late", do: func(l *ledger, _, text string) {
			l.result(q, reply{structured: map[string]any{"pending": true}})
			l.collected("", entry("m1", "reply", q+text, false, "t1"))
			l.collected("t1", collected{})
		}},
		{name: "listed again until acknowledged", do: func(l *ledger, _, text string) {
			l.collected("", entry("m1", "reply", q+text, false, "t1"))
			l.collected("", entry("m1", "reply", q+text, true, "t2"))
			l.collected("t2", collected{})
		}},
		{name: "a result in time listed once more", do: func(l *ledger, _, text string) {
			l.result(q, answered(text))
			l.collected("", entry("m1", "result", q+text, false, "t1"))
		}},
		{name: "lost", do: func(*ledger, string, string) {}, want: "never read"},
		{name: "in time, by a call that was made before", do: func(l *ledger, _, text string) {
			another, other := l.submitting("s", "c", q)
			take := l.asking(q)
			l.acknowledged(another, "answered", "")
			take(answered(other))
			l.result(q, answered(text))
		}},
		{name: "late, by a call that joined", do: func(l *ledger, id, text string) {
			l.acknowledged(id, "queued", "m1")
			l.asking(q)(answered(text))
		}},
		{name: "an answer of before", do: func(l *ledger, _, text string) { l.asking(q)(answered(text)) }, want: "before the call was made"},
		{name: "two results", do: func(l *ledger, _, text string) { l.result(q, answered(text)); l.result(q, answered(text)) }, want: "two calls"},
		{name: "two ids", do: func(l *ledger, _, text string) {
			l.collected("", entry("m1", "reply", q+text, false, "t1"))
			l.collected("", entry("m2", "reply", q+text, true, "t2"))
		}, want: "collected under"},
		{name: "another id than the submitter was told", do: func(l *ledger, id, text string) {
			l.acknowledged(id, "queued", "m7")
			l.collected("", entry("m1", "reply", q+text, false, "t1"))
		}, want: "queued as m7"},
		{name: "a result that comes again as new", do: func(l *ledger, _, text string) {
			l.result(q, answered(text))
			l.collected("", entry("m1", "reply", q+text, false, "t1"))
		}, want: "as if it were new"},
		{name: "again without saying so", do: func(l *ledger, _, text string) {
			l.collected("", entry("m1", "reply", q+text, false, "t1"))
			l.collected("", entry("m1", "reply", q+text, false, "t2"))
		}, want: "does not say so"},
		{name: "after its acknowledgement", do: func(l *ledger, _, text string) {
			l.collected("", entry("m1", "reply", q+text, false, "t1"))
			l.collected("t1", entry("m1", "reply", q+text, true, "t2"))
		}, want: "after it was acknowledged"},
		{name: "for another question", do: func(l *ledger, _, text string) {
			l.result("Shall build 1 be shipped to everybody today?", answered(text))
		}, want: "is read for"},
		{name: "collected for another question", do: func(l *ledger, _, text string) {
			l.collected("", entry("m1", "reply", "Shall build 1 be shipped to everybody today? "+text, false, "t1"))
		}, want: "is read for"},
		{name: "made up", do: func(l *ledger, _, text string) {
			l.result(q, answered(text))
			l.result(q, answered("answer a-0 of ada"))
		}, want: "nobody submitted"},
		{name: "refused and read", do: func(l *ledger, id, text string) { l.refused(id); l.result(q, answered(text)) }, want: "refused"},
		{name: "pending with an answer", do: func(l *ledger, _, text string) {
			l.result(q, answered(text))
			l.result(q, reply{structured: map[string]any{"pending": true, "answers": []any{}}})
		}, want: "carries one"},
		{name: "a result without an answer", do: func(l *ledger, _, text string) {
			l.result(q, answered(text))
			l.result(q, answered(""))
		}, want: "has 0 answers"},
		{name: "a reply without a token", do: func(l *ledger, _, text string) { l.collected("", entry("m1", "reply", q+text, false, "")) }, want: "no token"},
		{name: "thrown away by its client", do: func(l *ledger, _, _ string) { l.interrupted(q) }, log: []string{posted, posted}},
		{name: "given up, late and lost", do: func(l *ledger, id, _ string) { l.interrupted(q); l.acknowledged(id, "queued", "m1") }, want: "never read"},
		{name: "a twin", do: func(l *ledger, _, text string) { l.result(q, answered(text)) }, log: []string{posted, posted}, want: "posted 2 times"},
		{name: "a twin that the network made", do: func(l *ledger, _, text string) { l.result(q, answered(text)); l.repeated(q, 2) }, log: []string{posted, posted}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			id, text := l.submitting("s", "c", q)
			l.acknowledged(id, "answered", "")
			c.do(l, id, text)
			wrong := strings.Join(l.close(c.log), "\n")
			if c.want == "" {
				require.Empty(t, wrong)
				return
			}
			require.Contains(t, wrong, c.want)
		})
	}
}
