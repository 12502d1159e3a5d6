package parley

import "testing"

// Who is left when one passes: its own watch is not somebody else.
func TestOthers(t *testing.T) {
	for _, c := range []struct {
		name  string
		seats []seat
		left  bool
	}{
		{"nobody", nil, false},
		{"only its own claim", []seat{{session: "s", claim: "mine"}}, false},
		{"its claim and its watch", []seat{{session: "s", claim: "mine"}, {}}, false},
		{"two watches", []seat{{session: "s", claim: "mine"}, {}, {session: "s"}}, true},
		{"another claim", []seat{{session: "s", claim: "mine"}, {session: "s", claim: "other"}}, true},
		{"another session's", []seat{{session: "s", claim: "mine"}, {session: "t"}, {session: "t", claim: "x"}}, false},
		{"a named client's own", []seat{{session: "s", claim: "mine", client: "ann"}, {client: "ann"}, {client: "ann", session: "s"}}, false},
		{"a named client and an unnamed watch", []seat{{session: "s", claim: "mine", client: "ann"}, {}}, true},
		{"a named client and another", []seat{{session: "s", claim: "mine", client: "ann"}, {client: "bob"}}, true},
		{"an unnamed claim and a named watch", []seat{{session: "s", claim: "mine"}, {client: "bob"}}, true},
	} {
		var p presence
		var leave []func()
		for _, s := range c.seats {
			leave = append(leave, p.take(s))
		}
		if got := p.others("s", "mine"); got != c.left {
			t.Errorf("%s: somebody left is %v", c.name, got)
		}
		if want := len(c.seats) > 0; p.anybody("s") != want {
			t.Errorf("%s: somebody is %v", c.name, !want)
		}
		for _, l := range leave {
			l()
		}
		if p.anybody("s") {
			t.Errorf("%s: a seat is left", c.name)
		}
	}
}
