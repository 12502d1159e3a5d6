package actors

import (
	"github.com/parleyrun/parley/messages"
)

// Caller is who asks, as a value.
type Caller int

// The callers an ask can have.
const (
	CallerNone       Caller = iota // no agent was supplied
	CallerNoRegistry               // an agent, but nobody knows agents
	CallerUnknown                  // an agent that is not registered
	CallerStale                    // another instance under the same id
	CallerChild                    // live, but owned by a live parent
	CallerRoot                     // the live root
)

// CheckLiveRoot holds.
func CheckLiveRoot(c Caller) *messages.Error {
	switch c {
	case CallerNone, CallerRoot:
		return nil
	case CallerChild:
		return messages.Refuse(messages.DelegatedCaller,
			"a delegated agent cannot ask the user; put the open question into its final result")
	case CallerNoRegistry, CallerUnknown, CallerStale:
	}
	return messages.Refuse(messages.CallerNotLive, "the asking agent is not the live agent of its session")
}

// CheckAsk holds the checks of ask() in their order: an aborted
// signal, no questions, liveness and root, intents.
func CheckAsk(aborted bool, questions []*messages.Question, caller Caller) *messages.Error {
	if aborted {
		return errAborted()
	}
	if len(questions) == 0 {
		return messages.Refuse(messages.EmptyQuestions, "ask_user_question needs at least one question")
	}
	if err := CheckLiveRoot(caller); err != nil {
		return err
	}
	return checkIntents(questions)
}

// checkIntents holds Q-045: question by question, first the label, then the detail.
func checkIntents(questions []*messages.Question) *messages.Error {
	for _, q := range questions {
		in := q.GetIntent()
		if in == nil {
			continue
		}
		known := false
		for _, o := range q.GetOptions() {
			known = known || o.GetLabel() == in.GetApprove()
		}
		if !known {
			return messages.Refuse(messages.BadIntent,
				"question %s declares intent %s approving %q, which is none of its options", q.GetId(), in.GetKind(), in.GetApprove())
		}
		if q.Detail == nil {
			return messages.Refuse(messages.BadIntent,
				"question %s declares intent %s without the detail it reviews", q.GetId(), in.GetKind())
		}
	}
	return nil
}

// CheckAskTimed holds what askTimed() checks before it makes a wait:
// the timeout, liveness and root, a wait already registered. The checks of
// CheckAsk follow. ok is false when timeoutMS was not a whole number at all.
func CheckAskTimed(timeoutMS int64, ok bool, caller Caller, registered bool) *messages.Error {
	if !ok || timeoutMS < 1 || timeoutMS > 2147483647 {
		return messages.Refuse(messages.BadTimeout, "the timeout must be a whole number of 1 to 2147483647 ms")
	}
	if err := CheckLiveRoot(caller); err != nil {
		return err
	}
	if registered {
		return messages.Refuse(messages.DuplicateWait, "the question call already has a foreground wait")
	}
	return nil
}

func errAborted() *messages.Error {
	return messages.Refuse(messages.AskAborted, "ask_user_question was aborted before the user answered")
}

// OutcomeKind is how a foreground call came to its end.
type OutcomeKind int

// The ends a wait can propose. The chain of answerers gives the first three.
const (
	OutcomeAnswered  OutcomeKind = iota
	OutcomeFailed                // an answerer rejected, with a coded or a plain error
	OutcomePassed                // the last answerer passed on
	OutcomeDeadline              // the host's unattended deadline
	OutcomeCancelled             // the caller's signal, a withdrawal, a turn's end
	OutcomeDisposed              // the session is deleted or its service disposed
	OutcomeLost                  // the request that waited ended before its result
	OutcomeReply                 // a late reply to be queued: proposed by the inbox
)

// Outcome is one proposal to settle a call.
type Outcome struct {
	Kind OutcomeKind
	// Submit is set for OutcomeAnswered and OutcomeReply.
	Submit *messages.SubmitRequest
	// Seq is set for OutcomeReply: the place of the call that it answers.
	Seq int64
	// Err is set for OutcomeFailed.
	Err *messages.Error
	// Unkeyed is set for OutcomeLost when the call has no late path.
	Unkeyed bool
	// By and Reason name the actor of a failure, expiry or cancellation.
	By, Reason string
}

// ResultKind is what a foreground call returns.
type ResultKind int

// The three results, and none yet.
const (
	ResultNone ResultKind = iota // the call goes on
	ResultAnswers
	ResultPending
	ResultError
)

// Settle says what a foreground call returns for an outcome: the one home of
// Q-047 … … Q-069. A settled wait answers at once and waits
// for no answerer (deviation D2), so the first outcome that settles decides.
func Settle(timed bool, out Outcome) (ResultKind, *messages.Error) {
	switch out.Kind {
	case OutcomeAnswered:
		return ResultAnswers, nil
	case OutcomeDeadline:
		return ResultPending, nil
	case OutcomePassed:
		if timed { // the wait's own end decides
			return ResultNone, nil
		}
		return ResultError, messages.Refuse(messages.NoProvider, "no user interface is available to answer")
	case OutcomeFailed:
		switch {
		case timed && out.Err.Code == messages.AskTimedOut:
			return ResultPending, nil
		case timed && out.Err.Code == messages.NoProvider:
			return ResultNone, nil
		}
		return ResultError, out.Err
	case OutcomeLost: // the request is not the question: that one goes on
		if !out.Unkeyed {
			return ResultPending, nil
		}
	case OutcomeCancelled, OutcomeDisposed, OutcomeReply:
	}
	return ResultError, errAborted()
}

// End is a call's settlement as those who wait for it are told.
type End struct {
	Settlement *messages.Settlement
	// Response goes to the askers, unless Err does.
	Response *messages.AskResponse
	Err      *messages.Error
	// Continued: a late answer is possible now.
	Continued bool
}
