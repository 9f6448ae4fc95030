package run

import (
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

func troubleRows(b *lister, d *histories.Detail) {
	event := d.CloseEvent
	if a := failedActivity(d); event == 0 && a != nil {
		event = a.Event()
	}
	if f := failureOf(d); f != nil {
		b.add("failure", 0, failureRow{textRow{"failure", f.Message, event}, f})
	}
	for i, c := range causes(d) {
		b.add("cause", i, causeRow{textRow{"cause", strings.TrimSpace(c.Message + "\n" + c.StackTrace),
			event}, c})
	}
	if d.Err != "" {
		b.add("reading", 0, readErrorRow{textRow{name: "error", text: d.Err}})
	}
	if len(d.Missing) > 0 {
		b.add("missing", 0, missingRow{textRow{name: "missing queries", text: strings.Join(d.Missing, "\n")}})
	}
	for i, note := range d.Unread() {
		b.add("unread", i, unreadRow{textRow{name: "unread", text: note}})
	}
	for i, x := range d.Encoded {
		b.add("encoded", i, encodedRow{textRow{"payload", x.What + " " + x.Encoding, x.Event}, x})
	}
}

func troubleRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	return strings.TrimPrefix(widget.Dropped(d.EncodedDropped), ", "), s.Muted
}

// causes returns the chain of causes of a run's failure, or nil if the chain adds nothing to the failure.
func causes(d *histories.Detail) []histories.Cause {
	chain := d.Causes
	if a := failedActivity(d); len(chain) == 0 && a != nil {
		chain = a.Causes
	}
	f := failureOf(d)
	if len(chain) == 1 && f != nil && chain[0].Message == f.Message && chain[0].Retry == "" {
		return nil
	}
	return chain
}

// failureOf returns the failure of a run, or else that of an activity that the run survived, or nil.
func failureOf(d *histories.Detail) *ace.Failure {
	a := failedActivity(d)
	if d.Phase.Failure != nil || a == nil {
		return d.Phase.Failure
	}
	f := *a.Failure
	f.Type = strings.TrimSuffix(a.Name+": "+f.Type, ": ")
	return &f
}

// failedActivity returns the last activity that failed, or nil.
func failedActivity(d *histories.Detail) *histories.Activity {
	return lastActivity(d, func(a *histories.Activity) bool { return a.Failure != nil })
}

// activityOf returns the newest activity of a phase, or nil.
func activityOf(d *histories.Detail, p ace.Phase) *histories.Activity {
	return lastActivity(d, func(a *histories.Activity) bool { return a.Phase == p })
}

func lastActivity(d *histories.Detail, is func(*histories.Activity) bool) *histories.Activity {
	for i := len(d.Activities) - 1; i >= 0; i-- {
		if is(&d.Activities[i]) {
			return &d.Activities[i]
		}
	}
	return nil
}

// phaseEvent returns the event of the newest activity of a phase, or 0.
func phaseEvent(d *histories.Detail, p ace.Phase) int64 {
	if a := activityOf(d, p); a != nil {
		return a.Event()
	}
	return 0
}

// pendingOf returns the pending activity of a phase, or nil.
func pendingOf(d *histories.Detail, p ace.Phase) *histories.PendingActivity {
	for i := range d.Pending {
		if step, ok := ace.StepOf(d.Pending[i].Type); ok && step == p {
			return &d.Pending[i]
		}
	}
	return nil
}

type failureRow struct {
	textRow
	f *ace.Failure
}

func (r failureRow) Draw(l *line) {
	m := l.S.Status(string(r.f.Kind))
	l.add(m.Ink, m.Glyph+" "+console.OrDash(m.Word, l.S.Glyphs)+": ")
	if r.f.Type != "" {
		l.add(l.S.Muted, text.Safe(r.f.Type, " ")+": ")
	}
	l.add(l.S.Error, oneLine(r.f.Message))
}

func (r failureRow) Inspect(w *inspection) { w.failure() }
func (r failureRow) failed() bool          { return true }
func (r failureRow) forkPoint() string     { return "" }

