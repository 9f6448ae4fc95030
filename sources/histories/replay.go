package histories

import (
	"context"
	"fmt"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/stepper"
	"acescope/engine/temporal/replay"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
)

// Types of engine/stepper and engine/temporal/replay, which views may not import.
type (
	StepRun          = stepper.Run
	StepFrame        = stepper.Frame
	StepChange       = stepper.Change
	StepBy           = stepper.By
	ReplayVerdict    = replay.Verdict
	VerifyDivergence = replay.Divergence
	VerifyCommand    = replay.Command
	VerifyKind       = replay.Kind
)

// Kinds of steps.
const (
	StepEvent = stepper.ByEvent
	StepPhase = stepper.ByPhase
	StepTool  = stepper.ByTool
	StepError = stepper.ByError
)

// Replay is the selected run as of one of its events. It is immutable. All events of the run are held while it is
// shown.
type Replay struct {
	WorkflowID string
	RunID      string
	Selected   string                // the run that was selected; steps may lead to another run of the chain
	Chain      cluster.ChainPosition // position of RunID in its chain, zero if unknown
	About      StepRun
	Frame      *StepFrame   // nil until the history is read
	Known      []StepChange // all values as of the event, by path
	Phases     []int        // positions that steps go to, ascending
	Tools      []int
	Errors     []int
	Reading    bool
	Closed     bool
	Err        string

	Watched      string // expression, "" for none
	WatchedValue string // as of the event
	Message      string // why the last command had no effect

	Verifying bool
	Verdict   *ReplayVerdict // nil before the run is verified
	Strict    bool           // of the verdict, or of the verification under way
	Verified  time.Time
}

// Time between two folds of an open run.
const (
	replayFirst = 100 * time.Millisecond // before the first, to read more than one page
	replayEvery = 2 * time.Second
	replayRest  = 10 // times the duration of the last fold
)

const maxReplayCommands = 1000

var stepNames = map[StepBy]string{StepEvent: "event", StepPhase: "phase change", StepTool: "tool call", StepError: "error"}

func cloneEvents(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	own := make([]*historypb.HistoryEvent, len(events))
	for i, e := range events {
		own[i] = proto.Clone(e).(*historypb.HistoryEvent)
	}
	return own
}

// ReplayFeed is the time machine: it steps through the history of the selected run while it is shown.
type ReplayFeed struct {
	*feed.Feed[runs.ID, *Replay]
	link     *cluster.Link
	verified *VerifyFeed   // its verdict of the run is also shown
	wake     chan struct{} // one slot: there is a command

	mu    sync.Mutex
	queue []func(*stepReader) // commands, at most maxReplayCommands
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
	if len(f.queue) < maxReplayCommands {
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
	r.follow(nil)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.ended:
			r.fold()
			r.rested = nil
		case <-r.rested:
			began := time.Now()
			r.fold()
			r.rested = time.After(max(replayEvery, replayRest*time.Since(began)))
		case <-f.wake:
			r.serve()
		}
	}
}

// follow collects the events of the run after those that are known, until it is called again.
func (r *stepReader) follow(known []*historypb.HistoryEvent) {
	if r.unfollow != nil {
		r.unfollow()
	}
	ctx, cancel := context.WithCancel(r.ctx)
	r.unfollow = cancel
	r.rested = time.After(replayFirst)
	ended := make(chan struct{}, 1)
	r.ended = ended
	read := &readEvents{list: known}
	r.read = read
	after := int64(0)
	if n := len(known); n > 0 {
		after = known[n-1].GetEventId()
	}
	history := r.feed.link.History(r.id.WorkflowID, r.id.RunID)
	r.wg.Go(func() {
		away := func(err error) { read.add(nil, err) }
		err := history.Follow(ctx, after, away, func(events []*historypb.HistoryEvent) error {
			read.add(events, nil)
			return nil
		})
		if ctx.Err() == nil {
			read.add(nil, err)
			cluster.Signal(ended)
		}
	})
}

// readEvents are the events that one goroutine reads and another folds.
type readEvents struct {
	mu   sync.Mutex
	list []*historypb.HistoryEvent
	err  error // why reading has stopped
}

func (e *readEvents) add(events []*historypb.HistoryEvent, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, events...)
	e.err = err
}

// fold folds what was read since the last time.
func (r *stepReader) fold() {
	r.read.mu.Lock()
	events, err := r.read.list, r.read.err
	r.read.mu.Unlock()
	switch {
	case err != nil:
		r.out.Err = cluster.PlainError(err)
		r.out.Reading = false
		r.publish()
	case len(events) > 0 && (r.stepper == nil || len(events) > len(r.events)):
		r.out.Err = ""
		r.out.Reading = false
		r.take(events)
	case r.out.Err != "": // the server answers again
		r.out.Err = ""
		r.out.Reading = r.stepper == nil
		r.publish()
	}
}

