package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/journaltest"
	"github.com/parleyrun/parley/journal/words"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/sessionlog"
)

// past makes a journal of three sessions that say something, closed, and with
// its index if that is wanted.
func past(t *testing.T, indexed bool) string {
	t.Helper()
	path := newPath(t)
	j := mustOpen(t, path, options{})
	for _, s := range []string{"a", "b", "c"} {
		say(t, j, s, "needle of "+s, "more")
	}
	if indexed {
		wantFound(t, mustOpenTexts(t, j), "needle", "a b c")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// say creates a session with messages, one a batch.
func say(t *testing.T, j *Journal, session string, texts ...string) (epoch, next int64) {
	t.Helper()
	for i, text := range texts {
		b := journal.Batch{Session: session, Epoch: epoch, Seq: int64(i), Events: []sessionlog.Event{journaltest.User(text).At(int64(i), 1)}}
		if i == 0 {
			b.Header = journaltest.PastHeader(session, journaltest.Past, "", 1)
		}
		a, err := journaltest.Append(j, b)
		if err != nil {
			t.Fatal(err)
		}
		epoch = a.Epoch
	}
	return epoch, int64(len(texts))
}

func find(ctx context.Context, texts journal.Texts, phrase string) (journal.TextPage, error) {
	return texts.Search(ctx, journal.TextQuery{
		Phrase: words.NewPhrase(phrase, words.Substring), Limit: 100, Sessions: journal.SessionFilter{CWDs: []string{journaltest.Past}},
	})
}

// wantFound searches for sessions, by id.
func wantFound(t *testing.T, texts journal.Texts, phrase, want string) journal.TextPage {
	t.Helper()
	page, err := find(t.Context(), texts, phrase)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, hit := range page.Hits {
		got = append(got, hit.Session)
	}
	if strings.Join(got, " ") != want {
		t.Fatalf("%q is found in %q, want %q", phrase, got, want)
	}
	return page
}

// S-162: the index is disposable.
func TestTheIndexIsMadeAgain(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) {
			for _, end := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(path + textsSuffix + end)
			}
		},
		"emptied": func(t *testing.T, path string) {
			if err := os.Truncate(path+textsSuffix, 0); err != nil {
				t.Fatal(err)
			}
		},
		"cut in the middle": func(t *testing.T, path string) { shorten(t, path+textsSuffix, pageBytes*5/2) },
		"cut in its header": func(t *testing.T, path string) { shorten(t, path+textsSuffix, 100) },
		"of an older schema": func(t *testing.T, path string) {
			raw(t, path+textsSuffix, fmt.Sprintf("PRAGMA user_version = %d; DROP TABLE texts", textsVersion-1))
		},
		"of another journal": func(t *testing.T, path string) {
			other := newPath(t)
			j := mustOpen(t, other, options{})
			say(t, j, "x", "needle", "needle", "needle", "needle", "needle", "needle")
			say(t, j, "a", "needle")
			wantFound(t, mustOpenTexts(t, j), "needle", "a x")
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(other+textsSuffix, path+textsSuffix); err != nil {
				t.Fatal(err)
			}
		},
		"of a journal that was restored since": func(t *testing.T, path string) {
			j := mustOpen(t, path, options{})
			saved := filepath.Join(t.TempDir(), "saved.db")
			if err := j.Backup(t.Context(), saved); err != nil {
				t.Fatal(err)
			}
			say(t, j, "d", "needle that is not in the backup")
			wantFound(t, mustOpenTexts(t, j), "needle", "a b c d")
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(saved, path); err != nil {
				t.Fatal(err)
			}
			j = mustOpen(t, path, options{})
			say(t, j, "e", "as many appends", "or more", "as it had before") // so that the position tells nothing
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		},
		"damaged in the middle": func(t *testing.T, path string) { scribble(t, path+textsSuffix, pageBytes) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := past(t, true)
			spoil(t, path)
			texts := mustOpenTexts(t, mustOpen(t, path, options{}))
			wantFound(t, texts, "needle", "a b c")
			wantFound(t, texts, "needle of b", "b")
		})
	}
}

