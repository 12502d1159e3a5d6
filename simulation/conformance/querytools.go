package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/parleyrun/parley/journal"
	"github.com/parleyrun/parley/journal/memory"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query/history"
	"github.com/parleyrun/parley/sessionlog"
)

// queryVector is one corpus and what is asked of it.
type queryVector struct {
	Sessions []struct {
		Header json.RawMessage
		Events []json.RawMessage
		Live   bool
	}
	Caller      string
	Persistence bool
	Config      struct{ MaxSearchResults int }
	Calls       []struct {
		Tool   string
		Args   json.RawMessage
		Agent  *bool
		Expect struct {
			IsError bool
			Code    string
			Text    string
		}
	}
}

// RunQueryTools fills a journal in memory with one vector's sessions and makes its calls, in the faithful mode.
func RunQueryTools(v []byte) (Verdict, string) {
	log := memory.New(nil)
	defer func() { _ = log.Close() }()
	return QueryTools(v, log, memory.NewTexts(log))
}

// QueryTools is RunQueryTools on a journal and an index of the caller's, both empty.
func QueryTools(v []byte, log journal.Journal, texts journal.Texts) (Verdict, string) {
	var vec queryVector
	if err := json.Unmarshal(v, &vec); err != nil {
		return Failed, err.Error()
	}
	live := map[string]bool{vec.Caller: true}
	for _, s := range vec.Sessions {
		id, err := record(log, s.Header, s.Events)
		if err != nil {
			return Failed, err.Error()
		}
		live[id] = live[id] || s.Live
	}
	tools, err := history.New(history.Past{
		Journal: log, Texts: texts, Live: func(session string) bool { return live[session] }, Volatile: !vec.Persistence,
	}, slog.New(slog.DiscardHandler), history.Config{MaxResults: vec.Config.MaxSearchResults, Faithful: true})
	if err != nil {
		return Failed, err.Error()
	}
	for i, call := range vec.Calls {
		caller := vec.Caller
		if call.Agent != nil && !*call.Agent {
			caller = ""
		}
		text, err := tools.Call(context.Background(), caller, call.Tool, call.Args)
		var why string
		switch code := string(messages.CodeOf(err)); {
		case call.Expect.IsError && code == string(messages.QueryFailed):
			why = fmt.Sprintf("the node failed: %v", err)
		case call.Expect.IsError && code != call.Expect.Code:
			why = fmt.Sprintf("code %q, expected %q (%v)", code, call.Expect.Code, err)
		case !call.Expect.IsError && err != nil:
			why = fmt.Sprintf("error %v, expected the text %q", err, call.Expect.Text)
		case !call.Expect.IsError && !sameText(text, call.Expect.Text):
			why = fmt.Sprintf("text %q, expected %q", text, call.Expect.Text)
		}
		if call.Expect.IsError && emptyInstead(call.Expect.Code, call.Expect.Text, text) {
			why = ""
		}
		if why != "" {
			return Failed, fmt.Sprintf("call %d, %s %s: %s", i, call.Tool, call.Args, why)
		}
	}
	return Passed, ""
}

// record appends a session as it stands in the vector.
func record(log journal.Journal, header json.RawMessage, lines []json.RawMessage) (string, error) {
	h, err := sessionlog.DecodeHeader(append([]byte(`{"type":"session",`), header[1:]...))
	if err != nil {
		return "", err
	}
	events, err := decodeAll(lines)
	if err != nil {
		return "", err
	}
	done := make(chan error, 1)
	log.Append(journal.Batch{Session: h.ID, Header: &h, Events: events}, func(_ journal.Appended, err error) { done <- err })
	return h.ID, <-done
}

// The reference fails where the caller's step is the first event of its log, and says itself that nothing found would
// do as well (S-050): that is what Parley says.
func emptyInstead(code, expected, text string) bool {
	return code == string(messages.QueryInvalidFilter) && strings.Contains(expected, "sequence upper bound") && strings.HasSuffix(text, "No prior event matches found.")
}

// sameText compares line by line. What repair tells the model of a call that was cut off is worded by everybody
// himself (section E of the log's rules): of such a line the two must only agree on where the wording begins.
func sameText(got, want string) bool {
	ours, theirs := strings.Split(got, "\n"), strings.Split(want, "\n")
	return slices.EqualFunc(ours, theirs, func(a, b string) bool {
		at := strings.Index(b, "The tool call was interrupted")
		return a == b || at >= 0 && at == strings.Index(a, "The session was interrupted") && a[:at] == b[:at]
	})
}
