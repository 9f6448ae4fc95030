package triage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/trace/adapter"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Limits of a scan: concurrent calls, and calls per second.
const (
	triageWorkers = 8
	triageGap     = 4 * time.Millisecond
	maxExamples   = 40     // causes whose newest run is read
	maxKept       = 50_000 // endings and step times kept between scans
	knownInARow   = 50     // known rows in a row that end a listing
	maxSampled    = 2_000  // events read of one history
)

// Options says which runs to scan.
type Options struct {
	Namespace string
	Query     string        // visibility query, "" for all runs
	Window    int           // maximum number of closed runs; 0 for DefaultWindow
	Since     time.Duration // maximum age of closed runs; 0 for any
}

// Read scans once. progress may be nil.
func Read(ctx context.Context, c client.Client, o Options, progress func(Scan)) (*Result, error) {
	if progress == nil {
		progress = func(Scan) {}
	}
	s := newScanner(c, o)
	s.publish = func(*Facts) { progress(s.state) }
	err := s.scan(ctx)
	t := s.facts.Analyze(time.Now())
	t.Scan = s.state
	return t, err
}

// scanner reads the facts of a triage. It keeps what it read of closed runs, so that the next scan reads only
// new runs.
type scanner struct {
	c       client.Client
	publish func(*Facts) // called after each step, from one goroutine at a time
	state   Scan
	began   time.Time
	mu      sync.Mutex // held while workers write results
	facts   Facts
	since   map[string]time.Time // first schedules, by run and activity id
	readErr error                // first failure to read a history in this scan
}

func newScanner(c client.Client, o Options) *scanner {
	s := &scanner{c: c, publish: func(*Facts) {}, since: map[string]time.Time{}, facts: Facts{
		Ends: map[string]Ending{}, Reasons: map[string]Reason{}, Steps: map[string][]Timed{},
		Used: map[string]*ace.Summary{},
	}}
	s.choose(o)
	return s
}

// choose sets the runs to scan. What was read of single runs stays.
func (s *scanner) choose(o Options) {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if o.Window = min(o.Window, MaxWindow); o != s.facts.Options {
		known := s.facts
		s.facts = Facts{Options: o, Ends: known.Ends, Reasons: known.Reasons, Steps: known.Steps,
			Used: known.Used}
	}
}

// scan reads stuck runs first, because the user can still act on them.
func (s *scanner) scan(ctx context.Context) error {
	s.began, s.readErr = time.Now(), nil
	forget(s.facts.Ends)
	forget(s.facts.Reasons)
	forget(s.facts.Steps)
	forget(s.facts.Used)
	forget(s.since)
	for _, stage := range []func(context.Context) error{
		s.readOpen, s.readPending, s.readClosed, s.readEnds, s.readReasons, s.readSteps, s.readUsage,
	} {
		if err := stage(ctx); err != nil {
			s.state.Running = false
			return err
		}
	}
	s.state = Scan{Took: time.Since(s.began)}
	return s.readErr
}

// stage begins a part of the scan.
func (s *scanner) stage(name string, total int) {
	s.state = Scan{Running: true, Stage: name, Total: total, Took: time.Since(s.began)}
	s.publish(&s.facts)
}

// forget empties a map that holds more than is kept between scans.
func forget[V any](known map[string]V) {
	if len(known) > maxKept {
		clear(known)
	}
}

func (s *scanner) readOpen(ctx context.Context) error {
	s.stage("open runs", 0)
	var open []runs.Run
	err := runs.List(ctx, s.c, runs.And(s.facts.Query, `ExecutionStatus = "Running"`), maxOpen+1,
		func(r runs.Run) error {
			open = append(open, r)
			return nil
		})
	if err != nil {
		return err
	}
	s.facts.moreOpen = len(open) > maxOpen
	s.facts.Open = open[:min(len(open), maxOpen)]
	return nil
}

// readClosed lists closed runs, newest first, until it reaches known runs.
func (s *scanner) readClosed(ctx context.Context) error {
	s.stage("closed runs", s.facts.Window)
	known := map[string]runs.Run{}
	for _, r := range s.facts.Closed {
		known[r.RunID] = r
	}
	var fresh []runs.Run
	row, caughtUp := 0, false
	query := runs.And(s.facts.Query, `ExecutionStatus != "Running" AND ExecutionStatus != "ContinuedAsNew"`)
	oldest := time.Time{}
	if s.facts.Since > 0 {
		oldest = time.Now().Add(-s.facts.Since)
		query = runs.And(query, fmt.Sprintf("CloseTime >= %q", oldest.UTC().Format(time.RFC3339)))
	}
	err := runs.List(ctx, s.c, query, s.facts.Window+1, func(r runs.Run) error {
		if _, ok := known[r.RunID]; !ok {
			fresh, row = append(fresh, r), 0
		} else if row++; row == knownInARow {
			caughtUp = true
			return errCaughtUp
		}
		if len(fresh)%runs.PageSize == 0 {
			s.state.Done = len(fresh)
			s.publish(&s.facts)
		}
		return nil
	})
	if err != nil && !caughtUp {
		return err
	}
	all := runs.Joined(fresh, s.facts.Closed)
	if !oldest.IsZero() {
		all = slices.DeleteFunc(all, func(r runs.Run) bool { return r.Close.Before(oldest) })
	}
	s.facts.more = len(all) > s.facts.Window || caughtUp && s.facts.more
	s.facts.Closed = all[:min(len(all), s.facts.Window)]
	return nil
}

