package messages_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"connectrpc.com/connect"
	"github.com/parleyrun/parley/messages"
	"google.golang.org/protobuf/proto"
)

// Every constant of type Code is one row of the registry, and nothing else is.
func TestEveryCodeIsRegisteredOnce(t *testing.T) {
	source, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[messages.Code]int{}
	for _, e := range messages.Registry {
		rows[e.Code]++
	}
	ast.Inspect(source, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Code" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		code := messages.Code(text)
		if rows[code] != 1 {
			t.Errorf("%s is in the registry %d times", code, rows[code])
		}
		delete(rows, code)
		return true
	})
	for code := range rows {
		t.Errorf("%s is registered but is no constant", code)
	}
}

// the codes of the question service and of its clients, by their names.
func TestCodesOfTheQuestionService(t *testing.T) {
	for _, name := range []messages.Code{
		"ASK_ABORTED", "EMPTY_QUESTIONS", "CALLER_NOT_LIVE", "DELEGATED_CALLER", "BAD_INTENT", "NO_PROVIDER",
		"BAD_TIMEOUT", "DUPLICATE_WAIT", "REPLY_QUEUED", "BAD_ANSWER", "ASK_TIMED_OUT", "ASK_CANCELLED",
	} {
		if e := messages.Lookup(name); e.Meaning == "" || e.Kind != messages.RefusalKind {
			t.Errorf("%s is no registered refusal", name)
		}
	}
}

func TestEveryRowIsWhole(t *testing.T) {
	shape := regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`)
	for _, e := range messages.Registry {
		if !shape.MatchString(string(e.Code)) {
			t.Errorf("%q is not a code's shape", e.Code)
		}
		if !slices.Contains([]messages.Kind{messages.RefusalKind, messages.FaultKind, messages.BugKind}, e.Kind) {
			t.Errorf("%s has the kind %q", e.Code, e.Kind)
		}
		for what, text := range map[string]string{"meaning": e.Meaning, "cause": e.Cause, "remedy": e.Remedy} {
			if len(text) < 10 {
				t.Errorf("%s: the %s says nothing: %q", e.Code, what, text)
			}
		}
		if err := new(connect.Code).UnmarshalText([]byte(e.Connect)); err != nil || e.Connect == "" {
			t.Errorf("%s: %q is no code of Connect", e.Code, e.Connect)
		}
		if e.HTTP < 400 || http.StatusText(e.HTTP) == "" && e.HTTP != 499 { // 499 is Connect's, for a client that left
			t.Errorf("%s: %d is no error status", e.Code, e.HTTP)
		}
		if e.MCP > 0 {
			t.Errorf("%s: %d is no JSON-RPC error code", e.Code, e.MCP)
		}
		if e.Exit < 3 || e.Exit > 125 || e.Exit == messages.ExitPending {
			t.Errorf("%s: the exit status %d means something else already", e.Code, e.Exit)
		}
	}
}

// A code this build does not know (a newer node's) is carried on as it is.
func TestUnknownCodeIsAFault(t *testing.T) {
	e := messages.Lookup("FROM_THE_FUTURE")
	if e.Code != "FROM_THE_FUTURE" || e.Kind != messages.FaultKind || e.Exit != messages.ExitError {
		t.Errorf("got %+v", e)
	}
}

func TestErrorSurvivesWrappingAndTheWire(t *testing.T) {
	for _, code := range messages.Codes() {
		err := messages.Refuse(code, "call %q", "c1")
		err.Winner = &messages.Settlement{Outcome: "answered", By: "alice"}
		wrapped := fmt.Errorf("submit: %w", err)
		if !errors.Is(wrapped, &messages.Error{Code: code}) || errors.Is(wrapped, &messages.Error{Code: "OTHER"}) {
			t.Errorf("%s: Is goes by something else than the code", code)
		}
		if got := messages.CodeOf(wrapped); got != code {
			t.Errorf("CodeOf gives %q for %q", got, code)
		}
		back := messages.FromWire(err.Wire())
		if back.Code != code || back.Text != err.Text || !proto.Equal(back.Winner, err.Winner) || back.Error() != err.Error() {
			t.Errorf("%s came back as %+v", code, back)
		}
		if err.Wire().GetRemedy() == "" {
			t.Errorf("%s travels without its remedy", code)
		}
	}
	if code := messages.CodeOf(errors.New("plain")); code != "" {
		t.Errorf("a plain error has the code %q", code)
	}
}
