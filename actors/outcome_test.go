package actors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/actors"
	"github.com/parleyrun/parley/messages"
)

var detail = "the plan"

func question(id string, edit ...func(*messages.Question)) *messages.Question {
	q := &messages.Question{Id: id, Question: "?", Options: []*messages.Option{{Label: "yes"}, {Label: "no"}}}
	for _, e := range edit {
		e(q)
	}
	return q
}

func intent(approve string) func(*messages.Question) {
	return func(q *messages.Question) {
		q.Intent = &messages.Intent{Kind: "plan-review", Approve: approve}
	}
}

func detailed(q *messages.Question) { q.Detail = &detail }

func TestChecksOfAsk(t *testing.T) {
	one := []*messages.Question{question("q")}
	empty := ""
	for _, tt := range []struct {
		name      string
		aborted   bool
		questions []*messages.Question
		caller    actors.Caller
		want      messages.Code
	}{
		{"Q-041 an aborted signal comes before everything", true, nil, actors.CallerStale, messages.AskAborted},
		{"Q-042 no questions come before the caller", false, nil, actors.CallerStale, messages.EmptyQuestions},
		{"Q-043 nobody knows agents", false, one, actors.CallerNoRegistry, messages.CallerNotLive},
		{"Q-043 an unknown agent", false, one, actors.CallerUnknown, messages.CallerNotLive},
		{"Q-043 another instance under the same id", false, one, actors.CallerStale, messages.CallerNotLive},
		{"Q-043 without an agent nothing is asked about it", false, one, actors.CallerNone, ""},
		{"Q-044 a child of a live agent", false, one, actors.CallerChild, messages.DelegatedCaller},
		{"Q-044 the live root", false, one, actors.CallerRoot, ""},
		{"Q-040 the caller comes before the intents", false, []*messages.Question{question("q", intent("none"))}, actors.CallerChild, messages.DelegatedCaller},
		{"Q-045 approve is none of the options", false, []*messages.Question{question("q", intent("maybe"), detailed)}, actors.CallerRoot, messages.BadIntent},
		{"Q-045 no options at all", false, []*messages.Question{{Id: "q", Intent: &messages.Intent{Approve: ""}, Detail: &detail}}, actors.CallerRoot, messages.BadIntent},
		{"Q-045 no detail", false, []*messages.Question{question("q", intent("yes"))}, actors.CallerRoot, messages.BadIntent},
		{"Q-045 an empty detail is present", false, []*messages.Question{question("q", intent("yes"), func(q *messages.Question) { q.Detail = &empty })}, actors.CallerRoot, ""},
		{"Q-035 a plan review", false, []*messages.Question{question("q", intent("yes"), detailed)}, actors.CallerRoot, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := actors.CheckAsk(tt.aborted, tt.questions, tt.caller)
			if tt.want == "" {
				require.Nil(t, err)
				return
			}
			require.NotNil(t, err)
			require.Equal(t, tt.want, err.Code)
		})
	}
	t.Run("Q-045 question by question, first the label, then the detail", func(t *testing.T) {
		err := actors.CheckAsk(false, []*messages.Question{question("first", intent("yes")), question("second", intent("none"), detailed)}, actors.CallerRoot)
		require.Contains(t, err.Text, "question first ")
		require.Contains(t, err.Text, "detail")
	})
	t.Run("Q-044 a child is told what to do instead", func(t *testing.T) {
		require.Contains(t, actors.CheckLiveRoot(actors.CallerChild).Text, "final result")
	})
}

func TestChecksOfAskTimed(t *testing.T) {
	for _, tt := range []struct {
		name       string
		ms         int64
		ok         bool
		caller     actors.Caller
		registered bool
		want       messages.Code
	}{
		{"Q-061 zero", 0, true, actors.CallerStale, true, messages.BadTimeout},
		{"Q-061 negative", -1, true, actors.CallerRoot, false, messages.BadTimeout},
		{"Q-061 over the limit", 2147483648, true, actors.CallerRoot, false, messages.BadTimeout},
		{"Q-061 no whole number, before everything else", 1, false, actors.CallerChild, true, messages.BadTimeout},
		{"Q-061 the smallest", 1, true, actors.CallerRoot, false, ""},
		{"Q-061 the largest", 2147483647, true, actors.CallerRoot, false, ""},
		{"Q-062 a child, before a registered wait", 1, true, actors.CallerChild, true, messages.DelegatedCaller},
		{"Q-060 a stale caller, before a registered wait", 1, true, actors.CallerStale, true, messages.CallerNotLive},
		{"Q-063 a registered wait", 1, true, actors.CallerRoot, true, messages.DuplicateWait},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := actors.CheckAskTimed(tt.ms, tt.ok, tt.caller, tt.registered)
			if tt.want == "" {
				require.Nil(t, err)
				return
			}
			require.NotNil(t, err)
			require.Equal(t, tt.want, err.Code)
		})
	}
}

func TestSettle(t *testing.T) {
	failed := func(c messages.Code) actors.Outcome {
		return actors.Outcome{Kind: actors.OutcomeFailed, Err: messages.Refuse(c, "so it says")}
	}
	kind := func(k actors.OutcomeKind) actors.Outcome { return actors.Outcome{Kind: k} }
	const blocking, timed = false, true
	for _, tt := range []struct {
		name  string
		timed bool
		out   actors.Outcome
		want  actors.ResultKind
		code  messages.Code
	}{
		{"Q-046 the first answer is returned", blocking, kind(actors.OutcomeAnswered), actors.ResultAnswers, ""},
		{"Q-066 an answer in time", timed, kind(actors.OutcomeAnswered), actors.ResultAnswers, ""},
		{"Q-047 the last answerer of a blocking ask passed", blocking, kind(actors.OutcomePassed), actors.ResultError, messages.NoProvider},
		{"Q-069 a timed wait goes on when all passed", timed, kind(actors.OutcomePassed), actors.ResultNone, ""},
		{"Q-069 and when an answerer says that there is none", timed, failed(messages.NoProvider), actors.ResultNone, ""},
		{"Q-048 a coded error keeps its code", blocking, failed(messages.AskCancelled), actors.ResultError, messages.AskCancelled},
		{"Q-048 a plain error stays plain", blocking, failed(""), actors.ResultError, ""},
		{"Q-048 a blocking ask has no timeout to turn into pending", blocking, failed(messages.AskTimedOut), actors.ResultError, messages.AskTimedOut},
		{"Q-067 the host's deadline", timed, kind(actors.OutcomeDeadline), actors.ResultPending, ""},
		{"Q-067 a client's expiry", timed, failed(messages.AskTimedOut), actors.ResultPending, ""},
		{"Q-068 another failure is never pending", timed, failed(messages.AskCancelled), actors.ResultError, messages.AskCancelled},
		{"Q-068 a plain failure of a timed wait stays plain", timed, failed(""), actors.ResultError, ""},
		{"Q-049 cancelled, a blocking ask", blocking, kind(actors.OutcomeCancelled), actors.ResultError, messages.AskAborted},
		{"Q-065 cancelled, a timed wait", timed, kind(actors.OutcomeCancelled), actors.ResultError, messages.AskAborted},
		{"Q-071 disposed", timed, kind(actors.OutcomeDisposed), actors.ResultError, messages.AskAborted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := actors.Settle(tt.timed, tt.out)
			require.Equal(t, tt.want, got)
			if tt.want == actors.ResultError {
				require.Equal(t, tt.code, err.Code)
			} else {
				require.Nil(t, err)
			}
		})
	}
}