// What is damaged inside of a row is found by nobody but its reader.
func TestATornRowOfTheIndexIsDamage(t *testing.T) {
	const tear = "UPDATE sessions SET header = x'00' WHERE name = 'b'"
	t.Run("found by a search", func(t *testing.T) {
		t.Parallel()
		path := past(t, true)
		raw(t, path+textsSuffix, tear)
		wantFound(t, mustOpenTexts(t, mustOpen(t, path, options{})), "needle", "a b c")
	})
	t.Run("found by the follower", func(t *testing.T) {
		t.Parallel()
		path := past(t, true)
		raw(t, path+textsSuffix, tear)
		j := mustOpen(t, path, options{})
		opened, err := journaltest.Open(j, "b")
		if err != nil {
			t.Fatal(err)
		}
		_, err = journaltest.Append(j, journal.Batch{Session: "b", Epoch: opened.Epoch, Seq: 2, Events: []sessionlog.Event{journaltest.User("late needle").At(2, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		texts := mustOpenTexts(t, j)
		wantFound(t, texts, "late needle", "b")
		wantFound(t, texts, "needle", "a b c")
	})
}

// A search that panics leaves nothing behind that another one trips over.
func TestAPanicOfASearchHoldsNothing(t *testing.T) {
	texts := mustOpenTexts(t, mustOpen(t, past(t, true), options{}))
	for range textsReadersMax + 1 {
		func() {
			defer func() { _ = recover() }()
			_ = texts.search(t.Context(), "panicking", func(*conn) error { panic("no") })
		}()
	}
	wantFound(t, texts, "needle", "a b c")
	if err := texts.Close(); err != nil {
		t.Fatal(err)
	}
}

// shorten cuts a file.
func shorten(t *testing.T, path string, to int64) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Size() <= to {
		t.Fatalf("%s cannot be cut to %d bytes: %v, %v", path, to, info, err)
	}
	if err := os.Truncate(path, to); err != nil {
		t.Fatal(err)
	}
}

// scribble overwrites a file from an offset on.
func scribble(t *testing.T, path string, from int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, int(info.Size()-from)), from); err != nil {
		t.Fatal(err)
	}
}

// An index that is damaged while it is open is made anew behind a search.
func TestADamagedIndexHealsItself(t *testing.T) {
	path := past(t, true)
	j := mustOpen(t, path, options{})
	texts := mustOpenTexts(t, j)
	wantFound(t, texts, "needle", "a b c")
	scribble(t, path+textsSuffix, pageBytes)
	say(t, j, "d", "needle of d") // what its connections have in their caches is old now
	wantFound(t, texts, "needle", "a b c d")
	wantFound(t, texts, "needle of c", "c")
}

// One that is removed while it is open, too.
func TestARemovedIndexIsMadeAnewBehindASearch(t *testing.T) {
	for _, ends := range [][]string{{"", "-wal", "-shm"}, {""}} {
		path := past(t, true)
		j := mustOpen(t, path, options{})
		texts := mustOpenTexts(t, j)
		wantFound(t, texts, "needle", "a b c")
		for _, end := range ends {
			if err := os.Remove(path + textsSuffix + end); err != nil {
				t.Fatal(err)
			}
		}
		say(t, j, "d", "needle of d")
		var all sync.WaitGroup
		for range 2 * textsReadersMax { // more than have a connection
			all.Go(func() {
				page, err := find(t.Context(), texts, "needle")
				if err != nil || len(page.Hits) != 4 {
					t.Errorf("%d hits, %v; want 4", len(page.Hits), err)
				}
			})
		}
		all.Wait()
		wantFound(t, texts, "needle of d", "d")
	}
}

func TestAFileThatIsNotTheIndexIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		code messages.Code
	}{
		"of a newer Parley": {func(t *testing.T, path string) {
			raw(t, path, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", textsApplicationID, textsVersion+1))
		}, messages.JournalNewer},
		"of another program":          {func(t *testing.T, path string) { raw(t, path, "CREATE TABLE theirs (x)") }, messages.JournalCorrupt},
		"with another application id": {func(t *testing.T, path string) { raw(t, path, "PRAGMA application_id = 77") }, messages.JournalCorrupt},
		"a journal": {func(t *testing.T, path string) {
			if err := os.Rename(past(t, false), path); err != nil {
				t.Fatal(err)
			}
		}, messages.JournalCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := past(t, false)
			c.make(t, path+textsSuffix)
			before, err := os.ReadFile(path + textsSuffix)
			if err != nil {
				t.Fatal(err)
			}
			j := mustOpen(t, path, options{})
			for range 2 {
				_, err := j.OpenTexts(nil)
				if messages.CodeOf(err) != c.code || !strings.Contains(err.Error(), path+textsSuffix) {
					t.Fatalf("opened with %v, want %s", err, c.code)
				}
				if !strings.Contains(err.Error(), "move it away") && !strings.Contains(err.Error(), "remove the file") {
					t.Fatalf("%v does not say that the file can be done without", err)
				}
			}
			if after, _ := os.ReadFile(path + textsSuffix); !bytes.Equal(before, after) {
				t.Fatal("the refused file was changed")
			}
			if _, err := j.Read(t.Context(), "a", 0, 0); err != nil { // exact reads go on (S-162)
				t.Fatal(err)
			}
		})
	}
}

