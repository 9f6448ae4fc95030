package triage

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/sources/triage"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// wideWidth is the minimum width for all columns.
const wideWidth = 90

type row interface {
	// key identifies the row when the list is read again.
	key() string
	// run returns the run that enter opens.
	run() runs.Run
	// message returns the complete error message, or "".
	message() string
	cells(s theme.Styles, width int, now time.Time) []widget.SizedCell
	// write writes everything that is known about the row.
	write(w *findingWriter, t *triage.Result)
}

// sorted returns groups, which are sorted by count, in an order.
func sorted(groups []triage.FailureGroup, order string) []triage.FailureGroup {
	groups = slices.Clone(groups)
	kinds := []ace.Status{ace.Failed, ace.TimedOut, ace.Terminated, ace.Completed, ace.Canceled}
	switch order {
	case "newest":
		slices.SortStableFunc(groups, func(a, b triage.FailureGroup) int {
			return b.Last.At.Compare(a.Last.At)
		})
	case "kind":
		slices.SortStableFunc(groups, func(a, b triage.FailureGroup) int {
			return slices.Index(kinds, a.Status) - slices.Index(kinds, b.Status)
		})
	}
	return groups
}

func rowList[T any](list []T, as func(T) row) []row {
	out := make([]row, len(list))
	for i, v := range list {
		out[i] = as(v)
	}
	return out
}

type retryRow struct{ triage.Retrying }

func (r retryRow) key() string     { return r.Run.RunID + "/" + r.Activity }
func (r retryRow) run() runs.Run   { return r.Run }
func (r retryRow) message() string { return r.LastError.Message }

func (r retryRow) cells(s theme.Styles, width int, now time.Time) []widget.SizedCell {
	m := s.Retry()
	next := "now"
	if r.Next.After(now) {
		next = "in " + text.Span(r.Next.Sub(now))
	}
	cells := []widget.SizedCell{
		{m.Glyph + " #" + strconv.Itoa(int(r.Attempt)), 6, m.Ink},
		{text.Middle(console.NameOf(r.Run), 16, s.Glyphs.Ellipsis), 16, s.Text},
		{whereFailed(r.Phase, r.Activity), 13, s.Muted},
		{text.Span(now.Sub(r.Since)), -5, s.Muted},
	}
	if width >= wideWidth {
		cells = append(cells, widget.SizedCell{next, -7, s.Muted})
	}
	failure := cmp.Or(text.Safe(r.LastError.Message, " "), "unknown error")
	return append(cells, widget.SizedCell{failure, 0, s.Error})
}

// whereFailed returns the phase, or the activity outside a phase.
func whereFailed(p ace.Phase, activity string) string {
	if p != "" && activity != runs.WorkflowTask {
		return text.Safe(string(p), " ")
	}
	return text.Safe(activity, " ")
}

type groupRow struct{ triage.FailureGroup }

func (g groupRow) key() string     { return g.Key() }
func (g groupRow) run() runs.Run   { return g.Last.Run }
func (g groupRow) message() string { return g.Last.Message }

// mark returns the mark of the verdict for wrong answers, otherwise the mark of the status.
func (g groupRow) mark(s theme.Styles) theme.Mark {
	return widget.If(g.Verdict != "", s.Verdict(string(g.Verdict)), s.Status(string(g.Status)))
}

func (g groupRow) cells(s theme.Styles, width int, _ time.Time) []widget.SizedCell {
	m := g.mark(s)
	cells := []widget.SizedCell{
		{ace.Number(g.Count), -6, s.Strong},
		{m.Glyph + " " + text.Safe(m.Word, " "), 12, m.Ink},
	}
	if g.Verdict == "" {
		cells = append(cells, widget.SizedCell{whereFailed(g.Phase, g.Activity), 11, s.Muted})
	}
	if width >= wideWidth {
		cells = append(cells, widget.SizedCell{console.Percent(g.Share), -6, s.Muted},
			widget.SizedCell{widget.Spark(g.Trend, 12, s.Glyphs), 12, s.Accent})
	}
	cause := text.Safe(g.Pattern, " ")
	if r := g.Last.Reason; r != nil && width >= wideWidth {
		cause += "  " + exampleText(r, s.Glyphs)
	}
	return append(cells, widget.SizedCell{cause, 0, s.Text})
}

// exampleText shows an answer beside the label.
func exampleText(r *triage.Reason, g theme.Glyphs) string {
	return text.Safe(g.Replace(r.Example()), " ")
}

type runRow struct{ of runs.Run }

func (r runRow) key() string     { return r.of.RunID }
func (r runRow) run() runs.Run   { return r.of }
func (r runRow) message() string { return "" }

