package transcripts

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"acescope/engine/price"
	"acescope/engine/transcript"
)

// How the index reads.
const (
	piece       = 2 << 20                // bytes read before it looks whether there is something newer
	publishGap  = 120 * time.Millisecond // between two announcements
	rescanEvery = 30 * time.Second       // for what no notice told of
	saveEvery   = time.Minute            // while something changes
	maxWarm     = 64                     // transcripts whose reading goes on where it ended
)

// Options say what an index reads.
type Options struct {
	Roots  []string // configuration directories of Claude Code
	Prices *price.Prices
	Cache  string // file that outlives the process, "" for none
	// Changed is called when there is something new to be had, from the reading goroutine.
	Changed func()
}

// Index is what is known of all transcripts. Run fills it; the other methods may be called
// at any time.
type Index struct {
	o   Options
	buf transcript.Buffer

	// Only the goroutine of Run uses these.
	entries map[string]*entry
	queue   []*entry // that are to be read, the newest first
	scans   int
	tick    int64 // counts uses, for forgetting
	warm    int
	loaded  bool // the cache
	stale   bool // the cache file is older than what is known
	saved   time.Time
	shown   time.Time
	kin     map[string]kinship // by path
	changed map[string]bool    // keys of sessions that are to be built anew
	built   map[string]*Session

	p Progress

	mu       sync.Mutex
	sessions []*Session
	progress Progress // as it was handed out
}

// New makes an index that knows nothing yet.
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
	return &Index{o: o, entries: map[string]*entry{}, kin: map[string]kinship{}, changed: map[string]bool{}, built: map[string]*Session{}}
}

// Sessions is what is known now, the newest first, and how far the reading is. Both may be
// kept; neither may be changed.
func (x *Index) Sessions() ([]*Session, Progress) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sessions, x.progress
}

// Once reads what is there, to the end.
func (x *Index) Once(ctx context.Context) error {
	x.begin()
	x.scan()
	err := x.work(ctx, nil)
	x.finish(ctx)
	return err
}

// Run reads what is there and what is added, until ctx ends. After that it may be called
// again, and goes on where it was.
func (x *Index) Run(ctx context.Context) {
	x.begin()
	n := newNotices(x.o.Roots)
	defer n.close()
	rescan := time.NewTimer(0)
	defer rescan.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-rescan.C:
			x.scan()
			n.watch(x.folders())
			rescan.Reset(rescanEvery)
		case path := <-n.changed():
			x.notice(n, path)
		}
		if x.work(ctx, n) == nil {
			x.family(ctx)
			x.publish(true)
			x.save(false)
		}
	}
	x.save(true)
}

func (x *Index) begin() {
	if !x.loaded {
		x.load()
		x.loaded = true
	}
}

// finish does what follows when all is read.
func (x *Index) finish(ctx context.Context) {
	x.family(ctx)
	x.publish(true)
	x.save(true)
}

