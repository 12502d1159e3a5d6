package parley_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
)

// browser is what a person's browser does: it keeps the form it was given, and
// says which page sent it.
type browser struct {
	t              *testing.T
	base           string
	user, password string
	form           url.Values // the hidden fields of the last page
}

// visit loads a page.
func (b *browser) visit(path string) (status int, page string) {
	return b.do(http.MethodGet, path, nil, nil)
}

// send fills in the form of the last page and sends it; pairs are names and values.
func (b *browser) send(path string, pairs ...string) (status int, page string) {
	form := url.Values{}
	for name, values := range b.form {
		form[name] = values
	}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return b.do(http.MethodPost, path, form, http.Header{"Origin": {b.base}})
}

func (b *browser) do(method, path string, form url.Values, header http.Header) (status int, page string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(form.Encode()))
	require.NoError(b.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if b.password != "" {
		req.SetBasicAuth(b.user, b.password)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(b.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	page = string(text)
	checkPage(b.t, res, page)
	b.form = url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		b.form.Set(m[1], html.UnescapeString(m[2]))
	}
	return res.StatusCode, page
}

// checkPage is what holds for every page, also for one that refuses.
func checkPage(t *testing.T, res *http.Response, page string) {
	t.Helper()
	assert.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	policy := res.Header.Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'")
	assert.Contains(t, policy, "frame-ancestors 'none'")
	assert.NotContains(t, policy, "unsafe")
	styles := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindAllStringSubmatch(page, -1)
	require.Len(t, styles, 1)
	sum := sha256.Sum256([]byte(styles[0][1]))
	assert.Contains(t, policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'", "the one style is the one that is allowed")
	assert.NotRegexp(t, `(?i)href="(?:javascript|data)`, page)
	tags := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(page, `""`) // values are quoted, and hold no quotes
	assert.NotRegexp(t, `(?i)<script|<img|<svg|<iframe|<[^>]*\son[a-z]+\s*=`, tags)
}

var release = []parley.Question{
	{ID: "env", Header: "Target", Text: "Deploy where?", Options: []parley.Option{{Label: "staging", Description: "safe"}, {Label: "production"}}},
	{ID: "tests", Text: "Which tests?", MultiSelect: true, Options: []parley.Option{{Label: "unit"}, {Label: "end to end"}}},
	{ID: "note", Text: "Anything else?"},
}

// askAll asks and waits until it is durable.
func askAll(t *testing.T, agent *parley.Agent, call string, timeout time.Duration, questions []parley.Question) <-chan outcome {
	t.Helper()
	results, waiting := make(chan outcome, 1), make(chan bool, 64)
	agent.AskAsync(parley.Ask{CallID: call, Attempt: call, Questions: questions, Timeout: timeout,
		OnWaiting: func(parley.Waiting) { waiting <- true }}, func(r parley.Result, err error) { results <- outcome{r, err} })
	next(t, waiting)
	return results
}

// A person answers on the page, in time: nothing is chosen for them, what is
// not an answer is not sent, and a form that is sent twice counts once.
func TestThePageAnswersInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results := askAll(t, w.attach("s"), "c", time.Hour, release)
	b := &browser{t: t, base: w.url}
	status, page := b.visit("/answer/s/c")
	require.Equal(t, 200, status)
	assert.NotContains(t, page, `" checked`, "nothing is chosen before somebody chooses")
	for _, text := range []string{"Deploy where?", "Target", "staging", "safe", `type="radio"`, `type="checkbox"`, "The agent waits until "} {
		assert.Contains(t, page, text)
	}
	status, page = b.send("/answer/s/c")
	require.Equal(t, 422, status)
	assert.Equal(t, 3, strings.Count(page, "Choose, write, or skip."))
	status, page = b.send("/answer/s/c", "q0", "1", "q0-text", "or neither", "q1", "skip", "q1", "0", "q2-text", "keep <this>")
	require.Equal(t, 422, status)
	assert.Contains(t, page, "Here your own words take the place of a choice")
	assert.Contains(t, page, "You answered and skipped")
	assert.Contains(t, page, "or neither")
	assert.Contains(t, page, "keep &lt;this&gt;", "the draft is kept, as it was written")
	assert.Equal(t, "open", w.row("s", "c").State)

	filled := []string{"q0", "1", "q1", "1", "q1", "0", "q1-text", "and lint\r\nfirst", "q2", "skip", "by", "Ada"}
	status, page = b.send("/answer/s/c", filled...)
	form := b.form
	require.Equal(t, 200, status, page)
	assert.Contains(t, page, "Answered in time")
	r := next(t, results)
	require.NoError(t, r.err)
	answers := r.Result.(parley.Answered).Answers
	assert.Equal(t, []string{"production"}, answers[0].Selected)
	assert.Equal(t, []string{"unit", "end to end"}, answers[1].Selected)
	assert.Equal(t, "and lint\nfirst", *answers[1].Custom)
	assert.Empty(t, answers[2].Selected)
	assert.Nil(t, answers[2].Custom)
	row := w.row("s", "c")
	assert.Equal(t, "Ada", row.Settlement.By)
	assert.Equal(t, "web", row.Settlement.Door)

	assert.Empty(t, form, "there is nothing more to send")
	status, page = b.visit("/answer/s/c")
	require.Equal(t, 200, status)
	assert.Contains(t, page, `<h1 dir="auto">Answered by Ada</h1>`)
	assert.Equal(t, 2, strings.Count(page, "Answered"), "in the title, and once to read")
	assert.Contains(t, page, "end to end")
	assert.NotContains(t, page, "<form")
}

// A double click is one answer, whatever the second click says.
func TestADoubleClickIsOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results := askAll(t, w.attach("s"), "c", time.Hour, release[:1])
	b := &browser{t: t, base: w.url}
	b.visit("/answer/s/c")
	form := b.form
	status, page := b.send("/answer/s/c", "q0", "1")
	require.Equal(t, 200, status, page)
	b.form = form
	status, page = b.send("/answer/s/c", "q0", "0")
	require.Equal(t, 200, status, page)
	assert.Contains(t, page, "counts once, as it was first sent")
	assert.Contains(t, page, `<p class="answer" dir="auto">production</p>`)
	assert.NotContains(t, page, `<p class="answer" dir="auto">staging</p>`)
	assert.Equal(t, []string{"production"}, next(t, results).Result.(parley.Answered).Answers[0].Selected)
}

