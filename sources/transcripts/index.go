package transcripts

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript"
)

const (
	piece           = 2 << 20                // bytes that are read before newer data is checked
	publishInterval = 120 * time.Millisecond // between two announcements
	scanInterval    = 30 * time.Second       // finds changes without a notification
	saveInterval    = time.Minute            // between two writes of the cache
	maxWarm         = 64                     // transcripts whose reader is kept
)

// Options configure an index.
type Options struct {
	Roots  []string // configuration directories of Claude Code
	Prices *price.Prices
	Cache  string // a file that outlives the process, or ""
	// Changed is called from the reading goroutine when something has changed.
	Changed func()
}

// Index indexes transcripts. Run fills it; Sessions may be called at any time.
type Index struct {
	o Options

	// Only the goroutine of Run uses these.
	entries map[string]*entry // by path
	queue   []*entry          // to read, the newest first
	scans   int
	tick    int64 // counts uses of entries
	warm    int   // entries with a reader
	loaded  bool  // the cache was read
	stale   bool  // the cache file is out of date
	saved   time.Time
	shown   time.Time
	kin     map[string]kinship  // by path
	changed map[string]bool     // keys of sessions to build again
	built   map[string]*Session // by key
	p       Progress

	mu       sync.Mutex
	sessions []*Session
	progress Progress // as published
}

// New returns an empty index.
func New(o Options) *Index {
	if o.Changed == nil {
		o.Changed = func() {}
	}
	if o.Prices == nil {
		o.Prices = price.Shipped()
	}
	o.Roots = slices.Clone(o.Roots)
	for i, root := range o.Roots {
		if abs, err := filepath.Abs(root); err == nil {
			o.Roots[i] = abs
		}
	}
	return &Index{o: o, entries: map[string]*entry{}, kin: map[string]kinship{}, changed: map[string]bool{},
		built: map[string]*Session{}}
}

// Sessions returns the sessions known so far, the newest first, and the progress. The caller
// may keep both but must not change them.
func (x *Index) Sessions() ([]*Session, Progress) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sessions, x.progress
}

// Once reads all existing transcripts.
func (x *Index) Once(ctx context.Context) error {
	x.load()
	x.scan()
	err := x.work(ctx, nil)
	x.relateAll(ctx)
	x.publish(true)
	x.save(true)
	return err
}

// Run reads existing and new data until ctx ends. It may be called again and continues then.
func (x *Index) Run(ctx context.Context) {
	x.load()
	w := newWatcher(x.o.Roots)
	defer w.close()
	rescan := time.NewTimer(0)
	defer rescan.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-rescan.C:
			x.scan()
			w.watch(x.dirs())
			rescan.Reset(scanInterval)
		case path := <-w.paths:
			x.handle(w, path)
		}
		if x.work(ctx, w) == nil {
			x.relateAll(ctx)
			x.publish(true)
			x.save(false)
		}
	}
	x.save(true)
}

// work reads until the queue is empty. Between two pieces it handles notifications of w, which
// may be nil.
func (x *Index) work(ctx context.Context, w *watcher) error {
	for len(x.queue) > 0 {
		if err := ctx.Err(); err != nil {
			x.publish(true)
			return err
		}
		start := time.Now()
		x.step(ctx, x.queue[0])
		x.p.Busy += time.Since(start)
		x.publish(false)
		for more := w != nil; more; {
			select {
			case path := <-w.paths:
				x.handle(w, path)
			default:
				more = false
			}
		}
		runtime.Gosched()
	}
	return nil
}

// step reads a piece of a transcript.
func (x *Index) step(ctx context.Context, e *entry) {
	if e.reader == nil {
		e.reader, e.fold, e.offset = transcript.NewReader(e.path), transcript.NewFold(x.o.Prices), 0
		x.warm++
	}
	x.tick++
	e.used = x.tick
	before := e.offset
	restart := func() {
		e.fold, before = transcript.NewFold(x.o.Prices), 0
		delete(x.kin, e.path)
	}
	p, err := e.reader.Read(ctx, piece, restart, func(raw []byte, _ int64) { e.fold.Add(raw) })
	if ctx.Err() != nil && err != nil {
		e.cool() // it stopped within a piece
		x.warm--
		return
	}
	e.fold.Oversize(p.Oversized)
	x.p.Read += max(p.Offset-before, 0)
	e.offset, e.err = p.Offset, ""
	if err != nil {
		e.err = err.Error()
	}
	if p.More && err == nil {
		return
	}
	x.queue = x.queue[1:]
	x.touch(e) // reading may change the owner of an old subagent
	e.summary, e.done, e.cached, e.queued = e.fold.Summary(), true, false, false
	x.touch(e)
	x.stale = true
	if x.warm > maxWarm {
		x.cool()
	}
}

// cool drops the least recently used readers.
func (x *Index) cool() {
	var warm []*entry
	for _, e := range x.entries {
		if e.reader != nil && e.done {
			warm = append(warm, e)
		}
	}
	slices.SortFunc(warm, func(a, b *entry) int { return cmp.Compare(a.used, b.used) })
	for _, e := range warm[:max(len(warm)-maxWarm/2, 0)] {
		e.cool()
	}
	x.warm = min(len(warm), maxWarm/2)
}

// touch marks the session of a transcript as changed.
func (x *Index) touch(e *entry) {
	if _, key := e.owner(); key != "" {
		x.changed[key] = true
	}
}

// publish builds changed sessions again and publishes them; not too often, unless it is the
// last time for now.
func (x *Index) publish(last bool) {
	now := time.Now()
	if !last && now.Sub(x.shown) < publishInterval {
		return
	}
	x.shown = now
	rebuilt := len(x.changed) > 0
	x.build()
	p := x.p
	p.Files, p.Done, p.Cached = len(x.entries), 0, 0
	for _, e := range x.entries {
		if e.done {
			p.Done++
		}
		if e.done && e.cached {
			p.Cached++
		}
	}
	x.mu.Lock()
	if rebuilt {
		x.sessions = slices.Collect(maps.Values(x.built))
		sortNewest(x.sessions)
	}
	changed := rebuilt || p != x.progress
	x.progress = p
	x.mu.Unlock()
	if changed {
		x.o.Changed()
	}
}

// File returns the session of one transcript in any directory, with the subagents beside it.
func File(ctx context.Context, path string, prices *price.Prices) (*Session, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	x := New(Options{Prices: prices})
	x.update(path, filepath.Base(filepath.Dir(path)))
	x.scanAgents(strings.TrimSuffix(path, transcript.Ext))
	if err := x.work(ctx, nil); err != nil {
		return nil, err
	}
	x.publish(true)
	for _, s := range x.sessions {
		if s.Path == path {
			if s.Err != "" {
				return nil, errors.New(s.Err)
			}
			return s, nil
		}
	}
	return nil, errors.New(path + " is not a transcript")
}
