package triage

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Rhythm of a scan: how many calls are under way at a time, and how many are begun a
// second at most.
const (
	triageWorkers = 8
	triageGap     = 4 * time.Millisecond
	maxNotes      = 40
	maxKept       = 50_000 // endings and step times that are kept between scans
	knownInARow   = 50     // rows known already after which a listing has caught up
	maxSampled    = 2_000  // events read of one history
)

// TriageOptions say what to look at.
type TriageOptions struct {
	Namespace string
	Query     string        // a visibility query, "" for all runs
	Window    int           // ended runs at most; 0 for TriageWindow
	Since     time.Duration // ended so long ago at most; 0 for all
}

// ReadTriage scans once. progress, where it is not nil, is told how far it has come.
func ReadTriage(ctx context.Context, c client.Client, o TriageOptions, progress func(Scan)) (*Triage, error) {
	if progress == nil {
		progress = func(Scan) {}
	}
	s := NewScanner(c, o)
	s.Tell = func(*Facts) { progress(s.State) }
	err := s.Scan(ctx)
	t := s.Facts.Analyse(time.Now())
	t.Scan = s.State
	return t, err
}

// Scanner reads what a triage is made of. What it read of a closed run it keeps, since
// that does not change: the next scan reads only what is new.
type Scanner struct {
	c       client.Client
	O       TriageOptions
	Tell    func(*Facts) // after each step forward, from one goroutine at a time
	State   Scan
	began   time.Time
	mu      sync.Mutex // held while workers write what they read
	Facts   Facts
	Since   map[string]scheduled // by run and activity id
	readErr error                // the first failure to read a history in this scan
}

// scheduled is when something was scheduled first, and how it failed.
type scheduled struct {
	at      time.Time
	failure ace.Failure
}

func NewScanner(c client.Client, o TriageOptions) *Scanner {
	if o.Window <= 0 {
		o.Window = TriageWindow
	}
	o.Window = min(o.Window, MaxTriage)
	return &Scanner{c: c, O: o, Tell: func(*Facts) {}, Since: map[string]scheduled{}, Facts: Facts{
		query: o.Query, Window: o.Window, since: o.Since,
		Ends: map[string]Ending{}, Notes: map[string]string{}, Steps: map[string][]Timed{},
	}}
}

// Scan reads what is stuck first, since that can still be helped.
func (s *Scanner) Scan(ctx context.Context) error {
	s.began, s.readErr = time.Now(), nil
	s.forget()
	for _, stage := range []func(context.Context) error{s.readOpen, s.readPending, s.readClosed, s.readEnds, s.readNotes, s.readSteps} {
		if err := stage(ctx); err != nil {
			s.State.Running = false
			return err
		}
	}
	s.State = Scan{Took: time.Since(s.began)}
	return s.readErr
}

// stage begins a part of the scan.
func (s *Scanner) stage(name string, total int) {
	s.State = Scan{Running: true, Stage: name, Total: total, Took: time.Since(s.began)}
	s.Tell(&s.Facts)
}

// forget keeps what is kept between scans in its bounds.
func (s *Scanner) forget() {
	if len(s.Facts.Ends) > maxKept {
		s.Facts.Ends = map[string]Ending{}
	}
	if len(s.Facts.Notes) > maxKept {
		s.Facts.Notes = map[string]string{}
	}
	if len(s.Facts.Steps) > maxKept {
		s.Facts.Steps = map[string][]Timed{}
	}
	if len(s.Since) > maxKept {
		s.Since = map[string]scheduled{}
	}
}

func (s *Scanner) readOpen(ctx context.Context) error {
	s.stage("open runs", 0)
	var open []runs.Run
	err := runs.List(ctx, s.c, runs.And(s.O.Query, `ExecutionStatus = "Running"`), MaxTriageOpen+1, func(r runs.Run) error {
		open = append(open, r)
		return nil
	})
	if err != nil {
		return err
	}
	s.Facts.moreOpen = len(open) > MaxTriageOpen
	s.Facts.Open = open[:min(len(open), MaxTriageOpen)]
	return nil
}

