// Package offline serves histories from files as a Temporal server serves those of its runs, so
// that every reader of a server also reads files. It may import engine/ace, history,
// historyfile and playbook, and of the server only its query language.
//
// [Files] is a set of histories, [Files.Load] reads them, and [Files.Client] returns a client
// whose calls are answered from the set; nothing is dialed. Calls that change a run are refused.
//
// Order: runs are listed as a server lists them: open runs first, then by close time, the
// newest first. Events are in the order of their file. Bounds: at most [MaxEvents] events are
// held; files beyond that are not read, and a [Problem] says so. Loss: of two histories of one
// run the longer is kept; unreadable data is a Problem. Search attributes and memo come from
// the history; pending activities are those without an end in it.
package offline

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"golang.org/x/sync/errgroup"

	"acescope/engine/ace"
	"acescope/engine/temporal/historyfile"
)

const (
	// MaxEvents bounds the events that are held, about two kilobytes each.
	MaxEvents = 1_000_000
	// maxProblems bounds the problems that are kept; the rest is counted.
	maxProblems = 100
	// firstTimeout is how long a list waits for the first run.
	firstTimeout = time.Second
)

// Files is a set of histories from files. It is safe for concurrent use.
type Files struct {
	// Decode, if set, decodes the payloads of a history in place.
	Decode func(ctx context.Context, events []*historypb.HistoryEvent)

	mu       sync.Mutex
	runs     map[string]*run // by run ID
	order    []*run          // of a server's list; nil after a change
	types    map[string]enumspb.IndexedValueType
	events   int
	problems []Problem
	more     int           // problems that were not kept
	changed  chan struct{} // closed and replaced when a history is added
	loaded   bool
}

// Source is a file to read.
type Source struct {
	Name string // for display
	Open func() (io.ReadCloser, error)
}

// Problem is why a file, or part of it, is missing.
type Problem struct {
	Source string
	Minor  bool // nothing is missing because of it
	Err    error
}

func (p Problem) Error() string { return fmt.Sprintf("%s: %v", p.Source, p.Err) }

// Unwrap returns the reason.
func (p Problem) Unwrap() error { return p.Err }

// New returns an empty set. Calls of its client wait until [Files.Load] is done.
func New() *Files {
	f := &Files{runs: map[string]*run{}, types: map[string]enumspb.IndexedValueType{},
		changed: make(chan struct{})}
	for _, name := range ace.SearchAttributes() {
		f.types[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return f
}

// Size returns the number of runs and of events.
func (f *Files) Size() (runs, events int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.runs), f.events
}

// Problems returns the problems so far by file, at most 100, and how many more there were.
func (f *Files) Problems() (list []Problem, more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list = slices.Clone(f.problems)
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Source, b.Source) })
	return list, f.more
}

// SourceOf returns the file that a run was read from, or "", and whether the run is the only
// one in it.
func (f *Files) SourceOf(runID string) (source string, alone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[runID]
	if r == nil {
		return "", false
	}
	for _, other := range f.runs {
		if other != r && other.source == r.source {
			return r.source, false
		}
	}
	return r.source, true
}

// Load reads files, several at a time, and adds their histories as they come. progress, which
// may be nil, gets the number of files read. Load returns when all files are read or ctx ends;
// calls that wait for a missing run then fail.
func (f *Files) Load(ctx context.Context, files []Source, progress func(done, total int)) error {
	defer f.finish()
	var reading errgroup.Group
	reading.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	done := 0
	for _, file := range files {
		reading.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f.read(ctx, file)
			mu.Lock()
			defer mu.Unlock()
			done++
			if progress != nil {
				progress(done, len(files))
			}
			return nil
		})
	}
	err := reading.Wait()
	if err != nil {
		f.problem(fmt.Sprintf("%d of %s", len(files)-done, ace.Count(len(files), "file")),
			"not read: canceled")
	}
	return err
}

