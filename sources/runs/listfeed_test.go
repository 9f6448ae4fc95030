package runs

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"acescope/engine/ace"
	"acescope/sources/cluster"
)

// watched reads the list of runs from a simulated server.
type watched struct {
	t      testing.TB
	sim    *sim
	Link   *cluster.Link
	Runs   *ListFeed
	Facets *FacetFeed
}

func watch(t testing.TB, s *sim) *watched {
	link := cluster.NewLink()
	list := NewListFeed(link)
	w := &watched{t, s, link, list, NewFacetFeed(link, list)}
	w.run()
	return w
}

// run reads until the test ends, and waits for the first reading.
func (w *watched) run() {
	w.Link.Deps = cluster.Deps{Client: w.sim, Namespace: "ace-dev"}
	w.Link.SetConnection(cluster.Connection{State: cluster.ConnReady})
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { w.Runs.Run(ctx) })
	w.t.Cleanup(func() { cancel(); wg.Wait() })
	w.until("the list is read", func(l RunList) bool { return !l.Loaded.IsZero() })
}

func (w *watched) Refresh() { w.Runs.Refresh() }

func (w *watched) SetQuery(query string) {
	w.Runs.SetQuery(query)
	w.Facets.Again()
}

// until waits for a list that satisfies ok.
func (w *watched) until(what string, ok func(RunList) bool) RunList {
	w.t.Helper()
	for {
		if l := w.Runs.Value(); ok(l) {
			return l
		}
		select {
		case <-w.Link.Changed():
		case <-time.After(time.Minute):
			l := w.Runs.Value()
			l.Rows = l.Rows[:min(len(l.Rows), 3)]
			w.t.Fatalf("never: %s: %+v", what, l)
		}
	}
}

// holds checks that the list is a part of the server's, in order.
func (w *watched) holds(l RunList) {
	w.t.Helper()
	if len(l.Rows) > maxHeld+slack {
		w.t.Fatalf("%d rows are held", len(l.Rows))
	}
	for i, r := range l.Rows {
		if want := w.sim.runs[int(l.First)+i].RunID; r.RunID != want {
			w.t.Fatalf("row %d is %s, want %s", int(l.First)+i, r.RunID, want)
		}
	}
}

// TestScrollThroughAll checks that scrolling down shows every run once, in order, that no more than a few
// thousand runs are held, and that scrolling up shows the same. BenchmarkScroll scrolls through more.
func TestScrollThroughAll(t *testing.T) {
	t.Parallel()
	const n = 4 * maxHeld
	w := watch(t, newSim(simRuns(n)...))
	seen, most := 0, 0
	var peak uint64
	for step := 0; ; step++ {
		l := w.Runs.Value()
		w.holds(l)
		most = max(most, len(l.Rows))
		if int(l.First) > seen {
			t.Fatalf("rows %d to %d were never seen", seen, l.First)
		}
		seen = max(seen, int(l.First)+len(l.Rows))
		if step%50 == 0 {
			peak = max(peak, heap())
		}
		if !l.More {
			break
		}
		end := l.First + int64(len(l.Rows))
		w.Runs.Load(LoadOlder)
		w.until("more", func(l RunList) bool { return l.First+int64(len(l.Rows)) > end || !l.More })
	}
	if seen != n || most > maxHeld {
		t.Fatalf("%d rows were seen, at most %d held", seen, most)
	}
	for l := w.Runs.Value(); l.First > 0; l = w.Runs.Value() {
		first := l.First
		w.Runs.Load(LoadNewer)
		w.holds(w.until("newer", func(l RunList) bool { return l.First < first }))
	}
	t.Logf("%d rows seen, %d held at most, heap at most %d MB, the simulated server's %d runs among it; %d listings; %s", seen, most, peak>>20, n, w.sim.lists, resident())
}

