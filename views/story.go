package views

import (
	"encoding/json"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// answer is the question, what was answered and what was expected.
func (w *writer) answer(d *sources.Detail) {
	in := d.Input
	if in.Prompt == "" && d.Phase.Answer == "" && in.Label == nil && in.PromptRef == nil {
		return
	}
	w.section("Task", "")
	if in.Prompt != "" {
		w.prose("   prompt   ", w.s.Text, in.Prompt)
	}
	if r := in.PromptRef; r != nil {
		w.prose("   prompt   ", w.s.Muted, "artifact "+r.SHA256+", "+text.Count(r.Size)+" bytes")
	}
	if d.Phase.Answer != "" {
		ink, verdict := w.s.Text, ""
		if c := d.Phase.Correct; c != nil {
			m := w.s.Status(string(ace.Wrong))
			if *c {
				m = w.s.Status(string(ace.Success))
				m.Word = "correct"
			}
			ink, verdict = m.Ink, m.Glyph+" "+m.Word
		}
		w.prose("   answer   ", ink, d.Phase.Answer+"  "+verdict)
	}
	if in.Label != nil {
		w.prose("   expected ", w.s.Text, *in.Label)
	}
}

// reflection is what the reflector saw and the curator thought.
func (w *writer) reflection(d ace.DeltaAnswer) {
	if d.Insights == "" && d.Rationale == "" && len(d.BulletTags) == 0 && len(d.FollowUpActions) == 0 {
		return
	}
	w.section("Reflection", "")
	if d.Insights != "" {
		w.prose("   insights  ", w.s.Text, d.Insights)
	}
	var tags []string
	for _, t := range d.BulletTags {
		tags = append(tags, "["+t.ID+"] "+t.Tag)
	}
	if len(tags) > 0 {
		w.prose("   bullets   ", w.s.Tagged, strings.Join(tags, ", "))
	}
	if d.Rationale != "" {
		w.prose("   rationale ", w.s.Text, d.Rationale)
	}
	for _, f := range d.FollowUpActions {
		w.prose("   follow up ", w.s.Text, f)
	}
}

// calls is the newest tool calls, newest first.
func (w *writer) calls(a ace.SkillAnswer) {
	if len(a.Recent) == 0 {
		return
	}
	w.section("Tool calls", "newest first, "+text.Count(int64(len(a.Recent)))+" of "+text.Count(int64(a.Total)))
	for i := len(a.Recent) - 1; i >= 0; i-- {
		w.call(a.Recent[i])
	}
}

func (w *writer) call(c ace.Call) {
	m := callMark(c, w.s)
	at := "        "
	if !c.At.IsZero() {
		at = c.At.In(w.loc).Format("15:04:05")
	}
	l := w.line().Add(w.s.Muted, "   "+at+" ").Add(m.Ink, m.Glyph+" "+text.Safe(c.Name, " "))
	l.Add(w.s.Text, "("+payload(c.Args)+")")
	switch {
	case m.Word != "":
		l.Add(m.Ink, " "+m.Word)
	case len(c.Result) > 0:
		l.Add(w.s.Muted, " "+w.s.Glyphs.Arrow+" ").Add(w.s.Text, payload(c.Result))
	}
	if c.DurationMS > 0 {
		l.Add(w.s.Muted, "  "+tookMS(c.DurationMS, w.s.Glyphs))
	}
	w.end(l)
	if c.Error != "" {
		w.prose("              ", w.s.Error, c.Error)
	}
}

// callMark is how a call went; its word is "" where the result says it all.
func callMark(c ace.Call, s theme.Styles) theme.Mark {
	switch {
	case !c.Accepted:
		m := s.Status(string(ace.Cancelled))
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

// payload is a JSON value in a line, an object without its braces; anything else as
// it is.
func payload(raw json.RawMessage) string {
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
func (w *writer) experiment(p *ace.ExperimentProgress) {
	if p == nil {
		return
	}
	g := w.s.Glyphs
	remark := howFar(p)
	if p.ExitStatus != ace.Running && p.ExitStatus != "" {
		remark = string(p.ExitStatus)
	}
	w.section("Progress", text.Safe(remark, " "))
	for _, e := range p.Epochs {
		said := text.Count(int64(e.Correct)) + " of " + text.Count(int64(e.Tasks-e.Unlabeled)) + " right"
		if e.Failed > 0 {
			said += ", " + text.Count(int64(e.Failed)) + " failed"
		}
		w.bar("epoch "+strconv.Itoa(e.Epoch), e.Accuracy, said, w.s.Running)
		w.curve(e)
	}
	for _, e := range p.Eval {
		when := "eval after " + strconv.Itoa(e.Epoch)
		if e.Epoch == 0 {
			when = "eval before"
		}
		w.bar(when, e.Accuracy, text.Count(int64(e.Correct))+" of "+text.Count(int64(e.Tasks))+" right", w.s.Success)
	}
	w.say(w.s.Muted, "   playbook      "+text.Count(int64(p.Bullets))+" bullets, "+short(p.Before, g)+" "+g.Arrow+" "+short(p.After, g))
	w.say(w.s.Muted, "   operations    "+text.Count(int64(p.Accepted))+" accepted, "+text.Count(int64(p.Rejected))+" rejected")
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
func (w *writer) curve(e ace.EpochResult) {
	if len(e.Curve) < 2 {
		return
	}
	levels := []rune(w.s.Glyphs.Levels)
	var b strings.Builder
	for _, p := range e.Curve {
		level := clamp(p.Correct*(len(levels)-1)/max(p.Tasks, 1), 0, len(levels)-1)
		b.WriteRune(levels[level])
	}
	w.end(w.line().Add(w.s.Muted, "   by "+text.Fit(text.Count(int64(e.Bucket))+" tasks", 11, "")).Add(w.s.Running, b.String()))
}

func (w *writer) bar(label string, share float64, said string, ink theme.Ink) {
	g := w.s.Glyphs
	size := clamp(w.width-54, 8, 30)
	full := clamp(int(share*float64(size)+0.5), 0, size)
	w.end(w.line().Add(w.s.Muted, "   "+text.Fit(label, 14, "")).
		Add(ink, strings.Repeat(g.Full, full)).Add(w.s.Border, strings.Repeat(g.Empty, size-full)).
		Add(w.s.Strong, " "+text.FitLeft(percent(share), 6, "")).Add(w.s.Muted, "  "+said))
}

// identity is what the run is.
func (w *writer) identity(d *sources.Detail) {
	w.section("About", "")
	in := d.Input
	for _, f := range [][2]string{
		{"workflow", d.WorkflowID}, {"run", d.RunID}, {"type", d.Type}, {"experiment", in.ExperimentID},
		{"dataset", in.DatasetID}, {"provider", in.Provider}, {"steps", sources.Servers(in)}, {"adapter", string(in.Adapter)}, {"playbook", in.PlaybookHash},
		{"branch", in.Branch}, {"allowed", strings.Join(in.SkillsConfig.AllowedTools, ", ")},
		{"permission", in.SkillsConfig.PermissionMode},
	} {
		if f[1] != "" {
			w.prose("   "+text.Fit(f[0], 11, ""), w.s.Text, f[1])
		}
	}
	if !d.Start.IsZero() {
		w.say(w.s.Muted, "   started    "+d.Start.In(w.loc).Format("2006-01-02 15:04:05 MST"))
	}
	if in.PaceMS > 0 {
		w.say(w.s.Muted, "   paced      "+text.Count(in.PaceMS)+" ms a phase at least, to be watched")
	}
}

// stageOf is what an experiment is doing; one that has told nothing yet has not begun.
func stageOf(p *ace.ExperimentProgress) string {
	if p.Stage == "" {
		return "no stage known"
	}
	return text.Safe(p.Stage, " ")
}
