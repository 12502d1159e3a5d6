package conformance

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The counts are the promise: exactly the vectors of D1 and D2 are improved on.
func TestPublicVectorsOfTheCore(t *testing.T) {
	for _, want := range []struct {
		file             string
		passed, improved int
	}{
		{"projection", 474, 0},
		{"timed-wait", 300, 0},
		{"foreground", 182, 13},
		{"late-answer", 132, 10},
		{"card", 300, 0},
		{"presentation", 198, 0},
	} {
		t.Run(want.file, func(t *testing.T) {
			sum, err := Run(os.Stderr, []string{"testdata/" + want.file + ".jsonl"}, Options{})
			require.NoError(t, err)
			require.Equal(t, [3]int{want.passed, 0, want.improved}, [3]int{sum.Passed, sum.Failed, sum.Improved})
		})
	}
}
