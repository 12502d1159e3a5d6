// Package query is what can be asked: live views of questions, sessions, logs
// and inboxes, read straight from the journal.
//
// It decides how a question looks to people (its state, its text, how it
// ended) and where a watch goes on. It never writes, never activates a session
// and never fences an owner, and it never trusts stored text: what could move
// a terminal's cursor or turn a line around is taken out on the way to people.
// One damaged session shows as a row with a code and spoils nobody's list.
package query
