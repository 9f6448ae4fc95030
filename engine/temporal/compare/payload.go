package compare

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
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

// parse parses JSON. It returns false for invalid or too long JSON.
func parse(raw json.RawMessage) (any, bool) {
	if len(raw) == 0 || len(raw) > MaxPayload {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false // more than one value
	}
	return v, true
}

var seed = maphash.MakeSeed()

// fingerprint returns a hash that is equal for payloads without relevant differences.
func fingerprint(raw json.RawMessage, all bool) uint64 {
	if len(raw) == 0 {
		return 0
	}
	v, ok := parse(raw)
	if !ok {
		return maphash.Bytes(seed, raw)
	}
	return hashOf(v, all)
}

// hashOf returns a hash that ignores the order of an object's members.
func hashOf(v any, all bool) uint64 {
	switch v := v.(type) {
	case json.Number:
		return maphash.Comparable[any](seed, json.Number(canonical(v)))
	case []any:
		sum := maphash.String(seed, "list")
		for _, e := range v {
			sum = maphash.Comparable(seed, [2]uint64{sum, hashOf(e, all)})
		}
		return sum
	case map[string]any:
		sum := maphash.String(seed, "object")
		for name, e := range v {
			if all || !ignored(name, e) {
				sum += maphash.Comparable(seed, [2]uint64{maphash.String(seed, name), hashOf(e, all)})
			}
		}
		return sum
	}
	return maphash.Comparable(seed, v) // nil, a bool or a string
}

// canonical returns the form in which numbers are compared: 1, 1.0 and 1e0 are equal, and
// integers keep all digits.
func canonical(n json.Number) string {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		return s
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

type differ struct {
	all     bool // compare ignored members too
	nodes   int  // values that may still be compared
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
	data, err := marshal(v)
	if err != nil {
		return json.RawMessage(`"(not encodable)"`), false
	}
	return truncate(data)
}

func truncate(data []byte) (json.RawMessage, bool) {
	if len(data) <= MaxValue {
		return data, false
	}
	short, err := marshal(ace.Cut(string(data), MaxValue))
	if err != nil {
		return nil, true
	}
	return short, true
}

func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func (d *differ) values(path string, a, b any) {
	d.nodes--
	if d.nodes < 0 {
		d.partial = true
		if hashOf(a, d.all) != hashOf(b, d.all) {
			d.add(path, a, b, true, true)
		}
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			d.objects(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			d.lists(path, x, y)
			return
		}
	case json.Number:
		if y, ok := b.(json.Number); ok && canonical(x) == canonical(y) {
			return
		}
	default:
		if a == b { // a is a string, a bool or nil, so this cannot panic
			return
		}
	}
	d.add(path, a, b, true, true)
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
		if !d.all && (!inA || ignored(name, x)) && (!inB || ignored(name, y)) {
			continue
		}
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
		h := hashOf(v, d.all)
		out[i] = key{hash: h, nth: seen[h]}
		seen[h]++
	}
	return out
}

// Ignored lists what a comparison ignores by default because it differs between any two runs:
// members of payloads by name, at any depth, and steps.
type Ignored struct {
	IDs      []string `json:"ids"`      // identifiers
	Times    []string `json:"times"`    // if the value is a time
	Measures []string `json:"measures"` // durations and workers
	Steps    []string `json:"steps"`    // descriptions
}

// WhatIsIgnored returns what is ignored by default.
func WhatIsIgnored() Ignored {
	return Ignored{
		IDs: strings.Fields("run_id workflow_id task_id experiment_id trajectory_id session_id event_id call_id " +
			"request_id trace_id span_id branch runId workflowId taskId sessionId requestId traceId spanId"),
		Times: strings.Fields("at started_at ended_at finished_at created_at timestamp time startedAt endedAt createdAt"),
		Measures: strings.Fields(
			"duration_ms phase_ms elapsed_ms latency_ms durationMs worker identity attempt hostname"),
		Steps: []string{
			"signals that report tool calls (the calls are compared)",
			"the list of calls in a skills session's result (the calls are compared)",
			"timers that run beside an activity or a child workflow (whether they fire is random)",
			"the reused results in a fork's input (they are steps)",
			"the input and duration of reused steps (they are not recorded)",
			"the values of side effects (clock, random numbers, new IDs)",
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
	if ignoredNames[name] {
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