// resident returns the peak memory of the process if the system reports it.
func resident() string {
	data, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(l, "VmHWM") {
			return strings.Join(strings.Fields(l), " ")
		}
	}
	return ""
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestWalkToTheLast(t *testing.T) {
	t.Parallel()
	w := watch(t, newSim(simRuns(12_345)...))
	w.Runs.Load(LoadLast)
	w.until("the walk is told", func(l RunList) bool { return l.Walking > 0 || !l.More })
	l := w.until("the end", func(l RunList) bool { return !l.More && l.Walking == 0 })
	w.holds(l)
	if int(l.First)+len(l.Rows) != 12_345 {
		t.Errorf("ends at %d", int(l.First)+len(l.Rows))
	}
	w.Runs.Load(LoadFirst)
	w.holds(w.until("the top", func(l RunList) bool { return l.First == 0 }))
	lists := w.sim.lists
	w.Runs.Load(LoadLast)
	w.until("the end again", func(l RunList) bool { return !l.More && l.Walking == 0 })
	if again := w.sim.lists - lists; again > 10 {
		t.Errorf("the way was known and took %d listings", again)
	}
}

func TestWalkIsStopped(t *testing.T) {
	s := newSim(simRuns(3 * maxHeld)...)
	w := watch(t, s)
	gate := make(chan struct{})
	s.mu.Lock()
	s.block = gate
	s.mu.Unlock()
	w.Runs.Load(LoadLast)
	gate <- struct{}{}
	gate <- struct{}{}
	w.Runs.Load(StopWalk)
	close(gate)
	l := w.until("it stopped", func(l RunList) bool {
		return l.Walking == 0 && l.First+int64(len(l.Rows)) > 200
	})
	w.holds(l)
	if !l.More {
		t.Error("it went on to the end")
	}
}

// Runs that start, close and disappear neither duplicate nor hide others, at any position.
func TestListStaysWholeWhileRunsMove(t *testing.T) {
	t.Parallel()
	var open []Run
	for i := range 450 { // they fill more than two pages
		open = append(open, simOpen(-1000-i))
	}
	s := newSim(append(simRuns(3000), open...)...)
	w := watch(t, s)
	for range 6 {
		n := len(w.Runs.Value().Rows)
		w.Runs.Load(LoadOlder)
		w.until("more", func(l RunList) bool { return len(l.Rows) > n })
	}
	rounds := 8
	if testing.Short() { // with the race detector a list costs ten times as much
		rounds = 2
	}
	for round := range rounds {
		var moved []Run
		for i := range 30 { // some close, new ones start
			r := simOpen(-1000 - round*30 - i)
			r.Close, r.Status = simStart.Add(time.Duration(2000+round*30+i)*time.Second), ace.Completed
			moved = append(moved, r, simOpen(-2000-round*30-i))
		}
		s.put(moved...)
		for range 12 {
			loaded := w.Runs.Value().Loaded
			w.Refresh()
			w.until("it was read again", func(l RunList) bool { return l.Loaded.After(loaded) })
		}
		l := w.Runs.Value()
		s.mu.Lock()
		w.holds(l)
		s.mu.Unlock()
	}
}

// Only the first rows of an unchanged list are read; additions, changes and deletions are still noticed.
func TestQuietListIsGlancedAt(t *testing.T) {
	s := newSim(simRuns(1000)...)
	w := watch(t, s)
	reread := func() (rows int) {
		l := w.Runs.Value()
		s.mu.Lock()
		before := s.rows
		s.mu.Unlock()
		w.Refresh()
		w.until("it was read again", func(n RunList) bool { return n.Loaded.After(l.Loaded) })
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.rows - before
	}
	if n := reread(); n != glance {
		t.Errorf("%d rows were read of a quiet list", n)
	}
	s.put(simOpen(-5))
	w.Refresh()
	w.until("a new run is seen", func(l RunList) bool { return l.Rows[0].RunID == simRun(-5).RunID })
	changed := simOpen(-5)
	changed.Phase = ace.PhaseCurator
	s.put(changed)
	w.Refresh()
	w.until("its new phase is seen", func(l RunList) bool { return l.Rows[0].Phase == ace.PhaseCurator })
	s.mu.Lock()
	s.runs = slices.Delete(slices.Clone(s.runs), 100, 110)
	s.mu.Unlock()
	for range 2 * maxGlances {
		reread()
	}
	w.holds(w.Runs.Value())
}

// A page that the server did not answer for is read when it answers again.
func TestScrollDuringOutage(t *testing.T) {
	s := newSim(simRuns(1000)...)
	w := watch(t, s)
	s.mu.Lock()
	s.pageErr = serviceerror.NewDeadlineExceeded("context deadline exceeded")
	s.mu.Unlock()
	w.Runs.Load(LoadOlder)
	w.until("the error", func(l RunList) bool { return l.Err != "" })
	s.mu.Lock()
	s.pageErr = nil
	s.mu.Unlock()
	w.Refresh()
	w.holds(w.until("more", func(l RunList) bool { return len(l.Rows) == 400 }))
}

