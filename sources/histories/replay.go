package histories

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/kind"
	"acescope/engine/stepper"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/replay"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
)

// Replay is the selected run as of one of its events. It is immutable. All events of the run are held while
// it is shown.
type Replay struct {
	WorkflowID string
	RunID      string
	Selected   string                // the run that was selected; steps may lead to another run of the chain
	Chain      cluster.ChainPosition // position of RunID in its chain, zero if unknown
	About      stepper.Run
	Frame      *stepper.Frame       // nil until the history is read
	Words      string               // what the event did, in one line
	Sections   []kind.Section       // the state as of the event
	Wrong      *stepper.WrongAnswer // nil unless the answer was graded wrong
	Known      []stepper.Change     // all values as of the event, by path
	Calls      []StepCalls          // records of requests to models that the event refers to
	Bullets    kind.Bullets
	Log        *EventLog // with the spans of the run
	Closed     bool
	Err        string

	Watched      string // expression, "" for none
	WatchedValue string // as of the event
	Message      string // why the last command had no effect

	Verifying bool
	Verdict   *replay.Verdict // nil before the run is verified
	Strict    bool            // of the verdict, or of the verification under way
	Verified  time.Time
}

// Time between two folds of an open run, and the bound of the queued commands.
const (
	replayFirst = 100 * time.Millisecond // before the first, to read more than one page
	replayEvery = 2 * time.Second
	replayRest  = 10 // times the duration of the last fold

	maxReplayCommands = 1000
)

var stepNames = map[stepper.By]string{
	stepper.ByEvent: "event", stepper.ByPhase: "phase change", stepper.ByTool: "tool call",
	stepper.ByError: "error or wrong answer",
}

// toolNames name the steps by tool call in runs of other workflow types; see [stepper.ByTool].
var toolNames = map[string]string{ace.ExperimentWorkflow: "task", flow.Workflow: "operation",
	run.Workflow: "submission"}

// ReplayFeed is the time machine: it steps through the history of the selected run while it is shown.
type ReplayFeed struct {
	*feed.Feed[runs.ID, *Replay]
	link     *cluster.Link
	verified *VerifyFeed // its verdict of the run is also shown
	commands chan func(*stepReader)
	news     chan func(*stepReader) // what was read in the background
}

// NewReplayFeed returns a feed that steps through the run that it is asked for.
func NewReplayFeed(link *cluster.Link, verified *VerifyFeed) *ReplayFeed {
	f := &ReplayFeed{link: link, verified: verified,
		commands: make(chan func(*stepReader), maxReplayCommands),
		news:     make(chan func(*stepReader))}
	f.Feed = feed.New(link.Wake, f.read)
	return f
}

// do queues a command for the reader, unless too many wait.
func (f *ReplayFeed) do(command func(*stepReader)) {
	select {
	case f.commands <- command:
	default:
	}
}

// StepTo goes to the event with an id; 0 is the last event.
func (f *ReplayFeed) StepTo(event int64) { f.do(func(r *stepReader) { r.to(event) }) }

// StepToPosition goes to a position, from 1. A position outside of the history is the nearest one in it.
func (f *ReplayFeed) StepToPosition(pos int) { f.do(func(r *stepReader) { r.place(pos) }) }

// StepMove goes to the next event of a kind, or to the previous one.
func (f *ReplayFeed) StepMove(by stepper.By, forward bool) {
	f.do(func(r *stepReader) { r.move(by, forward) })
}

// StepToWrong goes to the event that produced a wrong answer.
func (f *ReplayFeed) StepToWrong() { f.do(func(r *stepReader) { r.toWrong() }) }

// WritePage writes a page with the events of the run into the current directory.
func (f *ReplayFeed) WritePage() { f.do(func(r *stepReader) { r.writePage() }) }

// WatchValue watches a value; "" stops watching.
func (f *ReplayFeed) WatchValue(expr string) { f.do(func(r *stepReader) { r.watchValue(expr) }) }

