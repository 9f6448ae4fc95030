package views

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/trace"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/views/console"
	runsview "acescope/views/runs"
)

// listOfRuns has every feature of a list of runs.
func listOfRuns() *snapshot {
	s := full(120)
	describe(s.Runs.Rows)
	s.Sections = map[string]int64{"": 10_214, `ExecutionStatus="Running"`: 3, `ExitStatus="wrong"`: 398}
	s.Runs.Recent = runs.RecentOf(s.Runs.Rows)
	s.Runs.Retries = runs.RetryState{Open: 3, LookedAt: 3, Retrying: 1}
	s.Facets = &runs.Facets{Query: s.Runs.Query, Counted: noon, List: []runs.Facet{
		{Attribute: ace.AttrExit, Values: []runs.FacetValue{{Value: "success", Count: 9804},
			{Value: "wrong", Count: 398}, {Value: "failed", Count: 9}, {Value: "running", Count: 3}}},
		{Attribute: ace.AttrExperiment,
			Values: []runs.FacetValue{{Value: "finance-7", Count: 10_214, Picked: true},
				{Value: "財務-自己資本利益率の計算問題-長い名前", Count: 77}}, Others: 12},
		{Attribute: ace.AttrModel, Values: []runs.FacetValue{{Value: "builtin", Count: 10_214}}, Dropped: 3},
		{Attribute: ace.AttrPhase, Values: []runs.FacetValue{{Value: "done", Count: 10_211},
			{Value: "skills", Count: 1}}},
	}}
	return s
}

// describe gives tasks a subject, an answer, a label and a cause.
func describe(rows []runs.Run) {
	formulas := []string{"Net Profit Margin", "Loan to Value", "財務 \x1b[31mRatio"}
	for i := range rows {
		if rows[i].Summary == nil {
			continue
		}
		s := *rows[i].Summary
		s.Subject = "Use formula " + formulas[i%3] + " to answer the question. Reply with a plain number."
		s.Answer, s.Expected = fmt.Sprint(i*17), fmt.Sprint(i*17)
		if rows[i].Verdict == ace.Wrong {
			s.Answer, s.Cause = fmt.Sprint(i*10),
				"The recipe takes the gross margin instead of the net margin."
		}
		if rows[i].Status == ace.Failed {
			s.Answer, s.Cause = "", "run_generator: the model did not answer: connection refused"
		}
		rows[i].Summary = &s
	}
}

func (s *screen) list() *runsview.Runs {
	s.t.Helper()
	for _, v := range s.named("runs").Views {
		if list, ok := v.(*runsview.Runs); ok {
			return list
		}
	}
	s.t.Fatal("there is no list of runs")
	return nil
}

// last returns the last call of the store with a prefix.
func (s *screen) last(begins string) string {
	heard := s.store.heard()
	for i := len(heard) - 1; i >= 0; i-- {
		if strings.HasPrefix(heard[i], begins) {
			return strings.TrimPrefix(heard[i], begins)
		}
	}
	return "nothing"
}

var runsKeys = map[string][]string{
	"list":    nil,
	"facets":  {"F"},
	"filters": {"ctrl+o"},
	"columns": {"C", "j", "j", "j", "j", "j", "j", "j", "space"},
	"wide":    {"m", "right", "right"},
	"sorted":  {"s", "s", "S"},
	"marked":  {"j", "space", "space", "space"},
	"retries": {"R"},
	"marks-x": {"space", "space", "space", "x"},
}

func TestRunsScreens(t *testing.T) {
	looks := map[string]theme.Styles{"dark": theme.New(true, false), "nocolor": theme.New(true, true)}
	for name, keys := range runsKeys {
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			for look, styles := range looks {
				t.Run(fmt.Sprintf("%s-%dx%d-%s", name, size[0], size[1], look), func(t *testing.T) {
					sc := newScreen(t, listOfRuns(), styles, size[0], size[1])
					sc.shared.Listing.Filters = append(runs.ShippedFilters(),
						runs.SavedFilter{Name: "finance", Query: "exp=finance-7", Default: true})
					sc.press(keys...)
					if out := sc.drawn(); look == "dark" {
						golden.RequireEqual(t, out)
					} else {
						golden.RequireEqual(t, sc.plain())
					}
				})
			}
		}
	}
}

