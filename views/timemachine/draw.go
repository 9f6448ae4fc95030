package timemachine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/stepper"
	"acescope/engine/temporal/replay"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Bounds of the lanes of the timeline above the state: their number, and their share of the height in
// percent.
const (
	maxLanes  = 12
	laneShare = 33
)

// head returns the lines that do not scroll: the timeline of the run, the event, and messages to the user.
func (v *pane) head(now time.Time) []string {
	d, f := v.data, v.data.Frame
	lanes := min(maxLanes, v.Height*laneShare/100-1)
	w := &widget.Writer{Doc: &v.doc, S: v.Styles, Width: v.Width, Now: now, Loc: v.location}
	w.Lines = v.strip.Draw(v.Styles, d.Log, f.EventID, v.Width, max(lanes, 1), now)
	event := fmt.Sprintf(" event %d of %d", f.EventID, d.About.LastEvent)
	w.End(w.Line().Add(w.S.Strong, event).Add(w.S.Muted, fmt.Sprintf("  %.3f s  ", f.ElapsedMS/1000)).
		Add(widget.If(!f.Error, w.S.Text, w.S.Error), text.Safe(d.Words, " ")))
	switch {
	case d.Message != "":
		w.Say(w.S.Warning, " "+text.Safe(d.Message, " "))
	case d.Watched != "":
		w.End(w.Line().Add(w.S.Muted, " watching ").Add(w.S.Strong, text.Safe(d.Watched, " ")).
			Add(w.S.Text, " = "+text.Safe(d.WatchedValue, " ")))
	case d.Verifying:
		w.Say(w.S.Muted, " verify ("+Comparing(d.Strict)+"): replaying with the current code"+
			w.S.Glyphs.Ellipsis)
	case d.Verdict != nil:
		m := verdictInk(d.Verdict, w.S)
		w.Say(m, " verify: "+string(d.Verdict.Outcome)+", see the Event pane (tab)")
	}
	if d.About.Foreign != "" {
		w.Say(w.S.Warning, " "+w.S.Glyphs.Unknown+" "+text.Safe(d.About.Foreign, " "))
	}
	return w.Lines
}

func verdictInk(v *replay.Verdict, s theme.Styles) theme.Ink {
	switch {
	case v.Divergence != nil:
		return s.Error
	case v.Outcome == replay.Unverified:
		return s.Warning
	}
	return s.Muted
}

// Bounds of a text in the state: lines, and bytes of a payload. The event that sets it shows all of it.
const (
	maxStateLines   = 12
	maxStatePayload = 4096
)

func (v *pane) drawState(w *widget.Writer) {
	v.changed = -1
	if wrong := v.data.Wrong; v.alone() && wrong != nil && wrong.EventID == v.data.Frame.EventID {
		v.wrongAnswer(w, wrong) // the Event pane is hidden
		v.changed = 0
	}
	for _, s := range v.data.Sections {
		w.Section(s.Title, s.Remark)
		for _, i := range s.Items {
			if i.Changed && v.changed < 0 {
				v.changed = len(w.Lines)
			}
			v.item(w, i, maxStateLines)
		}
	}
}

