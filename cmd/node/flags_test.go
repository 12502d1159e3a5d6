package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

func TestTimeouts(t *testing.T) {
	for text, want := range map[string]int64{"90s": 90, "5m": 300, "1h30m": 5400, "never": -1, "1s": 1, "2147483s": 2147483} {
		if got, err := parseTimeout("--timeout", text); got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for text, remedy := range map[string]string{
		"90":       "--timeout 90s; a bare 90 could be seconds or minutes",
		"0.5":      "--timeout 0.5s; a bare 0.5 could be seconds or minutes",
		"0":        "give whole seconds from 1s to 2147483s, or never",
		"1500ms":   "give whole seconds from 1s to 2147483s, or never",
		"-1s":      "give whole seconds from 1s to 2147483s, or never",
		"2147484s": "give whole seconds from 1s to 2147483s, or never",
		"-1":       "--timeout -1s; a bare -1 could be seconds or minutes",
		"soon":     "write a duration such as 90s, 5m, 1h30m or never",
		"":         "write a duration such as 90s, 5m, 1h30m or never",
		"Never":    "write a duration such as 90s, 5m, 1h30m or never",
		"1e99":     "--timeout 1e99s; a bare 1e99 could be seconds or minutes",
	} {
		_, err := parseTimeout("--timeout", text)
		if err == nil {
			t.Errorf("%q was taken", text)
			continue
		}
		if got := asTrouble(err); got.remedy != remedy || got.code != codeUsage {
			t.Errorf("%q: %s: %s", text, got.code, got.remedy)
		}
	}
}

// A variable stands for a flag, and the flag wins.
func TestEnvironmentStandsForFlags(t *testing.T) {
	var s settings
	serving := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	serveFlags(serving, &s)
	serving.VisitAll(func(f *pflag.Flag) {
		if f.Name != "print-config" && !slices.ContainsFunc(variables, func(v variable) bool { return v.flag == f.Name }) {
			t.Errorf("--%s has no variable", f.Name)
		}
	})
	for _, v := range variables {
		value := "x,y"
		if f := serving.Lookup(v.flag); f != nil && f.Value.Type() == "bool" {
			value = "true"
		} else if f != nil && f.Value.Type() == "int" {
			value = "7"
		}
		c := &cli{env: func(name string) (string, bool) { return value, name == v.name }}
		set := 0
		for _, cmd := range append(c.root().Commands(), c.root()) {
			if err := cmd.ParseFlags(nil); err != nil {
				t.Fatal(err)
			}
			if err := c.fromEnvironment(cmd.Flags()); err != nil {
				t.Errorf("%s: %v", v.name, err)
			}
			if f := cmd.Flags().Lookup(v.flag); f != nil && f.Changed {
				set++
			}
		}
		if set == 0 {
			t.Errorf("%s sets --%s nowhere", v.name, v.flag)
		}
	}
	for name, says := range map[string]string{"PARLEY_NO_SEARCH": "it is neither true nor false", "PARLEY_RESULT_BYTES": "it is no number"} {
		c := &cli{env: func(asked string) (string, bool) { return "often", asked == name }}
		if err := c.fromEnvironment(serving); err == nil || asTrouble(err).text != name+"=\"often\": "+says {
			t.Errorf("%s: %v", name, err)
		}
	}
	runCLI(t, "http://127.0.0.1:1", "", "questions", "--node", "ftp://x").
		want(t, 2, "", "error: --node \"ftp://x\" is no address of a node\nnext:  give it as http://host:port\n")
}

func TestNonLoopbackNeedsAToken(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:7410", "localhost:0", "[::1]:80", "127.9.9.9:1"} {
		if err := guarded(listen, false); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
	for _, listen := range []string{":7410", "0.0.0.0:7410", "[::]:7410", "example.com:80", "192.168.0.2:1"} {
		if guarded(listen, false) == nil {
			t.Errorf("%s was taken without a token", listen)
		}
		if err := guarded(listen, true); err != nil {
			t.Errorf("%s with a token: %v", listen, err)
		}
	}
}
