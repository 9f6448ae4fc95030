// Package conffile reads the configuration file: what it says, on which line, and what is
// wrong with it. It knows no setting; whoever asks says which there are. Mistakes are
// returned, never fatal: what they are in is left out, and the rest counts.
package conffile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"acescope/tui/text"
)

// Bounds of the configuration file: its bytes, and how many filters it may save.
const (
	MaxBytes   = 1 << 20
	MaxFilters = 100
)

// File is what a configuration file says, each value with its line.
type File struct {
	Path    string
	Values  map[string]Value    // settings by name
	Keys    map[string][]string // by action
	KeyLine map[string]int
	Filters []Filter
	Prices  []Price

	Providers []Provider
	Agents    []Agent
}

// Value is what is said of a setting, and on which line.
type Value struct {
	Value any
	Line  int
}

// Filter is a choice of runs with a name.
type Filter struct {
	Name    string `json:"name"`
	Query   string `json:"query"`
	Default bool   `json:"default"`
}

// Read reads a configuration file; known tells which settings there are. A file that does not exist says nothing. Mistakes
// are returned with file and line, and what they are in is left out.
func Read(path string, known func(name string) bool) (File, []string) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return File{Path: path}, nil
	}
	if err == nil && info.Size() > MaxBytes {
		err = fmt.Errorf("larger than %d KB, so it is not read", MaxBytes>>10)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return File{Path: path}, []string{path + ": " + strings.Join(strings.Fields(text.Safe(err.Error(), " ")), " ")}
	}
	return Parse(path, data, known)
}

// Parse reads the text of a configuration file. A file that is no TOML says
// nothing.
func Parse(path string, data []byte, known func(name string) bool) (File, []string) {
	p := &parser{File: File{Path: path, Values: map[string]Value{}, Keys: map[string][]string{}, KeyLine: map[string]int{}}}
	tree := map[string]any{}
	if err := toml.Unmarshal(data, &tree); err != nil {
		p.syntax(err)
		return File{Path: path}, p.wrong
	}
	p.lines = locate(data)
	names := make([]string, 0, len(tree))
	for name := range tree {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return p.line(a) - p.line(b) })
	for _, name := range names {
		switch {
		case name == "keys":
			p.readKeys(tree[name])
		case name == "filters":
			p.readFilters(tree[name])
		case name == "prices":
			p.readPrices(tree[name])
		case name == "providers":
			p.readProviders(tree[name])
		case name == "agents":
			p.readAgents(tree[name])
		case known(name):
			p.Values[name] = Value{tree[name], p.line(name)}
		default:
			p.mistake(name, "there is no setting %q", name)
		}
	}
	return p.File, p.wrong
}

type parser struct {
	File
	lines map[string]int
	wrong []string
}

// line is that of a key, or of the nearest one around it that stands on a line of its own.
func (p *parser) line(key string) int {
	for ; key != ""; key = key[:max(strings.LastIndexAny(key, ".["), 0)] {
		if n := p.lines[key]; n > 0 {
			return n
		}
	}
	return 0
}

func (p *parser) mistake(key, format string, args ...any) {
	where := p.Path
	if n := p.line(key); n > 0 {
		where += ":" + strconv.Itoa(n)
	}
	p.wrong = append(p.wrong, where+": "+fmt.Sprintf(format, args...))
}

func (p *parser) syntax(err error) {
	where, what := p.Path, strings.TrimPrefix(err.Error(), "toml: ")
	var at *toml.DecodeError
	if errors.As(err, &at) {
		row, _ := at.Position()
		where += ":" + strconv.Itoa(row)
	}
	p.wrong = append(p.wrong, where+": "+strings.Join(strings.Fields(text.Safe(what, " ")), " ")+"; nothing of the file counts until that is mended")
}

