package parley

// LiveSessions counts the sessions in memory.
func (n *Node) LiveSessions() int64 { return n.sys.Snapshot().Sessions }

// Inflate makes a plain log of a compressed one.
var Inflate = inflate
