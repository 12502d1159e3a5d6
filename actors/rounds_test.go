//go:build !race

package actors_test

// rounds multiplies the checks of a property.
const rounds = 20
