package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"github.com/parleyrun/parley/messages"
)

// connectCodes is the one mapping of codes to Connect, made from the registry.
var connectCodes = func() map[messages.Code]connect.Code {
	m := make(map[messages.Code]connect.Code, len(messages.Registry))
	for _, e := range messages.Registry {
		m[e.Code] = connectCode(e)
	}
	return m
}()

// connectCode reads a registry row's Connect name. A name that Connect does
// not have is a mistake in the registry, found when the program starts.
func connectCode(e messages.Entry) connect.Code {
	var c connect.Code
	if err := c.UnmarshalText([]byte(e.Connect)); err != nil {
		panic("gateway: the registry maps " + string(e.Code) + " to " + e.Connect + ", which is no Connect code")
	}
	return c
}

// toConnect says an error at the Connect door: the code's Connect name, and
// the whole refusal as a detail, so that clients get code, text, remedy and
// winner. Errors without a code keep what Connect makes of them.
func toConnect(err error) error {
	if err == nil {
		return nil
	}
	var coded *messages.Error
	switch {
	case errors.As(err, &coded):
		return sayRefusal(coded)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	}
	return err
}

func sayRefusal(e *messages.Error) *connect.Error {
	code, known := connectCodes[e.Code]
	if !known {
		code = connect.CodeUnknown
	}
	out := connect.NewError(code, errors.New(string(e.Code)+": "+e.Text))
	if detail, err := connect.NewErrorDetail(e.Wire()); err == nil {
		out.AddDetail(detail)
	}
	return out
}

// RefusalOf returns the refusal that a Connect error carries, or nil.
func RefusalOf(err error) *messages.Error {
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return nil
	}
	for _, d := range ce.Details() {
		if msg, err := d.Value(); err == nil {
			if r, ok := msg.(*messages.Refusal); ok {
				return messages.FromWire(r)
			}
		}
	}
	return nil
}

// writeRefusal answers a request that never reached a service: in the caller's
// protocol when it has one, as a page where a person looks, else as plain JSON
// with the registry's status.
func (g *Gateway) writeRefusal(w http.ResponseWriter, r *http.Request, e *messages.Error) {
	note(r.Context(), e)
	if isPage(r) {
		g.writePage(w, messages.Lookup(e.Code).HTTP, refusalPage(e))
		return
	}
	if g.errors.IsSupported(r) {
		_ = g.errors.Write(w, r, sayRefusal(e)) // the client has gone; nobody else to tell
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(messages.Lookup(e.Code).HTTP)
	_ = json.NewEncoder(w).Encode(struct {
		Code   messages.Code `json:"code"`
		Text   string        `json:"text"`
		Remedy string        `json:"remedy"`
	}{e.Code, e.Text, messages.Lookup(e.Code).Remedy})
}
