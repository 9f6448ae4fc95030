package runs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	"acescope/views/lineage"
)

// Column is one column of the runs table. Width 0 takes what the others leave. Columns
// are given up in the order of drop, highest first, where a pane is narrow; extra ones
// are shown only where all are or where they were chosen.
type Column struct {
	Id    string
	Title string
	Width int
	right bool
	drop  int
	extra bool
	Cell  func(r runs.Run, now time.Time, s theme.Styles) string
	ink   func(r runs.Run, s theme.Styles) theme.Ink
	// Orderr puts what one wants to see first at the front: the dearest, the newest, by name.
	Order func(a, b *runs.Run) int
}

// Ids of columns that are treated apart.
const (
	columnTask  = "task"
	columnError = "last_error"
)

func plainInk(_ runs.Run, s theme.Styles) theme.Ink { return s.Text }
func mutedInk(_ runs.Run, s theme.Styles) theme.Ink { return s.Muted }

// Columns is the usual columns.
func Columns(g theme.Glyphs) []Column {
	return slices.DeleteFunc(AllColumns(g), func(c Column) bool { return c.extra })
}

// AllColumns is every column there is, in the order in which they stand.
func AllColumns(g theme.Glyphs) []Column {
	words := func(of func(runs.Run) string) func(runs.Run, time.Time, theme.Styles) string {
		return func(r runs.Run, _ time.Time, s theme.Styles) string { return console.OrDash(of(r), s.Glyphs) }
	}
	sum := func(of func(*ace.Summary, theme.Glyphs) string) func(runs.Run, time.Time, theme.Styles) string {
		return func(r runs.Run, _ time.Time, s theme.Styles) string { return of(r.Summary, s.Glyphs) }
	}
	return []Column{
		{Id: columnTask, Title: "TASK", ink: plainInk, Order: by(console.NameOfRun),
			Cell: func(r runs.Run, _ time.Time, _ theme.Styles) string { return console.NameOf(r) }},
		{Id: "experiment", Title: "EXPERIMENT", Width: 16, drop: 7, Cell: words(experimentOf), ink: mutedInk, Order: by(experimentOf)},
		{Id: "dataset", Title: "DATASET", Width: 12, drop: 11, extra: true, Cell: words(datasetOf), ink: mutedInk, Order: by(datasetOf)},
		{Id: "model", Title: "MODEL", Width: 12, drop: 8, Cell: words(modelOf), ink: mutedInk, Order: by(modelOf)},
		{Id: "blueprint", Title: "BLUEPRINT", Width: 16, drop: 13, extra: true, Cell: words(blueprintOf), ink: plainInk, Order: by(blueprintOf)},
		{Id: "runner", Title: "RUNNER", Width: 17, drop: 13, extra: true, Cell: words(runnerOf), ink: mutedInk, Order: by(runnerOf)},
		{Id: "adapter", Title: "ADAPTER", Width: 8, drop: 12, extra: true, Cell: words(adapterOf), ink: mutedInk, Order: by(adapterOf)},
		{Id: "phase", Title: "PHASE", Width: 9, drop: 2, Cell: words(phaseOf), ink: plainInk, Order: by(phaseOf)},
		{Id: "skills", Title: "SKILLS", Width: 7, right: true, drop: 5, Cell: sum(console.SkillsCell), ink: plainInk, Order: most(skillsOf)},
		{Id: "delta", Title: g.Delta, Width: 8, drop: 4, Cell: sum(console.DeltaCell), ink: plainInk, Order: most(changesOf)},
		{Id: "refused", Title: "REFUSED", Width: 7, right: true, drop: 13, extra: true, Cell: sum(refusedCell), ink: mutedInk, Order: most(refusedOf)},
		{Id: "tokens", Title: "TOKENS", Width: 9, right: true, drop: 10, extra: true, Cell: sum(tokensCell), ink: mutedInk, Order: most(tokensOf)},
		{Id: "cost", Title: "COST", Width: 7, right: true, drop: 6, Cell: console.CostOf, ink: mutedInk, Order: most(dollarsOf)},
		{Id: "took", Title: "TOOK", Width: 6, right: true, drop: 9, ink: mutedInk, Order: longest,
			Cell: func(r runs.Run, now time.Time, _ theme.Styles) string { return console.TookOf(r, now) }},
		{Id: "age", Title: "AGE", Width: 5, right: true, drop: 3, ink: mutedInk, Order: newest,
			Cell: func(r runs.Run, now time.Time, _ theme.Styles) string { return text.Span(now.Sub(r.Start)) }},
		{Id: "events", Title: "EVENTS", Width: 7, right: true, drop: 14, extra: true, Cell: eventsOf, ink: mutedInk,
			Order: most(func(r *runs.Run) float64 { return float64(r.Events) })},
		{Id: "status", Title: "STATUS", Width: 12, drop: 1, Cell: statusOf, Order: worst,
			ink: func(r runs.Run, s theme.Styles) theme.Ink { return console.MarkOf(r, s).Ink }},
		{Id: columnError, Title: "LAST ERROR", Width: 30, drop: 15, extra: true, Cell: words(retryErrorOf), Order: by(retryErrorOf),
			ink: func(_ runs.Run, s theme.Styles) theme.Ink { return s.Retrying }},
		{Id: "forked", Title: "FORKED FROM", Width: 28, drop: 15, extra: true, ink: mutedInk, Order: by(originalOf),
			Cell: func(r runs.Run, _ time.Time, s theme.Styles) string {
				return console.OrDash(forkedFrom(r, s.Glyphs), s.Glyphs)
			}},
		{Id: "workflow", Title: "WORKFLOW ID", Width: 32, drop: 16, extra: true, Cell: words(workflowOf), ink: mutedInk, Order: by(workflowOf)},
		{Id: "run", Title: "RUN ID", Width: 36, drop: 17, extra: true, Cell: words(runIDOf), ink: mutedInk, Order: by(runIDOf)},
	}
}

