package views

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// column is one column of the runs table. Width 0 takes what the others leave. Columns
// are given up in the order of drop, highest first, where a pane is narrow; extra ones
// are shown only where all are or where they were chosen.
type column struct {
	id    string
	title string
	width int
	right bool
	drop  int
	extra bool
	cell  func(r sources.Run, now time.Time, s theme.Styles) string
	ink   func(r sources.Run, s theme.Styles) theme.Ink
	// order puts what one wants to see first at the front: the dearest, the newest, by name.
	order func(a, b *sources.Run) int
}

// Ids of columns that are treated apart.
const (
	columnTask  = "task"
	columnError = "last_error"
)

// nameWidth is what a task's name gets before another column is let in.
const nameWidth = 16

func plainInk(_ sources.Run, s theme.Styles) theme.Ink { return s.Text }
func mutedInk(_ sources.Run, s theme.Styles) theme.Ink { return s.Muted }

// columns is the usual columns.
func columns(g theme.Glyphs) []column {
	return slices.DeleteFunc(allColumns(g), func(c column) bool { return c.extra })
}

// allColumns is every column there is, in the order in which they stand.
func allColumns(g theme.Glyphs) []column {
	words := func(of func(sources.Run) string) func(sources.Run, time.Time, theme.Styles) string {
		return func(r sources.Run, _ time.Time, s theme.Styles) string { return orDash(of(r), s.Glyphs) }
	}
	sum := func(of func(*ace.Summary, theme.Glyphs) string) func(sources.Run, time.Time, theme.Styles) string {
		return func(r sources.Run, _ time.Time, s theme.Styles) string { return of(r.Summary, s.Glyphs) }
	}
	return []column{
		{id: columnTask, title: "TASK", ink: plainInk, order: by(nameOfRun),
			cell: func(r sources.Run, _ time.Time, _ theme.Styles) string { return nameOf(r) }},
		{id: "experiment", title: "EXPERIMENT", width: 16, drop: 7, cell: words(experimentOf), ink: mutedInk, order: by(experimentOf)},
		{id: "dataset", title: "DATASET", width: 12, drop: 11, extra: true, cell: words(datasetOf), ink: mutedInk, order: by(datasetOf)},
		{id: "model", title: "MODEL", width: 12, drop: 8, cell: words(modelOf), ink: mutedInk, order: by(modelOf)},
		{id: "blueprint", title: "BLUEPRINT", width: 16, drop: 13, extra: true, cell: words(blueprintOf), ink: plainInk, order: by(blueprintOf)},
		{id: "runner", title: "RUNNER", width: 17, drop: 13, extra: true, cell: words(runnerOf), ink: mutedInk, order: by(runnerOf)},
		{id: "adapter", title: "ADAPTER", width: 8, drop: 12, extra: true, cell: words(adapterOf), ink: mutedInk, order: by(adapterOf)},
		{id: "phase", title: "PHASE", width: 9, drop: 2, cell: words(phaseOf), ink: plainInk, order: by(phaseOf)},
		{id: "skills", title: "SKILLS", width: 7, right: true, drop: 5, cell: sum(skillsCell), ink: plainInk, order: most(skillsOf)},
		{id: "delta", title: g.Delta, width: 8, drop: 4, cell: sum(deltaCell), ink: plainInk, order: most(changesOf)},
		{id: "refused", title: "REFUSED", width: 7, right: true, drop: 13, extra: true, cell: sum(refusedCell), ink: mutedInk, order: most(refusedOf)},
		{id: "tokens", title: "TOKENS", width: 9, right: true, drop: 10, extra: true, cell: sum(tokensCell), ink: mutedInk, order: most(tokensOf)},
		{id: "cost", title: "COST", width: 7, right: true, drop: 6, cell: costOf, ink: mutedInk, order: most(dollarsOf)},
		{id: "took", title: "TOOK", width: 6, right: true, drop: 9, ink: mutedInk, order: longest,
			cell: func(r sources.Run, now time.Time, _ theme.Styles) string { return tookOf(r, now) }},
		{id: "age", title: "AGE", width: 5, right: true, drop: 3, ink: mutedInk, order: newest,
			cell: func(r sources.Run, now time.Time, _ theme.Styles) string { return text.Span(now.Sub(r.Start)) }},
		{id: "events", title: "EVENTS", width: 7, right: true, drop: 14, extra: true, cell: eventsOf, ink: mutedInk,
			order: most(func(r *sources.Run) float64 { return float64(r.Events) })},
		{id: "status", title: "STATUS", width: 12, drop: 1, cell: statusOf, order: worst,
			ink: func(r sources.Run, s theme.Styles) theme.Ink { return markOf(r, s).Ink }},
		{id: columnError, title: "LAST ERROR", width: 30, drop: 15, extra: true, cell: words(retryErrorOf), order: by(retryErrorOf),
			ink: func(_ sources.Run, s theme.Styles) theme.Ink { return s.Retrying }},
		{id: "forked", title: "FORKED FROM", width: 28, drop: 15, extra: true, ink: mutedInk, order: by(originalOf),
			cell: func(r sources.Run, _ time.Time, s theme.Styles) string {
				return orDash(forkedFrom(r, s.Glyphs), s.Glyphs)
			}},
		{id: "workflow", title: "WORKFLOW ID", width: 32, drop: 16, extra: true, cell: words(workflowOf), ink: mutedInk, order: by(workflowOf)},
		{id: "run", title: "RUN ID", width: 36, drop: 17, extra: true, cell: words(runIDOf), ink: mutedInk, order: by(runIDOf)},
	}
}

