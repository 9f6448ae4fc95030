package sessions

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"time"

	"acescope/engine/agents/price"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/runs"
	"acescope/sources/transcripts"
)

// Sessions holds the sessions on the engine.
type Sessions struct {
	Rows []*EngineSession // the newest first
	More bool             // there are older ones
	Err  string           // why they cannot be listed
	// blueprint runs that a session started or belongs to, the newest first, by session ID
	Runs map[string][]runs.Run
}

// Intervals of reading what is shown.
const (
	ListInterval     = time.Second      // between two lists of sessions
	runsInterval     = 3 * time.Second  // between two lists of blueprint runs
	mirrorInterval   = 30 * time.Second // between two lists of transcripts in the shared store
	approvalInterval = 2 * time.Second  // between two searches for waiting calls, on every screen

	// how long a selection stays before its conversation is read
	selectionDelay       = 80 * time.Millisecond
	conversationInterval = 250 * time.Millisecond // between two checks of whether a transcript has grown
)

// Feed lists the sessions on the engine while they are shown.
type Feed struct {
	*feed.Feed[struct{}, *Sessions]
	// Details reads the session with a workflow ID. It is nil until the session was read, and for "".
	Details *feed.Feed[string, *Detail]
	link    *cluster.Link
}

// NewFeed returns a feed of all sessions on the engine.
func NewFeed(link *cluster.Link) *Feed {
	f := &Feed{link: link}
	var index *Index // only the reader uses it
	f.Feed = feed.New(link.Wake, func(ctx context.Context, _ struct{}, publish func(*Sessions)) {
		if index == nil {
			index = NewIndex(link.Client, link.Namespace)
		}
		update := feed.Updater(f.Value(), publish)
		var wg sync.WaitGroup
		wg.Go(func() { f.readRuns(ctx, update) })
		wg.Go(func() { f.list(ctx, index, update) })
		wg.Go(func() { f.mirror(ctx) })
		wg.Wait()
	})
	f.Want(struct{}{})
	f.Details = feed.New(link.Wake, func(ctx context.Context, id string, publish func(*Detail)) {
		if id != "" {
			newReader(link, id).run(ctx, publish)
		}
	})
	f.Details.Rest = selectionDelay
	return f
}

// Run reads until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { f.Feed.Run(ctx) })
	wg.Go(func() { f.Details.Run(ctx) })
	wg.Wait()
}

func (f *Feed) list(ctx context.Context, index *Index, update func(func(*Sessions))) {
	for ctx.Err() == nil {
		rows, more, err := index.List(ctx, Query, MaxEngineSessions)
		if ctx.Err() != nil {
			return
		}
		update(func(now *Sessions) {
			if err != nil {
				now.Err = cluster.PlainError(err)
				return
			}
			now.Rows, now.More, now.Err = rows, more, ""
		})
		_ = f.link.Rest(ctx, ListInterval)
	}
}

// mirror copies the transcripts of other machines to this one, where the feed of transcripts finds them.
func (f *Feed) mirror(ctx context.Context) {
	for reported := false; f.link.Transcripts != nil && ctx.Err() == nil; {
		err := f.link.Transcripts.Once(ctx)
		if err != nil && ctx.Err() == nil && !reported {
			f.link.Report("transcripts of other machines: " + cluster.PlainError(err))
		}
		reported = err != nil
		_ = cluster.Sleep(ctx, mirrorInterval)
	}
}

// readRuns lists which runs belong to which session. An unreachable server is reported with the list of
// sessions.
func (f *Feed) readRuns(ctx context.Context, update func(func(*Sessions))) {
	for ctx.Err() == nil {
		if list, err := BlueprintRuns(ctx, f.link.Client); err == nil && ctx.Err() == nil {
			update(func(now *Sessions) { now.Runs = list })
		}
		_ = f.link.Rest(ctx, runsInterval)
	}
}

// ApprovalFeed looks for tool calls and runs that wait for a user, whatever is shown.
type ApprovalFeed struct {
	*feed.Cell[*Approvals]
	link *cluster.Link
}

// NewApprovalFeed returns a feed that knows of no waiting calls.
func NewApprovalFeed(link *cluster.Link) *ApprovalFeed {
	return &ApprovalFeed{link: link, Cell: feed.NewCell[*Approvals](link.Wake, nil)}
}

// Run reads until ctx ends. A server without the search attributes has no waiting calls.
func (f *ApprovalFeed) Run(ctx context.Context) {
	x := NewIndex(f.link.Client, f.link.Namespace)
	for ctx.Err() == nil {
		if f.link.Connection().State == cluster.ConnReady {
			rows, _, err := x.List(ctx, waitingQuery, maxQueried)
			waiting, _, listErr := runs.ListOnce(ctx, f.link.Client, waitingRuns, maxApprovals)
			if cmp.Or(err, listErr) == nil && ctx.Err() == nil {
				f.show(rows, waiting)
			}
		}
		_ = f.link.Rest(ctx, approvalInterval)
	}
}