// failure writes what went wrong, and the chain of causes.
func (w *inspection) failure() {
	var b lister
	troubleRows(&b, w.d)
	writeRows(w.Writer, b.rows, allRows)
	if a := failedActivity(w.d); a != nil {
		w.Say(w.S.Text, "")
		w.field("activity", a.Name)
		if a.Attempt != 0 {
			w.field("attempt", ace.Number(a.Attempt))
		}
		w.field("retry", a.Retry)
	}
	chain := causes(w.d)
	if len(chain) == 0 {
		return
	}
	w.Section("Chain of causes", "outermost first")
	for i, c := range chain {
		final := widget.If(c.Final, ", not retryable", "")
		indent := " " + text.Spaces(min(i, 8))
		w.End(w.Line().Add(w.S.Muted, indent).Add(w.S.Strong, causeText(c)).Add(w.S.Muted, final))
		w.Prose(indent+"  ", w.S.Error, c.Message)
		if c.Details != "" {
			w.Prose(indent+"  details ", w.S.Text, c.Details)
		}
		if c.StackTrace != "" {
			w.Prose(indent+"  ", w.S.Muted, c.StackTrace)
		}
	}
}

// causes writes a chain of causes below the message of the first.
func (w *inspection) causes(chain []histories.Cause) {
	for i, c := range chain {
		indent := " " + text.Spaces(min(i, 8))
		if i > 0 || c.Kind != "application" {
			w.Prose(indent, w.S.Muted, causeText(c)+": "+c.Message)
		}
		if c.StackTrace != "" {
			w.Prose(indent+" ", w.S.Muted, c.StackTrace)
		}
	}
}

// causeRow is a cause in the chain behind the failure.
type causeRow struct {
	textRow
	c histories.Cause
}

func (r causeRow) Draw(l *line) {
	l.add(l.S.Muted, "because "+l.S.Glyphs.Arrow+" "+causeText(r.c)+": ").add(l.S.Text, oneLine(r.c.Message))
}

func (r causeRow) Inspect(w *inspection) { w.failure() }
func (r causeRow) forkPoint() string     { return "" }

// causeText returns the kind of a failure and its retry state.
func causeText(c histories.Cause) string {
	var parts []string
	for _, t := range []string{c.Kind, c.Activity, c.Type, c.Retry} {
		if t != "" {
			parts = append(parts, text.Safe(t, " "))
		}
	}
	return strings.Join(parts, ", ")
}

// readErrorRow is an error in reading the run.
type readErrorRow struct{ textRow }

func (r readErrorRow) Draw(l *line) {
	l.add(l.S.Error, l.S.Glyphs.Failed+" reading: "+oneLine(r.text))
}
func (r readErrorRow) failed() bool { return true }

// missingRow lists the queries of the contract that the workflow does not answer.
type missingRow struct{ textRow }

func (r missingRow) Draw(l *line) {
	l.add(l.S.Warning, l.S.Glyphs.Unknown+" not answered by this workflow: "+text.Safe(r.text, ", "))
}

// unreadRow is a part of the run that could not be read.
type unreadRow struct{ textRow }

func (r unreadRow) Draw(l *line) {
	l.add(l.S.Warning, l.S.Glyphs.Unknown+" cannot read "+oneLine(r.text))
}

// encodedRow is a payload that cannot be read without its codec.
type encodedRow struct {
	textRow
	x histories.EncodedPayload
}

func (r encodedRow) Draw(l *line) {
	l.add(l.S.Warning, l.S.Glyphs.Unknown+" "+text.Safe(r.x.What, " "))
	l.add(l.S.Muted, " is "+text.Safe(r.x.Encoding, " ")+", "+widget.SizeText(int64(r.x.Size))+
		": not readable here (event "+ace.Number(r.event)+")")
	if r.x.Reason != "" {
		l.add(l.S.Muted, ", codec server: "+oneLine(r.x.Reason))
	}
}

func (r encodedRow) Inspect(w *inspection) {
	w.field("payload", r.x.What)
	w.field("encoding", r.x.Encoding)
	w.field("size", widget.SizeText(int64(r.x.Size)))
	w.Say(w.S.Text, "")
	w.Prose(" ", w.S.Muted, "This payload is not JSON. acescope cannot show it or use it. It is "+r.x.Why()+
		".")
}

func pendingRows(b *lister, d *histories.Detail) {
	for i := range d.Pending {
		b.add("pending", i, newPendingRow(d, &d.Pending[i]))
	}
}

// pendingRow is an activity that is scheduled, running or retried.
type pendingRow struct {
	textRow
	ages
	a *histories.PendingActivity
}

func newPendingRow(d *histories.Detail, p *histories.PendingActivity) pendingRow {
	r := pendingRow{textRow: textRow{name: "pending activity",
		text: strings.TrimSpace(p.Type + " " + p.LastError)}, a: p}
	open := func(a *histories.Activity) bool { return a.Name == p.Type && a.Closed.IsZero() }
	if a := lastActivity(d, open); a != nil {
		r.event = a.Event()
	}
	return r
}

