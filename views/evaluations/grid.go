// Package evaluations shows the evaluations of an experiment item by item over the playbook versions, and the
// effects of bullets if it is an ablation.
package evaluations

import (
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/learning/ablation"
	"acescope/sources/evaluations"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Feed reads the evaluations of the experiment with a workflow ID.
type Feed interface {
	console.Feed[*evaluations.Evaluated]
	Refine(workflowID string)
}

// page is what the panes of the screens share.
type page struct {
	nav       *console.Navigation
	feed      Feed
	artifacts *console.Artifacts
	data      *evaluations.Evaluated // of the selected experiment, nil until it is read

	shown bool
	asked string // the experiment that the feed reads
}

// Screens returns the grid of items and versions, and the effects of bullets.
func Screens(c *console.Console, feed Feed, artifacts *console.Artifacts) (grid, effects tui.Screen) {
	p := &page{nav: c.Navigation, feed: feed, artifacts: artifacts}
	g := &gridView{page: p, List: console.NewList[evaluations.Row]("Evaluations"), version: newest}
	e := &effectsView{page: p, List: console.NewList[ablation.Effect]("Effects",
		widget.Heading{Title: "PART", Minimum: 14},
		widget.Heading{Title: "CITED", Width: 5, Right: true},
		widget.Heading{Title: "CORRECT", Width: 7, Right: true, Drop: 2},
		widget.Heading{Title: "EFFECT", Width: 6, Right: true},
		widget.Heading{Title: "INTERVAL", Width: 16, Right: true, Drop: 1},
		widget.Heading{Title: "P", Width: 7, Right: true, Drop: 4},
		widget.Heading{Title: "ALL", Width: 5, Right: true, Drop: 3},
		widget.Heading{Title: "HALVES", Width: 6, Right: true, Drop: 6},
		widget.Heading{Title: "VOTES", Width: 8, Right: true, Drop: 5},
	)}
	grid = tui.Screen{Name: "evaluations", Short: "evals", Share: 50, Aside: true,
		Help:  "the items of an experiment's evaluations over its playbook versions",
		Views: []tui.View{g, &answers{Reader: console.NewReader("Answers", c.Location), grid: g}}}
	effects = tui.Screen{Name: "effects", Aliases: []string{"ablation", "bullets"}, Share: 62,
		Help: "what each bullet does, by an ablation", Aside: true,
		Views: []tui.View{e, &effectDetail{Reader: console.NewReader("Bullet", c.Location), list: e}}}
	return grid, effects
}

func (p *page) SetShown(shown bool) {
	p.shown = shown
	p.ask()
	p.feed.Look(shown)
	p.artifacts.Look(shown)
}

// ask reads the experiment of the selected run, which may be another one now.
func (p *page) ask() {
	if id := experimentOf(p.nav.Selected); p.shown && id != p.asked {
		p.asked = id
		p.feed.Refine(id)
	}
}

// experimentOf returns the workflow ID of an experiment: the selected run, or the experiment of a task.
func experimentOf(s console.Selection) string {
	switch {
	case !s.Ok:
		return ""
	case s.Run.Type == ace.ExperimentWorkflow:
		return s.Run.WorkflowID
	case s.Run.Experiment != "":
		return ace.ExperimentWorkflowID(s.Run.Experiment)
	}
	return ""
}

// refresh takes the newest data and reports whether it differs from the data that a pane has arranged.
func (p *page) refresh(arranged *evaluations.Evaluated) bool {
	p.ask()
	p.data = p.feed.Value()
	p.artifacts.Take()
	if p.data != nil && p.data.WorkflowID != experimentOf(p.nav.Selected) {
		p.data = nil
	}
	return p.data != arranged
}

// grid returns the evaluations, or nil and the reason for that.
func (p *page) grid(s theme.Styles) (*evaluations.Grid, []string) {
	switch {
	case experimentOf(p.nav.Selected) == "":
		return nil, []string{"the selected run belongs to no experiment", "press 5 for the experiments"}
	case p.data == nil:
		return nil, []string{"reading the evaluations" + s.Glyphs.Ellipsis}
	case p.data.Grid == nil:
		return nil, []string{text.Safe(p.data.Err, " ")}
	case len(p.data.Grid.Versions) == 0:
		return nil, []string{"no complete evaluation yet",
			"start experiments with --eval FILE, or use \"acescope eval\""}
	}
	return p.data.Grid, nil
}

// problem returns a line if the last reading failed.
func (p *page) problem(pane *console.Pane) []string {
	if p.data == nil || p.data.Err == "" || p.data.Grid == nil {
		return nil
	}
	return []string{pane.Problem(pane.Styles.Error, p.data.Err)}
}

func (p *page) name() string {
	return text.Safe(strings.TrimPrefix(experimentOf(p.nav.Selected), ace.ExperimentIDPrefix), " ")
}

// newest selects the last version, also after versions are added.
const newest = -1

// gridView lists the items with their verdicts by version.
type gridView struct {
	*page
	console.List[evaluations.Row]
	version     int // that the answers are of, or newest
	only        evaluations.Change
	of          *evaluations.Evaluated // that the rows are of
	first, last int                    // versions whose verdicts are visible, last excluded
	width       int                    // for which they were chosen
}

func (v *gridView) Title() string { return "Evaluations of " + v.name() }

func (v *gridView) Footer() string {
	return v.Join(widget.If(v.only != "", "only "+string(v.only), ""), v.Table.Position())
}

func (v *gridView) Bindings() []tui.Binding {
	return append(widget.Motions("evaluations", v),
		console.Key("evaluations.answers", "read the answers to the item", "answers",
			func(s tui.Shell) { s.Focus(1) }, "enter"),
		console.Key("evaluations.left", "the version before", "earlier", func() { v.move(-1) }, "h", "left"),
		console.Key("evaluations.right", "the next version", "later", func() { v.move(1) }, "l", "right"),
		console.Key("evaluations.filter",
			"next filter: broken, failed, unstable, always wrong, fixed, always right, unlabeled", "filter",
			v.filter,
			"F"),
		console.Key("evaluations.next_error", "next item that the version answers wrong", "", v.toWrong(1),
			"e"),
		console.Key("evaluations.previous_error", "previous item that the version answers wrong", "",
			v.toWrong(-1), "E"),
		console.Key("evaluations.bullets", "show what each bullet does, by an ablation", "effects",
			func(s tui.Shell) { s.Open("effects") }, "b"),
		console.Key("evaluations.related", "open the experiment as a run", "", v.openRun, "O"))
}

func (v *gridView) openRun(s tui.Shell) tea.Cmd {
	id := experimentOf(v.nav.Selected)
	if id == "" {
		return nil
	}
	return v.nav.OpenRun(s, runs.Run{WorkflowID: id, Type: ace.ExperimentWorkflow})
}

func (v *gridView) filter() {
	changes := evaluations.Changes()
	at := slices.Index(changes, v.only) + 1
	v.only = ""
	if at < len(changes) {
		v.only = changes[at]
	}
	v.arrange()
}

func (v *gridView) toWrong(by int) func(tui.Shell) {
	return func(s tui.Shell) {
		at := v.shown()
		v.Next(s, by, func(r evaluations.Row) bool { return at >= 0 && r.Marks[at] == evaluations.Wrong },
			"no other item is answered wrong")
	}
}

// move selects another version.
func (v *gridView) move(by int) {
	last := v.count() - 1
	if last < 0 {
		return
	}
	if v.version = widget.Clamp(v.shown()+by, 0, last); v.version == last {
		v.version = newest
	}
}

func (v *gridView) count() int {
	if v.data == nil || v.data.Grid == nil {
		return 0
	}
	return len(v.data.Grid.Versions)
}

// shown returns the selected version, or -1 without versions.
func (v *gridView) shown() int {
	n := v.count()
	return widget.If(v.version == newest || v.version >= n, n-1, v.version)
}

func (v *gridView) SetShown(shown bool) {
	v.page.SetShown(shown)
	v.Refresh()
}

func (v *gridView) Refresh() {
	if v.refresh(v.of) {
		v.of = v.data
		v.arrange()
	}
}

// arrange lists the items again and keeps the cursor on its item.
func (v *gridView) arrange() {
	var rows []evaluations.Row
	if v.data != nil && v.data.Grid != nil {
		rows = v.data.Grid.Rows
	}
	if v.only != "" {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r evaluations.Row) bool {
			return r.Change != v.only
		})
	}
	v.Refill(rows, func(a, b evaluations.Row) bool { return a.Index == b.Index })
}

