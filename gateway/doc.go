// Package gateway is who may speak: the doors of a node on one HTTP port.
// Connect, gRPC and gRPC-Web speak the services of package messages; beside
// them are /healthz and /metrics.
//
// It decides who is let in (token, Origin, Host, sizes), what a request must
// look like, and how a refusal is said at each door. It never decides what a
// command leads to: everything goes through one small Port, and what is shown
// comes from package query.
package gateway
