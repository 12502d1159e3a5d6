//go:build !unix

package sqlite

import "time"

func processorTime() time.Duration { return 0 }
