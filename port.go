package parley

import (
	"context"

	"github.com/parleyrun/parley/gateway"
	"github.com/parleyrun/parley/messages"
	"github.com/parleyrun/parley/query"
)

// port is the node as its doors see it: raw commands and replies. It keeps them
// out of the public methods, which are typed.
type port struct{ node *Node }

var _ gateway.Port = port{}

func (p port) Do(ctx context.Context, cmd messages.Command) (messages.Reply, error) {
	return p.node.request(ctx, cmd)
}

func (p port) OpenClaim(session, callID, client string) gateway.Claim {
	return p.node.openHold(session, callID, client)
}

func (p port) ReleaseClaim(session, callID, name string) { p.node.releaseClaim(session, callID, name) }

func (p port) Watch(ctx context.Context, req *messages.WatchQuestionsRequest, mayAnswer bool, send func(*messages.WatchQuestionsResponse) error) error {
	return p.node.watch(ctx, req, mayAnswer, send)
}

func (p port) Views() *query.Views { return p.node.views }

func (p port) Past() gateway.Past { return p.node.past }

func (p port) Counters() []gateway.Counter {
	s := p.node.sys.Snapshot()
	return []gateway.Counter{
		{Name: "commands_total", Help: "Commands answered or taken up.", Value: s.Turns},
		{Name: "appends_total", Help: "Batches handed to the journal.", Value: s.Appends},
		{Name: "refusals_total", Help: "Commands answered with a refusal or a fault.", Value: s.Refusals},
		{Name: "restarts_total", Help: "Restarts after a crash.", Value: s.Restarts},
		{Name: "quarantines_total", Help: "Sessions taken out of service.", Value: s.Quarantined},
		{Name: "claims_total", Help: "Claims opened.", Value: s.Claimed},
		{Name: "sessions", Help: "Sessions in memory.", Gauge: true, Value: s.Sessions},
		{Name: "claims", Help: "Claims held.", Gauge: true, Value: s.Claims},
		{Name: "callers", Help: "Callers that wait for an answer.", Gauge: true, Value: s.Callers},
	}
}
