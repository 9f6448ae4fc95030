package views

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// RunnerControls steers what is read of runners.
type RunnerControls interface {
	// ReadRunner wants the runs of a runner, "" none. It is called for each row that the
	// cursor passes.
	ReadRunner(id string)
}

// Parts of the list of runners, in order.
const (
	runnerRows = iota
	queueRows
	waitingRows
)

// runners lists the runners, what waiting runs demand, and the runs that wait.
type runners struct {
	*console
	styles        theme.Styles
	width, height int
	data          *sources.Runners
	conn          sources.Connection
	arranged      *sources.Runners // that the list was last arranged for
	list          sectionList
}

func runnersScreen(c *console) tui.Screen {
	v := &runners{console: c}
	return tui.Screen{Name: "runners", Aliases: []string{"queues"}, Short: "rnrs", Keys: []string{"Q"}, Share: 62,
		Help: "runners, and the runs that wait for one: who is there, what is demanded, what is lacking", Views: []tui.View{v, newRunnerDetail(v)}}
}

func (v *runners) Name() string   { return "Runners" }
func (v *runners) Title() string  { return "Runners" }
func (v *runners) Footer() string { return v.list.position() }

func (v *runners) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell) tea.Cmd, keys ...string) tui.Binding {
		return tui.Binding{Action: "runners." + name, Keys: keys, Help: help, Short: short, Do: do}
	}
	quiet := func(do func()) func(tui.Shell) tea.Cmd {
		return func(tui.Shell) tea.Cmd { v.arrange(); do(); return nil }
	}
	all := append(motions("runners", v),
		b("open", "open the run that waits; of a runner or a queue, go to its runs", "open", v.open, "enter", "o"),
		b("next_part", "to the next part", "part", quiet(func() { v.list.jump(1) }), "]"),
		b("previous_part", "to the part before", "", quiet(func() { v.list.jump(-1) }), "["),
		b("whole", "show a part whole, or its beginning", "", quiet(v.list.toggle), "a"),
	)
	return append(all, v.runnerActions("runners", v.waiting)...)
}

func (v *runners) Update(tea.Msg) tea.Cmd { return nil }

// SetShown asks the dispatcher while the screen is looked at.
func (v *runners) SetShown(shown bool) {
	v.Controls.Look(sources.PartRunners, shown)
	if shown {
		v.choose()
	}
}

func (v *runners) SetStyles(s theme.Styles)        { v.styles = s }
func (v *runners) SetSize(width, height int)       { v.width, v.height = width, height }
func (v *runners) SetSnapshot(s *sources.Snapshot) { v.data, v.conn = s.Runners, s.Connection }
func (v *runners) page() int                       { return v.list.page() }

func (v *runners) scroll(by int) {
	v.arrange()
	v.list.scroll(by)
	v.choose()
}

// choose wants the runs of the runner under the cursor.
func (v *runners) choose() {
	if r, ok := v.runner(); ok {
		v.Controls.ReadRunner(r.ID)
		return
	}
	v.Controls.ReadRunner("")
}

// Copy is the id of what the cursor is on, of a queue what it demands.
func (v *runners) Copy() (what, copied string) {
	v.arrange()
	if r, ok := v.runner(); ok {
		return "the runner's id", r.ID
	}
	if w, ok := v.waiting(); ok {
		return "the run's id", sources.BlueprintRunID(w.WorkflowID)
	}
	if q, ok := v.queue(); ok {
		return "what is demanded", demandsText(q.Demands)
	}
	return "", ""
}

// view is what the dispatcher last said.
func (v *runners) view() sources.RunnersView {
	if v.data == nil {
		return sources.RunnersView{}
	}
	return v.data.View
}

// arrange puts the newest answer into the list. The cursor stays on what it was on.
func (v *runners) arrange() {
	if v.data == nil || v.data == v.arranged {
		return
	}
	was := v.keyOf(v.arranged, v.list.cursor)
	v.arranged = v.data
	view := v.data.View
	v.list.set([]sectionPart{
		{"Runners", runnersRemark(view, v.styles), len(view.Runners), 12},
		{"Queues", queuesRemark(view), len(view.Queues), 6},
		{"Waiting", waitingRemark(view), len(view.Pending), 8},
	})
	if part := v.list.cursor.part; was != "" && part < len(v.list.parts) {
		for row := range v.list.parts[part].rows {
			if at := (sectionRow{part, row}); v.keyOf(v.data, at) == was {
				v.list.cursor = at
				break
			}
		}
		v.list.settle()
	}
	v.choose()
}

