package simulation

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/parleyrun/parley/messages"
)

// keptDraft is a draft as a store has it.
type keptDraft struct {
	Drafts []struct {
		Selected []string `json:"selected"`
		Custom   string   `json:"custom"`
		Skipped  bool     `json:"skipped"`
	} `json:"drafts"`
	Wait string `json:"wait"`
}

// kept reads a draft. One that cannot be read is empty.
func kept(text string) (d keptDraft) {
	_ = json.Unmarshal([]byte(text), &d) // then it says nothing that is compared here
	return d
}

// sameWords: two drafts have the same in them, whatever their card says of the wait.
func sameWords(a, b string) bool {
	return reflect.DeepEqual(kept(a).Drafts, kept(b).Drafts)
}

// says: the draft, as its person wrote it, is these answers.
func (d keptDraft) says(answers []*messages.Answer) bool {
	if len(answers) != len(d.Drafts) {
		return false
	}
	for i, a := range answers {
		want := d.Drafts[i]
		if custom := strings.TrimSpace(want.Custom); a.GetCustom() != custom || (a.Custom != nil) != (custom != "") {
			return false
		}
		if !slices.Equal(a.GetSelected(), want.Selected) || len(a.GetSelected()) == 0 && a.Custom == nil != want.Skipped {
			return false
		}
	}
	return true
}

// draftsOutliveTheirPage compares what a page ended with, what the store then had,
// and what the next page of the tab begins with.
func draftsOutliveTheirPage(e *Evidence) {
	last := map[string]*Tab{}
	for _, t := range e.History.Tabs {
		name := t.Party + "/" + itoa(int64(t.N))
		if before := last[name]; before != nil && before.How != reloadsLost {
			e.keptDrafts(before, t)
		}
		last[name] = t
		shown := map[string]bool{}
		t.walk(func(m *Mark, c *cardStory) {
			s := m.Shows
			if s != nil && c.shows != nil && s.Seq != c.shows.Seq && sameWords(s.Draft, c.shows.Draft) && kept(s.Draft).Wait != "" {
				e.saw(t, m, "the card of the call at event %d begins with %s, which was written for the one at event %d", s.Seq, s.Draft, c.shows.Seq)
			}
			if s == nil || s.Review || shown[s.Key] {
				return
			}
			shown[s.Key] = true
			was, its := t.Kept[s.Key], t.KeptOf[s.Key] == s.Seq
			switch {
			case was == "" || c.told == "" || len(kept(was).Drafts) != len(kept(s.Draft).Drafts):
			case its && was != s.Draft && !c.synced: // else there was no such card, and its draft was dropped
				e.saw(t, m, "the store had %s, and the card begins with %s", was, s.Draft)
			case !its && was == s.Draft && kept(was).Wait != "":
				e.saw(t, m, "the card of the call at event %d begins with %s, which was written for the one at event %d", s.Seq, was, t.KeptOf[s.Key])
			}
		})
	}
}

// keptDrafts: what a page had written on it is what the next one found, if no
// other tab could change it.
func (e *Evidence) keptDrafts(before, after *Tab) {
	if slices.ContainsFunc(e.History.Tabs, func(t *Tab) bool {
		return t.Party == before.Party && t.N != before.N && t.From <= before.Until && (t.How == "" || t.Until >= before.From)
	}) {
		return
	}
	ends := map[string]*Mark{}
	for i := range before.Marks {
		ends[before.Marks[i].Call] = &before.Marks[i]
	}
	for call, m := range ends {
		s := m.Shows
		if s == nil || s.Review || s.Key != cardKey(before, call) || kept(s.Draft).Wait == "" {
			continue
		}
		if after.Kept[s.Key] != s.Draft {
			e.saw(before, m, "it ended with %s, and the next page found %q", s.Draft, after.Kept[s.Key])
		}
	}
}
