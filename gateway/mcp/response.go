package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// comment is a line that clients skip. It keeps a silent stream open.
const comment = ": waiting\n\n"

// response is one response of the SDK on its way: it sees what is written, and writes
// comments between. The header the SDK fills in is its own until the first
// byte leaves, so that a comment never reads what the SDK is about to set.
type response struct {
	http.ResponseWriter
	saw func(event []byte)

	mu       sync.Mutex
	header   http.Header
	status   int
	ours     bool // the response began with a comment
	finished bool
	failed   bool
}

func newResponse(w http.ResponseWriter, saw func([]byte)) *response {
	return &response{ResponseWriter: w, saw: saw, header: w.Header().Clone()}
}

// Header is filled in by the SDK and sent with the first byte.
func (w *response) Header() http.Header { return w.header }

// WriteHeader sends the header.
func (w *response) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(status)
}

func (w *response) begin(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	maps.Copy(w.ResponseWriter.Header(), w.header)
	w.ResponseWriter.WriteHeader(status)
}

// Write sends one event, or a whole response that is no stream.
func (w *response) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(http.StatusOK)
	event := b
	if w.ours && json.Valid(b) { // an error the SDK says without a stream, after the stream began
		event = []byte("event: message\ndata: " + string(b) + "\n\n")
	}
	if _, err := w.ResponseWriter.Write(event); err != nil {
		w.failed = true
		return 0, err
	}
	w.saw(event)
	return len(b), nil
}

// FlushError sends what was written so far.
func (w *response) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(http.StatusOK)
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.failed = w.failed || err != nil
	return err
}

// Flush is FlushError for those who do not ask.
func (w *response) Flush() { _ = w.FlushError() }

// comment writes a comment; false: the response has ended. Whoever calls it
// knows that a response that has not begun will be a stream.
func (w *response) comment() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished || w.failed {
		return false
	}
	if w.status == 0 {
		h := w.ResponseWriter.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
		w.status, w.ours = http.StatusOK, true
		w.ResponseWriter.WriteHeader(http.StatusOK)
	}
	_, err := w.ResponseWriter.Write([]byte(comment))
	if err == nil {
		err = http.NewResponseController(w.ResponseWriter).Flush()
	}
	w.failed = w.failed || err != nil
	return err == nil
}

// finish: the handler has returned, and nothing may be written any more.
func (w *response) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished = true
}

// delivered reports whether all that was written went out.
func (w *response) delivered() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.failed
}

// refused reports whether the SDK said no to the request as such.
func (w *response) refused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status >= http.StatusBadRequest
}

// readEvent reads what the SDK wrote: the name of the response stream, and the
// ids of the calls that it answers. The SDK writes each event whole. A body
// that is no stream is read as one message.
func readEvent(event []byte) (stream string, answered []string) {
	if bytes.HasPrefix(event, []byte("{")) {
		return "", readResponses(event)
	}
	for line := range bytes.Lines(event) {
		line = bytes.TrimRight(line, "\r\n")
		if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			stream, _, _ = strings.Cut(string(id), "_")
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			answered = append(answered, readResponses(data)...)
		}
	}
	return stream, answered
}

// envelope is as much of a JSON-RPC message as transports look at.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// key is the id in one spelling: the SDK does not write it as the client did.
func (m envelope) key() string {
	var id any
	_ = json.Unmarshal(m.ID, &id) // it is a part of valid JSON
	text, _ := json.Marshal(id)
	return string(text)
}

// readMessages reads one JSON-RPC message or a batch of them; nothing of what
// is no such thing, which is the SDK's to refuse.
func readMessages(text []byte) []envelope {
	var all []envelope
	if json.Unmarshal(text, &all) == nil {
		return all
	}
	var one envelope
	if json.Unmarshal(text, &one) != nil {
		return nil
	}
	return []envelope{one}
}

// readResponses returns the ids of the calls that a text answers.
func readResponses(text []byte) (ids []string) {
	for _, m := range readMessages(text) {
		if m.Method == "" && len(m.ID) > 0 {
			ids = append(ids, m.key())
		}
	}
	return ids
}

// readCancelled returns the ids of the calls that a text gives up.
func readCancelled(text []byte) (ids []string) {
	for _, m := range readMessages(text) {
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if m.Method == "notifications/cancelled" && json.Unmarshal(m.Params, &params) == nil && len(params.RequestID) > 0 {
			ids = append(ids, envelope{ID: params.RequestID}.key())
		}
	}
	return ids
}

// readCalls returns the ids of the calls that a text makes, and whether tools
// are among what it calls.
func readCalls(text []byte) (ids []string, tools bool) {
	for _, m := range readMessages(text) {
		if m.Method != "" && len(m.ID) > 0 {
			ids = append(ids, m.key())
			tools = tools || strings.HasPrefix(m.Method, "tools/")
		}
	}
	return ids, tools
}
