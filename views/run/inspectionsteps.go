package run

import (
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// failure is what went wrong, with the chain of what caused it.
func (w *inspection) failure() {
	trouble(w.Writer, w.d)
	if a := failedActivity(w.d); a != nil {
		w.Say(w.S.Text, "")
		w.field("activity", a.Name)
		w.number("attempt", int64(a.Attempt))
		w.field("retry", a.Retry)
	}
	chain := causes(w.d)
	if len(chain) == 0 {
		return
	}
	w.Section("Chain of causes", "outermost first")
	for i, c := range chain {
		final := ""
		if c.Final {
			final = ", not to be retried"
		}
		w.End(w.Line().Add(w.S.Muted, " "+text.Spaces(min(i, 8))).Add(w.S.Strong, causeText(c)).Add(w.S.Muted, final))
		w.Prose(" "+text.Spaces(min(i, 8)+2), w.S.Error, c.Message)
		if c.StackTrace != "" {
			w.Prose(" "+text.Spaces(min(i, 8)+2), w.S.Muted, c.StackTrace)
		}
	}
}

func (w *inspection) pendingWhole(p histories.PendingActivity) {
	w.field("activity", p.Type)
	w.field("state", p.State)
	w.field("attempt", attemptText(p))
	w.when("since", p.Since)
	if p.Next.After(w.Now) {
		w.field("next", "in "+text.Span(p.Next.Sub(w.Now)+time.Second))
	}
	w.field("worker", p.Worker)
	if p.LastError == "" {
		return
	}
	w.Section("Last error", "")
	w.Prose(" ", w.S.Error, p.LastError)
	w.chain(p.Causes)
}

func (w *inspection) chain(chain []histories.Cause) {
	for i, c := range chain {
		if i > 0 || c.Kind != "application" {
			w.Prose(" "+text.Spaces(min(i, 8)), w.S.Muted, causeText(c)+": "+c.Message)
		}
		if c.StackTrace != "" {
			w.Prose("  "+text.Spaces(min(i, 8)), w.S.Muted, c.StackTrace)
		}
	}
}

// server says who serves a step, and how to come to the run that did.
func (w *inspection) server(st ace.StepState) {
	w.field("served by", runners.Server(w.d.Input, st))
	of, ok := runners.ServedBy(st)
	if !ok {
		return
	}
	w.field("its run", of.TaskID)
	w.field("runner", st.Served.Runner)
	w.hint("o", "goes to that run; backspace leads back")
}

func (w *inspection) phaseWhole(st ace.StepState) {
	m := stepMark(st.Status, w.S)
	l := w.Line().Add(m.Ink, " "+m.Glyph+" "+text.Safe(string(st.Phase), " ")+" "+text.Safe(st.Status, " "))
	if st.Time != nil {
		l.Add(w.S.Muted, "  "+widget.TookMS(st.Time.DurationMS, w.S.Glyphs))
	}
	w.End(l)
	w.server(st)
	if st.Usage != nil {
		w.field("used", usageText(*st.Usage, w.S.Glyphs))
	}
	if v := st.Verdict; v != nil {
		w.field("answer", VerdictText(v))
	}
	if st.Time != nil {
		w.field("worker", st.Time.Worker)
	}
	if p := pendingOf(w.d, st.Phase); p != nil {
		w.pendingWhole(*p)
	}
	if a := activityOf(w.d, st.Phase); a != nil {
		w.activityWhole(*a)
	}
}

// VerdictText is how a model's answer was read, in words.
func VerdictText(v *ace.Verdict) string {
	said := v.String()
	if said == "" {
		said = "as asked for"
	}
	if v.Attempts > 1 {
		said += " (" + strconv.Itoa(v.Attempts) + " answers)"
	}
	return text.Safe(said, " ")
}

func (w *inspection) activityWhole(a histories.Activity) {
	w.field("activity", a.Name)
	w.when("scheduled", a.Scheduled)
	w.when("last start", a.Started)
	w.when("ended", a.Closed)
	if a.Attempt > 1 {
		w.field("attempts", strconv.Itoa(int(a.Attempt))+", "+widget.Took(a.Waited(), w.S.Glyphs)+" of failing and waiting before the last")
	}
	w.field("worker", a.Worker)
	w.field("events", strings.Join(eventIDs(a.ScheduledEvent, a.StartedEvent, a.ClosedEvent), ", "))
	if a.LastError != nil {
		w.Section("The attempt before failed", text.Safe(a.LastError.Type, " "))
		w.Prose(" ", w.S.Error, a.LastError.Message)
	}
	if a.Failure != nil {
		w.Section("Failed", text.Safe(a.Retry, " "))
		w.Prose(" ", w.S.Error, a.Failure.Message)
		w.chain(a.Causes)
	}
}

func eventIDs(ids ...int64) (list []string) {
	for _, id := range ids {
		if id != 0 {
			list = append(list, text.Count(id))
		}
	}
	return list
}