func experimentOf(r runs.Run) string { return r.Experiment }
func datasetOf(r runs.Run) string    { return r.Dataset }
func modelOf(r runs.Run) string      { return r.Model }
func adapterOf(r runs.Run) string    { return r.Adapter }
func phaseOf(r runs.Run) string      { return string(r.Phase) }
func blueprintOf(r runs.Run) string  { return r.Blueprint }
func runnerOf(r runs.Run) string     { return r.Runner }
func workflowOf(r runs.Run) string   { return r.WorkflowID }
func runIDOf(r runs.Run) string      { return r.RunID }

func originalOf(r runs.Run) string {
	if r.Fork == nil {
		return ""
	}
	return r.Fork.WorkflowID
}

// forkedFrom is where a run was forked and what was changed, "" for one that was not.
func forkedFrom(r runs.Run, g theme.Glyphs) string {
	f := r.Fork
	if f == nil {
		return ""
	}
	return ace.TaskIDOf(f.WorkflowID) + " at " + strconv.FormatInt(f.Event, 10) + ", " + lineage.ChangedText(f, g)
}

func retryErrorOf(r runs.Run) string {
	if !retrying(&r) {
		return ""
	}
	return r.LastError
}

func retrying(r *runs.Run) bool { return r.Open() && r.Attempt > 1 }

func eventsOf(r runs.Run, _ time.Time, s theme.Styles) string {
	if r.Events == 0 {
		return s.Glyphs.Dash
	}
	return text.Count(r.Events)
}

func refusedCell(sum *ace.Summary, g theme.Glyphs) string {
	if sum == nil || sum.Rejected == 0 {
		return g.Dash
	}
	return text.Count(int64(sum.Rejected))
}

func tokensCell(sum *ace.Summary, g theme.Glyphs) string {
	if sum == nil || sum.Usage.InputTokens+sum.Usage.OutputTokens == 0 {
		return g.Dash
	}
	return text.Count(sum.Usage.InputTokens + sum.Usage.OutputTokens)
}

func statusOf(r runs.Run, _ time.Time, s theme.Styles) string {
	m := console.MarkOf(r, s)
	return m.Glyph + " " + m.Word
}

// Fitting is the columns that fit a width, with the first one's width worked out.
func Fitting(all []Column, width int) []Column {
	cols := append([]Column{}, all...)
	for {
		rest := width - widget.PointerWidth - (len(cols) - 1)
		drop := 0
		for i, c := range cols {
			rest -= c.Width
			if c.drop > cols[drop].drop {
				drop = i
			}
		}
		if rest >= widget.NameWidth || len(cols) == 1 {
			cols[0].Width = max(rest, 1)
			return cols
		}
		cols = append(cols[:drop], cols[drop+1:]...)
	}
}

// wideName is the width of the task's name where all columns are shown.
const wideName = 24

// sliding is as many of all columns as fit, from the one at left on; the first always
// stands. What room is left goes to the first.
func sliding(all []Column, left, width int) []Column {
	cols := append([]Column{}, all[0])
	cols[0].Width = min(wideName, max(width-widget.PointerWidth, 1))
	rest := width - widget.PointerWidth - cols[0].Width
	for _, c := range all[1+left:] {
		if rest -= c.Width + 1; rest < 0 {
			rest += c.Width + 1
			break
		}
		cols = append(cols, c)
	}
	cols[0].Width += rest
	return cols
}

