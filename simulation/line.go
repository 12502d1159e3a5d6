package simulation

// line is a stream from a host to a client: what is said over it arrives in
// order, and once. When something of it is lost nothing after it arrives, and
// the client finds that the stream has broken.
type line struct {
	party *party
	host  *host
	said  int
	heard int
	early map[int]func() // what overtook what was said before it
	torn  bool
	broke func()
}

func (p *party) line(h *host, broke func()) *line {
	return &line{party: p, host: h, early: map[int]func(){}, broke: broke}
}

// noticedWithin is how long a client may take to find that a stream has broken.
const noticedWithin = 2_000

// say sends the next thing.
func (l *line) say(text string, arrive func()) {
	if l.torn {
		return
	}
	l.said++
	n := l.said
	if !l.party.w.travel(l.host.name, l.party.name, text, l.party.isOff, func() { l.take(n, arrive) }) {
		l.tear()
	}
}

// take lets what has arrived be heard in its turn.
func (l *line) take(n int, arrive func()) {
	if n <= l.heard {
		return
	}
	l.early[n] = arrive
	for next := l.early[l.heard+1]; next != nil; next = l.early[l.heard+1] {
		l.heard++
		delete(l.early, l.heard)
		next()
	}
}

// tear breaks the stream. Its client finds that in time.
func (l *line) tear() {
	if l.torn {
		return
	}
	l.torn = true
	w := l.party.w
	w.after(w.dice.Int64N(noticedWithin), func() { w.soon(l.broke) })
}

// quiet: all that was said has been heard.
func (l *line) quiet() bool { return !l.torn && l.said == l.heard }
