// Package messages is what may be said: the commands, replies and frames of
// every door (protobuf, generated beside this file), the registry of codes and
// the limits on what a text may hold.
//
// It decides the words and never what they lead to: no rule of behaviour lives
// here, and nothing in this package does I/O or reads a clock.
package messages
