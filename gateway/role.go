package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	"github.com/parleyrun/parley/messages"
	mc "github.com/parleyrun/parley/messages/messagesconnect"
)

// Role is what the holder of a token is on this node, in every session alike.
type Role string

// The roles, from the least to the most.
const (
	// RoleViewer reads and watches. Its watch is nobody who could answer.
	RoleViewer Role = "viewer"
	// RoleAnswerer is a person: reads, answers, holds waits, speaks to agents
	// and takes back what was said to them.
	RoleAnswerer Role = "answerer"
	// RoleAgent reads, asks, and takes what waits for it into its history.
	RoleAgent Role = "agent"
	// RoleOperator may do everything.
	RoleOperator Role = "operator"
)

// Roles lists them all.
func Roles() []Role { return []Role{RoleViewer, RoleAnswerer, RoleAgent, RoleOperator} }

// rule is who may come in at a path.
type rule struct {
	roles []Role // nil: everybody, without a token too
	flows bool   // its handler reads the request while it arrives
}

var (
	everybody = rule{}
	reads     = rule{roles: []Role{RoleViewer, RoleAnswerer, RoleAgent, RoleOperator}}
	looks     = rule{roles: []Role{RoleViewer, RoleAnswerer, RoleOperator}}
	answers   = rule{roles: []Role{RoleAnswerer, RoleOperator}}
	asks      = rule{roles: []Role{RoleAgent, RoleOperator}}
	operates  = rule{roles: []Role{RoleOperator}}
)

func (r rule) flowing() rule { r.flows = true; return r }

// access is the table: every procedure and every path, with who may come in.
// A key that ends in a slash stands for what is below it, too. What is not
// listed is the operator's, so that a forgotten row shuts a door.
var access = map[string]rule{
	mc.SessionServiceAttachProcedure:        asks,
	mc.SessionServiceBeginTurnProcedure:     asks,
	mc.SessionServiceBeginStepProcedure:     asks,
	mc.SessionServiceEndStepProcedure:       asks,
	mc.SessionServiceEndTurnProcedure:       asks,
	mc.SessionServiceGetSessionProcedure:    reads,
	mc.SessionServiceListSessionsProcedure:  reads,
	mc.SessionServiceReadLogProcedure:       reads,
	mc.SessionServiceImportSessionProcedure: operates.flowing(), // a log says what people have answered

	mc.QuestionServiceAskProcedure:              asks,
	mc.QuestionServiceEndForegroundProcedure:    asks,
	mc.QuestionServiceListQuestionsProcedure:    reads,
	mc.QuestionServiceGetQuestionProcedure:      reads,
	mc.QuestionServiceWatchQuestionsProcedure:   reads,
	mc.QuestionServiceAttachWaitProcedure:       answers, // a claim stops the clock
	mc.QuestionServiceReleaseWaitProcedure:      answers,
	mc.QuestionServiceSubmitProcedure:           answers,
	mc.QuestionServiceExpireProcedure:           answers,
	mc.QuestionServiceDelegateProcedure:         answers,
	mc.QuestionServiceDismissProcedure:          answers,
	mc.QuestionServiceWithdrawQuestionProcedure: asks, // the asker takes its question back

	mc.QueryServiceListQueryToolsProcedure: asks,
	mc.QueryServiceCallQueryToolProcedure:  asks,
	mc.QueryServiceSearchProcedure:         reads, // as ReadLog, which tells no less
	mc.QueryServiceTraceProcedure:          reads,
	mc.QueryServiceReadProcedure:           reads,

	mc.InboxServiceSteerProcedure:           answers, // an agent reads it as the word of a person
	mc.InboxServiceListInboxProcedure:       reads,
	mc.InboxServiceAwaitInboxProcedure:      asks,
	mc.InboxServiceCollectRepliesProcedure:  asks,
	mc.InboxServiceAcknowledgeProcedure:     asks,
	mc.InboxServiceClaimMessagesProcedure:   asks,
	mc.InboxServiceAdmitMessagesProcedure:   asks,
	mc.InboxServiceWithdrawMessageProcedure: answers, // whoever sent it takes it back; an agent may not drop it unread

	"/" + grpchealth.HealthV1ServiceName + "/":        everybody, // probes hold no tokens, and learn one bit
	"/" + grpcreflect.ReflectV1ServiceName + "/":      reads.flowing(),
	"/" + grpcreflect.ReflectV1AlphaServiceName + "/": reads.flowing(),

	"/healthz": everybody,
	"/metrics": operates, // numbers of all sessions together
	"/":        looks,
	ListPath:   looks, // and /answer/SESSION, see ruleFor
	"/answer/": answers,
	"/mcp":     asks,
	"/mcp/":    asks,
}

