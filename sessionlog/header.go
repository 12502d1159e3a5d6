package sessionlog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// The two generations of the format that this build reads (L-032). Ours is V3.
const (
	V0 = 0 // the older snapshot: chunk events, seedLength in the header
	V3 = 3 // timed questions, embedded streams, isSeeded
)

// Header is the immutable metadata of a session (L-002). It is line one of the file and not an event (L-003).
type Header struct {
	Version         int    // V0 or V3
	ID              string // the session id
	CreatedAt       int64  // epoch milliseconds, not negative
	CWD             string // working directory; empty when absent
	ParentSession   string // the session this one was forked from or spawned by; empty when absent
	IsSeeded        bool   // V3: the log starts with inherited events (L-080)
	SeedLength      *int64 // V0: how many leading events were inherited; nil when absent
	Origin          string // "" or "subagent"
	DelegationDepth int64  // 0 for a root (L-084)
	AgentPreset     string // empty when absent

	line []byte // the bytes it was read from
}

// Line returns the encoded header without its line feed: the bytes it was read from, else the keys in the order of
// L-002 behind the tag `session`. The result is read-only.
func (h Header) Line() []byte {
	if h.line != nil {
		return h.line
	}
	dst := strconv.AppendInt([]byte(`{"type":"session","version":`), int64(h.Version), 10)
	dst = appendString(append(dst, `,"id":`...), h.ID)
	dst = strconv.AppendInt(append(dst, `,"createdAt":`...), h.CreatedAt, 10)
	dst = appendField(dst, "cwd", h.CWD)
	dst = appendField(dst, "parentSession", h.ParentSession)
	if h.Version == V3 {
		dst = strconv.AppendBool(append(dst, `,"isSeeded":`...), h.IsSeeded)
	} else if h.SeedLength != nil {
		dst = strconv.AppendInt(append(dst, `,"seedLength":`...), *h.SeedLength, 10)
	}
	dst = appendField(dst, "origin", h.Origin)
	dst = strconv.AppendInt(append(dst, `,"delegationDepth":`...), h.DelegationDepth, 10)
	dst = appendField(dst, "agentPreset", h.AgentPreset)
	return append(dst, '}')
}

// Named returns the header under another id. Its other fields stay as they stand, those of no meaning to us included.
func (h Header) Named(id string) Header {
	h.ID = id
	if h.line == nil {
		return h
	}
	dst := []byte{'{'}
	for k, v := range value(h.line).members {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, k...), ':')
		if k.is("id") {
			dst = appendString(dst, id)
		} else {
			dst = append(dst, v...)
		}
	}
	h.line = append(dst, '}')
	return h
}

// appendField appends a further string member, unless it is empty.
func appendField(dst []byte, key, val string) []byte {
	if val == "" {
		return dst
	}
	dst = append(append(append(dst, `,"`...), key...), `":`...)
	return appendString(dst, val)
}

// DecodeHeader reads the header line, without its line feed, by L-031 and L-032: the version is judged before
// everything else. The header keeps line. The error is a *CorruptError or, for another version, an *UnsupportedError.
func DecodeHeader(line []byte) (Header, error) {
	corrupt := func(problem string) (Header, error) {
		return Header{}, &CorruptError{Line: 1, Seq: -1, Problem: problem, Remedy: "restore the first line from a copy of the log"}
	}
	rec, ok := parse(line)
	switch {
	case !ok && bytes.HasPrefix(line, []byte("\xEF\xBB\xBF")):
		return Header{}, &CorruptError{Line: 1, Seq: -1, Problem: "the file starts with a byte-order mark",
			Remedy: "remove its first three bytes"}
	case !ok || bytes.IndexByte(line, '\n') >= 0:
		return corrupt("the header line is not valid JSON on one line")
	case !rec.isRecord():
		return corrupt("the first line is not a session header: it is not a record")
	}
	version := rec.get("version")
	n, whole := version.whole()
	switch {
	case version.isNumber() && (!whole || n != V0 && n != V3):
		return Header{}, unsupportedVersion(rec, version, n, whole) // before every other check, the tag included
	case !rec.get("type").is("session"):
		return corrupt(`the first line is not a session header: its type must be "session"`)
	case !version.isNumber():
		return corrupt("the first line is not a session header: version must be a number")
	}
	h, err := decodeHeaderFields(rec, int(n))
	if err != nil {
		return corrupt("the first line is not a session header: " + err.Error())
	}
	h.line = line
	return h, nil
}

func unsupportedVersion(rec, version value, n int64, whole bool) error {
	age, remedy := "older than", "open it with the build that wrote it and export it from there"
	switch {
	case !whole:
		age, remedy = "none of", "check what wrote the file"
	case n > V3:
		age, remedy = "newer than", "upgrade Parley to open it"
	case n > V0:
		age = "between"
	}
	return &UnsupportedError{Line: 1, Seq: -1, Remedy: remedy,
		Problem: fmt.Sprintf("session %s uses log format v%s, %s the formats v%d and v%d that this build reads",
			rec.get("id"), version, age, V0, V3)}
}

func decodeHeaderFields(rec value, version int) (Header, error) {
	h := Header{Version: version}
	var err error
	var sawID, sawCreated, sawDepth, sawSeeded bool
	for k, v := range rec.members {
		var ok bool
		switch key, _ := k.str(); key {
		case "type", "version":
			continue
		case "id":
			h.ID, ok = v.str()
			sawID = ok
		case "createdAt":
			h.CreatedAt, ok = v.count()
			sawCreated = ok
		case "cwd":
			h.CWD, ok = v.str()
		case "parentSession":
			h.ParentSession, ok = v.str()
		case "origin":
			h.Origin, ok = v.str()
			ok = ok && h.Origin == "subagent"
		case "delegationDepth":
			h.DelegationDepth, ok = v.count()
			sawDepth = ok
		case "agentPreset":
			h.AgentPreset, ok = v.str()
		case "sandboxMode", "approvalPolicy":
			return Header{}, fmt.Errorf("it uses the retired field %s", key)
		case "seedLength":
			var n int64
			n, ok = v.count()
			h.SeedLength = &n
			ok = ok && version == V0
		case "isSeeded":
			h.IsSeeded = v.isTrue()
			ok = version != V3 || h.IsSeeded || v.isFalse()
			sawSeeded = ok
		default:
			ok = version == V0 // v0 keeps unknown fields out and accepts the file; v3 refuses them
		}
		if !ok && err == nil {
			err = fmt.Errorf("the field %s is not valid in format v%d", k, version)
		}
	}
	switch {
	case err != nil:
		return Header{}, err
	case !sawID:
		return Header{}, errors.New("id is missing")
	case !sawCreated:
		return Header{}, errors.New("createdAt is missing")
	case !sawDepth:
		return Header{}, errors.New("delegationDepth is missing")
	case version == V3 && !sawSeeded:
		return Header{}, errors.New("isSeeded is missing")
	}
	if version == V0 {
		h.IsSeeded = false
	}
	return h, nil
}
