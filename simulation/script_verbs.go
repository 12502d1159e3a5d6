package simulation

import "strings"

// verb is what the trace language knows of one that parties act by.
type verb struct {
	name  string
	kind  PartyKind
	call  bool     // it is done to a call
	span  string   // the word before its time: for, within; "-": none; "+": none, and a sign; "": it takes no time
	ever  bool     // the time may be without end, and is in whole seconds
	in    bool     // a program may do it, inside of a call
	words []string // what may follow "with"
	says  string
}

var asking = []string{"legacy", "watched", "two", "absent", "anew", "live", "hurried"}

// verbs are those of the language, in the order of its page.
var verbs = []verb{
	{name: doWait, kind: AgentParty, span: "-", says: "does nothing for a time"},
	{name: doUntil, kind: AgentParty, span: "-", says: "does nothing until this time of the world"},
	{name: doTurn, kind: AgentParty, words: []string{"alone"}, says: "begins a turn and its first step, or the turn alone"},
	{name: doStep, kind: AgentParty, says: "ends the step, if one is open, and begins the next: what waits is admitted with it"},
	{name: doEnd, kind: AgentParty, says: "ends the step and the turn"},
	{name: doAbort, kind: AgentParty, says: "ends the turn, and what is open in it"},
	{name: doAsk, kind: AgentParty, call: true, span: "for", ever: true, in: true, words: asking, says: "asks with this timeout, and waits for the result"},
	{name: doStart, kind: AgentParty, call: true, span: "for", ever: true, in: true, words: asking, says: "asks, and goes on"},
	{name: doAgain, kind: AgentParty, call: true, span: "for", ever: true, in: true, words: asking, says: "asks the same under a new attempt, as a client that lost its response"},
	{name: doAwait, kind: AgentParty, call: true, says: "waits for the result of what was started"},
	{name: doLeave, kind: AgentParty, call: true, says: "stops listening"},
	{name: doUnhear, kind: AgentParty, call: true, says: "its request ends before its result"},
	{name: doFinish, kind: AgentParty, call: true, says: "the program in this call ends, and its requests with it"},
	{name: doWithdraw, kind: AgentParty, call: true, says: "takes the question back"},
	{name: doTake, kind: AgentParty, says: "admits what waits, outside of a turn"},
	{name: doMark, kind: AgentParty, says: "marks what waits for its turn, and does not admit it yet"},
	{name: doAdmit, kind: AgentParty, says: "admits what it has marked"},
	{name: doClaim, kind: AgentParty, says: "marks what waits for its turn, and admits it"},
	{name: doCollect, kind: AgentParty, words: []string{"foreign"}, says: "lists late replies, and acknowledges the list before; or shows the token of a list of another session"},
	{name: doForget, kind: AgentParty, says: "lists late replies, and loses the list"},
	{name: doReceive, kind: AgentParty, call: true, says: "acknowledges the call: its result has arrived"},
	{name: doListen, kind: AgentParty, span: "for", says: "waits until a message waits, but no longer"},
	{name: doAttach, kind: AgentParty, says: "attaches again"},
	{name: doCrash, kind: AgentParty, span: "for", says: "its process dies, and comes back after a time"},

	{name: doWait, kind: PersonParty, span: "-", says: "does nothing for a time"},
	{name: doUntil, kind: PersonParty, span: "-", says: "does nothing until this time of the world"},
	{name: doFind, kind: PersonParty, call: true, span: "within", says: "looks until the call can be answered"},
	{name: doOpen, kind: PersonParty, call: true, says: "opens a claim, and waits until it holds"},
	{name: doRelease, kind: PersonParty, call: true, says: "lets the claim go"},
	{name: doCut, kind: PersonParty, call: true, says: "loses the claim's stream"},
	{name: doSubmit, kind: PersonParty, call: true, words: []string{"reject", "two", "new", "shared"}, says: "answers; the same answer again, unless it is new; under an id that all share"},
	{name: doExpire, kind: PersonParty, call: true, says: "says that its countdown has ended"},
	{name: doPass, kind: PersonParty, call: true, says: "hands the question on"},
	{name: doDismiss, kind: PersonParty, call: true, says: "closes a blocking question"},
	{name: doTakeBack, kind: PersonParty, call: true, says: "takes the reply that its late answer became back"},
	{name: doSteer, kind: PersonParty, words: []string{"later", "long"}, says: "says something that no question asked for, for the next step; or for the next turn; or at length"},
	{name: doMove, kind: PersonParty, says: "goes on at the next host"},
	{name: doCrash, kind: PersonParty, span: "for", says: "its process dies, and comes back after a time"},

	{name: doWait, kind: ClientParty, span: "-", says: "does nothing for a time"},
	{name: doUntil, kind: ClientParty, span: "-", says: "does nothing until this time of the world"},
	{name: doFind, kind: ClientParty, call: true, span: "within", says: "looks until its card can be answered in this tab"},
	{name: doFocus, kind: ClientParty, call: true, says: "comes to the card: its countdown stops"},
	{name: doBlur, kind: ClientParty, call: true, says: "leaves it: its countdown goes on"},
	{name: doEdit, kind: ClientParty, call: true, words: []string{"part", "pick", "skip"}, says: "writes an answer to each question, or to the one of this page; picks an option; skips"},
	{name: doTime, kind: ClientParty, call: true, says: "takes as long as it likes"},
	{name: doSubmit, kind: ClientParty, call: true, says: "sends what the card has, by the way that the card knows, and goes on"},
	{name: doHide, kind: ClientParty, call: true, says: "closes the card; a blocking question is cancelled with it"},
	{name: doReopen, kind: ClientParty, call: true, says: "shows it again, or what became of it"},
	{name: doPass, kind: ClientParty, call: true, says: "hands the question on"},
	{name: doTab, kind: ClientParty, says: "opens another tab, and goes to it"},
	{name: doNext, kind: ClientParty, says: "goes to the next tab"},
	{name: doClose, kind: ClientParty, says: "closes the tab: what it holds is handed on"},
	{name: doReload, kind: ClientParty, words: []string{"lost"}, says: "loads the page again, with the drafts that were kept, or with all of them lost"},
	{name: doOffline, kind: ClientParty, span: "for", says: "is cut off from every host"},
	{name: doClock, kind: ClientParty, span: "+", says: "its wall clock jumps; `-TIME` back"},
	{name: doTakeBack, kind: ClientParty, call: true, says: "takes the reply that its late answer became back"},
	{name: doMove, kind: ClientParty, says: "goes on at the next host"},
	{name: doCrash, kind: ClientParty, span: "for", says: "its process dies, and comes back after a time with its tabs"},
}

// verbOf looks a verb up; one that is not there takes nothing.
func verbOf(kind PartyKind, name string) verb {
	for _, v := range verbs {
		if v.kind == kind && v.name == name {
			return v
		}
	}
	return verb{name: name, kind: kind}
}

func verbNames(kind PartyKind) (names []string) {
	for _, v := range verbs {
		if v.kind == kind {
			names = append(names, v.name)
		}
	}
	return names
}

// form is how a line with the verb is written.
func (v verb) form() string {
	f := v.name
	if v.call {
		f += " CALL"
	}
	switch {
	case v.span == "-":
		f += " TIME"
	case v.span == "+":
		f += " +TIME"
	case v.ever:
		f += " for SECONDS|ever"
	case v.span != "":
		f += " " + v.span + " TIME"
	}
	if v.in {
		f += " [in CALL]"
	}
	if len(v.words) > 0 {
		f += " [with " + strings.Join(v.words, "+") + "]"
	}
	return f
}
