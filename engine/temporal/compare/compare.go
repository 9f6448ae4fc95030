// Package compare compares two runs. It divides their histories into steps, aligns the steps
// by type and input (of an activity, a tool or a child workflow) rather than by event number,
// and lists the differences of their payloads and metrics. It may import engine/ace,
// engine/temporal/history and Temporal's API types.
//
// Order: pairs are in the order of both runs, with steps of the first run first. Bounds: of a
// payload above [MaxPayload] bytes only the bytes are compared, at most [MaxNodes] values of a
// payload are compared, and at most [MaxChanges] changes of a pair are listed; the rest is
// counted. The bounds limit work, not time, so that results are reproducible. Loss: values
// that differ between any two runs are ignored by default; see [Ignored] and [Options].
//
// The package compares payloads itself because github.com/wI2L/jsondiff v0.7.1 holds numbers
// as 64-bit floats, so that integers that differ after 16 digits are equal; takes 9.3 s with
// its LCS option for a list of 4,000 elements with some removed (here 49 ms) and without it
// reports 11,528 changes instead of 236; and has no bounds. BenchmarkChanges and
// TestChangesAreTrue check this.
package compare

import (
	"encoding/json"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// Statuses of a pair.
const (
	Same       = "same"
	Changed    = "changed"
	OnlyA      = "only_a"
	OnlyB      = "only_b"
	Moved      = "moved"       // the same step in another place
	NotReached = "not_reached" // the other run has not reached the step, or its history is incomplete
	Unreadable = "unreadable"  // the readable parts are the same, the other parts are encoded
)

// Statuses lists the statuses of a pair.
func Statuses() []string {
	return []string{Same, Changed, OnlyA, OnlyB, Moved, NotReached, Unreadable}
}

// Differs reports whether a status means that the runs differ.
func Differs(status string) bool {
	return status == Changed || status == OnlyA || status == OnlyB || status == Moved
}

// Pair is a step of both runs, or a step that only one run has.
type Pair struct {
	Status string   `json:"status"`
	Moved  bool     `json:"moved,omitempty"` // the step is in another place
	A      *Step    `json:"a,omitempty"`
	B      *Step    `json:"b,omitempty"`
	Input  []Change `json:"input"`
	Result []Change `json:"result"`
	More   int      `json:"more,omitempty"` // changes that are not listed
	// Partial is set if a payload has more than [MaxNodes] values.
	Partial bool `json:"partial,omitempty"`
}

// Step returns the step of A, or of B if only B has it.
func (p *Pair) Step() *Step {
	if p.A != nil {
		return p.A
	}
	return p.B
}

// Side is one side of a comparison: the history of a run, or the histories of a chain in order.
type Side struct {
	Name string // in sentences; "" means A or B
	Runs [][]*historypb.HistoryEvent
	// RunIDs are the run IDs of Runs. An empty or missing ID is taken from the history.
	RunIDs []string
	// Before says why earlier runs are missing, or is "".
	Before string
	// Partial says why the history is incomplete, or is "".
	Partial string
	// Artifact reads an artifact. It is nil without an artifact store.
	Artifact func(ace.Ref) ([]byte, error)
}

// About describes a side.
type About struct {
	Type       string   `json:"workflow_type"`
	WorkflowID string   `json:"workflow_id,omitempty"`
	RunIDs     []string `json:"run_ids"`
	Runs       int      `json:"runs"`
	Events     int      `json:"events"`
	Steps      int      `json:"steps"`
	Open       bool     `json:"open,omitempty"`
	Status     string   `json:"status"`
	Partial    string   `json:"partial,omitempty"`
	Before     string   `json:"before,omitempty"` // why earlier runs are missing
	// Fork is where the run was forked from, or nil.
	Fork *ace.Forked `json:"forked_from,omitempty"`

	start, last time.Time
}

// RunID returns the run ID of a step, or "".
func (a *About) RunID(s *Step) string {
	if s == nil || s.Run >= len(a.RunIDs) {
		return ""
	}
	return a.RunIDs[s.Run]
}

// Options are options of a comparison.
type Options struct {
	// AllFields also compares durations, attempts and everything in [Ignored].
	AllFields bool
}

// Diff is the result of comparing two runs.
type Diff struct {
	A      About          `json:"-"`
	B      About          `json:"-"`
	Pairs  []Pair         `json:"-"`
	Counts map[string]int `json:"counts"` // pairs by status
	// First is the first difference, and FirstResult the first difference of a result rather than an input.
	// Each is nil without such a difference.
	First       *Divergence `json:"first,omitempty"`
	FirstResult *Divergence `json:"first_result,omitempty"`
	Metrics     []Metric    `json:"metrics"`
	Notes       []string    `json:"notes"`      // caveats, in sentences
	All         bool        `json:"all_fields"` // with all fields
}

// Differs reports whether the runs differ.
func (d *Diff) Differs() bool { return d.First != nil }

// Of compares two runs, or chains of runs.
func Of(a, b Side, o Options) *Diff {
	sa := build(a, o.AllFields)
	sb := build(b, o.AllFields)
	d := &Diff{A: sa.about, B: sb.about, Pairs: align(sa.steps, sb.steps), All: o.AllFields,
		Counts: map[string]int{}}
	for i := range d.Pairs {
		d.Pairs[i].compare(o.AllFields)
	}
	d.markNotReached(sa, sb)
	for _, p := range d.Pairs {
		d.Counts[p.Status]++
	}
	d.Metrics = metrics(sa, sb)
	d.findFirst()
	d.addNotes(sa, sb)
	return d
}

func (p *Pair) compare(all bool) {
	switch {
	case p.B == nil:
		p.Status = OnlyA
		return
	case p.A == nil:
		p.Status = OnlyB
		return
	}
	a, b := p.A, p.B
	unreadable := false
	changes := func(payload int, x, y json.RawMessage) []Change {
		if string(x) != string(y) && a.opaque[payload] && b.opaque[payload] {
			unreadable = true
			return nil
		}
		return p.changes(x, y, all)
	}
	taken := a.Taken || b.Taken // reused steps have no recorded input and duration
	if !taken {
		p.Input = changes(inputPayload, a.Input, b.Input)
	}
	if !a.random || !b.random {
		ra, rb := a.Result, b.Result
		if a.hasCalls && b.hasCalls {
			ra, rb = without(ra, "invocations", "log"), without(rb, "invocations", "log")
		}
		p.Result = changes(resultPayload, ra, rb)
	}
	p.Status = Same
	switch {
	case len(p.Input)+len(p.Result)+p.More > 0 || a.Status != b.Status || a.error != b.error,
		a.Name != b.Name, all && !taken && (a.Attempt != b.Attempt || a.DurationMS != b.DurationMS):
		p.Status = Changed
	case p.Moved && a.ordered():
		p.Status = Moved
	case unreadable:
		p.Status = Unreadable
	}
}

// ordered reports whether the position of a step matters. Signals arrive, and parallel child workflows start,
// in random order.
func (s *Step) ordered() bool {
	switch s.Kind {
	case KindActivity, KindTool, KindTimer:
		return true
	}
	return false
}

// changes lists the differences of two payloads, which are JSON or nil.
func (p *Pair) changes(a, b json.RawMessage, all bool) []Change {
	if string(a) == string(b) {
		return nil
	}
	x, okA := parse(a, all)
	y, okB := parse(b, all)
	d := &differ{nodes: MaxNodes}
	if okA && okB {
		d.values("", x, y)
	} else {
		d.add("", a, b, a != nil, b != nil)
	}
	p.More += d.more
	p.Partial = p.Partial || d.partial
	return d.out
}

// markNotReached sets the status NotReached for steps that one side lacks only because its run is open or its
// history is incomplete.
func (d *Diff) markNotReached(sa, sb *builder) {
	d.markMissingStart(sa.side.Before != "", sb.side.Before != "")
	short := func(s *builder) bool { return s.about.Open || s.side.Partial != "" }
	a, b := short(sa), short(sb)
	if !a && !b {
		return
	}
	for i := range d.Pairs {
		p := &d.Pairs[i]
		if p.Status == Changed && len(p.Input) == 0 && (a && p.A.Status == Open || b && p.B.Status == Open) {
			p.Status = NotReached
			p.Result = nil
		}
	}
	// Steps after the last step of the shorter run.
	for i := len(d.Pairs) - 1; i >= 0; i-- {
		p := &d.Pairs[i]
		switch {
		case a && p.Status == OnlyB, b && p.Status == OnlyA:
			p.Status = NotReached
		case p.Status != NotReached:
			return
		}
	}
}

// markMissingStart does the same for steps at the start, if a side lacks its earlier runs.
func (d *Diff) markMissingStart(a, b bool) {
	for i := range d.Pairs {
		p := &d.Pairs[i]
		switch {
		case a && p.Status == OnlyB, b && p.Status == OnlyA:
			p.Status = NotReached
		case p.Step().Kind != KindStart:
			return
		}
	}
}