// take folds a history and keeps the position.
func (r *stepReader) take(events []*historypb.HistoryEvent) {
	atEnd := r.stepper == nil && r.pos == 0 || r.stepper != nil && r.pos == r.stepper.Len()
	r.events, r.stepper = events, stepper.New(events, stepper.Options{})
	r.out.About = r.stepper.About
	r.out.Phases, r.out.Tools, r.out.Errors = r.stepper.Marks(StepPhase), r.stepper.Marks(StepTool), r.stepper.Marks(StepError)
	r.out.Closed = len(events) > 0 && cluster.ClosesRun(events[len(events)-1].GetEventType())
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

// chain reads the position of the run in its chain; zero if the server does not answer.
func (r *stepReader) chain() {
	r.out.Chain, _ = cluster.ReadChainPosition(r.ctx, r.feed.link.Client, r.feed.link.Namespace, r.id.WorkflowID, r.id.RunID)
}

// cross changes to the next or previous run of the chain.
func (r *stepReader) cross(runID string, forward bool) {
	events, err := r.feed.link.History(r.id.WorkflowID, runID).Events(r.ctx)
	if err != nil {
		r.message = "the next run, " + runID + ", cannot be read: " + cluster.PlainError(err)
		if !forward {
			r.message = "the previous run, " + runID + ", cannot be read: " + cluster.PlainError(err)
		}
		return
	}
	r.id.RunID, r.out.RunID = runID, runID
	r.out.Verifying, r.out.Verdict = false, nil
	r.stepper, r.pos = nil, 0
	if forward {
		r.pos = 1
	}
	r.follow(events)
	r.take(events)
}

// serve runs the queued commands and publishes the result.
func (r *stepReader) serve() {
	if r.stepper == nil {
		return
	}
	r.feed.mu.Lock()
	queue := r.feed.queue
	r.feed.queue = nil
	r.feed.mu.Unlock()
	for _, command := range queue {
		r.message = ""
		command(r)
	}
	r.showFrame()
}

func (r *stepReader) showFrame() {
	o := &r.out
	o.Frame, o.Known, o.Message, o.Watched, o.WatchedValue = nil, nil, r.message, "", ""
	if r.pos > 0 && r.pos <= r.stepper.Len() {
		o.Frame, o.Known = r.stepper.Frame(r.pos), r.stepper.Values(r.pos)
	}
	if r.watch != nil {
		o.Watched, o.WatchedValue = r.watch.Expr, string(r.watch.At(r.pos))
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
		r.message = err.Error()
		return
	}
	r.pos = pos
}

func (r *stepReader) move(by StepBy, forward bool) {
	pos, ok := r.stepper.Move(r.pos, by, forward)
	if !ok {
		next, message := r.out.About.Next, fmt.Sprintf("no later %s", stepNames[by])
		if !forward {
			next, message = r.out.About.Prev, fmt.Sprintf("no earlier %s", stepNames[by])
		}
		switch {
		case next == "":
			r.message = message
		case by == StepEvent:
			r.cross(next, forward)
		default:
			r.message = message + " in this run; step by event to leave this run"
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
		r.message = err.Error()
		return
	}
	r.watch = w
}

func (r *stepReader) nextWatched(forward bool) {
	if r.watch == nil {
		r.message = "no value is watched; press w to choose one"
		return
	}
	seen, ok := r.watch.Next(r.pos, forward, r.ctx.Done())
	if !ok {
		r.message = r.watch.Expr + " does not change later"
		if !forward {
			r.message = r.watch.Expr + " does not change earlier"
		}
		return
	}
	r.place(seen.Position)
}

// verify replays the run with the current code in the background.
func (r *stepReader) verify(strict bool) {
	if r.out.Verifying || r.feed.link.Verify == nil {
		if r.feed.link.Verify == nil {
			r.message = "cannot verify: this process has no workflow code"
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
		verdict := r.feed.link.Verify(working, cloneEvents(events), strict) // the replayer changes events, which others read
		if working.Err() != nil {
			r.feed.do(func(r *stepReader) {
				if r.id.RunID == of {
					r.out.Verifying, r.out.Strict, r.message = false, before, "verification canceled"
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

// stepReader steps through one run. It belongs to one goroutine.
type stepReader struct {
	feed    *ReplayFeed
	show    func(*Replay)
	ctx     context.Context
	id      runs.ID
	read    *readEvents
	ended   <-chan struct{}  // one slot: all events are read
	rested  <-chan time.Time // the next fold is due
	events  []*historypb.HistoryEvent
	stepper *stepper.Stepper
	pos     int
	watch   *stepper.Watch
	message string
	out     Replay
	wg      *sync.WaitGroup

	unfollow context.CancelFunc
}