// If more new runs arrive than are read at once, they leave a gap that is filled when the user scrolls there.
func TestGapIsFilled(t *testing.T) {
	s := newSim(simRuns(1000)...)
	w := watch(t, s)
	w.Runs.Load(LoadOlder)
	w.until("more", func(l RunList) bool { return len(l.Rows) == 400 })
	var fresh []Run
	for i := range headPages*scrollPage + 700 {
		fresh = append(fresh, simRun(-1-i))
	}
	s.put(fresh...)
	w.Refresh()
	l := w.until("the new ones", func(l RunList) bool { return l.Rows[0].RunID == s.runs[0].RunID })
	w.holds(l)
	for l.More {
		end := l.First + int64(len(l.Rows))
		w.Runs.Load(LoadOlder)
		l = w.until("more", func(l RunList) bool { return l.First+int64(len(l.Rows)) > end || !l.More })
		w.holds(l)
	}
	if got := int(l.First) + len(l.Rows); got != len(s.runs) {
		t.Errorf("%d of %d rows", got, len(s.runs))
	}
}

func TestCountsTakeFewCalls(t *testing.T) {
	right := []Run{simRun(0), simRun(1), simRun(2)} // success, wrong, success
	s := newSim(append(right, simOpen(9))...)
	got, err := CountRuns(t.Context(), s, "")
	if err != nil || got.Total != 4 || got.Status[ace.Running] != 1 || got.Status[ace.Completed] != 3 ||
		got.Wrong != 1 || got.Status[ace.Failed] != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(s.counted) != 2 {
		t.Errorf("%d calls: %q", len(s.counted), s.counted)
	}
}

func TestCountsOfEveryKind(t *testing.T) {
	runs := simRuns(8)
	for i, exit := range []ace.Status{ace.TimedOut, ace.Canceled, ace.Failed} {
		runs[i].Status = exit
	}
	for _, groups := range []bool{true, false} {
		s := newSim(append(slices.Clone(runs), simOpen(9))...)
		s.groups = groups
		got, err := CountRuns(t.Context(), s, `ExperimentId != "x"`)
		want := map[ace.Status]int64{}
		for _, r := range s.runs {
			want[r.Status]++
		}
		for _, exit := range ace.Statuses() {
			if got.Status[exit] != want[exit] || got.Total != 9 || err != nil {
				t.Errorf("grouped %v, %s: %d, want %d (%d, %v)", groups, exit, got.Status[exit], want[exit],
					got.Total, err)
			}
		}
		if len(s.counted) > 10 {
			t.Errorf("%d calls", len(s.counted))
		}
	}
}