func (r runRow) cells(s theme.Styles, width int, now time.Time) []widget.SizedCell {
	m := s.Status(string(r.of.Status))
	tokens := s.Glyphs.Dash
	if n := triage.Tokens(r.of); n > 0 {
		tokens = ace.Number(n) + " tok"
	}
	var cells []widget.SizedCell
	if width >= wideWidth {
		cells = append(cells, widget.SizedCell{text.Safe(r.of.Experiment, " "), 20, s.Muted})
	}
	cells = append(cells,
		widget.SizedCell{text.Duration(r.of.Age(now)), -7, s.Text},
		widget.SizedCell{console.CostCell(triage.UsageOf(r.of), s.Glyphs), -8, s.Text},
		widget.SizedCell{tokens, -11, s.Muted},
		widget.SizedCell{m.Glyph + " " + text.Safe(m.Word, " "), 11, m.Ink})
	// The tasks of an experiment differ at the end of their names.
	name := text.Middle(console.NameOf(r.of), widget.Rest(width, cells)-1, s.Glyphs.Ellipsis)
	return slices.Insert(cells, 0, widget.SizedCell{name, 0, s.Text})
}

type phaseRow struct{ triage.PhaseStat }

func (p phaseRow) key() string     { return p.Phase }
func (p phaseRow) run() runs.Run   { return p.Worst }
func (p phaseRow) message() string { return "" }

func (p phaseRow) cells(s theme.Styles, _ int, _ time.Time) []widget.SizedCell {
	return []widget.SizedCell{
		{text.Safe(p.Phase, " "), 0, s.Text},
		{"p50 " + widget.Milliseconds(p.P50, s.Glyphs), -11, s.Text},
		{"p95 " + widget.Milliseconds(p.P95, s.Glyphs), -11, s.Text},
		{"max " + widget.Milliseconds(p.Max, s.Glyphs), -11, s.Muted},
		{countText(p.PhaseStat), -11, s.Muted},
	}
}

// countText returns the number of runs, or of calls if a run has several.
func countText(p triage.PhaseStat) string {
	if p.Calls > p.Runs {
		return ace.Count(p.Calls, "call")
	}
	return ace.Count(p.Runs, "run")
}

func (v *list) Draw(now time.Time, focused bool) []string {
	if v.data == nil {
		return v.Message(nil, "scanning"+v.Styles.Glyphs.Ellipsis)
	}
	head := v.head(now)
	v.list.SetSize(v.Width, max(v.Height-len(head), 0))
	if v.list.Empty() {
		return v.Message(head, v.empty()...)
	}
	rows := v.list.Draw(v.Styles, focused, func(r row, width int) []widget.SizedCell {
		return r.cells(v.Styles, width, now)
	})
	return widget.Fill(append(head, rows...), v.Width, v.Height)
}

func (v *list) empty() []string {
	switch {
	case v.data.Err != "":
		return nil
	case v.data.Scan.Running:
		return []string{"scanning" + v.Styles.Glyphs.Ellipsis}
	case v.data.Since > 0:
		return []string{"no run closed in the last " + spanWord(v.data.Since), "press . to scan older runs"}
	case v.data.Query != "":
		return []string{"no run matches", text.Safe(v.data.Query, " ")}
	}
	return []string{"no runs yet", "press 1, then n to start some"}
}

// head shows the number of scanned runs, the progress of the scan, and its error.
func (v *list) head(now time.Time) []string {
	s, t := v.Styles, v.data
	l := v.Line()
	ended := ace.Count(t.Ended, "closed run")
	if t.More {
		ended = "the newest " + ended
	}
	if t.Since > 0 {
		ended += " in the last " + spanWord(t.Since) + " (.)"
	}
	l.Add(s.Text, " "+ended+", "+ace.Number(t.Open)+" open")
	if t.MoreOpen {
		l.Add(s.Warning, " of more")
	}
	dot := " " + s.Glyphs.Dot + " "
	switch {
	case t.Scan.Running:
		l.Add(s.Accent, dot+v.progress(t.Scan))
	case t.Scan.Stopped:
		l.Add(s.Warning, dot+"stopped; ctrl+r scans again")
	default:
		l.Add(s.Muted, dot+"scanned "+text.Span(now.Sub(t.At))+" ago in "+text.Duration(t.Scan.Took))
	}
	if t.More || t.Window != triage.DefaultWindow {
		l.Add(s.Muted, dot+"window "+ace.Number(t.Window)+" (+ -)")
	}
	lines := []string{l.String(s.Text)}
	if t.Err != "" {
		lines = append(lines, v.Problem(s.Error, t.Err))
	}
	return lines
}

func (v *list) progress(scan triage.Scan) string {
	summary := v.Styles.Glyphs.Refresh + " " + scan.Stage
	summary += widget.If(scan.Total > 0, " "+ace.Number(scan.Done)+"/"+ace.Number(scan.Total), "")
	return summary + " (ctrl+r stops)"
}
