package history

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// Past is the Corpus of a journal and its text index.
type Past struct {
	Journal journal.Reader
	Texts   journal.Texts
	// Off switches search off; what needs no search goes on (S-162).
	Off bool
	// Unindexed says that there is no search though nobody switched it off: its
	// index could not be opened.
	Unindexed bool
	// Live says whether a session is loaded in this process. It must be quick.
	Live func(session string) bool
	// Volatile says that nothing of the journal outlives this process (S-021).
	Volatile bool
}

var _ Corpus = Past{}

func (p Past) live(session string) bool { return p.Live != nil && p.Live(session) }

func (p Past) session(f journal.Profile) Session {
	s := Session{ID: f.Session, CWD: f.Header.CWD, Parent: f.Header.ParentSession, Created: f.Header.CreatedAt,
		Live: p.Volatile || p.live(f.Session), Persisted: !p.Volatile}
	if f.Trouble == nil {
		s.Title = f.Title
	} else {
		s.Damage, s.Problem = damage(*f.Trouble), f.Trouble.Problem
	}
	return s
}

// damage tells a log that is damaged from one that only a newer build can read.
func damage(t journal.Trouble) messages.Code {
	if t.Unsupported {
		return messages.QueryPersistence
	}
	return messages.QueryCorruptSession
}

func (p Past) sessions(profiles []journal.Profile, err error) ([]Session, error) {
	out := make([]Session, len(profiles))
	for i, f := range profiles {
		out[i] = p.session(f)
	}
	return out, err
}

// Sessions implements Corpus.
func (p Past) Sessions(ctx context.Context, ids []string) ([]Session, error) {
	return p.sessions(p.Texts.Profiles(ctx, ids))
}

// Children implements Corpus.
func (p Past) Children(ctx context.Context, parents []string) ([]Session, error) {
	return p.sessions(p.Texts.Children(ctx, parents))
}

// Search implements Corpus.
func (p Past) Search(ctx context.Context, s *Search) (Page, error) {
	if p.Off {
		return Page{}, messages.Refuse(messages.QuerySearchDisabled, "search is switched off")
	}
	if p.Unindexed {
		return Page{}, messages.Refuse(messages.QueryIndexFailed, "the text index could not be opened when the node was started")
	}
	q, err := p.query(s)
	if err != nil {
		return Page{}, err
	}
	found, err := p.Texts.Search(ctx, q)
	if err == nil && s.Faithful {
		err = p.sound(ctx, q)
	}
	if err != nil {
		return Page{}, err
	}
	var page Page
	for _, h := range found.Hits {
		page.Hits = append(page.Hits, Hit{Session: p.session(h.Profile), Seq: h.Seq, Type: h.Type, Surface: h.Surface, Time: h.Time, Snippet: h.Snippet})
	}
	for _, t := range found.Troubled {
		page.Troubled = append(page.Troubled, Session{ID: t.Session, Damage: damage(t), Problem: t.Problem})
	}
	if found.Next != nil {
		page.Next = s.token(*found.Next)
	}
	return page, nil
}

// sound fails unless every session of the journal can be searched (S-111).
func (p Past) sound(ctx context.Context, q journal.TextQuery) error {
	q.In, q.Sessions, q.Limit, q.After = "", journal.SessionFilter{Everywhere: true}, 1, nil
	page, err := p.Texts.Search(ctx, q)
	if err == nil && len(page.Troubled) > 0 {
		err = messages.Refuse(messages.QueryPersistence, "session %s cannot be read: %s", page.Troubled[0].Session, page.Troubled[0].Problem)
	}
	return err
}

