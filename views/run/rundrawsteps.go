package run

import (
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// Phase is one step: its state, how long it took, its attempts, and when it ran.
func (r *RowDrawer) Phase(p *Pieces, st ace.StepState) {
	m, g := stepMark(st.Status, r.S), r.S.Glyphs
	a, pend := activityOf(r.D, st.Phase), pendingOf(r.D, st.Phase)
	if pend != nil && pend.Attempt > 1 {
		m = r.S.Retry()
	}
	name := 10
	if r.D.Course != nil {
		name = 18
	}
	p.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(string(st.Phase), " "), name, g.Ellipsis))
	p.add(r.S.Text, text.FitLeft(stepTook(st, a, r.Now, g), 8, "")+" ")
	if st.Reused {
		p.add(r.S.Muted, "taken over from the run that this one was forked from")
		return
	}
	if r.bars {
		r.timeBar(p, a, m.Ink)
	}
	r.attempts(p, st, a, pend)
	r.server(p, st)
	if v := st.Verdict; v != nil && v.Parse != ace.ParseClean && v.Parse != ace.ParseExtracted {
		p.add(r.S.Warning, "  answer "+text.Safe(v.String(), " "))
	}
}

// server says who serves a step, and by which run.
func (r *RowDrawer) server(p *Pieces, st ace.StepState) {
	by := runners.Server(r.D.Input, st)
	if by == "" {
		return
	}
	p.add(r.S.Muted, "  "+text.Safe(by, " "))
	if of, ok := runners.ServedBy(st); ok {
		p.add(r.S.Accent, " "+r.S.Glyphs.Arrow+" "+text.Safe(of.TaskID, " "))
	}
}

// stepTook is how long a step's last attempt took, or has taken.
func stepTook(st ace.StepState, a *histories.Activity, now time.Time, g theme.Glyphs) string {
	switch {
	case st.Time != nil:
		return widget.TookMS(st.Time.DurationMS, g)
	case a != nil && !a.Started.IsZero() && !a.Closed.IsZero():
		return widget.Took(a.Closed.Sub(a.Started), g)
	case a != nil && st.Status == ace.StatusRunning:
		return text.Span(now.Sub(a.Scheduled))
	}
	return ""
}

// attempts tells of attempts that failed and of the waiting between them.
func (r *RowDrawer) attempts(p *Pieces, st ace.StepState, a *histories.Activity, pend *histories.PendingActivity) {
	g := r.S.Glyphs
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
		p.add(r.S.Retrying, " "+g.Retry+" attempt "+attemptText(*pend))
		if pend.Next.After(r.Now) {
			p.add(r.S.Muted, ", next in "+text.Span(pend.Next.Sub(r.Now)+time.Second))
		}
		last = pend.LastError
	case n > 1:
		p.add(r.S.Retrying, " "+g.Retry+" "+strconv.Itoa(int(n))+" attempts")
		if a != nil && a.Waited() > 0 {
			p.add(r.S.Muted, ", "+widget.Took(a.Waited(), g)+" failing and waiting before the last")
		}
		if a != nil && a.LastError != nil {
			last = a.LastError.Message
		}
	}
	if a != nil && a.Failure != nil {
		p.add(r.S.Failed, " "+g.Failed+" "+oneLineOf(a.Failure.Message))
		if a.Retry != "" {
			p.add(r.S.Muted, " ("+a.Retry+")")
		}
		return
	}
	if last != "" {
		p.add(r.S.Muted, "; ").add(r.S.Error, oneLineOf(last))
	}
}

// barWidth is the width of the time bars, in cells: the whole run from left to right.
const barWidth = 28

// timeBar is when an activity ran within the run: light where it waited or failed before
// its last attempt, full where that ran.
func (r *RowDrawer) timeBar(p *Pieces, a *histories.Activity, ink theme.Ink) {
	if a == nil || r.D.Start.IsZero() {
		p.add(r.S.Border, text.Spaces(barWidth))
		return
	}
	end := r.D.Close
	if end.IsZero() {
		end = r.Now
	}
	whole := max(end.Sub(r.D.Start), time.Millisecond)
	cell := func(t time.Time) int {
		if t.IsZero() {
			t = end
		}
		return widget.Clamp(int(float64(t.Sub(r.D.Start))/float64(whole)*barWidth), 0, barWidth-1)
	}
	from, run, to := cell(a.Scheduled), cell(a.Started), cell(a.Closed)
	run, to = max(run, from), max(to, run, from)
	p.add(r.S.Border, text.Spaces(from)).add(r.S.Border, strings.Repeat(r.S.Glyphs.Empty, run-from))
	p.add(ink, strings.Repeat(r.S.Glyphs.Full, to-run+1)).add(r.S.Border, text.Spaces(barWidth-1-to))
}

func (r *RowDrawer) activity(p *Pieces, a histories.Activity) {
	m, g := stepMark(ace.StatusDone, r.S), r.S.Glyphs
	switch {
	case a.Failure != nil:
		m = r.S.Status(string(a.Failure.Kind))
	case a.Closed.IsZero():
		m = stepMark(ace.StatusRunning, r.S)
	}
	p.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(a.Name, " "), 20, g.Ellipsis))
	spent := ""
	if !a.Closed.IsZero() && !a.Started.IsZero() {
		spent = widget.Took(a.Closed.Sub(a.Started), g)
	}
	p.add(r.S.Text, text.FitLeft(spent, 8, "")+" ")
	if r.bars {
		r.timeBar(p, &a, m.Ink)
	}
	r.attempts(p, ace.StepState{}, &a, nil)
}

func (r *RowDrawer) pending(p *Pieces, a histories.PendingActivity) {
	m := r.S.Status(string(ace.Running))
	if a.Attempt > 1 {
		m = r.S.Retry()
	}
	p.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(a.Type, " "), 20, r.S.Glyphs.Ellipsis)).add(m.Ink, " attempt "+attemptText(a))
	switch {
	case a.Next.After(r.Now):
		p.add(r.S.Muted, ", waiting, next in "+text.Span(a.Next.Sub(r.Now)+time.Second))
	case !a.Since.IsZero():
		p.add(r.S.Muted, ", "+text.Safe(a.State, " ")+" for "+text.Span(r.Now.Sub(a.Since)))
	}
	if a.LastError != "" {
		p.add(r.S.Muted, "  last error: ").add(r.S.Error, oneLineOf(a.LastError))
	}
}

func attemptText(a histories.PendingActivity) string {
	said := text.Count(int64(a.Attempt))
	if a.MaxAttempts > 0 {
		said += " of " + text.Count(int64(a.MaxAttempts))
	}
	return said
}