// keyOf tells a row from its neighbours, "" where there is none.
func (v *runners) keyOf(d *sources.Runners, at sectionRow) string {
	switch {
	case d == nil:
	case at.part == runnerRows && at.row < len(d.View.Runners):
		return d.View.Runners[at.row].ID
	case at.part == queueRows && at.row < len(d.View.Queues):
		return demandsText(d.View.Queues[at.row].Demands)
	case at.part == waitingRows && at.row < len(d.View.Pending):
		return d.View.Pending[at.row].RunID
	}
	return ""
}

func (v *runners) runner() (r sources.RunnerView, ok bool) {
	if at := v.list.cursor; at.part == runnerRows && at.row < len(v.view().Runners) {
		return v.view().Runners[at.row], true
	}
	return r, false
}

func (v *runners) queue() (q sources.RunQueue, ok bool) {
	if at := v.list.cursor; at.part == queueRows && at.row < len(v.view().Queues) {
		return v.view().Queues[at.row], true
	}
	return q, false
}

func (v *runners) pending() (w sources.WaitingRun, ok bool) {
	if at := v.list.cursor; at.part == waitingRows && at.row < len(v.view().Pending) {
		return v.view().Pending[at.row], true
	}
	return w, false
}

// waiting is the run under the cursor that waits.
func (v *runners) waiting() (sources.Run, bool) {
	v.arrange()
	w, ok := v.pending()
	return waitingRun(w), ok
}

func waitingRun(w sources.WaitingRun) sources.Run {
	r := sources.BlueprintRun(w.RunID)
	r.Phase, r.Start, r.Blueprint = "pending", w.Since, w.Name
	return r
}

func (v *runners) open(s tui.Shell) tea.Cmd {
	v.arrange()
	if r, ok := v.waiting(); ok {
		return v.openRun(s, r)
	}
	if v.list.empty() {
		s.Note("there is nothing to open yet")
		return nil
	}
	s.Focus(1)
	return nil
}

// openRun shows a run of a blueprint whole.
func (c *console) openRun(s tui.Shell, r sources.Run) tea.Cmd {
	c.show(r)
	s.Open("run")
	s.Focus(0)
	return nil
}

func (v *runners) Draw(now time.Time, focused bool) []string {
	v.arrange()
	lines := v.head(now)
	if say := v.empty(); say != nil {
		return fill(append(lines, centre(say, v.width, v.height-len(lines), v.styles)...), v.width, v.height)
	}
	v.list.setSize(v.width, max(v.height-len(lines), 0))
	lines = append(lines, v.list.draw(v.styles, focused, func(at sectionRow, width int, plain bool) string { return v.row(at, width, plain, now) })...)
	return fill(lines, v.width, v.height)
}

// head is what all runners have done, and why nothing newer is known.
func (v *runners) head(now time.Time) []string {
	d, s := v.data, v.styles
	if d == nil {
		return nil
	}
	var lines []string
	if said := deafText(d, now); said != "" {
		all := text.Wrap(said, max(v.width-4, 1))
		for _, l := range all[:min(len(all), 3)] {
			lines = append(lines, s.Warning.Paint(text.Fit(" "+s.Glyphs.Failed+" "+l, v.width, s.Glyphs.Ellipsis)))
		}
	}
	if !d.Answered.IsZero() {
		lines = append(lines, countsLine(d.View, v.width, s))
	}
	return lines[:min(len(lines), max(v.height, 0))]
}

// deafText says why nothing newer is known, and what to do; "" where all is well.
func deafText(d *sources.Runners, now time.Time) string {
	if d.Err == "" {
		return ""
	}
	said := "no answer: " + text.Safe(d.Err, " ")
	if d.Deaf {
		said = "nobody serves this: acescope serve does"
	}
	if !d.Answered.IsZero() {
		said += ". What stands here is " + text.Span(now.Sub(d.Answered)) + " old"
	}
	return said
}

