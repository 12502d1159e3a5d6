package actors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/messages"
)

// One key is one thing: an id that queued a message cannot answer a question,
// and one that answered cannot queue a message, in one life or the next.
func TestMessageAndSubmissionIDsDoNotMeet(t *testing.T) {
	r := newRig(t)
	r.do(&messages.SteerRequest{Session: "s1", MessageId: "x", Text: "hello"})
	r.pend("c1")
	r.refused(messages.BadRequest, submitReq("c1", "x"))
	r.accepted("queued", submitReq("c1", "y"))
	r.Restart()
	r.refused(messages.BadRequest, &messages.SteerRequest{Session: "s1", MessageId: "y", Text: "hello"})
	r.refused(messages.ReplyQueued, submitReq("c1", "z"))
	again := r.accepted("queued", submitReq("c1", "y"))
	require.True(t, again.GetRepeated())
}