func (c Column) fit(s string, tail string) string {
	if c.right {
		return text.FitLeft(s, c.Width, tail)
	}
	switch {
	case c.Id == columnTask:
		s = text.Middle(s, c.Width, tail)
	case c.Id == "delta" && text.Width(s) > c.Width: // all of its numbers rather than room between them
		s = strings.ReplaceAll(s, " ", "")
	}
	return text.Fit(s, c.Width, tail)
}

// name is what the column is called in a sentence.
func (c Column) name() string {
	if c.Id == "delta" {
		return "changes"
	}
	return strings.ToLower(c.Title)
}

func by(of func(runs.Run) string) func(a, b *runs.Run) int {
	return func(a, b *runs.Run) int {
		x, y := of(*a), of(*b)
		if (x == "") != (y == "") { // what has none goes last
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}
}

func most(of func(*runs.Run) float64) func(a, b *runs.Run) int {
	return func(a, b *runs.Run) int { return cmp.Compare(of(b), of(a)) }
}

func summed(r *runs.Run) ace.Summary {
	if r.Summary == nil {
		return ace.Summary{Skills: -1, Added: -1, Rejected: -1, Usage: ace.Usage{InputTokens: -1, CostUSD: -1}}
	}
	return *r.Summary
}

func skillsOf(r *runs.Run) float64  { return float64(summed(r).Skills) }
func refusedOf(r *runs.Run) float64 { return float64(summed(r).Rejected) }
func dollarsOf(r *runs.Run) float64 { return summed(r).Usage.CostUSD }
func tokensOf(r *runs.Run) float64 {
	u := summed(r).Usage
	return float64(u.InputTokens + u.OutputTokens)
}
func changesOf(r *runs.Run) float64 {
	s := summed(r)
	return float64(s.Added+s.Updated+s.Removed) + float64(s.Tagged)/1e6
}

func newest(a, b *runs.Run) int { return b.Start.Compare(a.Start) }

// longest puts open runs first, the oldest of them at the front: how long a closed one
// took does not change, and theirs grows.
func longest(a, b *runs.Run) int {
	switch {
	case a.Open() && b.Open():
		return a.Start.Compare(b.Start)
	case a.Open() != b.Open():
		if a.Open() {
			return -1
		}
		return 1
	}
	return cmp.Compare(b.Age(b.Close), a.Age(a.Close))
}

// worst puts first what needs looking at.
func worst(a, b *runs.Run) int { return cmp.Compare(badness(a), badness(b)) }

func badness(r *runs.Run) int {
	if retrying(r) {
		return 0
	}
	order := []ace.ExitStatus{ace.Failed, ace.Timeout, ace.Wrong, ace.Canceled, ace.Running, ace.Success}
	return 1 + slices.Index(order, r.Exit)
}

// SortRuns sorts runs by a column as its heading says, or the other way round, and
// tells whether there is such a column.
func SortRuns(rows []runs.Run, by string, reverse bool) bool {
	c, ok := columnBy(by)
	if !ok {
		return false
	}
	slices.SortStableFunc(rows, func(a, b runs.Run) int { return Directed(c.Order(&a, &b), reverse) })
	return true
}

func Directed(c int, reverse bool) int {
	if reverse {
		return -c
	}
	return c
}

// columnBy is the column that an id or a heading names.
func columnBy(name string) (Column, bool) {
	for _, c := range AllColumns(theme.Unicode()) {
		if strings.EqualFold(c.Id, name) || strings.EqualFold(c.Title, name) || strings.EqualFold(c.name(), name) {
			return c, true
		}
	}
	return Column{}, false
}

// ColumnNames lists the columns of a list of runs by their ids.
func ColumnNames() []string {
	var names []string
	for _, c := range AllColumns(theme.Unicode()) {
		names = append(names, c.Id)
	}
	return names
}

// UsualColumns lists the ids of those that are shown unless others are asked for.
func UsualColumns() []string {
	var names []string
	for _, c := range Columns(theme.Unicode()) {
		names = append(names, c.Id)
	}
	return names
}

// Cell is what stands in a column for a run, as safe text.
func Cell(column string, r runs.Run, now time.Time) (string, bool) {
	c, ok := columnBy(column)
	if !ok {
		return "", false
	}
	return text.Safe(c.Cell(r, now, theme.NoColor().Styles(theme.Unicode())), " "), true
}

// Heading is the title of a column.
func Heading(column string) string {
	c, _ := columnBy(column)
	return c.Title
}
