package kind

import (
	"encoding/json"
	"fmt"
	"strings"

	"acescope/engine/ace"
)

// Paths that a search for changes handles specially: the total number of calls never falls, and bullets are
// found by their ID alone.
const (
	PathTotal  = "skills.total"
	PathBullet = "bullet."
)

// Value is a value that can be watched. V is a string, a number or a bool.
type Value struct {
	Path string
	V    any
}

// ValueList collects values.
type ValueList []Value

// Put adds a value unless it is zero.
func (l *ValueList) Put(path string, v any) {
	switch v {
	case "", false, int64(0), 0, 0.0:
		return
	}
	*l = append(*l, Value{path, v})
}

// Usage puts the values of a usage.
func (l *ValueList) Usage(u ace.Usage) {
	l.Put("usage.input_tokens", u.InputTokens)
	l.Put("usage.output_tokens", u.OutputTokens)
	l.Put("usage.cache_read_tokens", u.CacheReadTokens)
	l.Put("usage.cost_usd", u.CostUSD)
}

// Request puts who requested something, and why.
func (l *ValueList) Request(path, by, reason string) {
	l.Put(path, strings.TrimSpace("requested by "+by+" "+reason))
}

// Plain returns a value without the quotes of a string.
func Plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// RawOf returns the JSON of a value.
func RawOf(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // NaN or an infinity
		raw, _ = json.Marshal(fmt.Sprint(v))
	}
	return raw
}
