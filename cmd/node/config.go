package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	projectFile    = "parley.toml"
	configBytesMax = 1 << 20
)

// notInFiles are flags of one run, which no file should make the habit of all.
var notInFiles = []string{"help", "version", "json", "config", "print-config"}

// origin is where a value came from. The zero origin is nowhere: the default, or the command line.
type origin struct {
	variable string // the environment variable
	file     string // or the file, with the line in it
	line     int
	key      string // in the file, where it is not the flag's name
	project  bool   // the file was found in the working directory
}

func (o origin) String() string {
	if o.file != "" {
		return fmt.Sprintf("%s:%d", o.file, o.line)
	}
	return o.variable
}

// came notes where the value of a flag came from.
func (c *cli) came(flag string, o origin) {
	if c.origins == nil {
		c.origins = map[string]origin{}
	}
	c.origins[flag] = o
}

// source names the variable or the place in a file that gave a flag its value; empty when it was neither.
func (c *cli) source(flag string) string {
	o := c.origins[flag]
	if o.file != "" {
		return o.named(flag) + " in " + o.String()
	}
	return o.variable
}

// named is what a flag is called where its value came from.
func (o origin) named(flag string) string { return cmp.Or(o.key, flag) }

// named says in a text where the flags that it speaks of got their values.
func (c *cli) named(text string) string {
	for _, flag := range slices.Sorted(maps.Keys(c.origins)) {
		o, spelled := c.origins[flag], regexp.MustCompile("--"+flag+`\b`)
		if o.file == "" {
			text = spelled.ReplaceAllLiteralString(text, o.variable)
		} else if spelled.MatchString(text) {
			text = spelled.ReplaceAllLiteralString(text, o.named(flag)) + " (" + o.String() + ")"
		}
	}
	return text
}

// spelled writes what to give instead of a flag's value in the way in which it was given.
func (c *cli) spelled(remedy string) string {
	for _, flag := range slices.Sorted(maps.Keys(c.origins)) {
		if o := c.origins[flag]; o.file != "" {
			remedy = regexp.MustCompile("--"+flag+` ([^ ;]+)`).ReplaceAllString(remedy, flag+` = "$1"`)
		} else {
			remedy = regexp.MustCompile("--"+flag+`\b`).ReplaceAllLiteralString(remedy, o.variable)
		}
	}
	return remedy
}

// configFile is one that is to be read.
type configFile struct {
	path    string
	project bool
	asked   bool // by name, so that it must be there
}

// configFiles lists the files in the order in which they win.
func (c *cli) configFiles() []configFile {
	if c.config != "" {
		return []configFile{{path: c.config, asked: true}}
	}
	files := []configFile{{path: "." + string(filepath.Separator) + projectFile, project: true}}
	dir, _ := c.env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the rules say: not absolute, not used
		home, _ := c.env("HOME")
		if dir = filepath.Join(home, ".config"); !filepath.IsAbs(dir) {
			return files
		}
	}
	return append(files, configFile{path: filepath.Join(dir, "parley", "config.toml")})
}

// fromFiles sets the flags that command line and environment left alone. A file is checked whole, whatever the verb.
func (c *cli) fromFiles(cmd *cobra.Command) error {
	known := fileKeys(cmd.Root())
	for _, file := range c.configFiles() {
		text, found, err := c.readFile(file)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		c.files = append(c.files, file.path)
		settings, err := parseConfig(file.path, string(text), known)
		if err != nil {
			return err
		}
		for _, s := range settings {
			f := cmd.Flags().Lookup(s.flag)
			if f == nil || f.Changed {
				continue
			}
			c.came(s.flag, origin{file: file.path, line: s.line, project: file.project})
			if err := s.set(cmd.Flags(), f); err != nil {
				return usage("correct or remove it", "%s:%d: %s: %v", file.path, s.line, s.flag, err)
			}
		}
		if err := c.listened(cmd, file, settings); err != nil {
			return err
		}
		c.warnOfSecrets(file.path, settings, known)
	}
	return nil
}

// listened makes a file that moves the node move the verbs that speak to it: they find it where it listens, unless the
// file names a node. A port that the system chooses is nowhere to be found.
func (c *cli) listened(cmd *cobra.Command, file configFile, settings []setting) error {
	node := cmd.Flags().Lookup("node")
	at := slices.IndexFunc(settings, func(s setting) bool { return s.flag == "listen" })
	if node == nil || node.Changed || at < 0 || cmd.Flags().Lookup("listen") != nil {
		return nil
	}
	_, port, err := net.SplitHostPort(settings[at].text)
	if err != nil || port == "0" {
		return nil
	}
	c.came("node", origin{file: file.path, line: settings[at].line, key: "listen", project: file.project})
	return cmd.Flags().Set("node", near(settings[at].text))
}

