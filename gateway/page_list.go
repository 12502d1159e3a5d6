package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/parleyrun/parley/messages"
)

// ListPath is where the page is that lists what can be answered.
const ListPath = "/answer"

const (
	listRows     = 100 // questions on one page of the list
	listTextMax  = 300 // characters of a question there
	listPagesMax = 20  // pages of the queue looked through for one of ours: most of it may be replies on their way
)

// listRow is a question in the list.
type listRow struct {
	Link                 string // empty for those who may only look
	Session, SessionLink string // empty in the list of one session
	Text                 string
	More                 int // further questions of the same call
	Standing             string
}

func listPathOf(session string) string {
	if session == "" {
		return ListPath
	}
	return ListPath + "/" + url.PathEscape(session)
}

// listPage lists the questions that can be answered, of one session or of all.
func (g *Gateway) listPage(w http.ResponseWriter, r *http.Request) {
	session := r.PathValue("session")
	noteSession(r.Context(), session)
	p := &page{Title: "Questions", Session: session, List: true, Again: true, Action: listPathOf(session)}
	if err := g.fillList(r, p); err != nil {
		g.writeRefusal(w, r, err)
		return
	}
	g.writePage(w, http.StatusOK, p)
}

// rootPage is the list for a browser, and nothing for a program.
func (g *Gateway) rootPage(w http.ResponseWriter, r *http.Request) {
	if !isPage(r) {
		g.nothingHere(w, r)
		return
	}
	g.listPage(w, r)
}

// nothingHere says what is served, and where.
func (g *Gateway) nothingHere(w http.ResponseWriter, r *http.Request) {
	g.writeRefusal(w, r, messages.Refuse(messages.NotFound, "nothing is served at %s %.200q; requests go to /parley.v1.SERVICE/METHOD, "+
		"MCP to /mcp/SESSION, and a browser to %s", r.Method, r.URL.Path, ListPath))
}

// fillList reads on until it has something to show, or everything was read.
func (g *Gateway) fillList(r *http.Request, p *page) *messages.Error {
	req := &messages.ListQuestionsRequest{Session: p.Session, After: r.URL.Query().Get("after"), Limit: listRows}
	if Check(req) != nil {
		return messages.Refuse(messages.NotFound, "no list has this address")
	}
	ctx, release := g.bound(r.Context())
	defer release()
	now := time.Now()
	for range listPagesMax {
		res, err := g.port.Views().Questions(ctx, req)
		if err != nil {
			return asCoded(err)
		}
		for _, row := range res.GetQuestions() {
			if answerable(row) || row.GetTrouble() != nil {
				p.Rows = append(p.Rows, p.listed(row, now, mayAnswer(ctx)))
			}
		}
		if req.After = res.GetNext(); req.After == "" || len(p.Rows) > 0 {
			break
		}
	}
	if req.After != "" {
		p.Next = p.Action + "?after=" + url.QueryEscape(req.After)
	}
	if len(p.Rows) > 0 || p.Next != "" {
		return nil
	}
	p.Standing = "Nothing waits for an answer."
	if p.Session == "" {
		return nil
	}
	if _, err := g.port.Views().Session(ctx, p.Session); err != nil {
		return asCoded(err)
	}
	return nil
}

// listed shows a row of the queue.
func (p *page) listed(row *messages.QuestionRow, now time.Time, link bool) listRow {
	out := listRow{Text: "Call " + row.GetCallId()}
	if p.Session == "" {
		out.Session, out.SessionLink = row.GetSession(), listPathOf(row.GetSession())
	}
	if trouble := row.GetTrouble(); trouble != nil {
		out.Standing = "cannot be shown: " + trouble.GetText()
		return out
	}
	if link {
		out.Link = AnswerPath(row.GetSession(), row.GetCallId())
	}
	if questions := row.GetQuestions(); len(questions) > 0 {
		out.Text, out.More = shortened(questions[0].GetQuestion()), len(questions)-1
	}
	out.Standing = "asked " + ago(now.Sub(time.UnixMilli(row.GetAskedMs()))) + ", " + waits(row, now)
	return out
}

// waits says in a few words what an answer would be now.
func waits(row *messages.QuestionRow, now time.Time) string {
	switch {
	case row.GetState() == "continued":
		return "the agent has gone on"
	case row.GetDeadlineMs() == 0 || row.GetUnkeyed():
		return "the agent waits"
	case row.GetRemainingMs() <= 0:
		return "the agent still waits, for now"
	}
	return "the agent waits until " + clock(row.GetDeadlineMs(), now)
}

// clock is a time on the node's own clock, with its zone: a page does not go on counting.
func clock(ms int64, now time.Time) string {
	at := time.UnixMilli(ms)
	if at.Sub(now) > 12*time.Hour {
		return at.Format("2 Jan 15:04 MST")
	}
	return at.Format("15:04:05 MST")
}

func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	}
	return fmt.Sprintf("%d days ago", d/(24*time.Hour))
}

func shortened(text string) string {
	if utf8.RuneCountInString(text) <= listTextMax {
		return text
	}
	return string([]rune(text)[:listTextMax]) + "…"
}