// A file whose header is damaged is nobody's that could be told: search goes on
// with a new one, and what stood there is kept. Whatever was in the header, no
// byte of it turns search off.
func TestADamagedHeaderIsMadeAnewAndKeptAside(t *testing.T) {
	const headerBytes = 100 // https://sqlite.org/fileformat.html#the_database_header
	for name, spoil := range map[string]func(whole []byte) []byte{
		"overwritten": func(whole []byte) []byte {
			return append(bytes.Repeat([]byte{0xA5}, headerBytes), whole[headerBytes:]...)
		},
		"zeroed":      func(whole []byte) []byte { return append(make([]byte, headerBytes), whole[headerBytes:]...) },
		"no database": func([]byte) []byte { return []byte(strings.Repeat("Somebody wants to keep this.\n", 500)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := past(t, true)
			whole, err := os.ReadFile(path + textsSuffix)
			if err != nil {
				t.Fatal(err)
			}
			damaged := spoil(whole)
			for _, kept := range []string{".damaged", ".damaged-2", ".damaged-3"} {
				if err := os.WriteFile(path+textsSuffix, damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				j := mustOpen(t, path, options{})
				texts, err := j.OpenTexts(slog.New(slog.NewTextHandler(&log, nil)))
				if err != nil {
					t.Fatal(err)
				}
				wantTruth(t, texts)
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				if aside, err := os.ReadFile(path + textsSuffix + kept); err != nil || !bytes.Equal(aside, damaged) {
					t.Fatalf("%s is not what stood there: %v", kept, err)
				}
				if said := log.String(); !strings.Contains(said, "level=WARN") || !strings.Contains(said, "reason=") || !strings.Contains(said, kept) {
					t.Fatalf("the log says %q", said)
				}
			}
		})
	}
	t.Run("any byte of it", func(t *testing.T) {
		path := past(t, true)
		for at := range headerBytes {
			flip(t, path+textsSuffix, at)
			j := mustOpen(t, path, options{})
			wantTruth(t, mustOpenTexts(t, j))
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Why an index is made anew is logged; one that is right says nothing.
func TestAnIndexSaysWhyItIsMadeAnew(t *testing.T) {
	for want, spoil := range map[string]func(t *testing.T, path string){
		"": func(*testing.T, string) {},
		"level=INFO msg=\"the text index is made anew": func(t *testing.T, path string) { raw(t, path, fmt.Sprintf("PRAGMA user_version = %d", textsVersion-1)) },
		"level=WARN msg=\"the text index is made anew": func(t *testing.T, path string) { scribble(t, path, pageBytes) },
		"of another journal":                           func(t *testing.T, path string) { raw(t, path, "UPDATE state SET sum = sum + 1") },
	} {
		path := past(t, true)
		spoil(t, path+textsSuffix)
		var log bytes.Buffer
		j := mustOpen(t, path, options{})
		texts, err := j.OpenTexts(slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		wantTruth(t, texts)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if said := log.String(); !strings.Contains(said, want) || want == "" && said != "" || strings.Contains(said, "kept=") {
			t.Errorf("the log says %q, want %q", said, want)
		}
	}
}

func TestAJournalHasOneIndexOpen(t *testing.T) {
	j := mustOpen(t, newPath(t), options{})
	first := mustOpenTexts(t, j)
	if _, err := j.OpenTexts(nil); messages.CodeOf(err) != messages.JournalLocked {
		t.Fatalf("opened twice: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := mustOpenTexts(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := find(t.Context(), second, "x"); messages.CodeOf(err) != messages.Unavailable {
		t.Fatalf("searched behind the end of the journal: %v", err)
	}
}

// Deleting a session means that its text is gone, from the files too.
func TestADeletedTextIsInNoFile(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, path, options{})
	texts := mustOpenTexts(t, j)
	say(t, j, "kept", "keptcanary", "other words")
	epoch, next := say(t, j, "gone", "canaryone in a text", "second "+strings.Repeat("filler canarytwo ", 2000), "用canarythree语言")
	wantFound(t, texts, "canaryone", "gone")
	wantFound(t, texts, "canarythree", "gone")
	wantFound(t, texts, "keptcanary", "kept")
	if holding(t, path, "canarytwo") == "" {
		t.Fatal("the canary is nowhere before it is deleted: this test sees nothing")
	}
	if _, err := journaltest.Append(j, journal.Batch{Session: "gone", Epoch: epoch, Seq: next, Delete: true}); err != nil {
		t.Fatal(err)
	}
	wantFound(t, texts, "canaryone", "")
	if err := j.Close(); err != nil { // its own WAL is the journal's affair
		t.Fatal(err)
	}
	for _, canary := range []string{"canaryone", "canarytwo", "canarythree", "anarytwo"} {
		if name := holding(t, path, canary); name != "" {
			t.Errorf("%s still holds %q", name, canary)
		}
	}
	if holding(t, path, "keptcanary") == "" {
		t.Error("what was kept is gone")
	}
}

// holding returns a file beside the journal that holds some bytes.
func holding(t *testing.T, path, text string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil && bytes.Contains(data, []byte(text)) {
			return filepath.Base(name)
		}
	}
	return ""
}

// Fault Q9, and S-111 by our deviation: what is damaged in the journal is one
// session's trouble.
func TestADamagedRecordIsOneSessionsTrouble(t *testing.T) {
	for name, sql := range map[string]string{
		"unreadable":       "UPDATE records SET events = 'garbage' WHERE session = 2 AND seq = 1",
		"a changed letter": `UPDATE records SET events = replace(CAST(events AS TEXT), 'needle', 'noodle') WHERE session = 2`,
		"no header":        "UPDATE records SET header = x'00' WHERE session = 2 AND seq = 0",
		"a lost record":    "DELETE FROM records WHERE session = 2 AND seq = 0",
		"the last is lost": "DELETE FROM records WHERE session = 2 AND seq = 1",
		"all are lost":     "DELETE FROM records WHERE session = 2",
		"another's record": "UPDATE records SET session = 3 WHERE session = 2 AND seq = 1",
		"another's whole":  "UPDATE records SET session = 3 WHERE session = 2",
		"nobody's record":  "UPDATE records SET session = 99 WHERE session = 2 AND seq = 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := past(t, false)
			raw(t, path, sql)
			j := mustOpen(t, path, options{})
			texts := mustOpenTexts(t, j)
			wantFound(t, texts, "needle", "a c")
			page, err := texts.Search(t.Context(), journal.TextQuery{Phrase: words.NewPhrase("x", words.Whole), Limit: 1, Sessions: journal.SessionFilter{Everywhere: true}})
			if err != nil || len(page.Troubled) != 1 || page.Troubled[0].Session != "b" || page.Troubled[0].Problem == "" {
				t.Fatalf("troubled: %+v, %v", page.Troubled, err)
			}
			say(t, j, "d", "needle of d")
			wantFound(t, texts, "needle", "a c d")
		})
	}
}

// A session is deleted, and the record of that is damaged: its text is gone from
// the index all the same.
func TestADeletionWhoseRecordIsDamaged(t *testing.T) {
	for name, sql := range map[string]string{
		"changed": "UPDATE records SET delta = x'00' WHERE seq = -1",
		"lost":    "DELETE FROM records WHERE seq = -1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := past(t, true)
			j := mustOpen(t, path, options{})
			if _, err := journaltest.Append(j, journal.Batch{Session: "b", Epoch: 1, Seq: 2, Delete: true}); err != nil {
				t.Fatal(err)
			}
			if _, err := journaltest.Append(j, journal.Batch{Session: "c", Epoch: 1, Seq: 2, Delete: true}); err != nil {
				t.Fatal(err)
			}
			say(t, j, "c", "needle of another c")
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			raw(t, path, sql)
			if page := wantFound(t, mustOpenTexts(t, mustOpen(t, path, options{})), "needle", "a c"); len(page.Troubled) != 0 {
				t.Fatalf("troubled: %+v", page.Troubled)
			}
		})
	}
}

// A page of the journal is damaged, with whatever is on it.
func TestADamagedPageSpoilsNoSearch(t *testing.T) {
	path := newPath(t)
	j := mustOpen(t, path, options{})
	for i := range 40 {
		say(t, j, fmt.Sprintf("s%02d", i), "needle", strings.Repeat("long ", 500), "end")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hurt := bytes.Index(data, []byte(`"s20"`)) / pageBytes * pageBytes // the page with its header
	if hurt <= 0 {
		t.Fatal("the header is nowhere")
	}
	copy(data[hurt:hurt+pageBytes], bytes.Repeat([]byte{0xA5}, pageBytes))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	texts := mustOpenTexts(t, mustOpen(t, path, options{}))
	page, err := texts.Search(t.Context(), journal.TextQuery{Phrase: words.NewPhrase("needle", words.Whole), Limit: 100, Sessions: journal.SessionFilter{Everywhere: true}})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Hits)+len(page.Troubled) != 40 || len(page.Troubled) == 0 || len(page.Troubled) > 12 {
		t.Fatalf("%d sessions found, %d troubled, of 40", len(page.Hits), len(page.Troubled))
	}
}

func TestTheIndexIsNobodyElses(t *testing.T) {
	path := past(t, true)
	j := mustOpen(t, path, options{})
	wantFound(t, mustOpenTexts(t, j), "needle", "a b c")
	for _, end := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + textsSuffix + end)
		if err != nil || info.Mode().Perm() != fileMode {
			t.Errorf("%s: %v, %v", textsSuffix+end, info, err)
		}
	}
}

