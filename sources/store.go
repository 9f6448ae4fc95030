package sources

import (
	"context"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/feed"
	"acescope/sources/histories"
	"acescope/sources/logs"
	"acescope/sources/playbooks"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/system"
	"acescope/sources/triage"
)

// Store holds what the console knows and hands it out as snapshots. Its methods never
// block on a server: they note a wish and wake whoever fulfils it.
type Store struct {
	mu       sync.Mutex
	snap     Snapshot
	changed  chan struct{}
	wake     chan struct{} // to the list reader
	codecCh  chan struct{} // to the codec's watcher: try again what failed
	selectCh chan struct{} // to the detail watcher
	query    string
	wanted   listWishes
	endRound func() // ends what the list reader does now; nil before it does anything
	facets   facetWish
	selected selection
	parts    parts
	works    works
	logs     logWish
	wishes   *wishes // of the experiments' reader
	triage   triageWish
	// artifacts are those that are to be opened, the oldest wish first, at most MaxArtifacts.
	artifacts []ace.Ref
	books     playbooks.PlaybookReader
	events    eventWishes
	diff      *feed.Feed[diffAsk, *histories.RunDiff]
	deps      cluster.Deps // set by Run before anything is read
	replay    replayWishes
	talk      talkWish
	session   sessionWish
	runner    string // whose runs are wanted, "" for none
	verify    verifyWishes
	// namespace is where the runs are; set before anything is read.
	namespace string
	now       func() time.Time
}

type selection struct{ workflowID, runID string }

// NewStore makes a store that is not connected yet.
func NewStore() *Store {
	s := &Store{
		changed:  make(chan struct{}, 1),
		wake:     make(chan struct{}, 1),
		codecCh:  make(chan struct{}, 1),
		selectCh: make(chan struct{}, 1),
		verify:   verifyWishes{wake: make(chan struct{}, 1)},
		books:    playbooks.PlaybookReader{Wish: playbooks.BookWish{Seq: -1, Around: -1}},
		talk:     talkWish{wake: make(chan struct{}, 1)},
		session:  sessionWish{wake: make(chan struct{}, 1)},
		now:      time.Now,
	}
	s.diff = feed.New(func() { cluster.Signal(s.changed) }, s.readDiff)
	s.snap.Connection = cluster.Connection{State: cluster.ConnStarting, Since: s.now()}
	s.snap.Runs = runs.RunList{Total: -1, Interval: cluster.DefaultInterval, ErrAt: -1}
	return s
}

// Changed holds one token while there is a snapshot that nobody has taken.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// Snapshot is what is known now.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.snap
	c.At = s.now()
	c.RunDiff = s.diff.Value()
	return &c
}

// update changes the snapshot under the lock and announces it. fn must replace slices
// and maps, never write into them: older snapshots share them.
func (s *Store) update(fn func(*Snapshot)) {
	s.mu.Lock()
	fn(&s.snap)
	s.snap.Seq++
	s.mu.Unlock()
	cluster.Signal(s.changed)
}

// Run reads the list, watches the selected run, and reads each part that is looked at,
// until ctx ends.
func (s *Store) Run(ctx context.Context, d cluster.Deps) {
	s.namespace, s.deps = d.Namespace, d
	var wg sync.WaitGroup
	for _, watch := range []func(){
		func() { s.watchRuns(ctx, d) },
		func() { s.watchDetail(ctx, d) },
		func() { s.watchCodec(ctx, d.Codec) },
		func() { s.watchPart(ctx, PartFacets, func(ctx context.Context) { s.readFacets(ctx, d) }) },
		func() { s.watchPart(ctx, PartLogs, func(ctx context.Context) { s.readLogs(ctx, d) }) },
		func() {
			s.watchPart(ctx, PartExperiments, func(ctx context.Context) { s.readExperiments(ctx, d) })
		},
		func() { s.watchPart(ctx, PartTriage, func(ctx context.Context) { s.readTriage(ctx, d) }) },
		func() { s.watchPart(ctx, PartSystem, func(ctx context.Context) { s.readSystem(ctx, d) }) },
		func() { s.watchPart(ctx, PartArtifacts, func(ctx context.Context) { s.readArtifacts(ctx, d) }) },
		func() { s.watchPart(ctx, PartBooks, func(ctx context.Context) { s.readBooks(ctx, d) }) },
		func() { s.diff.Run(ctx) },
		func() { s.watchPart(ctx, PartReplay, func(ctx context.Context) { s.readReplay(ctx, d) }) },
		func() { s.watchPart(ctx, PartLineage, func(ctx context.Context) { s.readLineage(ctx, d) }) },
		func() { s.watchVerify(ctx, d) },
		func() { s.watchPart(ctx, PartEvents, func(ctx context.Context) { s.readEvents(ctx, d) }) },
		func() { s.watchSessions(ctx, d) },
		func() { s.watchApprovals(ctx, d) },
		func() { s.watchPart(ctx, PartRunners, func(ctx context.Context) { s.readRunners(ctx, d) }) },
	} {
		wg.Go(watch)
	}
	wg.Wait()
}

// SetConnection says whom the store is connected to.
func (s *Store) SetConnection(c cluster.Connection) {
	s.update(func(snap *Snapshot) { snap.Connection = c })
}

