package simulation_test

import (
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
	l.Attach()
	if answer, pending := l.Ask("deploy", "May I deploy?", 2*time.Second, "Yes", "No"); !pending {
		d.act(l, "deploy", answer)
	}
	for range 20 {
		replies, token := l.Collect(d.token)
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
	l.Answer("deploy", "Yes")
}

// A loop that deals with a reply before it notes that it has deals with it
// twice, when it crashes at the wrong moment: the reply is listed again, as it
// must be. A few seeds find that; with a note first, no seed does.
func Example() {
	for _, careful := range []bool{false, true} {
		twice := 0
		for seed := range uint64(200) {
			d := &deployer{careful: careful, noted: map[string]bool{}}
			simulation.Run(&simulation.Plan{
				Seed: seed, Hosts: 1, For: 20 * time.Second, Sessions: []simulation.SessionPlan{{Name: "s1"}},
				Network: simulation.NetworkPlan{DelayMax: 3 * time.Second},
				Rules:   simulation.RulesPlan{Timeout: 2 * time.Second},
				Parties: []simulation.PartyPlan{
					{Kind: simulation.AgentParty, Name: "agent", Session: "s1", Root: "bot"},
					{Kind: simulation.PersonParty, Name: "ann", Session: "s1"}},
				Faults: []simulation.FaultPlan{{At: time.Duration(seed%20) * time.Second, What: "kill", Party: "agent", For: time.Second}},
			}, simulation.Options{Programs: map[string]simulation.Program{"agent": d.run, "ann": answers}})
			if d.deploys > 1 {
				twice++
			}
		}
		fmt.Println("careful:", careful, "deployed twice:", twice > 0)
	}
	// Output:
	// careful: false deployed twice: true
	// careful: true deployed twice: false
}
