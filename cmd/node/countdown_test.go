package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCountdownWords(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		waited, left  time.Duration
		endless, lost bool
		want          string
	}{
		{0, 90 * s, false, false, "1m30s left"},
		{s, 500 * time.Millisecond, false, false, "1s left"},
		{s, -s, false, false, "0s left"},
		{62 * s, -2 * s, false, false, "held by a person who has it open; waiting for 1m02s"},
		{62 * s, 0, true, false, "waiting for 1m02s, without end"},
		{s, 8 * s, false, true, "8s left; the node does not answer"},
		{s, -8 * s, false, true, "the node does not answer"},
		{s, 0, true, true, "the node does not answer"},
	} {
		require.Equal(t, c.want, countdownWords(c.waited, c.left, c.endless, c.lost))
	}
}
