package runs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/flows"
	"acescope/sources/lineage"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Column is a column of the list of runs. Columns of width 0 share the remaining width. A narrow pane drops
// columns in the order of drop, highest first. Extra columns are shown only if the user chose them or all
// columns.
type Column struct {
	ID      string
	Title   string
	Width   int
	minimum int // of a column of width 0
	narrow  int // minimum in a pane in which the texts have no room otherwise
	right   bool
	drop    int
	extra   bool
	traced  bool   // shown by default only if a run of the list has a trace
	changes bool   // the values of open runs change with time
	usual   string // value that says nothing, besides none
	Cell    cell
	sign    cell // the value in one cell, for a narrow list; nil if there is no sign
	// ink returns the color of the cell; nil for muted text.
	ink func(r runs.Run, s theme.Styles) theme.Ink
	// Order sorts by the column, most relevant first: the newest, the most expensive, by name.
	Order func(a, b *runs.Run) int
}

// IDs of columns with special handling.
const (
	columnTask    = "task"
	columnSubject = "subject"
	columnAnswer  = "answer"
	columnAgent   = "agent"
	columnModel   = "model"
	columnCalls   = "calls"
	columnTokens  = "tokens"
	columnCost    = "cost"
	columnDelta   = "delta"
)

func plainInk(_ runs.Run, s theme.Styles) theme.Ink { return s.Text }

// phaseInk highlights a run that waits for the user.
func phaseInk(r runs.Run, s theme.Styles) theme.Ink {
	return widget.If(!r.Open() || r.Phase != flows.PhaseApproval, s.Text, s.Warning)
}

// DefaultColumns returns the columns shown by default.
func DefaultColumns(g theme.Glyphs) []Column {
	return slices.DeleteFunc(AllColumns(g), func(c Column) bool { return c.extra })
}

// cell returns the text of a column for a run.
type cell = func(r runs.Run, now time.Time, s theme.Styles) string

func words(of func(runs.Run) string) cell {
	return func(r runs.Run, _ time.Time, s theme.Styles) string { return console.OrDash(of(r), s.Glyphs) }
}

func sum(of func(*ace.Summary, theme.Glyphs) string) cell {
	return func(r runs.Run, _ time.Time, s theme.Styles) string { return of(r.Summary, s.Glyphs) }
}

// texts makes a column of a text field of runs.
func texts(of func(runs.Run) string, c Column) Column {
	c.Cell, c.Order = words(of), by(of)
	return c
}

// attribute makes a column of a search attribute.
func attribute(name string, c Column) Column {
	return texts(func(r runs.Run) string { return r.Value(name) }, c)
}

// AllColumns returns all columns in display order.
func AllColumns(g theme.Glyphs) []Column {
	return slices.Concat(answerColumns(), originColumns(), amountColumns(g), idColumns())
}

// answerColumns show the task of a run and its answer.
func answerColumns() []Column {
	return []Column{
		{ID: columnTask, Title: "TASK", ink: plainInk, Order: by(console.RawNameOf),
			Cell: func(r runs.Run, _ time.Time, _ theme.Styles) string { return console.NameOf(r) }},
		{ID: "status", Title: "STATUS", Width: 12, drop: 1, Cell: statusOf, Order: bySeverity,
			sign: func(r runs.Run, _ time.Time, s theme.Styles) string {
				return console.StatusMark(r, s).Glyph
			},
			ink: func(r runs.Run, s theme.Styles) theme.Ink { return console.StatusMark(r, s).Ink }},
		{ID: "verdict", Title: "VERDICT", Width: 9, drop: 1, Cell: verdictOf, Order: by(wrongFirst),
			sign: func(r runs.Run, _ time.Time, s theme.Styles) string {
				return s.Verdict(string(r.Verdict)).Glyph
			},
			ink: func(r runs.Run, s theme.Styles) theme.Ink { return s.Verdict(string(r.Verdict)).Ink }},
		{ID: columnSubject, Title: "SUBJECT", minimum: 18, narrow: 10, drop: 2, Cell: plainCell(subjectOf),
			ink: plainInk, Order: by(subjectOf)},
		{ID: columnAnswer, Title: "ANSWER", minimum: 18, narrow: 11, drop: 3, Cell: answerOf,
			Order: by(answerText),
			ink: func(r runs.Run, s theme.Styles) theme.Ink {
				return widget.If(r.Verdict == ace.Correct, s.Text, s.Muted)
			}},
		{ID: "reason", Title: "REASON", minimum: 36, narrow: 14, drop: 4, Cell: plainCell(reasonOf),
			Order: by(reasonOf), ink: reasonInk},
	}
}

