// Package triage scans closed and open runs and groups failures by cause.
package triage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	runspkg "acescope/sources/runs"
)

// Bounds of a triage. What falls out of a list is counted in the number beside it.
const (
	TriageWindow   = 2000   // ended runs that are looked at, where nothing else is asked for
	MaxTriage      = 20_000 // at most
	MaxTriageOpen  = 500    // open runs that are looked at
	maxGroupRuns   = 100    // runs kept of a group, newest first
	MaxGroups      = 200
	MaxTop         = 20 // slowest, dearest, largest
	TrendBuckets   = 24
	maxMessage     = 4096 // bytes kept of an error
	maxPhaseSample = 50   // histories read for step times that no memo has
)

// Triage is what goes wrong, is stuck, is slow or dear among the runs of a query.
type Triage struct {
	Query  string
	Window int           // ended runs at most, newest first
	Since  time.Duration // only runs that ended so long ago at most, 0 for all
	At     time.Time     // when it was worked out
	Scan   Scan
	Err    string // why the last scan did not get to its end, "" if it did

	Ended, Open int       // runs that were looked at
	More        bool      // there are older ended runs that were not
	MoreOpen    bool      // there are open runs that were not
	From, To    time.Time // when the first and the last of the ended runs ended

	Troubled      int // ended runs that are in groups
	Groups        []FailureGroup
	GroupsDropped int
	Retrying      []Retrying
	Slowest       []runspkg.Run // by how long they took
	Dearest       []runspkg.Run // by cost; empty where nobody counted any
	Largest       []runspkg.Run // by tokens
	Phases        []PhaseStat
	PhaseRuns     int // runs that the percentiles are over
	PhaseSampled  int // of them: runs whose histories were read, since their memos have no times
	PhaseUnknown  int // ended tasks whose times are not known
}

// Scan is how far the reading has come.
type Scan struct {
	Running bool
	Stopped bool // by a person: nothing is read until asked again
	Stage   string
	Done    int
	Total   int // of this stage, 0 while unknown
	Took    time.Duration
}

// FailureGroup is runs that ended badly in the same way.
type FailureGroup struct {
	Kind     ace.ExitStatus // failed, timeout, cancelled, wrong
	Type     string         // the application's or Temporal's error type
	Dataset  string         // of a group of wrong answers
	Phase    ace.Phase      // in which it happened, "" where unknown
	Activity string         // whose failure it was, "" where it was the workflow's own
	Pattern  string         // the message, normalised
	Count    int
	Share    float64 // of the ended runs, 0 to 1
	First    Example
	Last     Example
	Runs     []runspkg.Run // newest first, at most 100
	Trend    []float64
}

// Example is one run of a group.
type Example struct {
	Run     runspkg.Run
	At      time.Time
	Message string // in full, at most 4 KiB
	Note    string // what a reader of the history learns beyond the error
}

// Retrying is an open run that tries something again.
type Retrying struct {
	Run         runspkg.Run
	Activity    string // "workflow task" where the workflow's own code fails
	Phase       ace.Phase
	State       string
	Attempt     int32
	MaxAttempts int32 // 0 for no limit
	LastError   ace.Failure
	Since       time.Time // when it was scheduled first
	Next        time.Time // when it is tried again, zero while it runs
	Worker      string    // who tried last
}

// PhaseStat is how long a step takes.
type PhaseStat struct {
	Phase string // or the activity's type where that is none of the contract's
	Runs  int
	P50   float64 // milliseconds
	P95   float64
	Max   float64
	Worst runspkg.Run // the run of Max
}

// Facts are what a scan has read; analyse works the rest out of them.
type Facts struct {
	query    string
	Window   int
	since    time.Duration
	Closed   []runspkg.Run // newest first
	Open     []runspkg.Run
	more     bool
	moreOpen bool
	Ends     map[string]Ending  // by run id: why it ended badly
	Notes    map[string]string  // by run id: what an example's history says
	Steps    map[string][]Timed // by run id: step times that the memo does not have
	Retrying []Retrying
}

// Ending is why a run ended.
type Ending struct {
	Failure  ace.Failure
	Activity string
	Shape    string // of its message, "" where it is not worked out yet
}

// Timed is how long one step took.
type Timed struct {
	Step string
	Ms   float64
}

