package views

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/tui"
	"acescope/tui/text"
)

// known adds a row for each field that has a value.
func (b *rowBuilder) known(kind itemKind, fields []sources.CourseField) {
	for i, f := range fields {
		if f.Value != "" || !f.At.IsZero() {
			b.add(item{kind, b.at, int32(i)})
		}
	}
}

// courseField is what a row of a run of a blueprint is about.
func courseField(d *sources.Detail, it item) sources.CourseField {
	if d.Course == nil {
		return sources.CourseField{}
	}
	list := sources.CourseFields(d.Course)
	if it.kind == itemResult {
		list = sources.ResultFields(d.Course)
	}
	if int(it.n) >= len(list) {
		return sources.CourseField{}
	}
	return list[it.n]
}

// courseLabel is the width of the names of fields.
const courseLabel = 13

// course is one field in a row: the first line of its value, of JSON all that there is room
// for.
func (r *rowDrawer) course(p *pieces, f sources.CourseField) {
	ink := unless(!f.Bad, r.s.Text, r.s.Error)
	value, more := strings.TrimSpace(f.Value), ""
	if n := strings.Count(value, "\n"); n > 0 {
		more = " (" + counted(n+1, "line") + ")"
		if value[0] != '{' && value[0] != '[' {
			value, _, _ = strings.Cut(value, "\n")
		}
	}
	p.add(r.s.Muted, text.Fit(f.Name, courseLabel, "")).add(ink, text.Cut(strings.Join(strings.Fields(oneLineOf(value)), " "), max(r.width-courseLabel-text.Width(more)-1, 8), r.s.Glyphs.Ellipsis)).
		add(r.s.Muted, more).add(r.s.Muted, momentText(f.At, r.now, r.loc, value != ""))
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
func (w *writer) course(d *sources.Detail) {
	if d.Course == nil {
		return
	}
	for _, part := range []struct {
		title  string
		fields []sources.CourseField
	}{{"Run", sources.CourseFields(d.Course)}, {"Result", sources.ResultFields(d.Course)}} {
		if len(part.fields) == 0 {
			continue
		}
		w.section(part.title, "")
		for _, f := range part.fields {
			w.courseFact(f)
		}
	}
}

func (w *writer) courseFact(f sources.CourseField) {
	if f.Value == "" && f.At.IsZero() {
		return
	}
	before := len(w.lines)
	w.prose(" "+text.Fit(f.Name, courseLabel, ""), unless(!f.Bad, w.s.Text, w.s.Error), strings.TrimRight(f.Value, "\n")+momentText(f.At, w.now, w.loc, f.Value != ""))
	if over := len(w.lines) - before - maxCourseLines; over > 0 {
		w.lines = w.lines[:before+maxCourseLines]
		w.say(w.s.Muted, text.Spaces(courseLabel+1)+"("+counted(over, "more line")+": enter shows them)")
	}
}

// shownLog is how many lines of the log of a run of a blueprint stand among its rows.
const shownLog = 200

// logOf is the line of the log that a row is about; one that fell out of it is empty.
func logOf(d *sources.Detail, it item) sources.LogLine {
	if i := int(it.n) - d.LogDropped; i >= 0 && i < len(d.Log) {
		return d.Log[i]
	}
	return sources.LogLine{}
}

func (r *rowDrawer) logged(p *pieces, l sources.LogLine) {
	at := ""
	if !l.At.IsZero() {
		at = l.At.In(r.loc).Format("15:04:05")
	}
	ink := unless(l.Kind != "error", r.s.Text, r.s.Error)
	p.add(r.s.Muted, text.Fit(at, 9, "")).add(kindInk(l.Kind, r.s), text.Fit(text.Safe(l.Kind, " "), 7, "")).add(ink, text.Safe(bounded(l.Text, r.width), " "))
}

// courseLinks are the sessions and the run that a run of a blueprint belongs to.
func courseLinks(d *sources.Detail) (links []link) {
	if d.Course == nil {
		return nil
	}
	in := d.Course.Input
	session := func(what, id string) {
		if id != "" {
			w := sources.SessionWorkflowID(id)
			links = append(links, link{what, sources.Run{WorkflowID: w, TaskID: w, Type: sources.SessionWorkflow}})
		}
	}
	session("parent session", in.ParentSessionID)
	if !in.Program() {
		session("its session", in.SessionID)
	}
	if in.ParentRunID != "" {
		links = append(links, link{"parent run", sources.BlueprintRun(in.ParentRunID)})
	}
	return links
}

// courseGoesTo is the run that a field names.
func courseGoesTo(d *sources.Detail, field string) (sources.Run, bool) {
	what := map[string]string{"parent": "parent session", "session": "its session", "parent run": "parent run"}[field]
	for _, l := range courseLinks(d) {
		if l.what == what {
			return l.run, true
		}
	}
	return sources.Run{}, false
}

// isSession tells whether a run is an agent's session on the engine.
func isSession(r sources.Run) bool { return r.Type == sources.SessionWorkflow }

// goSession shows a session on the screen of agents.
func (c *console) goSession(s tui.Shell, workflowID string) tea.Cmd {
	c.goal = workflowID
	s.Open("agents")
	return nil
}

// courseExit is the exit status in whose colours a status of a run stands, "" while it is
// open.
func courseExit(p ace.Phase) ace.ExitStatus {
	return map[ace.Phase]ace.ExitStatus{"completed": ace.Success, "failed": ace.Failed, "stopped": ace.Cancelled}[p]
}