// originColumns say what a run belongs to.
func originColumns() []Column {
	of := []Column{
		attribute(ace.AttrExperiment, Column{ID: "experiment", Title: "EXPERIMENT", Width: 16, drop: 10}),
		attribute(ace.AttrDataset, Column{ID: "dataset", Title: "DATASET", Width: 12, drop: 12, extra: true}),
	}
	return slices.Concat(of, agentColumns(), []Column{
		texts(typeOf, Column{
			ID: "type", Title: "TYPE", Width: 20, drop: 9, usual: runs.TypeOf(ace.TaskWorkflow),
		}),
		attribute(ace.AttrBlueprint, Column{
			ID: "blueprint", Title: "BLUEPRINT", Width: 16, drop: 14, extra: true, ink: plainInk,
		}),
		texts(func(r runs.Run) string { return r.Flow }, Column{
			ID: "flow", Title: "FLOW", Width: 16, drop: 14, extra: true, ink: plainInk,
		}),
		attribute(ace.AttrRunner, Column{ID: "runner", Title: "RUNNER", Width: 17, drop: 14, extra: true}),
		texts(func(r runs.Run) string { return r.Session }, Column{
			ID: "session", Title: "SESSION", Width: 16, drop: 14, extra: true,
		}),
		texts(func(r runs.Run) string { return r.Parent }, Column{
			ID: "parent", Title: "PARENT", Width: 16, drop: 14, extra: true,
		}),
		attribute(ace.AttrAdapter, Column{ID: "adapter", Title: "ADAPTER", Width: 8, drop: 13, extra: true}),
		attribute(ace.AttrPhase, Column{ID: "phase", Title: "PHASE", Width: 9, drop: 9, extra: true,
			ink: phaseInk}),
	})
}

// amountColumns show the calls, operations, tokens, cost and duration of a run.
func amountColumns(g theme.Glyphs) []Column {
	return []Column{
		{ID: "skills", Title: "SKILLS", Width: 7, right: true, drop: 8, Cell: sum(console.SkillsCell),
			ink: plainInk, Order: most(skillsOf)},
		{ID: columnDelta, Title: g.Delta, Width: 8, drop: 6, Cell: sum(console.DeltaCell),
			ink: plainInk, Order: most(changesOf)},
		{ID: "refused", Title: "REFUSED", Width: 7, right: true, drop: 14, extra: true,
			Cell: number(refusedOf), Order: most(refusedOf)},
		figures((*runs.Run).Calls, Column{ID: columnCalls, Title: "CALLS", Width: 6, drop: 11, traced: true}),
		figures((*runs.Run).Tokens, Column{ID: columnTokens, Title: "TOKENS", Width: 9, drop: 11, traced: true}),
		{ID: columnCost, Title: "COST", Width: 8, right: true, drop: 7,
			Cell: console.CostOf, Order: mostSpent},
		{ID: "took", Title: "TOOK", Width: 6, right: true, drop: 8, changes: true, Order: longest,
			Cell: func(r runs.Run, now time.Time, _ theme.Styles) string {
				return console.DurationOf(r, now)
			}},
		{ID: "age", Title: "AGE", Width: 5, right: true, drop: 5, changes: true, Order: newest,
			Cell: func(r runs.Run, now time.Time, _ theme.Styles) string {
				return text.Span(now.Sub(r.Began()))
			}},
		{ID: "events", Title: "EVENTS", Width: 7, right: true, drop: 15, extra: true,
			Cell: number(eventsOf), Order: most(eventsOf)},
	}
}

