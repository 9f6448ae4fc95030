package sessions

import (
	"context"
	"reflect"
	"sync"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/transcripts"
)

// Feed lists the agent sessions on the server and reads one conversation while they are shown.
type Feed struct {
	*feed.Feed[struct{}, *Sessions]
	link   *cluster.Link
	wanted *wantedRow
	index  *SessionIndex // only the reader uses it
}

// NewFeed returns a feed of all sessions on the server.
func NewFeed(link *cluster.Link) *Feed {
	f := &Feed{link: link, wanted: newWantedRow()}
	f.Feed = feed.New(link.Wake, f.read)
	f.Want(struct{}{})
	return f
}

// Read reads the conversation of a session by workflow ID; an empty ID stops reading. It may be called for each row that
// the cursor passes.
func (f *Feed) Read(workflowID string) { f.wanted.set(workflowID) }

func (f *Feed) read(ctx context.Context, _ struct{}, publish func(*Sessions)) {
	if f.index == nil {
		f.index = NewSessionIndex(f.link.Client, f.link.Namespace)
	}
	change := feed.Updater(f.Value(), publish)
	update := func(fn func(*Sessions)) {
		change(func(s *Sessions) {
			fn(s)
			s.Updated = f.link.Now()
		})
	}
	var wg sync.WaitGroup
	wg.Go(func() { f.readConversations(ctx, update) })
	wg.Go(func() { f.readRuns(ctx, update) })
	wg.Go(func() { f.list(ctx, update) })
	wg.Wait()
}

func (f *Feed) list(ctx context.Context, update func(func(*Sessions))) {
	for ctx.Err() == nil {
		rows, more, err := f.index.List(ctx, SessionsQuery, MaxEngineSessions)
		if ctx.Err() != nil {
			return
		}
		update(func(now *Sessions) {
			if err != nil {
				now.Err = cluster.PlainError(err)
				return
			}
			now.Rows = rows
			now.More = more
			now.Err = ""
			now.Loaded = f.link.Now()
		})
		_ = cluster.Sleep(ctx, SessionsEvery)
	}
}

// readRuns lists which runs belong to which session. An unreachable server is reported with the list of sessions.
func (f *Feed) readRuns(ctx context.Context, update func(func(*Sessions))) {
	for ctx.Err() == nil {
		if list, err := SessionRuns(ctx, f.link.Client); err == nil && ctx.Err() == nil {
			update(func(now *Sessions) { now.Runs = list })
		}
		_ = cluster.Sleep(ctx, SessionRunsEvery)
	}
}

// readConversations reads the wanted conversation until another one is wanted.
func (f *Feed) readConversations(ctx context.Context, update func(func(*Sessions))) {
	for ctx.Err() == nil {
		id := f.wanted.get()
		reading, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		if id == "" {
			close(done)
			update(func(now *Sessions) { now.Talk, now.Wanted = nil, "" })
		} else {
			go func() {
				defer close(done)
				newReader(f.link, id).run(reading, func(out *Talk) {
					update(func(now *Sessions) { now.Talk, now.Wanted = out, id })
				})
			}()
		}
		select {
		case <-ctx.Done():
		case <-f.wanted.changed:
		}
		stop()
		<-done
		f.wanted.settle(ctx)
	}
}

// wantedRow is the row whose conversation is wanted.
type wantedRow struct {
	changed chan struct{} // one slot
	mu      sync.Mutex
	key     string
}

func newWantedRow() *wantedRow { return &wantedRow{changed: make(chan struct{}, 1)} }

func (w *wantedRow) set(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.key != key {
		w.key = key
		cluster.Signal(w.changed)
	}
}

func (w *wantedRow) get() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.key
}

// settle waits until the cursor rests: rows that it only passes are not read.
func (w *wantedRow) settle(ctx context.Context) {
	for ctx.Err() == nil {
		timer := time.NewTimer(SelectionDelay)
		select {
		case <-w.changed:
			timer.Stop()
			continue
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		return
	}
}

// ApprovalFeed looks for tool calls that wait for a user, whatever is shown.
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
	x := NewSessionIndex(f.link.Client, f.link.Namespace)
	for ctx.Err() == nil {
		if f.link.Connection().State == cluster.ConnReady {
			if rows, _, err := x.List(ctx, WaitingQuery, MaxQueried); err == nil && ctx.Err() == nil {
				f.show(rows)
			}
		}
		_ = cluster.Sleep(ctx, ApprovalsEvery)
	}
}

