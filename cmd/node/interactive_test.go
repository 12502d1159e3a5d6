package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/creack/pty"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/messages/messagesconnect"
	"github.com/stretchr/testify/require"
)

// terminal is a parley that runs at a terminal of 80 by 24, and the person in front of it.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	pty  *os.File
	over chan struct{} // closed when the terminal says no more

	mu       sync.Mutex
	all      string
	answered int           // how often the terminal has said that it had painted
	said     chan struct{} // one is in it after something new

	cards int // how many the person has waited for
	mute  bool
}

// painted is what the terminal sends when it is asked whether it has painted.
const painted = "\x1b[0n"

// sitAt starts parley at a terminal. early are keys that were typed before the first card was painted.
func sitAt(t *testing.T, env []string, early string, args ...string) *terminal {
	t.Helper()
	return sitAtA(t, env, early, false, args...)
}

// sitAtA has a terminal that may be mute: it does not say when it has painted.
func sitAtA(t *testing.T, env []string, early string, mute bool, args ...string) *terminal {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "USER=ada", "TERM=xterm-256color"}, env...)
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	p := &terminal{t: t, cmd: cmd, pty: f, over: make(chan struct{}), said: make(chan struct{}, 1), mute: mute}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = f.Close() })
	go p.read(early)
	return p
}

func (p *terminal) read(early string) {
	defer close(p.over)
	buf := make([]byte, 4096)
	for {
		n, err := p.pty.Read(buf)
		p.mu.Lock()
		p.all += string(buf[:n])
		for ; !p.mute && p.answered < strings.Count(p.all, askPainted); p.answered++ {
			_, _ = p.pty.WriteString(early + painted)
			early = ""
		}
		p.mu.Unlock()
		select {
		case p.said <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// screen is what the person sees: the last frame of a card, or the lines of the shell.
func (p *terminal) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.all
	if at := strings.LastIndex(text, "\x1b[?1049l"); at >= 0 {
		text = text[at:]
	} else if at := strings.LastIndex(text, "\x1b[H"); at >= 0 {
		text = text[at:]
	}
	return escapes.ReplaceAllString(text, "")
}

// see waits until the person sees all of the texts at once.
func (p *terminal) see(texts ...string) {
	p.t.Helper()
	p.until(strings.Join(texts, " | "), func(screen string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(screen, text) })
	})
}

// opens waits for a new card, and until it takes keys.
func (p *terminal) opens(texts ...string) {
	p.t.Helper()
	p.cards++
	p.until("a new card", func(string) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.answered >= p.cards
	})
	p.see(texts...)
}

func (p *terminal) until(what string, holds func(screen string) bool) {
	p.t.Helper()
	limit := time.NewTimer(patienceMax)
	defer limit.Stop()
	for !holds(p.screen()) {
		select {
		case <-p.said:
		case <-limit.C:
			p.t.Fatalf("no %q on\n%s", what, p.screen())
		}
	}
}

// press types, and waits until the person sees the outcome.
func (p *terminal) press(keys string, texts ...string) {
	p.t.Helper()
	_, err := p.pty.WriteString(keys)
	require.NoError(p.t, err)
	p.see(texts...)
}

// end waits for the end of parley.
func (p *terminal) end() (exit int, screen string) {
	p.t.Helper()
	select {
	case <-p.over:
	case <-time.After(patienceMax):
		p.t.Fatalf("it does not end; the screen is\n%s", p.screen())
	}
	var failed *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &failed) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode(), strings.ReplaceAll(p.screen(), "\r", "")
}

const (
	enter  = "\r"
	escape = "\x1b"
)

