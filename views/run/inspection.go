package run

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	"acescope/views/lineage"
)

// inspection writes what there is to know of one row.
type inspection struct {
	*widget.Writer
	*reading
	d *histories.Detail
}

// titleOf is what the inspector is headed with, as safe text.
func titleOf(d *histories.Detail, it Item) string {
	switch it.Kind {
	case ItemSection:
		return partTitles[it.Part]
	case ItemCall:
		return "call " + text.Safe(d.Calls.At(int(it.N)).Name, " ")
	case ItemOperation:
		op := d.Delta.Operations[it.N]
		return strings.TrimSpace(text.Safe(string(op.Type)+" "+op.BulletID, " "))
	case ItemPhase:
		return "phase " + text.Safe(string(d.Phase.Steps[it.N].Phase), " ")
	case ItemSkill:
		return "skill " + text.Safe(d.Skills.Skills[it.N].Name, " ")
	case itemFailedTask:
		return "task " + text.Safe(d.FailedTasks[it.N].Result.TaskID, " ")
	case itemProgress, itemSpent:
		return partTitles[it.Part]
	case ItemLink:
		return linksOf(d)[it.N].what
	case ItemLineage:
		return console.NameOf(nodeOf(d, it).Run)
	}
	what, _ := textOf(d, it)
	return text.Safe(what, " ")
}

func (w *inspection) write(it Item) {
	switch it.Kind {
	case itemNone:
		w.Say(w.S.Muted, " nothing to inspect")
	case ItemSection:
		w.sectionOf(it.Part)
	case ItemCall:
		w.callWhole(w.d.Calls.At(int(it.N)))
	case ItemOperation:
		w.operationWhole(w.d.Delta.Operations[it.N])
	case ItemFailure, itemCause:
		w.failure()
	case itemPending:
		w.pendingWhole(w.d.Pending[it.N])
	case ItemPhase:
		w.phaseWhole(w.d.Phase.Steps[it.N])
	case itemActivity:
		w.activityWhole(w.d.Activities[it.N])
	case ItemSkill:
		w.skillWhole(w.d.Skills.Skills[it.N])
	case itemSpent:
		w.field("session", usageText(*spentOn(w.d, ace.PhaseSkills), w.S.Glyphs))
		w.Say(w.S.Muted, "")
		w.Prose(" ", w.S.Muted, "Tokens and cost are told for the whole session; no worker tells them for each call.")
	case ItemAnswer, itemExpected:
		w.judged()
	case itemPrompt:
		if in := w.d.Input; in.Prompt != "" {
			w.Prose(" ", w.S.Text, in.Prompt)
		}
		w.refs(refsOf(w.d, it))
	case itemCourse, itemResult:
		f := courseField(w.d, it)
		w.Prose(" ", w.S.Text, f.Value)
		w.when("at", f.At)
		w.refs(f.Refs)
	case itemCallLog:
		w.Prose(" ", w.S.Muted, "The calls together were too large for the history, which holds previews. This artifact holds them whole, one JSON object a line.")
		w.refs(refsOf(w.d, it))
	case ItemSealed:
		w.sealed(w.d.Sealed[it.N])
	case itemProgress:
		experiment(w.Writer, w.d.Experiment)
	case itemFailedTask:
		w.failedTask(w.d.FailedTasks[it.N])
	case itemTag:
		w.bullet(w.d.Delta.BulletTags[it.N].ID)
		w.field("tag", w.d.Delta.BulletTags[it.N].Tag)
	case ItemLink:
		l := linksOf(w.d)[it.N]
		w.field("workflow", l.run.WorkflowID)
		w.field("run", l.run.RunID)
		if isSession(l.run) {
			w.hint("o", "shows the session on the screen of agents; esc leads back")
			break
		}
		w.hint("o", "goes there; backspace leads back")
	case ItemLineage:
		n := nodeOf(w.d, it)
		lineage.Node(w.Writer, w.d.Forks, n)
		w.Say(w.S.Text, "")
		if n.Run.RunID != w.d.RunID {
			w.hint("enter", "opens it; backspace leads back")
		}
		w.hint("d", "compares a fork with its original")
		w.hint("T", "the lineage on its own screen")
	default:
		_, t := textOf(w.d, it)
		w.Prose(" ", w.S.Text, t)
	}
	if e := eventOf(w.d, it); e != 0 {
		w.Say(w.S.Text, "")
		w.End(w.Line().Add(w.S.Muted, " event ").Add(w.S.Text, text.Count(e)).Add(w.S.Muted, "  (").Add(w.S.Key, "J").Add(w.S.Muted, " goes to it)"))
	}
}

// field writes a name and a value; nothing where there is no value.
func (w *inspection) field(name, value string) {
	if value != "" {
		w.Prose(" "+text.Fit(text.Safe(name, " "), 12, ""), w.S.Text, value)
	}
}

func (w *inspection) when(name string, at time.Time) {
	if !at.IsZero() {
		w.field(name, at.In(w.Loc).Format("2006-01-02 15:04:05.000"))
	}
}

