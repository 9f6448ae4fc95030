package compare

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// Ways in which a pair is.
const (
	Same       = "same"
	Changed    = "changed"
	OnlyA      = "only_a"
	OnlyB      = "only_b"
	Moved      = "moved"       // the same, in another place
	NotReached = "not_reached" // the other run has not come so far, or its history is not whole
	Unreadable = "unreadable"  // what can be read is the same; the rest is encoded and may be or not
)

// Statuses lists all of them.
func Statuses() []string {
	return []string{Same, Changed, OnlyA, OnlyB, Moved, NotReached, Unreadable}
}

// Differs tells whether a status says that the runs differ.
func Differs(status string) bool {
	return status == Changed || status == OnlyA || status == OnlyB || status == Moved
}

// Pair is the same step in both runs, or a step that only one has.
type Pair struct {
	Status string   `json:"status"`
	Moved  bool     `json:"moved,omitempty"` // it stands in another place
	A      *Step    `json:"a,omitempty"`
	B      *Step    `json:"b,omitempty"`
	Input  []Change `json:"input,omitempty"`
	Result []Change `json:"result,omitempty"`
	More   int      `json:"more,omitempty"` // changes that are not listed
	// Partial tells that a payload has more values than are looked at one by one.
	Partial bool `json:"partial,omitempty"`
}

// Step is the step of the first run, or of the second where only that has it.
func (p *Pair) Step() *Step {
	if p.A != nil {
		return p.A
	}
	return p.B
}

// Side is one of the two: the history of a run, or the histories of a chain in order.
type Side struct {
	Name string // in sentences, "" for A or B
	Runs [][]*historypb.HistoryEvent
	// RunIDs are those of Runs; where there are none, what the histories say.
	RunIDs []string
	// Before says in a few words why what came before is not there, "" where nothing did.
	Before string
	// Partial says in a few words why there is not all of it, "" where there is.
	Partial string
	// Artifact reads an artifact; nil where there are none here.
	Artifact func(ace.Ref) ([]byte, error)
}

// About is whose history it is and how far it goes.
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
	Before     string   `json:"before,omitempty"` // why runs that came before are not there
	// Fork is where it was forked from, nil for a run that began by itself.
	Fork *ace.Forked `json:"forked_from,omitempty"`

	start, last time.Time
}

// RunID is the run that a step is of, "" where that is not known.
func (a *About) RunID(s *Step) string {
	if s == nil || s.Run >= len(a.RunIDs) {
		return ""
	}
	return a.RunIDs[s.Run]
}

// Options are how two runs are compared.
type Options struct {
	// AllFields compares what is left out by default too, and counts another duration or
	// number of attempts as a change.
	AllFields bool
}

// Diff is two runs side by side.
type Diff struct {
	A, B    About
	Pairs   []Pair
	Counts  map[string]int // pairs by status
	Metrics []Metric
	// First is the first difference, FirstResult the first in what came out rather than in
	// what was given; nil where there is none.
	First       *Divergence
	FirstResult *Divergence
	Notes       []string // what one must know to read it, in sentences
	All         bool     // with all fields
}

// Differs tells whether any pair does.
func (d *Diff) Differs() bool { return d.First != nil }

// Of compares two runs, or chains of runs.
func Of(a, b Side, o Options) *Diff {
	sa, sb := &stepper{side: a, all: o.AllFields}, &stepper{side: b, all: o.AllFields}
	both([]*stepper{sa, sb}, (*stepper).chain)
	steps := make([]*Step, 0, len(sa.steps)+len(sb.steps))
	for _, s := range []*stepper{sa, sb} {
		s.about.Steps, s.about.Partial, s.about.Before = len(s.steps), s.side.Partial, s.side.Before
		if s.about.Status == "" {
			s.about.Status = Open
		}
		for i := range s.steps {
			steps = append(steps, &s.steps[i])
		}
	}
	both(steps, func(s *Step) { s.given = fingerprint(s.Input, o.AllFields) })
	d := &Diff{A: sa.about, B: sb.about, Pairs: align(sa.steps, sb.steps), All: o.AllFields, Counts: map[string]int{}}
	pairs := make([]*Pair, len(d.Pairs))
	for i := range d.Pairs {
		pairs[i] = &d.Pairs[i]
	}
	both(pairs, func(p *Pair) { p.judge(o.AllFields) })
	d.reach(sa, sb)
	for i := range d.Pairs {
		d.Counts[d.Pairs[i].Status]++
	}
	d.Metrics = metrics(sa, sb)
	d.first()
	d.notes(sa, sb)
	return d
}

