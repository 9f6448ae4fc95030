package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"acescope/engine/ace"
)

func TestSplitQuery(t *testing.T) {
	for query, want := range map[string]struct {
		picks string
		rest  int
		again string // "" for the same query
	}{
		``:                   {"map[]", 0, ""},
		`ExitStatus="wrong"`: {"map[ExitStatus:[wrong]]", 0, ""},
		`ExitStatus = 'wrong' and ExperimentId IN ("a", 'b c')`: {"map[ExitStatus:[wrong] ExperimentId:[a b c]]", 0, `ExitStatus="wrong" AND ExperimentId IN ("a", "b c")`},
		`TaskId STARTS_WITH "q" AND Phase="skills"`:             {"map[Phase:[skills]]", 1, ""},
		`ExitStatus="a" OR ExitStatus="b"`:                      {"map[]", 1, ""},
		`(ExitStatus="a" OR x="b") AND ModelName="m"`:           {"map[ModelName:[m]]", 1, ""},
		`ExitStatus!="a"`: {"map[]", 1, ""},
		`StartTime BETWEEN '1' AND '2' AND AdapterType="offline"`: {"map[AdapterType:[offline]]", 1, ""},
		`ExperimentId="a \" AND b"`:                               {`map[ExperimentId:[a " AND b]]`, 0, ""},
		`ExitStatus="a" AND ExitStatus="b"`: {"map[ExitStatus:[a]]", 1,
			`ExitStatus="b" AND ExitStatus="a"`},
		`ExitStatus="torn`:                    {"map[]", 1, ""},
		`ExitStatus IN ("a" "b")`:             {"map[]", 1, ""},
		`WorkflowType="x" ORDER BY StartTime`: {"map[]", 1, ""},
		`CloseTime IS NULL AND ExitStatus IN ("running") AND Phase = "handover"`: {"map[ExitStatus:[running] Phase:[handover]]", 1, `CloseTime IS NULL AND ExitStatus="running" AND Phase="handover"`},
	} {
		p := SplitQuery(query)
		if got := fmt.Sprint(p.Values); got != want.picks || len(p.Rest) != want.rest {
			t.Errorf("%s: %s and %q", query, got, p.Rest)
		}
		again := want.again
		if again == "" {
			again = query
		}
		if got := p.Query(); got != again {
			t.Errorf("%s: together again %s", query, got)
		}
	}
}

func TestToggle(t *testing.T) {
	p := SplitQuery(`a="x" OR b="y"`).Toggle(ace.AttrExit, "wrong").Toggle(ace.AttrExit, "failed")
	if got, want := p.Query(), `(a="x" OR b="y") AND ExitStatus IN ("wrong", "failed")`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	again := SplitQuery(p.Query()).Toggle(ace.AttrExit, "wrong").Toggle(ace.AttrExit, "failed")
	if got, want := again.Query(), `a="x" OR b="y"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := p.Clear().Query(); got != `a="x" OR b="y"` {
		t.Errorf("cleared: %s", got)
	}
}

// A query that is split and joined keeps its meaning: a second round changes nothing.
func FuzzSplitQuery(f *testing.F) {
	for _, s := range []string{`ExitStatus="a" AND (b="c" OR d='e')`, `a`, `"`, `((`,
		`ExitStatus IN ("a",'b')`, `x BETWEEN 1 AND 2 AND y=3`, `AND AND`, `(a OR b)`, `(A)0 0`, `a) OR (b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := SplitQuery(s).Query()
		if twice := SplitQuery(once).Query(); twice != once {
			t.Errorf("%q: %q, then %q", s, once, twice)
		}
	})
}

func TestFacetsAreCounted(t *testing.T) {
	s := newSim(simRuns(100)...)
	known := Known()
	known.Add(simRun(0)) // e0
	known.Add(simRun(1)) // e1; e2 is unknown
	f, err := CountFacets(t.Context(), s, `ExitStatus="wrong"`, known)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]Facet{}
	for _, x := range f.List {
		of[x.Attribute] = x
	}
	exit := of[ace.AttrExit]
	if len(exit.Values) != 2 || exit.Others != 25 || !(exit.Values[0] == FacetValue{"success", 50, false}) ||
		!(exit.Values[1] == FacetValue{"wrong", 25, true}) {
		t.Errorf("exit: %+v", exit)
	}
	if e := of[ace.AttrExperiment]; len(e.Values) != 2 || e.Values[0].Count+e.Values[1].Count+
		e.Others != 25 || e.Others == 0 {
		t.Errorf("experiments: %+v", e)
	}
	if f.Calls > facetCalls || f.Calls != len(s.counted) {
		t.Errorf("%d calls, %d counts", f.Calls, len(s.counted))
	}
}

// TestFacetsOfTypes checks that runs can be narrowed by workflow type, also by one that is not of the contract.
func TestFacetsOfTypes(t *testing.T) {
	list := simRuns(5)
	for i := range list {
		if list[i].Type = ace.TaskWorkflow; i%2 == 1 {
			list[i].Type = "OrderWorkflow"
		}
	}
	known := Known()
	for _, r := range list {
		known.Add(r)
	}
	query, err := Filter("type=OrderWorkflow")
	if err != nil {
		t.Fatal(err)
	}
	f, err := CountFacets(t.Context(), newSim(list...), query, known)
	if err != nil {
		t.Fatal(err)
	}
	want := []FacetValue{{ace.TaskWorkflow, 3, false}, {"OrderWorkflow", 2, true}}
	if got := f.Of(AttrType).Values; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if a, b := FacetLabel(AttrType, ace.TaskWorkflow), FacetLabel(AttrType, "OrderWorkflow"); a != "task" ||
		b != "OrderWorkflow" {
		t.Errorf("labels %q and %q", a, b)
	}
}

func TestFacetsAreBounded(t *testing.T) {
	s := newSim(simRuns(10)...)
	known := Known()
	for i := range 3 * facetKept {
		known.Add(Run{Experiment: fmt.Sprint("x", i), Dataset: fmt.Sprint("d", i), Model: fmt.Sprint("m", i),
			Phase: ace.Phase(fmt.Sprint("p", i))})
	}
	f, err := CountFacets(t.Context(), s, "", known)
	if err != nil || f.Calls > facetCalls {
		t.Errorf("%d calls, %v", f.Calls, err)
	}
	if e := f.Of(ace.AttrExperiment); e.Dropped != facetKept-facetValues || e.Others != 10 {
		t.Errorf("%s: %d left out, %d others", e.Attribute, e.Dropped, e.Others)
	}
}

// Facets are counted while they are shown, again for another query, and an error keeps the old counts.
func TestFacetsFollowTheQuery(t *testing.T) {
	s := newSim(simRuns(20)...)
	w := watch(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		w.Facets.Run(ctx)
	})
	defer wg.Wait()
	defer cancel()
	w.Facets.Look(true)
	w.until("counted", func(RunList) bool { f := w.Facets.Value(); return f != nil && f.Query == "" })
	w.SetQuery(`ExitStatus="wrong"`)
	w.until("counted again", func(RunList) bool { return w.Facets.Value().Query != "" })
	s.mu.Lock()
	s.countErr = errors.New("no room")
	s.mu.Unlock()
	w.SetQuery("")
	w.until("it failed", func(RunList) bool { f := w.Facets.Value(); return f.Err != "" && len(f.List) > 0 })
}
