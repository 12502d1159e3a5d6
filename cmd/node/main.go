// Package main is the command parley: the node, and the verbs that ask, answer and collect through one.
//
// It decides flags, environment, signals, exit codes and what a terminal may be shown. It never decides behaviour:
// a verb says what the Connect services can say, and serve opens the root package and waits.
//
// Called without a verb it serves.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const secondSignalAfter = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A later signal ends the process at once. Not one that comes with the first: wrappers often deliver it twice.
	context.AfterFunc(ctx, func() { time.AfterFunc(secondSignalAfter, stop) })
	os.Exit(run(ctx, os.Args[1:], newCLI()))
}