// Too late for the call, an answer is queued; too late for the question, its
// text is given back, and who won is told.
func TestThePageAfterTheCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	results := askAll(t, agent, "c", time.Second, release[:1])
	first, second := &browser{t: t, base: w.url}, &browser{t: t, base: w.url}
	_, page := first.visit("/answer/s/c")
	assert.Regexp(t, `The agent waits until \d\d:\d\d:\d\d \S+\. An answer after that`, page)
	second.visit("/answer/s/c")
	_, pending := next(t, results).Result.(parley.Pending)
	require.True(t, pending)
	status, page := first.send("/answer/s/c", "q0", "0", "by", "Ada")
	require.Equal(t, 200, status, page)
	assert.Contains(t, page, "Queued as a late reply")
	status, page = second.send("/answer/s/c", "q0-text", "never on a Friday", "by", "Bob")
	require.Equal(t, 409, status)
	assert.Contains(t, page, "Somebody was first")
	assert.Contains(t, page, "never on a Friday", "the draft is not lost")
	assert.Contains(t, page, "Answered by Ada")
	_, page = second.visit("/answer/s/c")
	assert.Contains(t, page, "A reply is on its way")
	admitted, err := agent.Admit(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, admitted, 1)
	_, page = second.visit("/answer/s/c")
	assert.Contains(t, page, "Answered by Ada")
	assert.Contains(t, page, `<p class="answer" dir="auto">staging</p>`)
}

