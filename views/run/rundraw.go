package run

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
	"acescope/views/lineage"
)

// piece is text in an ink.
type piece struct {
	ink  theme.Ink
	text string
}

// Pieces is a row that is not yet painted: the selected row is painted in one piece.
type Pieces []piece

func (p *Pieces) add(ink theme.Ink, t string) *Pieces {
	if t != "" {
		*p = append(*p, piece{ink, t})
	}
	return p
}

func (p Pieces) Line(width int, mark widget.RowMark, s theme.Styles) string {
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	head := text.Spaces(widget.PointerWidth)
	if mark != widget.RowPlain {
		head = s.Glyphs.Pointer + " "
	}
	l.Add(s.Text, head)
	if mark == widget.RowPlain {
		for _, one := range p {
			l.Add(one.ink, one.text)
		}
		return l.String(s.Text)
	}
	for _, one := range p {
		l.Add(theme.Ink{}, one.text)
	}
	return widget.RowInk(mark, s).Paint(l.String(theme.Ink{}))
}

// RowDrawer draws the rows of a run's screen.
type RowDrawer struct {
	D     *histories.Detail
	S     theme.Styles
	Width int // of what stands behind the pointer
	Now   time.Time
	Loc   *time.Location
	bars  bool // there is room for time bars
	fold  map[part]bool
}

func (r *RowDrawer) row(row runRow) Pieces {
	var p Pieces
	if row.Sub {
		p.add(r.S.Text, "      "+row.more)
		return p
	}
	if row.Kind != ItemSection {
		p.add(r.S.Text, " ")
	}
	switch row.Kind {
	case ItemSection:
		r.section(&p, row.Part)
	case ItemFailure, itemCause, itemReading, itemMissing, ItemSealed:
		r.trouble(&p, row.Item)
	case itemPending:
		r.pending(&p, r.D.Pending[row.N])
	case itemProgress:
		r.progress(&p, int(row.N))
	case itemFailedTask:
		r.failedTask(&p, r.D.FailedTasks[row.N])
	case ItemPhase:
		r.Phase(&p, r.D.Phase.Steps[row.N])
	case itemActivity:
		r.activity(&p, r.D.Activities[row.N])
	case ItemSkill:
		r.skill(&p, r.D.Skills.Skills[row.N])
	case itemSpent:
		u := spentOn(r.D, ace.PhaseSkills)
		p.add(r.S.Muted, "the whole session: "+usageText(*u, r.S.Glyphs)+" (not told for each skill)")
	case ItemOperation:
		r.operation(&p, r.D.Delta.Operations[row.N])
	case itemTag:
		t := r.D.Delta.BulletTags[row.N]
		p.add(r.S.Tagged, r.S.Glyphs.Tagged+" ["+text.Safe(t.ID, " ")+"] "+text.Safe(t.Tag, " "))
	case itemCallLog:
		p.add(r.S.Accent, "whole calls").add(r.S.Muted, "  "+refText(*r.D.CallLog))
	case ItemCall:
		r.call(&p, r.D.Calls.At(int(row.N)))
	case ItemLineage:
		r.node(&p, nodeOf(r.D, row.Item))
	case itemField:
		f := fieldsOf(r.D)[row.N]
		p.add(r.S.Muted, text.Fit(f[0], 11, "")).add(r.S.Text, text.Safe(f[1], " "))
	case itemLog:
		r.logged(&p, logOf(r.D, row.Item))
	case itemCourse, itemResult:
		r.course(&p, courseField(r.D, row.Item))
	case ItemLink:
		l := linksOf(r.D)[row.N]
		p.add(r.S.Accent, l.what+" "+r.S.Glyphs.Arrow+" ").add(r.S.Text, text.Safe(l.run.WorkflowID, " ")+" ")
		if l.run.RunID != "" {
			p.add(r.S.Muted, "run "+text.Safe(l.run.RunID, " "))
		}
	default:
		r.prose(&p, row.Item)
	}
	return p
}

