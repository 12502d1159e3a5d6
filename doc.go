/*
Package parley carries questions out of agent sessions and answers back in.

An agent asks a person something. The foreground call waits only so long; the
question outlives the call; the answer, whenever it comes and from wherever,
reaches the agent exactly once.

	agent ──Ask──▶ door ──command──▶ session actor ──events──▶ journal
	  ▲                              wait·claim·inbox             │
	  │                                   │ replies, once durable │
	  └──Answered, Pending, messages──────┤                       │
	                                      │                       │
	person ──Submit, AttachWait──▶ door ──┘                       │
	  ▲                                                           │
	  └──Questions, Watch───── query ◀────── reads, tails ────────┘

Open makes a node in your own program; its methods are what every door can do.
Serve puts the Connect door on a port. The examples of this package are its
documentation: read them in the order of their file.

To read the code, follow a question: messages (what may be said), actors (what
is decided), supervisor (who runs it), journal and sessionlog (what is
remembered and how it is written), query (what can be asked), gateway (who may
speak).

This package decides how the rooms are joined, and how their words look in Go.
It never decides who wins, what is recorded or what a person is shown.
*/
package parley