// A backup holds the journal and not what can be made from it.
func TestABackupLeavesTheIndexOut(t *testing.T) {
	path := past(t, true)
	j := mustOpen(t, path, options{})
	wantFound(t, mustOpenTexts(t, j), "needle", "a b c")
	saved := filepath.Join(t.TempDir(), "saved.db")
	if err := j.Backup(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	if names, _ := filepath.Glob(saved + "*"); len(names) != 1 {
		t.Fatalf("the backup is %q", names)
	}
	wantFound(t, mustOpenTexts(t, mustOpen(t, saved, options{})), "needle", "a b c")
}

// flip turns one bit over at each of these places of a file.
func flip(t *testing.T, path string, places ...int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	one := make([]byte, 1)
	for _, at := range places {
		if _, err := f.ReadAt(one, int64(at)); err != nil {
			t.Fatal(err)
		}
		one[0] ^= 1 << 3
		if _, err := f.WriteAt(one, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
}

// standing lists where a text stands in a file.
func standing(t *testing.T, path, text string) (places []int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range data {
		if bytes.HasPrefix(data[at:], []byte(text)) {
			places = append(places, at)
		}
	}
	if len(places) == 0 {
		t.Fatalf("%s has no %q", path, text)
	}
	return places
}

// wantTruth compares what the index of past says with what the journal says.
func wantTruth(t *testing.T, texts *Texts) {
	t.Helper()
	profiles, err := texts.Profiles(t.Context(), []string{"a", "b", "c"})
	if err != nil || len(profiles) != 3 {
		t.Fatalf("%d sessions, %v", len(profiles), err)
	}
	for _, p := range profiles {
		if p.Header.CWD != journaltest.Past || p.Events != 2 || p.Trouble != nil {
			t.Fatalf("%+v", p)
		}
	}
	for _, hit := range wantFound(t, texts, "needle", "a b c").Hits {
		if want := "needle of " + hit.Session; hit.Snippet != want {
			t.Fatalf("%s said %q, want %q", hit.Session, hit.Snippet, want)
		}
	}
}

// A bit of the index is another one: nothing is said that the journal does not
// say, whose session it is least of all (S-012).
func TestADamagedBitIsNeverBelieved(t *testing.T) {
	t.Run("in the file", func(t *testing.T) {
		path := past(t, true)
		size := int(sizeOfFile(t, path+textsSuffix))
		for at := 101; at < size; at += 1531 * boundaryStride { // a prime: every page, in several places
			flip(t, path+textsSuffix, at)
			j := mustOpen(t, path, options{})
			wantTruth(t, mustOpenTexts(t, j))
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
	for name, text := range map[string]string{
		"in every workspace": journaltest.Past, "in every text": "needle of", "in every header": `"createdAt"`,
	} {
		t.Run(name, func(t *testing.T) {
			path := past(t, true)
			flip(t, path+textsSuffix, standing(t, path+textsSuffix, text)...)
			wantTruth(t, mustOpenTexts(t, mustOpen(t, path, options{})))
		})
		t.Run(name+", in the WAL of an open one", func(t *testing.T) {
			path := past(t, false)
			texts := mustOpenTexts(t, mustOpen(t, path, options{}))
			wantTruth(t, texts)
			flip(t, path+textsSuffix+"-wal", standing(t, path+textsSuffix+"-wal", text)...)
			texts.pool.forget() // what it has in its caches is sound
			wantTruth(t, texts)
		})
	}
	t.Run("in what says that there are checksums", func(t *testing.T) {
		const reserved = 20 // https://sqlite.org/fileformat.html#the_database_header
		path := past(t, true)
		flip(t, path+textsSuffix, append(standing(t, path+textsSuffix, journaltest.Past), reserved)...)
		wantTruth(t, mustOpenTexts(t, mustOpen(t, path, options{})))
	})
}

// What is damaged in the WAL does not get a checksum by being moved into the file.
func TestADamagedBitIsNotMovedIntoTheFile(t *testing.T) {
	path := past(t, false)
	j := mustOpen(t, path, options{})
	texts := mustOpenTexts(t, j)
	wantTruth(t, texts)
	flip(t, path+textsSuffix+"-wal", standing(t, path+textsSuffix+"-wal", journaltest.Past)...)
	_ = j.Close() // may say so
	wantTruth(t, mustOpenTexts(t, mustOpen(t, path, options{})))
}

func sizeOfFile(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
