package parley

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// newID draws an id that nobody has used: a readable prefix and 100 bits, as
// letters that can be read aloud.
func newID(kind string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return kind + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:])[:20])
}
