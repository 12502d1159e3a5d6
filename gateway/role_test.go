package gateway_test

import (
	"context"
	"encoding/binary"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
)

// roleTokens are the tokens of a node whose every role has one.
var roleTokens = map[gateway.Role][]string{
	gateway.RoleViewer:   {"the-token-of-a-viewer"},
	gateway.RoleAnswerer: {"the-token-of-an-answerer", "another-token-of-an-answerer"},
	gateway.RoleAgent:    {"the-token-of-an-agent"},
	gateway.RoleOperator: {"the-token-of-an-operator"},
}

// permitted is what docs/roles.md says of each method and path: who may, by
// the letters of roles; - is everybody.
var permitted = func() map[string]string {
	page, err := os.ReadFile("../docs/roles.md")
	if err != nil {
		panic(err)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\S+) \\| (\\S+) \\| (\\S+) \\| (\\S+) \\|").FindAllStringSubmatch(string(page), -1) {
		who := ""
		for i, role := range gateway.Roles() {
			switch m[i+2] {
			case "yes":
				who += letters[role]
			case "anybody":
				who = "-"
			}
		}
		out[m[1]] = who
	}
	return out
}()

var letters = map[gateway.Role]string{gateway.RoleViewer: "v", gateway.RoleAnswerer: "a", gateway.RoleAgent: "g", gateway.RoleOperator: "o"}

// target is one thing to ask for.
type target struct {
	path, method, contentType string
}

// targets are every method of every service, read from the descriptors, and
// every path beside them. One without a row in permitted fails the test.
func targets(t *testing.T) map[string]target {
	out := map[string]target{}
	services := messages.File_service_proto.Services()
	require.Equal(t, 4, services.Len())
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			name := string(m.Parent().Name()) + "." + string(m.Name())
			out[name] = procedure(m)
		}
	}
	for name := range permitted {
		if strings.HasPrefix(name, "/grpc.health") {
			out[name] = target{path: name, method: http.MethodPost, contentType: "application/json"}
		} else if strings.HasPrefix(name, "/") {
			out[name] = target{path: name, method: http.MethodGet}
		}
	}
	for name := range out {
		require.Contains(t, permitted, name, "who may do it?")
	}
	require.Greater(t, len(permitted), 40, "the page's table is read")
	for name := range permitted {
		require.Contains(t, out, name, "there is no such method any more")
	}
	return out
}

func procedure(m protoreflect.MethodDescriptor) target {
	out := target{path: "/" + string(m.Parent().FullName()) + "/" + string(m.Name()), method: http.MethodPost, contentType: "application/json"}
	if m.IsStreamingServer() || m.IsStreamingClient() {
		out.contentType = "application/connect+json"
	}
	return out
}

// request sends an empty request and returns all that came back.
func (to target) request(t *testing.T, base, authorization string) string {
	t.Helper()
	body := "{}"
	if strings.HasPrefix(to.contentType, "application/connect") {
		body = envelope(body)
	}
	if to.method == http.MethodGet {
		body = ""
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, to.method, base+to.path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", authorization)
	if to.contentType != "" {
		req.Header.Set("Content-Type", to.contentType)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	if to.path == "/metrics" && res.StatusCode == http.StatusOK {
		return res.Status // the numbers name codes, too
	}
	return res.Status + " " + string(text)
}

func envelope(text string) string {
	head := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text)))
	return string(head) + text
}

// Every method with every role, with a wrong token and with none, through the
// handler that serves. The refusal says which it was, and who may.
func TestEveryMethodHasItsRoles(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.do = func(context.Context, messages.Command) (messages.Reply, error) {
		return nil, messages.Refuse(messages.NotFound, "let in")
	}
	f.watch = func(context.Context, func(*messages.WatchQuestionsResponse) error) error {
		return messages.Refuse(messages.NotFound, "let in")
	}
	url, _ := serve(t, f, gateway.Options{Tokens: roleTokens})
	all := targets(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		to := all[name]
		for _, stranger := range []string{"", "Bearer wrong", "Bearer", roleTokens[gateway.RoleOperator][0], "Basic " + roleTokens[gateway.RoleOperator][0]} {
			got := to.request(t, url, stranger)
			if permitted[name] == "-" {
				assert.NotContains(t, got, "UNAUTHENTICATED", "%s with %q", name, stranger)
				continue
			}
			assert.Contains(t, got, "UNAUTHENTICATED", "%s with %q", name, stranger)
		}
		for role, tokens := range roleTokens {
			for _, token := range tokens {
				got := to.request(t, url, "Bearer "+token)
				assert.NotContains(t, got, "UNAUTHENTICATED", "%s as %s", name, role)
				if strings.Contains(permitted[name], letters[role]) || permitted[name] == "-" {
					assert.NotContains(t, got, "FORBIDDEN_ROLE", "%s as %s", name, role)
					continue
				}
				assert.Contains(t, got, "FORBIDDEN_ROLE", "%s as %s", name, role)
				assert.Contains(t, got, "operator", "%s as %s: who may", name, role)
			}
		}
	}
}