func countsLine(view sources.RunnersView, width int, s theme.Styles) string {
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	for i, c := range []struct {
		n    int64
		what string
		bad  theme.Ink
	}{{int64(view.Running), "running", s.Text}, {int64(view.Waiting), "waiting", s.Text}, {view.Matched, "matched", s.Text},
		{view.Expired, "expired", s.Warning}, {view.Refused, "refused", s.Warning}, {view.Lost, "lost", s.Failed}} {
		if i > 0 {
			l.Add(s.Muted, " "+s.Glyphs.Dot)
		}
		l.Add(unless(c.n == 0, s.Muted, c.bad), " "+text.Count(c.n)+" "+c.what)
	}
	return l.String(s.Text)
}

// empty is what is said where there is nothing to list; nil where there is.
func (v *runners) empty() []string {
	d := v.data
	switch {
	case v.conn.Mode == sources.ModeFile:
		return []string{"a file has no runners", "acescope without FILE shows those of the data directory"}
	case d == nil || d.Answered.IsZero() && d.Err == "" && !d.Absent:
		return []string{"asking the dispatcher" + v.styles.Glyphs.Ellipsis}
	case d.Answered.IsZero() && d.Err != "":
		return []string{"nothing is known of runners yet"}
	case !v.list.empty():
		return nil
	}
	return []string{"no runner is there, and no run waits for one", "", "acescope runner start --tags gpu,linux   starts a runner",
		"acescope serve   serves this directory and brings one along", "acescope agent list   has the blueprints of agents and programs",
		"acescope agent start NAME   starts a run of one"}
}

func runnersRemark(view sources.RunnersView, s theme.Styles) string {
	count := map[sources.RunnerStatus]int{}
	busy, slots := 0, 0
	for _, r := range view.Runners {
		count[r.Status]++
		if busy += r.Busy; r.Status == sources.RunnerOnline {
			slots += r.Capabilities.Slots
		}
	}
	var parts []string
	for _, st := range []sources.RunnerStatus{sources.RunnerOnline, sources.RunnerDraining, sources.RunnerStale, sources.RunnerGone} {
		if n := count[st]; n > 0 {
			parts = append(parts, text.Count(int64(n))+" "+string(st))
		}
	}
	if len(parts) == 0 {
		return "none: acescope runner start"
	}
	return strings.Join(parts, ", ") + " " + s.Glyphs.Dot + " " + text.Count(int64(busy)) + " of " + text.Count(int64(slots)) + " slots busy"
}

func queuesRemark(view sources.RunnersView) string {
	if len(view.Queues) == 0 {
		return "no run waits"
	}
	if view.Waiting == 1 {
		return "1 run waits, by what it demands"
	}
	return howMany(view.Waiting, "run") + " wait, by what they demand"
}

func waitingRemark(view sources.RunnersView) string {
	switch {
	case len(view.Pending) == 0:
		return "none"
	case len(view.Pending) < view.Waiting:
		return "the oldest " + text.Count(int64(len(view.Pending))) + " of " + text.Count(int64(view.Waiting))
	}
	return "the oldest first"
}

func runnerMark(status sources.RunnerStatus, s theme.Styles) theme.Mark {
	m := theme.Mark{Word: text.Cut(text.Safe(string(status), " "), 8, "")}
	switch status {
	case sources.RunnerOnline:
		m.Glyph, m.Ink = s.Glyphs.Running, s.Success
	case sources.RunnerDraining:
		m.Glyph, m.Ink = s.Glyphs.Pending, s.Warning
	case sources.RunnerStale:
		m.Glyph, m.Ink = s.Glyphs.Unknown, s.Warning
	case sources.RunnerGone:
		m.Glyph, m.Ink = s.Glyphs.Cancelled, s.Muted
	default:
		m.Glyph, m.Ink = s.Glyphs.Unknown, s.Muted
	}
	return m
}

// demandsText is what is demanded, in one line.
func demandsText(d sources.RunDemands) string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"", d.ExecutorType}, {"tags", strings.Join(d.Tags, ",")}, {"host", d.Hostname},
		{"project", d.ProjectDir}} {
		if p.value != "" {
			parts = append(parts, strings.TrimSpace(p.name+" "+p.value))
		}
	}
	if len(parts) == 0 {
		return "any runner"
	}
	return text.Safe(strings.Join(parts, ", "), " ")
}

