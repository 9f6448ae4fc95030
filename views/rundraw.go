package views

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// piece is text in an ink.
type piece struct {
	ink  theme.Ink
	text string
}

// pieces is a row that is not yet painted: the selected row is painted in one piece.
type pieces []piece

func (p *pieces) add(ink theme.Ink, t string) *pieces {
	if t != "" {
		*p = append(*p, piece{ink, t})
	}
	return p
}

func (p pieces) line(width int, mark rowMark, s theme.Styles) string {
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	head := text.Spaces(pointerWidth)
	if mark != rowPlain {
		head = s.Glyphs.Pointer + " "
	}
	l.Add(s.Text, head)
	if mark == rowPlain {
		for _, one := range p {
			l.Add(one.ink, one.text)
		}
		return l.String(s.Text)
	}
	for _, one := range p {
		l.Add(theme.Ink{}, one.text)
	}
	return rowInk(mark, s).Paint(l.String(theme.Ink{}))
}

// rowDrawer draws the rows of a run's screen.
type rowDrawer struct {
	d     *sources.Detail
	s     theme.Styles
	width int // of what stands behind the pointer
	now   time.Time
	loc   *time.Location
	bars  bool // there is room for time bars
	fold  map[part]bool
}

func (r *rowDrawer) row(row runRow) pieces {
	var p pieces
	if row.sub {
		p.add(r.s.Text, "      "+row.more)
		return p
	}
	if row.kind != itemSection {
		p.add(r.s.Text, " ")
	}
	switch row.kind {
	case itemSection:
		r.section(&p, row.part)
	case itemFailure, itemCause, itemReading, itemMissing, itemSealed:
		r.trouble(&p, row.item)
	case itemPending:
		r.pending(&p, r.d.Pending[row.n])
	case itemProgress:
		r.progress(&p, int(row.n))
	case itemFailedTask:
		r.failedTask(&p, r.d.FailedTasks[row.n])
	case itemPhase:
		r.phase(&p, r.d.Phase.Steps[row.n])
	case itemActivity:
		r.activity(&p, r.d.Activities[row.n])
	case itemSkill:
		r.skill(&p, r.d.Skills.Skills[row.n])
	case itemSpent:
		u := spentOn(r.d, ace.PhaseSkills)
		p.add(r.s.Muted, "the whole session: "+usageText(*u, r.s.Glyphs)+" (not told for each skill)")
	case itemOperation:
		r.operation(&p, r.d.Delta.Operations[row.n])
	case itemTag:
		t := r.d.Delta.BulletTags[row.n]
		p.add(r.s.Tagged, r.s.Glyphs.Tagged+" ["+text.Safe(t.ID, " ")+"] "+text.Safe(t.Tag, " "))
	case itemCallLog:
		p.add(r.s.Accent, "whole calls").add(r.s.Muted, "  "+refText(*r.d.CallLog))
	case itemCall:
		r.call(&p, r.d.Calls.At(int(row.n)))
	case itemLineage:
		r.node(&p, nodeOf(r.d, row.item))
	case itemField:
		f := fieldsOf(r.d)[row.n]
		p.add(r.s.Muted, text.Fit(f[0], 11, "")).add(r.s.Text, text.Safe(f[1], " "))
	case itemLog:
		r.logged(&p, logOf(r.d, row.item))
	case itemCourse, itemResult:
		r.course(&p, courseField(r.d, row.item))
	case itemLink:
		l := linksOf(r.d)[row.n]
		p.add(r.s.Accent, l.what+" "+r.s.Glyphs.Arrow+" ").add(r.s.Text, text.Safe(l.run.WorkflowID, " ")+" ")
		if l.run.RunID != "" {
			p.add(r.s.Muted, "run "+text.Safe(l.run.RunID, " "))
		}
	default:
		r.prose(&p, row.item)
	}
	return p
}

var partTitles = [parts]string{"Trouble", "Under way", "Progress", "Failed tasks", "Phases", "Run", "Result", "Log", "Lineage", "Skills", "Playbook", "Task", "Reflection", "Tool calls", "About"}

func (r *rowDrawer) section(p *pieces, at part) {
	title := partTitles[at]
	if at == partDelta {
		title += " " + r.s.Glyphs.Delta
	}
	switch {
	case at == partPhases && len(r.d.Phase.Steps) == 0:
		title = "Activities"
	case at == partPhases && r.d.Course != nil:
		title = "Life cycle"
	case at == partTask && r.d.Course != nil:
		title = "Prompt"
	}
	ink, remark := r.remark(at)
	p.add(r.s.Strong, title).add(ink, "  "+remark)
	if r.fold[at] {
		p.add(r.s.Accent, "  (folded: l unfolds)")
	}
}

