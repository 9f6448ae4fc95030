package run

import (
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

func blueprintRows(b *lister, d *histories.Detail) {
	if d.BlueprintRun != nil {
		addFields(b, d, "blueprint", 0, runners.Fields(d.BlueprintRun))
	}
}

func resultRows(b *lister, d *histories.Detail) {
	if d.BlueprintRun != nil {
		addFields(b, d, "result", d.CloseEvent, runners.ResultFields(d.BlueprintRun))
	}
}

// addFields adds a row for each field that has a value.
func addFields(b *lister, d *histories.Detail, kind string, event int64, fields []runners.Field) {
	for i := range fields {
		if f := &fields[i]; f.Value != "" || !f.At.IsZero() {
			b.add(kind, i, blueprintFieldRow{textRow{f.Name, f.Value, event}, d, f})
		}
	}
}

// blueprintFieldRow is one field of a blueprint run or of its result.
type blueprintFieldRow struct {
	textRow
	d *histories.Detail
	f *runners.Field
}

// fieldNameWidth is the width of the names of fields.
const fieldNameWidth = 13

// Draw shows the first line of a value, of JSON as much as fits.
func (r blueprintFieldRow) Draw(l *line) {
	value, more := strings.TrimSpace(r.text), ""
	if n := strings.Count(value, "\n"); n > 0 {
		more = " (" + ace.Count(n+1, "line") + ")"
		if value[0] != '{' && value[0] != '[' {
			value, _, _ = strings.Cut(value, "\n")
		}
	}
	value = strings.Join(strings.Fields(oneLine(value)), " ")
	space := max(l.Width-fieldNameWidth-text.Width(more)-1, 8)
	l.add(l.S.Muted, text.Fit(r.name, fieldNameWidth, "")).
		add(widget.If(!r.f.Bad, l.S.Text, l.S.Error), text.Cut(value, space, l.S.Glyphs.Ellipsis)).
		add(l.S.Muted, more).add(l.S.Muted, r.moment(l.Now, l.Loc))
}

// moment returns the time of a field and how far it is from now, or "" for a field without one.
func (r blueprintFieldRow) moment(now time.Time, loc *time.Location) string {
	if r.f.At.IsZero() {
		return ""
	}
	summary := r.f.At.In(loc).Format("15:04:05")
	if r.f.At.Before(now) {
		summary += ", " + text.Span(now.Sub(r.f.At)) + " ago"
	} else {
		summary += ", in " + text.Span(r.f.At.Sub(now))
	}
	if strings.TrimSpace(r.text) != "" {
		return " " + summary
	}
	return summary
}

func (r blueprintFieldRow) Inspect(w *inspection) {
	w.Prose(" ", w.S.Text, r.text)
	w.time("at", r.f.At)
	w.refs(r.f.Refs)
}

func (r blueprintFieldRow) failed() bool { return r.f.Bad }

// target returns the run that the field names.
func (r blueprintFieldRow) target() (runs.Run, bool) {
	what := map[string]string{"parent": "parent session", "session": "session",
		"parent run": "parent run"}[r.name]
	for _, l := range blueprintLinks(r.d) {
		if l.what == what {
			return l.run, true
		}
	}
	return runs.Run{}, false
}

// maxLogRows bounds the log lines of a blueprint run on the run screen.
const maxLogRows = 200

func logRows(b *lister, d *histories.Detail) {
	if d.BlueprintRun == nil {
		return
	}
	for i := max(len(d.Log)-maxLogRows, 0); i < len(d.Log); i++ {
		b.add("log", d.LogDropped+i, logRow{textRow{"line", d.Log[i].Text, d.Log[i].Event}, d.Log[i]})
	}
}

func logRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	if d.LogDropped+len(d.Log) > maxLogRows {
		return "the newest " + ace.Number(maxLogRows) +
			" lines, with the output of the program; 1 and tab show more", s.Muted
	}
	return "with the output of the program", s.Muted
}

// logRow is a line of the log of a blueprint run.
type logRow struct {
	textRow
	line runs.LogLine
}

func (r logRow) Draw(l *line) {
	at := ""
	if !r.line.At.IsZero() {
		at = l.clock(r.line.At)
	}
	l.add(l.S.Muted, text.Fit(at, 9, "")).add(kindInk(r.line.Kind, l.S),
		text.Fit(text.Safe(r.line.Kind, " "), 7, "")).
		add(widget.If(!r.failed(), l.S.Text, l.S.Error), text.Safe(widget.Bounded(r.text, l.Width), " "))
}

func (r logRow) failed() bool { return r.line.Kind == "error" }

// blueprintLinks returns the sessions and the run that a blueprint run belongs to.
func blueprintLinks(d *histories.Detail) (links []linkRow) {
	if d.BlueprintRun == nil {
		return nil
	}
	in := d.BlueprintRun.Input
	session := func(what, id string) {
		if id != "" {
			w := session.WorkflowID(id)
			links = append(links, newLinkRow(what,
				runs.Run{WorkflowID: w, TaskID: w, Type: session.Workflow}))
		}
	}
	session("parent session", in.ParentSessionID)
	if !in.IsProgram() {
		session("session", in.SessionID)
	}
	if in.ParentRunID != "" {
		links = append(links, newLinkRow("parent run", runners.BlueprintRun(in.ParentRunID)))
	}
	return links
}

// isSession reports whether a run is an agent session.
func isSession(r runs.Run) bool { return r.Type == session.Workflow }
