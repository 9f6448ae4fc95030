package sources

import (
	"context"
	"fmt"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/stepper"
	"acescope/sources/cluster"
	"acescope/sources/histories"
)

// wishReplay hands a wish to the reader; at most maxReplayWishes wait.
func (s *Store) wishReplay(fn func(*stepReader)) {
	s.mu.Lock()
	if s.replay.wake == nil {
		s.replay.wake = make(chan struct{}, 1)
	}
	if len(s.replay.queue) < histories.MaxReplayWishes {
		s.replay.queue = append(s.replay.queue, fn)
	}
	wake := s.replay.wake
	s.mu.Unlock()
	cluster.Signal(wake)
}

// StepTo goes to the event with an id; 0 is the last.
func (s *Store) StepTo(event int64) { s.wishReplay(func(r *stepReader) { r.to(event) }) }

// StepToPosition goes to a position from 1; what lies outside is the nearest within.
func (s *Store) StepToPosition(pos int) { s.wishReplay(func(r *stepReader) { r.place(pos) }) }

// StepMove goes to the next event of a kind, or to the one before.
func (s *Store) StepMove(by histories.StepBy, forward bool) {
	s.wishReplay(func(r *stepReader) { r.move(by, forward) })
}

// WatchValue watches a value; "" none.
func (s *Store) WatchValue(expr string) { s.wishReplay(func(r *stepReader) { r.watchValue(expr) }) }

// NextWatched goes to the next change of the value that is watched, or to the one before.
func (s *Store) NextWatched(forward bool) {
	s.wishReplay(func(r *stepReader) { r.nextWatched(forward) })
}

// VerifyRun verifies the run that the time machine shows; it is work that can be cancelled.
// Strictly, what Temporal lets pass counts too.
func (s *Store) VerifyRun(strict bool) { s.wishReplay(func(r *stepReader) { r.verify(strict) }) }