var partTitles = [parts]string{"Trouble", "Under way", "Progress", "Failed tasks", "Phases", "Run", "Result", "Log", "Lineage", "Skills", "Playbook", "Task", "Reflection", "Tool calls", "About"}

func (r *RowDrawer) section(p *Pieces, at part) {
	title := partTitles[at]
	if at == partDelta {
		title += " " + r.S.Glyphs.Delta
	}
	switch {
	case at == PartPhases && len(r.D.Phase.Steps) == 0:
		title = "Activities"
	case at == PartPhases && r.D.Course != nil:
		title = "Life cycle"
	case at == partTask && r.D.Course != nil:
		title = "Prompt"
	}
	ink, remark := r.remark(at)
	p.add(r.S.Strong, title).add(ink, "  "+remark)
	if r.fold[at] {
		p.add(r.S.Accent, "  (folded: l unfolds)")
	}
}

// remark is what stands beside a section's heading.
func (r *RowDrawer) remark(at part) (theme.Ink, string) {
	d, g := r.D, r.S.Glyphs
	switch at {
	case partLog:
		if over := d.LogDropped + len(d.Log) - shownLog; over > 0 {
			return r.S.Muted, "the newest " + text.Count(shownLog) + " lines, and what the program writes; 1 and tab have more"
		}
		return r.S.Muted, "with what the program writes"
	case partProgress:
		return r.S.Muted, text.Safe(howFar(d.Experiment), " ")
	case partFailedTasks:
		return r.S.Failed, widget.Counted(len(d.FailedTasks)+d.FailedDropped, "task") + widget.Dropped(d.FailedDropped)
	case PartPhases:
		return r.S.Muted, strings.TrimPrefix(widget.Dropped(d.ActivitiesDropped), ", ")
	case partSkills:
		said := widget.Counted(d.Skills.Total, "call")
		if d.Skills.Dropped > 0 {
			said += ", " + text.Count(int64(d.Skills.Dropped)) + " not kept"
		}
		if d.Skills.Unreadable > 0 {
			said += ", " + text.Count(int64(d.Skills.Unreadable)) + " unreadable"
		}
		return r.S.Muted, said
	case partDelta:
		return r.S.Muted, deltaRemark(d.Delta, g)
	case partTask:
		exit, said := verdict(d)
		m := r.S.Status(string(exit))
		if said == "" {
			return r.S.Muted, ""
		}
		return m.Ink, m.Glyph + " " + text.Safe(said, " ")
	case partLineage:
		said := widget.Counted(d.Forks.Count(), "fork")
		if n := len(d.Forks.Nodes); n > maxNodes {
			said += " (" + text.Count(maxNodes) + " of " + text.Count(int64(n)) + " runs here)"
		}
		return r.S.Muted, said + ", " + g.Point + " is this run, T shows the tree"
	case PartCalls:
		said := widget.Counted(d.Calls.Len(), "call") + ", oldest first"
		if n := d.Calls.Cut(); n > 0 {
			said += ", payloads of " + text.Count(int64(n)) + " not kept whole"
		}
		return r.S.Muted, said
	case partTrouble:
		return r.S.Muted, strings.TrimPrefix(widget.Dropped(d.SealedDropped), ", ")
	}
	return r.S.Muted, ""
}

func deltaRemark(d ace.DeltaAnswer, g theme.Glyphs) string {
	said := console.Short(d.PlaybookBefore, g)
	switch {
	case d.PlaybookAfter == "":
		return said + ", not merged yet"
	case d.PlaybookAfter == d.PlaybookBefore:
		said += " (unchanged)"
	default:
		said += " " + g.Arrow + " " + console.Short(d.PlaybookAfter, g)
	}
	if d.Bullets > 0 {
		said += ", " + widget.Counted(d.Bullets, "bullet")
	}
	return said
}