// A deadline that has passed while somebody holds it is not told as one to come.
func TestThePageOfAHeldDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results := askAll(t, w.attach("s"), "c", time.Second, release[:1])
	claim, err := w.AttachWait(t.Context(), "s", "c")
	require.NoError(t, err)
	b := &browser{t: t, base: w.url}
	require.Eventually(t, func() bool {
		_, page := b.visit("/answer/s/c")
		return strings.Contains(page, "deadline has passed, but its call is held open")
	}, 10*time.Second, 50*time.Millisecond)
	_, page := b.visit("/answer")
	assert.Contains(t, page, "the agent still waits, for now")
	b.visit("/answer/s/c")
	status, page := b.send("/answer/s/c", "q0", "1")
	require.Equal(t, 200, status)
	assert.Contains(t, page, "Answered in time")
	assert.IsType(t, parley.Answered{}, next(t, results).Result)
	claim.Release()
}

// What an agent writes is shown, and never run.
func TestThePageEscapesHostileText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hostile := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</style><script>alert(1)</script>`,
		`javascript:alert(1)`, `{{.Session}}`, `</textarea><svg onload=alert(1)>`, "\u202egpj.exe", `&lt;script&gt;`, `-->]]><b>`,
	}
	var questions []parley.Question
	for i, text := range hostile {
		questions = append(questions, parley.Question{ID: text, Header: text, Text: text, MultiSelect: i%2 == 0,
			Options: []parley.Option{{Label: text, Description: text}, {Label: text + "2"}}})
	}
	const session = `<b>"s"/x?y#z`
	askAll(t, w.attach(session), `c'<i>`, time.Hour, questions)
	path := "/answer/" + url.PathEscape(session) + "/" + url.PathEscape(`c'<i>`)
	b := &browser{t: t, base: w.url}
	status, page := b.visit(path)
	require.Equal(t, 200, status, page)
	for _, text := range hostile {
		if !strings.Contains(text, "\u202e") {
			assert.Contains(t, html.UnescapeString(page), text)
		}
	}
	assert.NotContains(t, page, "\u202e")
	assert.NotContains(t, page, "<b>")
	var pairs []string
	for i, text := range hostile {
		n := string(rune('0' + i))
		pairs = append(pairs, "q"+n, "skip", "q"+n+"-text", text)
	}
	status, page = b.send(path, append(pairs, "by", hostile[1])...)
	require.Equal(t, 422, status)
	assert.NotContains(t, page, "<b>")
	pairs = nil
	for i := range hostile {
		pairs = append(pairs, "q"+string(rune('0'+i)), "0")
	}
	status, page = b.send(path, append(pairs, "by", hostile[0])...)
	require.Equal(t, 200, status)
	assert.Contains(t, page, "Answered in time")
	_, page = b.visit(path)
	assert.Contains(t, page, "Answered by &lt;script&gt;")
}

