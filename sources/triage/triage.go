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

// Bounds of a triage. Dropped items are counted.
const (
	DefaultWindow  = 2000   // default number of closed runs
	MaxWindow      = 20_000 // maximum number of closed runs
	maxOpen        = 500    // open runs
	maxGroupRuns   = 100    // kept runs of a group, newest first
	MaxGroups      = 200
	MaxTop         = 20 // slowest, most expensive, largest
	TrendBuckets   = 24
	maxMessage     = 4096 // bytes of an error
	maxPhaseSample = 50   // histories read for step times that are not in a memo
)

// Result lists the failed, stuck, slow and expensive runs of a query.
type Result struct {
	Query  string
	Window int           // maximum number of closed runs, newest first
	Since  time.Duration // maximum age of closed runs, 0 for any
	At     time.Time     // time of the scan
	Scan   Scan
	Err    string // why the last scan is incomplete

	Ended, Open int       // numbers of scanned runs
	More        bool      // older closed runs were not scanned
	MoreOpen    bool      // further open runs were not scanned
	From, To    time.Time // close times of the oldest and newest scanned run

	Grouped       int // closed runs that are in groups
	Groups        []FailureGroup
	GroupsDropped int
	Retrying      []Retrying
	Slowest       []runspkg.Run // by duration
	MostExpensive []runspkg.Run // by cost; empty without cost data
	Largest       []runspkg.Run // by tokens
	Phases        []PhaseStat
	PhaseRuns     int // runs of the percentiles
	PhaseSampled  int // runs whose histories were read because their memos have no step times
	PhaseUnknown  int // closed tasks with unknown step times
}

// Scan is the progress of a scan.
type Scan struct {
	Running bool
	Stopped bool // by the user: no new scan begins
	Stage   string
	Done    int
	Total   int // of this stage, 0 if unknown
	Took    time.Duration
}

// FailureGroup is a group of runs that failed for the same reason.
type FailureGroup struct {
	Kind     ace.ExitStatus // failed, timeout, canceled, wrong
	Type     string         // error type of the application or of Temporal
	Dataset  string         // of a group of wrong answers
	Phase    ace.Phase      // of the failure, "" if unknown
	Activity string         // that failed, "" for the workflow itself
	Pattern  string         // normalized message
	Count    int
	Share    float64 // of the closed runs, 0 to 1
	First    Example
	Last     Example
	Runs     []runspkg.Run // newest first, at most 100
	Trend    []float64
}

// Example is one run of a group.
type Example struct {
	Run     runspkg.Run
	At      time.Time
	Message string // complete, at most 4 KiB
	Note    string // further information from the history
}

// Retrying is an open run that retries an activity or a workflow task.
type Retrying struct {
	Run         runspkg.Run
	Activity    string // "workflow task" if the workflow code fails
	Phase       ace.Phase
	State       string
	Attempt     int32
	MaxAttempts int32 // 0 for no limit
	LastError   ace.Failure
	Since       time.Time // first schedule
	Next        time.Time // next attempt, zero while an attempt runs
	Worker      string    // of the last attempt
}

// PhaseStat holds the durations of a step.
type PhaseStat struct {
	Phase string // or the activity type if it is not a step of the contract
	Runs  int
	P50   float64 // milliseconds
	P95   float64
	Max   float64
	Worst runspkg.Run // run of Max
}

// Facts holds what a scan has read; Analyze derives the result.
type Facts struct {
	query    string
	Window   int
	since    time.Duration
	Closed   []runspkg.Run // newest first
	Open     []runspkg.Run
	more     bool
	moreOpen bool
	Ends     map[string]Ending  // by run id: why it failed
	Notes    map[string]string  // by run id: note of an example
	Steps    map[string][]Timed // by run id: step times that are not in the memo
	Retrying []Retrying
}

// Ending is why a run ended.
type Ending struct {
	Failure  ace.Failure
	Activity string
	Pattern  string // normalized message, "" until it is needed
}

// Timed is the duration of one step.
type Timed struct {
	Step string
	Ms   float64
}

// Analyze derives the result from the facts.
func (f *Facts) Analyze(now time.Time) *Result {
	t := &Result{Query: f.query, Window: f.Window, Since: f.since, At: now, Ended: len(f.Closed), Open: len(f.Open),
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
	t.MostExpensive = Top(tasks, func(r runspkg.Run) float64 { return UsageOf(r).CostUSD })
	t.Largest = Top(tasks, func(r runspkg.Run) float64 { return float64(Tokens(r)) })
	f.phases(t, tasks)
	return t
}

// Tokens returns the number of tokens in a run's summary.
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

// Top returns the runs with the largest values, largest first, without zeros.
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

// groupKey identifies a group of failures.
type groupKey struct {
	kind              ace.ExitStatus
	what              string
	phase             ace.Phase
	activity, pattern string
	dataset           string
}

func (f *Facts) group(t *Result) {
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
		t.Grouped++
		k := f.keyOf(r, e)
		g := groups[k]
		ex := Example{Run: r, At: r.Close, Message: e.Failure.Message, Note: f.Notes[r.RunID]}
		if g == nil {
			g = &FailureGroup{Kind: k.kind, Type: k.what, Phase: k.phase, Activity: k.activity, Dataset: k.dataset, Pattern: k.pattern,
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

// why returns why a run failed; false if its history is not read yet.
func (f *Facts) why(r runspkg.Run) (Ending, bool) {
	if r.Exit == ace.Wrong {
		return Ending{Failure: ace.Failure{Kind: ace.Wrong, Message: verdict(r.Summary)}}, true
	}
	e, known := f.Ends[r.RunID]
	return e, known
}

// verdict describes a wrong answer from the summary. The details are only in the history, which is read for
// examples.
func verdict(s *ace.Summary) string {
	switch {
	case s == nil:
		return "wrong answer; the run has no summary"
	case s.Skills == 0:
		return "wrong answer without any tool call"
	case s.SkillsOK == 0:
		return "wrong answer; no tool call succeeded"
	case s.SkillsOK < s.Skills:
		return "wrong answer; some tool calls failed"
	}
	return "wrong answer; every tool call succeeded"
}

func (f *Facts) keyOf(r runspkg.Run, e Ending) groupKey {
	k := groupKey{kind: r.Exit, what: e.Failure.Type, activity: e.Activity, pattern: e.Pattern}
	if k.pattern == "" {
		k.pattern = Normalize(e.Failure.Message)
	}
	if k.pattern == "" {
		k.pattern = "(no message)"
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

// phases computes the percentiles of the step times from memos and histories.
func (f *Facts) phases(t *Result, tasks []runspkg.Run) {
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
		case !bad(r) || r.Exit == ace.Wrong: // a failed run may have ended within a step
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

// stepNames returns the contract's steps in their order, then others by name.
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

// rank returns the nearest-rank percentile of sorted values, or 0 for an empty list.
func rank(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// exactRuns is the largest number of runs that a query names individually.
const exactRuns = 20

// Query returns a visibility query for the runs of the group: exactly these runs if they are few, otherwise all
// runs that ended the same way in the same period.
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

// Exact reports whether Query finds only the runs of the group.
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