// readKeys takes the table [keys]: "runs.query" = ["/"], or = "/".
func (p *parser) readKeys(v any) {
	table, ok := v.(map[string]any)
	if !ok {
		p.mistake("keys", `keys is a table: [keys] and below it "runs.query" = ["/"]`)
		return
	}
	flat := map[string]any{}
	flatten("", table, flat)
	for _, action := range sorted(flat) {
		list, ok := textList(flat[action])
		if !ok {
			p.mistake("keys."+action, `keys: %s is a list of keys: ["/", "ctrl+f"]`, action)
			continue
		}
		p.Keys[action] = list
		p.KeyLine[action] = p.line("keys." + action)
	}
}

// flatten makes runs.query out of both "runs.query" and runs = {query = …}.
func flatten(prefix string, from, into map[string]any) {
	for k, v := range from {
		if inner, ok := v.(map[string]any); ok {
			flatten(prefix+k+".", inner, into)
			continue
		}
		into[prefix+k] = v
	}
}

func textList(v any) ([]string, bool) {
	if one, ok := v.(string); ok {
		return []string{one}, true
	}
	list, ok := v.([]any)
	out := []string{}
	for _, e := range list {
		s, isText := e.(string)
		ok = ok && isText
		out = append(out, s)
	}
	return out, ok
}

// readFilters takes the tables [[filters]].
func (p *parser) readFilters(v any) {
	list, ok := v.([]any)
	if !ok {
		p.mistake("filters", "filters are tables: [[filters]] and below it name and query")
		return
	}
	seen, chosen := map[string]bool{}, ""
	for i, e := range list {
		at := "filters[" + strconv.Itoa(i) + "]"
		f, why := p.filter(at, e)
		switch {
		case len(p.Filters) == MaxFilters:
			why = fmt.Sprintf("more than %d filters", MaxFilters)
		case why == "" && seen[f.Name]:
			why = fmt.Sprintf("a filter %q is there already", f.Name)
		case why == "" && f.Default && chosen != "":
			p.mistake(at, "filter %q: %q is the default already", f.Name, chosen)
			f.Default = false
		}
		if why != "" {
			p.mistake(at, "filter: %s", why)
			continue
		}
		if seen[f.Name] = true; f.Default {
			chosen = f.Name
		}
		p.Filters = append(p.Filters, f)
	}
}

// filter reads one filter; why says what makes it unusable.
func (p *parser) filter(at string, e any) (f Filter, why string) {
	table, _ := e.(map[string]any)
	for _, k := range sorted(table) {
		ok := true
		switch k {
		case "name":
			f.Name, ok = table[k].(string)
		case "query":
			f.Query, ok = table[k].(string)
		case "default":
			f.Default, ok = table[k].(bool)
		default:
			p.mistake(at+"."+k, "a filter has no %q: it has name, query and default", k)
		}
		if !ok {
			return f, k + " is of another type: name and query are texts, default is true or false"
		}
	}
	if strings.TrimSpace(f.Name) == "" || strings.TrimSpace(f.Query) == "" {
		return f, "it needs a name and a query"
	}
	return f, ""
}

// locate is the line of every key of a document, by its path: "keys.runs.query",
// "filters[0].name".
func locate(data []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(data)
	prefix, tables := "", map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		path, line := keyPath(&p, e)
		switch e.Kind {
		case unstable.Table:
			prefix = path + "."
		case unstable.ArrayTable:
			path += "[" + strconv.Itoa(tables[path]) + "]"
			tables[strings.TrimRight(path, "[]0123456789")]++
			prefix = path + "."
		case unstable.KeyValue:
			path = prefix + path
		default:
			continue
		}
		for ; path != ""; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
			if lines[path] == 0 {
				lines[path] = line
			}
		}
	}
	return lines
}

func keyPath(p *unstable.Parser, e *unstable.Node) (path string, line int) {
	if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable && e.Kind != unstable.KeyValue {
		return "", 0
	}
	var parts []string
	for it := e.Key(); it.Next(); {
		if line == 0 {
			line = p.Shape(it.Node().Raw).Start.Line
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), line
}

func sorted(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