func nameOfRun(r sources.Run) string {
	if r.Blueprint != "" {
		return r.Blueprint + " " + sources.BlueprintRunID(r.WorkflowID)
	}
	if r.TaskID != "" {
		return r.TaskID
	}
	return r.WorkflowID
}
func experimentOf(r sources.Run) string { return r.Experiment }
func datasetOf(r sources.Run) string    { return r.Dataset }
func modelOf(r sources.Run) string      { return r.Model }
func adapterOf(r sources.Run) string    { return r.Adapter }
func phaseOf(r sources.Run) string      { return string(r.Phase) }
func blueprintOf(r sources.Run) string  { return r.Blueprint }
func runnerOf(r sources.Run) string     { return r.Runner }
func workflowOf(r sources.Run) string   { return r.WorkflowID }
func runIDOf(r sources.Run) string      { return r.RunID }

func originalOf(r sources.Run) string {
	if r.Fork == nil {
		return ""
	}
	return r.Fork.WorkflowID
}

// forkedFrom is where a run was forked and what was changed, "" for one that was not.
func forkedFrom(r sources.Run, g theme.Glyphs) string {
	f := r.Fork
	if f == nil {
		return ""
	}
	return ace.TaskIDOf(f.WorkflowID) + " at " + strconv.FormatInt(f.Event, 10) + ", " + changedText(f, g)
}

func retryErrorOf(r sources.Run) string {
	if !retrying(&r) {
		return ""
	}
	return r.LastError
}

func retrying(r *sources.Run) bool { return r.Open() && r.Attempt > 1 }

func costOf(r sources.Run, _ time.Time, s theme.Styles) string {
	if r.Summary == nil {
		return s.Glyphs.Dash
	}
	return costCell(r.Summary.Usage, s.Glyphs)
}

// tookOf is how long a run took; in whole seconds while it is open.
func tookOf(r sources.Run, now time.Time) string {
	if age := r.Age(now); r.Open() && age < time.Minute {
		return text.Span(age)
	}
	return text.Took(r.Age(now))
}

