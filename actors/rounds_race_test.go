//go:build race

package actors_test

// rounds multiplies the checks of a property; the race detector makes each ten times slower.
const rounds = 4
