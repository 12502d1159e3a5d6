package parley

// LiveSessions counts the sessions in memory.
func (n *Node) LiveSessions() int64 { return n.sys.Snapshot().Sessions }