// SetHealth sets the lasting state of one source.
func (s *Store) SetHealth(name string, ok bool, text string) {
	s.update(func(snap *Snapshot) {
		rows := make([]cluster.Health, 0, len(snap.Health)+1)
		row := cluster.Health{Name: name, OK: ok, Text: text, Since: s.now()}
		for _, h := range snap.Health {
			if h.Name != name {
				rows = append(rows, h)
			} else if h.OK == ok {
				row.Since = h.Since
			}
		}
		snap.Health = append(rows, row)
	})
}

// Report adds an error to the log of problems.
func (s *Store) Report(text string) {
	s.update(func(snap *Snapshot) {
		rows := append(append([]Problem{}, snap.Problems...), Problem{At: s.now(), Text: text})
		snap.Problems = rows[max(0, len(rows)-MaxProblems):]
	})
}

// SetQuery lists other runs. What is read for the old query is given up.
func (s *Store) SetQuery(query string) {
	s.mu.Lock()
	s.query, s.wanted = query, listWishes{}
	if s.endRound != nil {
		s.endRound()
	}
	s.mu.Unlock()
	s.update(func(snap *Snapshot) {
		// The rows stay until others are read: after a slip in the query they are still there.
		l := snap.Runs
		snap.Runs = runs.RunList{Query: query, Rows: l.Rows, First: l.First, Total: -1, Interval: l.Interval, Paused: l.Paused,
			Missing: l.Missing, Loading: true, ErrAt: -1}
	})
	cluster.Signal(s.wake)
	s.again(PartFacets)
	s.again(PartTriage)
}

// Refresh reads the list now, and what is looked at beside it.
func (s *Store) Refresh() {
	cluster.Signal(s.wake)
	cluster.Signal(s.codecCh)
	s.again(PartTriage)
	s.again(PartSystem)
}

// SetPaused stops reading the list by itself, or starts it again.
func (s *Store) SetPaused(paused bool) {
	s.update(func(snap *Snapshot) { snap.Runs.Paused = paused })
	cluster.Signal(s.wake)
}

// Select watches a run; an empty workflow id watches none.
func (s *Store) Select(workflowID, runID string) {
	next := selection{workflowID, runID}
	s.mu.Lock()
	same := s.selected == next
	s.selected = next
	named := s.logs.named()
	s.mu.Unlock()
	if same {
		return
	}
	cluster.Signal(s.selectCh)
	s.again(PartEvents)
	if !named {
		s.again(PartLogs)
	}
	s.again(PartReplay)
	s.again(PartLineage)
}

// failed notes that the server cannot be reached, reached that it can again.
func (s *Store) failed(err error) {
	s.mu.Lock()
	known := s.snap.Connection.State == cluster.ConnLost && s.snap.Connection.Err == cluster.PlainError(err)
	s.mu.Unlock()
	if known {
		return
	}
	s.update(func(snap *Snapshot) {
		if snap.Connection.State != cluster.ConnLost {
			snap.Connection.State, snap.Connection.Since = cluster.ConnLost, s.now()
		}
		snap.Connection.Err = cluster.PlainError(err)
	})
	cluster.Signal(s.wake)
}

func (s *Store) reached() {
	s.mu.Lock()
	known := s.snap.Connection.State == cluster.ConnReady
	s.mu.Unlock()
	if known {
		return
	}
	s.update(func(snap *Snapshot) {
		snap.Connection.State, snap.Connection.Err, snap.Connection.Since = cluster.ConnReady, "", s.now()
	})
}

// Snapshot is all that a screen may show, at one moment. It is immutable: whoever
// receives it may keep it and must not change it.
type Snapshot struct {
	Seq        uint64
	At         time.Time // when it was taken
	Connection cluster.Connection
	Runs       runs.RunList
	Detail     *histories.Detail    // of the selected run, nil where none is
	Artifacts  *histories.Artifacts // that were opened, nil where none was
	Events     *histories.EventLog  // of the selected run while it is looked at, nil where none is
	Facets     *runs.Facets         // nil until they were counted
	Health     []cluster.Health
	Problems   []Problem  // newest last, at most MaxProblems
	Work       []Work     // long work under way, newest last
	Logs       *logs.Logs // nil until PartLogs was looked at

	Experiments *experiments.Experiments // read while it is looked at, nil before
	Triage      *triage.Triage           // while it is looked at, and after; nil before the first time
	System      *system.System           // the same
	Books       *playbooks.Books         // nil until somebody looked
	RunDiff     *histories.RunDiff       // nil until two runs were compared
	Replay      *histories.Replay        // of the selected run while its time machine is looked at
	Transcripts *sessions.Transcripts    // nil until somebody looked
	Sessions    *sessions.Sessions       // the same, of sessions on the engine
	Approvals   *sessions.Approvals      // nil while none is known to wait
	Runners     *runners.Runners         // nil until somebody looked
	Lineage     *histories.LineageTree   // of the selected run while it is looked at, nil before
	Verified    *Verified                // nil until several runs were verified
}

// MaxProblems bounds the log of past errors in a snapshot.
const MaxProblems = 100

// Problem is an error that was shown.
type Problem struct {
	At   time.Time
	Text string
}
