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

// windows are the numbers of closed runs that + and - choose from.
var windows = []int{100, 200, 500, 1000, 2000, 5000, 10_000, 20_000}

// spans are the maximum ages of closed runs that "." chooses from; 0 stands for any age.
var spans = []time.Duration{0, 15 * time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// orders are the orders of failure groups that s chooses from.
var orders = []string{"count", "newest", "kind"}

// list shows failing, retrying, slow and expensive runs.
type list struct {
	nav      *console.Navigation
	actor    *console.Actor
	forks    *console.Forks
	controls console.Controls
	listing  *console.Listing
	feed     Feed
	moment   func() // goes to the event that produced a wrong answer, in the time machine
	console.Pane
	data     *triage.Result
	order    string
	window   int // requested, 0 for the default
	since    time.Duration
	before   string // query before a group was listed
	narrowed string // query of that group
	list     widget.SectionList[row]
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

// Screen returns the list of findings with the selected one beside it. moment goes to the event that produced
// a wrong answer, in the time machine.
func Screen(c *console.Console, feed Feed, moment func()) tui.Screen {
	v := &list{Pane: console.NewPane("Triage"), nav: c.Navigation, actor: c.Actor, forks: c.Forks,
		controls: c.Controls, listing: c.Listing, feed: feed, moment: moment, order: orders[0]}
	v.list.Key = row.key
	pane := &detail{from: v, Reader: console.NewReader("Finding", c.Location)}
	pane.Pointer = true
	return tui.Screen{Name: "triage", Keys: []string{"7"}, Help: "failing, retrying, slow and expensive runs",
		Views: []tui.View{v, pane}}
}

func (v *list) Footer() string {
	if v.data == nil {
		return ""
	}
	return v.list.Position()
}

func (v *list) Bindings() []tui.Binding {
	all := append(widget.Motions("triage", v),
		console.Key("triage.open", "open the run, or the newest run of the group", "open", v.open, "enter"),
		console.Key("triage.moment.open",
			"open the time machine where the answer of the newest run became wrong", "moment",
			func(s tui.Shell) { v.toMoment(s, v.run) }, "t"),
		console.Key("triage.mark", "mark or unmark the runs of the row, to fork or compare them", "mark",
			v.mark, "space"),
		console.Key("triage.filter", "list the runs of the group", "list its runs", v.filter, "F"),
		console.Key("triage.back", "show all runs again after listing a group", "", v.widen, "backspace"),
		console.Key("triage.sort", "sort the failures by count, newest or kind", "sort", v.sort, "s"),
		console.Key("triage.more", "scan more closed runs", "", func(s tui.Shell) { v.resize(s, 1) }, "+"),
		console.Key("triage.less", "scan fewer closed runs", "", func(s tui.Shell) { v.resize(s, -1) }, "-"),
		console.Key("triage.window", "only runs that closed in the last 15 minutes, hour, day, week, or all",
			"since", v.nextSpan, "."),
		console.Key("triage.refresh", "stop the scan, or scan again", "stop/scan", v.scan, "ctrl+r"),
	)
	all = append(all, console.SectionKeys("triage", "part", "", "", &v.list)...)
	if v.actor.Changes() {
		point := func() (runs.Run, string, bool) { r, ok := v.run(); return r, "", ok }
		cancel := "cancel the run under the cursor (asks first)"
		all = append(all, console.MutatingKey("triage.cancel", cancel, "cancel", v.cancelRun, "x"),
			v.forks.ForkMarkedOf("triage", point))
	}
	return all
}

func (v *list) SetShown(shown bool) {
	v.feed.Look(shown)
	v.listing.ShowsMarks = shown
	v.goToFinding()
}

func (v *list) Refresh() {
	was := v.data
	if v.data = v.feed.Value(); v.data != was {
		v.arrange()
	}
}

func (v *list) Unfilter() bool { return v.listing.Unfilter() }
func (v *list) Page() int      { return v.list.Page() }

func (v *list) Scroll(by int) { v.list.Scroll(by) }

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

func (v *list) Copy() (what, copied string) {
	r := v.current()
	if r == nil {
		return "", ""
	}
	if m := r.message(); m != "" {
		return "error message", m
	}
	return "workflow ID", r.run().WorkflowID
}

func (v *list) Copies() []tui.Copy {
	r, _ := v.run()
	return v.nav.RunCopies(r)
}

// arrange lists the newest data.
func (v *list) arrange() {
	if v.data != nil {
		v.list.Set(v.sections(v.data))
		v.goToFinding()
	}
}

// goToFinding goes to the group that another screen chose.
func (v *list) goToFinding() {
	if v.data != nil && v.nav.Finding != "" {
		v.list.GoTo(failures, v.nav.Finding)
		v.nav.Finding = ""
	}
}

// failures is the section of groups.
const failures = 1

func (v *list) sections(t *triage.Result) []widget.Section[row] {
	phases := "no data"
	if t.PhaseRuns > 0 {
		phases = "over " + ace.Count(t.PhaseRuns, "run")
		if t.PhaseSampled > 0 {
			phases += ", " + ace.Number(t.PhaseSampled) + " of them sampled from histories"
		}
		phases += widget.If(t.PhaseUnknown > 0, ", "+ace.Number(t.PhaseUnknown)+" without times", "")
	}
	failures := "none"
	if t.Grouped > 0 {
		failures = ace.Count(t.Grouped, "run") + ", by " + v.order
		if t.GroupsDropped > 0 {
			failures += ", " + ace.Count(t.GroupsDropped, "group") + " not listed"
		}
	}
	retrying := widget.If(len(t.Retrying) == 0, "none", ace.Count(len(t.Retrying), "run"))
	ofRun := func(r runs.Run) row { return runRow{r} }
	return []widget.Section[row]{
		{"Retrying", retrying, 5, // first, because the user can still fix these runs
			rowList(t.Retrying, func(r triage.Retrying) row { return retryRow{r} })},
		{"Failures", failures, 12, rowList(sorted(t.Groups, v.order), func(g triage.FailureGroup) row {
			return groupRow{g}
		})},
		{"Slowest", "", 5, rowList(t.Slowest, ofRun)},
		{"Most expensive", widget.If(len(t.MostExpensive) == 0, "no cost data", ""), 5,
			rowList(t.MostExpensive, ofRun)},
		{"Most tokens", widget.If(len(t.Largest) == 0, "no token data", ""), 5, rowList(t.Largest, ofRun)},
		{"Phases", phases, 0, rowList(t.Phases, func(p triage.PhaseStat) row { return phaseRow{p} })},
	}
}

// current returns the row under the cursor, or nil.
func (v *list) current() row {
	r, _ := v.list.Current()
	return r
}

// run returns the run of the row under the cursor.
func (v *list) run() (runs.Run, bool) {
	r := v.current()
	if r == nil {
		return runs.Run{}, false
	}
	return r.run(), true
}

func (v *list) open(s tui.Shell) tea.Cmd { return v.nav.OpenAt(s, v.run) }

// toMoment opens the time machine at the event that produced the wrong answer of a run, or at the end of
// another run.
func (v *list) toMoment(s tui.Shell, run func() (runs.Run, bool)) {
	r, ok := run()
	if !ok {
		s.Note("no run is selected")
		return
	}
	v.nav.Show(r)
	s.Open("replay")
	if r.Verdict == ace.Wrong {
		v.moment()
	}
}

// mark marks the runs of the row under the cursor, or unmarks them if all are marked.
func (v *list) mark(s tui.Shell) {
	if g, ok := v.current().(groupRow); ok {
		v.marks(s, g.Runs)
	} else if r, ok := v.run(); ok {
		v.marks(s, []runs.Run{r})
	}
}

func (v *list) marks(s tui.Shell, all []runs.Run) {
	m := &v.listing.Marks
	marked := func(r runs.Run) bool { return m.Of[r.ID()] }
	unmark := !slices.ContainsFunc(all, func(r runs.Run) bool { return !marked(r) })
	for _, r := range all {
		if marked(r) == unmark {
			m.Toggle(r)
		}
	}
	s.Note(ace.Count(len(m.Runs), "run") + " marked; u on the list of runs unmarks all")
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
	g, ok := v.current().(groupRow)
	if !ok {
		s.Note("select a failure group to list its runs; ] goes there")
		return
	}
	if q := v.data.Query; q != v.narrowed || v.narrowed == "" {
		v.before = q
	}
	v.narrowed = g.Query()
	v.controls.SetQuery(v.narrowed)
	listing := "listing "
	listing += widget.If(!g.Exact(), "the newest ", "")
	s.Note(listing + ace.Count(len(g.Runs), "run") + " of the group; backspace in triage shows all again")
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
	v.arrange()
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
	s.Note("scanning the newest " + ace.Number(v.window) + " closed runs")
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
		s.Note("scan stopped; ctrl+r scans again")
		return
	}
	v.feed.Again()
	s.Note("scanning")
}