// NextWatched goes to the next change of the watched value, or to the previous one.
func (f *ReplayFeed) NextWatched(forward bool) {
	f.do(func(r *stepReader) { r.nextWatched(forward) })
}

// VerifyRun replays the run with the current workflow code, as work that can be canceled. If strict,
// differences that Temporal accepts count, too.
func (f *ReplayFeed) VerifyRun(strict bool) { f.do(func(r *stepReader) { r.verify(strict) }) }

// stepReader steps through one run. It belongs to one goroutine.
type stepReader struct {
	feed     *ReplayFeed
	show     func(*Replay)
	ctx      context.Context
	id       runs.ID
	pages    <-chan eventPage
	unfollow context.CancelFunc
	wg       sync.WaitGroup

	events  []*historypb.HistoryEvent
	stepper *Walk // of the first events; nil before they are folded
	books   kind.Books
	records map[string]record // of requests to models, by SHA-256
	pos     int
	watch   *stepper.Watch
	out     Replay
}

// read reads the history of a run and runs commands until ctx ends.
func (f *ReplayFeed) read(ctx context.Context, id runs.ID, publish func(*Replay)) {
	if id.WorkflowID == "" {
		publish(nil)
		return
	}
	r := &stepReader{feed: f, show: publish, ctx: ctx, id: id, unfollow: func() {},
		records: map[string]record{},
		out:     Replay{WorkflowID: id.WorkflowID, RunID: id.RunID, Selected: id.RunID}}
	defer r.wg.Wait()
	if old := f.Value(); old != nil && old.WorkflowID == id.WorkflowID && old.Selected == id.RunID {
		r.id.RunID, r.out.RunID = old.RunID, old.RunID
		r.out.Verdict, r.out.Strict, r.out.Verified = old.Verdict, old.Strict, old.Verified
		if old.Frame != nil {
			r.pos = old.Frame.Position
		}
	}
	if v, strict, at := f.verified.Value().of(id); v != nil && at.After(r.out.Verified) {
		r.out.Verdict, r.out.Strict, r.out.Verified = v, strict, at
	}
	r.publish()
	r.follow()
	r.run()
}

// run folds what is read, at intervals, and runs commands.
func (r *stepReader) run() {
	var due <-chan time.Time // of the next fold
	rest := replayFirst
	for {
		commands := r.feed.commands
		if r.stepper == nil {
			commands = nil // commands wait until the history is read
		}
		select {
		case <-r.ctx.Done():
			return
		case page := <-r.pages:
			r.take(page)
			if page.last {
				r.fold()
			} else if due == nil {
				due = time.After(rest)
			}
		case <-due:
			began := time.Now()
			r.fold()
			due, rest = nil, max(replayEvery, replayRest*time.Since(began))
		case news := <-r.feed.news:
			news(r)
			if r.stepper != nil {
				r.showFrame()
			}
		case command := <-commands:
			r.out.Message = ""
			command(r)
			for len(commands) > 0 { // this is their only receiver
				r.out.Message = ""
				(<-commands)(r)
			}
			r.showFrame()
		}
	}
}

// follow reads the events after those that are loaded. The next call stops it.
func (r *stepReader) follow() {
	r.unfollow()
	ctx, cancel := context.WithCancel(r.ctx)
	r.unfollow = cancel
	after := int64(0)
	if n := len(r.events); n > 0 {
		after = r.events[n-1].GetEventId()
	}
	r.pages = followPages(ctx, &r.wg, r.feed.link.History(r.id.WorkflowID, r.id.RunID), after)
}

// take keeps events until they are folded, and shows why none can be read.
func (r *stepReader) take(page eventPage) {
	r.events = append(r.events, page.events...)
	reason := cluster.PlainError(page.err)
	if reason != r.out.Err {
		r.out.Err = reason
		r.publish()
	}
}