func idColumns() []Column {
	return []Column{
		{ID: "forked", Title: "FORKED FROM", Width: 28, drop: 16, extra: true, Order: by(originalOf),
			Cell: func(r runs.Run, _ time.Time, s theme.Styles) string {
				return console.OrDash(forkedFrom(r, s.Glyphs), s.Glyphs)
			}},
		attribute("WorkflowId", Column{
			ID: "workflow", Title: "WORKFLOW ID", Width: 32, drop: 17, extra: true,
		}),
		attribute("RunId", Column{ID: "run", Title: "RUN ID", Width: 36, drop: 18, extra: true}),
	}
}

// typeOf returns the short name of a workflow type of the contract, otherwise the type.
func typeOf(r runs.Run) string { return runs.FacetLabel(runs.AttrType, r.Type) }

func originalOf(r runs.Run) string {
	if r.Fork == nil {
		return ""
	}
	return r.Fork.WorkflowID
}

// forkedFrom describes the fork point and the changes of a fork, "" for other runs.
func forkedFrom(r runs.Run, g theme.Glyphs) string {
	f := r.Fork
	if f == nil {
		return ""
	}
	changed := g.Replace(text.Safe(lineage.Changed(f), " "))
	return ace.TaskIDOf(f.WorkflowID) + " at " + strconv.FormatInt(f.Event, 10) + ", " + changed
}

// plainCell is like [words], but shows nothing instead of a dash for "".
func plainCell(of func(runs.Run) string) cell {
	return func(r runs.Run, _ time.Time, _ theme.Styles) string { return text.Safe(of(r), " ") }
}

func subjectOf(r runs.Run) string {
	if r.Summary == nil {
		return ""
	}
	return r.Summary.Subject
}

// answerOf shows the answer of a task and, if it is wrong, the label.
func answerOf(r runs.Run, _ time.Time, s theme.Styles) string {
	answer := text.Safe(answerText(r), " ")
	switch {
	case answer == "":
		return ""
	case r.Verdict == ace.Correct:
		return answer + " " + s.Verdict(string(r.Verdict)).Glyph
	case r.Verdict == ace.Wrong && r.Summary.Expected != "":
		return answer + " " + s.Glyphs.Arrow + " " + text.Safe(r.Summary.Expected, " ")
	}
	return answer
}

// answerIn shortens the answer so that the label beside it has at least half of the width.
func answerIn(width int, r runs.Run, s theme.Styles) string {
	whole, answer := answerOf(r, time.Time{}, s), text.Safe(answerText(r), " ")
	beside := strings.TrimPrefix(whole, answer)
	space := max(width-text.Width(beside), width/2-1)
	return text.Cut(answer, space, s.Glyphs.Ellipsis) + beside
}

func answerText(r runs.Run) string {
	if r.Summary == nil {
		return ""
	}
	return r.Summary.Answer
}

// reasonOf returns the phase of an open run that does not retry, otherwise the reason of its status.
func reasonOf(r runs.Run) string {
	if r.Open() && !r.Retries() {
		return string(r.Phase)
	}
	return r.Reason()
}

func reasonInk(r runs.Run, s theme.Styles) theme.Ink {
	switch {
	case r.Retries():
		return console.StatusMark(r, s).Ink
	case r.Open():
		return widget.If(r.Phase != flows.PhaseApproval, s.Muted, s.Warning)
	case r.Status.Bad():
		return console.StatusMark(r, s).Ink
	}
	return s.Text
}

// number shows a count, and a dash for 0 or an unknown count.
func number(of func(*runs.Run) float64) cell {
	return func(r runs.Run, _ time.Time, s theme.Styles) string {
		n := int64(of(&r))
		return widget.If(n <= 0, s.Glyphs.Dash, ace.Number(n))
	}
}

func statusOf(r runs.Run, _ time.Time, s theme.Styles) string {
	m := console.StatusMark(r, s)
	return m.Glyph + " " + m.Word
}

func verdictOf(r runs.Run, _ time.Time, s theme.Styles) string {
	m := s.Verdict(string(r.Verdict))
	switch r.Verdict {
	case "":
		return m.Glyph
	case ace.Correct, ace.Wrong:
		return m.Glyph + " " + m.Word
	}
	return text.Safe(m.Word, " ")
}

