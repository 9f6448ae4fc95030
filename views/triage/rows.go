package triage

import (
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/sources/triage"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// wideWidth is the minimum width for all columns.
const wideWidth = 90

func (v *list) row(at widget.SectionRow, width int, plain bool, now time.Time) string {
	switch at.Part {
	case partRetrying:
		return v.retryRow(v.arranged.Retrying[at.Row], width, plain, now)
	case partGroups:
		return v.groupRow(v.groups[at.Row], width, plain)
	case partPhases:
		return v.phaseRow(v.arranged.Phases[at.Row], width, plain)
	}
	return v.runRow(v.runsOf(at.Part)[at.Row], width, plain, now)
}

func (v *list) retryRow(r triage.Retrying, width int, plain bool, now time.Time) string {
	s := v.Styles
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
	cells = append(cells, widget.SizedCell{errorText(r.LastError), 0, s.Error})
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

// whereFailed returns the phase, or the activity outside a phase.
func whereFailed(p ace.Phase, activity string) string {
	if p != "" && activity != triage.WorkflowTask {
		return text.Safe(string(p), " ")
	}
	return text.Safe(activity, " ")
}

func errorText(f ace.Failure) string {
	if f.Message == "" {
		return "unknown error"
	}
	return text.Safe(f.Message, " ")
}

func (v *list) groupRow(g triage.FailureGroup, width int, plain bool) string {
	s := v.Styles
	m := s.Status(string(g.Kind))
	where := whereFailed(g.Phase, g.Activity)
	if g.Kind == ace.Wrong {
		where = text.Safe(g.Dataset, " ")
	}
	cells := []widget.SizedCell{
		{text.Count(int64(g.Count)), -6, s.Strong},
		{m.Glyph + " " + text.Safe(m.Word, " "), 11, m.Ink},
		{where, 11, s.Muted},
	}
	if width >= wideWidth {
		cells = append(cells, widget.SizedCell{console.Percent(g.Share), -6, s.Muted}, widget.SizedCell{widget.Spark(g.Trend, 12, s.Glyphs), 12, s.Accent})
	}
	cells = append(cells, widget.SizedCell{text.Safe(g.Pattern, " "), 0, s.Text})
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

func (v *list) runRow(r runs.Run, width int, plain bool, now time.Time) string {
	s := v.Styles
	m := s.Status(string(r.Exit))
	var u ace.Usage
	if r.Summary != nil {
		u = r.Summary.Usage
	}
	tokens := s.Glyphs.Dash
	if n := triage.Tokens(r); n > 0 {
		tokens = text.Count(n) + " tok"
	}
	cells := []widget.SizedCell{{console.NameOf(r), 0, s.Text}}
	if width >= wideWidth {
		cells = append(cells, widget.SizedCell{text.Safe(r.Experiment, " "), 20, s.Muted})
	}
	cells = append(cells,
		widget.SizedCell{text.Took(r.Age(now)), -7, s.Text},
		widget.SizedCell{console.CostCell(u, s.Glyphs), -8, s.Text},
		widget.SizedCell{tokens, -11, s.Muted},
		widget.SizedCell{m.Glyph + " " + text.Safe(m.Word, " "), 11, m.Ink})
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

func (v *list) phaseRow(p triage.PhaseStat, width int, plain bool) string {
	s := v.Styles
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{text.Safe(p.Phase, " "), 0, s.Text},
		widget.SizedCell{"p50 " + widget.TookMS(p.P50, s.Glyphs), -11, s.Text},
		widget.SizedCell{"p95 " + widget.TookMS(p.P95, s.Glyphs), -11, s.Text},
		widget.SizedCell{"max " + widget.TookMS(p.Max, s.Glyphs), -11, s.Muted},
		widget.SizedCell{widget.HowMany(p.Runs, "run"), -11, s.Muted})
}

func (v *list) Draw(now time.Time, focused bool) []string {
	if v.data == nil {
		return v.Message(nil, "scanning"+v.Styles.Glyphs.Ellipsis)
	}
	v.arrange()
	head := v.head(now)
	v.list.SetSize(v.Width, max(v.Height-len(head), 0))
	if v.list.Empty() {
		return v.Message(head, v.empty()...)
	}
	return widget.Fill(append(head, v.list.Draw(v.Styles, focused, func(at widget.SectionRow, width int, plain bool) string {
		return v.row(at, width, plain, now)
	})...), v.Width, v.Height)
}

func (v *list) empty() []string {
	switch {
	case v.data.Err != "":
		return nil
	case v.data.Scan.Running:
		return []string{"scanning" + v.Styles.Glyphs.Ellipsis}
	case v.data.Since > 0:
		return []string{"no run closed in the last " + spanWord(v.data.Since), "t scans older runs"}
	case v.data.Query != "":
		return []string{"no run matches", text.Safe(v.data.Query, " ")}
	}
	return []string{"no runs yet", "start some:  acescope run --dataset FILE"}
}

// head shows the scanned runs, the progress of the scan, and its error.
func (v *list) head(now time.Time) []string {
	s, t := v.Styles, v.data
	l := text.Line{Max: v.Width, Tail: s.Glyphs.Ellipsis}
	ended := widget.HowMany(t.Ended, "closed run")
	if t.More {
		ended = "the newest " + ended
	}
	if t.Since > 0 {
		ended += " in the last " + spanWord(t.Since) + " (t)"
	}
	l.Add(s.Text, " "+ended+", "+text.Count(int64(t.Open))+" open")
	if t.MoreOpen {
		l.Add(s.Warning, " of more")
	}
	dot := " " + s.Glyphs.Dot + " "
	switch {
	case t.Scan.Running:
		l.Add(s.Accent, dot+v.progress(t.Scan))
	case t.Scan.Stopped:
		l.Add(s.Warning, dot+"stopped; c scans again")
	default:
		l.Add(s.Muted, dot+"scanned "+text.Span(now.Sub(t.At))+" ago in "+text.Took(t.Scan.Took))
	}
	if t.More || t.Window != triage.DefaultWindow {
		l.Add(s.Muted, dot+"window "+text.Count(int64(t.Window))+" (+ -)")
	}
	lines := []string{l.String(s.Text)}
	if t.Err != "" {
		lines = append(lines, v.Problem(s.Error, t.Err))
	}
	return lines
}

func (v *list) progress(scan triage.Scan) string {
	say := v.Styles.Glyphs.Refresh + " " + scan.Stage
	if scan.Total > 0 {
		say += " " + text.Count(int64(scan.Done)) + "/" + text.Count(int64(scan.Total))
	}
	return say + " (c stops)"
}