// TestAgentColumns checks that a list with traces says who worked and what that took at every size, that sums say
// what they lack, that other lists have no such columns, and that the histories on the screen are read.
func TestAgentColumns(t *testing.T) {
	rows := make([]runs.Run, 3)
	for i := range rows {
		model := fmt.Sprint("model-", i)
		s := trace.Summary{Framework: "f", Agent: fmt.Sprint("desk-", i), Model: model,
			Sum: trace.Sum{Requests: 4 + i, Input: int64(4000 + i), Cost: 0.5 + float64(i)}}
		s.Parts = []trace.Part{{Agent: s.Agent, Model: model}, {Agent: "translator", Model: model}}
		rows[i] = runs.Run{WorkflowID: fmt.Sprint("w", i), RunID: fmt.Sprint("r", i), Type: "Desk", Model: model,
			Status: ace.Completed, Start: noon.Add(-time.Hour), Close: noon, Trace: &s, Summary: &ace.Summary{
				Subject: fmt.Sprint(i, " What is the weather?"), Answer: fmt.Sprint(i, " sunny"),
				Usage: ace.Usage{InputTokens: s.Sum.Input, CostUSD: s.Sum.Cost}}}
	}
	rows[1].Trace.Sum.Unrecorded, rows[1].Summary.Usage.Unpriced = 1, true
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
		sc := newScreen(t, ready(rows...), plainLook, size[0], size[1])
		heading := strings.Fields(ansi.Strip(sc.list().Draw(noon, true)[0]))
		want := []string{"SUBJECT", "AGENT", "TOKENS", "COST"}
		if size[0] == 200 {
			want = append(want, "MODEL", "CALLS")
		}
		for _, column := range want {
			if !slices.Contains(heading, column) {
				t.Errorf("%v: no column %s in %v", size, column, heading)
			}
		}
		for _, cell := range []string{"desk-0 +1", "4,001+", "$1.5000+", "4,002"} {
			sc.has(cell)
		}
		if ids := sc.store.onScreen; !slices.Equal(ids, []string{"r0", "r1", "r2"}) {
			t.Errorf("%v: the histories of %v are read", size, ids)
		}
	}
	s := ready(rows...)
	s.Runs.Traces = runs.TraceProgress{Done: 120, Total: 1000}
	newScreen(t, s, plainLook, 80, 24).has("reading 120 of 1,000 histories")
	for i := range rows {
		rows[i].Trace = nil
	}
	for _, column := range []string{"AGENT", "CALLS", "TOKENS"} {
		newScreen(t, ready(rows...), plainLook, 200, 50).lacks(column)
	}
}

// TestColumnsSaySomething checks that a list has no column in which all runs are empty, that runs of other
// programs show their types, and that a list of tasks gives no room to the type.
func TestColumnsSaySomething(t *testing.T) {
	foreign := func(types ...string) []runs.Run {
		rows := make([]runs.Run, 6)
		for i := range rows {
			rows[i] = runs.Run{WorkflowID: fmt.Sprint("order-4711-", i), RunID: fmt.Sprint(i),
				Type: types[i%len(types)], Status: ace.Running, Start: noon.Add(-time.Minute)}
		}
		return rows
	}
	for name, want := range map[string]struct {
		rows           []runs.Run
		title, heading string
	}{
		"one type":  {foreign("OrderWorkflow"), "Runs · ● running · OrderWorkflow", "TASK TOOK AGE"},
		"two types": {foreign("OrderWorkflow", "RefundWorkflow"), "Runs · ● running", "TASK TYPE TOOK AGE"},
		"two runs":  {foreign("OrderWorkflow")[:2], "Runs", "TASK TYPE TOOK AGE"},
		"tasks":     {foreign(ace.TaskWorkflow), "Runs · ● running", "TASK TOOK AGE"},
		"mixed":     {foreign(ace.TaskWorkflow, "OrderWorkflow"), "Runs · ● running", "TASK TYPE TOOK AGE"},
	} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
			sc := newScreen(t, ready(want.rows...), plainLook, size[0], size[1])
			v := sc.list()
			heading := ansi.Strip(v.Draw(noon, true)[0])
			got := strings.Join(strings.Fields(strings.Replace(heading, "STATUS", "", 1)), " ")
			if v.Title() != want.title || got != want.heading {
				t.Errorf("%s at %v: %q with the columns %q", name, size, v.Title(), heading)
			}
			sc.has(want.rows[0].WorkflowID)
			sc.lacks(" – ")
		}
	}
}