func (r *RowDrawer) trouble(p *Pieces, it Item) {
	d, s, g := r.D, r.S, r.S.Glyphs
	switch it.Kind {
	case ItemFailure:
		f := d.Phase.Failure
		m := s.Status(string(f.Kind))
		p.add(m.Ink, m.Glyph+" "+console.OrDash(m.Word, g)+": ")
		if f.Type != "" {
			p.add(s.Muted, text.Safe(f.Type, " ")+": ")
		}
		p.add(s.Error, oneLineOf(f.Message))
	case itemCause:
		c := causes(d)[it.N]
		p.add(s.Muted, "because "+g.Arrow+" "+causeText(c)+": ").add(s.Text, oneLineOf(c.Message))
	case itemReading:
		p.add(s.Error, g.Failed+" reading: "+oneLineOf(d.Err))
	case itemMissing:
		p.add(s.Warning, g.Unknown+" not answered by this workflow: "+text.Safe(strings.Join(d.Missing, ", "), " "))
	case ItemSealed:
		x := d.Sealed[it.N]
		p.add(s.Warning, g.Unknown+" "+text.Safe(x.What, " ")).add(s.Muted, " is "+text.Safe(x.Encoding, " ")+", "+
			widget.SizeText(int64(x.Size))+": not readable here (event "+text.Count(x.Event)+")")
		if x.Reason != "" {
			p.add(s.Muted, ", codec server: "+oneLineOf(x.Reason))
		}
	}
}

// causeText is what kind of failure a link of a chain is, and its retry state.
func causeText(c histories.Cause) string {
	var parts []string
	for _, t := range []string{c.Kind, c.Activity, c.Type, c.Retry} {
		if t != "" {
			parts = append(parts, text.Safe(t, " "))
		}
	}
	return strings.Join(parts, ", ")
}

func oneLineOf(t string) string { return text.Safe(strings.TrimSpace(widget.Bounded(t, 400)), " ") }

// progress is one measurement of an experiment, or what became of the playbook.
func (r *RowDrawer) progress(p *Pieces, n int) {
	e := r.D.Experiment
	bar := func(label string, share float64, said string, ink theme.Ink) {
		full := widget.Clamp(int(share*20+0.5), 0, 20)
		p.add(r.S.Muted, text.Fit(label, 14, "")).add(ink, strings.Repeat(r.S.Glyphs.Full, full)).
			add(r.S.Border, strings.Repeat(r.S.Glyphs.Empty, 20-full)).add(r.S.Strong, " "+text.FitLeft(console.Percent(share), 6, "")).add(r.S.Muted, "  "+said)
	}
	switch {
	case n < len(e.Epochs):
		x := e.Epochs[n]
		said := text.Count(int64(x.Correct)) + " of " + text.Count(int64(x.Tasks-x.Unlabeled)) + " right"
		if x.Failed > 0 {
			said += ", " + text.Count(int64(x.Failed)) + " failed"
		}
		bar("epoch "+strconv.Itoa(x.Epoch), x.Accuracy, said, r.S.Running)
	case n < len(e.Epochs)+len(e.Eval):
		x := e.Eval[n-len(e.Epochs)]
		when := "eval after " + strconv.Itoa(x.Epoch)
		if x.Epoch == 0 {
			when = "eval before"
		}
		bar(when, x.Accuracy, text.Count(int64(x.Correct))+" of "+text.Count(int64(x.Tasks))+" right", r.S.Success)
	default:
		p.add(r.S.Muted, text.Fit("playbook", 14, "")+widget.Counted(e.Bullets, "bullet")+", "+console.Short(e.Before, r.S.Glyphs)+" "+r.S.Glyphs.Arrow+" "+
			console.Short(e.After, r.S.Glyphs)+", "+widget.Counted(e.Accepted, "operation")+" accepted, "+text.Count(int64(e.Rejected))+" rejected")
	}
}

func (r *RowDrawer) failedTask(p *Pieces, t experiments.Finished) {
	m := r.S.Status(string(t.Result.ExitStatus))
	p.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(t.Result.TaskID, " "), 24, r.S.Glyphs.Ellipsis))
	if t.Failure != nil {
		p.add(r.S.Error, " "+oneLineOf(t.Failure.Message))
	}
}