// readClosed lists the ended runs, newest first, until it meets those that it has.
func (s *Scanner) readClosed(ctx context.Context) error {
	s.stage("ended runs", s.O.Window)
	known := map[string]runs.Run{}
	for _, r := range s.Facts.Closed {
		known[r.RunID] = r
	}
	var fresh []runs.Run
	row, caughtUp := 0, false
	query := runs.And(s.O.Query, `ExecutionStatus != "Running" AND ExecutionStatus != "ContinuedAsNew"`)
	oldest := time.Time{}
	if s.O.Since > 0 {
		oldest = time.Now().Add(-s.O.Since)
		query = runs.And(query, fmt.Sprintf("CloseTime >= %q", oldest.UTC().Format(time.RFC3339)))
	}
	err := runs.List(ctx, s.c, query, s.O.Window+1, func(r runs.Run) error {
		if _, ok := known[r.RunID]; !ok {
			fresh, row = append(fresh, r), 0
		} else if row++; row == knownInARow {
			caughtUp = true
			return errCaughtUp
		}
		if len(fresh)%runs.PageSize == 0 {
			s.State.Done = len(fresh)
			s.Tell(&s.Facts)
		}
		return nil
	})
	if err != nil && !caughtUp {
		return err
	}
	all := runs.Joined(fresh, s.Facts.Closed)
	if !oldest.IsZero() {
		for len(all) > 0 && all[len(all)-1].Close.Before(oldest) {
			all = all[:len(all)-1]
		}
	}
	s.Facts.more = len(all) > s.O.Window || caughtUp && s.Facts.more
	s.Facts.Closed = all[:min(len(all), s.O.Window)]
	return nil
}

var errCaughtUp = fmt.Errorf("the rest is known")

