package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/simulation"
)

// small is a plan that can be run.
func small() *simulation.Plan {
	return &simulation.Plan{Hosts: 1, For: time.Second, Sessions: []simulation.SessionPlan{{Name: "s1"}},
		Rules: simulation.RulesPlan{Timeout: 3 * time.Second},
		Parties: []simulation.PartyPlan{{Kind: simulation.AgentParty, Name: "bot", Session: "s1", Root: "r1",
			Acts: []simulation.Act{{Verb: "ask", Call: "q1", For: 2 * time.Second}}}}}
}

// A plan written in Go is held against what a script is held against, and
// nothing of one that cannot be run is run.
func TestPlansThatCannotBeRun(t *testing.T) {
	require.NoError(t, small().Validate())
	for text, change := range map[string]func(p *simulation.Plan){
		"plan: it has 0 hosts, and may have 1 to 9":                                                                                   func(p *simulation.Plan) { p.Hosts = 0 },
		"plan: it has no session; one is `session s1 on h1`":                                                                          func(p *simulation.Plan) { p.Sessions = nil },
		"plan: for -1s is too long or too short: 0s to 24h":                                                                           func(p *simulation.Plan) { p.For = -time.Second },
		"plan: timeout 1.5s: a question's timeout is in whole seconds":                                                                func(p *simulation.Plan) { p.Rules.Timeout = 1500 * time.Millisecond },
		"plan: drop=2000: a rate is 0 to 1000, in thousandths":                                                                        func(p *simulation.Plan) { p.Network.Drop = 2000 },
		"plan: delay 3s..1s: the longest is shorter than the shortest":                                                                func(p *simulation.Plan) { p.Network.DelayMin, p.Network.DelayMax = 3*time.Second, time.Second },
		"plan: lose 0: what is named is counted from 1":                                                                               func(p *simulation.Plan) { p.Network.Lose = []int{0} },
		"plan: a choice in Schedule.Choose is not of a number from 1 for one from 0":                                                  func(p *simulation.Plan) { p.Schedule.Choose = map[int]int{0: 1} },
		`plan: session "s1": there are two sessions s1`:                                                                               func(p *simulation.Plan) { p.Sessions = append(p.Sessions, p.Sessions[0]) },
		`plan: session "s1": there is no host h3: hosts says 1`:                                                                       func(p *simulation.Plan) { p.Sessions[0].Host = 2 },
		`plan: party "bot": there is no session s9`:                                                                                   func(p *simulation.Plan) { p.Parties[0].Session = "s9" },
		`plan: party "bot": "robot" is no kind of a party: it may be agent, person or client`:                                         func(p *simulation.Plan) { p.Parties[0].Kind = "robot" },
		`plan: party "bot": the name bot is taken`:                                                                                    func(p *simulation.Plan) { p.Parties = append(p.Parties, p.Parties[0]) },
		`plan: party "disk": the name disk is taken`:                                                                                  func(p *simulation.Plan) { p.Parties[0].Name = "disk" },
		`plan: party "bot": "" is no name of an agent's root: 1 to 40 of a-z A-Z 0-9 . _ - '`:                                         func(p *simulation.Plan) { p.Parties[0].Root = "" },
		`plan: party "bot": there is no host -1: they are counted from 0`:                                                             func(p *simulation.Plan) { p.Parties[0].Host = -1 },
		`plan: party "bot", act 1: for 1.5s: a question's timeout is in whole seconds`:                                                func(p *simulation.Plan) { p.Parties[0].Acts[0].For = 1500 * time.Millisecond },
		`plan: party "bot", act 1: ask: the name of a call is wanted: 1 to 40 of a-z A-Z 0-9 . _ - '`:                                 func(p *simulation.Plan) { p.Parties[0].Acts[0].Call = "" },
		`plan: party "bot", act 1: ask q1 with "care"; it may be with legacy, watched, two, absent, anew, live, hurried, joined by +`: func(p *simulation.Plan) { p.Parties[0].Acts[0].With = "care" },
		`plan: fault 1: there is no agent, person or client nobody`: func(p *simulation.Plan) {
			p.Faults = []simulation.FaultPlan{{What: "kill", Party: "nobody"}}
		},
		`plan: fault 1: there is no session s9`: func(p *simulation.Plan) {
			p.Faults = []simulation.FaultPlan{{What: "move", Session: "s9"}}
		},
		`plan: fault 1: a host always hears itself: name two`: func(p *simulation.Plan) {
			p.Faults = []simulation.FaultPlan{{What: "partition"}}
		},
	} {
		p := small()
		change(p)
		r, err := simulation.Try(p, simulation.Options{})
		require.EqualError(t, err, text)
		require.Nil(t, r)
		require.PanicsWithError(t, text, func() { simulation.Run(p, simulation.Options{}) })
		_, err = simulation.Shrink(t.Context(), p, simulation.ShrinkOptions{})
		require.EqualError(t, err, text)
	}
}

func TestProgramsAreForSomebody(t *testing.T) {
	_, err := simulation.Try(small(), simulation.Options{Programs: map[string]simulation.Program{"bod": func(*simulation.Loop) {}}})
	require.EqualError(t, err, `plan: there is a program for "bod", and no agent, person or client of that name`)
	_, err = simulation.Try(small(), simulation.Options{Programs: map[string]simulation.Program{"bot": nil}})
	require.EqualError(t, err, `plan: the program for "bot" is nil`)
}