func (f *Files) read(ctx context.Context, s Source) {
	if _, events := f.Size(); events >= MaxEvents {
		f.problem(s.Name, "not read: the limit of %s is reached; open fewer files",
			ace.Count(MaxEvents, "event"))
		return
	}
	r, err := s.Open()
	if err != nil {
		f.report(Problem{Source: s.Name, Err: err})
		return
	}
	list, err := historyfile.Read(r)
	_ = r.Close() // it was only read
	for i, h := range list {
		if len(h.Events) == 0 {
			f.problem(s.Name, "history %d has no events", i+1)
			continue
		}
		if f.Decode != nil {
			f.Decode(ctx, h.Events)
		}
		broken := ""
		if err != nil && i == len(list)-1 {
			broken = fmt.Sprintf("%s is incomplete: %v", filepath.Base(s.Name), err)
		}
		run := newRun(h, s.Name, i+1, broken)
		if other := f.add(run); other != "" {
			f.report(Problem{s.Name, true,
				fmt.Errorf("the run %s is also in %s; using the longer history", run.name(), other)})
		}
		if n := len(h.Unread); n > 0 {
			f.report(Problem{s.Name, true,
				fmt.Errorf("%s of %s could not be decoded and have only ID and time; the first is a %s",
					ace.Count(n, "event"), run.name(), h.Unread[0].Type)})
		}
	}
	if err != nil {
		f.report(Problem{Source: s.Name, Err: err})
	}
}

func (f *Files) problem(source, format string, args ...any) {
	f.report(Problem{Source: source, Err: fmt.Errorf(format, args...)})
}

func (f *Files) report(p Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.problems) >= maxProblems {
		f.more++
		return
	}
	f.problems = append(f.problems, p)
}

// add adds a run. If the set already has it, the longer history stays, and add returns the
// file of the other one.
func (f *Files) add(r *run) (other string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.runs[r.runID()]; old != nil {
		if len(old.events) >= len(r.events) {
			return old.source
		}
		other = old.source
		f.events -= len(old.events)
	}
	f.runs[r.runID()] = r
	f.order = nil
	for name, kind := range r.types {
		if _, known := f.types[name]; !known {
			f.types[name] = kind
		}
	}
	f.events += len(r.events)
	f.wake()
	return other
}

func (f *Files) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded = true
	f.wake()
}

// wake wakes the calls that wait for a change.
func (f *Files) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// wait returns when all files are loaded, ready returns true under the lock, or limit fires.
func (f *Files) wait(ctx context.Context, limit <-chan time.Time, ready func() bool) error {
	for {
		f.mu.Lock()
		done, changed := f.loaded || ready(), f.changed
		f.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return nil
		case <-changed:
		}
	}
}

// list returns the runs in the order of a server's list. It waits a moment for the first one.
func (f *Files) list(ctx context.Context) ([]*run, error) {
	err := f.wait(ctx, time.After(firstTimeout), func() bool { return len(f.runs) > 0 })
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.order == nil {
		f.order = slices.SortedFunc(maps.Values(f.runs), compareRuns)
	}
	return f.order, nil
}

// compareRuns puts open runs first, then those that closed last; of equal ones the one that
// started last.
func compareRuns(a, b *run) int {
	if a.open() != b.open() {
		if a.open() {
			return -1
		}
		return 1
	}
	return cmp.Or(b.closed().Compare(a.closed()), b.start().Compare(a.start()),
		cmp.Compare(a.runID(), b.runID()))
}

func startedLater(a, b *run) bool {
	return cmp.Or(a.start().Compare(b.start()), cmp.Compare(a.runID(), b.runID())) > 0
}

// find returns the run with runID, or the newest run of workflowID if runID is "". It returns nil
// if there is no such run, and waits for files that are still being read.
func (f *Files) find(ctx context.Context, workflowID, runID string) (*run, error) {
	if err := f.wait(ctx, nil, func() bool { return f.runs[runID] != nil }); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.runs[runID]
	for _, r := range f.runs {
		if runID == "" && r.workflowID() == workflowID && (found == nil || startedLater(r, found)) {
			found = r
		}
	}
	if found != nil && workflowID != "" && found.workflowID() != workflowID {
		return nil, nil
	}
	return found, nil
}

func (f *Files) attributes() map[string]enumspb.IndexedValueType {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.types)
}