func (r pendingRow) mark(s theme.Styles) theme.Mark {
	if r.a.Attempt > 1 {
		return s.Retry()
	}
	return s.Status(string(ace.Running))
}

func (r pendingRow) Draw(l *line) {
	m := r.mark(l.S)
	l.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(r.a.Type, " "), 20, l.S.Glyphs.Ellipsis)).
		add(m.Ink, " attempt "+attemptText(r.a))
	switch {
	case r.a.Next.After(l.Now):
		l.add(l.S.Muted, ", waiting, next in "+text.Span(r.a.Next.Sub(l.Now)+time.Second))
	case !r.a.Since.IsZero():
		l.add(l.S.Muted, ", "+text.Safe(r.a.State, " ")+" for "+text.Span(l.Now.Sub(r.a.Since)))
	}
	if r.a.LastError != "" {
		l.add(l.S.Muted, "  last error: ").add(l.S.Error, oneLine(r.a.LastError))
	}
}

func (r pendingRow) Inspect(w *inspection) {
	w.field("activity", r.a.Type)
	w.field("state", r.a.State)
	w.field("attempt", attemptText(r.a))
	w.time("since", r.a.Since)
	if r.a.Next.After(w.Now) {
		w.field("next", "in "+text.Span(r.a.Next.Sub(w.Now)+time.Second))
	}
	w.field("worker", r.a.Worker)
	w.field("heartbeat", r.a.Heartbeat)
	if r.a.LastError == "" {
		return
	}
	w.Section("Last error", "")
	w.Prose(" ", w.S.Error, r.a.LastError)
	w.causes(r.a.Causes)
}

func (r pendingRow) failed() bool { return r.a.LastError != "" }

func attemptText(a *histories.PendingActivity) string {
	if a.MaxAttempts > 0 {
		return ace.Number(a.Attempt) + " of " + ace.Number(a.MaxAttempts)
	}
	return ace.Number(a.Attempt)
}

func phaseRows(b *lister, d *histories.Detail) {
	if d.Flow != nil {
		return // the steps of a flow show their operations
	}
	for i := range d.Phase.Steps {
		b.add("phase", i, newPhaseRow(d, &d.Phase.Steps[i]))
	}
	for i := range d.Activities {
		if a := &d.Activities[i]; a.Phase == "" || len(d.Phase.Steps) == 0 {
			b.add("activity", i, activityRow{textRow{"activity", a.Name, a.Event()}, d, a})
		}
	}
}

func phasesTitle(d *histories.Detail, _ theme.Glyphs) string {
	switch {
	case len(d.Phase.Steps) == 0:
		return "Activities"
	case d.BlueprintRun != nil:
		return "Life cycle"
	}
	return "Phases"
}

func phasesRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	return strings.TrimPrefix(widget.Dropped(d.ActivitiesDropped), ", "), s.Muted
}

func (w *inspection) phases() {
	for i := range w.d.Phase.Steps {
		newPhaseRow(w.d, &w.d.Phase.Steps[i]).describe(w)
		w.Say(w.S.Text, "")
	}
}

// phaseRow is one phase: its state, duration, attempts, and when it ran.
type phaseRow struct {
	textRow
	ages
	d       *histories.Detail
	st      *ace.StepState
	a       *histories.Activity        // newest of the phase, or nil
	pending *histories.PendingActivity // of the phase, or nil
}

func newPhaseRow(d *histories.Detail, st *ace.StepState) phaseRow {
	return phaseRow{textRow: textRow{"phase", string(st.Phase), phaseEvent(d, st.Phase)}, d: d, st: st,
		a: activityOf(d, st.Phase), pending: pendingOf(d, st.Phase)}
}