// readReplay reads the selected run and serves wishes until ctx ends.
func (s *Store) readReplay(ctx context.Context, d cluster.Deps) {
	s.mu.Lock()
	if s.replay.wake == nil {
		s.replay.wake = make(chan struct{}, 1)
	}
	sel, wake := s.selected, s.replay.wake
	s.mu.Unlock()
	if sel.workflowID == "" {
		s.update(func(snap *Snapshot) { snap.Replay = nil })
		<-ctx.Done()
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	r := &stepReader{store: s, deps: d, ctx: ctx, sel: sel, wg: &wg, out: histories.Replay{WorkflowID: sel.workflowID, RunID: sel.runID, Selected: sel.runID, Reading: true}}
	if old := s.Snapshot().Replay; old != nil && old.WorkflowID == sel.workflowID && old.Selected == sel.runID {
		r.sel.runID, r.out.RunID = old.RunID, old.RunID
		if r.out.Verdict, r.out.Strict, r.out.Verified = old.Verdict, old.Strict, old.Verified; old.Frame != nil {
			r.pos = old.Frame.Position
		}
	}
	if v, strict, at := s.Snapshot().Verified.of(sel); v != nil && at.After(r.out.Verified) {
		r.out.Verdict, r.out.Strict, r.out.Verified = v, strict, at
	}
	r.publish()
	took := r.load()
	for {
		var again <-chan time.Time
		if !r.out.Closed {
			again = time.After(max(histories.ReplayEvery, histories.ReplayRest*took))
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
			took = r.load()
		case <-wake:
			r.serve()
		}
	}
}

// load reads the history and folds it.
func (r *stepReader) load() time.Duration {
	begin := time.Now()
	events, err := cluster.ReadHistory(r.ctx, r.deps.Client, r.store.namespace, r.sel.workflowID, r.sel.runID)
	if r.ctx.Err() != nil {
		return 0
	}
	if err != nil {
		r.out.Err, r.out.Reading = cluster.PlainError(err), false
		r.publish()
		return time.Since(begin)
	}
	if r.out.Err, r.out.Reading = "", false; r.stepper != nil && len(events) == len(r.events) {
		r.publish()
		return time.Since(begin)
	}
	r.take(events)
	return time.Since(begin)
}

// take folds a history that was read anew, and goes where it was before.
func (r *stepReader) take(events []*historypb.HistoryEvent) {
	atEnd := r.stepper == nil && r.pos == 0 || r.stepper != nil && r.pos == r.stepper.Len()
	r.events, r.stepper = events, stepper.New(events, stepper.Options{})
	r.out.About = r.stepper.About
	r.out.Phases, r.out.Tools, r.out.Errors = r.stepper.Marks(histories.StepPhase), r.stepper.Marks(histories.StepTool), r.stepper.Marks(histories.StepError)
	r.out.Closed = len(events) > 0 && cluster.Closing(events[len(events)-1].GetEventType())
	if r.watch != nil {
		r.watch, _ = r.stepper.Watch(r.watch.Expr)
	}
	if atEnd {
		r.pos = r.stepper.Len()
	}
	r.place(r.pos)
	r.chain()
	r.serve()
}

// chain finds out which run of its chain it is. Where the server does not say, nothing is
// shown of it.
func (r *stepReader) chain() {
	r.out.Chain, _ = cluster.ReadLine(r.ctx, r.deps.Client, r.store.namespace, r.sel.workflowID, r.sel.runID)
}

// cross goes over to the run that continues this one, or to the one that it continues.
func (r *stepReader) cross(runID string, forward bool) {
	events, err := cluster.ReadHistory(r.ctx, r.deps.Client, r.store.namespace, r.sel.workflowID, runID)
	if err != nil {
		r.said = "the next run, " + runID + ", cannot be read: " + cluster.PlainError(err)
		if !forward {
			r.said = "the run before, " + runID + ", cannot be read: " + cluster.PlainError(err)
		}
		return
	}
	r.sel.runID, r.out.RunID = runID, runID
	r.out.Verifying, r.out.Verdict = false, nil
	r.stepper, r.pos = nil, 0
	if forward {
		r.pos = 1
	}
	r.take(events)
}

// serve fulfils the wishes that wait, and shows the last.
func (r *stepReader) serve() {
	if r.stepper == nil {
		return
	}
	r.store.mu.Lock()
	queue := r.store.replay.queue
	r.store.replay.queue = nil
	r.store.mu.Unlock()
	for _, wish := range queue {
		r.said = ""
		wish(r)
	}
	r.show()
}

func (r *stepReader) show() {
	o := &r.out
	o.Frame, o.Known, o.Said, o.Watched, o.Seen = nil, nil, r.said, "", ""
	if r.pos > 0 && r.pos <= r.stepper.Len() {
		o.Frame, o.Known = r.stepper.Frame(r.pos), r.stepper.Values(r.pos)
	}
	if r.watch != nil {
		o.Watched, o.Seen = r.watch.Expr, string(r.watch.At(r.pos))
	}
	r.publish()
}

func (r *stepReader) publish() {
	next := r.out
	r.store.update(func(snap *Snapshot) { snap.Replay = &next })
}

func (r *stepReader) place(pos int) { r.pos = max(min(pos, r.stepper.Len()), min(1, r.stepper.Len())) }

func (r *stepReader) to(event int64) {
	if event == 0 {
		r.place(r.stepper.Len())
		return
	}
	pos, err := r.stepper.Find(event)
	if err != nil {
		r.said = err.Error()
		return
	}
	r.pos = pos
}

func (r *stepReader) move(by histories.StepBy, forward bool) {
	pos, ok := r.stepper.Move(r.pos, by, forward)
	if !ok {
		next, said := r.out.About.Next, fmt.Sprintf("no %s further on", histories.StepWords[by])
		if !forward {
			next, said = r.out.About.Prev, fmt.Sprintf("no %s before this", histories.StepWords[by])
		}
		switch {
		case next == "":
			r.said = said
		case by == histories.StepEvent:
			r.cross(next, forward)
		default:
			r.said = said + " in this run; a step by event leads over its border"
		}
		return
	}
	r.place(pos)
}

func (r *stepReader) watchValue(expr string) {
	r.watch = nil
	if expr == "" {
		return
	}
	w, err := r.stepper.Watch(expr)
	if err != nil {
		r.said = err.Error()
		return
	}
	r.watch = w
}

func (r *stepReader) nextWatched(forward bool) {
	if r.watch == nil {
		r.said = "nothing is watched: w chooses a value"
		return
	}
	seen, ok := r.watch.Next(r.pos, forward, r.ctx.Done())
	if !ok {
		r.said = r.watch.Expr + " does not change further on"
		if !forward {
			r.said = r.watch.Expr + " does not change before this"
		}
		return
	}
	r.place(seen.Position)
}

// verify replays the run with today's code, beside everything else.
func (r *stepReader) verify(strict bool) {
	if r.out.Verifying || r.deps.Verify == nil {
		if r.deps.Verify == nil {
			r.said = "there is no workflow code here to verify with"
		}
		return
	}
	before := r.out.Strict
	r.out.Verifying, r.out.Strict = true, strict
	working, progress, end := r.store.StartWork(r.ctx, "verifying "+r.sel.workflowID)
	events, of := r.events, r.sel.runID
	r.wg.Go(func() {
		defer end()
		progress(0, int64(len(events)))
		verdict := r.deps.Verify(working, histories.Cloned(events), strict) // the replayer writes to events, which others read
		if working.Err() != nil {
			r.store.wishReplay(func(r *stepReader) {
				if r.sel.runID == of {
					r.out.Verifying, r.out.Strict, r.said = false, before, "verifying was cancelled"
				}
			})
			return
		}
		r.store.wishReplay(func(r *stepReader) {
			if r.sel.runID == of {
				r.out.Verifying, r.out.Verdict, r.out.Verified = false, &verdict, time.Now()
			}
		})
	})
}

// stepReader is one looking at one run. Only its goroutine changes it.
type stepReader struct {
	store   *Store
	deps    cluster.Deps
	ctx     context.Context
	sel     selection
	events  []*historypb.HistoryEvent
	stepper *stepper.Stepper
	pos     int
	watch   *stepper.Watch
	said    string
	out     histories.Replay
	wg      *sync.WaitGroup
}

// replayWishes is what is wanted of the time machine. Its lock is the store's.
type replayWishes struct {
	queue []func(*stepReader)
	wake  chan struct{}
}
