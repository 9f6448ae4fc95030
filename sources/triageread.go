package sources

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
	"acescope/engine/history"
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
	s := newScanner(c, o)
	s.tell = func(*facts) { progress(s.state) }
	err := s.scan(ctx)
	t := s.facts.analyse(time.Now())
	t.Scan = s.state
	return t, err
}

// scanner reads what a triage is made of. What it read of a closed run it keeps, since
// that does not change: the next scan reads only what is new.
type scanner struct {
	c       client.Client
	o       TriageOptions
	tell    func(*facts) // after each step forward, from one goroutine at a time
	state   Scan
	began   time.Time
	mu      sync.Mutex // held while workers write what they read
	facts   facts
	since   map[string]scheduled // by run and activity id
	readErr error                // the first failure to read a history in this scan
}

// scheduled is when something was scheduled first, and how it failed.
type scheduled struct {
	at      time.Time
	failure ace.Failure
}

func newScanner(c client.Client, o TriageOptions) *scanner {
	if o.Window <= 0 {
		o.Window = TriageWindow
	}
	o.Window = min(o.Window, MaxTriage)
	return &scanner{c: c, o: o, tell: func(*facts) {}, since: map[string]scheduled{}, facts: facts{
		query: o.Query, window: o.Window, since: o.Since,
		ends: map[string]ending{}, notes: map[string]string{}, steps: map[string][]timed{},
	}}
}