func (v *pane) drawEvent(w *widget.Writer) {
	d, f := v.data, v.data.Frame
	w.Prose(" ", widget.If(!f.Error, w.S.Strong, w.S.Error), text.Safe(d.Words, " "))
	diverges := d.Verdict != nil && d.Verdict.Divergence != nil && d.Verdict.Divergence.EventID == f.EventID
	if diverges {
		v.drawVerdict(w)
	}
	if d.Wrong != nil && d.Wrong.EventID == f.EventID {
		v.wrongAnswer(w, d.Wrong)
	}
	changed := false
	for _, s := range d.Sections {
		items := slices.DeleteFunc(slices.Clone(s.Items), func(i kind.Item) bool {
			return !i.Changed
		})
		if len(items) == 0 {
			continue
		}
		changed = true
		w.Section(s.Title, "changed by this event")
		for _, i := range items {
			i.Changed = false
			v.item(w, i, math.MaxInt)
		}
	}
	if !changed {
		w.Say(w.S.Muted, " The state does not change.")
	}
	if f.ClockBackMS > 0 {
		w.Prose(v.alert(), w.S.Warning, fmt.Sprintf("the clock went back %.3f s", f.ClockBackMS/1000))
	}
	for _, n := range f.Notes {
		w.Prose(v.alert(), w.S.Warning, text.Safe(n, " "))
	}
	if d.Err != "" {
		w.Prose(v.alert(), w.S.Error, text.Safe(d.Err, " "))
	}
	v.drawCalls(w)
	if !diverges {
		v.drawVerdict(w)
	}
	v.drawChain(w)
}

// alert is the label of a warning.
func (v *pane) alert() string { return " " + v.Styles.Glyphs.Failed + " " }

// item writes an item, with at most most lines of each text, and records the bullet that the lines belong to.
func (v *pane) item(w *widget.Writer, i kind.Item, most int) {
	first := len(w.Lines)
	mark, ink := "   ", w.S.Text
	if i.Changed {
		mark, ink = " "+w.S.Glyphs.Updated+" ", w.S.Updated
	}
	if i.Head != "" || i.Outcome != "" {
		l := w.Line().Add(ink, mark)
		if i.Outcome != "" {
			m := console.OutcomeMark(i.Outcome, w.S)
			l.Add(m.Ink, m.Glyph+" ").Add(ink, text.Safe(i.Head, " ")).Add(m.Ink, " "+m.Word)
		} else {
			l.Add(w.S.Accent, text.Safe(i.Head, " "))
		}
		w.End(l)
		mark = "     "
	}
	for _, f := range i.Fields {
		v.field(w, mark, ink, f, most)
		mark = text.Spaces(text.Width(mark))
	}
	if i.Bullet == "" {
		return
	}
	if h := v.data.Bullets[i.Bullet]; h != nil && h.Added != nil {
		w.Prose(mark, w.S.Muted, text.Safe(fmt.Sprintf("added by %s, v%d", h.Added.TaskID, h.Added.Seq), " "))
	}
	for line := first; line < len(w.Lines); line++ {
		v.bullets[line] = i.Bullet
	}
}

// field writes a field below a mark.
func (v *pane) field(w *widget.Writer, mark string, ink theme.Ink, f kind.Field, most int) {
	mark += widget.If(f.Label != "", text.Safe(f.Label, " ")+" ", "")
	switch f.Kind {
	case "error":
		ink = w.S.Error
	case "removed":
		ink = w.S.Removed
	case "added":
		ink = w.S.Added
	}
	first := len(w.Lines)
	switch {
	case f.Kind != "payload":
		w.Prose(mark, ink, f.Text)
	case len(f.Text) <= w.Width-text.Width(mark) || most < math.MaxInt:
		w.Prose(mark, ink, text.Payload([]byte(f.Text[:min(len(f.Text), maxStatePayload)])))
	default:
		p := v.payloads.Of([]byte(f.Text))
		w.Say(w.S.Muted, mark+p.Kind+", "+widget.SizeText(int64(p.Size)))
		for _, l := range p.Lines {
			w.Spans("     ", ink, p.Spans(l, w.S))
		}
	}
	if rest := len(w.Lines) - first - most; rest > 0 {
		w.Lines = w.Lines[:first+most]
		w.Say(w.S.Muted, text.Spaces(5)+w.S.Glyphs.Ellipsis+" and "+ace.Count(rest, "line"))
	}
}

