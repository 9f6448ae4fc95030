package run

import (
	"encoding/json"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// answer is the question, what was answered and what was expected.
func answer(w *widget.Writer, d *histories.Detail) {
	in := d.Input
	if in.Prompt == "" && d.Phase.Answer == "" && in.Label == nil && in.PromptRef == nil {
		return
	}
	w.Section("Task", "")
	if in.Prompt != "" {
		w.Prose("   prompt   ", w.S.Text, in.Prompt)
	}
	if r := in.PromptRef; r != nil {
		w.Prose("   prompt   ", w.S.Muted, "artifact "+r.SHA256+", "+text.Count(r.Size)+" bytes")
	}
	if d.Phase.Answer != "" {
		ink, verdict := w.S.Text, ""
		if c := d.Phase.Correct; c != nil {
			m := w.S.Status(string(ace.Wrong))
			if *c {
				m = w.S.Status(string(ace.Success))
				m.Word = "correct"
			}
			ink, verdict = m.Ink, m.Glyph+" "+m.Word
		}
		w.Prose("   answer   ", ink, d.Phase.Answer+"  "+verdict)
	}
	if in.Label != nil {
		w.Prose("   expected ", w.S.Text, *in.Label)
	}
}

// reflection is what the reflector saw and the curator thought.
func reflection(w *widget.Writer, d ace.DeltaAnswer) {
	if d.Insights == "" && d.Rationale == "" && len(d.BulletTags) == 0 && len(d.FollowUpActions) == 0 {
		return
	}
	w.Section("Reflection", "")
	if d.Insights != "" {
		w.Prose("   insights  ", w.S.Text, d.Insights)
	}
	var tags []string
	for _, t := range d.BulletTags {
		tags = append(tags, "["+t.ID+"] "+t.Tag)
	}
	if len(tags) > 0 {
		w.Prose("   bullets   ", w.S.Tagged, strings.Join(tags, ", "))
	}
	if d.Rationale != "" {
		w.Prose("   rationale ", w.S.Text, d.Rationale)
	}
	for _, f := range d.FollowUpActions {
		w.Prose("   follow up ", w.S.Text, f)
	}
}

// calls is the newest tool calls, newest first.
func calls(w *widget.Writer, a ace.SkillAnswer) {
	if len(a.Recent) == 0 {
		return
	}
	w.Section("Tool calls", "newest first, "+text.Count(int64(len(a.Recent)))+" of "+text.Count(int64(a.Total)))
	for i := len(a.Recent) - 1; i >= 0; i-- {
		call(w, a.Recent[i])
	}
}

func call(w *widget.Writer, c ace.Call) {
	m := callMark(c, w.S)
	at := "        "
	if !c.At.IsZero() {
		at = c.At.In(w.Loc).Format("15:04:05")
	}
	l := w.Line().Add(w.S.Muted, "   "+at+" ").Add(m.Ink, m.Glyph+" "+text.Safe(c.Name, " "))
	l.Add(w.S.Text, "("+Payload(c.Args)+")")
	switch {
	case m.Word != "":
		l.Add(m.Ink, " "+m.Word)
	case len(c.Result) > 0:
		l.Add(w.S.Muted, " "+w.S.Glyphs.Arrow+" ").Add(w.S.Text, Payload(c.Result))
	}
	if c.DurationMS > 0 {
		l.Add(w.S.Muted, "  "+widget.TookMS(c.DurationMS, w.S.Glyphs))
	}
	w.End(l)
	if c.Error != "" {
		w.Prose("              ", w.S.Error, c.Error)
	}
}

// callMark is how a call went; its word is "" where the result says it all.
func callMark(c ace.Call, s theme.Styles) theme.Mark {
	switch {
	case !c.Accepted:
		m := s.Status(string(ace.Canceled))
		m.Word = "denied"
		m.Ink = s.Warning
		return m
	case c.OK:
		return theme.Mark{Glyph: s.Glyphs.Success, Ink: s.Success}
	case c.Pending:
		m := s.Status(string(ace.Running))
		m.Word = "no result yet"
		return m
	}
	m := s.Status(string(ace.Failed))
	return m
}

// Payload is a JSON value in a line, an object without its braces; anything else as
// it is.
func Payload(raw json.RawMessage) string {
	var v string
	if json.Unmarshal(raw, &v) == nil {
		return text.Safe(v, " ")
	}
	s := text.Safe(strings.TrimSpace(string(raw)), " ")
	if strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") && len(s) > 1 {
		return s[1 : len(s)-1]
	}
	return s
}

