package views

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/tui/text"
)

// inspection writes what there is to know of one row.
type inspection struct {
	*writer
	*reading
	d *sources.Detail
}

// titleOf is what the inspector is headed with, as safe text.
func titleOf(d *sources.Detail, it item) string {
	switch it.kind {
	case itemSection:
		return partTitles[it.part]
	case itemCall:
		return "call " + text.Safe(d.Calls.At(int(it.n)).Name, " ")
	case itemOperation:
		op := d.Delta.Operations[it.n]
		return strings.TrimSpace(text.Safe(string(op.Type)+" "+op.BulletID, " "))
	case itemPhase:
		return "phase " + text.Safe(string(d.Phase.Steps[it.n].Phase), " ")
	case itemSkill:
		return "skill " + text.Safe(d.Skills.Skills[it.n].Name, " ")
	case itemFailedTask:
		return "task " + text.Safe(d.FailedTasks[it.n].Result.TaskID, " ")
	case itemProgress, itemSpent:
		return partTitles[it.part]
	case itemLink:
		return linksOf(d)[it.n].what
	case itemLineage:
		return nameOf(nodeOf(d, it).Run)
	}
	what, _ := textOf(d, it)
	return text.Safe(what, " ")
}

func (w *inspection) write(it item) {
	switch it.kind {
	case itemNone:
		w.say(w.s.Muted, " nothing to inspect")
	case itemSection:
		w.sectionOf(it.part)
	case itemCall:
		w.callWhole(w.d.Calls.At(int(it.n)))
	case itemOperation:
		w.operationWhole(w.d.Delta.Operations[it.n])
	case itemFailure, itemCause:
		w.failure()
	case itemPending:
		w.pendingWhole(w.d.Pending[it.n])
	case itemPhase:
		w.phaseWhole(w.d.Phase.Steps[it.n])
	case itemActivity:
		w.activityWhole(w.d.Activities[it.n])
	case itemSkill:
		w.skillWhole(w.d.Skills.Skills[it.n])
	case itemSpent:
		w.field("session", usageText(*spentOn(w.d, ace.PhaseSkills), w.s.Glyphs))
		w.say(w.s.Muted, "")
		w.prose(" ", w.s.Muted, "Tokens and cost are told for the whole session; no worker tells them for each call.")
	case itemAnswer, itemExpected:
		w.judged()
	case itemPrompt:
		if in := w.d.Input; in.Prompt != "" {
			w.prose(" ", w.s.Text, in.Prompt)
		}
		w.refs(refsOf(w.d, it))
	case itemCourse, itemResult:
		f := courseField(w.d, it)
		w.prose(" ", w.s.Text, f.Value)
		w.when("at", f.At)
		w.refs(f.Refs)
	case itemCallLog:
		w.prose(" ", w.s.Muted, "The calls together were too large for the history, which holds previews. This artifact holds them whole, one JSON object a line.")
		w.refs(refsOf(w.d, it))
	case itemSealed:
		w.sealed(w.d.Sealed[it.n])
	case itemProgress:
		w.experiment(w.d.Experiment)
	case itemFailedTask:
		w.failedTask(w.d.FailedTasks[it.n])
	case itemTag:
		w.bullet(w.d.Delta.BulletTags[it.n].ID)
		w.field("tag", w.d.Delta.BulletTags[it.n].Tag)
	case itemLink:
		l := linksOf(w.d)[it.n]
		w.field("workflow", l.run.WorkflowID)
		w.field("run", l.run.RunID)
		if isSession(l.run) {
			w.hint("o", "shows the session on the screen of agents; esc leads back")
			break
		}
		w.hint("o", "goes there; backspace leads back")
	case itemLineage:
		n := nodeOf(w.d, it)
		w.node(w.d.Forks, n)
		w.say(w.s.Text, "")
		if n.Run.RunID != w.d.RunID {
			w.hint("enter", "opens it; backspace leads back")
		}
		w.hint("d", "compares a fork with its original")
		w.hint("T", "the lineage on its own screen")
	default:
		_, t := textOf(w.d, it)
		w.prose(" ", w.s.Text, t)
	}
	if e := eventOf(w.d, it); e != 0 {
		w.say(w.s.Text, "")
		w.end(w.line().Add(w.s.Muted, " event ").Add(w.s.Text, text.Count(e)).Add(w.s.Muted, "  (").Add(w.s.Key, "J").Add(w.s.Muted, " goes to it)"))
	}
}