// node is a run of the lineage: the columns of the lineage's own screen, as far as there is
// room for them.
func (r *RowDrawer) node(p *Pieces, n *histories.LineageNode) {
	t := widget.NewTable(lineage.LineageHeadings()...)
	t.Arrange(r.Width + widget.PointerWidth - 2)
	here := ""
	if n.Run.RunID == r.D.RunID {
		here = r.S.Glyphs.Point
	}
	cells := lineage.LineageRow(n, here, t.Widths[0], r.S)
	for at, i := range t.Cols {
		if at > 0 {
			p.add(r.S.Text, " ")
		}
		p.add(cells[i].Ink, t.Fit(at, cells[i].Text, r.S.Glyphs.Ellipsis))
	}
}

// skill is one skill; every number has its word, since rows stand without a heading.
func (r *RowDrawer) skill(p *Pieces, u ace.SkillUsage) {
	s, g := r.S, r.S.Glyphs
	number := func(n, width int, word string, ink theme.Ink) {
		if n == 0 {
			ink = s.Muted
		}
		p.add(ink, text.FitLeft(text.Count(int64(n)), width, "")+word)
	}
	p.add(s.Text, text.Fit(text.Safe(u.Name, " "), widget.Clamp(r.Width-66, 10, 24), g.Ellipsis))
	calls := " calls"
	if u.Calls == 1 {
		calls = " call "
	}
	number(u.Calls, 6, calls, s.Text)
	number(u.OK, 6, " ok", s.Text)
	number(u.Failed, 4, " failed", s.Failed)
	number(u.Denied, 4, " denied", s.Warning)
	if u.Pending > 0 {
		number(u.Pending, 4, " pending", s.Running)
	}
	p.add(s.Muted, "  p50 "+widget.TookMS(u.P50MS, g)+"  p95 "+widget.TookMS(u.P95MS, g))
	if u.LastError != "" {
		p.add(s.Muted, "  last error: ").add(s.Error, oneLineOf(u.LastError))
	}
}

func usageText(u ace.Usage, g theme.Glyphs) string {
	said := text.Count(u.InputTokens) + " tokens in, " + text.Count(u.OutputTokens) + " out"
	if u.CacheReadTokens > 0 {
		said += ", " + text.Count(u.CacheReadTokens) + " from cache"
	}
	if u.Unpriced {
		if u.CostUSD == 0 {
			return said + ", cost not known"
		}
		return said + ", more than " + console.CostCell(u, g)
	}
	return said + ", " + console.CostCell(u, g)
}

// operation is one change to the playbook. Refused ones are muted, with the reason.
func (r *RowDrawer) operation(p *Pieces, op ace.Operation) {
	glyph, ink := console.OpMark(op.Type, r.S)
	if refused(op) {
		glyph, ink = r.S.Glyphs.Rejected, r.S.Muted
		p.add(ink, glyph+" "+text.Safe(string(op.Outcome), " ")+" "+text.Safe(string(op.Type), " ")+" ")
	} else {
		p.add(ink, glyph+" ")
	}
	if op.BulletID != "" {
		p.add(ink, "["+text.Safe(op.BulletID, " ")+"] ")
	}
	switch {
	case op.Type == ace.OpTag:
		p.add(ink, console.TagText(op.Metadata))
	case op.Type == ace.OpUpdate && !refused(op) && r.changed(p, op):
	case op.Content != "":
		p.add(ink, oneLineOf(op.Content))
	case op.Type == ace.OpRemove:
		p.add(ink, oneLineOf(r.D.Old[op.BulletID].Content))
	}
	if op.Reason != "" {
		p.add(r.S.Muted, " "+r.S.Glyphs.Dash+" because "+oneLineOf(op.Reason))
	}
}