// Every size must be drawn exactly, with any panel.
func TestRunsAtEverySize(t *testing.T) {
	t.Parallel()
	hostiles := hostile()
	hostiles.Facets = &runs.Facets{List: []runs.Facet{{Attribute: ace.AttrExperiment}}}
	for _, r := range hostiles.Runs.Rows {
		f := &hostiles.Facets.List[0]
		f.Values = append(f.Values, runs.FacetValue{Value: r.TaskID, Count: 1})
	}
	hostiles.Runs.Rows[0].Attempt, hostiles.Runs.Rows[0].LastError = 3, hostiles.Runs.Rows[3].TaskID
	none := ready()
	none.Runs.Missing = ace.SearchAttributes()
	for _, snap := range []*snapshot{listOfRuns(), hostiles, none} {
		for name, keys := range runsKeys {
			sc := newScreen(t, snap, theme.New(true, false), 80, 24)
			sc.press(keys...)
			for w := 40; w <= 220; w += 9 {
				for _, h := range []int{10, 11, 17, 24, 50} {
					sc.resize(w, h)
					sc.drawn()
				}
			}
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

func TestFacetsNarrowTheQuery(t *testing.T) {
	sc := newScreen(t, listOfRuns(), plainLook, 80, 24)
	sc.press("F")
	if sc.last("look ") != "facets true" {
		t.Errorf("told %q", sc.store.heard())
	}
	sc.has("correct or ungraded")
	sc.lacks("success")
	for _, step := range []struct{ key, query string }{
		{"space", `ExperimentId="finance-7" AND ExitStatus="success"`},
		{"space", `ExperimentId="finance-7"`},
	} {
		sc.press(step.key)
		got, want := runs.SplitQuery(sc.last("query ")), runs.SplitQuery(step.query)
		if got.Query() != want.Query() {
			t.Errorf("query %q, want %q", got.Query(), want.Query())
		}
	}
	sc.press("space", "j", "enter", "backspace")
	if q := sc.last("query "); q != "" {
		t.Errorf("after clearing: %q", q)
	}
	if got := sc.store.heard(); !slices.Contains(got,
		`query ExitStatus IN ("success", "wrong") AND ExperimentId="finance-7"`) {
		t.Errorf("several values: %q", got)
	}
	sc.press("esc")
	if sc.last("look ") != "facets false" {
		t.Errorf("told %q", sc.store.heard())
	}
}

func TestSavedFilters(t *testing.T) {
	st := newStore(full(5))
	filters := []runs.SavedFilter{{Name: "a", Query: "wrong"},
		{Name: "b", Query: "exp=x failed", Default: true}}
	saved := &saver{}
	screens, global := Screens(console.Options{Controls: st, Actions: st.actions(), Location: time.UTC,
		Filters: filters, Saver: saved}, st.feeds())
	m, err := tui.New(tui.Options{Source: st, Screens: screens, Global: global, Styles: plainLook,
		Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	m.Open("runs")
	sc := &screen{t: t, store: st, model: m, screens: screens}
	sc.resize(80, 24)
	if sc.last("query ") != `ExecutionStatus="Failed" AND ExperimentId="x"` {
		t.Errorf("at the start: %q", st.heard())
	}
	sc.press("ctrl+o", "enter")
	if sc.last("query ") != `ExitStatus="wrong"` {
		t.Errorf("told %q", st.heard())
	}
	sc.show(full(5))
	sc.press("ctrl+s")
	sc.press(letters("mine")...)
	cmd := sc.press("enter")
	_, next := sc.model.Update(cmd())
	if saved.name != "mine" || saved.query != `ExperimentId="finance-7"` {
		t.Errorf("saved %+v", saved)
	}
	for _, msg := range []any{next()} {
		sc.model.Update(msg)
	}
	sc.has("saved as mine")
	sc.press("ctrl+o")
	sc.has("[x] mine")
}

type saver struct{ name, query string }

func (s *saver) SaveFilter(_ context.Context, name, query string) error {
	s.name, s.query = name, query
	return nil
}

func TestSorting(t *testing.T) {
	sc := newScreen(t, listOfRuns(), plainLook, 200, 50)
	v := sc.list()
	for _, c := range runsview.AllColumns(v.Styles.Glyphs) {
		for _, reverse := range []bool{false, true} {
			v.Sorting = runsview.Sorting{By: c.ID, Reverse: reverse}
			v.Resorted()
			for i := 1; i < v.Count(); i++ {
				if runsview.Directed(c.Order(v.At(i-1), v.At(i)), reverse) > 0 {
					t.Fatalf("by %s, reversed %v: rows %d and %d", c.ID, reverse, i-1, i)
				}
			}
		}
	}
	v.Sorting = runsview.Sorting{}
	v.Resorted()
	if v.Order != nil {
		t.Error("unsorted, there is an order")
	}
	sc.press("s")
	sc.has("sorted by task, over 120 loaded of 10,214")
	sel := sc.shared.Navigation.Selected.Run.RunID
	next := listOfRuns()
	next.Runs.Rows = next.Runs.Rows[5:]
	sc.show(next)
	if sc.shared.Navigation.Selected.Run.RunID != sel || v.At(v.Cursor).RunID != sel {
		t.Errorf("the selection went from %s to %s", sel, sc.shared.Navigation.Selected.Run.RunID)
	}
}

func TestOnlyRetrying(t *testing.T) {
	sc := newScreen(t, listOfRuns(), plainLook, 80, 24)
	sc.press("R")
	sc.has("only retrying, over 120 loaded of 10,214")
	sc.has("connection refu")
	if sc.list().Count() != 1 {
		t.Errorf("%d rows", sc.list().Count())
	}
	sc.press("R")
	if sc.list().Count() != 120 {
		t.Errorf("%d rows after", sc.list().Count())
	}
}

func TestMarksAndCancel(t *testing.T) {
	sc := newScreen(t, listOfRuns(), plainLook, 80, 24)
	sc.press("space", "space", "space", "space")
	sc.has("4 marked")
	what, ids := sc.list().Copy()
	if what != "4 workflow IDs" || ids != "ace/q-00120\nace/q-00119\nace/q-00118\nace/q-00117" {
		t.Errorf("copied %q: %q", what, ids)
	}
	sc.press("x")
	sc.has("Cancel 3 runs?")
	sc.has("open: 3 of 4 marked runs")
	other := listOfRuns()
	other.Runs.Rows = closed(other.Runs.Rows, 0, 1, 2)
	sc.show(other) // the question stays what it was
	sc.model.Update(sc.press("y")())
	for _, id := range []string{"q-00120", "q-00119", "q-00118"} {
		if !slices.Contains(sc.store.heard(), "cancel ace/"+id+" run-"+id) {
			t.Errorf("%s was not canceled: %q", id, sc.store.heard())
		}
	}
	sc.has("sent cancel to 3 runs")
	sc.press("u")
	sc.lacks("marked")
	if what, ids := sc.list().Copy(); what != "workflow ID" || ids != "ace/q-00116" {
		t.Errorf("copied %q: %q", what, ids)
	}
}

func TestColumnsAreKept(t *testing.T) {
	sc := newScreen(t, listOfRuns(), plainLook, 200, 50)
	sc.press("C", "j", "j", "j", "j", "j", "j", "j", "space", "esc", "s", "s", "S", "m")
	kept := sc.list().Keep()
	if !strings.Contains(kept["columns"], "dataset") || kept["sort"] != "status" ||
		kept["reverse"] != "true" || kept["wide"] != "true" || kept["query"] == "" {
		t.Errorf("kept %v", kept)
	}
	fresh := newScreen(t, listOfRuns(), plainLook, 200, 50)
	fresh.list().Restore(kept)
	fresh.show(listOfRuns())
	if a, b := sc.list(), fresh.list(); !slices.Equal(a.Layout.Chosen, b.Layout.Chosen) ||
		a.Sorting != b.Sorting || fresh.last("query ") != kept["query"] {
		t.Errorf("%+v, %+v", b.Layout, b.Sorting)
	}
	fresh.list().Restore(map[string]string{"columns": "no,such", "sort": "nothing"})
	fresh.drawn()
}

// Both ends of a partly loaded list are reached by loading; any move stops it.
func TestGoingToTheEnds(t *testing.T) {
	sc := newScreen(t, listOfRuns(), plainLook, 80, 24)
	sc.press("G")
	if sc.last("last") != "" {
		t.Errorf("told %q", sc.store.heard())
	}
	walking := listOfRuns()
	walking.Runs.Walking = 3400
	sc.show(walking)
	sc.has("loading up to the last: 3,400 of 10,214")
	end := listOfRuns()
	end.Runs.First, end.Runs.More = 10_094, false
	for i := range end.Runs.Rows {
		end.Runs.Rows[i].RunID += "-old"
	}
	sc.show(end)
	sc.has("10,214/10,214")
	sc.press("k", "g")
	if sc.last("first") != "" {
		t.Errorf("told %q", sc.store.heard())
	}
	sc.show(listOfRuns())
	sc.has("1/10,214")
	sc.press("G", "k")
	if sc.last("stop") != "" {
		t.Errorf("told %q", sc.store.heard())
	}
}

// Scrolling up loads dropped rows; rows added above move nothing.
func TestScrollingBack(t *testing.T) {
	all := many(400)
	describe(all)
	part := func(from, to int) *snapshot {
		s := ready(all[from:to]...)
		s.Runs.First, s.Runs.More, s.Runs.Total = int64(from), to < 400, 400
		return s
	}
	sc := newScreen(t, part(200, 400), plainLook, 80, 24)
	sc.press("pgdown", "pgdown", "pgdown", "pgdown", "pgup")
	if sc.last("newer") != "" && sc.last("newer") != "nothing" {
		t.Errorf("told %q", sc.store.heard())
	}
	sc.press("pgup")
	if sc.last("newer") != "" {
		t.Errorf("told %q", sc.store.heard())
	}
	before := splitLines(sc.plain())[3:22]
	sc.show(part(0, 350))
	if after := splitLines(sc.plain())[3:22]; !slices.Equal(before, after) {
		t.Errorf("rows moved from\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

func TestMissingAttributesAreShown(t *testing.T) {
	s := ready()
	s.Runs.Missing = []string{ace.AttrExit, ace.AttrPhase}
	sc := newScreen(t, s, plainLook, 80, 24)
	sc.has("the server lacks the search attributes ExitStatus, Phase")
	sc.has("acescope setup --namespace ace-dev")
}

func TestSlowQueryKeepsOldRows(t *testing.T) {
	s := full(20)
	s.Runs.Err = "the server did not answer the query within 3s; asking again, with more time"
	sc := newScreen(t, s, plainLook, 80, 24)
	sc.has("did not answer the query")
	sc.has("q-00020")
	s = full(20)
	s.Runs.Err, s.Runs.Loaded, s.Runs.Query = "too slow", time.Time{}, "x"
	sc.show(s)
	sc.has("the rows below belong to the previous query")
}

func TestNextError(t *testing.T) {
	sc := newScreen(t, listOfRuns(), plainLook, 80, 24)
	for _, want := range []string{"q-00118", "q-00116", "q-00114"} {
		if sc.press("e"); sc.selected() != want {
			t.Errorf("at %s, want %s", sc.selected(), want)
		}
	}
	if sc.press("E"); sc.selected() != "q-00116" {
		t.Errorf("back at %s", sc.selected())
	}
	s := full(3)
	s.Runs.Rows[2].Verdict = ace.Wrong
	sc = newScreen(t, s, plainLook, 80, 24)
	if sc.press("e"); sc.selected() != s.Runs.Rows[2].TaskID {
		t.Errorf("at %s, want the wrong answer", sc.selected())
	}
}

// Esc clears the filter before it leads anywhere, and from a screen that a key chose it leads to the list of
// runs.
func TestEscape(t *testing.T) {
	sc := newScreen(t, full(5), plainLook, 120, 30)
	sc.press("esc")
	if told := sc.store.heard(); !slices.Contains(told, "query ") {
		t.Errorf("told %q", told)
	}
	sc.has("▸1 runs")
	sc.has("filter cleared")
	for _, screen := range []string{"H", "7"} { // which show the runs of the filter too
		sc = newScreen(t, full(5), plainLook, 120, 30)
		sc.press(screen, "esc")
		if told := sc.store.heard(); !slices.Contains(told, "query ") {
			t.Errorf("%s: told %q", screen, told)
		}
		sc.has("filter cleared")
	}

	sc = newScreen(t, ready(many(20)...), plainLook, 120, 30)
	sc.press("5", "8", "esc")
	sc.has("▸H overview")
	if told := sc.store.heard(); slices.Contains(told, "query ") {
		t.Errorf("told %q", told)
	}
	sc.press("J", "esc")
	sc.has("▸H overview")
	sc.press("5", "/")
	sc.press(letters("nothing")...)
	sc.press("enter", "esc")
	sc.has("▸5 experiments")
	sc.has("filter cleared")
	sc.press("esc")
	sc.has("▸H overview")

	sc.press("7", "2", "3", "2", "3", "esc")
	sc.has("▸2 run")
	sc.press("esc")
	sc.has("▸7 triage")
	sc.press("esc")
	sc.has("▸H overview")
}

// Two panes leave room for the answer, the label and the reason. A long answer does not hide the label.
func TestAnswerBesideTheLabel(t *testing.T) {
	s := full(30)
	describe(s.Runs.Rows)
	for _, c := range []struct{ answer, label, want string }{
		{"0.34", "34.5", "0.34 → 34.5 "},
		{"12211099562658943337", "2437.5", "12211… → 2437.5 "},
		{"12211099562658943337", "98765432198765", "12211… → 98765…"},
	} {
		for i := range s.Runs.Rows {
			if sum := s.Runs.Rows[i].Summary; s.Runs.Rows[i].Verdict == ace.Wrong && sum != nil {
				sum.Answer, sum.Expected = c.answer, c.label
			}
		}
		sc := newScreen(t, s, plainLook, 120, 40)
		sc.has(c.want)
		sc.has("The recipe takes")
		sc.lacks("AGE")
	}
}
