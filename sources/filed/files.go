package filed

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// Files is a set of histories from files. It is safe for concurrent use.
type Files struct {
	// Decode, where it is set, decodes the payloads of a history that was read, in place.
	Decode func(ctx context.Context, events []*historypb.HistoryEvent)

	mu       sync.Mutex
	runs     map[string]*run   // by run id
	named    map[string][]*run // by workflow id, the oldest first
	order    []*run            // as they are listed; nil where it must be made anew
	types    map[string]enumspb.IndexedValueType
	events   int
	problems []Problem
	more     int           // problems that were not kept
	changed  chan struct{} // closed, and made anew, with each history that comes
	loaded   bool
}

// New is an empty set: what is asked of it waits until [Files.Load] is done.
func New() *Files {
	f := &Files{runs: map[string]*run{}, named: map[string][]*run{}, types: map[string]enumspb.IndexedValueType{},
		changed: make(chan struct{})}
	for _, name := range ace.SearchAttributes() {
		f.types[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return f
}

// Size is how many runs and events there are.
func (f *Files) Size() (runs, events int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.runs), f.events
}

// Problems are those met so far, at most 100, by file, and how many more there were.
func (f *Files) Problems() (list []Problem, more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list = slices.Clone(f.problems)
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Source, b.Source) })
	return list, f.more
}

// SourceOf names the file that a run was read from, "" for none, and tells whether no other
// run comes from it.
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

func (f *Files) problem(p Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.problems) >= maxProblems {
		f.more++
		return
	}
	f.problems = append(f.problems, p)
}

func (f *Files) full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events >= MaxEvents
}

// add takes a run up. Where it is there already, the longer history stays, and the other's
// file is returned.
func (f *Files) add(r *run) (other string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.runs[r.runID()]; old != nil {
		if len(old.events) >= len(r.events) {
			return old.source
		}
		f.remove(old)
		other = old.source
	}
	f.runs[r.runID()] = r
	list := append(f.named[r.workflowID()], r)
	slices.SortStableFunc(list, func(a, b *run) int { return a.start().Compare(b.start()) })
	f.named[r.workflowID()] = list
	for name, kind := range r.types {
		if _, known := f.types[name]; !known {
			f.types[name] = kind
		}
	}
	f.events += len(r.events)
	f.order = nil
	f.announce()
	return other
}

func (f *Files) remove(r *run) {
	delete(f.runs, r.runID())
	f.named[r.workflowID()] = slices.DeleteFunc(f.named[r.workflowID()], func(o *run) bool { return o == r })
	f.events -= len(r.events)
}

func (f *Files) announce() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// finish tells that nothing comes any more.
func (f *Files) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded = true
	f.announce()
}

// firstWithin is how long a list waits for the first run, so that it is shown as soon as
// it is there.
const firstWithin = time.Second

// list is the runs in the order in which they are listed.
func (f *Files) list(ctx context.Context) ([]*run, error) {
	late := time.NewTimer(firstWithin)
	defer late.Stop()
	for waits := true; ; {
		f.mu.Lock()
		if f.loaded || len(f.runs) > 0 || !waits {
			defer f.mu.Unlock()
			if f.order == nil {
				f.order = sorted(f.runs)
			}
			return f.order, nil
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late.C:
			waits = false
		case <-changed:
		}
	}
}

// attributes are the search attributes that are known.
func (f *Files) attributes() map[string]enumspb.IndexedValueType {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.types)
}

// sorted is the order of a server's list.
func sorted(runs map[string]*run) []*run {
	list := make([]*run, 0, len(runs))
	for _, r := range runs {
		list = append(list, r)
	}
	slices.SortFunc(list, compareRuns)
	return list
}

// compareRuns puts open runs first, then those that closed last; of equal ones that which
// began last.
func compareRuns(a, b *run) int {
	if a.open() != b.open() {
		if a.open() {
			return -1
		}
		return 1
	}
	return cmp.Or(b.closed().Compare(a.closed()), b.start().Compare(a.start()), cmp.Compare(a.runID(), b.runID()))
}

// find is a run by its id, or without one the newest of a workflow; nil where there is
// none. It waits for files that are still being read.
func (f *Files) find(ctx context.Context, workflowID, runID string) (*run, error) {
	for {
		f.mu.Lock()
		r := f.runs[runID]
		if list := f.named[workflowID]; runID == "" && len(list) > 0 && f.loaded {
			r = list[len(list)-1]
		}
		loaded, changed := f.loaded, f.changed
		f.mu.Unlock()
		if r != nil && workflowID != "" && r.workflowID() != workflowID {
			return nil, nil
		}
		if r != nil || loaded {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}