func refused(op ace.Operation) bool { return op.Outcome != "" && op.Outcome != ace.OutcomeAccepted }

// changed shows which words of a bullet changed; false where its old text is not known.
func (r *RowDrawer) changed(p *Pieces, op ace.Operation) bool {
	old, ok := r.D.Old[op.BulletID]
	if !ok || old.Content == "" || op.Content == "" {
		return false
	}
	for _, e := range widget.DiffWords(widget.Bounded(old.Content, 100), widget.Bounded(op.Content, 100)) {
		ink, t := editText(e, r.S)
		p.add(ink, t)
	}
	return true
}

// editText is a run of words as it is shown: brackets tell what colour tells too.
func editText(e widget.Edit, s theme.Styles) (theme.Ink, string) {
	t := text.Safe(e.Text, " ")
	switch e.Kind {
	case widget.EditGone:
		return s.Removed, "[-" + t + "-]"
	case widget.EditNew:
		return s.Added, "{+" + t + "+}"
	}
	return s.Text, t
}

func (r *RowDrawer) call(p *Pieces, c *histories.ToolCall) {
	m, s := callMark(c.Call, r.S), r.S
	at := "        "
	if !c.At.IsZero() {
		at = c.At.In(r.Loc).Format("15:04:05")
	}
	p.add(s.Muted, at+" ").add(m.Ink, m.Glyph+" "+text.Safe(c.Name, " "))
	p.add(s.Text, "("+text.Cut(Payload(cutBytes(c.Args)), max(r.Width/2, 10), s.Glyphs.Ellipsis)+")")
	if m.Word != "" {
		p.add(m.Ink, " "+m.Word)
	}
	if c.DurationMS > 0 {
		p.add(s.Muted, " "+widget.TookMS(c.DurationMS, s.Glyphs))
	}
	switch {
	case c.Error != "":
		p.add(s.Error, " "+oneLineOf(c.Error))
	case len(c.Result) > 0:
		p.add(s.Muted, " "+s.Glyphs.Arrow+" ").add(s.Text, resultText(c.Result))
	}
}

// resultText is a result in a row: what it is where it cannot be read.
func resultText(raw []byte) string {
	if kind, size := widget.SealedIn(raw); kind != "" {
		return kind + ", " + widget.SizeText(int64(size))
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw[:min(len(raw), widget.MaxPayload)], &s) == nil && widget.Binary([]byte(s)) {
			return "binary, " + widget.SizeText(int64(len(s)))
		}
	}
	return Payload(cutBytes(raw))
}

// cutBytes is the beginning of a payload: as much as a row can show.
func cutBytes(raw []byte) []byte { return raw[:min(len(raw), 4096)] }

// prose is the first line of a text, and how many more there are.
func (r *RowDrawer) prose(p *Pieces, it Item) {
	what, t := textOf(r.D, it)
	ink := r.S.Text
	if it.Kind == ItemAnswer {
		if exit, _ := verdict(r.D); exit != "" {
			m := r.S.Status(string(exit))
			ink = m.Ink
			t = m.Glyph + " " + t
		}
	}
	if it.Kind == itemPrompt && r.D.Input.PromptRef != nil {
		what, t = "prompt", refText(*r.D.Input.PromptRef)
	}
	label, t := text.Fit(strings.TrimSuffix(what, " answer"), 15, ""), strings.TrimSpace(t)
	first, _, _ := strings.Cut(t, "\n")
	more := strings.Count(t, "\n")
	p.add(r.S.Muted, label).add(ink, oneLineOf(first))
	if more > 0 {
		p.add(r.S.Muted, " (+"+widget.Counted(more, "line")+")")
	}
}

// refText names an artifact.
func refText(r ace.Ref) string {
	said := "artifact " + text.Safe(r.SHA256[:min(len(r.SHA256), 12)], " ") + ", " + widget.SizeText(r.Size)
	if r.MediaType != "" {
		said += ", " + text.Safe(r.MediaType, " ")
	}
	return said
}
