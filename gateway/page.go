package gateway

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parleyrun/parley/messages"
)

// webDoor is what a submission through the page says it came through.
const webDoor = "web"

// AnswerPath is where the page of a call is, for links.
func AnswerPath(session, call string) string {
	return "/answer/" + url.PathEscape(session) + "/" + url.PathEscape(call)
}

//go:embed page/page.css
var pageStyle string

//go:embed page/page.html
var pageText string

var (
	pageTemplate = template.Must(template.New("page").Parse(pageText))
	// pagePolicy lets the page do nothing but show itself and send its form
	// here: no script at all, no style but its own.
	pagePolicy = func() string {
		sum := sha256.Sum256([]byte(pageStyle))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	}()
)

// page is what the template shows.
type page struct {
	Title, Standing string
	Session, Call   string
	Code            messages.Code // of a refusal, for whoever is asked for help
	Notice          *notice
	Questions       []pageQuestion
	Draft           []string

	List bool // of questions, in place of one
	Rows []listRow
	Next string // where the list goes on

	Form                   bool
	Action, Submission, By string
	CallSeq                int64
	Again                  bool
	Style                  template.CSS
}

type notice struct{ Kind, Title, Text string }

type pageQuestion struct {
	id                   string
	Name, Kind           string // of the form's fields: q0, radio or checkbox
	Header, Text, Detail string
	Options              []pageOption
	OwnWords, Draft      string
	Skipped              bool
	Wrong                string   // what is to be corrected
	Answer               []string // of a question that is not asked any more
	NoAnswer             bool
}

type pageOption struct {
	Value, Label, Description string
	Chosen                    bool
}

// answerPage shows a question, and takes its answer.
func (g *Gateway) answerPage(w http.ResponseWriter, r *http.Request) {
	call := &messages.GetQuestionRequest{Session: r.PathValue("session"), CallId: r.PathValue("call")}
	noteSession(r.Context(), call.GetSession())
	row, err := g.pageRow(r, call)
	if err != nil {
		g.writeRefusal(w, r, err)
		return
	}
	p := pageOf(row)
	if r.Method != http.MethodPost {
		p.By, _, _ = r.BasicAuth()
		g.writePage(w, http.StatusOK, p)
		return
	}
	if err := fromOwnPage(r); err != nil {
		g.writeRefusal(w, r, err)
		return
	}
	g.takeAnswer(w, r, row, p)
}

// pageRow reads the call. An id that cannot be one is a page that is not there.
func (g *Gateway) pageRow(r *http.Request, call *messages.GetQuestionRequest) (*messages.QuestionRow, *messages.Error) {
	if Check(call) != nil {
		return nil, messages.Refuse(messages.NotFound, "no question has this address")
	}
	ctx, release := g.bound(r.Context())
	defer release()
	row, err := g.port.Views().Question(ctx, call.GetSession(), call.GetCallId())
	if err != nil {
		return nil, asCoded(err)
	}
	if trouble := row.GetTrouble(); trouble != nil {
		return nil, messages.FromWire(trouble)
	}
	return row, nil
}

// fromOwnPage refuses a form that another page sent: a browser that has the
// token would send it along. Where its Origin may be from was checked before;
// here there must be one.
func fromOwnPage(r *http.Request) *messages.Error {
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		return nil
	}
	return messages.Refuse(messages.ForeignOrigin, "the request has no Origin header, so nothing says which page sent it; "+
		"a browser sends one with the form, and a program answers with QuestionService.Submit")
}

// takeAnswer hands a form in, and shows what became of it.
func (g *Gateway) takeAnswer(w http.ResponseWriter, r *http.Request, row *messages.QuestionRow, p *page) {
	if err := r.ParseForm(); err != nil {
		g.writeRefusal(w, r, messages.Refuse(messages.BadRequest, "the form cannot be read: %v", err))
		return
	}
	f := readForm(r, row)
	p.keep(f)
	seq, err := strconv.ParseInt(r.PostForm.Get("call_seq"), 10, 64)
	if err != nil {
		g.writeRefusal(w, r, messages.Refuse(messages.BadRequest, "call_seq is %.40q; send the form of the page", r.PostForm.Get("call_seq")))
		return
	}
	if seq != row.GetCallSeq() {
		p = pageOf(row)
		p.Draft = f.texts()
		p.Notice = &notice{"bad", "The agent has asked anew", "What you sent was for the questions before. Nothing was answered; please read these."}
		g.writePage(w, http.StatusConflict, p)
		return
	}
	if answerable(row) && f.wrong() {
		p.Notice = &notice{"bad", "Nothing was sent yet", "Please look at what is marked below."}
		g.writePage(w, http.StatusUnprocessableEntity, p)
		return
	}
	req := &messages.SubmitRequest{Session: row.GetSession(), CallId: row.GetCallId(), SubmissionId: r.PostForm.Get("submission"),
		Answers: f.answers(), By: f.by, Door: webDoor, CallSeq: seq}
	res, refused := g.submitPage(r, req)
	if refused != nil {
		note(r.Context(), refused)
		g.showRefused(w, r, p, refused, f)
		return
	}
	g.showAccepted(w, r, p, res, f)
}

