package actors

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/parleyrun/parley/messages"
)

// Draft is what a person has chosen and written on one card so far (Q-222 to
// It is a value: every edit gives a next one and leaves it as it was.
// It sends nothing.
type Draft struct {
	Page  int
	Items []DraftItem // one for each question, in their order
	// Wait is what the card was told with the draft.
	Wait DraftWait
}

// DraftItem is the draft of one question.
type DraftItem struct {
	Selected []string // option labels in the order they were chosen
	Custom   string
	Skipped  bool
}

// DraftWait is what the person did to the card's countdown.
type DraftWait string

// What a draft remembers. Nothing: the card is as untouched as the draft.
const (
	DraftUntouched DraftWait = ""
	DraftEditing   DraftWait = "editing"
	DraftHeld      DraftWait = "waiting"
)

// What keeps a draft from going on.
var (
	ErrUnanswered = errors.New("this question has no answer yet")
	ErrIncomplete = errors.New("a question has no answer yet")
)

// NewDraft is the draft of an untouched card. With preselect the first option
// of a question is chosen if it is marked as recommended; that is no edit, and
// the person still has to submit.
func NewDraft(questions []*messages.Question, preselect bool) Draft {
	d := Draft{Items: make([]DraftItem, len(questions))}
	for i, q := range questions {
		if !preselect || len(q.GetOptions()) == 0 {
			continue
		}
		first := q.GetOptions()[0].GetLabel()
		if _, recommended := SplitLabel(first); recommended {
			d.Items[i].Selected = []string{first}
		}
	}
	return d
}

// Same reports whether nothing was chosen, written or skipped otherwise; the
// page and the wait do not count.
func (d Draft) Same(other Draft) bool {
	return slices.EqualFunc(d.Items, other.Items, func(a, b DraftItem) bool {
		return slices.Equal(a.Selected, b.Selected) && a.Custom == b.Custom && a.Skipped == b.Skipped
	})
}

// Answered reports whether a question has an answer; a skip is none.
func (i DraftItem) Answered() bool { return len(i.Selected) > 0 || trim(i.Custom) != "" }

// with is the draft with one item changed.
func (d Draft) with(page int, item DraftItem) Draft {
	d.Items = slices.Clone(d.Items)
	d.Items[page] = item
	return d
}

// Go turns to a page, within bounds.
func (d Draft) Go(page int) Draft {
	d.Page = max(0, min(page, len(d.Items)-1))
	return d
}

// next turns to the page behind, if there is one.
func (d Draft) next() Draft { return d.Go(d.Page + 1) }

// Choose takes an option of this page: the only one, which turns to the next
// page, or one more, or one less.
func (d Draft) Choose(label string, multi bool) Draft {
	if d.Page >= len(d.Items) {
		return d
	}
	item := d.Items[d.Page]
	item.Skipped = false
	if !multi {
		item.Selected, item.Custom = []string{label}, ""
		return d.with(d.Page, item).next()
	}
	if had := slices.Index(item.Selected, label); had >= 0 {
		item.Selected = slices.Delete(slices.Clone(item.Selected), had, had+1)
	} else {
		item.Selected = append(slices.Clone(item.Selected), label)
	}
	return d.with(d.Page, item)
}

// Write changes the free text of this page.
func (d Draft) Write(text string, multi bool) Draft {
	if d.Page >= len(d.Items) {
		return d
	}
	item := d.Items[d.Page]
	item.Custom, item.Skipped = text, false
	if !multi {
		item.Selected = nil
	}
	return d.with(d.Page, item)
}

// Skip skips the question of this page; last says that there is no next page,
// so that a skip submits.
func (d Draft) Skip() (next Draft, last bool) {
	if d.Page >= len(d.Items) {
		return d, true
	}
	last = d.Page == len(d.Items)-1
	return d.with(d.Page, DraftItem{Skipped: true}).next(), last
}

