package faultproxy

import (
	"math/rand/v2"
	"time"
)

// Draw makes up a plan with at least one fault. responseMax is how many bytes a
// response may have, so that cuts fall into all of it; longest bounds what is
// waited for.
func Draw(dice *rand.Rand, responseMax int, longest time.Duration) Plan {
	span := func() time.Duration { return time.Millisecond + time.Duration(dice.Int64N(int64(longest))) }
	var p Plan
	switch dice.IntN(7) {
	case 0, 1: // the likeliest: it is what clients on real networks meet
		p.Cut, p.CutAfter = true, dice.IntN(responseMax)
	case 2:
		p.Cut = true // the node has answered, the client sees nothing
	case 3:
		p.CutIn = span()
	case 4:
		p.Stall, p.StallAfter = span(), dice.IntN(responseMax)
	case 5:
		p.Duplicate = true
	default:
		p.Hold = span()
	}
	if dice.IntN(3) == 0 {
		p.Delay = span()
	}
	return p
}
