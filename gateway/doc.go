// Package gateway is who may speak: the doors of a node on one HTTP port.
// Connect, gRPC and gRPC-Web speak the services of package messages, with
// gRPC's reflection and health; people answer on the page /answer; agents that
// speak MCP come in at /mcp; beside them are /healthz and /metrics.
//
// It decides who is let in (token and role, Origin, Host, sizes), what a
// request must look like, how a refusal is said at each door, and when a client
// that takes nothing is cut off. It never decides what a command leads to:
// everything goes through one small Port, and what is shown comes from package
// query.
package gateway
