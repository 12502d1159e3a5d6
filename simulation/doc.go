// Package simulation runs the production machines, shell, journal contract and
// wire codec in a world that is one goroutine: hosts, a network between them, a
// disk, agents and people. A seed decides everything that a real world leaves
// open: which message is next, how long it travels, what is lost or repeated,
// which host crashes before or after a commit. The same seed gives the same
// trace, byte for byte.
//
// It decides what goes wrong, and whether a promise was kept. It never decides
// what a machine does, and never knows one from inside: what it checks is what
// an outsider was told and what the journal holds.
package simulation