// Over every protocol, unary and streamed, the refusal is the typed one.
func TestARefusedRoleIsTyped(t *testing.T) {
	t.Parallel()
	url, _ := serve(t, newFake(t), gateway.Options{Tokens: roleTokens})
	viewer := "Bearer " + roleTokens[gateway.RoleViewer][0]
	for name, c := range questions(t, url) {
		req := submit()
		req.Header().Set("Authorization", viewer)
		_, err := c.Submit(t.Context(), req)
		require.Error(t, err, name)
		assert.Equal(t, messages.ForbiddenRole, gateway.RefusalOf(err).Code, name)
		assert.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), name)
		wait := connect.NewRequest(&messages.AttachWaitRequest{Session: "s", CallId: "c"})
		wait.Header().Set("Authorization", viewer)
		stream, err := c.AttachWait(t.Context(), wait)
		if err == nil {
			assert.False(t, stream.Receive(), name)
			err = stream.Err()
			_ = stream.Close()
		}
		require.Error(t, err, name)
		assert.Equal(t, messages.ForbiddenRole, gateway.RefusalOf(err).Code, name)
	}
}

// A node without tokens asks for none.
func TestWithoutTokensEverybodyIsTheOperator(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.do = func(context.Context, messages.Command) (messages.Reply, error) {
		return nil, messages.Refuse(messages.NotFound, "let in")
	}
	f.watch = func(context.Context, func(*messages.WatchQuestionsResponse) error) error { return nil }
	url, _ := serve(t, f, gateway.Options{})
	for name, to := range targets(t) {
		got := to.request(t, url, "")
		assert.NotContains(t, got, "UNAUTHENTICATED", name)
		assert.NotContains(t, got, "FORBIDDEN_ROLE", name)
	}
}

// A token of two roles may do what either may.
func TestATokenMayHaveTwoRoles(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.do = func(context.Context, messages.Command) (messages.Reply, error) {
		return nil, messages.Refuse(messages.NotFound, "let in")
	}
	const token = "of-a-person-with-an-agent"
	url, _ := serve(t, f, gateway.Options{Tokens: map[gateway.Role][]string{gateway.RoleAgent: {token}, gateway.RoleAnswerer: {token}}})
	all := targets(t)
	assert.NotContains(t, all["QuestionService.Ask"].request(t, url, "Bearer "+token), "FORBIDDEN")
	assert.NotContains(t, all["QuestionService.Submit"].request(t, url, "Bearer "+token), "FORBIDDEN")
	assert.Contains(t, all["/metrics"].request(t, url, "Bearer "+token), "this token's role is agent, answerer")
}

// A watch counts as somebody who could answer only if its caller may answer.
func TestAViewersWatchIsNobodyWhoCouldAnswer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	got := make(chan bool, 1)
	f.watching = func(mayAnswer bool) { got <- mayAnswer }
	f.watch = func(context.Context, func(*messages.WatchQuestionsResponse) error) error { return nil }
	url, _ := serve(t, f, gateway.Options{Tokens: roleTokens})
	watch := targets(t)["QuestionService.WatchQuestions"]
	for role, want := range map[gateway.Role]bool{
		gateway.RoleViewer: false, gateway.RoleAgent: false, gateway.RoleAnswerer: true, gateway.RoleOperator: true,
	} {
		watch.request(t, url, "Bearer "+roleTokens[role][0])
		assert.Equal(t, want, <-got, role)
	}
	url, _ = serve(t, f, gateway.Options{})
	watch.request(t, url, "")
	assert.True(t, <-got, "without tokens everybody may")
}

func TestTokensAreChecked(t *testing.T) {
	t.Parallel()
	_, err := gateway.New(newFake(t), gateway.Options{Tokens: map[gateway.Role][]string{
		"boss": {"a-token-of-some-length"}, gateway.RoleViewer: {"short"}, gateway.RoleAgent: {"a-token-with-its-newline\n"}}})
	require.Equal(t, messages.BadRequest, messages.CodeOf(err))
	for _, part := range []string{`"boss" is no role`, "viewer token has 5 bytes", "agent token starts or ends"} {
		assert.Contains(t, err.Error(), part)
	}
	assert.NotContains(t, err.Error(), "newline", "a token is never shown")
}

// Tokens are in no log, whatever happens to them.
func TestNoTokenIsLogged(t *testing.T) {
	t.Parallel()
	log := new(syncBuffer)
	url, stop := serve(t, newFake(t), gateway.Options{Tokens: roleTokens, Logger: log.logger()})
	for _, to := range targets(t) {
		if to.method == http.MethodGet {
			to.request(t, url, "Bearer "+roleTokens[gateway.RoleViewer][0])
			to.request(t, url, "Bearer the-wrong-token-of-somebody")
		}
	}
	require.NoError(t, stop())
	assert.Contains(t, log.String(), "FORBIDDEN_ROLE")
	assert.NotContains(t, log.String(), "the-token-of")
	assert.NotContains(t, log.String(), "the-wrong-token")
}