// fold folds the history if it has grown, and keeps the position.
func (r *stepReader) fold() {
	if len(r.events) == 0 || r.stepper != nil && r.stepper.Len() == len(r.events) {
		return
	}
	first := r.stepper == nil
	atEnd := !first && r.pos == r.stepper.Len()
	s := NewWalk(r.events, nil, r.feed.link.History(r.id.WorkflowID, r.id.RunID))
	r.stepper = s
	r.setBooks(r.books)
	r.out.About = s.About
	r.out.Log = s.Log
	r.out.Closed = cluster.ClosesRun(r.events[len(r.events)-1].GetEventType())
	if r.watch != nil {
		r.watch, _ = s.Watch(r.watch.Expr)
	}
	switch {
	case first && r.pos == 0:
		r.pos = s.Start(r.out.Closed)
	case atEnd:
		r.pos = s.Len()
	}
	r.place(r.pos)
	link := r.feed.link // without an answer the position in the chain is unknown
	r.out.Chain, _ = cluster.ReadChainPosition(r.ctx, link.Client, link.Namespace, r.id.WorkflowID,
		r.id.RunID)
	r.showFrame()
	if first {
		r.readBooks()
	}
}

// readBooks reads the bullets of the run in the background.
func (r *stepReader) readBooks() {
	given, before := r.stepper.Hashes()
	of := r.id.RunID
	r.background(func() func(*stepReader) {
		books := ReadBooks(r.ctx, r.feed.link.Deps, given, before)
		return func(r *stepReader) {
			if r.id.RunID == of && r.stepper != nil {
				r.books = books
				r.setBooks(books)
			}
		}
	})
}

func (r *stepReader) setBooks(books kind.Books) {
	r.stepper.Books = books
	r.out.Bullets = books.Given
	r.out.Wrong = r.stepper.Wrong()
}

// background reads something and applies it in the reader's goroutine.
func (r *stepReader) background(read func() func(*stepReader)) {
	r.wg.Go(func() {
		apply := read()
		select {
		case r.feed.news <- apply:
		case <-r.ctx.Done():
		}
	})
}

// addRecords adds the prompts and responses of the requests of the event, which are read in the background.
func (r *stepReader) addRecords(list []StepCalls) {
	for i := range list {
		c := &list[i]
		known, asked := r.records[c.Log.SHA256]
		c.record = known
		if asked {
			continue
		}
		if len(r.records) >= maxRecords {
			clear(r.records)
		}
		log := c.Log
		r.records[log.SHA256] = record{}
		r.background(func() func(*stepReader) {
			read := readRecord(r.ctx, r.feed.link.Deps, log)
			return func(r *stepReader) { r.records[log.SHA256] = read }
		})
	}
}

// cross changes to the next or previous run of the chain.
func (r *stepReader) cross(runID string, forward bool) {
	events, err := r.feed.link.History(r.id.WorkflowID, runID).Events(r.ctx)
	if err != nil {
		which := "previous"
		if forward {
			which = "next"
		}
		r.out.Message = "the " + which + " run, " + runID + ", cannot be read: " + cluster.PlainError(err)
		return
	}
	r.id.RunID, r.out.RunID = runID, runID
	r.out.Verifying, r.out.Verdict = false, nil
	r.events, r.stepper, r.books = events, nil, kind.Books{}
	r.pos = len(events)
	if forward {
		r.pos = 1
	}
	r.follow()
	r.fold()
}

func (r *stepReader) showFrame() {
	o := &r.out
	o.Frame, o.Known, o.Calls, o.Sections, o.Watched, o.WatchedValue = nil, nil, nil, nil, "", ""
	if s := r.stepper; r.pos > 0 && r.pos <= s.Len() {
		o.Calls = callsAt(r.events[:r.pos])
		r.addRecords(o.Calls)
		o.Frame, o.Known = s.Frame(r.pos), s.Values(r.pos)
		o.Words, o.Sections = s.Words(r.pos), s.Sections(r.pos)
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
		r.out.Message = err.Error()
		return
	}
	r.pos = pos
}

func (r *stepReader) toWrong() {
	if at := r.stepper.WrongAt(); at > 0 {
		r.place(at)
		return
	}
	r.out.Message = "the answer of this run was not graded wrong"
}