func (f *ApprovalFeed) show(rows []*EngineSession, waiting []runs.Run) {
	var all []Approval
	for _, e := range rows {
		all = append(all, ApprovalsOf(e.State)...)
	}
	var next *Approvals
	if len(all)+len(waiting) > 0 {
		n := min(len(all), maxApprovals)
		next = &Approvals{Rows: all[:n:n], More: len(all) - n, Runs: waiting}
	}
	if !reflect.DeepEqual(f.Value(), next) {
		f.Update(func(v **Approvals) { *v = next })
	}
}

// Transcripts holds the transcripts on this machine.
type Transcripts struct {
	Dirs     []string               // that were searched
	Sessions []*transcripts.Session // the newest first
	Rows     []Row                  // of these
	Dropped  int                    // older transcripts that are not in Rows
	Progress transcripts.Progress
}

// maxTranscripts bounds the rows of transcripts; the oldest are dropped and counted.
const maxTranscripts = 5000

// Local configures the reading of transcripts on this machine, which needs no server.
type Local struct {
	Roots  []transcripts.Root
	Prices *price.Prices
	Cache  string // file that keeps what was read for the next process, or ""
}

// Dirs returns the directories with the transcripts.
func (l Local) Dirs() (dirs []string) {
	for _, r := range l.Roots {
		if !r.Copies {
			dirs = append(dirs, r.Transcripts())
		}
	}
	return dirs
}

// TranscriptFeed lists the sessions that agents left as transcripts on this machine, while they are shown. It
// needs no server.
type TranscriptFeed struct {
	*feed.Feed[struct{}, *Transcripts]
	// Conversations follows the transcript with a path. It is nil until the transcript was read, and for "".
	Conversations *feed.Feed[string, *transcripts.Conversation]

	link    *cluster.Link
	trouble string             // reported as health; only the reader uses it
	dirs    []string           // of the transcripts, set by Run
	index   *transcripts.Index // set by Run
	changed chan struct{}      // the index changed
}

// NewTranscriptFeed returns a feed that has read nothing.
func NewTranscriptFeed(link *cluster.Link) *TranscriptFeed {
	f := &TranscriptFeed{link: link, changed: make(chan struct{}, 1)}
	f.Feed = feed.New(link.Wake, f.read)
	f.Want(struct{}{})
	f.Conversations = feed.New(link.Wake, followTranscript)
	f.Conversations.Rest = selectionDelay
	return f
}

// Run reads transcripts until ctx ends.
func (f *TranscriptFeed) Run(ctx context.Context, l Local) {
	f.dirs = l.Dirs()
	f.index = transcripts.New(transcripts.Options{Roots: l.Roots, Prices: l.Prices, Cache: l.Cache,
		Changed: func() { cluster.Signal(f.changed) }})
	var wg sync.WaitGroup
	wg.Go(func() { f.Feed.Run(ctx) })
	wg.Go(func() { f.Conversations.Run(ctx) })
	wg.Wait()
}

func (f *TranscriptFeed) read(ctx context.Context, _ struct{}, publish func(*Transcripts)) {
	var wg sync.WaitGroup
	wg.Go(func() { f.index.Run(ctx) })
	for ctx.Err() == nil {
		f.show(publish)
		select {
		case <-ctx.Done():
		case <-f.changed:
		}
	}
	wg.Wait()
}

func (f *TranscriptFeed) show(publish func(*Transcripts)) {
	list, progress := f.index.Sessions()
	t := &Transcripts{Dirs: f.dirs, Sessions: list, Progress: progress,
		Dropped: max(len(list)-maxTranscripts, 0)}
	for _, one := range list[:len(list)-t.Dropped] {
		t.Rows = append(t.Rows, RowOf(one))
	}
	publish(t)
	if f.trouble != progress.Trouble {
		f.trouble = progress.Trouble
		f.link.SetHealth("transcripts", f.trouble == "", cmp.Or(f.trouble, "readable"))
	}
}

// followTranscript publishes the conversation in a transcript as it grows.
func followTranscript(ctx context.Context, path string, publish func(*transcripts.Conversation)) {
	if path == "" {
		return
	}
	follower := transcripts.Follow(path)
	for ctx.Err() == nil {
		if follower.Read(ctx) && ctx.Err() == nil {
			c := follower.Conversation()
			publish(&c)
		}
		_ = cluster.Sleep(ctx, conversationInterval)
	}
}
