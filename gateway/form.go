package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/parleyrun/parley/messages"
)

// form is what a person sent from the page.
type form struct {
	submission, by string
	items          []formItem
}

// formItem is what was sent about one question.
type formItem struct {
	question *messages.Question
	chosen   []int // of its options
	text     string
	skipped  bool
}

// readForm reads a form by the questions of a row. What the questions do not
// have is not read.
func readForm(r *http.Request, row *messages.QuestionRow) form {
	f := form{submission: r.PostForm.Get("submission"), by: strings.TrimSpace(r.PostForm.Get("by"))}
	if user, _, ok := r.BasicAuth(); f.by == "" && ok {
		f.by = user
	}
	for i, q := range row.GetQuestions() {
		name := "q" + strconv.Itoa(i)
		item := formItem{question: q, text: strings.ReplaceAll(r.PostForm.Get(name+"-text"), "\r\n", "\n")}
		for _, value := range r.PostForm[name] {
			if j, err := strconv.Atoi(value); err == nil && j >= 0 && j < len(q.GetOptions()) && !slices.Contains(item.chosen, j) {
				item.chosen = append(item.chosen, j)
			}
			item.skipped = item.skipped || value == "skip"
		}
		slices.Sort(item.chosen)
		f.items = append(f.items, item)
	}
	return f
}

// wrong says what keeps an item from being an answer: nothing is guessed, and
// nothing that was written is dropped.
func (it formItem) wrong() string {
	written := strings.TrimSpace(it.text) != ""
	single := !it.question.GetMultiSelect()
	switch {
	case it.skipped && (written || len(it.chosen) > 0):
		return "You answered and skipped, so the skip was taken back. Send it so, or skip and take the answer back."
	case it.skipped:
		return ""
	case single && len(it.chosen) > 1:
		return "Only one can be chosen."
	case single && written && len(it.chosen) > 0:
		return "Here your own words take the place of a choice, so the choice was taken back. Send it so, or choose and empty the text."
	case !written && len(it.chosen) == 0:
		return "Choose, write, or skip."
	}
	return ""
}

func (f form) wrong() bool {
	return slices.ContainsFunc(f.items, func(it formItem) bool { return it.wrong() != "" })
}

// answers is the batch: one item for each question, a skip is empty.
func (f form) answers() []*messages.Answer {
	var out []*messages.Answer
	for _, it := range f.items {
		a := &messages.Answer{Id: it.question.GetId()}
		for _, j := range it.chosen {
			a.Selected = append(a.Selected, it.question.GetOptions()[j].GetLabel())
		}
		if strings.TrimSpace(it.text) != "" {
			a.Custom = &it.text
		}
		out = append(out, a)
	}
	return out
}

// texts is what was chosen and written, to be copied.
func (f form) texts() []string {
	var out []string
	for _, a := range f.answers() {
		out = append(out, a.GetSelected()...)
		if a.GetCustom() != "" {
			out = append(out, a.GetCustom())
		}
	}
	return out
}

// keep fills the page's form with what was sent.
func (p *page) keep(f form) {
	p.By = f.by
	if f.submission != "" {
		p.Submission = f.submission
	}
	for i, it := range f.items {
		q := &p.Questions[i]
		q.Draft, q.Skipped, q.Wrong = it.text, it.skipped, it.wrong()
		// A single choice cannot be taken back on a page without scripts.
		if q.Wrong != "" {
			q.Skipped = false
		}
		cleared := !it.question.GetMultiSelect() && strings.TrimSpace(it.text) != ""
		for _, j := range it.chosen {
			q.Options[j].Chosen = !cleared
		}
	}
}