// work reads until nothing is left to be read.
func (x *Index) work(ctx context.Context, n *notices) error {
	for len(x.queue) > 0 {
		if err := ctx.Err(); err != nil {
			x.publish(true)
			return err
		}
		begun := time.Now()
		x.step(ctx, x.queue[0])
		x.p.Busy += time.Since(begun)
		x.publish(false)
		for more := n != nil; more; {
			select {
			case path := <-n.changed():
				x.notice(n, path)
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
	x.p.Reading = e.path
	if e.reader == nil {
		e.reader, e.fold, e.offset = transcript.NewReader(e.path, &x.buf), transcript.NewFold(x.o.Prices), 0
		x.warm++
	}
	x.tick++
	e.used = x.tick
	before := e.offset
	p, err := e.reader.Read(ctx, piece, func() {
		e.fold, before = transcript.NewFold(x.o.Prices), 0
		delete(x.kin, e.path)
	}, func(raw []byte, _ int64) { e.fold.Add(raw) })
	if ctx.Err() != nil && err != nil {
		e.forget() // it ended in the middle of a piece
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
	x.touch(e) // an old subagent tells only now whose it is
	e.summary, e.done, e.cached, e.queued = e.fold.Summary(), true, false, false
	x.touch(e)
	x.stale = true
	if x.warm > maxWarm {
		x.cool()
	}
}

// cool forgets how to go on with the transcripts that were not read for longest.
func (x *Index) cool() {
	var warm []*entry
	for _, e := range x.entries {
		if e.reader != nil && e.done {
			warm = append(warm, e)
		}
	}
	slices.SortFunc(warm, func(a, b *entry) int { return cmp.Compare(a.used, b.used) })
	for _, e := range warm[:max(len(warm)-maxWarm/2, 0)] {
		e.forget()
	}
	x.warm = min(len(warm), maxWarm/2)
}

func (x *Index) touch(e *entry) {
	if _, key := e.owner(); key != "" {
		x.changed[key] = true
	}
}

// scan looks through all directories.
func (x *Index) scan() {
	x.scans++
	x.p.Trouble = ""
	for _, root := range x.o.Roots {
		projects := filepath.Join(root, "projects")
		for _, d := range x.list(projects) {
			if dir := filepath.Join(projects, d.Name()); isDir(dir, d) {
				x.scanProject(dir)
			}
		}
	}
	for path, e := range x.entries {
		if e.seen != x.scans {
			x.drop(path, e)
		}
	}
	x.bound()
	x.p.Scanned = time.Now()
	x.order()
}

func (x *Index) list(dir string) []os.DirEntry {
	list, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		x.p.Trouble = err.Error()
	}
	return list
}

func isDir(path string, d os.DirEntry) bool {
	if d.Type()&os.ModeSymlink == 0 {
		return d.IsDir()
	}
	return isDirectory(path)
}

func (x *Index) scanProject(dir string) {
	for _, d := range x.list(dir) {
		path := filepath.Join(dir, d.Name())
		if strings.HasSuffix(d.Name(), transcript.Ext) {
			x.meet(path, filepath.Base(dir))
		} else if isDir(path, d) {
			x.scanAgents(path)
		}
	}
}

func (x *Index) scanAgents(session string) {
	dir := filepath.Join(session, "subagents")
	list, err := os.ReadDir(dir)
	if err != nil {
		return // most have none
	}
	for _, d := range list {
		if strings.HasSuffix(d.Name(), transcript.Ext) {
			x.meet(filepath.Join(dir, d.Name()), filepath.Base(filepath.Dir(session)))
		}
	}
}

// meet notes a transcript as it is now.
func (x *Index) meet(path, project string) {
	session, agent, ok := transcript.SessionOf(path)
	if !ok {
		return
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	e := x.entries[path]
	if e == nil {
		e = &entry{path: path}
		x.entries[path] = e
	}
	fresh := e.project == ""
	e.project, e.session, e.agent, e.seen = project, session, agent, x.scans
	if fresh {
		x.touch(e)
	}
	if e.size == info.Size() && e.modTime.Equal(info.ModTime()) && e.done && e.err == "" {
		return
	}
	e.size, e.modTime, e.done = info.Size(), info.ModTime(), false
	x.touch(e)
	if !e.queued {
		e.queued = true
		x.queue = append(x.queue, e)
	}
}

func (x *Index) drop(path string, e *entry) {
	delete(x.entries, path)
	delete(x.kin, path)
	x.queue = slices.DeleteFunc(x.queue, func(q *entry) bool { return q == e })
	if e.reader != nil {
		x.warm--
	}
	x.touch(e)
	x.stale = true
}

// bound leaves out the oldest transcripts where there are too many.
func (x *Index) bound() {
	x.p.Dropped = 0
	if len(x.entries) <= MaxFiles {
		return
	}
	all := make([]*entry, 0, len(x.entries))
	for _, e := range x.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, byAge)
	for _, e := range all[MaxFiles:] {
		x.drop(e.path, e)
		x.p.Dropped++
	}
}

func byAge(a, b *entry) int {
	if c := b.modTime.Compare(a.modTime); c != 0 {
		return c
	}
	return strings.Compare(a.path, b.path)
}

// order puts what is to be read in order.
func (x *Index) order() { slices.SortFunc(x.queue, byAge) }

// notice looks at what a notice of the system named: a transcript, or a directory. What
// is new is watched before it is looked into, so that nothing falls between.
func (x *Index) notice(n *notices, path string) {
	dir := filepath.Dir(path)
	n.gone(path)
	switch {
	case strings.HasSuffix(path, transcript.Ext) && filepath.Base(dir) == "subagents":
		x.again(path, filepath.Base(filepath.Dir(filepath.Dir(dir))))
	case strings.HasSuffix(path, transcript.Ext):
		x.again(path, filepath.Base(dir))
	case filepath.Base(dir) == "projects":
		n.add(path)
		x.scanProject(path)
	case filepath.Base(path) == "subagents":
		n.add(path)
		x.scanAgents(dir)
	case filepath.Base(filepath.Dir(dir)) == "projects" && isDirectory(path):
		n.add(path)
		n.add(filepath.Join(path, "subagents"))
		x.scanAgents(path)
	default:
		return
	}
	x.order()
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (x *Index) again(path, project string) {
	if _, err := os.Lstat(path); err != nil {
		if e := x.entries[path]; e != nil {
			x.drop(path, e)
		}
		return
	}
	if x.entries[path] == nil && len(x.entries) >= MaxFiles {
		return // the next scan makes room
	}
	x.meet(path, project)
}

// folders are the directories in which something may change: those of projects, the newest
// first, and those of subagents of sessions that were written to lately.
func (x *Index) folders() (dirs []string) {
	at := map[string]time.Time{}
	recent := time.Now().Add(-24 * time.Hour)
	for _, e := range x.entries {
		dir := filepath.Dir(e.path)
		if e.agent != "" && e.session != "" && e.modTime.Before(recent) {
			continue
		}
		if e.modTime.After(at[dir]) {
			at[dir] = e.modTime
		}
	}
	for dir := range at {
		dirs = append(dirs, dir)
	}
	slices.SortFunc(dirs, func(a, b string) int { return at[b].Compare(at[a]) })
	return dirs
}

// publish builds anew what has changed and hands it out; not too often, unless it is the
// last for now.
func (x *Index) publish(last bool) {
	now := time.Now()
	if !last && now.Sub(x.shown) < publishGap {
		return
	}
	x.shown = now
	if len(x.queue) == 0 {
		x.p.Reading = ""
	}
	rebuilt := len(x.changed) > 0
	x.build()
	p := x.p
	p.Sessions, p.Files, p.Done, p.Cached, p.Bytes, p.BytesDone = len(x.built), len(x.entries), 0, 0, 0, 0
	for _, e := range x.entries {
		p.Bytes += e.size
		switch {
		case e.done:
			p.Done++
			p.BytesDone += e.size
			if e.cached {
				p.Cached++
			}
		default:
			p.BytesDone += min(e.offset, e.size)
		}
	}
	x.mu.Lock()
	if rebuilt {
		x.sessions = x.newestFirst()
	}
	same := p == x.progress && !rebuilt
	x.progress = p
	x.mu.Unlock()
	if !same || rebuilt {
		x.o.Changed()
	}
}

// File is the session of one transcript, wherever it lies, with its subagents beside it.
func File(ctx context.Context, path string, prices *price.Prices) (*Session, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	x := New(Options{Prices: prices})
	x.again(path, filepath.Base(filepath.Dir(path)))
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
	return nil, errors.New(path + " is no transcript")
}
