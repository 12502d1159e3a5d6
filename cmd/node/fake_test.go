package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
)

// fakeNode answers the requests it was told about, and counts all of them.
type fakeNode struct {
	mux  *http.ServeMux
	url  string
	mu   sync.Mutex
	seen []string
}

func newFake(t *testing.T) *fakeNode {
	f := &fakeNode{mux: http.NewServeMux()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.seen = append(f.seen, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		f.mu.Unlock()
		f.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fakeNode) requests() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.seen, " ")
}

// on answers one procedure.
func on[Q, R any](f *fakeNode, procedure string, answer func(*Q) (*R, error)) {
	f.mux.Handle(procedure, connect.NewUnaryHandler(procedure,
		func(_ context.Context, req *connect.Request[Q]) (*connect.Response[R], error) {
			res, err := answer(req.Msg)
			if err != nil {
				return nil, wireError(err)
			}
			return connect.NewResponse(res), nil
		}))
}

// wireError is how the Connect door carries a refusal.
func wireError(err error) error {
	var e *messages.Error
	if !errors.As(err, &e) {
		return err
	}
	var code connect.Code
	if code.UnmarshalText([]byte(messages.Lookup(e.Code).Connect)) != nil {
		code = connect.CodeUnknown
	}
	out := connect.NewError(code, errors.New(e.Text))
	detail, _ := connect.NewErrorDetail(e.Wire())
	out.AddDetail(detail)
	return out
}

// held makes the fake know one session, held by a root.
func (f *fakeNode) held(root string) {
	on(f, messagesconnect.SessionServiceGetSessionProcedure, func(q *messages.GetSessionRequest) (*messages.GetSessionResponse, error) {
		return &messages.GetSessionResponse{Session: &messages.SessionRow{Session: q.GetSession(), Root: root}}, nil
	})
	on(f, messagesconnect.SessionServiceAttachProcedure, func(q *messages.AttachRequest) (*messages.AttachResponse, error) {
		return &messages.AttachResponse{Session: q.GetSession(), Root: q.GetRoot()}, nil
	})
}

// rows makes the fake list these questions and know each of them.
func (f *fakeNode) rows(rows ...*messages.QuestionRow) {
	on(f, messagesconnect.QuestionServiceListQuestionsProcedure, func(*messages.ListQuestionsRequest) (*messages.ListQuestionsResponse, error) {
		return &messages.ListQuestionsResponse{Questions: rows, Cursor: 7}, nil
	})
	on(f, messagesconnect.QuestionServiceGetQuestionProcedure, func(q *messages.GetQuestionRequest) (*messages.GetQuestionResponse, error) {
		for _, row := range rows {
			if row.GetCallId() == q.GetCallId() {
				return &messages.GetQuestionResponse{Question: row}, nil
			}
		}
		return nil, messages.Refuse(messages.NotFound, "call %q is unknown", q.GetCallId())
	})
}

// ran is what a run of the command left behind.
type ran struct {
	exit     int
	out, err string
}

// at is the moment that it is in tests.
var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// runCLI runs the command in this process.
func runCLI(t *testing.T, node, stdin string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	c := &cli{
		in: strings.NewReader(stdin), out: &out, err: &errs,
		self: "parley", width: widthDefault, now: func() time.Time { return at }, newID: func() string { return "7k2m9x4a" },
		env: func(name string) (string, bool) {
			value := map[string]string{"PARLEY_NODE": node, "USER": "ada"}[name]
			return value, value != ""
		},
	}
	exit := run(t.Context(), args, c)
	return ran{exit, out.String(), errs.String()}
}

func (r ran) want(t *testing.T, exit int, out, errs string) {
	t.Helper()
	if r.exit != exit {
		t.Errorf("exit status %d, want %d", r.exit, exit)
	}
	if r.out != out {
		t.Errorf("stdout:\n%s\nwant:\n%s", r.out, out)
	}
	if r.err != errs {
		t.Errorf("stderr:\n%s\nwant:\n%s", r.err, errs)
	}
}

func (r ran) document(t *testing.T, from string) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(from), &doc); err != nil {
		t.Fatalf("not one JSON document: %v\n%s", err, from)
	}
	return doc
}

func shipIt(state string) *messages.QuestionRow {
	return &messages.QuestionRow{
		Session: "demo", CallId: "q-1", State: state, AskedMs: at.UnixMilli() - 12_000, DeadlineMs: at.UnixMilli() + 78_000, RemainingMs: 78_000,
		Questions: []*messages.Question{{Id: "q1", Question: "Ship it?", Options: []*messages.Option{{Label: "Yes"}, {Label: "No", Description: "wait for the review"}}}},
	}
}