// A digit picks, Enter sends; Enter alone does not, and the agent has its answer in time.
func TestCardPickAndSend(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	ask := n.ask(t, "--timeout", "60s")
	p := sitAt(t, n.env, "", "answer", "--submission-id", "a-1")
	p.opens("Ship it?", "1 ( ) Yes", "2 ( ) No", "any key stops that")
	p.press(enter, "Nothing is chosen yet", "will not end while you have this open")
	p.press("2", "1 ( ) Yes", "2 (•) No")
	p.press("1", "1 (•) Yes", "2 ( ) No")
	p.press(enter)
	exit, screen := p.end()
	require.Equal(t, 0, exit)
	require.Equal(t, "  = Yes\nanswered in time: it is the result of call q-1 in session demo\n  submission  a-1\n", screen)
	ask.end().want(t, 0, "Yes\n", "")
}

// A multiple choice with words of one's own: nothing goes out before Enter, and all of it arrives (M1, M3, U5).
func TestCardMultiSelectWithText(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	ask := n.ask(t, "--timeout", "60s", "--multi")
	p := sitAt(t, n.env, "", "answer", "demo", "q-1")
	p.opens("1 [ ] Yes")
	p.press("2", "2 [x] No")
	p.press("1", "1 [x] Yes")
	p.press("3", "› 3 [ ]", "Esc leaves the text")
	p.press("1 of 2\x1b[13;2ujks", "1 [x] Yes", "2 [x] No", "3 [x] 1 of 2", "        jks")
	if r := n.run(t, "questions"); !strings.Contains(r.out, "open") {
		t.Errorf("it was sent by a toggle: %+v", r)
	}
	p.press(escape, "Space toggles")
	p.press(enter)
	exit, _ := p.end()
	require.Equal(t, 0, exit)
	ask.end().want(t, 0, "No\nYes\n1 of 2\n  jks\n", "")
}

// While the card is open the deadline ends nothing; Esc lets go at once, and the question stays open. A claim that was
// merely lost would be missed for a minute here.
func TestCardHoldsAndLetsGo(t *testing.T) {
	t.Parallel()
	n := serveNode(t, "--claim-grace", "60s")
	ask := n.ask(t, "--timeout", "3s")
	p := sitAt(t, n.env, "", "answer", "demo", "q-1")
	p.opens("any key stops that")
	p.press("2", "2 (•) No", "will not end while you have this open")
	require.Eventually(t, func() bool {
		r := n.run(t, "questions", "--json")
		return strings.Contains(r.out, `"remainingMs":0`) && strings.Contains(r.out, `"state":"open"`)
	}, patienceMax, 10*time.Millisecond)
	p.press(escape)
	exit, screen := p.end()
	require.Equal(t, 75, exit)
	require.Equal(t, "not sent:\n  = No\nnot answered; the question stays open\n", screen)
	r := ask.end()
	require.Equal(t, 75, r.exit, r)
	require.Contains(t, n.run(t, "questions").out, "continued")
}

// A card that nobody touches does not hold the agent for ever: the call returns, and the answer is late.
func TestCardUntouchedGoesOnLate(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	ask := n.ask(t, "--timeout", "2s")
	p := sitAt(t, n.env, "", "answer", "demo", "q-1")
	require.Equal(t, 75, ask.end().exit)
	p.opens("The call has returned")
	p.press("1", "1 (•) Yes")
	p.press(enter)
	exit, screen := p.end()
	require.Equal(t, 0, exit)
	require.Contains(t, screen, "queued as a late reply")
	require.Contains(t, n.run(t, "inbox", "demo", "--admit").out, "Yes")
}

// Somebody else is first while the card is open: it closes, says who, and gives the draft back (R1, C7, N3).
func TestCardSettledElsewhere(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	n.ask(t, "--timeout", "60s")
	p := sitAt(t, n.env, "", "answer", "demo", "q-1")
	p.opens("3 ( )")
	p.press("3", "Esc leaves the text")
	p.press("not before Monday", "3 (•) not before Monday")
	require.Equal(t, 0, n.run(t, "answer", "demo", "q-1", "--option", "No", "--by", "bob").exit)
	exit, screen := p.end()
	require.Equal(t, 23, exit)
	require.Contains(t, screen, "not sent:\n  = not before Monday\n")
	require.Contains(t, screen, "bob answered first")
}