// ruleFor is the rule of a request. A session below /answer is a list to look
// at, what is below the session a call to answer; they are told apart as the
// router does, for which an escaped slash is part of a name.
func ruleFor(u *url.URL) rule {
	if below, ok := strings.CutPrefix(u.EscapedPath(), ListPath+"/"); ok && !strings.Contains(below, "/") {
		return access[ListPath]
	}
	return ruleOf(u.Path)
}

// ruleOf is the rule of a path: its own, or that of the longest prefix below /.
func ruleOf(path string) rule {
	if r, ok := access[path]; ok {
		return r
	}
	for at := strings.LastIndexByte(path, '/'); at > 0; at = strings.LastIndexByte(path[:at], '/') {
		if r, ok := access[path[:at+1]]; ok {
			return r
		}
	}
	return operates
}

// tokens is what opens the doors: hashes of equal length, so that not even the
// length of a token can be measured.
type tokens []struct {
	hash [sha256.Size]byte
	role Role
}

func (o *Options) tokens() tokens {
	var out tokens
	add := func(role Role, token string) {
		out = append(out, struct {
			hash [sha256.Size]byte
			role Role
		}{sha256.Sum256([]byte(token)), role})
	}
	if o.Token != "" {
		add(RoleOperator, o.Token)
	}
	for _, role := range slices.Sorted(maps.Keys(o.Tokens)) {
		for _, token := range o.Tokens[role] {
			add(role, token)
		}
	}
	return out
}

// roles are those of a token. Every known token is compared, always and in
// constant time: how long it takes says nothing about how near it came.
func (t tokens) roles(token string) []Role {
	var held []Role
	got := sha256.Sum256([]byte(token))
	for _, known := range t {
		if subtle.ConstantTimeCompare(got[:], known.hash[:]) == 1 {
			held = append(held, known.role)
		}
	}
	return held
}

type rolesKey struct{}

// admit decides whether a request may do what its path says, and keeps its
// roles in its context. A node without tokens is its operator's alone.
func (g *Gateway) admit(r *http.Request, to rule) (*http.Request, *messages.Error) {
	held := []Role{RoleOperator}
	if len(g.tokens) > 0 {
		if held = g.tokens.roles(tokenOf(r)); len(held) == 0 && to.roles != nil {
			return r, messages.Refuse(messages.Unauthenticated, "the request has no valid token")
		}
	}
	if to.roles != nil && !slices.ContainsFunc(held, func(role Role) bool { return slices.Contains(to.roles, role) }) {
		return r, messages.Refuse(messages.ForbiddenRole, "%.200q is for the roles %s; this token's role is %s",
			r.URL.Path, names(to.roles), names(held))
	}
	return r.WithContext(context.WithValue(r.Context(), rolesKey{}, held)), nil
}

// mayAnswer tells whether the caller could answer a question: only then is a
// watch of its somebody who is there.
func mayAnswer(ctx context.Context) bool {
	held, _ := ctx.Value(rolesKey{}).([]Role)
	return slices.ContainsFunc(held, func(role Role) bool { return slices.Contains(answers.roles, role) })
}

func names(roles []Role) string {
	var out []string
	for _, r := range roles {
		out = append(out, string(r))
	}
	return strings.Join(out, ", ")
}

// tokenOf reads the token of a request: a bearer token, and on the pages for
// people also the password that a browser asks for.
func tokenOf(r *http.Request) string {
	if isPage(r) {
		if _, password, ok := r.BasicAuth(); ok {
			return password
		}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return token
}

// challenge is what a client without a token is told to send.
func challenge(r *http.Request) string {
	if isPage(r) {
		return `Basic realm="parley", charset="UTF-8"`
	}
	return `Bearer realm="parley"`
}

// isPage tells whether a person's browser asks, and wants a page back.
func isPage(r *http.Request) bool {
	return r.URL.Path == ListPath || strings.HasPrefix(r.URL.Path, ListPath+"/") ||
		r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html")
}

func validateTokens(o *Options) []error {
	var errs []error
	check := func(name, token string) {
		if len(token) < tokenBytesMin {
			errs = append(errs, fmt.Errorf("the %stoken has %d bytes; give at least %d", name, len(token), tokenBytesMin))
		}
		if strings.TrimSpace(token) != token {
			errs = append(errs, fmt.Errorf("the %stoken starts or ends with white space", name))
		}
	}
	if o.Token != "" {
		check("", o.Token)
	}
	for _, role := range slices.Sorted(maps.Keys(o.Tokens)) {
		if !slices.Contains(Roles(), role) {
			errs = append(errs, fmt.Errorf("%q is no role; use one of %s", role, names(Roles())))
		}
		for _, token := range o.Tokens[role] {
			check(string(role)+" ", token)
		}
	}
	return errs
}