func (g *Gateway) submitPage(r *http.Request, req *messages.SubmitRequest) (*messages.SubmitResponse, *messages.Error) {
	if err := Check(req); err != nil {
		return nil, asCoded(err)
	}
	ctx, release := g.bound(r.Context())
	defer release()
	reply, err := g.port.Do(ctx, req)
	if err != nil {
		return nil, asCoded(err)
	}
	res, ok := reply.(*messages.SubmitResponse)
	if !ok {
		return nil, messages.Refuse(messages.Bug, "a %T was answered with a %T", req, reply)
	}
	return res, nil
}

// showAccepted: the form has become an answer, now or when it was sent before.
func (g *Gateway) showAccepted(w http.ResponseWriter, r *http.Request, p *page, res *messages.SubmitResponse, f form) {
	done := &page{Title: "Thank you", Session: p.Session, Call: p.Call, Action: p.Action, Questions: p.Questions}
	switch res.GetSettlement().GetOutcome() {
	case "answered":
		done.Notice = &notice{"good", "Answered in time", "The agent was waiting and has your answer."}
	case "skipped":
		done.Notice = &notice{"good", "Skipped", "The agent was told that nobody decided. That is no permission."}
	case "queued":
		done.Notice = &notice{"good", "Queued as a late reply", "The agent had gone on without waiting. It takes your answer next, exactly once."}
	case "withdrawn", "reply_withdrawn":
		done.Title = "Withdrawn"
		done.Notice = &notice{"bad", "This answer was withdrawn", by("It was taken back", res.GetSettlement())}
	default:
		done.Notice = &notice{"good", "Received", res.GetSettlement().GetOutcome()}
	}
	if !res.GetRepeated() {
		done.answered(f.answers())
		g.writePage(w, http.StatusOK, done)
		return
	}
	done.Notice.Text += " It was sent before and counts once, as it was first sent."
	done.unasked()
	if row, err := g.pageRow(r, &messages.GetQuestionRequest{Session: p.Session, CallId: p.Call}); err == nil && len(row.GetAnswers()) > 0 {
		done.answered(row.GetAnswers())
	}
	g.writePage(w, http.StatusOK, done)
}

// showRefused keeps what was written: in its form while it may still be sent,
// else as text to copy.
func (g *Gateway) showRefused(w http.ResponseWriter, r *http.Request, p *page, refused *messages.Error, f form) {
	status := messages.Lookup(refused.Code).HTTP
	row, err := g.pageRow(r, &messages.GetQuestionRequest{Session: p.Session, CallId: p.Call})
	if err == nil && !answerable(row) {
		now := pageOf(row)
		now.Draft, now.Code = f.texts(), refused.Code
		now.Notice = &notice{"bad", "Somebody was first", refused.Text}
		g.writePage(w, http.StatusConflict, now)
		return
	}
	p.Code = refused.Code
	if p.Form && (refused.Temporary() || status < http.StatusInternalServerError) {
		p.Notice = &notice{"bad", "This was not accepted", refused.Text + " " + messages.Lookup(refused.Code).Remedy}
		g.writePage(w, status, p)
		return
	}
	p.Form, p.Draft = false, f.texts()
	p.Notice = &notice{"bad", "This was not accepted", refused.Text}
	g.writePage(w, status, p)
}

// answerable tells whether a person may answer the question now.
func answerable(row *messages.QuestionRow) bool {
	return row.GetState() == "open" || row.GetState() == "continued"
}

// pageOf shows a row: a form while it can be answered, else how it ended.
func pageOf(row *messages.QuestionRow) *page {
	p := &page{Title: "An agent asks", Session: row.GetSession(), Call: row.GetCallId(),
		Action: AnswerPath(row.GetSession(), row.GetCallId()), CallSeq: row.GetCallSeq(), Submission: "web-" + strings.ToLower(rand.Text())}
	for i, q := range row.GetQuestions() {
		p.Questions = append(p.Questions, questionOf(i, q))
	}
	p.Form = answerable(row) && len(p.Questions) > 0
	if p.Form {
		p.Standing = standing(row)
		return p
	}
	switch row.GetState() {
	case "replied":
		p.Title, p.Again = "A reply is on its way", true
		p.Standing = by("Answered", row.GetSettlement()) + " The agent takes it next."
	case "settled":
		p.Title, p.Standing = ended(row.GetSettlement())
		p.answered(row.GetAnswers())
	default:
		p.Title, p.Again = "Nothing can be answered here", true
	}
	return p
}