// Something else is asked under the same id while the card is open: it closes and gives the draft back. It neither holds
// the new question nor answers it (M5, Q-210).
func TestCardAskedAnew(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	n.ask(t, "--timeout", "1s").end()
	p := sitAt(t, n.env, "", "answer", "demo", "q-1")
	p.opens("The call has returned")
	p.press("3", "Esc leaves the text")
	p.press("not before Monday", "3 (•) not before Monday")
	anew := start(t, n.env, "ask", "Roll it back?", "--session", "demo", "--call", "q-1", "--attempt", "q-2", "--timeout", "60s")
	exit, screen := p.end()
	require.Equal(t, 24, exit)
	require.Contains(t, screen, "not sent:\n  = not before Monday\n")
	require.Contains(t, screen, "asked anew")
	require.Equal(t, 0, n.run(t, "answer", "demo", "q-1", "--text", "yes").exit)
	require.Equal(t, "yes\n", anew.end().out)
}

// Keys that were typed before the card was painted are not for it (W5); Ctrl-C leaves.
func TestCardDropsEarlyKeys(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	n.ask(t, "--timeout", "60s")
	p := sitAt(t, n.env, "1"+enter+"2"+enter, "answer", "demo", "q-1")
	p.opens("any key stops that") // and they did not
	p.press("j", "  1 ( ) Yes", "› 2 ( ) No", "will not end while you have this open")
	p.press("\x03")
	exit, screen := p.end()
	require.Equal(t, 130, exit)
	require.Equal(t, "not answered; the question stays open\n", screen)
	require.Contains(t, n.run(t, "questions").out, "open")
}

// Several questions: one is picked from a list that follows what happens, and the batch has a review (M5).
func TestCardPickedFromAList(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	n.ask(t, "--timeout", "never")
	batch := start(t, n.env, "ask", "--session", "deploy", "--attempt", "q-2", "--timeout", "never",
		"--question", "Which region?", "--option", "eu (Recommended)", "--option", "us", "--question", "Anything else?")
	batch.await(batch.err, "/answer/deploy/q-2")
	p := sitAt(t, n.env, "", "answer")
	p.opens("› 1  Ship it?", "  2  Which region? (and 1 more)")
	require.Equal(t, 0, n.run(t, "answer", "demo", "q-1", "--skip").exit)
	p.see("skipped (no answer and no permission) by ada")
	p.press("1", "This one is over.")
	p.press("2")
	p.opens("deploy · q-2", "1 ( ) eu (Recommended)")
	p.press("\t", "Anything else?")
	p.press("\t", "2 questions have no answer")
	p.press(enter, "This question has no answer yet", "eu (Recommended)")
	p.press("1", "Anything else?", "Esc leaves the text")
	p.press("no", "› no")
	p.press(enter, "[review]", "= eu (Recommended)", "= no")
	p.press(enter)
	exit, screen := p.end()
	require.Equal(t, 0, exit, screen)
	batch.end().want(t, 0, "q1: eu (Recommended)\nq2: no\n", "")
}

// The node is killed and comes back while the card is open: the draft is there, the claim is opened again.
func TestCardOutlivesTheNode(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	ask := n.ask(t, "--timeout", "60s")
	p := sitAt(t, n.env, "", "answer", "demo", "q-1")
	p.opens("any key stops that")
	p.press("3", "Esc leaves the text")
	p.press("still here", "will not end while you have this open", "still here")
	n.stop(syscall.SIGKILL)
	p.see("The node is away", "still here")
	n.serve(t, "--claim-grace", "60s")
	p.see("will not end while you have this open", "still here")
	p.press(enter)
	exit, screen := p.end()
	require.Equal(t, 0, exit, screen)
	require.Equal(t, "still here\n", ask.end().out)
}

