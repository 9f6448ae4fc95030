// Package triage scans closed and open runs and groups failures by cause.
package triage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/learning/stats"
	runspkg "acescope/sources/runs"
)

// Bounds of a triage. Dropped items are counted.
const (
	DefaultWindow  = 2000   // default number of closed runs
	MaxWindow      = 20_000 // maximum number of closed runs
	maxOpen        = 500    // open runs
	maxGroupRuns   = 200    // kept runs of a group, newest first
	MaxGroups      = 200
	MaxTop         = 20 // slowest, most expensive, largest
	TrendBuckets   = 24
	maxMessage     = 4096 // bytes of an error
	maxPhaseSample = 50   // histories read for step times that are not in a memo
)

// Result lists the failed, stuck, slow and expensive runs of a query.
type Result struct {
	Query  string        `json:"query"`
	Window int           `json:"window"` // maximum number of closed runs, newest first
	Since  time.Duration `json:"-"`      // maximum age of closed runs, 0 for any
	At     time.Time     `json:"at"`     // time of the scan
	Scan   Scan          `json:"-"`
	Err    string        `json:"-"` // why the last scan is incomplete

	// Numbers of scanned runs, and whether there are more of them.
	Ended    int  `json:"ended"`
	Open     int  `json:"open"`
	More     bool `json:"more"`
	MoreOpen bool `json:"more_open"`
	// Close times of the oldest and newest scanned run.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`

	Grouped       int            `json:"grouped"` // closed runs that are in groups
	Groups        []FailureGroup `json:"-"`
	GroupsDropped int            `json:"groups_dropped"`
	Retrying      []Retrying     `json:"retrying"`
	Slowest       []runspkg.Run  `json:"-"` // by duration
	MostExpensive []runspkg.Run  `json:"-"` // by cost; empty without cost data
	Largest       []runspkg.Run  `json:"-"` // by tokens
	Phases        []PhaseStat    `json:"phases"`
	PhaseRuns     int            `json:"phase_runs"` // runs of the percentiles
	// of them, runs whose histories were read for their step times
	PhaseSampled int `json:"phase_sampled"`
	PhaseUnknown int `json:"phase_unknown"` // closed tasks with unknown step times
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

// Cause is the cause that all runs of a group share.
type Cause struct {
	Status  ace.Status  `json:"status"`
	Verdict ace.Verdict `json:"verdict,omitempty"`      // "wrong" for a group of wrong answers
	Type    string      `json:"failure_type,omitempty"` // error type of the application or of Temporal
	// of the failure, or the step of a flow; "" if unknown
	Phase    ace.Phase `json:"phase,omitempty"`
	Activity string    `json:"activity,omitempty"` // that failed, "" for the workflow itself
	Pattern  string    `json:"pattern"`            // normalized message, or why the answers are wrong
}

// Key identifies a group of runs by its cause.
func (c Cause) Key() string { return fmt.Sprintf("%q", c) }

// FailureGroup is a group of runs that failed for the same reason.
type FailureGroup struct {
	Cause
	Count int           `json:"count"`
	Share float64       `json:"share"`     // of the closed runs, 0 to 1
	Low   float64       `json:"share_low"` // limits of its interval
	High  float64       `json:"share_high"`
	First Example       `json:"first"`
	Last  Example       `json:"last"`
	Runs  []runspkg.Run `json:"-"` // newest first, at most 200
	// Reasons says why the answers of Runs are wrong; nil for other groups.
	Reasons []Reason  `json:"-"`
	Trend   []float64 `json:"trend"`
}

// Interval returns the interval of the share.
func (g *FailureGroup) Interval() stats.Interval { return stats.Interval{Low: g.Low, High: g.High} }

// Example is one run of a group.
type Example struct {
	Run     runspkg.Run `json:"run"`
	At      time.Time   `json:"at"`
	Message string      `json:"message"`          // complete, at most 4 KiB
	Reason  *Reason     `json:"reason,omitempty"` // of a wrong answer
}

// Retrying is an open run that retries an activity or a workflow task.
type Retrying struct {
	Run         runspkg.Run `json:"run"`
	Activity    string      `json:"activity"` // "workflow task" if the workflow code fails
	Phase       ace.Phase   `json:"phase,omitempty"`
	State       string      `json:"state"`
	Attempt     int32       `json:"attempt"`
	MaxAttempts int32       `json:"max_attempts"` // 0 for no limit
	LastError   ace.Failure `json:"last_error"`
	Since       time.Time   `json:"since"`            // first schedule
	Next        time.Time   `json:"next,omitzero"`    // next attempt, zero while an attempt runs
	Worker      string      `json:"worker,omitempty"` // of the last attempt
}

// PhaseStat holds the durations of a step in milliseconds.
type PhaseStat struct {
	Phase string      `json:"phase"` // or the activity type if it is not a step of the contract
	Runs  int         `json:"runs"`
	P50   float64     `json:"p50_ms"`
	P95   float64     `json:"p95_ms"`
	Max   float64     `json:"max_ms"`
	Calls int         `json:"calls"` // a run may take a step several times
	Worst runspkg.Run `json:"max_run"`
}

// Slow reports whether the longest step took much longer than usual: at least a second, and four times the
// 95th percentile of at least 20 runs.
func (p PhaseStat) Slow() bool { return p.Runs >= 20 && p.Max >= 1000 && p.Max > 4*p.P95 }

// Facts holds what a scan has read; Analyze derives the result.
type Facts struct {
	Options
	Closed   []runspkg.Run // newest first
	Open     []runspkg.Run
	more     bool
	moreOpen bool
	Ends     map[string]Ending  // by run id: why it failed
	Reasons  map[string]Reason  // by run id: why the answer is wrong
	Steps    map[string][]Timed // by run id: step times that are not in the memo
	Used     map[string]*ace.Summary
	Retrying []Retrying
}

// Ending is why a run ended.
type Ending struct {
	Failure  ace.Failure
	Activity string
	Pattern  string // normalized message, "" until it is needed
	HTTP     int    // status of a model's or another server, 0 if the failure names none
}

// Timed is the duration of one step.
type Timed struct {
	Step string
	Ms   float64
}

// Analyze derives the result from the facts.
func (f *Facts) Analyze(now time.Time) *Result {
	t := &Result{
		Query: f.Query, Window: f.Window, Since: f.Since, At: now, Ended: len(f.Closed), Open: len(f.Open),
		More: f.more, MoreOpen: f.moreOpen, Phases: []PhaseStat{},
	}
	byClose := func(a, b runspkg.Run) int { return a.Close.Compare(b.Close) }
	if len(f.Closed) > 0 {
		t.From, t.To = slices.MinFunc(f.Closed, byClose).Close, slices.MaxFunc(f.Closed, byClose).Close
	}
	f.group(t)
	t.Retrying = append([]Retrying{}, f.Retrying...)
	slices.SortStableFunc(t.Retrying, func(a, b Retrying) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), a.Since.Compare(b.Since),
			cmp.Compare(a.Run.WorkflowID, b.Run.WorkflowID))
	})
	tasks := slices.DeleteFunc(slices.Clone(f.Closed), func(r runspkg.Run) bool {
		return r.Type == ace.ExperimentWorkflow
	})
	for i, r := range tasks {
		if r.Summary == nil {
			tasks[i].Summary = f.Used[r.RunID]
		}
	}
	t.Slowest = Top(tasks, func(r runspkg.Run) float64 { return float64(r.Age(r.Close)) })
	t.MostExpensive = Top(tasks, func(r runspkg.Run) float64 { return UsageOf(r).CostUSD })
	t.Largest = Top(tasks, func(r runspkg.Run) float64 { return float64(Tokens(r)) })
	f.phases(t, tasks)
	return t
}