// both does something to each of many things, on all processors.
func both[T any](list []T, do func(T)) {
	const stretch = 16
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		wg.Go(func() {
			for {
				from := int(next.Add(stretch)) - stretch
				for i := from; i < min(from+stretch, len(list)); i++ {
					do(list[i])
				}
				if from >= len(list) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// judge says how a pair is.
func (p *Pair) judge(all bool) {
	switch {
	case p.B == nil:
		p.Status = OnlyA
		return
	case p.A == nil:
		p.Status = OnlyB
		return
	}
	a, b := p.A, p.B
	var shut bool
	taken := a.Taken || b.Taken // then it is not told what was given, nor how long it took
	if !taken {
		p.Input = p.changes(a.Input, b.Input, a.sealed[0], b.sealed[0], all, &shut)
	}
	if !a.varies || !b.varies {
		ra, rb := a.Result, b.Result
		if a.calls && b.calls {
			ra, rb = withoutCalls(ra), withoutCalls(rb)
		}
		p.Result = p.changes(ra, rb, a.sealed[1], b.sealed[1], all, &shut)
	}
	p.Status = Same
	switch {
	case len(p.Input)+len(p.Result)+p.More > 0 || a.Status != b.Status || p.errors(),
		a.Name != b.Name, all && !taken && (a.Attempt != b.Attempt || a.DurationMS != b.DurationMS):
		p.Status = Changed
	case p.Moved && a.ordered():
		p.Status = Moved
	case shut:
		p.Status = Unreadable
	}
}

// errors tells whether they failed for different reasons.
func (p *Pair) errors() bool {
	a, b := p.A.error, p.B.error
	return a != b
}

// ordered tells whether it means something where a step stands: when signals come, and
// children that run side by side are started, is chance.
func (s *Step) ordered() bool {
	switch s.Kind {
	case KindActivity, KindTool, KindTimer:
		return true
	}
	return false
}

// withoutCalls is a skills session's result without its calls, which are steps.
func withoutCalls(raw json.RawMessage) json.RawMessage {
	return without(raw, "invocations", "log")
}

// changes lists what differs in two payloads. shut is set where that cannot be told.
func (p *Pair) changes(a, b json.RawMessage, sa, sb sealed, all bool, shut *bool) []Change {
	if string(a) == string(b) && sa == sb {
		return nil
	}
	if sa != sb && sa.encoding == sb.encoding && sa.hard() {
		*shut = true
		return nil
	}
	x, okA := tree(a)
	y, okB := tree(b)
	if !okA || !okB {
		return []Change{whole(a, b, sa, sb)}
	}
	d := &differ{all: all, nodes: MaxNodes}
	d.values("", x, y)
	p.More += d.more
	p.Partial = p.Partial || d.partial
	return d.out
}

// whole is a change of payloads that are not both JSON.
func whole(a, b json.RawMessage, sa, sb sealed) Change {
	say := func(raw json.RawMessage, s sealed) (json.RawMessage, bool) {
		switch {
		case s.encoding != "":
			text, _ := marshal("(encoded as " + s.encoding + ", SHA-256 " + s.sum[:min(len(s.sum), 12)] + "…)")
			return text, false
		case len(raw) == 0:
			return nil, false
		case json.Valid(raw):
			return cutValue(raw)
		}
		text, _ := marshal(string(raw))
		return cutValue(text)
	}
	var c Change
	var cut bool
	c.A, c.Cut = say(a, sa)
	c.B, cut = say(b, sb)
	c.Cut = c.Cut || cut
	return c
}

// reach takes back what only one has because the other has not come so far, or is not kept
// from its begin.
func (d *Diff) reach(sa, sb *stepper) {
	d.begins(sa.side.Before != "", sb.side.Before != "")
	short := func(s *stepper) bool { return s.about.Open || s.side.Partial != "" }
	a, b := short(sa), short(sb)
	if !a && !b {
		return
	}
	for i := range d.Pairs {
		p := &d.Pairs[i]
		if p.Status == Changed && len(p.Input) == 0 && (a && p.A.Status == Open || b && p.B.Status == Open) {
			p.Status, p.Result = NotReached, nil
		}
	}
	// What comes after the last step of the run that is short.
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

// begins takes back what only one has because what the other did first is no longer kept.
func (d *Diff) begins(a, b bool) {
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

// notes says what one must know to read the comparison.
func (d *Diff) notes(sa, sb *stepper) {
	say := func(format string, args ...any) { d.Notes = append(d.Notes, fmt.Sprintf(format, args...)) }
	if n := len(d.A.RunIDs); n > 0 && n == len(d.B.RunIDs) && d.A.RunIDs[0] != "" && d.A.RunIDs[0] == d.B.RunIDs[0] && d.A.WorkflowID == d.B.WorkflowID {
		say("A and B are the same run, %s.", d.A.RunIDs[0])
	}
	if d.A.Type != d.B.Type {
		say("The workflow types differ, %s and %s: steps of the same kind and name are aligned as far as there are any.", orNone(d.A.Type), orNone(d.B.Type))
	}
	for _, x := range []struct {
		name string
		s    *stepper
	}{{"A", sa}, {"B", sb}} {
		a := x.s.about
		switch {
		case a.Events == 0:
			say("%s has no events.", x.name)
		case a.Partial != "":
			say("The history of %s is not whole (%s): they are compared as far as it goes.", x.name, a.Partial)
		case a.Open && a.Type != "":
			say("%s is still running: they are compared as far as it has come.", x.name)
		}
		d.forkNote(x.name, x.s)
		if a.Before != "" {
			say("What came before %s's first run is not there: %s.", x.name, a.Before)
		}
		if x.s.clockBack > 0 {
			say("The clock of %s went back %s: durations that would be below 0 are 0.", x.name, counted(x.s.clockBack, "time"))
		}
		if a.Runs > 1 {
			say("%s is a chain of %d runs, compared as one.", x.name, a.Runs)
		}
		for _, n := range x.s.notes {
			say("%s: %s.", x.name, n)
		}
	}
	if n := d.Counts[Unreadable]; n > 0 {
		say("Payloads of %s are encoded and not the same byte for byte: whether they differ cannot be told here.", counted(n, "step"))
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func orNone(s string) string {
	if s == "" {
		return "(not known)"
	}
	return s
}