// Without a terminal nothing has changed: an answer has to be on the command line.
func TestNoCardWithoutATerminal(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	n.ask(t, "--timeout", "60s")
	r := n.run(t, "answer")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "there is no answer on the command line")
	p := sitAt(t, n.env, "", "answer", "--json")
	exit, screen := p.end()
	require.Equal(t, 2, exit)
	require.Contains(t, screen, `"code":"USAGE"`)
}

// An ask at a terminal counts down, names the command that answers it, and leaves only the answer behind.
func TestAskCountsDown(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	args := []string{"ask", "Ship it?", "--option", "Yes", "--session", "demo", "--attempt", "q-1", "--timeout", "60s"}
	p := sitAt(t, n.env, "", args...)
	p.see("waiting 1m00s", "parley answer demo q-1 --node")
	p.until("a second count", func(screen string) bool { return strings.Count(screen, "s left") > 2 })
	require.Equal(t, 0, n.run(t, "answer", "demo", "q-1", "--option", "Yes").exit)
	exit, screen := p.end()
	require.Equal(t, 0, exit)
	require.True(t, strings.HasSuffix(screen, "left\nYes\n") || strings.HasSuffix(screen, "leftYes\n"), "%q", screen)
	require.Contains(t, p.all, "\r\x1b[KYes") // the line is gone before the answer is printed

	quiet := sitAt(t, n.env, "", "ask", "Ship it?", "--session", "demo", "--attempt", "q-2", "--timeout", "1s", "--quiet")
	exit, screen = quiet.end()
	require.Equal(t, 75, exit)
	require.NotContains(t, screen, "left")
}

// A person who has the question open holds the call past its deadline, and who asked is told.
func TestAskSaysThatItIsHeld(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	p := sitAt(t, n.env, "", "ask", "Ship it?", "--option", "Yes", "--session", "demo", "--attempt", "q-1", "--timeout", "3s")
	p.see("left")
	card := sitAt(t, n.env, "", "answer", "demo", "q-1")
	card.opens("any key stops that")
	card.press("j", "will not end while you have this open")
	p.see("held by a person")
	require.Regexp(t, `q-1 +open +\d+s +held\n`, n.run(t, "questions").out)
	card.press("k1", "1 (•) Yes")
	card.press(enter)
	exit, screen := p.end()
	require.Equal(t, 0, exit)
	require.True(t, strings.HasSuffix(screen, "Yes\n"), screen)
}

// A terminal that does not say when it has painted gets its keys after a while.
func TestCardAtAMuteTerminal(t *testing.T) {
	t.Parallel()
	n := serveNode(t)
	n.ask(t, "--timeout", "never")
	p := sitAtA(t, n.env, "", true, "answer", "demo", "q-1")
	p.see("1 ( ) Yes")
	require.Eventually(t, func() bool {
		_, err := p.pty.WriteString("1")
		return err == nil && strings.Contains(p.screen(), "1 (•) Yes")
	}, patienceMax, 10*time.Millisecond)
	p.press(enter)
	exit, _ := p.end()
	require.Equal(t, 0, exit)
}

// A signal leaves as Esc does: the terminal is given back and the claim is let go.
func TestCardEndsByASignal(t *testing.T) {
	t.Parallel()
	n := serveNode(t, "--claim-grace", "60s")
	ask := n.ask(t, "--timeout", "2s")
	p := sitAt(t, n.env, "", "answer", "demo", "q-1")
	p.opens("any key stops that")
	p.press("1", "will not end while you have this open")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	exit, screen := p.end()
	require.Equal(t, 130, exit)
	require.Contains(t, screen, "not sent:\n  = Yes\nerror: not answered; the question stays open (INTERRUPTED)\n")
	require.Contains(t, p.all, terminalClose)
	require.Equal(t, 75, ask.end().exit)
}