// Tokens returns the number of tokens of a run, as lists do: with those of the cache.
func Tokens(r runspkg.Run) int64 { return r.Tokens().N }

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

// wrong reports whether the run completed with a wrong answer.
func wrong(r runspkg.Run) bool { return r.Status == ace.Completed && r.Verdict == ace.Wrong }

func (f *Facts) group(t *Result) {
	groups := map[Cause]*FailureGroup{}
	var order []*FailureGroup
	for _, r := range f.Closed {
		if !r.Status.Bad() && !wrong(r) {
			continue
		}
		e, known := f.why(r)
		if !known {
			continue
		}
		t.Grouped++
		cause := f.causeOf(r, e)
		g := groups[cause]
		ex := Example{Run: r, At: r.Close, Message: e.Failure.Message}
		if reason, ok := f.reason(r); ok && wrong(r) {
			ex.Reason = &reason
		}
		if g == nil {
			g = &FailureGroup{Cause: cause, Last: ex, Trend: make([]float64, TrendBuckets)}
			groups[cause] = g
			order = append(order, g)
		}
		g.Count++
		g.First = ex
		if len(g.Runs) < maxGroupRuns {
			g.Runs = append(g.Runs, r)
			if ex.Reason != nil {
				g.Reasons = append(g.Reasons, *ex.Reason)
			}
		}
		g.Trend[BucketOf(r.Close, t.From, t.To)]++
	}
	slices.SortStableFunc(order, func(a, b *FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.At.Compare(a.Last.At))
	})
	t.GroupsDropped = max(len(order)-MaxGroups, 0)
	for _, g := range order[:len(order)-t.GroupsDropped] {
		g.Share = stats.Share(g.Count, len(f.Closed))
		i := stats.Wilson(g.Count, len(f.Closed))
		g.Low, g.High = i.Low, i.High
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
	if wrong(r) {
		reason, known := f.reason(r)
		return Ending{Failure: ace.Failure{Kind: r.Status, Message: reason.Cause}, Pattern: reason.Cause},
			known
	}
	e, known := f.Ends[r.RunID]
	return e, known
}

