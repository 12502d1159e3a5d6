// Package mcp is the door for agents that speak the Model Context Protocol:
// the tools ask_user_question, collect_replies and withdraw_question over
// streamable HTTP and stdio, for every protocol revision that the SDK speaks.
//
// The request is not the question. What the package decides is only how long a
// client's request may wait, which session it speaks for, and whether its
// response has arrived; a request that ends early ends the foreground of its
// call, and the question goes on. What was handed to a client is on record
// before it is written, and is handed out again until it is acknowledged.
//
// It never decides what becomes of a question, never takes the transport's
// session for the conversation, and never lets an answer travel with another
// tool's result.
package mcp