// Analyse is a pure function of what was read.
func (f *Facts) Analyse(now time.Time) *Triage {
	t := &Triage{Query: f.query, Window: f.Window, Since: f.since, At: now, Ended: len(f.Closed), Open: len(f.Open),
		More: f.more, MoreOpen: f.moreOpen}
	for _, r := range f.Closed {
		if t.From.IsZero() || r.Close.Before(t.From) {
			t.From = r.Close
		}
		if r.Close.After(t.To) {
			t.To = r.Close
		}
	}
	f.group(t)
	t.Retrying = slices.Clone(f.Retrying)
	slices.SortStableFunc(t.Retrying, func(a, b Retrying) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), a.Since.Compare(b.Since), cmp.Compare(a.Run.WorkflowID, b.Run.WorkflowID))
	})
	tasks := slices.DeleteFunc(slices.Clone(f.Closed), func(r runspkg.Run) bool { return r.Type == ace.ExperimentWorkflow })
	t.Slowest = Top(tasks, func(r runspkg.Run) float64 { return float64(r.Age(r.Close)) })
	t.Dearest = Top(tasks, func(r runspkg.Run) float64 { return UsageOf(r).CostUSD })
	t.Largest = Top(tasks, func(r runspkg.Run) float64 { return float64(Tokens(r)) })
	f.phases(t, tasks)
	return t
}

// Tokens is how many tokens a run took, as its summary says.
func Tokens(r runspkg.Run) int64 {
	u := UsageOf(r)
	return u.InputTokens + u.OutputTokens
}

func UsageOf(r runspkg.Run) ace.Usage {
	if r.Summary == nil {
		return ace.Usage{}
	}
	return r.Summary.Usage
}

