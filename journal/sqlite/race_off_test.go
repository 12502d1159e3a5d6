//go:build !race

package sqlite

// boundaryStride: power is lost at every boundary.
const boundaryStride = 1