func (p Past) query(s *Search) (journal.TextQuery, error) {
	cut := words.Substring
	if s.Faithful {
		cut = words.Whole
	}
	q := journal.TextQuery{
		Phrase: words.NewPhrase(s.Query, cut), In: s.Session, Limit: s.Limit, Live: p.live,
		Sessions: journal.SessionFilter{
			CWDs: s.CWDs, Everywhere: s.Everywhere, IDs: s.Sessions, Except: s.Not, Parents: s.Parents, Roots: s.Roots,
			Created: bounds(s.CreatedFrom, s.CreatedTo),
			// Everything is persisted, or else everything is live.
			LiveOnly: len(s.Availability) == 1 && s.Availability[0] == "live" && !p.Volatile,
		},
		Events: journal.EventFilter{Seq: bounds(s.SeqFrom, s.SeqTo), Time: bounds(s.TimeFrom, s.TimeTo), Types: s.Types},
	}
	if p.Volatile {
		q.Live = func(string) bool { return true }
		if len(s.Availability) == 1 && s.Availability[0] == "persisted" {
			q.Sessions.IDs = []string{} // there is none
		}
	}
	if s.Session != "" {
		q.Sessions = journal.SessionFilter{}
	}
	for class := sessionlog.LogOnly; class <= sessionlog.Shadowed; class++ {
		if slices.Contains(s.Surfaces, class.String()) {
			q.Events.Surfaces = append(q.Events.Surfaces, class)
		}
	}
	after, err := s.after()
	q.After = after
	return q, err
}

func bounds(from, to int64) (b journal.Bounds) {
	if from != math.MinInt64 {
		b.From = &from
	}
	if to != math.MaxInt64 {
		b.To = &to
	}
	return b
}

// A continuation names the last hit shown and the request that it belongs to
// (S-164). It is no secret, and gives nobody a right: the search that goes on
// is checked like any other.
type continuation struct {
	journal.TextKey
	Of []byte
}

func (s *Search) token(key journal.TextKey) string {
	raw, err := json.Marshal(continuation{key, s.fingerprint()})
	if err != nil {
		panic(err) // of numbers and texts
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (s *Search) after() (*journal.TextKey, error) {
	if s.After == "" {
		return nil, nil
	}
	var at continuation
	raw, err := base64.RawURLEncoding.DecodeString(s.After)
	if err == nil {
		err = json.Unmarshal(raw, &at)
	}
	if err != nil || string(at.Of) != string(s.fingerprint()) {
		return nil, messages.Refuse(messages.QueryInvalidCursor, "the continuation was not made for this search")
	}
	return &at.TextKey, nil
}

// fingerprint is of everything that the order and the choice of hits depend on.
func (s *Search) fingerprint() []byte {
	same := *s
	same.After, same.Limit = "", 0
	raw, err := json.Marshal(same)
	if err != nil {
		panic(err) // of numbers and texts
	}
	sum := sha256.Sum256(raw)
	return sum[:12]
}

// Log implements Corpus.
func (p Past) Log(ctx context.Context, session string) (Log, error) {
	opened, err := p.Journal.Read(ctx, session, 0, 0)
	if err != nil {
		return Log{}, err
	}
	log := Log{Header: *opened.Header, Events: opened.Events, Live: p.Volatile || p.live(session)}
	if !log.Live {
		log.Events = slices.Concat(opened.Events, journal.Closers(log.Header, opened.Events))
	}
	log.Concealed = sessionlog.Concealed(log.Events)
	err = sessionlog.ValidateEvents(log.Header.Version, log.Events)
	if err == nil {
		log.Surface, err = sessionlog.Surface(log.Header.Version, log.Events)
	}
	return log, readable(err)
}

// readable tells damage from what only a newer build can read.
func readable(err error) error {
	var unsupported *sessionlog.UnsupportedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unsupported):
		return messages.Refuse(messages.QueryPersistence, "%v", err)
	}
	return messages.Refuse(messages.QueryCorruptSession, "%v", err)
}

// backwards is how many events are read at a time on the way to the last step.
const backwards = 512

// LastStep implements Corpus. It reads from the end: the step is running.
func (p Past) LastStep(ctx context.Context, session string) (int64, error) {
	profiles, err := p.Texts.Profiles(ctx, []string{session})
	if err != nil || len(profiles) == 0 {
		return -1, err
	}
	for end := profiles[0].Events; end > 0; {
		from := max(0, end-backwards)
		opened, err := p.Journal.Read(ctx, session, from, int(end-from))
		if err != nil {
			return -1, err
		}
		for _, ev := range slices.Backward(opened.Events) {
			if ev.Type == sessionlog.TypeStepStart {
				return ev.Seq, nil
			}
		}
		end = from
	}
	return -1, nil
}
