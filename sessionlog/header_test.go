package sessionlog

import "testing"

// L-002: a header under another name keeps its order and the fields that mean nothing to us.
func TestANamedHeaderKeepsItsOtherFields(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"session","version":0,"id":"a","createdAt":1,"x":{"id":"a"},"delegationDepth":0}`:                   `{"type":"session","version":0,"id":"b\"","createdAt":1,"x":{"id":"a"},"delegationDepth":0}`,
		`{ "delegationDepth" : 0, "id":"a", "type":"session","version":3,"createdAt":1,"isSeeded":false,"cwd":"é" }`: `{"delegationDepth":0,"id":"b\"","type":"session","version":3,"createdAt":1,"isSeeded":false,"cwd":"é"}`,
	} {
		h, err := DecodeHeader([]byte(line))
		noError(t, err)
		named := h.Named(`b"`)
		equal(t, want, string(named.Line()))
		again, err := DecodeHeader(named.Line())
		noError(t, err)
		equal(t, named, again)
		equal(t, line, string(h.Line()))
	}
	fresh := Header{Version: V3, ID: "a"}
	equal(t, `{"type":"session","version":3,"id":"b","createdAt":0,"isSeeded":false,"delegationDepth":0}`, string(fresh.Named("b").Line()))
}