// each calls fn for each of n, several at a time and not too fast. It returns early only
// where ctx ends or the server is away.
func (s *Scanner) each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work := make(chan int)
	done := make(chan error)
	var wg sync.WaitGroup
	for range min(triageWorkers, n) {
		wg.Go(func() {
			for i := range work {
				call, stop := context.WithTimeout(ctx, cluster.CallTimeout)
				err := fn(call, i)
				stop()
				done <- err
			}
		})
	}
	go func() {
		defer close(work)
		gap := time.NewTicker(triageGap)
		defer gap.Stop()
		for i := range n {
			select {
			case work <- i:
			case <-ctx.Done():
				return
			}
			select {
			case <-gap.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() { wg.Wait(); close(done) }()
	var away error
	for err := range done {
		if err != nil && away == nil && ctx.Err() == nil {
			if s.readErr == nil && !cluster.NotFound(err) {
				s.readErr = err
			}
			if cluster.Away(err) {
				away = err
				cancel()
			}
		}
		s.mu.Lock()
		s.State.Done++
		s.Tell(&s.Facts)
		s.mu.Unlock()
	}
	if away != nil {
		return away
	}
	if err := context.Cause(ctx); err != nil && n > 0 {
		return err
	}
	return nil
}

// readEnds reads the last event of every run that failed and is not known yet.
func (s *Scanner) readEnds(ctx context.Context) error {
	var want []runs.Run
	for _, r := range s.Facts.Closed {
		if _, known := s.Facts.Ends[r.RunID]; bad(r) && r.Exit != ace.Wrong && !known {
			want = append(want, r)
		}
	}
	s.stage("why runs failed", len(want))
	return s.each(ctx, len(want), func(ctx context.Context, i int) error {
		r := want[i]
		iter := s.c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		if !iter.HasNext() {
			return nil
		}
		e, err := iter.Next()
		if err != nil && !cluster.NotFound(err) {
			return err
		}
		end := Ending{Failure: ace.Failure{Kind: r.Exit, Message: "its history is gone"}}
		if err == nil {
			end = EndingOf(e, r)
		}
		end.Shape = Normalise(end.Failure.Message)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Facts.Ends[r.RunID] = end
		return nil
	})
}

// EndingOf tells why a run ended, from its last event.
func EndingOf(e *historypb.HistoryEvent, r runs.Run) Ending {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		f := e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		end := Ending{Failure: history.FailureOf(f), Activity: failedActivity(f)}
		end.Failure.Message = bounded(end.Failure.Message)
		return end
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return Ending{Failure: ace.Failure{Kind: ace.Timeout, Type: "WorkflowTimeout", Message: "the workflow timed out"}}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return Ending{Failure: ace.Failure{Kind: ace.Canceled, Message: "cancelled"}}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		a := e.GetWorkflowExecutionTerminatedEventAttributes()
		return Ending{Failure: ace.Failure{Kind: ace.Failed, Type: "Terminated", Message: bounded("terminated: " + cluster.Or(a.GetReason(), "no reason given"))}}
	}
	return Ending{Failure: ace.Failure{Kind: r.Exit, Message: "the workflow completed, but says of itself: " + string(r.Exit)}}
}

// failedActivity is the type of the activity that a failure comes from, "" for none.
func failedActivity(f *failurepb.Failure) string {
	name := ""
	for ; f != nil; f = f.GetCause() {
		if a := f.GetActivityFailureInfo(); a != nil {
			name = a.GetActivityType().GetName()
		}
	}
	return name
}

func bounded(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

// readNotes reads, for the newest run of each kind of wrong answer, what was answered and
// what the reflector saw: only a history has it.
func (s *Scanner) readNotes(ctx context.Context) error {
	var want []runs.Run
	kinds := map[groupKey]bool{}
	for _, r := range s.Facts.Closed {
		if r.Exit != ace.Wrong {
			continue
		}
		e, _ := s.Facts.why(r)
		k := s.Facts.keyOf(r, e)
		if _, known := s.Facts.Notes[r.RunID]; !known && !kinds[k] && len(want) < maxNotes {
			want = append(want, r)
		}
		kinds[k] = true
	}
	s.stage("examples of wrong answers", len(want))
	return s.each(ctx, len(want), func(ctx context.Context, i int) error {
		r := want[i]
		f := histories.NewFolder(r.WorkflowID, r.RunID)
		if err := s.events(ctx, r, func(e *historypb.HistoryEvent) { f.Apply(e) }); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Facts.Notes[r.RunID] = bounded(noteOf(&f.State))
		return nil
	})
}

func noteOf(s *ace.State) string {
	var parts []string
	if s.Answer != "" {
		parts = append(parts, "answered "+s.Answer)
	}
	if s.Input.Label != nil {
		parts = append(parts, "expected "+*s.Input.Label)
	}
	text := strings.Join(parts, ", ")
	if s.Insights != "" {
		text = strings.TrimPrefix(text+"; the reflector: "+s.Insights, "; ")
	}
	return text
}

// readSteps reads how long the steps took of some runs whose memos do not say it.
func (s *Scanner) readSteps(ctx context.Context) error {
	var want []runs.Run
	sample := 0
	for _, r := range s.Facts.Closed {
		if r.Type == ace.ExperimentWorkflow || bad(r) && r.Exit != ace.Wrong || r.Summary != nil && r.Summary.PhaseMS != (ace.PhaseMS{}) {
			continue
		}
		if sample++; sample > maxPhaseSample {
			break
		}
		if _, known := s.Facts.Steps[r.RunID]; !known {
			want = append(want, r)
		}
	}
	s.stage("step times", len(want))
	return s.each(ctx, len(want), func(ctx context.Context, i int) error {
		r := want[i]
		var steps StepTimer
		if err := s.events(ctx, r, steps.See); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Facts.Steps[r.RunID] = steps.Done
		return nil
	})
}

// events gives a run's history, of at most maxSampled events.
func (s *Scanner) events(ctx context.Context, r runs.Run, fn func(*historypb.HistoryEvent)) error {
	iter := s.c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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

// StepTimer measures activities by the server's clock, from their last start to their
// end. An activity of the contract is called by its phase.
type StepTimer struct {
	names  map[int64]string
	starts map[int64]time.Time
	Done   []Timed
}

func (t *StepTimer) See(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		name := e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
		if step, ok := ace.StepOf(name); ok {
			name = string(step)
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
			t.Done = append(t.Done, Timed{t.names[id], float64(max(e.GetEventTime().AsTime().Sub(at), 0).Microseconds()) / 1000})
		}
	}
}