// wrongFirst returns a key that sorts wrong answers first.
func wrongFirst(r runs.Run) string {
	return widget.If(r.Verdict == ace.Wrong, "!"+string(r.Verdict), string(r.Verdict))
}

// name returns the column's name in a sentence.
func (c Column) name() string {
	if c.ID == columnDelta {
		return "changes"
	}
	return strings.ToLower(c.Title)
}

func by(of func(runs.Run) string) func(a, b *runs.Run) int {
	return func(a, b *runs.Run) int {
		x, y := of(*a), of(*b)
		if (x == "") != (y == "") { // empty values go last
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
		return ace.Summary{Skills: -1, Added: -1, Rejected: -1,
			Usage: ace.Usage{InputTokens: -1, CostUSD: -1}}
	}
	return *r.Summary
}

// mostSpent sorts by cost, and runs of the same cost by tokens: a model without a known price has no cost.
func mostSpent(a, b *runs.Run) int {
	return cmp.Or(most(dollarsOf)(a, b), most(tokensOf)(a, b))
}

func skillsOf(r *runs.Run) float64  { return float64(summed(r).Skills) }
func refusedOf(r *runs.Run) float64 { return float64(summed(r).Rejected) }
func eventsOf(r *runs.Run) float64  { return float64(r.Events) }
func dollarsOf(r *runs.Run) float64 { return summed(r).Usage.CostUSD }
func tokensOf(r *runs.Run) float64  { return float64(r.Tokens().N) }
func changesOf(r *runs.Run) float64 {
	s := summed(r)
	return float64(s.Added+s.Updated+s.Removed+s.Merged) + float64(s.Tagged)/1e6
}

func newest(a, b *runs.Run) int { return b.Start.Compare(a.Start) }

// longest sorts open runs first, the oldest first, then closed runs by duration.
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

// bySeverity sorts retrying runs first, then by status.
func bySeverity(a, b *runs.Run) int { return cmp.Compare(severityOrder(a), severityOrder(b)) }

func severityOrder(r *runs.Run) int {
	if r.Retries() {
		return 0
	}
	order := []ace.Status{ace.Failed, ace.TimedOut, ace.Terminated, ace.Canceled, ace.Running, ace.Completed}
	return 1 + slices.Index(order, r.Status)
}

// SortRuns sorts runs by a column, given by ID or heading. It reports false if the column is unknown.
func SortRuns(rows []runs.Run, by string, reverse bool) bool {
	c, ok := columnBy(by)
	if !ok {
		return false
	}
	slices.SortStableFunc(rows, func(a, b runs.Run) int { return Directed(c.Order(&a, &b), reverse) })
	return true
}

// Directed reverses the result of a comparison if reverse is true.
func Directed(c int, reverse bool) int {
	return widget.If(reverse, -c, c)
}

// columnBy returns the column with an ID or a heading.
func columnBy(name string) (Column, bool) {
	for _, c := range AllColumns(theme.Unicode()) {
		if strings.EqualFold(c.ID, name) || strings.EqualFold(c.Title, name) ||
			strings.EqualFold(c.name(), name) {
			return c, true
		}
	}
	return Column{}, false
}

// ColumnNames lists the IDs of all columns.
func ColumnNames() []string { return columnIDs(AllColumns(theme.Unicode())) }

func columnIDs(columns []Column) (ids []string) {
	for _, c := range columns {
		ids = append(ids, c.ID)
	}
	return ids
}

// PlainColumn is a column without colors. Cell returns untrusted text, Silent reports whether such a text says
// nothing. Agents is set for columns about agents, which a list without traces does not need.
type PlainColumn struct {
	Title  string
	Agents bool
	Cell   func(r runs.Run, now time.Time) string
	Silent func(text string) bool
}

// Plain returns the column with an ID or a heading.
func Plain(name string) (PlainColumn, bool) {
	c, ok := columnBy(name)
	styles := theme.NoColor().Styles(theme.Unicode())
	return PlainColumn{
		Title:  c.Title,
		Agents: c.traced || c.ID == columnModel,
		Cell:   func(r runs.Run, now time.Time) string { return c.Cell(r, now, styles) },
		Silent: func(text string) bool { return c.silent(text, styles.Glyphs) },
	}, ok
}