var errCaughtUp = fmt.Errorf("reached known runs")

// gather reads a value of each run, concurrently and at a limited rate, and keeps it by run id. It stops
// early only if ctx ends or the server is unreachable.
func gather[V any](ctx context.Context, s *scanner, stage string, list []runs.Run, values map[string]V,
	read func(context.Context, runs.Run) (V, error)) error {
	s.stage(stage, len(list))
	calls, limited := errgroup.WithContext(ctx)
	calls.SetLimit(triageWorkers)
	for _, r := range list {
		calls.Go(func() error {
			call, stop := context.WithTimeout(limited, cluster.CallTimeout)
			defer stop()
			v, err := read(call, r)
			s.mu.Lock()
			defer s.mu.Unlock()
			if err == nil {
				values[r.RunID] = v
			}
			return s.finish(limited, err)
		})
		if cluster.Sleep(limited, triageGap) != nil {
			break
		}
	}
	if err := calls.Wait(); err != nil || len(list) == 0 {
		return err
	}
	return ctx.Err()
}

// finish counts a call and keeps its error. It returns an error that ends the scan. The lock is held.
func (s *scanner) finish(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = nil
	}
	if err != nil && s.readErr == nil && !cluster.NotFound(err) {
		s.readErr = err
	}
	s.state.Done++
	s.publish(&s.facts)
	if cluster.Unreachable(err) {
		return err
	}
	return nil
}

// readEnds reads the last event of every failed run that is not known yet, and the state of its workflow
// task.
func (s *scanner) readEnds(ctx context.Context) error {
	var want []runs.Run
	for _, r := range s.facts.Closed {
		if _, known := s.facts.Ends[r.RunID]; r.Status.Bad() && !known {
			want = append(want, r)
		}
	}
	read := func(ctx context.Context, r runs.Run) (Ending, error) {
		e, task, err := s.pages(r).LastTask(ctx)
		if err != nil && !cluster.NotFound(err) {
			return Ending{}, err
		}
		end := Ending{Failure: ace.Failure{Kind: r.Status, Message: "its history is deleted"}}
		if err == nil {
			end = EndingOf(e, r, task)
		}
		end.Pattern = Normalize(end.Failure.Message)
		err = s.explain(ctx, r, &end)
		return end, err
	}
	return gather(ctx, s, "reasons of failures", want, s.facts.Ends, read)
}

func (s *scanner) pages(r runs.Run) cluster.Pages {
	return cluster.Pages{C: s.c, Namespace: s.facts.Namespace, WorkflowID: r.WorkflowID, RunID: r.RunID}
}

// EndingOf returns why a run ended, from its last event and the state of its workflow task.
func EndingOf(e *historypb.HistoryEvent, r runs.Run, task history.WorkflowTask) Ending {
	fact, _ := task.Closing(e)
	f := fact.Failure
	switch {
	case fact.Status == ace.Canceled:
		f = &ace.Failure{Kind: ace.Canceled, Message: "canceled"}
	case f == nil:
		f = &ace.Failure{Kind: r.Status, Message: "the server closed the run as " + string(r.Status)}
	case fact.Status == ace.TimedOut:
		f.Type = "WorkflowTimeout"
	case fact.Status == ace.Terminated:
		f.Message = "terminated: " + cmp.Or(f.Message, "no reason given")
	}
	f.Message = ace.Cut(f.Message, maxMessage)
	failure := e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
	return Ending{Failure: *f, Activity: failedActivity(failure), HTTP: statusOf(failure)}
}

// failedActivity returns the activity type of a failure, or "".
func failedActivity(f *failurepb.Failure) string {
	name := ""
	for ; f != nil; f = f.GetCause() {
		if a := f.GetActivityFailureInfo(); a != nil {
			name = a.GetActivityType().GetName()
		}
	}
	return name
}

// readSteps reads the step times of some runs whose memos lack them.
func (s *scanner) readSteps(ctx context.Context) error {
	var want []runs.Run
	sample := 0
	for _, r := range s.facts.Closed {
		if r.Type == ace.ExperimentWorkflow || r.Status.Bad() ||
			r.Summary != nil && r.Summary.PhaseMS != (ace.PhaseMS{}) {
			continue
		}
		if sample++; sample > maxPhaseSample {
			break
		}
		if _, known := s.facts.Steps[r.RunID]; !known {
			want = append(want, r)
		}
	}
	return gather(ctx, s, "step times", want, s.facts.Steps, func(ctx context.Context, r runs.Run) ([]Timed,
		error) {
		var steps StepTimer
		var agents adapter.Folder
		err := s.events(ctx, r, func(e *historypb.HistoryEvent) {
			agents.Apply(e)
			steps.Add(e)
			steps.nameCall(e, &agents)
		})
		return steps.Done, err
	})
}

