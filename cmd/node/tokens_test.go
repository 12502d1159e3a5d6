package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var roleEnv = []string{
	"PARLEY_LISTEN=127.0.0.1:0", "PARLEY_JOURNAL=memory", "PARLEY_LOG_LEVEL=debug", "PARLEY_AGENT_TOKEN=the-token-of-an-agent",
	"PARLEY_ANSWERER_TOKEN=the-token-of-an-answerer", "PARLEY_VIEWER_TOKEN=the-token-of-a-viewer", "PARLEY_TOKEN=the-token-of-an-operator",
}

// Each role does with its own token what it is for, and is told who may do the rest. No token is in anything that is printed.
func TestTokensOfRoles(t *testing.T) {
	t.Parallel()
	node := start(t, roleEnv, "serve", "--json")
	address := node.await(node.out, "address")
	address = address[strings.Index(address, "http://"):]
	address = address[:strings.Index(address, `"`)]
	as := func(role string, args ...string) ran {
		env := []string{"PARLEY_NODE=" + address}
		if role != "" {
			env = append(env, "PARLEY_TOKEN=the-token-of-"+role)
		}
		return start(t, env, args...).end()
	}
	ask := []string{"ask", "Ship it?", "--session", "demo", "--option", "Yes", "--timeout", "1s"}
	require.Equal(t, 77, as("", ask...).exit)
	require.Equal(t, 77, as("nobody-at-all", ask...).exit)
	r := as("a-viewer", ask...)
	require.Equal(t, 77, r.exit)
	require.Contains(t, r.err, "(FORBIDDEN_ROLE)")
	require.Contains(t, r.err, "agent, operator")
	require.Equal(t, 75, as("an-agent", ask...).exit)
	r = as("a-viewer", "questions")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "Ship it?")
	require.Equal(t, 77, as("a-viewer", "answer", "--option", "Yes").exit)
	require.Equal(t, 77, as("an-agent", "answer", "--option", "Yes").exit)
	require.Zero(t, as("an-answerer", "answer", "--option", "Yes").exit)
	require.Equal(t, 77, as("an-answerer", "inbox", "demo", "--admit").exit)
	require.Zero(t, as("an-operator", "inbox", "demo", "--admit").exit)
	_ = node.cmd.Process.Signal(syscall.SIGTERM)
	said := node.end()
	require.NotContains(t, said.out+said.err, "the-token-of")
	require.Contains(t, said.err, "FORBIDDEN_ROLE")

	config := start(t, roleEnv, "serve", "--print-config").end()
	require.Zero(t, config.exit, config.err)
	require.Contains(t, config.out, "viewer-token")
	require.NotContains(t, config.out+config.err, "the-token-of")
}

// A token that could be guessed, or that no header can carry, is refused by the name of its flag, and not shown.
func TestTokensAreChecked(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--token", "--agent-token", "--answerer-token", "--viewer-token"} {
		r := start(t, nil, "serve", "--listen", "127.0.0.1:0", "--journal", "memory", flag, "short").end()
		require.Equal(t, 2, r.exit, flag)
		require.Contains(t, r.err, flag+" has 5 bytes; at least 16 are needed")
		r = start(t, nil, "serve", "--listen", "127.0.0.1:0", "--journal", "memory", flag, "long-enough-but-with\na line").end()
		require.Equal(t, 2, r.exit, flag)
		require.Contains(t, r.err, flag+" holds a control character")
		require.NotContains(t, r.err, "long-enough")
	}
	var c [3]string
	c[1] = "the-token-of-an-answerer"
	require.NoError(t, checkTokens("", c))
}
