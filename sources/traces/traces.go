// Package traces reads what the agents of runs of any workflow type did, for lists and sums: the history of a
// run is read once, and that of a closed run is kept in a file.
//
// Bounds: maxKept runs are kept, the newest. The package starts no goroutine.
package traces

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/store/durable"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Bounds of the file: runs, and bytes of JSON.
const (
	maxKept  = 20_000
	maxCache = 64 << 20
)

// version is the version of the file's layout and of the meaning of traces. Other versions are not read.
const version = 1

// Reader adds traces to runs. It is safe for concurrent use.
type Reader struct {
	path string

	mu     sync.Mutex
	loaded bool
	stale  bool // the file is out of date
	closed map[string]record
}

// file is the content of the file.
type file struct {
	Version int      `json:"version"`
	Digest  string   `json:"digest"` // of the adapters and prices
	Runs    []record `json:"runs"`
}

// record is what is known of a closed run. Summary is nil if its history says nothing of agents.
type record struct {
	RunID   string         `json:"run_id"`
	Close   time.Time      `json:"close"`
	Model   string         `json:"model,omitempty"`
	Summary *ace.Summary   `json:"summary,omitempty"`
	Trace   *trace.Summary `json:"trace,omitempty"`
}

// New returns a reader that keeps what it read of closed runs in a file, or only in memory for "".
func New(path string) *Reader { return &Reader{path: path, closed: map[string]record{}} }

// Known sets the trace and the summary of a run as far as they are kept, and reports whether nothing has to be
// read for it.
func (x *Reader) Known(r *runs.Run) bool {
	if !histories.LacksTrace(*r) {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.load()
	known, ok := x.closed[r.RunID]
	if ok && !r.Open() {
		r.Summary, r.Trace, r.Model = known.Summary, known.Trace, cmp.Or(r.Model, known.Model)
		return true
	}
	return false
}

// Add sets the trace and the summary of a run, from its history if need be. It is not an error if the run is
// gone.
func (x *Reader) Add(ctx context.Context, c client.Client, r *runs.Run) error {
	if x.Known(r) {
		return nil
	}
	if err := histories.AddTrace(ctx, c, r); err != nil {
		if cluster.NotFound(err) {
			return nil
		}
		return err
	}
	if !r.Open() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.closed[r.RunID] = record{r.RunID, r.Close, r.Model, r.Summary, r.Trace}
		x.stale = true
	}
	return nil
}

// load reads the file once. A file that cannot be read is replaced.
func (x *Reader) load() {
	if x.loaded || x.path == "" {
		return
	}
	x.loaded = true
	var f file
	if durable.LoadCache(x.path, maxCache, &f) != nil || f.Version != version || f.Digest != adapter.Digest() {
		return
	}
	for _, r := range f.Runs {
		x.closed[r.RunID] = r
	}
}

// Save writes the file if it is out of date.
func (x *Reader) Save() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.stale || x.path == "" {
		return nil
	}
	f := file{Version: version, Digest: adapter.Digest()}
	for _, r := range x.closed {
		f.Runs = append(f.Runs, r)
	}
	slices.SortFunc(f.Runs, func(a, b record) int { return b.Close.Compare(a.Close) })
	f.Runs = f.Runs[:min(len(f.Runs), maxKept)]
	x.stale = false
	return durable.SaveCache(x.path, f)
}