// field writes a name and a value; nothing where there is no value.
func (w *inspection) field(name, value string) {
	if value != "" {
		w.prose(" "+text.Fit(text.Safe(name, " "), 12, ""), w.s.Text, value)
	}
}

func (w *inspection) when(name string, at time.Time) {
	if !at.IsZero() {
		w.field(name, at.In(w.loc).Format("2006-01-02 15:04:05.000"))
	}
}

func (w *inspection) hint(key, does string) {
	w.end(w.line().Add(w.s.Key, " "+key).Add(w.s.Hint, " "+does))
}

func (w *inspection) number(name string, n int64) {
	if n != 0 {
		w.field(name, text.Count(n))
	}
}

// sectionOf sums a section up.
func (w *inspection) sectionOf(p part) {
	switch p {
	case partTrouble:
		w.failure()
	case partSkills:
		w.skills(w.d.Skills)
	case partDelta:
		w.delta(w.d.Delta)
	case partTask:
		w.answer(w.d)
	case partReflection:
		w.reflection(w.d.Delta)
	case partPending:
		w.pending(w.d)
	case partProgress, partFailedTasks:
		w.experiment(w.d.Experiment)
	case partAbout:
		w.identity(w.d)
	case partCourse, partResult:
		w.course(w.d)
	case partPhases:
		w.phases()
	case partCalls:
		bad := 0
		w.d.Calls.All(func(_ int, c *sources.ToolCall) bool {
			if !c.Accepted || !c.OK && !c.Pending {
				bad++
			}
			return true
		})
		w.field("calls", text.Count(int64(w.d.Calls.Len())))
		w.field("not ok", text.Count(int64(bad)))
	}
}

func (w *inspection) phases() {
	for _, st := range w.d.Phase.Steps {
		w.phaseWhole(st)
		w.say(w.s.Text, "")
	}
}

// callWhole is one call with its payloads.
func (w *inspection) callWhole(c *sources.ToolCall) {
	m := callMark(c.Call, w.s)
	word := m.Word
	if word == "" {
		word = "ok"
	}
	w.end(w.line().Add(m.Ink, " "+m.Glyph+" "+word).Add(w.s.Strong, "  "+text.Safe(c.Name, " ")).Add(w.s.Muted, "  "+tookMS(c.DurationMS, w.s.Glyphs)))
	w.field("id", c.ID)
	w.when("at", c.At)
	var told []string
	for _, e := range []struct {
		id  int64
		how string
	}{{c.UseEvent, "begun"}, {c.ResultEvent, "ended"}, {c.SessionEvent, "in the session's result"}} {
		if e.id != 0 {
			told = append(told, text.Count(e.id)+" "+e.how)
		}
	}
	w.field("events", strings.Join(told, ", "))
	if c.Error != "" {
		w.prose(" error       ", w.s.Error, c.Error)
	}
	if c.Cut {
		w.prose(" ", w.s.Warning, "Only the beginning of its payloads is kept here; the event has them whole.")
	}
	w.payload("Arguments", c.Args, "--call "+plainID(c.ID, "ID")+" --args")
	w.payload("Result", c.Result, "--call "+plainID(c.ID, "ID"))
	w.refs(append(sources.RefsIn(c.Args), sources.RefsIn(c.Result)...))
}

// showCommand is the command that prints what there is no room for here.
func (w *inspection) showCommand(flags string) string {
	id := w.d.Input.TaskID
	if id == "" {
		id = w.d.WorkflowID
	}
	return "acescope show " + plainID(id, "TASK") + " " + flags
}

// plainID is an id that can be typed into a shell as it is, else the word for it.
func plainID(id, word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/-", r)
	}
	if id == "" || len(id) > 120 || strings.IndexFunc(id, func(r rune) bool { return !plain(r) }) >= 0 {
		return word
	}
	return id
}

// payload is a value, laid out and coloured, as far as it is shown.
func (w *inspection) payload(title string, raw json.RawMessage, flags string) {
	if len(raw) == 0 {
		w.section(title, "none")
		return
	}
	w.shown(title, w.payloads.of(raw), w.showCommand(flags)+" prints all of it")
}

func (w *inspection) shown(title string, p *shown, whole string) {
	w.section(title, p.kind+", "+sizeText(int64(p.size)))
	for _, l := range p.lines {
		for _, part := range l.wrap(w.width - 2) {
			out := w.line().Add(w.s.Text, " ")
			for _, t := range part {
				out.Add(t.kind.ink(w.s), t.text)
			}
			w.end(out)
		}
	}
	if p.rest > 0 {
		w.prose(" ", w.s.Warning, w.s.Glyphs.Ellipsis+" and "+sizeText(int64(p.rest))+" more: "+whole)
	}
}