func (r *stepReader) move(by stepper.By, forward bool) {
	if pos, ok := r.stepper.Move(r.pos, by, forward); ok {
		r.place(pos)
		return
	}
	if errors := r.stepper.Marks(stepper.ByError); by == stepper.ByError && forward && len(errors) > 0 {
		r.place(errors[0])
		r.out.Message = "no later error: this is the first one"
		return
	}
	name := stepNames[by]
	if by == stepper.ByTool {
		name = cmp.Or(toolNames[r.stepper.About.WorkflowType], name)
	}
	next, message := r.out.About.Next, "no later "+name
	if !forward {
		next, message = r.out.About.Prev, "no earlier "+name
	}
	switch {
	case next == "":
		r.out.Message = message
	case by == stepper.ByEvent:
		r.cross(next, forward)
	default:
		r.out.Message = message + " in this run; step by event to leave this run"
	}
}

func (r *stepReader) watchValue(expr string) {
	r.watch = nil
	if expr == "" {
		return
	}
	w, err := r.stepper.Watch(expr)
	if err != nil {
		r.out.Message = err.Error()
		return
	}
	r.watch = w
}

func (r *stepReader) nextWatched(forward bool) {
	if r.watch == nil {
		r.out.Message = "no value is watched; press * to choose one"
		return
	}
	seen, ok := r.watch.Next(r.pos, forward, r.ctx.Done())
	switch {
	case ok:
		r.place(seen.Position)
	case forward:
		r.out.Message = r.watch.Expr + " does not change later"
	default:
		r.out.Message = r.watch.Expr + " does not change earlier"
	}
}

// writePage writes a page in the background. Its message names the file.
func (r *stepReader) writePage() {
	link := r.feed.link
	w := *r.stepper
	file := pageFile(cmp.Or(w.About.TaskID, w.About.WorkflowID))
	working, _, end := link.StartWork(r.ctx, "writing "+file)
	r.background(func() func(*stepReader) {
		defer end()
		page, err := w.Page(working, link.Deps)
		if err = cmp.Or(err, working.Err()); err == nil {
			err = os.WriteFile(file, page, 0o600)
		}
		message := "wrote " + file + ", " + ace.Count(len(page), "byte") + "; secrets are replaced"
		if err != nil {
			message = "cannot write " + file + ": " + cluster.PlainError(err)
		}
		return func(r *stepReader) { r.out.Message = message }
	})
}

// pageFile returns the name of the file of a page.
func pageFile(run string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_~", r) {
			return r
		}
		return '-'
	}, ace.Cut(run, maxPageName)) + ".html"
}

// maxPageName bounds the name of a page, in bytes.
const maxPageName = 100

// verify replays the run with the current code in the background.
func (r *stepReader) verify(strict bool) {
	link := r.feed.link
	if link.NewVerifier == nil {
		r.out.Message = "cannot verify: this process has no workflow code"
	}
	if link.NewVerifier == nil || r.out.Verifying {
		return
	}
	before, of := r.out.Strict, r.id.RunID
	r.out.Verifying, r.out.Strict = true, strict
	working, progress, end := link.StartWork(r.ctx, "verifying "+r.id.WorkflowID)
	shared := r.events
	stored := Stored(link.Client, link.Namespace, r.id.WorkflowID, of)
	r.wg.Go(func() {
		defer end()
		events := make([]*historypb.HistoryEvent, len(shared))
		for i, e := range shared { // the replayer changes events, which others read
			events[i] = proto.Clone(e).(*historypb.HistoryEvent)
		}
		progress(0, int64(len(events)))
		verifier := link.NewVerifier(working, strict)
		verdict := verifier.Verify(working, events, stored)
		verifier.Close()
		canceled := working.Err() != nil
		done := func(r *stepReader) {
			switch {
			case r.id.RunID != of:
			case canceled:
				r.out.Verifying, r.out.Strict, r.out.Message = false, before, "verification canceled"
			default:
				r.out.Verifying, r.out.Verdict, r.out.Verified = false, &verdict, time.Now()
			}
		}
		select {
		case r.feed.commands <- done:
		case <-r.ctx.Done():
		}
	})
}