// streams makes the fake hold the streams of a card open, and say on them what the test says.
func (f *fakeNode) streams(claim *messages.AttachWaitResponse) {
	f.mux.Handle(messagesconnect.QuestionServiceWatchQuestionsProcedure, connect.NewServerStreamHandler(messagesconnect.QuestionServiceWatchQuestionsProcedure,
		func(ctx context.Context, _ *connect.Request[messages.WatchQuestionsRequest], out *connect.ServerStream[messages.WatchQuestionsResponse]) error {
			if err := out.Send(&messages.WatchQuestionsResponse{Live: true, HeartbeatMs: 60_000}); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}))
	f.mux.Handle(messagesconnect.QuestionServiceAttachWaitProcedure, connect.NewServerStreamHandler(messagesconnect.QuestionServiceAttachWaitProcedure,
		func(ctx context.Context, _ *connect.Request[messages.AttachWaitRequest], out *connect.ServerStream[messages.AttachWaitResponse]) error {
			if err := out.Send(claim); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}))
	on(f, messagesconnect.QuestionServiceReleaseWaitProcedure, func(*messages.ReleaseWaitRequest) (*messages.ReleaseWaitResponse, error) {
		return &messages.ReleaseWaitResponse{}, nil
	})
}

// The answer loses the race: the loser is told who won, and has the draft (R1, L3). A refusal of the answer itself
// leaves the card open.
func TestCardLosesTheRace(t *testing.T) {
	f := newFake(t)
	f.rows(shipIt("open"))
	f.streams(&messages.AttachWaitResponse{Claim: "c-1", RemainingMs: 30_000})
	var sent []string
	var mu sync.Mutex
	on(f, messagesconnect.QuestionServiceSubmitProcedure, func(q *messages.SubmitRequest) (*messages.SubmitResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		if sent = append(sent, q.GetAnswers()[0].GetCustom()); len(sent) == 1 {
			return nil, messages.Refuse(messages.BadAnswer, "too vague")
		}
		e := messages.Refuse(messages.Settled, "call q-1 is settled")
		e.Winner = &messages.Settlement{Outcome: "answered", By: "bob", Door: "web"}
		return nil, e
	})
	p := sitAt(t, []string{"PARLEY_NODE=" + f.url}, "", "answer")
	p.opens("any key stops that")
	p.press("3", "Esc leaves the text")
	p.press("maybe", "(•) maybe")
	p.press(enter, "too vague")
	p.press(" later", "maybe later")
	p.press(enter)
	exit, screen := p.end()
	require.Equal(t, 23, exit)
	require.Equal(t, "not accepted:\n  = maybe later\nerror: call q-1 is settled; bob answered first, through web (SETTLED)\nnext:  Nothing to do; your draft was not used.\n", screen)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"maybe", "maybe later"}, sent)
	require.Contains(t, f.requests(), "ReleaseWait")
}

// A node that is away when the answer is sent: the card stays, the same submission goes out again, and counts once. A
// person who leaves meanwhile is not told that nothing was sent.
func TestCardSendsAgain(t *testing.T) {
	f := newFake(t)
	f.rows(shipIt("open"))
	f.streams(&messages.AttachWaitResponse{Claim: "c-1", Never: true})
	ids := make(chan string, 100)
	on(f, messagesconnect.QuestionServiceSubmitProcedure, func(q *messages.SubmitRequest) (*messages.SubmitResponse, error) {
		ids <- q.GetSubmissionId()
		return nil, messages.Refuse(messages.Unavailable, "stopping")
	})
	p := sitAt(t, []string{"PARLEY_NODE=" + f.url}, "", "answer", "--submission-id", "a-1")
	p.opens("The agent waits for you.")
	p.press("1", "(•) Yes")
	p.press(enter, "Enter sends it again; it counts once")
	for len(ids) > 0 {
		require.Equal(t, "a-1", <-ids)
	}
	p.press(enter, "sending …")
	require.Equal(t, "a-1", <-ids)
	p.press("\x03")
	exit, screen := p.end()
	require.Equal(t, 69, exit)
	require.Contains(t, screen, "perhaps sent:\n  = Yes\nerror: left before the node said whether it has the answer a-1 (UNAVAILABLE)\n")
}
