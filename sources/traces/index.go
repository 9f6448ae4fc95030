// Package traces reads from their histories what the agents of runs did, for the runs whose memo does not say
// it, and keeps it: of closed runs also in a file. It imports sources/histories and sources/runs and knows no
// screen.
//
// Bounds: the maxKept runs that closed last are kept; [histories.ReadTrace] bounds the events of a run. What
// was read with other adapters, prices or another version of the program is read again.
package traces

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"acescope/sources/histories"
	"acescope/sources/runs"
)

// maxKept bounds the runs that are kept, about 1 kB each.
const maxKept = 10_000

// key names a run of a cluster. Run IDs are unique among clusters.
type key struct{ namespace, run string }

// entry is what is known of a run.
type entry struct {
	histories.Traced
	close  time.Time     // of the run as it was read, zero for an open run
	length int64         // of the history of an open run
	due    time.Time     // when to read it again; zero for never
	took   time.Duration // of the last reading
}

// Index keeps what was read. Its methods may be called from any goroutine.
type Index struct {
	file cacheFile

	mu      sync.RWMutex
	known   map[key]entry
	changed bool // the file lacks closed runs
}

// New returns an index that keeps closed runs in a file; "" for none. The version is that of the program.
func New(path, version string) *Index {
	return &Index{file: cacheFile{path: path, version: version}, known: map[key]entry{}}
}

// fill sets what is known of a run.
func (x *Index) fill(namespace string, r *runs.Run) {
	if runs.TypeOf(r.Type) != runs.OtherType {
		return
	}
	x.mu.RLock()
	e, ok := x.known[key{namespace, r.RunID}]
	x.mu.RUnlock()
	if ok {
		e.Set(r)
	}
}

// get returns what is known of a run, and whether it has to be read.
func (x *Index) get(namespace string, r *runs.Run, now time.Time) (e entry, unread bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e, ok := x.known[key{namespace, r.RunID}]
	switch {
	case !ok:
		return e, histories.LacksTrace(*r)
	case !e.due.IsZero():
		return e, now.After(e.due) || !r.Open() && e.length > 0
	}
	return e, false
}

// put keeps what was read of a run.
func (x *Index) put(namespace, run string, e entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.known[key{namespace, run}] = e
	x.changed = x.changed || e.lasting()
	if len(x.known) >= 2*maxKept {
		x.trim()
	}
}

// lasting reports whether what is known of a run will not change.
func (e entry) lasting() bool { return e.due.IsZero() && !e.close.IsZero() }

// trim drops the runs that closed first. The lock is held.
func (x *Index) trim() {
	var closed []key
	for k, e := range x.known {
		if !e.close.IsZero() {
			closed = append(closed, k)
		}
	}
	slices.SortFunc(closed, func(a, b key) int {
		return cmp.Or(x.known[b].close.Compare(x.known[a].close), cmp.Compare(a.run, b.run))
	})
	for _, k := range closed[min(maxKept, len(closed)):] {
		delete(x.known, k)
	}
}