func TestRetriesAreFoundInTurn(t *testing.T) {
	var open []Run
	for i := range 150 {
		open = append(open, simOpen(i))
	}
	s := newSim(open...)
	s.trying["run-000140"] = simAttempt{number: 4, lastError: "connection refused"}
	w := watch(t, s)
	for i := 0; ; i++ {
		l := w.Runs.Value()
		if l.Retries.LookedAt == 150 {
			break
		}
		if i > 20 {
			t.Fatalf("after %d readings %d of 150 were looked at", i, l.Retries.LookedAt)
		}
		w.Refresh()
		w.until("more were looked at", func(n RunList) bool {
			return n.Retries.LookedAt > l.Retries.LookedAt
		})
	}
	l := w.Runs.Value()
	at := slices.IndexFunc(l.Rows, func(r Run) bool { return r.RunID == "run-000140" })
	if r := l.Rows[at]; r.Attempt != 4 || r.LastError != "connection refused" || l.Retries.Retrying != 1 {
		t.Errorf("%+v, %+v", r, l.Retries)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.described {
		if n > 2 && id != "run-000140" {
			t.Errorf("%s was described %d times", id, n)
		}
	}
}

func TestOpenExperimentsTellWhatTheyDid(t *testing.T) {
	e := simOpen(0)
	e.Type, e.Phase = ace.ExperimentWorkflow, ""
	s := newSim(e, simOpen(1))
	s.answers[e.RunID] = ace.ExperimentProgress{Stage: ace.StageLearning,
		Summary: ace.Summary{Skills: 9, SkillsOK: 8, Added: 7}, Usage: ace.Usage{CostUSD: 1.5}}
	s.answers["run-000001"] = ace.SkillAnswer{Skills: []ace.SkillUsage{{Name: "a", Calls: 2, OK: 1}}}
	w := watch(t, s)
	l := w.until("they answered", func(l RunList) bool {
		return l.Rows[0].Summary != nil && l.Rows[1].Summary != nil
	})
	if x := l.Rows[0]; x.Summary.Added != 7 || x.Summary.Usage.CostUSD != 1.5 ||
		x.Phase != ace.StageLearning {
		t.Errorf("%+v", x)
	}
	if x := l.Rows[1]; x.Summary.Skills != 2 || x.Summary.SkillsOK != 1 {
		t.Errorf("%+v", x.Summary)
	}
}

// A query that times out keeps the old rows, reports it, and is retried.
func TestSlowQuery(t *testing.T) {
	s := newSim(simRuns(5)...)
	w := watch(t, s)
	s.mu.Lock()
	s.pageErr = serviceerror.NewDeadlineExceeded("context deadline exceeded")
	s.mu.Unlock()
	w.Refresh()
	l := w.until("it is said", func(l RunList) bool { return l.Err != "" })
	if len(l.Rows) != 5 || !strings.Contains(l.Err, "did not answer the query within 3s") ||
		w.Link.Status().Connection.State != cluster.ConnReady {
		t.Errorf("%d rows, %q, %s", len(l.Rows), l.Err, w.Link.Status().Connection.State)
	}
	w.Refresh()
	w.until("it gets more time", func(l RunList) bool { return strings.Contains(l.Err, "within 6s") })
	s.mu.Lock()
	s.pageErr = nil
	s.mu.Unlock()
	w.Refresh()
	w.until("it is read again", func(l RunList) bool { return l.Err == "" })
	s.mu.Lock()
	s.pageErr, s.healthy = serviceerror.NewDeadlineExceeded("context deadline exceeded"), false
	s.mu.Unlock()
	w.Refresh()
	w.until("the server is away", func(RunList) bool {
		return w.Link.Status().Connection.State == cluster.ConnLost
	})
}

// A new query does not wait for a hanging one.
func TestNewQueryDoesNotWait(t *testing.T) {
	s := newSim(simRuns(5)...)
	w := watch(t, s)
	gate := make(chan struct{})
	s.mu.Lock()
	s.block = gate
	before := s.lists
	s.mu.Unlock()
	w.Refresh()
	for asked := false; !asked; {
		s.mu.Lock()
		asked = s.lists > before
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.block = nil
	s.mu.Unlock()
	w.SetQuery(`ExitStatus="wrong"`)
	w.until("the new query", func(l RunList) bool { return l.Query != "" && !l.Loaded.IsZero() })
}

func TestMissingAttributesAreNamed(t *testing.T) {
	s := newSim()
	s.missing = []string{ace.AttrExit, ace.AttrPhase}
	w := watch(t, s)
	w.until("they are missed", func(l RunList) bool { return len(l.Missing) == 2 })
	h := w.Link.Status().Health
	want := "namespace ace-dev lacks ExitStatus, Phase; create them: acescope setup --namespace ace-dev"
	if len(h) != 1 || h[0].State != cluster.Error || !strings.Contains(h[0].Text, want) {
		t.Errorf("%+v", h)
	}
}

func TestRecent(t *testing.T) {
	runs := append([]Run{simOpen(-1)}, simRuns(200)...)
	runs = append(runs, Run{Type: ace.ExperimentWorkflow, Close: simStart.Add(time.Hour)})
	r := RecentOf(runs)
	if r.Runs != 100 || r.Status[ace.Completed] != 75 || r.Verdict[ace.Correct] != 50 ||
		r.Verdict[ace.Wrong] != 25 || r.Status[ace.Failed] != 25 || r.Sum.Added != 100 ||
		fmt.Sprintf("%.2f", r.Sum.Usage.CostUSD) != "1.00" || r.P50MS != 2000 {
		t.Errorf("%+v", r)
	}
	if RecentOf(nil) != nil {
		t.Error("something of nothing")
	}
}
