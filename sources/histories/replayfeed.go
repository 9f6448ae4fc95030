package histories

import (
	"acescope/engine/stepper"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
	"context"
	"fmt"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"
)

// ReplayFeed is the time machine: it steps through the history of the selected run while it is shown.
type ReplayFeed struct {
	*feed.Feed[runs.ID, *Replay]
	link     *cluster.Link
	verified *VerifyFeed   // its verdict of the run is shown, too
	wake     chan struct{} // one slot: there is a command

	mu    sync.Mutex
	queue []func(*stepReader) // commands, at most MaxReplayCommands
}

// NewReplayFeed returns a feed that steps through the run that it is asked for.
func NewReplayFeed(link *cluster.Link, verified *VerifyFeed) *ReplayFeed {
	f := &ReplayFeed{link: link, verified: verified, wake: make(chan struct{}, 1)}
	f.Feed = feed.New(link.Wake, f.read)
	return f
}

// do queues a command for the reader.
func (f *ReplayFeed) do(command func(*stepReader)) {
	f.mu.Lock()
	if len(f.queue) < MaxReplayCommands {
		f.queue = append(f.queue, command)
	}
	f.mu.Unlock()
	cluster.Signal(f.wake)
}

// StepTo goes to the event with an id; 0 is the last event.
func (f *ReplayFeed) StepTo(event int64) { f.do(func(r *stepReader) { r.to(event) }) }

// StepToPosition goes to a position, from 1. A position outside of the history is the nearest one in it.
func (f *ReplayFeed) StepToPosition(pos int) { f.do(func(r *stepReader) { r.place(pos) }) }

// StepMove goes to the next event of a kind, or to the previous one.
func (f *ReplayFeed) StepMove(by StepBy, forward bool) {
	f.do(func(r *stepReader) { r.move(by, forward) })
}

// WatchValue watches a value; "" ends that.
func (f *ReplayFeed) WatchValue(expr string) { f.do(func(r *stepReader) { r.watchValue(expr) }) }

// NextWatched goes to the next change of the watched value, or to the previous one.
func (f *ReplayFeed) NextWatched(forward bool) {
	f.do(func(r *stepReader) { r.nextWatched(forward) })
}

// VerifyRun replays the run with the current workflow code, as work that can be canceled. If strict, differences that
// Temporal accepts count, too.
func (f *ReplayFeed) VerifyRun(strict bool) { f.do(func(r *stepReader) { r.verify(strict) }) }

// read reads the history of a run and runs commands until ctx ends.
func (f *ReplayFeed) read(ctx context.Context, id runs.ID, publish func(*Replay)) {
	if id.WorkflowID == "" {
		publish(nil)
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	r := &stepReader{feed: f, show: publish, ctx: ctx, id: id, wg: &wg,
		out: Replay{WorkflowID: id.WorkflowID, RunID: id.RunID, Selected: id.RunID, Reading: true}}
	if old := f.Value(); old != nil && old.WorkflowID == id.WorkflowID && old.Selected == id.RunID {
		r.id.RunID = old.RunID
		r.out.RunID = old.RunID
		r.out.Verdict = old.Verdict
		r.out.Strict = old.Strict
		r.out.Verified = old.Verified
		if old.Frame != nil {
			r.pos = old.Frame.Position
		}
	}
	if v, strict, at := f.verified.Value().of(id); v != nil && at.After(r.out.Verified) {
		r.out.Verdict = v
		r.out.Strict = strict
		r.out.Verified = at
	}
	r.publish()
	took := r.load()
	for {
		var again <-chan time.Time
		if !r.out.Closed {
			again = time.After(max(ReplayEvery, ReplayRest*took))
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
			took = r.load()
		case <-f.wake:
			r.serve()
		}
	}
}

// load reads the history and folds it.
func (r *stepReader) load() time.Duration {
	begin := time.Now()
	events, err := cluster.ReadHistory(r.ctx, r.feed.link.Client, r.feed.link.Namespace, r.id.WorkflowID, r.id.RunID)
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
	r.out.Phases, r.out.Tools, r.out.Errors = r.stepper.Marks(StepPhase), r.stepper.Marks(StepTool), r.stepper.Marks(StepError)
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
	r.out.Chain, _ = cluster.ReadLine(r.ctx, r.feed.link.Client, r.feed.link.Namespace, r.id.WorkflowID, r.id.RunID)
}

// cross goes over to the run that continues this one, or to the one that it continues.
func (r *stepReader) cross(runID string, forward bool) {
	events, err := cluster.ReadHistory(r.ctx, r.feed.link.Client, r.feed.link.Namespace, r.id.WorkflowID, runID)
	if err != nil {
		r.said = "the next run, " + runID + ", cannot be read: " + cluster.PlainError(err)
		if !forward {
			r.said = "the run before, " + runID + ", cannot be read: " + cluster.PlainError(err)
		}
		return
	}
	r.id.RunID, r.out.RunID = runID, runID
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
	r.feed.mu.Lock()
	queue := r.feed.queue
	r.feed.queue = nil
	r.feed.mu.Unlock()
	for _, command := range queue {
		r.said = ""
		command(r)
	}
	r.showFrame()
}

func (r *stepReader) showFrame() {
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
	r.show(&next)
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

func (r *stepReader) move(by StepBy, forward bool) {
	pos, ok := r.stepper.Move(r.pos, by, forward)
	if !ok {
		next, said := r.out.About.Next, fmt.Sprintf("no %s further on", StepWords[by])
		if !forward {
			next, said = r.out.About.Prev, fmt.Sprintf("no %s before this", StepWords[by])
		}
		switch {
		case next == "":
			r.said = said
		case by == StepEvent:
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
	if r.out.Verifying || r.feed.link.Verify == nil {
		if r.feed.link.Verify == nil {
			r.said = "there is no workflow code here to verify with"
		}
		return
	}
	before := r.out.Strict
	r.out.Verifying, r.out.Strict = true, strict
	working, progress, end := r.feed.link.StartWork(r.ctx, "verifying "+r.id.WorkflowID)
	events, of := r.events, r.id.RunID
	r.wg.Go(func() {
		defer end()
		progress(0, int64(len(events)))
		verdict := r.feed.link.Verify(working, Cloned(events), strict) // the replayer writes to events, which others read
		if working.Err() != nil {
			r.feed.do(func(r *stepReader) {
				if r.id.RunID == of {
					r.out.Verifying, r.out.Strict, r.said = false, before, "verifying was cancelled"
				}
			})
			return
		}
		r.feed.do(func(r *stepReader) {
			if r.id.RunID == of {
				r.out.Verifying, r.out.Verdict, r.out.Verified = false, &verdict, time.Now()
			}
		})
	})
}

// stepReader is one looking at one run. Only its goroutine changes it.
type stepReader struct {
	feed    *ReplayFeed
	show    func(*Replay)
	ctx     context.Context
	id      runs.ID
	events  []*historypb.HistoryEvent
	stepper *stepper.Stepper
	pos     int
	watch   *stepper.Watch
	said    string
	out     Replay
	wg      *sync.WaitGroup
}