// Only a page of the node's own sends the form; nothing else is there.
func TestThePageIsGuarded(t *testing.T) {
	t.Parallel()
	const answerer, viewer = "the-token-of-an-answerer", "the-token-of-a-viewer"
	w := start(t, parley.Config{Memory: true, Logger: quiet}, parley.ServeOptions{Tokens: map[parley.Role][]string{
		parley.RoleViewer: {viewer}, parley.RoleAnswerer: {answerer}}})
	askAll(t, w.attach("s"), "c", time.Hour, release[:1])
	b := &browser{t: t, base: w.url}
	status, page := b.visit("/answer/s/c")
	assert.Equal(t, 401, status)
	assert.NotContains(t, page, "Deploy where?")
	b.user, b.password = "ada", "not-the-token-of-anybody"
	status, _ = b.visit("/answer/s/c")
	assert.Equal(t, 401, status)
	b.password = viewer
	status, page = b.visit("/answer/s/c")
	assert.Equal(t, 403, status)
	assert.Contains(t, page, "Not with this token")
	b.password = answerer
	status, page = b.visit("/answer/s/c")
	require.Equal(t, 200, status)
	assert.Contains(t, page, `name="by" value="ada"`)
	filled := url.Values{"q0": {"1"}, "submission": b.form["submission"], "call_seq": b.form["call_seq"]}
	for name, header := range map[string]http.Header{
		"another site": {"Origin": {"https://evil.example"}}, "a sandbox": {"Origin": {"null"}}, "nobody knows": {},
		"another site without an origin": {"Sec-Fetch-Site": {"cross-site"}},
	} {
		status, _ = b.do(http.MethodPost, "/answer/s/c", filled, header)
		assert.Equal(t, 403, status, name)
	}
	_, page = b.do(http.MethodPost, "/answer/s/c", filled, nil)
	assert.Contains(t, page, "has no Origin header")
	assert.Equal(t, "open", w.row("s", "c").State)
	for _, path := range []string{"/answer/s/nothing", "/answer/nobody/c", "/answer/nobody", "/answer/s/c/d", "/answer/%20/c", "/answer/%20",
		"/answer/s/" + strings.Repeat("x", 300), "/answer/" + strings.Repeat("x", 300)} {
		status, page = b.visit(path)
		assert.Equal(t, 404, status, path)
		assert.Contains(t, page, "No such question", path)
		assert.Contains(t, page, `<a href="/answer">All questions</a>`, path)
	}
	for name, change := range map[string]url.Values{"call_seq": {"call_seq": {"x"}}, "submission": {"submission": {""}, "call_seq": filled["call_seq"], "q0": {"1"}}} {
		status, page = b.do(http.MethodPost, "/answer/s/c", change, http.Header{"Origin": {w.url}})
		assert.Equal(t, 400, status, name)
		assert.Contains(t, page, name)
	}
	b.form = filled
	status, page = b.send("/answer/s/c", "call_seq", "") // the first value counts
	require.Equal(t, 200, status, page)
	assert.Equal(t, "ada", w.row("s", "c").Settlement.By)
	status, _ = get(t, w.url+"/metrics", "", map[string]string{"Authorization": "Basic YWRhOnRoZS10b2tlbi1vZi1hbi1hbnN3ZXJlcg=="})
	assert.Equal(t, 401, status, "a password is for pages only")
}

// The list shows what can be answered, with a way to each page: of all
// sessions, or of one.
func TestThePageListsWhatCanBeAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := &browser{t: t, base: w.url}
	status, page := b.visit("/answer")
	require.Equal(t, 200, status)
	assert.Contains(t, page, "Nothing waits for an answer.")
	const hostile = `a/b"><i>`
	first, second := w.attach("s"), w.attach(hostile)
	askAll(t, first, "open", time.Hour, release)
	askAll(t, first, "blocking", parley.Never, []parley.Question{{ID: "q", Text: strings.Repeat("é", 400)}})
	next(t, askAll(t, second, "late", time.Second, []parley.Question{{ID: "q", Text: "<b>Late?</b>"}}))
	done := askAll(t, second, "done", time.Hour, release[:1])
	b.visit("/answer/" + url.PathEscape(hostile) + "/done")
	b.send("/answer/"+url.PathEscape(hostile)+"/done", "q0", "1")
	next(t, done)
	for _, path := range []string{"/answer", "/answer/"} {
		status, page = b.visit(path)
		require.Equal(t, 200, status)
		assert.Equal(t, 3, strings.Count(page, `<section class="card">`), path)
		assert.Contains(t, page, `<a class="text" dir="auto" href="/answer/s/open">Deploy where?</a>`)
		assert.Contains(t, page, "and 2 more")
		assert.Regexp(t, `asked just now, the agent waits until \d\d:\d\d:\d\d \S+<`, page)
		assert.Contains(t, page, strings.Repeat("é", 300)+"…</a>")
		assert.Contains(t, page, "the agent waits<")
		assert.Contains(t, page, "&lt;b&gt;Late?")
		assert.Contains(t, page, "the agent has gone on")
		assert.NotContains(t, page, "/done", "it is answered")
	}
	link := html.UnescapeString(regexp.MustCompile(`href="([^"]*/late)"`).FindStringSubmatch(page)[1])
	status, page = b.visit(link)
	require.Equal(t, 200, status, page)
	assert.Contains(t, page, "has gone on without an answer")
	status, page = b.visit("/answer/" + url.PathEscape(hostile))
	require.Equal(t, 200, status)
	assert.Contains(t, page, "Late?")
	assert.NotContains(t, page, "Deploy where?", "another session's")
	assert.Contains(t, page, `<a href="/answer">All questions</a>`)
	status, _ = b.visit("/answer?after=nonsense")
	assert.Equal(t, 400, status)
}