// Widths of a version, and of the columns beside the versions.
const (
	versionWidth = 3
	itemWidth    = 6
	answerWidth  = 18
	changeWidth  = 12
)

// columns shows as many versions as fit, with the selected one among them.
func (v *gridView) columns() {
	n, at := v.count(), v.shown()
	space := v.Width - widget.PointerWidth - itemWidth - answerWidth - changeWidth - 3
	shown := widget.Clamp(space/(versionWidth+1), 1, n)
	first := widget.TopOf(v.first, at, shown, n)
	if first == v.first && first+shown == v.last && v.width == v.Width {
		return
	}
	v.first, v.last, v.width = first, first+shown, v.Width
	headings := []widget.Heading{{Title: "ITEM", Width: itemWidth, Right: true}}
	for i := v.first; i < v.last; i++ {
		headings = append(headings, widget.Heading{Title: strconv.Itoa(i), Width: versionWidth, Right: true})
	}
	headings = append(headings, widget.Heading{Title: "CHANGE", Width: changeWidth, Drop: 1},
		widget.Heading{Title: "ANSWER", Minimum: answerWidth})
	v.Table.SetColumns(headings, v.Width)
}

func (v *gridView) Draw(_ time.Time, focused bool) []string {
	g, why := v.grid(v.Styles)
	if g == nil {
		return v.Message(nil, why...)
	}
	v.columns()
	head := append(v.problem(&v.Pane), v.head(g)...)
	if len(v.Rows) == 0 {
		return v.Message(head, "no item is listed")
	}
	return v.DrawRows(head, focused, func(r evaluations.Row) []widget.Cell { return v.cells(g, r) })
}

