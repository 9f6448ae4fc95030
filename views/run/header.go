package run

import (
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// header returns the two lines above a run: its phases, and a summary.
func header(d *histories.Detail, width int, now time.Time, s theme.Styles) []string {
	return []string{phaseLine(d, width, now, s), summaryLine(d, width, now, s)}
}

// summaryLine returns status, duration, tokens, cost and model of a run in one line.
func summaryLine(d *histories.Detail, width int, now time.Time, s theme.Styles) string {
	g := s.Glyphs
	m := s.Status(string(d.Phase.Status))
	l := text.Line{Max: width, Tail: g.Ellipsis}
	l.Add(m.Ink, " "+m.Glyph+" "+console.OrDash(m.Word, g))
	if d.Phase.CancelRequested && d.Close.IsZero() {
		l.Add(s.Warning, ", cancel requested")
	}
	sep := "  " + g.Dot + "  "
	if t := reviewText(d, now); t != "" {
		l.Add(s.Warning, sep+t)
	}
	if d.Phase.Verdict != "" && !d.Close.IsZero() {
		m := s.Verdict(string(d.Phase.Verdict))
		l.Add(m.Ink, sep+m.Glyph+" "+text.Safe(m.Word, " "))
	}
	if !d.Start.IsZero() {
		l.Add(s.Muted, sep+console.DurationOf(runs.Run{Start: d.Start, Close: d.Close}, now))
	}
	u := d.Phase.Usage
	if d.Experiment != nil {
		u = d.Experiment.Usage
	}
	if a := d.Agents; a != nil {
		u = u.Add(histories.UsageOf(a.Sum))
		if a.Sum.Unrecorded < a.Sum.Requests {
			part := widget.If(a.Sum.Unrecorded > 0, "+", "")
			l.Add(s.Muted, sep+ace.Number(a.Sum.Tokens())+part+" tokens")
		}
	} else if n := u.InputTokens + u.OutputTokens; n > 0 {
		l.Add(s.Muted, sep+ace.Count(n, "token"))
	}
	if u != (ace.Usage{}) {
		l.Add(s.Muted, sep+console.CostCell(u, g))
	}
	if d.Flow != nil && d.Flow.ChainRun > 0 && u != (ace.Usage{}) {
		l.Add(s.Muted, " since run 1")
	}
	if d.Input.Model != "" {
		l.Add(s.Muted, sep+text.Safe(d.Input.Model, " "))
	}
	return l.String(s.Text)
}

// agentsLine says in one line who worked in a run of a framework: the framework, the agents and the calls.
func agentsLine(d *histories.Detail, g theme.Glyphs) string {
	a := d.Agents
	var parts []string
	for _, p := range []string{a.Framework, a.Agent, a.Model} {
		if p != "" {
			parts = append(parts, text.Safe(p, " "))
		}
	}
	parts = append(parts, ace.Count(a.Sum.Requests+a.Sum.Failed, "request"))
	if a.Tools > 0 {
		parts = append(parts, ace.Count(a.Tools, "tool call"))
	}
	return strings.Join(parts, "  "+g.Dot+"  ")
}

// phaseLine returns the phases of a run in one line: names and durations if they fit, or else the
// names, or else only the name of the last phase that began.
func phaseLine(d *histories.Detail, width int, now time.Time, s theme.Styles) string {
	if len(d.Phase.Steps) == 0 {
		l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
		where := console.OrDash(string(d.Phase.Phase), s.Glyphs)
		if p := d.Experiment; p != nil {
			where = experimentProgress(p)
		}
		if d.Flow != nil {
			where = flowProgress(d.Flow)
		}
		if d.Agents != nil {
			where = agentsLine(d, s.Glyphs)
		}
		return l.Add(s.Strong, " "+where).String(s.Text)
	}
	for _, labels := range []struct{ names, durations bool }{{true, true}, {true, false}, {false, false}} {
		l := &text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
		l.Add(s.Text, " ")
		if addPhases(l, d, labels.names, labels.durations, now, s) || !labels.names {
			return l.String(s.Text)
		}
	}
	return ""
}

// addPhases adds the phases of a run to a line until one does not fit, and reports whether all fit.
// The last phase that began is named even if names is false.
func addPhases(l *text.Line, d *histories.Detail, names, durations bool, now time.Time, s theme.Styles) bool {
	steps := d.Phase.Steps
	last := 0
	for i, st := range steps {
		if st.Began() {
			last = i
		}
	}
	for i, st := range steps {
		m := stepMark(st.Status, s)
		attempts := attemptsLabel(d, st, now, s.Glyphs)
		if attempts != "" && st.Status == ace.StatusRunning {
			m.Ink = s.Retrying
		}
		label := m.Glyph
		if names || i == last {
			label += " " + text.Safe(string(st.Phase), " ")
			if durations && st.Time != nil {
				label += " " + widget.Milliseconds(st.Time.DurationMS, s.Glyphs)
			}
			label += attempts
		}
		link := ""
		if i+1 < len(steps) {
			link = " " + s.Glyphs.LinkTodo + " "
			if st.Status == ace.StatusDone {
				link = " " + s.Glyphs.Link + " "
			}
		}
		if text.Width(label)+text.Width(link) > l.Rest() {
			return false
		}
		l.Add(m.Ink, label).Add(s.Border, link)
	}
	return true
}

// attemptsLabel returns the number of attempts of a phase and the wait for the next one, or "" for a
// phase with a single attempt.
func attemptsLabel(d *histories.Detail, st ace.StepState, now time.Time, g theme.Glyphs) string {
	n := int32(0)
	if st.Time != nil {
		n = st.Time.Attempt
	}
	if a := activityOf(d, st.Phase); a != nil {
		n = max(n, a.Attempt)
	}
	wait := ""
	if p := pendingOf(d, st.Phase); p != nil {
		n = max(n, p.Attempt)
		if p.Next.After(now) {
			wait = " in " + text.Span(p.Next.Sub(now)+time.Second)
		}
	}
	if n < 2 {
		return ""
	}
	return " " + g.Retry + ace.Number(n) + wait
}

func stepMark(status string, s theme.Styles) theme.Mark {
	switch status {
	case ace.StatusDone:
		return theme.Mark{Glyph: s.Glyphs.Success, Word: status, Ink: s.Success}
	case ace.StatusRunning:
		return theme.Mark{Glyph: s.Glyphs.Running, Word: status, Ink: s.Running}
	case ace.StatusFailed:
		return s.Status(string(ace.Failed))
	case ace.StatusCanceled:
		return s.Status(string(ace.Canceled))
	case ace.StatusTerminated, ace.StatusTimedOut:
		return theme.Mark{Glyph: s.Glyphs.Failed, Word: status, Ink: s.Failed}
	}
	return theme.Mark{Glyph: s.Glyphs.Pending, Word: status, Ink: s.Muted}
}

// emptyLines explains why no run is shown.
func emptyLines(nav *console.Navigation, listing *console.Listing, g theme.Glyphs) []string {
	switch {
	case nav.Selected.Ok:
		return []string{"reading " + console.NameOf(nav.Selected.Run) + g.Ellipsis}
	case listing.Runs.Query != "" && len(listing.Runs.Rows) == 0:
		return []string{"no run matches " + text.Safe(listing.Runs.Query, " "), "/ changes the filter"}
	}
	return []string{"no run is selected", "press 1 to choose one"}
}

// verdict returns the mark of the verdict on the answer. Its word is a short sentence.
func verdict(d *histories.Detail, s theme.Styles) theme.Mark {
	m := s.Verdict(string(d.Phase.Verdict))
	if d.Phase.Verdict == ace.Wrong && d.Input.Label != nil {
		m.Word += ": answered " + quoted(d.Phase.Answer) + ", expected " + quoted(*d.Input.Label)
	}
	m.Word = text.Safe(m.Word, " ")
	return m
}
