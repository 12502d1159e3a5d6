package simulation_test

import (
	"context"
	"fmt"
	"time"

	"github.com/parleyrun/parley/simulation"
)

// deployer is somebody's agent: it asks whether it may deploy, goes on when
// nobody answers, and deploys when a late yes comes. Its notes and what it
// deployed outlive its process.
type deployer struct {
	careful bool
	token   string
	noted   map[string]bool // replies that it has dealt with
	deploys int
}

func (d *deployer) run(l *simulation.Loop) {
	if err := l.Attach(); err != nil {
		l.Log(err.Error())
		return
	}
	answer, pending, err := l.Ask("deploy", "May I deploy?", 2*time.Second, "Yes", "No")
	switch {
	case err != nil:
		l.Log(err.Error())
	case !pending:
		d.act(l, "deploy", answer)
	}
	for range 20 {
		replies, token, err := l.Collect(d.token)
		if err != nil {
			l.Log(err.Error()) // the token is still the one that it had
		}
		for _, r := range replies {
			d.act(l, r.Call, r.Answer)
		}
		d.token = token
		l.Sleep(time.Second)
	}
}

func (d *deployer) act(l *simulation.Loop, call, answer string) {
	if d.careful {
		if d.noted[call] {
			return
		}
		d.noted[call] = true
	}
	if answer == "Yes" {
		d.deploys++
		l.Log("deploys")
		l.Sleep(3 * time.Second) // deploying takes a while; its process may die in it
	}
}

// answers is a person who says yes, sooner or later.
func answers(l *simulation.Loop) {
	l.Sleep(time.Second)
	if err := l.Answer("deploy", "Yes"); err != nil {
		l.Log(err.Error()) // such as SETTLED: somebody else was first
	}
}

// deployed is a plan in which the agent's process dies once.
func deployed(seed uint64) *simulation.Plan {
	return &simulation.Plan{
		Seed: seed, Hosts: 1, For: 20 * time.Second, Sessions: []simulation.SessionPlan{{Name: "s1"}},
		Network: simulation.NetworkPlan{DelayMax: 3 * time.Second},
		Rules:   simulation.RulesPlan{Timeout: 2 * time.Second},
		Parties: []simulation.PartyPlan{
			{Kind: simulation.AgentParty, Name: "agent", Session: "s1", Root: "bot"},
			{Kind: simulation.PersonParty, Name: "ann", Session: "s1"}},
		Faults: []simulation.FaultPlan{{At: time.Duration(seed%20) * time.Second, What: "kill", Party: "agent", For: time.Second}},
	}
}

// programs are a new agent and a person, and the promise that is the agent's own.
func programs(careful bool) simulation.Options {
	d := &deployer{careful: careful, noted: map[string]bool{}}
	return simulation.Options{
		Programs: map[string]simulation.Program{"agent": d.run, "ann": answers},
		Check: func(*simulation.History) []simulation.Failure {
			if d.deploys < 2 {
				return nil
			}
			return []simulation.Failure{{Invariant: "deployed once", Text: fmt.Sprintf("deployed %d times", d.deploys)}}
		},
	}
}

// A loop that deals with a reply before it notes that it has deals with it
// twice, when it crashes at the wrong moment: the reply is listed again, as it
// must be. A few seeds find that; with a note first, no seed does.
func Example() {
	for _, careful := range []bool{false, true} {
		twice := 0
		for seed := range uint64(200) {
			if r := simulation.Run(deployed(seed), programs(careful)); len(r.Failures) > 0 {
				twice++
			}
		}
		fmt.Println("careful:", careful, "deployed twice:", twice > 0)
	}
	// Output:
	// careful: false deployed twice: true
	// careful: true deployed twice: false
}

// Every run of a shrink gets an agent of its own: what one remembers must not
// be there in the next.
func ExampleShrink() {
	for seed := range uint64(200) {
		r, err := simulation.Shrink(context.Background(), deployed(seed), simulation.ShrinkOptions{
			Invariant: "deployed once", Fresh: func() simulation.Options { return programs(false) }})
		if err != nil {
			fmt.Println(err)
			return
		}
		if r != nil {
			fmt.Println(r.Failure)
			fmt.Println(len(r.Plan.Parties), "parties,", len(r.Plan.Faults), "fault:", r.Plan.Faults[0].What, r.Plan.Faults[0].Party)
			return
		}
	}
	// Output:
	// deployed once: deployed 2 times
	// 2 parties, 1 fault: kill agent
}