// The queue may be longer than a page, and full of replies that wait for their agent.
func TestTheListGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.attach("s")
	for i := range 205 {
		askAll(t, agent, fmt.Sprintf("c%03d", i), time.Hour, release[:1])
	}
	b, calls := &browser{t: t, base: w.url}, map[string]bool{}
	for path := "/answer/s"; path != ""; {
		status, page := b.visit(path)
		require.Equal(t, 200, status)
		for _, m := range regexp.MustCompile(`href="/answer/s/(c\d+)"`).FindAllStringSubmatch(page, -1) {
			assert.False(t, calls[m[1]], "listed twice: %s", m[1])
			calls[m[1]] = true
		}
		path = ""
		if more := regexp.MustCompile(`<a href="([^"]*)">More</a>`).FindStringSubmatch(page); more != nil {
			path = html.UnescapeString(more[1])
		}
	}
	assert.Len(t, calls, 205)
}

// Those who may only look get the list, and no way to answer. A browser finds
// it at the root, where a program finds nothing.
func TestTheListIsForThoseWhoMayLook(t *testing.T) {
	t.Parallel()
	const answerer, viewer, agent = "the-token-of-an-answerer", "the-token-of-a-viewer", "the-token-of-an-agent"
	w := start(t, parley.Config{Memory: true, Logger: quiet}, parley.ServeOptions{Tokens: map[parley.Role][]string{
		parley.RoleViewer: {viewer}, parley.RoleAnswerer: {answerer}, parley.RoleAgent: {agent}}})
	askAll(t, w.attach("a/b"), "c", time.Hour, release[:1])
	b := &browser{t: t, base: w.url, user: "ada"}
	browsing := http.Header{"Accept": {"text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}}
	for token, want := range map[string]struct {
		status int
		link   bool
	}{"": {401, false}, "not-the-token-of-anybody": {401, false}, agent: {403, false}, viewer: {200, false}, answerer: {200, true}} {
		b.password = token
		for _, path := range []string{"/", "/answer", "/answer/", "/answer/a%2Fb"} {
			status, page := b.do(http.MethodGet, path, nil, browsing)
			assert.Equal(t, want.status, status, "%s with %q", path, token)
			assert.Equal(t, want.status == 200, strings.Contains(page, "Deploy where?"), "%s with %q", path, token)
			assert.Equal(t, want.link, strings.Contains(page, `href="/answer/a%2Fb/c"`), "%s with %q", path, token)
		}
	}
	for _, path := range []string{"/", "/nothing"} {
		status, text := get(t, newWorld(t).url+path, "", nil)
		assert.Equal(t, 404, status)
		assert.Contains(t, text, `"code":"NOT_FOUND"`)
		assert.Contains(t, text, "a browser to /answer")
	}
}

// A form whose questions are not asked any more answers nothing.
func TestTheFormOfAnEarlierQuestionAnswersNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	askAll(t, w.attach("s"), "c", time.Hour, release[:1])
	b := &browser{t: t, base: w.url}
	b.visit("/answer/s/c")
	b.form.Set("call_seq", "1")
	status, page := b.send("/answer/s/c", "q0-text", "my words")
	assert.Equal(t, 409, status)
	assert.Contains(t, page, "The agent has asked anew")
	assert.Contains(t, page, "my words")
	assert.Equal(t, "open", w.row("s", "c").State)
	_, err := w.json().questions.GetQuestion(t.Context(), say(&messages.GetQuestionRequest{Session: "s", CallId: "c"}))
	require.NoError(t, err)
}
