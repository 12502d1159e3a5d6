package supervisor

import (
	"net/url"
	"strings"
)

// Names of actors. A session id may hold any printable character; in a name it
// is percent-encoded, so that names never collide, never contain a slash of
// somebody's id, and can be turned back. Addresses carry the id as it is.
const (
	doorName    = "door"
	nurseName   = "nurse"
	peersName   = "peers"
	sweeperName = "sweeper"

	sessionPrefix = "s/"
	doorPrefix    = "door/"
	claimPrefix   = "claim/"
)

// sessionName is the name of a session's actor.
func sessionName(session string) string { return sessionPrefix + url.PathEscape(session) }

// sessionOf is its inverse. Where nothing had to be encoded the result shares
// the name's memory.
func sessionOf(name string) (session string, ok bool) {
	if name, ok = strings.CutPrefix(name, sessionPrefix); !ok {
		return "", false
	}
	session, err := url.PathUnescape(name)
	return session, err == nil
}

func isSession(name string) bool { return strings.HasPrefix(name, sessionPrefix) }
func isClaim(name string) bool   { return strings.HasPrefix(name, claimPrefix) }

// sessionOfPart cuts a part's own name off: "s/a%2Fb/wait/c1~1" → "s/a%2Fb".
func sessionOfPart(name string) string {
	if end := strings.IndexByte(name[len(sessionPrefix):], '/'); end >= 0 {
		return name[:len(sessionPrefix)+end]
	}
	return name
}