// fileKeys are the flags that a file may set: serve's, every verb's, and those that have a variable.
func fileKeys(root *cobra.Command) map[string]*pflag.Flag {
	keys := map[string]*pflag.Flag{}
	add := func(f *pflag.Flag) {
		if !slices.Contains(notInFiles, f.Name) {
			keys[f.Name] = f
		}
	}
	root.PersistentFlags().VisitAll(add)
	root.Flags().VisitAll(add)
	for _, cmd := range root.Commands() {
		for _, v := range variables {
			if f := cmd.Flags().Lookup(v.flag); f != nil {
				add(f)
			}
		}
	}
	return keys
}

func (c *cli) readFile(file configFile) (text []byte, found bool, err error) {
	in, err := os.Open(file.path)
	if err == nil {
		defer func() { _ = in.Close() }()
		if info, serr := in.Stat(); serr == nil && info.IsDir() {
			err = errors.New("it is a folder")
		} else {
			text, err = io.ReadAll(io.LimitReader(in, configBytesMax+1))
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !file.asked:
		return nil, false, nil
	case err != nil:
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, false, usage("correct --config, or make the file readable", "the configuration %s cannot be read: %v", file.path, err)
	case len(text) > configBytesMax:
		return nil, false, usage("is it another file?", "the configuration %s has more than %d bytes", file.path, configBytesMax)
	}
	return text, true, nil
}

// setting is one key of a file, checked as far as that needs no other.
type setting struct {
	flag string
	line int
	text string
	list []string // in place of text
}

func (s setting) set(flags *pflag.FlagSet, f *pflag.Flag) error {
	many, ok := f.Value.(pflag.SliceValue)
	if !ok || s.list == nil {
		return flags.Set(s.flag, s.text)
	}
	f.Changed = true
	return many.Replace(s.list)
}

// parseConfig reads a file: TOML without tables, its keys the names of flags.
func parseConfig(path, text string, known map[string]*pflag.Flag) ([]setting, error) {
	var values map[string]any
	if _, err := toml.Decode(text, &values); err != nil {
		var at toml.ParseError
		if errors.As(err, &at) {
			return nil, usage("the format is TOML: key = \"value\"", "%s:%d: %s", path, at.Position.Line, at.Message)
		}
		return nil, usage("the format is TOML: key = \"value\"", "%s: %v", path, err)
	}
	var out []setting
	for _, key := range slices.Sorted(maps.Keys(values)) {
		s := setting{flag: strings.ReplaceAll(key, "_", "-"), line: lineOf(text, key)}
		trouble := func(remedy, format string, args ...any) error {
			return usage(remedy, "%s:%d: %s", path, s.line, fmt.Sprintf(format, args...))
		}
		f := known[s.flag]
		switch _, table := values[key].(map[string]any); {
		case f == nil && table:
			return nil, trouble("write its keys without a table", "there are no tables, and %q is one", key)
		case f == nil && slices.Contains(notInFiles, s.flag):
			return nil, trouble("give --"+s.flag+" on the command line", "%q cannot be set in a file", key)
		case f == nil:
			return nil, trouble("did you mean "+nearest(s.flag, known)+"? `parley help config` lists the keys", "there is no key %q", key)
		case slices.ContainsFunc(out, func(o setting) bool { return o.flag == s.flag }):
			return nil, trouble("remove one", "%s is set twice, with - and with _", s.flag)
		}
		if err := s.take(f, values[key], trouble); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// take reads a value as the flag wants it. A number is no time: its unit is anybody's guess.
func (s *setting) take(f *pflag.Flag, value any, trouble func(remedy, format string, args ...any) error) error {
	kind := f.Value.Type()
	switch v := value.(type) {
	case string:
		if kind == "bool" || strings.HasPrefix(kind, "int") {
			return trouble("write it without quotes", "%s = %q is text", s.flag, v)
		}
		if strings.TrimSpace(v) == "" {
			return trouble("remove the line; then the default is taken", "%s is empty", s.flag)
		}
		if s.text = v; strings.HasSuffix(kind, "Slice") || strings.HasSuffix(kind, "Array") {
			s.list = []string{v}
		}
		return nil
	case bool:
		if kind != "bool" {
			return trouble("write it in quotes", "%s = %v is no text", s.flag, v)
		}
		s.text = strconv.FormatBool(v)
		return nil
	case int64, float64:
		number := fmt.Sprint(v)
		switch _, whole := v.(int64); {
		case strings.HasPrefix(kind, "int") && whole:
			s.text = number
			return nil
		case isSpan(f):
			return trouble(fmt.Sprintf("%s = \"%ss\"; a bare %s could be seconds or minutes", s.flag, number, number), "%s = %s has no unit", s.flag, number)
		}
		return trouble("write it in quotes", "%s = %s is no text", s.flag, number)
	case []any:
		if !strings.HasSuffix(kind, "Slice") && !strings.HasSuffix(kind, "Array") {
			return trouble("write one value in quotes", "%s takes one value, not a list", s.flag)
		}
		s.list = []string{}
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return trouble("write each item in quotes", "%s holds %v, which is no text", s.flag, item)
			}
			s.list = append(s.list, text)
		}
		return nil
	}
	return trouble("write it as text in quotes", "%s is a %s", s.flag, tomlKind(value))
}

func tomlKind(value any) string {
	switch value.(type) {
	case map[string]any, []map[string]any:
		return "table"
	case time.Time:
		return "date"
	}
	return "value of another kind"
}

// isSpan reports whether a flag takes a duration, which is seen from its default or from what its help calls it.
func isSpan(f *pflag.Flag) bool {
	_, err := time.ParseDuration(f.DefValue)
	name, _ := pflag.UnquoteUsage(f)
	return err == nil || f.DefValue == "never" || name == "wait" || name == "time" || name == "duration"
}

// lineOf finds the line of a key. There are no tables, so that a key stands at the start of its line.
func lineOf(text, key string) int {
	starts := regexp.MustCompile(`^\s*\[*\s*["']?` + regexp.QuoteMeta(key) + `["']?\s*[\].=]`)
	n := 0
	for line := range strings.Lines(text) {
		if n++; starts.MatchString(line) {
			return n
		}
	}
	return 1 // it is written with escapes
}

// nearest is the known key that takes the fewest changes.
func nearest(key string, known map[string]*pflag.Flag) string {
	best, least := "", len(key)+100
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if d := distance(key, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the changes of one letter that make a word into another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// warnOfSecrets tells of a token that lies open.
func (c *cli) warnOfSecrets(path string, settings []setting, known map[string]*pflag.Flag) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return
	}
	for _, s := range settings {
		if isSecret(known[s.flag]) {
			c.notef("warning: %s:%d holds a token, and others can read the file; `chmod 600 %s` ends that\n", clean(path), s.line, quote(path))
			return
		}
	}
}

func isSecret(f *pflag.Flag) bool { return f != nil && len(f.Annotations[secretFlag]) > 0 }

// trusted refuses to send the user's token to a node that only a file in the working directory names: that folder may
// be anybody's.
func (c *cli) trusted(node *url.URL) error {
	from, token := c.origins["node"], c.origins["token"]
	host := node.Hostname()
	if ip := net.ParseIP(host); c.token == "" || !from.project || token.project || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return usage("if it may have the token, name the node with --node or PARLEY_NODE",
		"%s names the node %s, and this file is not asked to whom a token is sent", from, node.Host)
}

type settingJSON struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`  // null: not set, or a secret
	Secret bool    `json:"secret"` // it is set and not shown
	Origin string  `json:"origin"` // flag, environment, file or default
	Source *string `json:"source"` // the variable, or file:line
}

// printConfig shows what serve would run with, and where each value came from.
func (c *cli) printConfig(flags *pflag.FlagSet, s settings) error {
	cfg, err := c.settle(s)
	if err != nil {
		return err
	}
	doc := struct {
		Settings []settingJSON `json:"settings"`
	}{[]settingJSON{}}
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(notInFiles, f.Name) || f.Name == "node" {
			return
		}
		value := f.Value.String()
		if many, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(many.GetSlice(), ",")
		}
		if f.Name == "journal" {
			value = cfg.journal
		}
		doc.Settings = append(doc.Settings, c.settingOf(f, value))
	})
	if c.json {
		return c.printJSON(doc)
	}
	var rows [][]string
	for _, s := range doc.Settings {
		value, from := "-", s.Origin
		switch {
		case s.Secret:
			value = "(hidden)"
		case s.Value != nil:
			value = *s.Value
		}
		if s.Source != nil {
			from += " " + *s.Source
		}
		rows = append(rows, []string{s.Name, oneLine(value), oneLine(from)})
	}
	c.aligned(rows)
	return nil
}

func (c *cli) settingOf(f *pflag.Flag, value string) settingJSON {
	s := settingJSON{Name: f.Name, Origin: "default"}
	switch o := c.origins[f.Name]; {
	case o != origin{}:
		from := o.String()
		if s.Source, s.Origin = &from, "environment"; o.file != "" {
			s.Origin = "file"
		}
	case f.Changed:
		s.Origin = "flag"
	}
	if value == "" {
		return s
	}
	if s.Secret = isSecret(f); !s.Secret {
		s.Value = &value
	}
	return s
}

// aligned prints rows in columns that are never cut: values are to be copied.
func (c *cli) aligned(rows [][]string) {
	var wide []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", wide[i]-len([]rune(cell))+2)
		}
		c.printf("%s\n", strings.TrimRight(line, " "))
	}
}
