// Package conffile reads the configuration file. It returns the values with their lines, and every mistake as
// a warning that names the file and the line. A mistake is never fatal: the entry it is in is left out.
package conffile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"acescope/engine/trace/adapter"
	"acescope/sources/runs"
	"acescope/tui/text"
)

// MaxBytes is the largest configuration file that is read.
const MaxBytes = 1 << 20

// File is the content of a configuration file.
type File struct {
	Path    string
	Values  map[string]Value    // settings by name
	Keys    map[string][]string // keys by action
	KeyLine map[string]int      // line by action

	Filters   []runs.SavedFilter
	Prices    []Price
	Adapters  []adapter.Adapter
	Providers []Provider
	Agents    []Agent
	Graders   []Grader
	Replayers []Replayer
	Prompts   map[string]string // names of prompts by phase
}

// Value is the value of a setting and the line it is on.
type Value struct {
	Value any
	Line  int
}

// Read reads the configuration file at path. known reports whether a setting exists. A missing file is empty.
func Read(path string, known func(name string) bool) (f File, warnings []string) {
	f.Path = path
	data, err := ReadFile(path, MaxBytes)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, []string{path + ": " + oneLine(err.Error())}
	}
	return Parse(path, data, known)
}

// ReadFile reads a file of at most limit bytes. It does not read pipes and devices, which can wait or last
// forever.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file; not read")
	case info.Size() > limit:
		return nil, fmt.Errorf("larger than %d KB; not read", limit>>10)
	}
	return os.ReadFile(path)
}

// Parse reads the text of a configuration file. A syntax error makes the whole file empty.
func Parse(path string, data []byte, known func(name string) bool) (f File, warnings []string) {
	p := &parser{File: File{
		Path: path, Values: map[string]Value{}, Keys: map[string][]string{}, KeyLine: map[string]int{},
	}}
	tree := map[string]any{}
	if err := toml.Unmarshal(data, &tree); err != nil {
		return File{Path: path}, []string{Mistake(path, err) +
			"; the whole file is ignored until this is fixed"}
	}
	p.lines = keyLines(data)
	tables := map[string]func(any){
		"keys": p.readKeys, "filters": p.readFilters, "prices": p.readPrices, "providers": p.readProviders,
		"adapters": p.readAdapters, "agents": p.readAgents, "graders": p.readGraders, "prompts": p.readPrompts,
		"replayers": p.readReplayers,
	}
	for _, name := range slices.SortedFunc(maps.Keys(tree), func(a, b string) int {
		return p.line(a) - p.line(b)
	}) {
		if read := tables[name]; read != nil {
			read(tree[name])
		} else if known(name) {
			p.Values[name] = Value{tree[name], p.line(name)}
		} else {
			p.mistake(name, "unknown setting %q", name)
		}
	}
	return p.File, p.warnings
}

// Mistake returns the position and the text of a TOML error in a file: of an unknown key or of the syntax.
func Mistake(path string, err error) string {
	var unknown *toml.StrictMissingError
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		row, _ := unknown.Errors[0].Position()
		return fmt.Sprintf("%s:%d: unknown key %q", path, row, strings.Join(unknown.Errors[0].Key(), "."))
	case errors.As(err, &decode):
		row, _ := decode.Position()
		path += ":" + strconv.Itoa(row)
	}
	return path + ": " + oneLine(strings.TrimPrefix(err.Error(), "toml: "))
}

func oneLine(s string) string { return strings.Join(strings.Fields(text.Safe(s, " ")), " ") }

type parser struct {
	File
	lines    map[string]int
	warnings []string
}

// line returns the line of a key, or of the nearest enclosing key that has a line of its own.
func (p *parser) line(key string) int {
	for ; key != ""; key = parentKey(key) {
		if n := p.lines[key]; n > 0 {
			return n
		}
	}
	return 0
}

func parentKey(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

func (p *parser) mistake(key, format string, args ...any) {
	where := p.Path
	if n := p.line(key); n > 0 {
		where += ":" + strconv.Itoa(n)
	}
	p.warnings = append(p.warnings, where+": "+fmt.Sprintf(format, args...))
}

// readKeys reads the table [keys]: "runs.query" = ["/"] or "runs.query" = "/".
func (p *parser) readKeys(value any) {
	table, ok := value.(map[string]any)
	if !ok {
		p.mistake("keys", `keys must be a table: [keys], then "runs.query" = ["/"]`)
		return
	}
	actions := map[string]any{}
	flatten("", table, actions)
	for _, action := range slices.Sorted(maps.Keys(actions)) {
		list, ok := actions[action].([]any)
		if !ok {
			list = []any{actions[action]}
		}
		keys := []string{}
		for _, key := range list {
			if s, ok := key.(string); ok {
				keys = append(keys, s)
			}
		}
		if len(keys) < len(list) {
			p.mistake("keys."+action, `keys: %s must be a list of keys: ["/", "ctrl+f"]`, action)
			continue
		}
		p.Keys[action], p.KeyLine[action] = keys, p.line("keys."+action)
	}
}

// flatten stores "runs.query" for both "runs.query" = … and runs = {query = …}.
func flatten(prefix string, from, into map[string]any) {
	for k, v := range from {
		if inner, ok := v.(map[string]any); ok {
			flatten(prefix+k+".", inner, into)
			continue
		}
		into[prefix+k] = v
	}
}

// decode stores the keys of a table in *out. An unknown key is a mistake of its own; a value of the wrong
// type is returned as the error, without the value, which may be a secret.
func (p *parser) decode(at string, value, out any) error {
	table, ok := value.(map[string]any)
	if !ok {
		return errors.New("must be a table")
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		entry, err := toml.Marshal(map[string]any{key: table[key]})
		if err != nil {
			return fmt.Errorf("%s cannot be read", key)
		}
		err = toml.NewDecoder(bytes.NewReader(entry)).DisallowUnknownFields().Decode(out)
		var unknown *toml.StrictMissingError
		if errors.As(err, &unknown) {
			p.mistake(at+"."+key, "unknown key %q", key)
		} else if err != nil {
			return fmt.Errorf("%s has the wrong type", key)
		}
	}
	return nil
}

// keyLines returns the line of every key by its path: "keys.runs.query", "filters[0].name".
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(data)
	prefix, tables := "", map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable && e.Kind != unstable.KeyValue {
			continue
		}
		path, line := keyPath(&p, e)
		switch e.Kind {
		case unstable.Table:
			prefix = path + "."
		case unstable.ArrayTable:
			name := path
			path += "[" + strconv.Itoa(tables[name]) + "]"
			tables[name]++
			prefix = path + "."
		case unstable.KeyValue:
			path = prefix + path
		}
		for ; path != ""; path = parentKey(path) {
			if lines[path] == 0 {
				lines[path] = line
			}
		}
	}
	return lines
}

func keyPath(p *unstable.Parser, e *unstable.Node) (path string, line int) {
	var parts []string
	for it := e.Key(); it.Next(); {
		if line == 0 {
			line = p.Shape(it.Node().Raw).Start.Line
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), line
}