// remark is what stands beside a section's heading.
func (r *rowDrawer) remark(at part) (theme.Ink, string) {
	d, g := r.d, r.s.Glyphs
	switch at {
	case partLog:
		if over := d.LogDropped + len(d.Log) - shownLog; over > 0 {
			return r.s.Muted, "the newest " + text.Count(shownLog) + " lines, and what the program writes; 1 and tab have more"
		}
		return r.s.Muted, "with what the program writes"
	case partProgress:
		return r.s.Muted, text.Safe(howFar(d.Experiment), " ")
	case partFailedTasks:
		return r.s.Failed, counted(len(d.FailedTasks)+d.FailedDropped, "task") + dropped(d.FailedDropped)
	case partPhases:
		return r.s.Muted, strings.TrimPrefix(dropped(d.ActivitiesDropped), ", ")
	case partSkills:
		said := counted(d.Skills.Total, "call")
		if d.Skills.Dropped > 0 {
			said += ", " + text.Count(int64(d.Skills.Dropped)) + " not kept"
		}
		if d.Skills.Unreadable > 0 {
			said += ", " + text.Count(int64(d.Skills.Unreadable)) + " unreadable"
		}
		return r.s.Muted, said
	case partDelta:
		return r.s.Muted, deltaRemark(d.Delta, g)
	case partTask:
		exit, said := verdict(d)
		m := r.s.Status(string(exit))
		if said == "" {
			return r.s.Muted, ""
		}
		return m.Ink, m.Glyph + " " + text.Safe(said, " ")
	case partLineage:
		said := counted(d.Forks.Count(), "fork")
		if n := len(d.Forks.Nodes); n > maxNodes {
			said += " (" + text.Count(maxNodes) + " of " + text.Count(int64(n)) + " runs here)"
		}
		return r.s.Muted, said + ", " + g.Point + " is this run, T shows the tree"
	case partCalls:
		said := counted(d.Calls.Len(), "call") + ", oldest first"
		if n := d.Calls.Cut(); n > 0 {
			said += ", payloads of " + text.Count(int64(n)) + " not kept whole"
		}
		return r.s.Muted, said
	case partTrouble:
		return r.s.Muted, strings.TrimPrefix(dropped(d.SealedDropped), ", ")
	}
	return r.s.Muted, ""
}

func deltaRemark(d ace.DeltaAnswer, g theme.Glyphs) string {
	said := short(d.PlaybookBefore, g)
	switch {
	case d.PlaybookAfter == "":
		return said + ", not merged yet"
	case d.PlaybookAfter == d.PlaybookBefore:
		said += " (unchanged)"
	default:
		said += " " + g.Arrow + " " + short(d.PlaybookAfter, g)
	}
	if d.Bullets > 0 {
		said += ", " + counted(d.Bullets, "bullet")
	}
	return said
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return text.Count(int64(n)) + " " + what
}

func dropped(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + text.Count(int64(n)) + " more not kept"
}

func (r *rowDrawer) trouble(p *pieces, it item) {
	d, s, g := r.d, r.s, r.s.Glyphs
	switch it.kind {
	case itemFailure:
		f := d.Phase.Failure
		m := s.Status(string(f.Kind))
		p.add(m.Ink, m.Glyph+" "+orDash(m.Word, g)+": ")
		if f.Type != "" {
			p.add(s.Muted, text.Safe(f.Type, " ")+": ")
		}
		p.add(s.Error, oneLineOf(f.Message))
	case itemCause:
		c := causes(d)[it.n]
		p.add(s.Muted, "because "+g.Arrow+" "+causeText(c)+": ").add(s.Text, oneLineOf(c.Message))
	case itemReading:
		p.add(s.Error, g.Failed+" reading: "+oneLineOf(d.Err))
	case itemMissing:
		p.add(s.Warning, g.Unknown+" not answered by this workflow: "+text.Safe(strings.Join(d.Missing, ", "), " "))
	case itemSealed:
		x := d.Sealed[it.n]
		p.add(s.Warning, g.Unknown+" "+text.Safe(x.What, " ")).add(s.Muted, " is "+text.Safe(x.Encoding, " ")+", "+
			sizeText(int64(x.Size))+": not readable here (event "+text.Count(x.Event)+")")
		if x.Reason != "" {
			p.add(s.Muted, ", codec server: "+oneLineOf(x.Reason))
		}
	}
}