func (r phaseRow) Draw(l *line) {
	st, g := r.st, l.S.Glyphs
	m, a, pending := stepMark(st.Status, l.S), r.a, r.pending
	if pending != nil && pending.Attempt > 1 {
		m = l.S.Retry()
	}
	name := widget.If(r.d.BlueprintRun != nil, 18, 10)
	l.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(string(st.Phase), " "), name, g.Ellipsis))
	l.add(l.S.Text, text.FitLeft(r.duration(l.Now, g), 8, "")+" ")
	if st.Reused {
		l.add(l.S.Muted, "reused from the original of this fork")
		return
	}
	if l.bars {
		l.timeBar(r.d, a, m.Ink)
	}
	attempt := int32(0)
	if st.Time != nil {
		attempt = st.Time.Attempt
	}
	l.attempts(attempt, a, pending)
	switch st.Status {
	case ace.StatusTerminated, ace.StatusTimedOut, ace.StatusUnfinished, ace.StatusNotReached:
		l.add(l.S.Muted, "  "+st.Status)
	}
	if by := runners.StepProvider(r.d.Input, *st); by != "" {
		l.add(l.S.Muted, "  "+text.Safe(by, " "))
		if of, ok := r.target(); ok {
			l.add(l.S.Accent, " "+g.Arrow+" "+text.Safe(of.TaskID, " "))
		}
	}
	if prompt := r.d.Input.Prompts.Of(st.Phase); prompt != nil {
		l.add(l.S.Muted, "  prompt "+text.Safe(prompt.String(), " "))
	}
	if v := st.Parsed; v != nil && v.Parse != ace.ParseClean && v.Parse != ace.ParseExtracted {
		l.add(l.S.Warning, "  answer "+text.Safe(v.String(), " "))
	}
}

// duration returns the duration of the last attempt of a phase, so far if it is running.
func (r phaseRow) duration(now time.Time, g theme.Glyphs) string {
	switch a := r.a; {
	case r.st.Time != nil:
		return widget.Milliseconds(r.st.Time.DurationMS, g)
	case a != nil && !a.Started.IsZero() && !a.Closed.IsZero():
		return widget.Duration(a.Closed.Sub(a.Started), g)
	case a != nil && r.st.Status == ace.StatusRunning:
		return text.Span(now.Sub(a.Scheduled))
	}
	return ""
}

func (r phaseRow) Inspect(w *inspection) {
	r.describe(w)
	w.refs(r.refs())
}

// describe writes everything except the content of the artifact.
func (r phaseRow) describe(w *inspection) {
	st := r.st
	m := stepMark(st.Status, w.S)
	l := w.Line().Add(m.Ink, " "+m.Glyph+" "+text.Safe(string(st.Phase), " ")+" "+text.Safe(st.Status, " "))
	if st.Time != nil {
		l.Add(w.S.Muted, "  "+widget.Milliseconds(st.Time.DurationMS, w.S.Glyphs))
	}
	w.End(l)
	w.field("served by", runners.StepProvider(r.d.Input, *st))
	if of, ok := r.target(); ok {
		w.field("its run", of.TaskID)
		w.field("runner", st.Served.Runner)
		w.hint("O", "goes to that run; backspace leads back")
	}
	if prompt := r.d.Input.Prompts.Of(st.Phase); prompt != nil || len(st.CallLogs()) > 0 {
		w.field("prompt", prompt.String())
	}
	if st.Usage != nil {
		w.field("usage", console.UsageText(*st.Usage))
	}
	if v := st.Parsed; v != nil {
		w.field("answer", parseText(v))
	}
	for _, log := range st.CallLogs() {
		w.field("requests", console.RequestsText(log))
	}
	if st.Time != nil {
		w.field("worker", st.Time.Worker)
	}
	if r.pending != nil {
		pendingRow{a: r.pending}.Inspect(w)
	}
	if r.a != nil {
		activityRow{a: r.a}.Inspect(w)
	}
}

func (r phaseRow) refs() (refs []ace.Ref) {
	for _, log := range r.st.CallLogs() {
		refs = append(refs, log.Ref)
	}
	return refs
}

func (r phaseRow) title() string            { return "phase " + text.Safe(r.text, " ") }
func (r phaseRow) forkPoint() string        { return "phase=" + r.text }
func (r phaseRow) target() (runs.Run, bool) { return runners.ServedBy(*r.st) }

func (r phaseRow) failed() bool {
	return r.st.Status == ace.StatusFailed || r.a != nil && (r.a.LastError != nil || r.a.Failure != nil)
}

func (r phaseRow) find(has func(string) bool) bool {
	in := func(f *ace.Failure) bool { return f != nil && has(f.Message) }
	return has(r.text) || r.a != nil && (in(r.a.Failure) || in(r.a.LastError))
}

// parseText says how the answer of a model was parsed.
func parseText(v *ace.ParseReport) string {
	summary := v.String()
	if summary == "" {
		summary = "in the requested format"
	}
	summary += widget.If(v.Attempts > 1, " ("+ace.Count(v.Attempts, "answer")+")", "")
	return text.Safe(summary, " ")
}