func (f *Facts) causeOf(r runspkg.Run, e Ending) Cause {
	c := Cause{Status: r.Status, Type: e.Failure.Type, Activity: e.Activity}
	c.Pattern = cmp.Or(e.Pattern, Normalize(e.Failure.Message), "(no message)")
	step, ok := ace.StepOf(e.Activity)
	switch {
	case e.HTTP != 0 && foreign(r): // whatever SDK and activity reported it
		return Cause{Status: r.Status, Type: "HTTP", Pattern: statusPattern(e.HTTP)}
	case wrong(r):
		c.Verdict = ace.Wrong
	case ok:
		c.Phase = step
	case r.Flow != "":
		c.Phase = ace.Phase(flow.FailedStep(e.Failure.Message))
	case e.Activity == "":
		c.Phase = r.Phase
	}
	return c
}

// phases computes the percentiles of the step times from memos and histories.
func (f *Facts) phases(t *Result, tasks []runspkg.Run) {
	times := map[string][]float64{}
	worst := map[string]runspkg.Run{}
	most := map[string]float64{}
	of := map[string]map[string]bool{} // run ids
	add := func(r runspkg.Run, step string, ms float64) {
		if times[step] = append(times[step], ms); of[step] == nil {
			of[step] = map[string]bool{}
		}
		of[step][r.RunID] = true
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
		case !r.Status.Bad(): // a failed run may have ended within a step
			t.PhaseUnknown++
		}
	}
	for _, step := range stepNames(times) {
		ms := times[step]
		slices.Sort(ms)
		t.Phases = append(t.Phases, PhaseStat{Phase: step, Runs: len(of[step]), Calls: len(ms), P50: rank(ms, 50),
			P95: rank(ms, 95),
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

// rank returns the nearest-rank percentile of sorted values.
func rank(sorted []float64, p int) float64 {
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// Query returns a visibility query for the runs of the group that are kept.
func (g FailureGroup) Query() string {
	ids := make([]string, 0, len(g.Runs))
	for _, r := range g.Runs {
		ids = append(ids, "'"+r.RunID+"'")
	}
	return "RunId IN (" + strings.Join(ids, ", ") + ")"
}

// Exact reports whether Query finds all runs of the group.
func (g FailureGroup) Exact() bool { return g.Count == len(g.Runs) }