// readUsage reads the usage of the newest runs of users' own workflows, which only the histories have.
func (s *scanner) readUsage(ctx context.Context) error {
	var want []runs.Run
	sample := 0
	for _, r := range s.facts.Closed {
		if !histories.LacksTrace(r) {
			continue
		}
		if sample++; sample > maxPhaseSample {
			break
		}
		if _, known := s.facts.Used[r.RunID]; !known {
			want = append(want, r)
		}
	}
	return gather(ctx, s, "costs", want, s.facts.Used, func(ctx context.Context, r runs.Run) (*ace.Summary,
		error) {
		err := histories.AddTrace(ctx, s.c, &r)
		return r.Summary, err
	})
}

// events passes the first maxSampled events of a run to fn.
func (s *scanner) events(ctx context.Context, r runs.Run, fn func(*historypb.HistoryEvent)) error {
	iter := s.c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for n := 0; n < maxSampled && iter.HasNext(); n++ {
		e, err := iter.Next()
		if cluster.NotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		fn(e)
	}
	return nil
}

// StepTimer measures activities from their last start to their end, by the server's clock. A step of the
// contract is named by its phase.
type StepTimer struct {
	names  map[int64]string
	starts map[int64]time.Time
	Done   []Timed
}

func (t *StepTimer) Add(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		name := e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
		if step, ok := ace.StepOf(name); ok {
			name = string(step)
		} else if step, _, _, ok := history.ParseOperationID(
			e.GetActivityTaskScheduledEventAttributes().GetActivityId()); ok {
			name = step
		}
		if t.names == nil {
			t.names, t.starts = map[int64]string{}, map[int64]time.Time{}
		}
		t.names[e.GetEventId()] = name
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		if t.starts != nil {
			t.starts[e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()] = e.GetEventTime().AsTime()
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		id := e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()
		if at, ok := t.starts[id]; ok {
			took := max(e.GetEventTime().AsTime().Sub(at), 0)
			t.Done = append(t.Done, Timed{t.names[id], cluster.Millis(took)})
		}
	}
}

// lastEvents bounds the newest events that are read to find the first schedule.
const lastEvents = 50

// readPending reads the pending activities and workflow tasks of each open run.
func (s *scanner) readPending(ctx context.Context) error {
	byRun := map[string][]Retrying{}
	read := func(ctx context.Context, r runs.Run) ([]Retrying, error) {
		d, err := s.pages(r).Describe(ctx)
		if err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return nil, err
		}
		return s.retrying(ctx, r, d), nil
	}
	err := gather(ctx, s, "pending activities of open runs", s.facts.Open, byRun, read)
	if err == nil {
		s.facts.Retrying = slices.Concat(slices.Collect(maps.Values(byRun))...)
	}
	return err
}

func (s *scanner) retrying(ctx context.Context, r runs.Run,
	d *workflowservice.DescribeWorkflowExecutionResponse) []Retrying {
	var out []Retrying
	for _, a := range d.GetPendingActivities() {
		x := retryOf(r, a)
		switch {
		case x.Activity == history.TaskType:
			x.Phase = r.Phase
		case x.Attempt > 1:
			x.Since = s.first(ctx, r, a.GetActivityId(), x.Since)
		default:
			continue
		}
		out = append(out, x)
	}
	return out
}

func retryOf(r runs.Run, a *workflowpb.PendingActivityInfo) Retrying {
	p := histories.PendingOf(a)
	x := Retrying{Run: r, Activity: p.Type, State: p.State, Attempt: p.Attempt, MaxAttempts: p.MaxAttempts,
		Since: p.Since, Next: p.Next, Worker: p.Worker}
	if f := a.GetLastFailure(); f != nil {
		x.LastError = history.FailureOf(f)
		x.LastError.Message = ace.Cut(x.LastError.Message, maxMessage)
	}
	if step, ok := ace.StepOf(p.Type); ok {
		x.Phase = step
	}
	return x
}

// first returns when an activity was first scheduled. It reads the newest events, because the server's
// description restarts with each attempt. It returns other if they do not contain the schedule.
func (s *scanner) first(ctx context.Context, r runs.Run, activityID string, other time.Time) time.Time {
	key := r.RunID + "/" + activityID
	s.mu.Lock()
	known, ok := s.since[key]
	s.mu.Unlock()
	if ok {
		return known
	}
	events, _, _ := s.pages(r).Backward(ctx, lastEvents, nil) // none if they cannot be read
	for _, e := range slices.Backward(events) {
		if e.GetActivityTaskScheduledEventAttributes().GetActivityId() == activityID {
			at := e.GetEventTime().AsTime()
			s.mu.Lock()
			s.since[key] = at
			s.mu.Unlock()
			return at
		}
	}
	return other
}