// scan reads what is stuck first, since that can still be helped.
func (s *scanner) scan(ctx context.Context) error {
	s.began, s.readErr = time.Now(), nil
	s.forget()
	for _, stage := range []func(context.Context) error{s.readOpen, s.readPending, s.readClosed, s.readEnds, s.readNotes, s.readSteps} {
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
	s.tell(&s.facts)
}

// forget keeps what is kept between scans in its bounds.
func (s *scanner) forget() {
	if len(s.facts.ends) > maxKept {
		s.facts.ends = map[string]ending{}
	}
	if len(s.facts.notes) > maxKept {
		s.facts.notes = map[string]string{}
	}
	if len(s.facts.steps) > maxKept {
		s.facts.steps = map[string][]timed{}
	}
	if len(s.since) > maxKept {
		s.since = map[string]scheduled{}
	}
}

func (s *scanner) readOpen(ctx context.Context) error {
	s.stage("open runs", 0)
	var open []Run
	err := List(ctx, s.c, And(s.o.Query, `ExecutionStatus = "Running"`), MaxTriageOpen+1, func(r Run) error {
		open = append(open, r)
		return nil
	})
	if err != nil {
		return err
	}
	s.facts.moreOpen = len(open) > MaxTriageOpen
	s.facts.open = open[:min(len(open), MaxTriageOpen)]
	return nil
}

// readClosed lists the ended runs, newest first, until it meets those that it has.
func (s *scanner) readClosed(ctx context.Context) error {
	s.stage("ended runs", s.o.Window)
	known := map[string]Run{}
	for _, r := range s.facts.closed {
		known[r.RunID] = r
	}
	var fresh []Run
	row, caughtUp := 0, false
	query := And(s.o.Query, `ExecutionStatus != "Running" AND ExecutionStatus != "ContinuedAsNew"`)
	oldest := time.Time{}
	if s.o.Since > 0 {
		oldest = time.Now().Add(-s.o.Since)
		query = And(query, fmt.Sprintf("CloseTime >= %q", oldest.UTC().Format(time.RFC3339)))
	}
	err := List(ctx, s.c, query, s.o.Window+1, func(r Run) error {
		if _, ok := known[r.RunID]; !ok {
			fresh, row = append(fresh, r), 0
		} else if row++; row == knownInARow {
			caughtUp = true
			return errCaughtUp
		}
		if len(fresh)%PageSize == 0 {
			s.state.Done = len(fresh)
			s.tell(&s.facts)
		}
		return nil
	})
	if err != nil && !caughtUp {
		return err
	}
	all := joined(fresh, s.facts.closed)
	if !oldest.IsZero() {
		for len(all) > 0 && all[len(all)-1].Close.Before(oldest) {
			all = all[:len(all)-1]
		}
	}
	s.facts.more = len(all) > s.o.Window || caughtUp && s.facts.more
	s.facts.closed = all[:min(len(all), s.o.Window)]
	return nil
}

var errCaughtUp = fmt.Errorf("the rest is known")

// each calls fn for each of n, several at a time and not too fast. It returns early only
// where ctx ends or the server is away.
func (s *scanner) each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work := make(chan int)
	done := make(chan error)
	var wg sync.WaitGroup
	for range min(triageWorkers, n) {
		wg.Go(func() {
			for i := range work {
				call, stop := context.WithTimeout(ctx, callTimeout)
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
			if s.readErr == nil && !NotFound(err) {
				s.readErr = err
			}
			if Away(err) {
				away = err
				cancel()
			}
		}
		s.mu.Lock()
		s.state.Done++
		s.tell(&s.facts)
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
func (s *scanner) readEnds(ctx context.Context) error {
	var want []Run
	for _, r := range s.facts.closed {
		if _, known := s.facts.ends[r.RunID]; bad(r) && r.Exit != ace.Wrong && !known {
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
		if err != nil && !NotFound(err) {
			return err
		}
		end := ending{failure: ace.Failure{Kind: r.Exit, Message: "its history is gone"}}
		if err == nil {
			end = endingOf(e, r)
		}
		end.shape = Normalise(end.failure.Message)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.facts.ends[r.RunID] = end
		return nil
	})
}

// endingOf tells why a run ended, from its last event.
func endingOf(e *historypb.HistoryEvent, r Run) ending {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		f := e.GetWorkflowExecutionFailedEventAttributes().GetFailure()
		end := ending{failure: history.FailureOf(f), activity: failedActivity(f)}
		end.failure.Message = bounded(end.failure.Message)
		return end
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return ending{failure: ace.Failure{Kind: ace.Timeout, Type: "WorkflowTimeout", Message: "the workflow timed out"}}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return ending{failure: ace.Failure{Kind: ace.Cancelled, Message: "cancelled"}}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		a := e.GetWorkflowExecutionTerminatedEventAttributes()
		return ending{failure: ace.Failure{Kind: ace.Failed, Type: "Terminated", Message: bounded("terminated: " + or(a.GetReason(), "no reason given"))}}
	}
	return ending{failure: ace.Failure{Kind: r.Exit, Message: "the workflow completed, but says of itself: " + string(r.Exit)}}
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
func (s *scanner) readNotes(ctx context.Context) error {
	var want []Run
	kinds := map[groupKey]bool{}
	for _, r := range s.facts.closed {
		if r.Exit != ace.Wrong {
			continue
		}
		e, _ := s.facts.why(r)
		k := s.facts.keyOf(r, e)
		if _, known := s.facts.notes[r.RunID]; !known && !kinds[k] && len(want) < maxNotes {
			want = append(want, r)
		}
		kinds[k] = true
	}
	s.stage("examples of wrong answers", len(want))
	return s.each(ctx, len(want), func(ctx context.Context, i int) error {
		r := want[i]
		f := NewFolder(r.WorkflowID, r.RunID)
		if err := s.events(ctx, r, func(e *historypb.HistoryEvent) { f.Apply(e) }); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.facts.notes[r.RunID] = bounded(noteOf(&f.State))
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
func (s *scanner) readSteps(ctx context.Context) error {
	var want []Run
	sample := 0
	for _, r := range s.facts.closed {
		if r.Type == ace.ExperimentWorkflow || bad(r) && r.Exit != ace.Wrong || r.Summary != nil && r.Summary.PhaseMS != (ace.PhaseMS{}) {
			continue
		}
		if sample++; sample > maxPhaseSample {
			break
		}
		if _, known := s.facts.steps[r.RunID]; !known {
			want = append(want, r)
		}
	}
	s.stage("step times", len(want))
	return s.each(ctx, len(want), func(ctx context.Context, i int) error {
		r := want[i]
		var steps stepTimer
		if err := s.events(ctx, r, steps.see); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.facts.steps[r.RunID] = steps.done
		return nil
	})
}

// events gives a run's history, of at most maxSampled events.
func (s *scanner) events(ctx context.Context, r Run, fn func(*historypb.HistoryEvent)) error {
	iter := s.c.GetWorkflowHistory(ctx, r.WorkflowID, r.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for n := 0; n < maxSampled && iter.HasNext(); n++ {
		e, err := iter.Next()
		if NotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		fn(e)
	}
	return nil
}

// stepTimer measures activities by the server's clock, from their last start to their
// end. An activity of the contract is called by its phase.
type stepTimer struct {
	names  map[int64]string
	starts map[int64]time.Time
	done   []timed
}

func (t *stepTimer) see(e *historypb.HistoryEvent) {
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
			t.done = append(t.done, timed{t.names[id], float64(max(e.GetEventTime().AsTime().Sub(at), 0).Microseconds()) / 1000})
		}
	}
}
