//go:build race

package sqlite

// boundaryStride: with the race detector, which makes SQLite ten times slower
// and finds nothing in it, power is lost at every sixth boundary only.
const boundaryStride = 6
