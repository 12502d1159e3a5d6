package mcp

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// trafficOf asks the kernel about a connection; one of TLS by what is under it.
func trafficOf(c net.Conn) (out traffic) {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = over.NetConn()
	}
	conn, ok := c.(syscall.Conn)
	if !ok {
		return traffic{}
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return traffic{}
	}
	_ = raw.Control(func(fd uintptr) { // it fails on a closed one, of which nothing is known
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil { // no TCP
			return
		}
		unread, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		if err != nil {
			return
		}
		out = traffic{known: true, unread: unread, received: info.Bytes_received}
	})
	return out
}