func questionOf(i int, q *messages.Question) pageQuestion {
	out := pageQuestion{id: q.GetId(), Name: "q" + strconv.Itoa(i), Kind: "radio", Header: q.GetHeader(), Text: q.GetQuestion(), Detail: q.GetDetail()}
	switch {
	case len(q.GetOptions()) == 0:
		out.Kind, out.OwnWords = "checkbox", "Your answer"
	case q.GetMultiSelect():
		out.Kind, out.OwnWords = "checkbox", "Choose any, and add your own words if you like"
	default:
		out.OwnWords = "Or, in place of a choice, in your own words"
	}
	for j, o := range q.GetOptions() {
		out.Options = append(out.Options, pageOption{Value: strconv.Itoa(j), Label: o.GetLabel(), Description: o.GetDescription()})
	}
	return out
}

// standing says what an answer would be now.
func standing(row *messages.QuestionRow) string {
	switch {
	case row.GetState() == "continued":
		return "The agent has gone on without an answer. Yours reaches it as a late reply, exactly once."
	case row.GetUnkeyed():
		return "The agent waits for this answer and does nothing until it comes."
	case row.GetDeadlineMs() == 0:
		return "The agent waits for this answer."
	case row.GetRemainingMs() <= 0:
		return "The agent's deadline has passed, but its call is held open for now: an answer can still be in time. A later one reaches it as a late reply."
	}
	return "The agent waits until " + clock(row.GetDeadlineMs(), time.Now()) + ". An answer after that reaches it too, as a late reply."
}

// ended says how a settled question ended.
func ended(s *messages.Settlement) (title, text string) {
	title, text = "Settled: "+s.GetOutcome(), s.GetReason()
	switch s.GetOutcome() {
	case "answered":
		title = "Answered"
	case "skipped":
		title, text = "Skipped", strings.TrimSpace("Nobody decided; that is no permission. "+text)
	case "withdrawn", "aborted", "cancelled", "root_changed":
		title = "Taken back"
	}
	if s.GetBy() != "" {
		title += " by " + s.GetBy()
	}
	return title, text
}

func by(what string, s *messages.Settlement) string {
	if s.GetBy() != "" {
		what += " by " + s.GetBy()
	}
	if s.GetReason() != "" {
		what += ": " + s.GetReason()
	}
	return what + "."
}

// answered shows answers beneath their questions.
func (p *page) answered(answers []*messages.Answer) {
	p.unasked()
	for _, a := range answers {
		i := slices.IndexFunc(p.Questions, func(q pageQuestion) bool { return q.id == a.GetId() && q.Answer == nil && !q.NoAnswer })
		if i < 0 {
			continue
		}
		q := &p.Questions[i]
		q.Answer = append(q.Answer, a.GetSelected()...)
		if a.GetCustom() != "" {
			q.Answer = append(q.Answer, a.GetCustom())
		}
		q.NoAnswer = len(q.Answer) == 0
	}
}

func (p *page) unasked() {
	for i := range p.Questions {
		p.Questions[i].Answer, p.Questions[i].NoAnswer = nil, false
	}
}

// writePage writes a page that nobody may keep, frame or script.
func (g *Gateway) writePage(w http.ResponseWriter, status int, p *page) {
	p.Style = template.CSS(pageStyle) // our own file, and nothing else
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		panic(err) // a page that its template does not fit
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // with none, a browser would not say that the form is ours
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes())
}

// toldApart are the refusals that a person meets, in a person's words.
var toldApart = map[messages.Code]struct {
	title  string
	notice notice
}{
	messages.NotFound: {"No such question", notice{"", "There is no question at this address.",
		"Was the link copied whole? Below is the way to all questions that can be answered now."}},
	messages.Unauthenticated: {"Who are you?", notice{"", "This node wants the token of an answerer, or of a viewer to look only.",
		"Load the page again and give the token as the password; the name is up to you."}},
	messages.ForbiddenRole: {title: "Not with this token"},
	messages.Unavailable:   {title: "Not now"},
}

// refusalPage is a refusal for a person.
func refusalPage(e *messages.Error) *page {
	p := &page{Title: "This did not work", Code: e.Code, Notice: &notice{"bad", e.Text, messages.Lookup(e.Code).Remedy}}
	if told, ok := toldApart[e.Code]; ok {
		p.Title = told.title
		if told.notice.Title != "" {
			p.Notice = &told.notice
		}
	}
	return p
}

// asCoded makes any error one with a code.
func asCoded(err error) *messages.Error {
	var coded *messages.Error
	if errors.As(err, &coded) {
		return coded
	}
	return messages.Refuse(messages.Unavailable, "%v", err)
}