// attempts writes the failed attempts, the time spent on them, and the last error.
func (l *line) attempts(n int32, a *histories.Activity, pending *histories.PendingActivity) {
	g := l.S.Glyphs
	if a != nil {
		n = max(n, a.Attempt)
	}
	last := ""
	switch {
	case pending != nil && pending.Attempt > 1:
		l.add(l.S.Retrying, " "+g.Retry+" attempt "+attemptText(pending))
		if pending.Next.After(l.Now) {
			l.add(l.S.Muted, ", next in "+text.Span(pending.Next.Sub(l.Now)+time.Second))
		}
		last = pending.LastError
	case n > 1:
		l.add(l.S.Retrying, " "+g.Retry+" "+ace.Count(n, "attempt"))
		if a != nil && a.Waited() > 0 {
			l.add(l.S.Muted, ", "+widget.Duration(a.Waited(), g)+" before the last")
		}
		if a != nil && a.LastError != nil {
			last = a.LastError.Message
		}
	}
	if a != nil && a.Failure != nil {
		l.add(l.S.Failed, " "+g.Failed+" "+oneLine(a.Failure.Message))
		if a.Retry != "" {
			l.add(l.S.Muted, " ("+a.Retry+")")
		}
		return
	}
	if last != "" {
		l.add(l.S.Muted, "; ").add(l.S.Error, oneLine(last))
	}
}

// timeBarWidth is the width of a time bar, in cells: the whole run from left to right.
const timeBarWidth = 28

// timeBar draws when an activity ran within the run: light before its last attempt began, full during that
// attempt.
func (l *line) timeBar(d *histories.Detail, a *histories.Activity, ink theme.Ink) {
	if a == nil || d.Start.IsZero() {
		l.add(l.S.Border, text.Spaces(timeBarWidth))
		return
	}
	end := d.Close
	if end.IsZero() {
		end = l.Now
	}
	whole := max(end.Sub(d.Start), time.Millisecond)
	cell := func(t time.Time) int {
		if t.IsZero() {
			t = end
		}
		return widget.Clamp(int(float64(t.Sub(d.Start))/float64(whole)*timeBarWidth), 0, timeBarWidth-1)
	}
	from, run, to := cell(a.Scheduled), cell(a.Started), cell(a.Closed)
	run, to = max(run, from), max(to, run, from)
	l.add(l.S.Border, text.Spaces(from)).add(l.S.Border, strings.Repeat(l.S.Glyphs.Empty, run-from))
	l.add(ink, strings.Repeat(l.S.Glyphs.Full, to-run+1)).add(l.S.Border, text.Spaces(timeBarWidth-1-to))
}

// activityRow is an activity that belongs to no phase.
type activityRow struct {
	textRow
	d *histories.Detail
	a *histories.Activity
}

func (r activityRow) Draw(l *line) {
	m, g := stepMark(ace.StatusDone, l.S), l.S.Glyphs
	switch {
	case r.a.Failure != nil:
		m = l.S.Status(string(r.a.Failure.Kind))
	case r.a.Closed.IsZero():
		m = stepMark(ace.StatusRunning, l.S)
	}
	l.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(r.a.Name, " "), 20, g.Ellipsis))
	duration := ""
	if !r.a.Closed.IsZero() && !r.a.Started.IsZero() {
		duration = widget.Duration(r.a.Closed.Sub(r.a.Started), g)
	}
	l.add(l.S.Text, text.FitLeft(duration, 8, "")+" ")
	if l.bars {
		l.timeBar(r.d, r.a, m.Ink)
	}
	l.attempts(0, r.a, nil)
}

func (r activityRow) Inspect(w *inspection) {
	a := r.a
	w.field("activity", a.Name)
	w.time("scheduled", a.Scheduled)
	w.time("last start", a.Started)
	w.time("closed", a.Closed)
	if a.Attempt > 1 {
		w.field("attempts", strconv.Itoa(int(a.Attempt))+", "+widget.Duration(a.Waited(), w.S.Glyphs)+
			" before the last")
	}
	w.field("worker", a.Worker)
	var events []string
	for _, id := range []int64{a.ScheduledEvent, a.StartedEvent, a.ClosedEvent} {
		if id != 0 {
			events = append(events, ace.Number(id))
		}
	}
	w.field("events", strings.Join(events, ", "))
	if a.LastError != nil {
		w.Section("Error of the previous attempt", text.Safe(a.LastError.Type, " "))
		w.Prose(" ", w.S.Error, a.LastError.Message)
	}
	if a.Failure != nil {
		w.Section("Failure", text.Safe(a.Retry, " "))
		w.Prose(" ", w.S.Error, a.Failure.Message)
		w.causes(a.Causes)
	}
}

func (r activityRow) failed() bool { return r.a.Failure != nil || r.a.LastError != nil }
