package views

import (
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// phase is one step: its state, how long it took, its attempts, and when it ran.
func (r *rowDrawer) phase(p *pieces, st ace.StepState) {
	m, g := stepMark(st.Status, r.s), r.s.Glyphs
	a, pend := activityOf(r.d, st.Phase), pendingOf(r.d, st.Phase)
	if pend != nil && pend.Attempt > 1 {
		m = r.s.Retry()
	}
	name := 10
	if r.d.Course != nil {
		name = 18
	}
	p.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(string(st.Phase), " "), name, g.Ellipsis))
	p.add(r.s.Text, text.FitLeft(stepTook(st, a, r.now, g), 8, "")+" ")
	if st.Taken {
		p.add(r.s.Muted, "taken over from the run that this one was forked from")
		return
	}
	if r.bars {
		r.timeBar(p, a, m.Ink)
	}
	r.attempts(p, st, a, pend)
	r.server(p, st)
	if v := st.Verdict; v != nil && v.Parse != ace.ParseClean && v.Parse != ace.ParseExtracted {
		p.add(r.s.Warning, "  answer "+text.Safe(v.String(), " "))
	}
}

// server says who serves a step, and by which run.
func (r *rowDrawer) server(p *pieces, st ace.StepState) {
	by := sources.Server(r.d.Input, st)
	if by == "" {
		return
	}
	p.add(r.s.Muted, "  "+text.Safe(by, " "))
	if of, ok := sources.ServedBy(st); ok {
		p.add(r.s.Accent, " "+r.s.Glyphs.Arrow+" "+text.Safe(of.TaskID, " "))
	}
}

// stepTook is how long a step's last attempt took, or has taken.
func stepTook(st ace.StepState, a *sources.Activity, now time.Time, g theme.Glyphs) string {
	switch {
	case st.Time != nil:
		return tookMS(st.Time.DurationMS, g)
	case a != nil && !a.Started.IsZero() && !a.Closed.IsZero():
		return took(a.Closed.Sub(a.Started), g)
	case a != nil && st.Status == ace.StatusRunning:
		return text.Span(now.Sub(a.Scheduled))
	}
	return ""
}

// attempts tells of attempts that failed and of the waiting between them.
func (r *rowDrawer) attempts(p *pieces, st ace.StepState, a *sources.Activity, pend *sources.PendingActivity) {
	g := r.s.Glyphs
	n := int32(0)
	if st.Time != nil {
		n = st.Time.Attempt
	}
	if a != nil {
		n = max(n, a.Attempt)
	}
	last := ""
	switch {
	case pend != nil && pend.Attempt > 1:
		p.add(r.s.Retrying, " "+g.Retry+" attempt "+attemptText(*pend))
		if pend.Next.After(r.now) {
			p.add(r.s.Muted, ", next in "+text.Span(pend.Next.Sub(r.now)+time.Second))
		}
		last = pend.LastError
	case n > 1:
		p.add(r.s.Retrying, " "+g.Retry+" "+strconv.Itoa(int(n))+" attempts")
		if a != nil && a.Waited() > 0 {
			p.add(r.s.Muted, ", "+took(a.Waited(), g)+" failing and waiting before the last")
		}
		if a != nil && a.LastError != nil {
			last = a.LastError.Message
		}
	}
	if a != nil && a.Failure != nil {
		p.add(r.s.Failed, " "+g.Failed+" "+oneLineOf(a.Failure.Message))
		if a.Retry != "" {
			p.add(r.s.Muted, " ("+a.Retry+")")
		}
		return
	}
	if last != "" {
		p.add(r.s.Muted, "; ").add(r.s.Error, oneLineOf(last))
	}
}

// barWidth is the width of the time bars, in cells: the whole run from left to right.
const barWidth = 28

// timeBar is when an activity ran within the run: light where it waited or failed before
// its last attempt, full where that ran.
func (r *rowDrawer) timeBar(p *pieces, a *sources.Activity, ink theme.Ink) {
	if a == nil || r.d.Start.IsZero() {
		p.add(r.s.Border, text.Spaces(barWidth))
		return
	}
	end := r.d.Close
	if end.IsZero() {
		end = r.now
	}
	whole := max(end.Sub(r.d.Start), time.Millisecond)
	cell := func(t time.Time) int {
		if t.IsZero() {
			t = end
		}
		return clamp(int(float64(t.Sub(r.d.Start))/float64(whole)*barWidth), 0, barWidth-1)
	}
	from, run, to := cell(a.Scheduled), cell(a.Started), cell(a.Closed)
	run, to = max(run, from), max(to, run, from)
	p.add(r.s.Border, text.Spaces(from)).add(r.s.Border, strings.Repeat(r.s.Glyphs.Empty, run-from))
	p.add(ink, strings.Repeat(r.s.Glyphs.Full, to-run+1)).add(r.s.Border, text.Spaces(barWidth-1-to))
}

func (r *rowDrawer) activity(p *pieces, a sources.Activity) {
	m, g := stepMark(ace.StatusDone, r.s), r.s.Glyphs
	switch {
	case a.Failure != nil:
		m = r.s.Status(string(a.Failure.Kind))
	case a.Closed.IsZero():
		m = stepMark(ace.StatusRunning, r.s)
	}
	p.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(a.Name, " "), 20, g.Ellipsis))
	spent := ""
	if !a.Closed.IsZero() && !a.Started.IsZero() {
		spent = took(a.Closed.Sub(a.Started), g)
	}
	p.add(r.s.Text, text.FitLeft(spent, 8, "")+" ")
	if r.bars {
		r.timeBar(p, &a, m.Ink)
	}
	r.attempts(p, ace.StepState{}, &a, nil)
}

func (r *rowDrawer) pending(p *pieces, a sources.PendingActivity) {
	m := r.s.Status(string(ace.Running))
	if a.Attempt > 1 {
		m = r.s.Retry()
	}
	p.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(a.Type, " "), 20, r.s.Glyphs.Ellipsis)).add(m.Ink, " attempt "+attemptText(a))
	switch {
	case a.Next.After(r.now):
		p.add(r.s.Muted, ", waiting, next in "+text.Span(a.Next.Sub(r.now)+time.Second))
	case !a.Since.IsZero():
		p.add(r.s.Muted, ", "+text.Safe(a.State, " ")+" for "+text.Span(r.now.Sub(a.Since)))
	}
	if a.LastError != "" {
		p.add(r.s.Muted, "  last error: ").add(r.s.Error, oneLineOf(a.LastError))
	}
}

func attemptText(a sources.PendingActivity) string {
	said := text.Count(int64(a.Attempt))
	if a.MaxAttempts > 0 {
		said += " of " + text.Count(int64(a.MaxAttempts))
	}
	return said
}
