package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The life of a card, step by step: what it says after each of them (Q-175 … Q-190).
func TestCard(t *testing.T) {
	type step struct {
		at    int64
		do    string
		state string // waitState after it
		left  int64
		runs  bool
		shown bool
	}
	for name, steps := range map[string][]step{
		"nothing is shown before the frame (Q-200)":  {{0, "", "counting", 0, false, false}, {5, "tick", "counting", 0, false, false}},
		"the countdown runs (Q-176, Q-177)":          {{0, "frame", "counting", 1000, true, true}, {400, "tick", "counting", 600, true, true}},
		"a wait without end has no countdown":        {{0, "never", "counting", 0, false, false}, {9_000_000, "tick", "counting", 0, false, false}},
		"any key stops it (Q-178)":                   {{0, "frame", "counting", 1000, true, true}, {400, "key", "focused", 600, false, true}, {9000, "tick", "focused", 600, false, true}},
		"the first edit stops it for good (Q-180)":   {{0, "frame", "counting", 1000, true, true}, {400, "edit", "editing", 600, false, true}, {500, "key", "editing", 600, false, true}},
		"a key before the frame (Q-177)":             {{0, "key", "focused", 0, false, false}, {100, "frame", "focused", 1000, false, true}, {9000, "tick", "focused", 1000, false, true}},
		"an edit before the frame (Q-177)":           {{0, "edit", "editing", 0, false, false}, {100, "frame", "editing", 0, false, true}, {9000, "tick", "editing", 0, false, true}},
		"an untouched card expires (Q-182, Q-183)":   {{0, "frame", "counting", 1000, true, true}, {999, "tick", "counting", 1, true, true}, {1000, "expired", "counting", 0, false, false}, {1001, "tick", "counting", 0, false, false}},
		"continued wins over editing (Q-175)":        {{0, "frame", "counting", 1000, true, true}, {10, "edit", "editing", 990, false, true}, {20, "continued", "continued", 990, false, true}},
		"open, continued and back (Q-210)":           {{0, "continued", "continued", 0, false, false}, {1, "open", "counting", 0, false, false}},
		"a released claim shows nothing (Q-186)":     {{0, "frame", "counting", 1000, true, true}, {100, "gone", "counting", 0, false, false}},
		"a lost claim lets the host's clock run":     {{0, "frame", "counting", 1000, true, true}, {100, "lost", "counting", 900, true, true}, {600, "key", "focused", 400, true, true}, {5000, "tick", "focused", 0, true, true}},
		"of a frozen card too":                       {{0, "frame", "counting", 1000, true, true}, {100, "edit", "editing", 900, false, true}, {500, "lost", "editing", 500, true, true}, {800, "tick", "editing", 200, true, true}},
		"a deadline that has passed stays there":     {{0, "frame", "counting", 1000, true, true}, {100, "edit", "editing", 900, false, true}, {5000, "lost", "editing", 0, true, true}},
		"a claim that comes back stops it again":     {{0, "frame", "counting", 1000, true, true}, {100, "edit", "editing", 900, false, true}, {200, "lost", "editing", 800, true, true}, {500, "frame", "editing", 900, false, true}},
		"what is lost twice is lost":                 {{0, "frame", "counting", 1000, true, true}, {100, "lost", "counting", 900, true, true}, {200, "lost", "counting", 800, true, true}},
		"a claim that was never held is not lost":    {{0, "lost", "counting", 0, false, false}},
		"a closed card does not expire (Q-189)":      {{0, "frame", "counting", 1000, true, true}, {10, "close", "counting", 990, true, true}, {2000, "tick", "counting", 0, true, true}},
		"an expired card takes a late frame (Q-177)": {{0, "frame", "counting", 1000, true, true}, {1000, "expired", "counting", 0, false, false}, {1100, "frame", "counting", 1000, true, true}},
	} {
		c := newCard("open")
		for n, s := range steps {
			expired := false
			switch s.do {
			case "frame":
				c.attach(s.at, 1000, false)
			case "never":
				c.attach(s.at, 0, true)
			case "key":
				c.focus(s.at)
			case "edit":
				c.engage(s.at)
			case "gone", "lost":
				c.detach(s.at, s.do == "lost")
			case "open", "continued":
				c.project(s.do)
			case "close":
				c.close()
			case "tick", "expired":
				expired = c.tick(s.at)
			}
			require.Equal(t, s.do == "expired", expired, "%s, step %d", name, n)
			left, runs, shown := c.countdown(s.at)
			got := step{s.at, s.do, string(c.Wait()), left, runs, shown}
			require.Equal(t, s, got, "%s, step %d", name, n)
		}
	}
}