// causeText is what kind of failure a link of a chain is, and its retry state.
func causeText(c sources.Cause) string {
	var parts []string
	for _, t := range []string{c.Kind, c.Activity, c.Type, c.Retry} {
		if t != "" {
			parts = append(parts, text.Safe(t, " "))
		}
	}
	return strings.Join(parts, ", ")
}

func oneLineOf(t string) string { return text.Safe(strings.TrimSpace(bounded(t, 400)), " ") }

// progress is one measurement of an experiment, or what became of the playbook.
func (r *rowDrawer) progress(p *pieces, n int) {
	e := r.d.Experiment
	bar := func(label string, share float64, said string, ink theme.Ink) {
		full := clamp(int(share*20+0.5), 0, 20)
		p.add(r.s.Muted, text.Fit(label, 14, "")).add(ink, strings.Repeat(r.s.Glyphs.Full, full)).
			add(r.s.Border, strings.Repeat(r.s.Glyphs.Empty, 20-full)).add(r.s.Strong, " "+text.FitLeft(percent(share), 6, "")).add(r.s.Muted, "  "+said)
	}
	switch {
	case n < len(e.Epochs):
		x := e.Epochs[n]
		said := text.Count(int64(x.Correct)) + " of " + text.Count(int64(x.Tasks-x.Unlabeled)) + " right"
		if x.Failed > 0 {
			said += ", " + text.Count(int64(x.Failed)) + " failed"
		}
		bar("epoch "+strconv.Itoa(x.Epoch), x.Accuracy, said, r.s.Running)
	case n < len(e.Epochs)+len(e.Eval):
		x := e.Eval[n-len(e.Epochs)]
		when := "eval after " + strconv.Itoa(x.Epoch)
		if x.Epoch == 0 {
			when = "eval before"
		}
		bar(when, x.Accuracy, text.Count(int64(x.Correct))+" of "+text.Count(int64(x.Tasks))+" right", r.s.Success)
	default:
		p.add(r.s.Muted, text.Fit("playbook", 14, "")+counted(e.Bullets, "bullet")+", "+short(e.Before, r.s.Glyphs)+" "+r.s.Glyphs.Arrow+" "+
			short(e.After, r.s.Glyphs)+", "+counted(e.Accepted, "operation")+" accepted, "+text.Count(int64(e.Rejected))+" rejected")
	}
}

func (r *rowDrawer) failedTask(p *pieces, t sources.Finished) {
	m := r.s.Status(string(t.Result.ExitStatus))
	p.add(m.Ink, m.Glyph+" "+text.Fit(text.Safe(t.Result.TaskID, " "), 24, r.s.Glyphs.Ellipsis))
	if t.Failure != nil {
		p.add(r.s.Error, " "+oneLineOf(t.Failure.Message))
	}
}

// node is a run of the lineage: the columns of the lineage's own screen, as far as there is
// room for them.
func (r *rowDrawer) node(p *pieces, n *sources.LineageNode) {
	t := newTable(lineageHeadings()...)
	t.arrange(r.width + pointerWidth - 2)
	here := ""
	if n.Run.RunID == r.d.RunID {
		here = r.s.Glyphs.Point
	}
	cells := lineageRow(n, here, t.widths[0], r.s)
	for at, i := range t.cols {
		if at > 0 {
			p.add(r.s.Text, " ")
		}
		p.add(cells[i].ink, t.fit(at, cells[i].text, r.s.Glyphs.Ellipsis))
	}
}

// skill is one skill; every number has its word, since rows stand without a heading.
func (r *rowDrawer) skill(p *pieces, u ace.SkillUsage) {
	s, g := r.s, r.s.Glyphs
	number := func(n, width int, word string, ink theme.Ink) {
		if n == 0 {
			ink = s.Muted
		}
		p.add(ink, text.FitLeft(text.Count(int64(n)), width, "")+word)
	}
	p.add(s.Text, text.Fit(text.Safe(u.Name, " "), clamp(r.width-66, 10, 24), g.Ellipsis))
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
	p.add(s.Muted, "  p50 "+tookMS(u.P50MS, g)+"  p95 "+tookMS(u.P95MS, g))
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
		return said + ", more than " + costCell(u, g)
	}
	return said + ", " + costCell(u, g)
}