// experiment is how an experiment learns: accuracy by epoch, and on the second data
// set.
func experiment(w *widget.Writer, p *ace.ExperimentProgress) {
	if p == nil {
		return
	}
	g := w.S.Glyphs
	remark := howFar(p)
	if p.ExitStatus != ace.Running && p.ExitStatus != "" {
		remark = string(p.ExitStatus)
	}
	w.Section("Progress", text.Safe(remark, " "))
	for _, e := range p.Epochs {
		said := text.Count(int64(e.Correct)) + " of " + text.Count(int64(e.Tasks-e.Unlabeled)) + " right"
		if e.Failed > 0 {
			said += ", " + text.Count(int64(e.Failed)) + " failed"
		}
		bar(w, "epoch "+strconv.Itoa(e.Epoch), e.Accuracy, said, w.S.Running)
		curve(w, e)
	}
	for _, e := range p.Eval {
		when := "eval after " + strconv.Itoa(e.Epoch)
		if e.Epoch == 0 {
			when = "eval before"
		}
		bar(w, when, e.Accuracy, text.Count(int64(e.Correct))+" of "+text.Count(int64(e.Tasks))+" right", w.S.Success)
	}
	w.Say(w.S.Muted, "   playbook      "+text.Count(int64(p.Bullets))+" bullets, "+console.Short(p.Before, g)+" "+g.Arrow+" "+console.Short(p.After, g))
	w.Say(w.S.Muted, "   operations    "+text.Count(int64(p.Accepted))+" accepted, "+text.Count(int64(p.Rejected))+" rejected")
}

// howFar says which task of how many an experiment is at.
func howFar(p *ace.ExperimentProgress) string {
	said := stageOf(p) + ", " + text.Count(int64(p.Done())) + " of " + text.Count(int64(p.TotalTasks)) + " tasks"
	if p.TotalEpochs > 1 {
		said += " of epoch " + strconv.Itoa(p.Epoch) + " of " + strconv.Itoa(p.TotalEpochs)
	}
	return said
}

// curve is the accuracy of each bucket of tasks, one character each, in order.
func curve(w *widget.Writer, e ace.EpochResult) {
	if len(e.Curve) < 2 {
		return
	}
	levels := []rune(w.S.Glyphs.Levels)
	var b strings.Builder
	for _, p := range e.Curve {
		level := widget.Clamp(p.Correct*(len(levels)-1)/max(p.Tasks, 1), 0, len(levels)-1)
		b.WriteRune(levels[level])
	}
	w.End(w.Line().Add(w.S.Muted, "   by "+text.Fit(text.Count(int64(e.Bucket))+" tasks", 11, "")).Add(w.S.Running, b.String()))
}

func bar(w *widget.Writer, label string, share float64, said string, ink theme.Ink) {
	g := w.S.Glyphs
	size := widget.Clamp(w.Width-54, 8, 30)
	full := widget.Clamp(int(share*float64(size)+0.5), 0, size)
	w.End(w.Line().Add(w.S.Muted, "   "+text.Fit(label, 14, "")).
		Add(ink, strings.Repeat(g.Full, full)).Add(w.S.Border, strings.Repeat(g.Empty, size-full)).
		Add(w.S.Strong, " "+text.FitLeft(console.Percent(share), 6, "")).Add(w.S.Muted, "  "+said))
}

// identity is what the run is.
func identity(w *widget.Writer, d *histories.Detail) {
	w.Section("About", "")
	in := d.Input
	for _, f := range [][2]string{
		{"workflow", d.WorkflowID}, {"run", d.RunID}, {"type", d.Type}, {"experiment", in.ExperimentID},
		{"dataset", in.DatasetID}, {"provider", in.Provider}, {"steps", runners.Servers(in)}, {"adapter", string(in.Adapter)}, {"playbook", in.PlaybookHash},
		{"branch", in.Branch}, {"allowed", strings.Join(in.SkillsConfig.AllowedTools, ", ")},
		{"permission", in.SkillsConfig.PermissionMode},
	} {
		if f[1] != "" {
			w.Prose("   "+text.Fit(f[0], 11, ""), w.S.Text, f[1])
		}
	}
	if !d.Start.IsZero() {
		w.Say(w.S.Muted, "   started    "+d.Start.In(w.Loc).Format("2006-01-02 15:04:05 MST"))
	}
	if in.PaceMS > 0 {
		w.Say(w.S.Muted, "   paced      "+text.Count(in.PaceMS)+" ms a phase at least, to be watched")
	}
}

// stageOf is what an experiment is doing; one that has told nothing yet has not begun.
func stageOf(p *ace.ExperimentProgress) string {
	if p.Stage == "" {
		return "no stage known"
	}
	return text.Safe(p.Stage, " ")
}