// wrongAnswer shows a wrong answer beside the label, and the plan beside the bullets that were used.
func (v *pane) wrongAnswer(w *widget.Writer, wrong *stepper.WrongAnswer) {
	w.Section(w.S.Glyphs.Wrong+" The answer became wrong here", "graded at event "+ace.Number(wrong.GradedAt)+
		widget.If(len(wrong.Bullets) > 0, "; A opens the author of a bullet", ""))
	answer := side{head: "answer", ink: w.S.Removed, texts: []string{cmp.Or(wrong.Answer, "none")}}
	label := side{head: "expected", ink: w.S.Added, texts: []string{cmp.Or(wrong.Expected, "unknown")}}
	columns(w, answer, label)
	plan := side{head: "plan", ink: w.S.Text, texts: []string{cmp.Or(wrong.Plan, "none")}}
	used := side{head: "bullets used", ink: w.S.Text}
	for _, b := range wrong.Bullets {
		used.texts = append(used.texts, strings.Join(strings.Fields(b.ID+" "+b.Tag), ", ")+": "+
			cmp.Or(b.Content, "text not known"))
	}
	if len(used.texts) == 0 {
		used.texts = []string{"none"}
	}
	first := len(w.Lines) + 1
	for n, at := range columns(w, plan, used) {
		if at >= 0 && at < len(wrong.Bullets) {
			v.bullets[first+n] = wrong.Bullets[at].ID
		}
	}
	for _, why := range []string{wrong.Cause, wrong.Reason, wrong.Insights} {
		if why != "" {
			w.Prose(" ", w.S.Warning, why)
		}
	}
}

// side is one of two columns.
type side struct {
	head  string
	ink   theme.Ink
	texts []string // untrusted
}

// columns writes two columns side by side below their heads. It returns for each line which text of the right
// column it shows, -1 for none.
func columns(w *widget.Writer, left, right side) (of []int) {
	half := max((w.Width-4)/2, 4)
	g := w.S.Glyphs
	row := func(a string, inkA theme.Ink, b string, inkB theme.Ink) {
		w.End(w.Line().Add(w.S.Text, " ").Add(inkA, text.Fit(a, half, g.Ellipsis)).
			Add(w.S.Border, " "+g.Plain.Side+" ").Add(inkB, text.Fit(b, half, g.Ellipsis)))
	}
	row(left.head, w.S.Muted, right.head, w.S.Muted)
	a, _ := left.lines(half)
	b, of := right.lines(half)
	for i := range max(len(a), len(b)) {
		row(lineAt(a, i), left.ink, lineAt(b, i), right.ink)
	}
	return of
}

// lines wraps the texts. of holds, for each line, the index of its text.
func (s side) lines(width int) (lines []string, of []int) {
	for n, t := range s.texts {
		for _, l := range text.Wrap(t[:min(len(t), widget.MaxText)], width) {
			lines = append(lines, l)
			of = append(of, n)
		}
	}
	return lines, of
}

// drawCalls shows the requests to models of the phase or step that the event completes.
func (v *pane) drawCalls(w *widget.Writer) {
	for _, c := range v.data.Calls {
		w.Section("Requests of "+text.Safe(c.Step, " "), text.Safe(c.Model, " "))
		w.Prose("   ", w.S.Text, console.RequestsText(c.Log))
		if c.Usage != nil {
			w.Prose("   ", w.S.Muted, console.UsageText(*c.Usage))
		}
		v.request(w, "Prompt", c.Prompt)
		v.request(w, "Response", c.Response)
		if c.Err != "" {
			w.Prose(v.alert(), w.S.Warning, text.Safe(c.Err, " "))
		}
	}
	v.artifacts.Write(w, v.nav, v.refs(), cmp.Or(v.data.About.TaskID, v.data.WorkflowID))
}

// maxRequestLines bounds the lines of a prompt or response; the key O opens all of it.
const maxRequestLines = 16

func (v *pane) request(w *widget.Writer, title, content string) {
	if content == "" {
		return
	}
	w.Section(title, "O opens all of it")
	v.field(w, "   ", w.S.Text, kind.Field{Text: strings.Trim(content, "\n")}, maxRequestLines)
}