// operation is one change to the playbook. Refused ones are muted, with the reason.
func (r *rowDrawer) operation(p *pieces, op ace.Operation) {
	glyph, ink := opMark(op.Type, r.s)
	if refused(op) {
		glyph, ink = r.s.Glyphs.Refused, r.s.Muted
		p.add(ink, glyph+" "+text.Safe(string(op.Fate), " ")+" "+text.Safe(string(op.Type), " ")+" ")
	} else {
		p.add(ink, glyph+" ")
	}
	if op.BulletID != "" {
		p.add(ink, "["+text.Safe(op.BulletID, " ")+"] ")
	}
	switch {
	case op.Type == ace.OpTag:
		p.add(ink, tagText(op.Metadata))
	case op.Type == ace.OpUpdate && !refused(op) && r.changed(p, op):
	case op.Content != "":
		p.add(ink, oneLineOf(op.Content))
	case op.Type == ace.OpRemove:
		p.add(ink, oneLineOf(r.d.Old[op.BulletID].Content))
	}
	if op.Reason != "" {
		p.add(r.s.Muted, " "+r.s.Glyphs.Dash+" because "+oneLineOf(op.Reason))
	}
}

func refused(op ace.Operation) bool { return op.Fate != "" && op.Fate != ace.FateAccepted }

// changed shows which words of a bullet changed; false where its old text is not known.
func (r *rowDrawer) changed(p *pieces, op ace.Operation) bool {
	old, ok := r.d.Old[op.BulletID]
	if !ok || old.Content == "" || op.Content == "" {
		return false
	}
	for _, e := range diffWords(bounded(old.Content, 100), bounded(op.Content, 100)) {
		ink, t := editText(e, r.s)
		p.add(ink, t)
	}
	return true
}

// editText is a run of words as it is shown: brackets tell what colour tells too.
func editText(e edit, s theme.Styles) (theme.Ink, string) {
	t := text.Safe(e.text, " ")
	switch e.kind {
	case editGone:
		return s.Removed, "[-" + t + "-]"
	case editNew:
		return s.Added, "{+" + t + "+}"
	}
	return s.Text, t
}

func (r *rowDrawer) call(p *pieces, c *sources.ToolCall) {
	m, s := callMark(c.Call, r.s), r.s
	at := "        "
	if !c.At.IsZero() {
		at = c.At.In(r.loc).Format("15:04:05")
	}
	p.add(s.Muted, at+" ").add(m.Ink, m.Glyph+" "+text.Safe(c.Name, " "))
	p.add(s.Text, "("+text.Cut(payload(cutBytes(c.Args)), max(r.width/2, 10), s.Glyphs.Ellipsis)+")")
	if m.Word != "" {
		p.add(m.Ink, " "+m.Word)
	}
	if c.DurationMS > 0 {
		p.add(s.Muted, " "+tookMS(c.DurationMS, s.Glyphs))
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
	if kind, size := sealedIn(raw); kind != "" {
		return kind + ", " + sizeText(int64(size))
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw[:min(len(raw), maxPayload)], &s) == nil && binary([]byte(s)) {
			return "binary, " + sizeText(int64(len(s)))
		}
	}
	return payload(cutBytes(raw))
}

// cutBytes is the beginning of a payload: as much as a row can show.
func cutBytes(raw []byte) []byte { return raw[:min(len(raw), 4096)] }

// prose is the first line of a text, and how many more there are.
func (r *rowDrawer) prose(p *pieces, it item) {
	what, t := textOf(r.d, it)
	ink := r.s.Text
	if it.kind == itemAnswer {
		if exit, _ := verdict(r.d); exit != "" {
			m := r.s.Status(string(exit))
			ink = m.Ink
			t = m.Glyph + " " + t
		}
	}
	if it.kind == itemPrompt && r.d.Input.PromptRef != nil {
		what, t = "prompt", refText(*r.d.Input.PromptRef)
	}
	label, t := text.Fit(strings.TrimSuffix(what, " answer"), 15, ""), strings.TrimSpace(t)
	first, _, _ := strings.Cut(t, "\n")
	more := strings.Count(t, "\n")
	p.add(r.s.Muted, label).add(ink, oneLineOf(first))
	if more > 0 {
		p.add(r.s.Muted, " (+"+counted(more, "line")+")")
	}
}

// refText names an artifact.
func refText(r ace.Ref) string {
	said := "artifact " + text.Safe(r.SHA256[:min(len(r.SHA256), 12)], " ") + ", " + sizeText(r.Size)
	if r.MediaType != "" {
		said += ", " + text.Safe(r.MediaType, " ")
	}
	return said
}