// Top is the runs of which there is most, most first; those with nothing are left out.
func Top(runs []runspkg.Run, of func(runspkg.Run) float64) []runspkg.Run {
	var best []runspkg.Run
	for _, r := range runs {
		v := of(r)
		if v <= 0 || len(best) == MaxTop && v <= of(best[MaxTop-1]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, v, func(b runspkg.Run, v float64) int {
			if of(b) >= v {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, r)
		best = best[:min(len(best), MaxTop)]
	}
	return best
}

func bad(r runspkg.Run) bool {
	return !r.Open() && r.Exit != ace.Success && r.Exit != ace.Running && r.Exit != ace.Continued
}

// groupKey is what makes two failures the same.
type groupKey struct {
	kind            ace.ExitStatus
	what            string
	phase           ace.Phase
	activity, shape string
	dataset         string
}

func (f *Facts) group(t *Triage) {
	groups := map[groupKey]*FailureGroup{}
	var order []*FailureGroup
	for _, r := range f.Closed {
		if !bad(r) {
			continue
		}
		e, known := f.why(r)
		if !known {
			continue
		}
		t.Troubled++
		k := f.keyOf(r, e)
		g := groups[k]
		ex := Example{Run: r, At: r.Close, Message: e.Failure.Message, Note: f.Notes[r.RunID]}
		if g == nil {
			g = &FailureGroup{Kind: k.kind, Type: k.what, Phase: k.phase, Activity: k.activity, Dataset: k.dataset, Pattern: k.shape,
				Last: ex, Trend: make([]float64, TrendBuckets)}
			groups[k] = g
			order = append(order, g)
		}
		g.Count++
		g.First = ex
		if len(g.Runs) < maxGroupRuns {
			g.Runs = append(g.Runs, r)
		}
		g.Trend[BucketOf(r.Close, t.From, t.To)]++
	}
	slices.SortStableFunc(order, func(a, b *FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.At.Compare(a.Last.At))
	})
	for i, g := range order {
		if i == MaxGroups {
			t.GroupsDropped = len(order) - MaxGroups
			break
		}
		g.Share = float64(g.Count) / float64(len(f.Closed))
		t.Groups = append(t.Groups, *g)
	}
}

func BucketOf(at, from, to time.Time) int {
	span := to.Sub(from)
	if span <= 0 {
		return TrendBuckets - 1
	}
	return min(int(float64(TrendBuckets)*float64(max(at.Sub(from), 0))/float64(span)), TrendBuckets-1)
}

// why is why a run ended badly; false while that is not read.
func (f *Facts) why(r runspkg.Run) (Ending, bool) {
	if r.Exit == ace.Wrong {
		return Ending{Failure: ace.Failure{Kind: ace.Wrong, Message: verdict(r.Summary)}}, true
	}
	e, known := f.Ends[r.RunID]
	return e, known
}

// verdict tells what the summary says of a run whose answer was wrong. The reason itself
// stands only in its history, which is read for the examples.
func verdict(s *ace.Summary) string {
	switch {
	case s == nil:
		return "wrong answer; the run left no summary"
	case s.Skills == 0:
		return "wrong answer without any tool call"
	case s.SkillsOK == 0:
		return "wrong answer; no tool call succeeded"
	case s.SkillsOK < s.Skills:
		return "wrong answer; some tool calls failed"
	}
	return "wrong answer though every tool call succeeded"
}

func (f *Facts) keyOf(r runspkg.Run, e Ending) groupKey {
	k := groupKey{kind: r.Exit, what: e.Failure.Type, activity: e.Activity, shape: e.Shape}
	if k.shape == "" {
		k.shape = Normalise(e.Failure.Message)
	}
	if k.shape == "" {
		k.shape = "(no message)"
	}
	if r.Exit == ace.Wrong {
		k.dataset = r.Dataset
	}
	if step, ok := ace.StepOf(e.Activity); ok {
		k.phase = step
	} else if e.Activity == "" && r.Exit != ace.Wrong {
		k.phase = r.Phase
	}
	return k
}

// phases works out the percentiles, over what the memos have and what was read besides.
func (f *Facts) phases(t *Triage, tasks []runspkg.Run) {
	times := map[string][]float64{}
	worst := map[string]runspkg.Run{}
	most := map[string]float64{}
	add := func(r runspkg.Run, step string, ms float64) {
		times[step] = append(times[step], ms)
		if ms > most[step] {
			most[step], worst[step] = ms, r
		}
	}
	for _, r := range tasks {
		read := f.Steps[r.RunID]
		switch {
		case r.Summary != nil && r.Summary.PhaseMS != (ace.PhaseMS{}):
			t.PhaseRuns++
			for _, step := range ace.Steps() {
				if ms := r.Summary.PhaseMS.Of(step); ms > 0 {
					add(r, string(step), ms)
				}
			}
		case len(read) > 0:
			t.PhaseRuns++
			t.PhaseSampled++
			for _, s := range read {
				add(r, s.Step, s.Ms)
			}
		case !bad(r) || r.Exit == ace.Wrong: // one that failed may not have come to the end of a step
			t.PhaseUnknown++
		}
	}
	for _, step := range stepNames(times) {
		ms := times[step]
		slices.Sort(ms)
		t.Phases = append(t.Phases, PhaseStat{Phase: step, Runs: len(ms), P50: rank(ms, 50), P95: rank(ms, 95),
			Max: ms[len(ms)-1], Worst: worst[step]})
	}
}

// stepNames lists the contract's steps in their order, then others by name.
func stepNames(times map[string][]float64) []string {
	var names, others []string
	for _, step := range ace.Steps() {
		if len(times[string(step)]) > 0 {
			names = append(names, string(step))
		}
	}
	for name := range times {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return append(names, others...)
}

// rank is the nearest-rank percentile of sorted values, 0 where there are none.
func rank(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// exactRuns is how many runs a query names one by one.
const exactRuns = 20

// Query is a visibility query for the runs of the group: exactly them where they are few,
// else all that ended in the same way in the same time.
func (g FailureGroup) Query() string {
	if g.Count <= exactRuns && g.Count == len(g.Runs) {
		ids := make([]string, 0, len(g.Runs))
		for _, r := range g.Runs {
			ids = append(ids, "'"+r.RunID+"'")
		}
		return "RunId IN (" + strings.Join(ids, ", ") + ")"
	}
	parts := []string{g.statusQuery(), fmt.Sprintf("CloseTime BETWEEN '%s' AND '%s'",
		g.First.At.UTC().Format(time.RFC3339Nano), g.Last.At.UTC().Format(time.RFC3339Nano))}
	if g.Dataset != "" && !strings.ContainsAny(g.Dataset, `'\`) {
		parts = append(parts, ace.AttrDataset+" = '"+g.Dataset+"'")
	}
	return strings.Join(parts, " AND ")
}

// Exact tells whether Query finds the runs of the group and no others.
func (g FailureGroup) Exact() bool { return g.Count <= exactRuns && g.Count == len(g.Runs) }

func (g FailureGroup) statusQuery() string {
	switch g.Kind {
	case ace.Wrong:
		return ace.AttrExit + " = 'wrong'"
	case ace.Timeout:
		return "(ExecutionStatus = 'TimedOut' OR " + ace.AttrExit + " = 'timeout')"
	case ace.Canceled:
		return "ExecutionStatus = 'Canceled'"
	}
	return "ExecutionStatus IN ('Failed', 'Terminated')"
}
