// Package triage groups failed and retrying runs by cause and lists the slowest and most expensive phases.
package triage

import (
	"slices"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	runspkg "acescope/sources/runs"
	triagepkg "acescope/sources/triage"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Parts of the triage, in order: what is stuck comes first, since it can still be helped.
const (
	triageRetrying = iota
	triageGroups
	triageSlowest
	triageDearest
	triageLargest
	triagePhases
)

// triageWindows are the numbers of ended runs that + and - choose among.
var triageWindows = []int{100, 200, 500, 1000, 2000, 5000, 10_000, 20_000}

// triageSpans are how long ago a run may have ended that t goes through, 0 for however long.
var triageSpans = []time.Duration{0, 15 * time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// triageOrders are the orders of the failure groups that s goes through.
var triageOrders = []string{"count", "newest", "kind"}

// triage lists what fails, what is stuck, what is slow and what is dear.
type triageList struct {
	nav           *console.Navigation
	actor         *console.Actor
	controls      console.Controls
	location      *time.Location
	feed          Feed
	styles        theme.Styles
	width, height int
	data          *triagepkg.Triage
	arranged      *triagepkg.Triage // that the list was last arranged for
	groups        []triagepkg.FailureGroup
	order         string
	ordered       string // that groups is in
	window        int    // that was asked for, 0 for the usual
	since         time.Duration
	before        string // the query that was in force when a group was listed
	narrowed      string // the query of that group
	list          widget.SectionList
}

// Feed scans runs.
type Feed interface {
	console.Feed[*triagepkg.Triage]
	SetWindow(closed int)
	SetSince(time.Duration)
	Stop()
	Again()
}

func NewTriage(c *console.Console, feed Feed) *triageList {
	return &triageList{nav: c.Navigation, actor: c.Actor, controls: c.Controls, location: c.Location, feed: feed, order: triageOrders[0]}
}

func (v *triageList) Name() string { return "Triage" }

func (v *triageList) Title() string { return "Triage" }

func (v *triageList) Footer() string {
	if v.data == nil {
		return ""
	}
	return v.list.Position()
}

func (v *triageList) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell) tea.Cmd, keys ...string) tui.Binding {
		return tui.Binding{Action: "triage." + name, Keys: keys, Help: help, Short: short, Do: do}
	}
	quiet := func(do func()) func(tui.Shell) tea.Cmd {
		return func(tui.Shell) tea.Cmd { do(); return nil }
	}
	all := append(widget.Motions("triage", v),
		b("open", "open the run, of a group its newest", "open", v.open, "enter", "o"),
		b("runs", "list the runs of the group", "list its runs", v.filter, "F"),
		b("back", "look at all runs again after listing a group", "", v.widen, "backspace"),
		b("next_part", "to the next part", "", quiet(func() { v.list.Jump(1) }), "]"),
		b("previous_part", "to the part before", "", quiet(func() { v.list.Jump(-1) }), "["),
		b("whole", "show a part whole, or its beginning", "", quiet(v.list.Toggle), "a"),
		b("sort", "sort the failures by count, newest or kind", "sort", v.sort, "s"),
		b("wider", "look at more ended runs", "", func(s tui.Shell) tea.Cmd { return v.resize(s, 1) }, "+", "="),
		b("narrower", "look at fewer ended runs", "", func(s tui.Shell) tea.Cmd { return v.resize(s, -1) }, "-"),
		b("since", "only runs that ended in the last 15 minutes, hour, day, week, or all", "since", v.nextSpan, "t"),
		b("scan", "stop the scan, or scan again", "stop/scan", v.scan, "c"),
	)
	if v.actor.Actions != nil {
		all = append(all, b("cancel", "cancel the run under the cursor (asks first)", "cancel", v.cancelRun, "x"), v.actor.ForkOf("triage", func() (runspkg.Run, string, bool) { r, ok := v.run(); return r, "", ok }))
	}
	return all
}

func (v *triageList) SetShown(shown bool) { v.feed.Look(shown) }

func (v *triageList) SetStyles(s theme.Styles) { v.styles = s }

func (v *triageList) SetSize(width, height int) { v.width, v.height = width, height }

func (v *triageList) Refresh() { v.data = v.feed.Value() }

