// Package triage groups failed and retrying runs by cause and lists the slowest and most expensive phases.
package triage

import (
	"slices"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/sources/triage"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Sections of the list, in order. Retrying runs come first because the user can still help them.
const (
	partRetrying = iota
	partGroups
	partSlowest
	partCostliest
	partLargest
	partPhases
)

// windows are the numbers of closed runs that + and - choose from.
var windows = []int{100, 200, 500, 1000, 2000, 5000, 10_000, 20_000}

// spans are the maximum ages of closed runs that t chooses from; 0 stands for any age.
var spans = []time.Duration{0, 15 * time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// orders are the orders of failure groups that s chooses from.
var orders = []string{"count", "newest", "kind"}

// list shows failing, retrying, slow and expensive runs.
type list struct {
	nav      *console.Navigation
	actor    *console.Actor
	controls console.Controls
	location *time.Location
	feed     Feed
	console.Pane
	data     *triage.Result
	arranged *triage.Result // data of the arranged list
	groups   []triage.FailureGroup
	order    string
	ordered  string // order of groups
	window   int    // requested, 0 for the default
	since    time.Duration
	before   string // query before a group was listed
	narrowed string // query of that group
	list     widget.SectionList
}

// Feed scans runs.
type Feed interface {
	console.Feed[*triage.Result]
	// SetWindow sets the number of closed runs to scan, SetSince their maximum age.
	SetWindow(closed int)
	SetSince(time.Duration)
	// Stop stops the scan; Again starts another.
	Stop()
	Again()
}

// Screen returns the list of findings with the selected one beside it.
func Screen(c *console.Console, feed Feed) tui.Screen {
	v := New(c, feed)
	return tui.Screen{Name: "triage", Keys: []string{"7"}, Help: "failing, retrying, slow and expensive runs",
		Views: []tui.View{v, &detail{Pane: console.NewPane("Finding"), from: v}}}
}

// New returns the list of findings.
func New(c *console.Console, feed Feed) *list {
	return &list{Pane: console.NewPane("Triage"), nav: c.Navigation, actor: c.Actor, controls: c.Controls, location: c.Location, feed: feed, order: orders[0]}
}

func (v *list) Footer() string {
	if v.data == nil {
		return ""
	}
	return v.list.Position()
}

func (v *list) Bindings() []tui.Binding {
	all := append(widget.Motions("triage", v),
		console.Key("triage.open", "open the run, or the newest run of the group", "open", v.open, "enter", "o"),
		console.Key("triage.runs", "list the runs of the group", "list its runs", v.filter, "F"),
		console.Key("triage.back", "show all runs again after listing a group", "", v.widen, "backspace"),
		console.Key("triage.next_part", "next section", "", func() { v.list.Jump(1) }, "]"),
		console.Key("triage.previous_part", "previous section", "", func() { v.list.Jump(-1) }, "["),
		console.Key("triage.whole", "expand or collapse the section", "", v.list.Toggle, "a"),
		console.Key("triage.sort", "sort the failures by count, newest or kind", "sort", v.sort, "s"),
		console.Key("triage.wider", "scan more closed runs", "", func(s tui.Shell) { v.resize(s, 1) }, "+", "="),
		console.Key("triage.narrower", "scan fewer closed runs", "", func(s tui.Shell) { v.resize(s, -1) }, "-"),
		console.Key("triage.since", "only runs that closed in the last 15 minutes, hour, day, week, or all", "since", v.nextSpan, "t"),
		console.Key("triage.scan", "stop the scan, or scan again", "stop/scan", v.scan, "c"),
	)
	if v.actor.Actions != nil {
		point := func() (runs.Run, string, bool) { r, ok := v.run(); return r, "", ok }
		all = append(all, console.Key("triage.cancel", "cancel the run under the cursor (asks first)", "cancel", v.cancelRun, "x"),
			v.actor.ForkOf("triage", point))
	}
	return all
}

func (v *list) SetShown(shown bool) { v.feed.Look(shown) }
func (v *list) Refresh()            { v.data = v.feed.Value() }
func (v *list) Page() int           { return v.list.Page() }

func (v *list) Scroll(by int) {
	v.arrange()
	v.list.Scroll(by)
}

// Keep returns the order and the window.
func (v *list) Keep() map[string]string {
	kept := map[string]string{"sort": v.order}
	if v.window > 0 {
		kept["window"] = strconv.Itoa(v.window)
	}
	if v.since > 0 {
		kept["since"] = v.since.String()
	}
	return kept
}

// Restore applies what Keep returned.
func (v *list) Restore(kept map[string]string) {
	if slices.Contains(orders, kept["sort"]) {
		v.order = kept["sort"]
	}
	if n, err := strconv.Atoi(kept["window"]); err == nil && n > 0 {
		v.window = n
		v.feed.SetWindow(n)
	}
	if d, err := time.ParseDuration(kept["since"]); err == nil && slices.Contains(spans, d) {
		v.since = d
		v.feed.SetSince(d)
	}
}

// Copy returns the error under the cursor, or the run's workflow ID.
func (v *list) Copy() (what, copied string) {
	v.arrange()
	if g, ok := v.group(); ok {
		return "error message", g.Last.Message
	}
	if r, ok := v.retry(); ok && r.LastError.Message != "" {
		return "error message", r.LastError.Message
	}
	if r, ok := v.run(); ok {
		return "workflow ID", r.WorkflowID
	}
	return "", ""
}

// arrange lists the newest data. The cursor stays on its row.
func (v *list) arrange() {
	t := v.data
	if t == nil || t == v.arranged && v.ordered == v.order {
		return
	}
	was := v.key(v.list.Cursor)
	v.arranged, v.ordered = t, v.order
	v.groups = sortGroups(t.Groups, v.order)
	v.list.Set(v.parts(t))
	if was == "" {
		return
	}
	for row := range v.list.Parts[v.list.Cursor.Part].Rows {
		at := widget.SectionRow{v.list.Cursor.Part, row}
		if v.key(at) == was {
			v.list.Cursor = at
			break
		}
	}
	v.list.Settle()
}

func sortGroups(groups []triage.FailureGroup, order string) []triage.FailureGroup {
	sorted := slices.Clone(groups)
	slices.SortStableFunc(sorted, func(a, b triage.FailureGroup) int {
		switch order {
		case "newest":
			return b.Last.At.Compare(a.Last.At)
		case "kind":
			return slices.Index(kindOrder, a.Kind) - slices.Index(kindOrder, b.Kind)
		}
		return 0 // sorted by count already
	})
	return sorted
}

var kindOrder = []ace.ExitStatus{ace.Failed, ace.Timeout, ace.Wrong, ace.Canceled}

func (v *list) parts(t *triage.Result) []widget.SectionPart {
	phases := "no data"
	if t.PhaseRuns > 0 {
		phases = "over " + widget.HowMany(t.PhaseRuns, "run")
		if t.PhaseSampled > 0 {
			phases += ", " + text.Count(int64(t.PhaseSampled)) + " of them sampled from histories"
		}
		if t.PhaseUnknown > 0 {
			phases += ", " + text.Count(int64(t.PhaseUnknown)) + " without times"
		}
	}
	failures := "none"
	if t.Grouped > 0 {
		failures = widget.HowMany(t.Grouped, "run") + ", by " + v.order
		if t.GroupsDropped > 0 {
			failures += ", " + text.Count(int64(t.GroupsDropped)) + " groups not listed"
		}
	}
	retrying := "none"
	if n := len(t.Retrying); n > 0 {
		retrying = widget.HowMany(n, "run")
	}
	return []widget.SectionPart{
		{"Retrying", retrying, len(t.Retrying), 5},
		{"Failures", failures, len(t.Groups), 12},
		{"Slowest", "", len(t.Slowest), 5},
		{"Most expensive", remarkIfEmpty(t.MostExpensive, "no cost data"), len(t.MostExpensive), 5},
		{"Most tokens", remarkIfEmpty(t.Largest, "no token data"), len(t.Largest), 5},
		{"Phases", phases, len(t.Phases), 0},
	}
}

func remarkIfEmpty(runs []runs.Run, why string) string {
	if len(runs) == 0 {
		return why
	}
	return ""
}

// key identifies a row, "" for no row.
func (v *list) key(at widget.SectionRow) string {
	t := v.arranged
	if t == nil {
		return ""
	}
	switch {
	case at.Part == partRetrying && at.Row < len(t.Retrying):
		r := t.Retrying[at.Row]
		return r.Run.RunID + "/" + r.Activity
	case at.Part == partGroups && at.Row < len(v.groups):
		g := v.groups[at.Row]
		return string(g.Kind) + "\x00" + g.Type + "\x00" + g.Activity + "\x00" + string(g.Phase) + "\x00" + g.Dataset + "\x00" + g.Pattern
	case at.Part == partPhases && at.Row < len(t.Phases):
		return t.Phases[at.Row].Phase
	}
	if list := v.runsOf(at.Part); at.Row < len(list) {
		return list[at.Row].RunID
	}
	return ""
}

func (v *list) runsOf(part int) []runs.Run {
	switch part {
	case partSlowest:
		return v.arranged.Slowest
	case partCostliest:
		return v.arranged.MostExpensive
	case partLargest:
		return v.arranged.Largest
	}
	return nil
}

// group returns the failure group under the cursor.
func (v *list) group() (triage.FailureGroup, bool) {
	at := v.list.Cursor
	if v.arranged == nil || at.Part != partGroups || at.Row >= len(v.groups) {
		return triage.FailureGroup{}, false
	}
	return v.groups[at.Row], true
}

func (v *list) retry() (triage.Retrying, bool) {
	at := v.list.Cursor
	if v.arranged == nil || at.Part != partRetrying || at.Row >= len(v.arranged.Retrying) {
		return triage.Retrying{}, false
	}
	return v.arranged.Retrying[at.Row], true
}

func (v *list) phase() (triage.PhaseStat, bool) {
	at := v.list.Cursor
	if v.arranged == nil || at.Part != partPhases || at.Row >= len(v.arranged.Phases) {
		return triage.PhaseStat{}, false
	}
	return v.arranged.Phases[at.Row], true
}

// run returns the run of the row under the cursor.
func (v *list) run() (runs.Run, bool) {
	v.arrange()
	if v.arranged == nil {
		return runs.Run{}, false
	}
	if g, ok := v.group(); ok {
		return g.Last.Run, true
	}
	if r, ok := v.retry(); ok {
		return r.Run, true
	}
	if p, ok := v.phase(); ok {
		return p.Worst, true
	}
	if list := v.runsOf(v.list.Cursor.Part); v.list.Cursor.Row < len(list) {
		return list[v.list.Cursor.Row], true
	}
	return runs.Run{}, false
}

func (v *list) open(s tui.Shell) tea.Cmd {
	r, ok := v.run()
	if !ok {
		s.Note("no run is selected")
		return nil
	}
	return v.nav.OpenRun(s, r)
}

func (v *list) cancelRun(s tui.Shell) tea.Cmd {
	r, ok := v.run()
	if !ok {
		s.Note("no run is selected")
		return nil
	}
	v.nav.Show(r)
	return v.actor.CancelSelected(s)
}

// filter lists the runs of the failure group under the cursor.
func (v *list) filter(s tui.Shell) {
	v.arrange()
	g, ok := v.group()
	if !ok {
		s.Note("select a failure group to list its runs; ] goes there")
		return
	}
	if q := v.data.Query; q != v.narrowed || v.narrowed == "" {
		v.before = q
	}
	v.narrowed = g.Query()
	v.controls.SetQuery(v.narrowed)
	if g.Exact() {
		s.Note("listing the " + widget.HowMany(g.Count, "run") + " of the group; backspace in triage shows all again")
	} else {
		s.Note("listing all runs with this status in that time; backspace in triage shows all again")
	}
	s.Open("runs")
}

// widen restores the query from before a group was listed.
func (v *list) widen(s tui.Shell) {
	if v.narrowed == "" || v.data == nil || v.data.Query != v.narrowed {
		s.Note("no group is listed")
		return
	}
	v.controls.SetQuery(v.before)
	v.narrowed = ""
}

func (v *list) sort(s tui.Shell) {
	v.order = orders[(slices.Index(orders, v.order)+1)%len(orders)]
	s.Note("failures by " + v.order)
}

// resize changes the number of scanned runs.
func (v *list) resize(s tui.Shell, by int) {
	if v.window == 0 {
		v.window = triage.DefaultWindow
	}
	at, _ := slices.BinarySearch(windows, v.window)
	v.window = windows[widget.Clamp(at+by, 0, len(windows)-1)]
	v.feed.SetWindow(v.window)
	s.Note("scanning the newest " + text.Count(int64(v.window)) + " closed runs")
}

// spanWord formats a maximum age.
func spanWord(d time.Duration) string {
	switch d {
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	case 7 * 24 * time.Hour:
		return "week"
	}
	return text.Span(d)
}

// nextSpan chooses the next maximum age.
func (v *list) nextSpan(s tui.Shell) {
	v.since = spans[(slices.Index(spans, v.since)+1)%len(spans)]
	v.feed.SetSince(v.since)
	if v.since == 0 {
		s.Note("scanning runs of any age")
	} else {
		s.Note("scanning runs that closed in the last " + spanWord(v.since))
	}
}

func (v *list) scan(s tui.Shell) {
	if v.data != nil && v.data.Scan.Running {
		v.feed.Stop()
		s.Note("scan stopped; c scans again")
		return
	}
	v.feed.Again()
	s.Note("scanning")
}