// row draws one row of the list.
func (v *runners) row(at sectionRow, width int, plain bool, now time.Time) string {
	view := v.view()
	switch {
	case at.part == runnerRows && at.row < len(view.Runners):
		return v.runnerRow(view.Runners[at.row], width, plain, now)
	case at.part == queueRows && at.row < len(view.Queues):
		return v.queueRow(view.Queues[at.row], width, plain, now)
	case at.part == waitingRows && at.row < len(view.Pending):
		return v.waitingRow(view.Pending[at.row], width, plain, now)
	}
	return ""
}

// wideRunner is the width from which a runner's row tells its host and directory too.
const wideRunner = 110

func (v *runners) runnerRow(r sources.RunnerView, width int, plain bool, now time.Time) string {
	s, c := v.styles, r.Capabilities
	m := runnerMark(r.Status, s)
	cells := []sizedCell{{m.Glyph + " " + m.Word, 10, m.Ink}, {text.Safe(r.ID, " "), 17, s.Text},
		{strconv.Itoa(r.Busy) + "/" + strconv.Itoa(c.Slots) + " busy", -10, unless(r.Busy > 0, s.Text, s.Muted)}, {text.Count(r.Done) + " done", -10, s.Muted},
		{text.Span(now.Sub(r.Since)), -5, s.Muted}}
	offers := strings.Join(c.ExecutorTypes, ", ")
	if len(c.Tags) > 0 {
		offers += "; " + strings.Join(c.Tags, ",")
	}
	cells = append(cells, sizedCell{text.Safe(offers, " "), 0, s.Text})
	if width >= wideRunner {
		cells = append(cells, sizedCell{text.Safe(c.Hostname, " "), 14, s.Muted}, sizedCell{projectText(r), 26, s.Muted})
	}
	return sizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

func projectText(r sources.RunnerView) string {
	if r.Capabilities.AnyProject {
		return "any directory"
	}
	return text.Safe(r.Capabilities.ProjectDir, " ")
}

func (v *runners) queueRow(q sources.RunQueue, width int, plain bool, now time.Time) string {
	s := v.styles
	able, ink := text.Count(int64(q.Able))+" able", s.Text
	if q.Able == 0 {
		able, ink = s.Glyphs.Failed+" none able", s.Error
	}
	said := demandsText(q.Demands)
	if q.Nearest != "" {
		said += ": " + text.Safe(q.Nearest, " ")
	}
	return sizedCells(width, plain, s.Glyphs.Ellipsis, sizedCell{text.Count(int64(q.Waiting)) + " wait", -11, s.Text},
		sizedCell{"oldest " + v.oldest(q, now), 13, s.Muted}, sizedCell{able, 11, ink}, sizedCell{said, 0, s.Text})
}

// oldest is how long the first run of a queue has waited.
func (v *runners) oldest(q sources.RunQueue, now time.Time) string {
	for _, w := range v.view().Pending {
		if w.RunID == q.Oldest {
			return text.Span(now.Sub(w.Since))
		}
	}
	return v.styles.Glyphs.Dash
}

func (v *runners) waitingRow(w sources.WaitingRun, width int, plain bool, now time.Time) string {
	s := v.styles
	cells := []sizedCell{{s.Glyphs.Pending + " " + orDash(w.Name, s.Glyphs), 20, s.Text}, {text.Safe(w.RunID, " "), 17, s.Muted},
		{text.Span(now.Sub(w.Since)), -5, s.Muted}, {deadlineText(w.Deadline, now), 16, deadlineInk(w.Deadline, now, s)}, {demandsText(w.Demands), 0, s.Text}}
	if width >= wideRunner && w.Parent != "" {
		cells = append(cells, sizedCell{"for " + text.Safe(w.Parent, " "), 22, s.Muted})
	}
	return sizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

// deadlineText counts down to when a run gives up.
func deadlineText(at, now time.Time) string {
	switch left := at.Sub(now); {
	case at.IsZero():
		return "waits on"
	case left <= 0:
		return "gives up now"
	default:
		return "gives up in " + text.Span(left)
	}
}

// soon is when a deadline is near enough to be marked.
const soon = 30 * time.Second

func deadlineInk(at, now time.Time, s theme.Styles) theme.Ink {
	return unless(at.IsZero() || at.Sub(now) > soon, s.Muted, s.Warning)
}