func (v *triageList) Page() int { return v.list.Page() }

func (v *triageList) Scroll(by int) {
	v.arrange()
	v.list.Scroll(by)
}

// Keep is what outlives the process.
func (v *triageList) Keep() map[string]string {
	kept := map[string]string{"sort": v.order}
	if v.window > 0 {
		kept["window"] = strconv.Itoa(v.window)
	}
	if v.since > 0 {
		kept["since"] = v.since.String()
	}
	return kept
}

// Restore takes what was kept.
func (v *triageList) Restore(kept map[string]string) {
	if slices.Contains(triageOrders, kept["sort"]) {
		v.order = kept["sort"]
	}
	if n, err := strconv.Atoi(kept["window"]); err == nil && n > 0 {
		v.window = n
		v.feed.SetWindow(n)
	}
	if d, err := time.ParseDuration(kept["since"]); err == nil && slices.Contains(triageSpans, d) {
		v.since = d
		v.feed.SetSince(d)
	}
}

// Copy is the error under the cursor, or the run's workflow id.
func (v *triageList) Copy() (what, copied string) {
	v.arrange()
	if g, ok := v.group(); ok {
		return "the error message", g.Last.Message
	}
	if r, ok := v.retry(); ok && r.LastError.Message != "" {
		return "the error message", r.LastError.Message
	}
	if r, ok := v.run(); ok {
		return "the workflow id", r.WorkflowID
	}
	return "", ""
}

