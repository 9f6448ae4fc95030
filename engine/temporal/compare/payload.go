package compare

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/internal/plainjson"
)

// Bounds of a comparison.
const (
	MaxPayload = 4 << 20  // bytes; servers accept 2 MB by default
	MaxNodes   = 400_000  // compared values of one payload
	MaxChanges = 200      // listed changes of one pair
	MaxValue   = 16 << 10 // bytes of a listed value
)

// Change is one difference of two payloads. Path is a JSON pointer (RFC 6901), "" for the
// whole payload. List indexes are those of A, or of B for an added element.
type Change struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a,omitempty"` // nil if added
	B    json.RawMessage `json:"b,omitempty"` // nil if removed
	// Cut is set if A or B exceeds [MaxValue] bytes. It is then a string with the beginning.
	Cut bool `json:"cut,omitempty"`
}

// parse parses JSON into a form in which equal values are deeply equal: without ignored members, unless all
// is set, and with canonical numbers. It returns false for JSON that is invalid or too long.
func parse(raw json.RawMessage, all bool) (any, bool) {
	if len(raw) == 0 || len(raw) > MaxPayload {
		return nil, false
	}
	var v any
	if plainjson.Unmarshal(raw, &v) != nil {
		return nil, false
	}
	return normal(v, all), true
}

func normal(v any, all bool) any {
	switch v := v.(type) {
	case json.Number:
		return canonical(v)
	case []any:
		for i, e := range v {
			v[i] = normal(e, all)
		}
	case map[string]any:
		for name, e := range v {
			if !all && ignored(name, e) {
				delete(v, name)
				continue
			}
			v[name] = normal(e, all)
		}
	}
	return v
}

var seed = maphash.MakeSeed()

// fingerprint returns a hash that is equal for payloads without relevant differences.
func fingerprint(raw json.RawMessage, all bool) uint64 {
	v, ok := parse(raw, all)
	switch {
	case ok:
		return hashOf(v)
	case len(raw) == 0:
		return 0
	}
	return maphash.Bytes(seed, raw)
}

// hashOf returns the hash of a parsed value.
func hashOf(v any) uint64 {
	data, _ := plainjson.Marshal(v) // parsed JSON can be encoded
	return maphash.Bytes(seed, data)
}

// canonical returns a number in the form for comparisons: 1, 1.0 and 1e0 are equal, and integers keep all
// digits.
func canonical(n json.Number) json.Number {
	f, err := n.Float64()
	if err != nil || !strings.ContainsAny(string(n), ".eE") {
		return n
	}
	return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
}

type differ struct {
	nodes   int // values that may still be compared
	out     []Change
	more    int  // changes that are not listed
	partial bool // nodes were exhausted
}

func (d *differ) add(path string, a, b any, inA, inB bool) {
	if len(d.out) >= MaxChanges {
		d.more++
		return
	}
	c := Change{Path: path}
	if inA {
		c.A, c.Cut = value(a)
	}
	if inB {
		var cut bool
		c.B, cut = value(b)
		c.Cut = c.Cut || cut
	}
	d.out = append(d.out, c)
}

func value(v any) (json.RawMessage, bool) {
	data, _ := plainjson.Marshal(v) // parsed JSON can be encoded

	if len(data) <= MaxValue {
		return data, false
	}
	short, _ := plainjson.Marshal(ace.Cut(string(data), MaxValue)) // a text can be encoded
	return short, true
}

func (d *differ) values(path string, a, b any) {
	d.nodes--
	if d.nodes < 0 {
		d.partial = true
		if hashOf(a) != hashOf(b) {
			d.add(path, a, b, true, true)
		}
		return
	}
	x, isObject := a.(map[string]any)
	y, both := b.(map[string]any)
	if isObject && both {
		d.objects(path, x, y)
		return
	}
	list, isList := a.([]any)
	other, both := b.([]any)
	if isList && both {
		d.lists(path, list, other)
		return
	}
	if isObject || isList || a != b {
		d.add(path, a, b, true, true)
	}
}

