package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Codes of JSON-RPC for lines that are no calls.
const (
	notJSON    = -32700
	notRequest = -32600
)

// refusedLine says why a line is not passed on, to its call if it has one.
type refusedLine struct {
	id   json.RawMessage
	code int
	text string
}

// feed passes the lines of a client on to the SDK, to which a line that it does
// not understand is the end of the pipe. Such a line is answered and skipped.
func (p *pipe) feed() {
	in := bufio.NewReader(p.in)
	for {
		line, whole, err := nextLine(in, bodyBytesMax)
		no := p.admit(line, whole)
		switch {
		case no != nil:
			p.answer(no)
		case len(line) > 0:
			if _, err := p.feeder.Write(append(line, '\n')); err != nil {
				return // the pipe was closed on our side
			}
		}
		if err != nil {
			_ = p.feeder.CloseWithError(err) // always nil
			return
		}
	}
}

// nextLine reads a line without the space around it; whole is false for one of
// more than most bytes, which is skipped. The last line needs no end.
func nextLine(in *bufio.Reader, most int) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := in.ReadSlice('\n')
		switch {
		case !whole || len(line)+len(part) > most+1:
			line, whole = nil, false
		default:
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), whole, err
		}
	}
}

// admit enters the calls of a line, or refuses the line as a whole. nil for an
// empty line, which says nothing.
func (p *pipe) admit(line []byte, whole bool) *refusedLine {
	switch {
	case !whole:
		return &refusedLine{code: notRequest, text: fmt.Sprintf("the line is longer than %d bytes", bodyBytesMax)}
	case len(line) == 0:
		return nil
	case !json.Valid(line):
		return &refusedLine{code: notJSON, text: "the line is not JSON; send one message on each line"}
	}
	var parts []json.RawMessage // not of the line's own memory, which reading it would write to
	if line[0] != '[' {
		parts = []json.RawMessage{line}
	} else {
		_ = json.Unmarshal(line, &parts) // it is a valid list
	}
	if len(parts) == 0 {
		return &refusedLine{code: notRequest, text: "the batch is empty"}
	}
	calls := map[string]*calling{}
	for _, part := range parts {
		msg, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			return &refusedLine{id: p.idOf(part), code: notRequest, text: "this is no message of JSON-RPC 2.0: " + cut(err.Error(), quotedMax)}
		}
		req, ok := msg.(*jsonrpc.Request)
		if !ok || !req.IsCall() {
			continue
		}
		key := keyOf(req)
		if calls[key] != nil {
			return &refusedLine{code: notRequest, text: fmt.Sprintf("two calls of the batch have the id %.60s", key)}
		}
		calls[key] = &calling{lasting: req.Method == "subscriptions/listen"}
	}
	return p.begin(calls)
}

// begin notes calls as under way; none of them, when one has the id of another
// that is.
func (p *pipe) begin(calls map[string]*calling) *refusedLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range calls {
		if p.calls[key] != nil { // whoever reads the answer must not take it for the other's
			return &refusedLine{code: notRequest, text: fmt.Sprintf("a call with the id %.60s is under way; give every call an id of its own", key)}
		}
	}
	for key, c := range calls {
		p.calls[key] = c
	}
	return nil
}

// idOf is the id of what is no message; nil, when it has none that could be
// answered.
func (p *pipe) idOf(part json.RawMessage) json.RawMessage {
	var m struct {
		ID any `json:"id"`
	}
	if json.Unmarshal(part, &m) != nil {
		return nil
	}
	switch m.ID.(type) {
	case string, float64:
	default:
		return nil
	}
	id, _ := json.Marshal(m.ID) // it was read from JSON
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[string(id)] != nil {
		return nil
	}
	return id
}

// answer tells the client of a line that was skipped.
func (p *pipe) answer(no *refusedLine) {
	p.door.log.Debug("a line was skipped", slog.String("reason", no.text))
	if no.id == nil {
		no.id = json.RawMessage("null")
	}
	line, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": no.id, "error": map[string]any{"code": no.code, "message": no.text}}) // it is all text
	_, _ = p.write(append(line, '\n'))                                                                                                   // a failure ends the pipe
}

// keyOf is a call's id as JSON, in the spelling of its response.
func keyOf(req *jsonrpc.Request) string {
	id, _ := json.Marshal(req.ID.Raw()) // a text or a number
	return envelope{ID: id}.key()
}