// head describes the selected version.
func (v *gridView) head(g *evaluations.Grid) []string {
	s, at := v.Styles, v.shown()
	version := g.Versions[at]
	l := v.Line().Add(s.Strong, " version "+strconv.Itoa(at)+" of "+strconv.Itoa(len(g.Versions)-1))
	l.Add(s.Muted, ", "+evaluations.When(version.EvalResult)+"  ")
	l.Add(s.Accent, widget.Accuracy(version.Correct, version.Labeled(), s.Glyphs))
	if at == g.Best() {
		l.Add(s.Success, "  best")
	}
	lines := []string{l.String(s.Text)}
	if mean := g.Input.MeanScore(version.Score, version.Labeled()); mean != nil {
		lines = append(lines, s.Text.Paint(text.Fit(strings.TrimPrefix(widget.MeanScore(mean), ","), v.Width,
			"")))
	}
	if at == 0 {
		return lines
	}
	if since := experiments.Between(g.Versions[at-1].EvalResult, version.EvalResult); since != nil {
		change := " since version " + strconv.Itoa(at-1) + ": " + since.Change()
		lines = append(lines, s.Muted.Paint(text.Fit(change, v.Width, s.Glyphs.Ellipsis)))
	}
	return lines
}

func (v *gridView) cells(g *evaluations.Grid, r evaluations.Row) []widget.Cell {
	s, at := v.Styles, v.shown()
	cells := []widget.Cell{{Text: strconv.Itoa(r.Index + 1), Ink: s.Text}}
	for i := v.first; i < v.last; i++ {
		cells = append(cells, markCell(r.Marks[i], s))
	}
	answer := ""
	if item := g.Versions[at].Item(r.Index); item != nil {
		answer = text.Safe(item.Answer, " ")
		if item.Label != nil && r.Marks[at] != evaluations.Correct {
			answer += ", expected " + text.Safe(*item.Label, " ")
		}
	}
	return append(cells, widget.Cell{Text: string(r.Change), Ink: changeInk(r.Change, s)},
		widget.Cell{Text: answer, Ink: s.Muted})
}

func markCell(m evaluations.Mark, s theme.Styles) widget.Cell {
	switch m {
	case evaluations.Correct:
		return widget.Cell{Text: s.Glyphs.Success, Ink: s.Success}
	case evaluations.Wrong:
		return widget.Cell{Text: s.Glyphs.Wrong, Ink: s.Failed}
	case evaluations.Failed:
		return widget.Cell{Text: s.Glyphs.Failed, Ink: s.Error}
	}
	return widget.Cell{Text: s.Glyphs.Dash, Ink: s.Muted}
}

func changeInk(c evaluations.Change, s theme.Styles) theme.Ink {
	switch c {
	case evaluations.Broken, evaluations.Unstable, evaluations.LastFailed:
		return s.Failed
	case evaluations.Fixed:
		return s.Success
	}
	return s.Muted
}

func (v *gridView) Copy() (what, content string) {
	if r, ok := v.Current(); ok {
		return "item", strconv.Itoa(r.Index + 1)
	}
	return "", ""
}