func eventsOf(r sources.Run, _ time.Time, s theme.Styles) string {
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

func statusOf(r sources.Run, _ time.Time, s theme.Styles) string {
	m := markOf(r, s)
	return m.Glyph + " " + m.Word
}

// pointerWidth is the room for the mark of the selected row.
const pointerWidth = 2

// fitting is the columns that fit a width, with the first one's width worked out.
func fitting(all []column, width int) []column {
	cols := append([]column{}, all...)
	for {
		rest := width - pointerWidth - (len(cols) - 1)
		drop := 0
		for i, c := range cols {
			rest -= c.width
			if c.drop > cols[drop].drop {
				drop = i
			}
		}
		if rest >= nameWidth || len(cols) == 1 {
			cols[0].width = max(rest, 1)
			return cols
		}
		cols = append(cols[:drop], cols[drop+1:]...)
	}
}

// wideName is the width of the task's name where all columns are shown.
const wideName = 24

// sliding is as many of all columns as fit, from the one at left on; the first always
// stands. What room is left goes to the first.
func sliding(all []column, left, width int) []column {
	cols := append([]column{}, all[0])
	cols[0].width = min(wideName, max(width-pointerWidth, 1))
	rest := width - pointerWidth - cols[0].width
	for _, c := range all[1+left:] {
		if rest -= c.width + 1; rest < 0 {
			rest += c.width + 1
			break
		}
		cols = append(cols, c)
	}
	cols[0].width += rest
	return cols
}

func (c column) fit(s string, tail string) string {
	if c.right {
		return text.FitLeft(s, c.width, tail)
	}
	switch {
	case c.id == columnTask:
		s = text.Middle(s, c.width, tail)
	case c.id == "delta" && text.Width(s) > c.width: // all of its numbers rather than room between them
		s = strings.ReplaceAll(s, " ", "")
	}
	return text.Fit(s, c.width, tail)
}

// name is what the column is called in a sentence.
func (c column) name() string {
	if c.id == "delta" {
		return "changes"
	}
	return strings.ToLower(c.title)
}

func by(of func(sources.Run) string) func(a, b *sources.Run) int {
	return func(a, b *sources.Run) int {
		x, y := of(*a), of(*b)
		if (x == "") != (y == "") { // what has none goes last
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}
}

func most(of func(*sources.Run) float64) func(a, b *sources.Run) int {
	return func(a, b *sources.Run) int { return cmp.Compare(of(b), of(a)) }
}

func summed(r *sources.Run) ace.Summary {
	if r.Summary == nil {
		return ace.Summary{Skills: -1, Added: -1, Rejected: -1, Usage: ace.Usage{InputTokens: -1, CostUSD: -1}}
	}
	return *r.Summary
}

func skillsOf(r *sources.Run) float64  { return float64(summed(r).Skills) }
func refusedOf(r *sources.Run) float64 { return float64(summed(r).Rejected) }
func dollarsOf(r *sources.Run) float64 { return summed(r).Usage.CostUSD }
func tokensOf(r *sources.Run) float64 {
	u := summed(r).Usage
	return float64(u.InputTokens + u.OutputTokens)
}
func changesOf(r *sources.Run) float64 {
	s := summed(r)
	return float64(s.Added+s.Updated+s.Removed) + float64(s.Tagged)/1e6
}

func newest(a, b *sources.Run) int { return b.Start.Compare(a.Start) }

// longest puts open runs first, the oldest of them at the front: how long a closed one
// took does not change, and theirs grows.
func longest(a, b *sources.Run) int {
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
func worst(a, b *sources.Run) int { return cmp.Compare(badness(a), badness(b)) }

func badness(r *sources.Run) int {
	if retrying(r) {
		return 0
	}
	order := []ace.ExitStatus{ace.Failed, ace.Timeout, ace.Wrong, ace.Cancelled, ace.Running, ace.Success}
	return 1 + slices.Index(order, r.Exit)
}

// SortRuns sorts runs by a column as its heading says, or the other way round, and
// tells whether there is such a column.
func SortRuns(rows []sources.Run, by string, reverse bool) bool {
	c, ok := columnBy(by)
	if !ok {
		return false
	}
	slices.SortStableFunc(rows, func(a, b sources.Run) int { return directed(c.order(&a, &b), reverse) })
	return true
}

func directed(c int, reverse bool) int {
	if reverse {
		return -c
	}
	return c
}

// columnBy is the column that an id or a heading names.
func columnBy(name string) (column, bool) {
	for _, c := range allColumns(theme.Unicode()) {
		if strings.EqualFold(c.id, name) || strings.EqualFold(c.title, name) || strings.EqualFold(c.name(), name) {
			return c, true
		}
	}
	return column{}, false
}

// ColumnNames lists the columns of a list of runs by their ids.
func ColumnNames() []string {
	var names []string
	for _, c := range allColumns(theme.Unicode()) {
		names = append(names, c.id)
	}
	return names
}

// UsualColumns lists the ids of those that are shown unless others are asked for.
func UsualColumns() []string {
	var names []string
	for _, c := range columns(theme.Unicode()) {
		names = append(names, c.id)
	}
	return names
}

// Cell is what stands in a column for a run, as safe text.
func Cell(column string, r sources.Run, now time.Time) (string, bool) {
	c, ok := columnBy(column)
	if !ok {
		return "", false
	}
	return text.Safe(c.cell(r, now, theme.NoColor().Styles(theme.Unicode())), " "), true
}

// Heading is the title of a column.
func Heading(column string) string {
	c, _ := columnBy(column)
	return c.title
}