// Continue goes on from this page; last says that there is no next one, so that
// it submits. ErrUnanswered: the page has no answer.
func (d Draft) Continue() (next Draft, last bool, err error) {
	if d.Page >= len(d.Items) || !d.Items[d.Page].Answered() {
		return d, false, ErrUnanswered
	}
	return d.next(), d.Page == len(d.Items)-1, nil
}

// Batch is what is sent: an item for each question, in their order.
// ErrIncomplete: one is neither answered nor skipped, and next is at its page.
func (d Draft) Batch(questions []*messages.Question) (batch []*messages.Answer, next Draft, err error) {
	for i, q := range questions {
		if i >= len(d.Items) || !d.Items[i].Answered() && !d.Items[i].Skipped {
			return nil, d.Go(i), ErrIncomplete
		}
		batch = append(batch, d.Items[i].answer(q))
	}
	return batch, d, nil
}

// answer is the item as it is sent.
func (i DraftItem) answer(q *messages.Question) *messages.Answer {
	a := &messages.Answer{Id: q.GetId()}
	if i.Skipped {
		return a
	}
	custom := trim(i.Custom)
	if custom == "" || q.GetMultiSelect() {
		a.Selected = slices.Clone(i.Selected)
	}
	if custom != "" {
		a.Custom = &custom
	}
	return a
}

// ---- the store ----

// storedDraft is a draft as it is kept between two lives of a client.
type storedDraft struct {
	Page   int          `json:"page"`
	Drafts []storedItem `json:"drafts"`
	Wait   DraftWait    `json:"wait,omitempty"`
}

type storedItem struct {
	Selected []string `json:"selected"`
	Custom   string   `json:"custom"`
	Skipped  bool     `json:"skipped"`
}

// Store is the draft as JSON.
func (d Draft) Store() json.RawMessage {
	s := storedDraft{Page: d.Page, Drafts: []storedItem{}, Wait: d.Wait}
	for _, i := range d.Items {
		s.Drafts = append(s.Drafts, storedItem{append([]string{}, i.Selected...), i.Custom, i.Skipped})
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // strings and numbers always encode
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// ReadDraft reads a stored draft for a card with so many questions. One that
// does not fit in every field is not used at all.
func ReadDraft(stored json.RawMessage, questions int) (Draft, bool) {
	fields := record(readShown(string(stored)))
	page, ok := pageOf(fields["page"], questions)
	list, isList := fields["drafts"].([]any)
	if !ok || !isList || len(list) != questions {
		return Draft{}, false
	}
	d := Draft{Page: page}
	if wait, has := fields["wait"]; has {
		word, _ := wait.(string)
		if d.Wait = DraftWait(word); d.Wait != DraftEditing && d.Wait != DraftHeld {
			return Draft{}, false
		}
	}
	for _, v := range list {
		item, ok := storedItemOf(record(v))
		if !ok {
			return Draft{}, false
		}
		d.Items = append(d.Items, item)
	}
	return d, true
}

func pageOf(v any, questions int) (int, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	page, err := number.Float64()
	return int(page), err == nil && page == math.Trunc(page) && page >= 0 && page < float64(questions)
}

func storedItemOf(fields map[string]any) (DraftItem, bool) {
	list, isList := fields["selected"].([]any)
	custom, isText := fields["custom"].(string)
	skipped, isFlag := fields["skipped"].(bool)
	item := DraftItem{Custom: custom, Skipped: skipped}
	for _, v := range list {
		label, ok := v.(string)
		if !ok {
			return DraftItem{}, false
		}
		item.Selected = append(item.Selected, label)
	}
	return item, isList && isText && isFlag
}

// restored is what a stored draft does to its card: it counts as an
// edit also if it only differs from an untouched one.
func (d Draft) restored(untouched Draft) (CardInput, bool) {
	switch {
	case d.Wait == DraftHeld:
		return TimeTaken{}, true
	case d.Wait == DraftEditing, !d.Same(untouched):
		return Engaged{}, true
	}
	return nil, false
}
