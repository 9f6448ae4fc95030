package transcripts

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript"
	"acescope/sources/cluster"
)

const (
	piece           = 2 << 20                // bytes that are read before newer data is checked
	publishInterval = 120 * time.Millisecond // between two announcements, at least
	publishShare    = 10                     // at most this part of the time is for building the sessions
	scanInterval    = time.Second            // at least, between two scans
	scanShare       = 20                     // at most this part of the time is for scans
	saveInterval    = time.Minute            // between two writes of the cache
	maxWarm         = 64                     // transcripts whose reader is kept
)

// Options configure an index.
type Options struct {
	Roots  []Root
	Prices *price.Prices
	Cache  string // a file that outlives the process, or ""
	// Changed is called from the reading goroutine when something has changed.
	Changed func()
}

// Index indexes transcripts. Run fills it; Sessions may be called at any time.
type Index struct {
	o Options

	// Only the goroutine of Run uses these.
	files    map[string]*file // by path
	warm     []*file          // files with a reader, the last read last
	loaded   bool             // the cache was read
	changed  bool             // the sessions are out of date
	related  bool             // the forks are up to date
	stale    bool             // the cache file is out of date
	saved    time.Time
	unsaved  string // why the cache cannot be written
	shown    time.Time
	building time.Duration // of the sessions, the last time
	progress Progress

	mu        sync.Mutex
	published []*Session
	reported  Progress
}

// New returns an empty index.
func New(o Options) *Index {
	if o.Changed == nil {
		o.Changed = func() {}
	}
	if o.Prices == nil {
		o.Prices = price.Shipped()
	}
	return &Index{o: o, files: map[string]*file{}}
}

// Sessions returns the sessions known so far, the newest first, and the progress. The caller
// may keep both but must not change them.
func (x *Index) Sessions() ([]*Session, Progress) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.published, x.reported
}

// Once reads all existing transcripts.
func (x *Index) Once(ctx context.Context) error {
	x.load()
	err := x.read(ctx, x.scan(ctx), time.Time{})
	x.save(true)
	return err
}

// Run reads existing and new data until ctx ends. It may be called again and continues then.
func (x *Index) Run(ctx context.Context) {
	x.load()
	for ctx.Err() == nil {
		start := time.Now()
		queue := x.scan(ctx)
		again := start.Add(max(scanInterval, scanShare*time.Since(start)))
		if x.read(ctx, queue, again) == nil {
			x.save(false)
		}
		_ = cluster.Sleep(ctx, time.Until(again))
	}
	x.save(true)
}

// errUnread means that the time for reading is over.
var errUnread = errors.New("not all transcripts are read")

// read reads transcripts in the order of the queue, until the deadline if there is one.
func (x *Index) read(ctx context.Context, queue []*file, deadline time.Time) error {
	for len(queue) > 0 {
		if err := ctx.Err(); err != nil {
			x.publish(true)
			return err
		}
		if !deadline.IsZero() && time.Now().After(deadline) {
			return errUnread
		}
		if x.step(ctx, queue[0]) {
			queue = queue[1:]
		}
		x.publish(false)
		runtime.Gosched()
	}
	if !x.related {
		x.related = ctx.Err() == nil
		x.relateAll(ctx)
	}
	x.publish(true)
	return nil
}

// step reads a piece of a transcript and reports whether that was the last one.
func (x *Index) step(ctx context.Context, f *file) (last bool) {
	if f.reader == nil {
		f.reader, f.fold, f.offset, f.copied = f.format.Open(f.Path), f.format.Fold(x.o.Prices), 0, nil
	}
	start, before := time.Now(), f.offset
	restart := func() { f.fold, f.copied, before = f.format.Fold(x.o.Prices), nil, 0 }
	p, err := f.reader.Read(ctx, piece, restart, func(raw []byte, _ int64) { f.fold.Add(raw) })
	x.progress.Busy += time.Since(start)
	if ctx.Err() != nil && err != nil {
		f.reader, f.fold = nil, nil // it stopped within a piece
		return false
	}
	f.fold.Oversize(p.Oversized)
	x.progress.Read += max(p.Offset-before, 0)
	f.offset = p.Offset
	if p.More && err == nil {
		return false
	}
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	if failure == "" || failure != f.err {
		x.changed, x.related, x.stale = true, false, true
	}
	f.summary, f.err, f.done, f.cached = f.fold.Summary(), failure, true, false
	x.keepWarm(f)
	return true
}

// keepWarm keeps the reader of a transcript, and those of the last maxWarm others.
func (x *Index) keepWarm(f *file) {
	x.warm = append(slices.DeleteFunc(x.warm, func(w *file) bool { return w == f }), f)
	if len(x.warm) > maxWarm {
		x.warm[0].reader, x.warm[0].fold = nil, nil
		x.warm = slices.Delete(x.warm, 0, 1)
	}
}

// publish builds the sessions again if they have changed, and publishes them; not too often,
// unless it is the last time for now.
func (x *Index) publish(last bool) {
	now := time.Now()
	if !last && now.Sub(x.shown) < max(publishInterval, publishShare*x.building) {
		return
	}
	x.shown = now
	p := x.progress
	p.Trouble = cmp.Or(p.Trouble, x.unsaved)
	p.Files = len(x.files)
	for _, f := range x.files {
		if f.done {
			p.Done++
		}
		if f.done && f.cached {
			p.Cached++
		}
	}
	announce := x.changed || p != x.reported
	sessions := x.published
	if x.changed {
		sessions = x.sessions()
		x.building = time.Since(now)
	}
	x.mu.Lock()
	x.published, x.reported = sessions, p
	x.mu.Unlock()
	x.changed = false
	if announce {
		x.o.Changed()
	}
}

// File returns the session of one transcript in any directory, with the subagents beside it.
func File(ctx context.Context, path string, prices *price.Prices) (*Session, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	notTranscript := errors.New(path + " is not a transcript")
	format := transcript.FormatOf(path)
	if format == nil {
		return nil, notTranscript
	}
	entries, err := format.Stat(ctx, path)
	if err != nil {
		return nil, err
	}
	x := New(Options{Prices: prices})
	x.note(x.files, format, entries)
	if err := x.read(ctx, x.queue(), time.Time{}); err != nil {
		return nil, err
	}
	for _, s := range x.published {
		if s.Path == path {
			if s.Err != "" {
				return nil, errors.New(s.Err)
			}
			return s, nil
		}
	}
	return nil, notTranscript
}