func (f *ApprovalFeed) show(rows []*EngineSession) {
	var all []Approval
	for _, e := range rows {
		all = append(all, ApprovalsOf(e.WorkflowID, e.State)...)
	}
	var next *Approvals
	if len(all) > 0 {
		n := min(len(all), MaxApprovals)
		next = &Approvals{Rows: all[:n:n], More: len(all) - n}
	}
	if !reflect.DeepEqual(f.Value(), next) {
		f.Update(func(v **Approvals) { *v = next })
	}
}

// TranscriptFeed lists the sessions that agents left as transcripts on this machine, and reads one conversation, while
// they are shown. It needs no server.
type TranscriptFeed struct {
	*feed.Feed[struct{}, *Transcripts]
	link    *cluster.Link
	wanted  *wantedRow
	trouble string // reported as health; only the reader uses it

	local   Local              // set by Run
	index   *transcripts.Index // set by Run
	changed chan struct{}      // the index changed
}

// NewTranscriptFeed returns a feed that has read nothing.
func NewTranscriptFeed(link *cluster.Link) *TranscriptFeed {
	f := &TranscriptFeed{link: link, wanted: newWantedRow(), changed: make(chan struct{}, 1)}
	f.Feed = feed.New(link.Wake, f.read)
	f.Want(struct{}{})
	return f
}

// Read reads the conversation of a transcript by path; an empty path stops reading. It may be called for each row that
// the cursor passes.
func (f *TranscriptFeed) Read(path string) { f.wanted.set(path) }

// Run reads transcripts until ctx ends.
func (f *TranscriptFeed) Run(ctx context.Context, l Local) {
	f.local = l
	f.index = transcripts.New(transcripts.Options{Roots: l.Roots, Prices: l.Prices, Cache: l.Cache,
		Changed: func() { cluster.Signal(f.changed) }})
	f.Feed.Run(ctx)
}

func (f *TranscriptFeed) read(ctx context.Context, _ struct{}, publish func(*Transcripts)) {
	var wg sync.WaitGroup
	wg.Go(func() { f.follow(ctx, publish) })
	f.index.Run(ctx)
	wg.Wait()
}

// follow publishes what the index finds, and follows one conversation.
func (f *TranscriptFeed) follow(ctx context.Context, publish func(*Transcripts)) {
	var follower *transcripts.Follower
	var talk *Conversation
	wanted := ""
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
		case <-f.wanted.changed:
			timer.Reset(SelectionDelay)
			continue
		case <-timer.C:
			timer.Reset(ConversationInterval)
			if path := f.wanted.get(); path != wanted {
				wanted = path
				follower = nil
				talk = nil
			}
			if wanted == "" {
				break
			}
			if follower == nil {
				follower = transcripts.Follow(wanted)
			}
			if !follower.Read(ctx) || ctx.Err() != nil {
				continue
			}
			c := follower.Conversation()
			c.Updated = f.link.Now()
			talk = &c
		}
		f.show(wanted, talk, publish)
	}
}

func (f *TranscriptFeed) show(wanted string, talk *Conversation, publish func(*Transcripts)) {
	list, progress := f.index.Sessions()
	t := &Transcripts{Roots: f.local.Roots, Progress: progress, Talk: talk, Wanted: wanted, Updated: f.link.Now()}
	t.Dropped = max(len(list)-MaxSessions, 0)
	for _, one := range list[:len(list)-t.Dropped] {
		t.Rows = append(t.Rows, RowOf(one))
	}
	publish(t)
	if f.trouble == progress.Trouble {
		return
	}
	f.trouble = progress.Trouble
	if f.trouble == "" {
		f.link.SetHealth("transcripts", true, "readable")
		return
	}
	f.link.SetHealth("transcripts", false, f.trouble)
}