// refs are artifacts: how to open them, or what they hold.
func (w *inspection) refs(refs []ace.Ref) {
	for _, r := range refs {
		have := w.artifacts.Find(r.SHA256)
		switch {
		case have == nil && w.asked[r.SHA256]:
			w.section("Artifact", strings.TrimPrefix(refText(r), "artifact "))
			w.say(w.s.Muted, " reading"+w.s.Glyphs.Ellipsis)
		case have == nil:
			w.section("Artifact", strings.TrimPrefix(refText(r), "artifact "))
			w.hint("o", "opens it")
		case have.Err != "":
			w.section("Artifact", strings.TrimPrefix(refText(r), "artifact "))
			w.prose(" "+w.s.Glyphs.Failed+" ", w.s.Error, have.Err)
			w.prose(" ", w.s.Muted, w.showCommand("--artifact "+r.SHA256))
		default:
			w.shown("Artifact "+short(r.SHA256, w.s.Glyphs), w.payloads.of(have.Data), w.showCommand("--artifact "+r.SHA256)+" prints all of it")
		}
	}
}

// skillWhole is one skill: its numbers, and its calls that did not go well.
func (w *inspection) skillWhole(u ace.SkillUsage) {
	for _, f := range []struct {
		name string
		n    int
	}{{"calls", u.Calls}, {"ok", u.OK}, {"failed", u.Failed}, {"denied", u.Denied}, {"pending", u.Pending}} {
		w.field(f.name, text.Count(int64(f.n)))
	}
	w.field("p50", tookMS(u.P50MS, w.s.Glyphs))
	w.field("p95", tookMS(u.P95MS, w.s.Glyphs))
	if !u.LastAt.IsZero() {
		w.field("last call", w.ago(u.LastAt))
	}
	if u.LastError != "" {
		w.prose(" last error  ", w.s.Error, u.LastError)
	}
	const most = 20
	var bad []ace.Call
	for i := w.d.Calls.Len() - 1; i >= 0 && len(bad) < most; i-- {
		if c := w.d.Calls.At(i); c.Name == u.Name && (!c.Accepted || !c.OK && !c.Pending) {
			bad = append(bad, c.Call)
		}
	}
	if len(bad) == 0 {
		return
	}
	w.section("Not ok", "newest first, at most "+strconv.Itoa(most))
	for _, c := range bad {
		w.call(c)
	}
}

// judged is the answer against what was expected.
func (w *inspection) judged() {
	if exit, said := verdict(w.d); said != "" {
		m := w.s.Status(string(exit))
		w.end(w.line().Add(m.Ink, " "+m.Glyph+" "+text.Safe(said, " ")))
	} else {
		w.say(w.s.Muted, " nobody judged it: there is no expected answer")
	}
	w.section("Answer", "")
	w.prose(" ", w.s.Text, w.d.Phase.Answer)
	if w.d.Input.Label != nil {
		w.section("Expected", "")
		w.prose(" ", w.s.Text, *w.d.Input.Label)
	}
}

func (w *inspection) sealed(x sources.Sealed) {
	w.field("payload", x.What)
	w.field("encoding", x.Encoding)
	w.field("size", sizeText(int64(x.Size)))
	w.say(w.s.Text, "")
	w.prose(" ", w.s.Muted, "It is not JSON, so nothing of it is shown or folded. It is "+x.Why()+".")
}

func (w *inspection) failedTask(t sources.Finished) {
	m := w.s.Status(string(t.Result.ExitStatus))
	w.end(w.line().Add(m.Ink, " "+m.Glyph+" "+orDash(m.Word, w.s.Glyphs)))
	w.field("task", t.Result.TaskID)
	w.field("workflow", t.WorkflowID)
	w.field("run", t.RunID)
	w.when("ended", t.At)
	if t.Took > 0 {
		w.field("took", took(t.Took, w.s.Glyphs))
	}
	if t.Failure != nil {
		w.section("Failure", text.Safe(t.Failure.Type, " "))
		w.prose(" ", w.s.Error, t.Failure.Message)
	}
	if t.WorkflowID != "" {
		w.hint("o", "goes to its run; backspace leads back")
	}
}
