package run

import (
	"strings"
	"time"

	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// known adds a row for each field that has a value.
func (b *rowBuilder) known(kind ItemKind, fields []runners.CourseField) {
	for i, f := range fields {
		if f.Value != "" || !f.At.IsZero() {
			b.add(Item{kind, b.at, int32(i)})
		}
	}
}

// courseField is what a row of a run of a blueprint is about.
func courseField(d *histories.Detail, it Item) runners.CourseField {
	if d.Course == nil {
		return runners.CourseField{}
	}
	list := runners.CourseFields(d.Course)
	if it.Kind == itemResult {
		list = runners.ResultFields(d.Course)
	}
	if int(it.N) >= len(list) {
		return runners.CourseField{}
	}
	return list[it.N]
}

// courseLabel is the width of the names of fields.
const courseLabel = 13

// course is one field in a row: the first line of its value, of JSON all that there is room
// for.
func (r *RowDrawer) course(p *Pieces, f runners.CourseField) {
	ink := widget.Unless(!f.Bad, r.S.Text, r.S.Error)
	value, more := strings.TrimSpace(f.Value), ""
	if n := strings.Count(value, "\n"); n > 0 {
		more = " (" + widget.Counted(n+1, "line") + ")"
		if value[0] != '{' && value[0] != '[' {
			value, _, _ = strings.Cut(value, "\n")
		}
	}
	p.add(r.S.Muted, text.Fit(f.Name, courseLabel, "")).add(ink, text.Cut(strings.Join(strings.Fields(oneLineOf(value)), " "), max(r.Width-courseLabel-text.Width(more)-1, 8), r.S.Glyphs.Ellipsis)).
		add(r.S.Muted, more).add(r.S.Muted, momentText(f.At, r.Now, r.Loc, value != ""))
}

// momentText is a time of day and how far it is from now.
func momentText(at, now time.Time, loc *time.Location, after bool) string {
	if at.IsZero() {
		return ""
	}
	said := at.In(loc).Format("15:04:05")
	if at.Before(now) {
		said += ", " + text.Span(now.Sub(at)) + " ago"
	} else {
		said += ", in " + text.Span(at.Sub(now))
	}
	if after {
		return " " + said
	}
	return said
}

// maxCourseLines bounds a field's lines among the facts; its row opens all of it.
const maxCourseLines = 12

// course writes what is known of a run of a blueprint, and what it gave.
func course(w *widget.Writer, d *histories.Detail) {
	if d.Course == nil {
		return
	}
	for _, part := range []struct {
		title  string
		fields []runners.CourseField
	}{{"Run", runners.CourseFields(d.Course)}, {"Result", runners.ResultFields(d.Course)}} {
		if len(part.fields) == 0 {
			continue
		}
		w.Section(part.title, "")
		for _, f := range part.fields {
			courseFact(w, f)
		}
	}
}

func courseFact(w *widget.Writer, f runners.CourseField) {
	if f.Value == "" && f.At.IsZero() {
		return
	}
	before := len(w.Lines)
	w.Prose(" "+text.Fit(f.Name, courseLabel, ""), widget.Unless(!f.Bad, w.S.Text, w.S.Error), strings.TrimRight(f.Value, "\n")+momentText(f.At, w.Now, w.Loc, f.Value != ""))
	if over := len(w.Lines) - before - maxCourseLines; over > 0 {
		w.Lines = w.Lines[:before+maxCourseLines]
		w.Say(w.S.Muted, text.Spaces(courseLabel+1)+"("+widget.Counted(over, "more line")+": enter shows them)")
	}
}

// shownLog is how many lines of the log of a run of a blueprint stand among its rows.
const shownLog = 200

// logOf is the line of the log that a row is about; one that fell out of it is empty.
func logOf(d *histories.Detail, it Item) runs.LogLine {
	if i := int(it.N) - d.LogDropped; i >= 0 && i < len(d.Log) {
		return d.Log[i]
	}
	return runs.LogLine{}
}

func (r *RowDrawer) logged(p *Pieces, l runs.LogLine) {
	at := ""
	if !l.At.IsZero() {
		at = l.At.In(r.Loc).Format("15:04:05")
	}
	ink := widget.Unless(l.Kind != "error", r.S.Text, r.S.Error)
	p.add(r.S.Muted, text.Fit(at, 9, "")).add(kindInk(l.Kind, r.S), text.Fit(text.Safe(l.Kind, " "), 7, "")).add(ink, text.Safe(widget.Bounded(l.Text, r.Width), " "))
}

// courseLinks are the sessions and the run that a run of a blueprint belongs to.
func courseLinks(d *histories.Detail) (links []link) {
	if d.Course == nil {
		return nil
	}
	in := d.Course.Input
	session := func(what, id string) {
		if id != "" {
			w := sessions.SessionWorkflowID(id)
			links = append(links, link{what, runs.Run{WorkflowID: w, TaskID: w, Type: sessions.SessionWorkflow}})
		}
	}
	session("parent session", in.ParentSessionID)
	if !in.IsProgram() {
		session("its session", in.SessionID)
	}
	if in.ParentRunID != "" {
		links = append(links, link{"parent run", runners.BlueprintRun(in.ParentRunID)})
	}
	return links
}

// courseGoesTo is the run that a field names.
func courseGoesTo(d *histories.Detail, field string) (runs.Run, bool) {
	what := map[string]string{"parent": "parent session", "session": "its session", "parent run": "parent run"}[field]
	for _, l := range courseLinks(d) {
		if l.what == what {
			return l.run, true
		}
	}
	return runs.Run{}, false
}

// isSession tells whether a run is an agent's session on the engine.
func isSession(r runs.Run) bool { return r.Type == sessions.SessionWorkflow }
