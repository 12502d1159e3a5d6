package main

import (
	"context"
	"net"

	"github.com/parleyrun/parley/messages"
)

// host is the node as serve sees it.
type host interface {
	// Serve answers on the listener until the context ends; waits stay open in the log.
	Serve(ctx context.Context, listener net.Listener) error
	Close() error
}

// open opens the root package.
func open(context.Context, serving) (host, error) {
	return nil, refuse(messages.Unavailable, "build it", "the node is not built yet")
}
