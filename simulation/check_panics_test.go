package simulation

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

// spiked is a command that no door can take.
type spiked struct{ *messages.SteerRequest }

func (spiked) GetSession() string { panic("planted") }

// An actor that panics is started again, and whoever asked is told: little else
// shows it. The breach says whose panic it was, where and when.
func TestAnActorThatPanicsIsABrokenPromise(t *testing.T) {
	p, err := ParseScript(honest)
	require.NoError(t, err)
	w := newWorld(p, Options{Silent: true})
	w.start()
	for w.now < 1500 && w.Step() {
		continue
	}
	told := ""
	w.hosts[0].sys.Call(spiked{}, func(m messages.Message) { told = brief(m) })
	for w.now < p.For.Milliseconds() && w.Step() {
		continue
	}
	w.heal()
	for !w.spent() && !w.atRest() && w.Step() {
		continue
	}
	require.Contains(t, told, "BUG")
	failures := w.check()
	w.close()
	at := slices.IndexFunc(failures, func(f Failure) bool { return f.Invariant == "no actor panics" })
	require.GreaterOrEqual(t, at, 0)
	require.Regexp(t, `^door of h1 panicked at \d+ over \*actors\.Envelope: planted; in simulation\.spiked\.GetSession \(check_panics_test\.go:\d+\), called by actors\.`, failures[at].Text)
	require.Equal(t, w.History.Panics[0].Line, failures[at].Line)
	require.Positive(t, failures[at].Line)
}