func (w *inspection) hint(key, does string) {
	w.End(w.Line().Add(w.S.Key, " "+key).Add(w.S.Hint, " "+does))
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
		skills(w.Writer, w.d.Skills)
	case partDelta:
		delta(w.Writer, w.d.Delta)
	case partTask:
		answer(w.Writer, w.d)
	case partReflection:
		reflection(w.Writer, w.d.Delta)
	case partPending:
		pending(w.Writer, w.d)
	case partProgress, partFailedTasks:
		experiment(w.Writer, w.d.Experiment)
	case PartAbout:
		identity(w.Writer, w.d)
	case partCourse, partResult:
		course(w.Writer, w.d)
	case PartPhases:
		w.phases()
	case PartCalls:
		bad := 0
		w.d.Calls.All(func(_ int, c *histories.ToolCall) bool {
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
		w.Say(w.S.Text, "")
	}
}

// callWhole is one call with its payloads.
func (w *inspection) callWhole(c *histories.ToolCall) {
	m := callMark(c.Call, w.S)
	word := m.Word
	if word == "" {
		word = "ok"
	}
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" "+word).Add(w.S.Strong, "  "+text.Safe(c.Name, " ")).Add(w.S.Muted, "  "+widget.TookMS(c.DurationMS, w.S.Glyphs)))
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
		w.Prose(" error       ", w.S.Error, c.Error)
	}
	if c.Cut {
		w.Prose(" ", w.S.Warning, "Only the beginning of its payloads is kept here; the event has them whole.")
	}
	w.payload("Arguments", c.Args, "--call "+plainID(c.ID, "ID")+" --args")
	w.payload("Result", c.Result, "--call "+plainID(c.ID, "ID"))
	w.refs(append(histories.RefsIn(c.Args), histories.RefsIn(c.Result)...))
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
		w.Section(title, "none")
		return
	}
	w.shown(title, w.payloads.Of(raw), w.showCommand(flags)+" prints all of it")
}

func (w *inspection) shown(title string, p *widget.Shown, whole string) {
	w.Section(title, p.Kind+", "+widget.SizeText(int64(p.Size)))
	for _, l := range p.Lines {
		for _, part := range l.Wrap(w.Width - 2) {
			out := w.Line().Add(w.S.Text, " ")
			for _, t := range part {
				out.Add(t.Kind.Ink(w.S), t.Text)
			}
			w.End(out)
		}
	}
	if p.Rest > 0 {
		w.Prose(" ", w.S.Warning, w.S.Glyphs.Ellipsis+" and "+widget.SizeText(int64(p.Rest))+" more: "+whole)
	}
}

// refs are artifacts: how to open them, or what they hold.
func (w *inspection) refs(refs []ace.Ref) {
	for _, r := range refs {
		have := w.artifacts.Find(r.SHA256)
		switch {
		case have == nil && w.asked[r.SHA256]:
			w.Section("Artifact", strings.TrimPrefix(refText(r), "artifact "))
			w.Say(w.S.Muted, " reading"+w.S.Glyphs.Ellipsis)
		case have == nil:
			w.Section("Artifact", strings.TrimPrefix(refText(r), "artifact "))
			w.hint("o", "opens it")
		case have.Err != "":
			w.Section("Artifact", strings.TrimPrefix(refText(r), "artifact "))
			w.Prose(" "+w.S.Glyphs.Failed+" ", w.S.Error, have.Err)
			w.Prose(" ", w.S.Muted, w.showCommand("--artifact "+r.SHA256))
		default:
			w.shown("Artifact "+console.Short(r.SHA256, w.S.Glyphs), w.payloads.Of(have.Data), w.showCommand("--artifact "+r.SHA256)+" prints all of it")
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
	w.field("p50", widget.TookMS(u.P50MS, w.S.Glyphs))
	w.field("p95", widget.TookMS(u.P95MS, w.S.Glyphs))
	if !u.LastAt.IsZero() {
		w.field("last call", w.Ago(u.LastAt))
	}
	if u.LastError != "" {
		w.Prose(" last error  ", w.S.Error, u.LastError)
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
	w.Section("Not ok", "newest first, at most "+strconv.Itoa(most))
	for _, c := range bad {
		call(w.Writer, c)
	}
}

// judged is the answer against what was expected.
func (w *inspection) judged() {
	if exit, said := verdict(w.d); said != "" {
		m := w.S.Status(string(exit))
		w.End(w.Line().Add(m.Ink, " "+m.Glyph+" "+text.Safe(said, " ")))
	} else {
		w.Say(w.S.Muted, " nobody judged it: there is no expected answer")
	}
	w.Section("Answer", "")
	w.Prose(" ", w.S.Text, w.d.Phase.Answer)
	if w.d.Input.Label != nil {
		w.Section("Expected", "")
		w.Prose(" ", w.S.Text, *w.d.Input.Label)
	}
}

func (w *inspection) sealed(x histories.Sealed) {
	w.field("payload", x.What)
	w.field("encoding", x.Encoding)
	w.field("size", widget.SizeText(int64(x.Size)))
	w.Say(w.S.Text, "")
	w.Prose(" ", w.S.Muted, "It is not JSON, so nothing of it is shown or folded. It is "+x.Why()+".")
}

func (w *inspection) failedTask(t experiments.Finished) {
	m := w.S.Status(string(t.Result.ExitStatus))
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" "+console.OrDash(m.Word, w.S.Glyphs)))
	w.field("task", t.Result.TaskID)
	w.field("workflow", t.WorkflowID)
	w.field("run", t.RunID)
	w.when("ended", t.At)
	if t.Took > 0 {
		w.field("took", widget.Took(t.Took, w.S.Glyphs))
	}
	if t.Failure != nil {
		w.Section("Failure", text.Safe(t.Failure.Type, " "))
		w.Prose(" ", w.S.Error, t.Failure.Message)
	}
	if t.WorkflowID != "" {
		w.hint("o", "goes to its run; backspace leads back")
	}
}