func (d *differ) objects(path string, a, b map[string]any) {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		x, inA := a[name]
		y, inB := b[name]
		at := path + "/" + pointerEscaper.Replace(name)
		if inA && inB {
			d.values(at, x, y)
			continue
		}
		d.nodes--
		d.add(at, x, y, inA, inB)
	}
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// lists aligns equal elements and compares the elements between them by position.
func (d *differ) lists(path string, a, b []any) {
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	segment := func(i, iEnd, j, jEnd int) {
		for ; i < iEnd && j < jEnd; i, j = i+1, j+1 {
			d.values(at(i), a[i], b[j])
		}
		for ; i < iEnd; i++ {
			d.nodes--
			d.add(at(i), a[i], nil, true, false)
		}
		for ; j < jEnd; j++ {
			d.nodes--
			d.add(at(j), nil, b[j], false, true)
		}
	}
	if len(a) == len(b) || len(a)+len(b) > d.nodes {
		segment(0, len(a), 0, len(b))
		return
	}
	i, j := 0, 0
	for _, m := range common(d.hashes(a), d.hashes(b)) {
		segment(i, m.a, j, m.b)
		i, j = m.a+1, m.b+1
	}
	segment(i, len(a), j, len(b))
}

func (d *differ) hashes(list []any) []key {
	out := make([]key, len(list))
	seen := map[uint64]int{}
	for i, v := range list {
		h := hashOf(v)
		out[i] = key{hash: h, nth: seen[h]}
		seen[h]++
	}
	return out
}

// Ignored lists members of payloads (by name, at any depth) and steps that a comparison ignores by default
// because they differ between any two runs.
type Ignored struct {
	IDs      []string `json:"ids"`      // identifiers
	Times    []string `json:"times"`    // ignored if the value is a time
	Measures []string `json:"measures"` // durations and workers
	Steps    []string `json:"steps"`    // descriptions
}

// WhatIsIgnored returns the members and steps that a comparison ignores by default.
func WhatIsIgnored() Ignored {
	return Ignored{
		IDs: strings.Fields("run_id workflow_id task_id experiment_id trajectory_id session_id event_id call_id " +
			"request_id trace_id span_id branch run_key experiment_run delta_id runId workflowId taskId " +
			"sessionId requestId traceId spanId"),
		Times: strings.Fields(
			"at started_at ended_at executed_at finished_at created_at timestamp time startedAt endedAt createdAt"),
		Measures: strings.Fields(
			"duration_ms phase_ms elapsed_ms latency_ms durationMs worker identity attempt hostname model_calls"),
		Steps: []string{
			"signals that report tool calls (the calls are compared)",
			"the list of calls in a skills session's result (the calls are compared)",
			"timers that run beside an activity or a child workflow (whether they fire is random)",
			"the reused results in a fork's input (they are steps)",
			"the input and duration of reused steps (they are not recorded)",
			"the values of side effects (clock, random numbers, new IDs)",
			"IDs that a provider of models generates, such as resp_… and call_…",
			"continue-as-new (the runs of a chain are compared as one)",
		},
	}
}

var ignoredNames, ignoredTimes = func() (map[string]bool, []string) {
	list := WhatIsIgnored()
	names := map[string]bool{}
	for _, n := range append(list.IDs, list.Measures...) {
		names[n] = true
	}
	return names, list.Times
}()

// ignored reports whether a member of an object is ignored by default.
func ignored(name string, value any) bool {
	if ignoredNames[name] || generated(name, value) {
		return true
	}
	if !slices.Contains(ignoredTimes, name) {
		return false
	}
	s, ok := value.(string)
	if !ok {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}

// generatedNames are the names with which frameworks keep the IDs that a provider of models generates.
var generatedNames = map[string]bool{"id": true, "response_id": true, "responseId": true, "call_id": true,
	"callId": true, "tool_call_id": true, "toolCallId": true, "toolUseId": true, "trackingId": true,
	"provider_response_id": true, "previous_response_id": true, "previousResponseId": true}

// generatedID is an ID as providers of models generate them, such as "resp_0a1" and "chatcmpl-9".
var generatedID = regexp.MustCompile(
	`^(fc|msg|resp|rs|call|chatcmpl|toolu|tooluse|req|gen|lc_run|run)[-_]+[0-9A-Za-z_-]+$`)

// generated reports whether a member is an ID that a provider generates for each request.
func generated(name string, value any) bool {
	s, ok := value.(string)
	return ok && generatedNames[name] && generatedID.MatchString(s)
}