// drawChain shows the position of the run in its chain, and the keys that go to the other runs.
func (v *pane) drawChain(w *widget.Writer) {
	d := v.data
	c, reset := d.Chain, d.About.Reset
	if len(c.RunIDs) < 2 && reset == nil && c.Before == "" && c.After == "" {
		return
	}
	w.Section("Chain", fmt.Sprintf("run %d of %d: %s", c.At+1, max(len(c.RunIDs), 1),
		text.Safe(d.RunID, " ")))
	if len(c.RunIDs) > 1 {
		w.Prose("   ", w.S.Muted, "after the last event comes the next run, before the first event the previous run")
	}
	if reset != nil {
		w.Prose("   ", w.S.Text, fmt.Sprintf("reset from run %s: events 1 to %s come from that run. "+
			"The run screen links to it.", text.Safe(reset.RunID, " "), ace.Number(reset.Event)))
	}
	for _, gone := range []string{c.Before, c.After} {
		if gone != "" {
			w.Prose(v.alert(), w.S.Warning, text.Safe(gone, " "))
		}
	}
}

// drawVerdict shows the result of verifying the run.
func (v *pane) drawVerdict(w *widget.Writer) {
	d := v.data
	switch {
	case d.Verifying:
		w.Section("Verify", Comparing(d.Strict)+": replaying with the current code"+w.S.Glyphs.Ellipsis)
	case d.Verdict == nil:
		w.Section("Verify",
			"r replays the run with the current code and shows the first different decision; & compares strictly")
	default:
		Verdict(w, d.Verdict, d.Strict)
	}
}

// Verdict writes a verdict, with expected and actual decision side by side.
func Verdict(w *widget.Writer, v *replay.Verdict, strict bool) {
	switch {
	case v.Divergence == nil && v.Why != "":
		w.Section("Verify", string(v.Outcome))
		w.Prose("   ", w.S.Warning, text.Safe(v.Why, " "))
		for line := range strings.Lines(v.Advice) {
			w.Prose("   ", w.S.Accent, text.Safe(strings.TrimSuffix(line, "\n"), " "))
		}
	case v.Divergence == nil:
		w.Section("Verify", string(v.Outcome)+" ("+Comparing(strict)+")")
		w.Prose("   ", w.S.Success, "Replay matches: the current code makes the same decisions ("+
			ace.Count(v.Events, "event")+").")
	default:
		g := v.Divergence
		at := ""
		if g.EventID > 0 {
			at = " at event " + ace.Number(g.EventID) + " " + text.Safe(g.EventType, " ")
		}
		w.Section("Verify", string(v.Outcome)+at+" ("+Comparing(strict)+")")
		sides(w, g)
		w.Prose("   ", w.S.Text, text.Safe(g.Sentence, " "))
		w.Prose("   ", w.S.Accent, text.Safe(g.Advice, " "))
		if g.SDK != "" {
			w.Prose("   Temporal says ", w.S.Muted,
				text.Cut(text.Safe(g.SDK, " "), maxSDKMessage, w.S.Glyphs.Ellipsis))
		}
	}
}

// maxSDKMessage bounds the message of the Temporal SDK, in cells. It lists every field; --json contains
// all of it.
const maxSDKMessage = 300

// sides writes what the history contains and what the code does, side by side.
func sides(w *widget.Writer, g *replay.Divergence) {
	recorded := []string{g.Expected.String(), "recorded by " + g.Recorded}
	code := []string{g.Actual.String(), "code " + g.Code}
	columns(w, side{"expected (history)", w.S.Removed, recorded}, side{"actual (code)", w.S.Added, code})
}

func lineAt(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// Comparing says how strictly histories and code are compared.
func Comparing(strict bool) string {
	return widget.If(strict, "strict: inputs and timer durations too", "as Temporal compares")
}
