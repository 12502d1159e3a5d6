// Package history is past work as a model may see it: the five read-only tools
// with which an agent finds and reads earlier sessions of its own workspace.
//
// It decides what arguments mean, in which order they are checked, who may see
// which session, and what the text of a result is. It never writes, never makes
// a session live, never tells a foreign session from a missing one, and never
// hands an error of the storage below to a model as it is.
package history
