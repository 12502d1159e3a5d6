// Package panics is a table of everything that can crash: each kind of actor ×
// each kind of message it takes × each moment of its turn, read from the source
// of the machines, so that a new message is in it without anybody remembering.
//
// A row runs one scenario through the production shell on a journal in memory
// and makes the named machine panic at the named moment, once or twice. The
// package decides whether what callers were told is what the log says, from a
// ledger kept outside; it never reads a machine's state, and it decides no rule.
package panics