// arrange puts the newest data into the list. The cursor stays on what it was on.
func (v *triageList) arrange() {
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

func sortGroups(groups []triagepkg.FailureGroup, order string) []triagepkg.FailureGroup {
	sorted := slices.Clone(groups)
	slices.SortStableFunc(sorted, func(a, b triagepkg.FailureGroup) int {
		switch order {
		case "newest":
			return b.Last.At.Compare(a.Last.At)
		case "kind":
			return slices.Index(badKinds, a.Kind) - slices.Index(badKinds, b.Kind)
		}
		return 0 // they come by count
	})
	return sorted
}

var badKinds = []ace.ExitStatus{ace.Failed, ace.Timeout, ace.Wrong, ace.Canceled}

func (v *triageList) parts(t *triagepkg.Triage) []widget.SectionPart {
	phases := "of no run known"
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
	if t.Troubled > 0 {
		failures = widget.HowMany(t.Troubled, "run") + ", by " + v.order
		if t.GroupsDropped > 0 {
			failures += ", " + text.Count(int64(t.GroupsDropped)) + " groups not shown"
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
		{"Dearest", noneIf(t.Dearest, "nobody counted a cost"), len(t.Dearest), 5},
		{"Most tokens", noneIf(t.Largest, "nobody counted tokens"), len(t.Largest), 5},
		{"Phases", phases, len(t.Phases), 0},
	}
}

func noneIf(runs []runspkg.Run, why string) string {
	if len(runs) == 0 {
		return why
	}
	return ""
}

// key tells an item from its neighbours, "" where there is none.
func (v *triageList) key(at widget.SectionRow) string {
	t := v.arranged
	if t == nil {
		return ""
	}
	switch {
	case at.Part == triageRetrying && at.Row < len(t.Retrying):
		r := t.Retrying[at.Row]
		return r.Run.RunID + "/" + r.Activity
	case at.Part == triageGroups && at.Row < len(v.groups):
		g := v.groups[at.Row]
		return string(g.Kind) + "\x00" + g.Type + "\x00" + g.Activity + "\x00" + string(g.Phase) + "\x00" + g.Dataset + "\x00" + g.Pattern
	case at.Part == triagePhases && at.Row < len(t.Phases):
		return t.Phases[at.Row].Phase
	}
	if list := v.runsOf(at.Part); at.Row < len(list) {
		return list[at.Row].RunID
	}
	return ""
}

func (v *triageList) runsOf(part int) []runspkg.Run {
	switch part {
	case triageSlowest:
		return v.arranged.Slowest
	case triageDearest:
		return v.arranged.Dearest
	case triageLargest:
		return v.arranged.Largest
	}
	return nil
}

// group is the failure group under the cursor, retry the run that retries.
func (v *triageList) group() (triagepkg.FailureGroup, bool) {
	at := v.list.Cursor
	if v.arranged == nil || at.Part != triageGroups || at.Row >= len(v.groups) {
		return triagepkg.FailureGroup{}, false
	}
	return v.groups[at.Row], true
}

func (v *triageList) retry() (triagepkg.Retrying, bool) {
	at := v.list.Cursor
	if v.arranged == nil || at.Part != triageRetrying || at.Row >= len(v.arranged.Retrying) {
		return triagepkg.Retrying{}, false
	}
	return v.arranged.Retrying[at.Row], true
}

func (v *triageList) phase() (triagepkg.PhaseStat, bool) {
	at := v.list.Cursor
	if v.arranged == nil || at.Part != triagePhases || at.Row >= len(v.arranged.Phases) {
		return triagepkg.PhaseStat{}, false
	}
	return v.arranged.Phases[at.Row], true
}

// run is the run that the row under the cursor stands for.
func (v *triageList) run() (runspkg.Run, bool) {
	v.arrange()
	if v.arranged == nil {
		return runspkg.Run{}, false
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
	return runspkg.Run{}, false
}

func (v *triageList) open(s tui.Shell) tea.Cmd {
	r, ok := v.run()
	if !ok {
		s.Note("there is no run here")
		return nil
	}
	v.nav.Show(r)
	s.Open("run")
	return nil
}

func (v *triageList) cancelRun(s tui.Shell) tea.Cmd {
	r, ok := v.run()
	if !ok {
		s.Note("there is no run here")
		return nil
	}
	v.nav.Show(r)
	return v.actor.Cancel(s)
}

// filter lists the runs of the group under the cursor.
func (v *triageList) filter(s tui.Shell) tea.Cmd {
	v.arrange()
	g, ok := v.group()
	if !ok {
		s.Note("only a group of failures can be listed: choose one with ]")
		return nil
	}
	if q := v.data.Query; q != v.narrowed || v.narrowed == "" {
		v.before = q
	}
	v.narrowed = g.Query()
	v.controls.SetQuery(v.narrowed)
	if g.Exact() {
		s.Note("listing the " + widget.HowMany(g.Count, "run") + " of the group; F in triage leads back")
	} else {
		s.Note("listing all that ended so in that time; F in triage leads back")
	}
	s.Open("runs")
	return nil
}

// widen puts the query back that was in force before a group was listed.
func (v *triageList) widen(s tui.Shell) tea.Cmd {
	if v.narrowed == "" || v.data == nil || v.data.Query != v.narrowed {
		s.Note("no group is listed")
		return nil
	}
	v.controls.SetQuery(v.before)
	v.narrowed = ""
	return nil
}

func (v *triageList) sort(s tui.Shell) tea.Cmd {
	v.order = triageOrders[(slices.Index(triageOrders, v.order)+1)%len(triageOrders)]
	s.Note("failures by " + v.order)
	return nil
}

// resize looks at more or fewer ended runs.
func (v *triageList) resize(s tui.Shell, by int) tea.Cmd {
	if v.window == 0 {
		v.window = triagepkg.TriageWindow
	}
	at, _ := slices.BinarySearch(triageWindows, v.window)
	v.window = triageWindows[widget.Clamp(at+by, 0, len(triageWindows)-1)]
	v.feed.SetWindow(v.window)
	s.Note("looking at the newest " + text.Count(int64(v.window)) + " ended runs")
	return nil
}

// spanWord is one of triageSpans, or what a command line asked for, in words.
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

// nextSpan looks at runs only that ended lately.
func (v *triageList) nextSpan(s tui.Shell) tea.Cmd {
	v.since = triageSpans[(slices.Index(triageSpans, v.since)+1)%len(triageSpans)]
	v.feed.SetSince(v.since)
	if v.since == 0 {
		s.Note("looking at runs whenever they ended")
	} else {
		s.Note("looking at runs that ended in the last " + spanWord(v.since))
	}
	return nil
}

func (v *triageList) scan(s tui.Shell) tea.Cmd {
	if v.data != nil && v.data.Scan.Running {
		v.feed.Stop()
		s.Note("the scan is stopped: c scans again")
		return nil
	}
	v.feed.Again()
	s.Note("scanning")
	return nil
}
