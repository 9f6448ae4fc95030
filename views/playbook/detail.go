package playbook

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// detail is the right pane: the selected row of the list. Its cursor is on a line; some lines lead to a run
// or a bullet.
type detail struct {
	*browser
	console.Reader
	links []lineLink // by line
}

// lineLink is the target of a line.
type lineLink struct {
	by     *playbook.Source
	bullet string
}

func (v *detail) Title() string {
	switch v.Mode {
	case bulletMode:
		return "Author"
	case versionMode:
		return "Changes"
	case diffMode:
		return "Difference"
	}
	return "Finding"
}

func (v *detail) Bindings() []tui.Binding {
	open := console.Key("blame.open", "open the run or the bullet on this line", "run", v.open, "enter")
	return append(append(widget.Motions("blame", v), open), v.browser.bindings(v.find)...)
}

// find moves to the nearest line that contains the search text.
func (v *detail) find(shell tui.Shell, from, by int, _ func(row) bool) {
	for n := range v.Lines {
		i := ((v.Cursor+from+n*by)%len(v.Lines) + len(v.Lines)) % len(v.Lines)
		if v.query != "" && strings.Contains(strings.ToLower(text.Safe(v.Lines[i], " ")), v.query) {
			v.Scroll(i - v.Cursor)
			return
		}
	}
	shell.Note("no line matches")
}

func (v *detail) Refresh() { v.data = v.feed.Value() }

func (v *detail) Scroll(by int) {
	v.Reader.Scroll(by)
	v.RowBy = v.link().by
	v.want()
}

// link returns the target of the cursor's line or of the nearest line above it.
func (v *detail) link() lineLink {
	for i := min(v.Cursor, len(v.links)-1); i >= 0; i-- {
		if v.links[i] != (lineLink{}) {
			return v.links[i]
		}
	}
	if r := v.current(); r != nil {
		return lineLink{by: r.source()}
	}
	return lineLink{}
}

// open opens the target of the line.
func (v *detail) open(shell tui.Shell) {
	l := v.link()
	if l.bullet == "" {
		v.openRun(shell, l.by, "run")
		return
	}
	v.Mode, v.Bullet, v.RowBy = bulletMode, l.bullet, nil
	v.want()
}

func (v *detail) Draw(now time.Time, focused bool) []string {
	r := v.current()
	if focused {
		v.hold()
	}
	v.want()
	if r == nil {
		return v.Message(nil, "no row is selected")
	}
	lines := v.Show(v.Title()+r.key(), nil, now, focused, func(writer *widget.Writer) {
		w := &detailWriter{Writer: writer, browser: v.browser}
		r.write(w)
		v.links = w.links
	})
	if len(v.Lines) == 0 {
		return v.Message(nil, "no row is selected")
	}
	return lines
}

// hold keeps the version that the user reads: the list stops following the newest.
func (v *detail) hold() {
	if at := v.chosen(); v.Mode == versionMode && v.seq < 0 && at != nil && at.Branch == v.data.Branch.Name {
		v.seq = at.Seq
		v.want()
	}
}

// detailWriter writes the selected row.
type detailWriter struct {
	*widget.Writer
	*browser
	links []lineLink
}

// linkLines sets the target of all lines from number from on.
func (w *detailWriter) linkLines(l lineLink, from int) {
	for len(w.links) < len(w.Lines) {
		w.links = append(w.links, lineLink{})
	}
	for i := from; i < len(w.Lines); i++ {
		w.links[i] = l
	}
}

// bullet writes a bullet: its text, counters, author and changes.
func (w *detailWriter) bullet(l *playbook.BulletHistory) {
	s := w.S
	w.End(w.Line().Add(s.Accent, text.Safe(l.Bullet.ID, " ")).Add(s.Muted,
		"  "+text.Safe(l.Bullet.Section, " ")))
	w.Prose("", s.Text, l.Bullet.Content)
	w.counters(l)
	w.Section("Written by", "")
	if l.Added == nil {
		w.Say(s.Muted, "   part of the first version of the branch")
	} else {
		w.merge(l.Added, "ADD", s.Added)
	}
	w.changes(l)
}

// counters shows how often a bullet helped and harmed, over time.
func (w *detailWriter) counters(l *playbook.BulletHistory) {
	s, b := w.S, l.Bullet
	at := w.chosen()
	helpful, harmful := l.Counts.Sample(at.Seq, 20)
	w.Say(s.Text, "")
	row := func(name string, ink theme.Ink, n int, values []float64) {
		w.End(w.Line().Add(s.Muted, "   "+text.Fit(name, 8, "")).
			Add(ink, text.FitLeft(ace.Number(n), 6, "")+"  "+widget.Spark(values, 20, s.Glyphs)))
	}
	row("helpful", s.Added, b.Helpful, helpful)
	row("harmful", widget.If(b.Harmful == 0, s.Muted, s.Removed), b.Harmful, harmful)
	if b.Neutral > 0 {
		row("neutral", s.Muted, b.Neutral, nil)
	}
}

// merge writes a merge whose lines lead to its run.
func (w *detailWriter) merge(by *playbook.Source, did string, ink theme.Ink) {
	from := len(w.Lines)
	w.source(by, did, ink)
	w.linkLines(lineLink{by: by}, from)
}

// source writes a merge: its task, version, age, events and reason.
func (w *detailWriter) source(by *playbook.Source, did string, ink theme.Ink) {
	s := w.S
	l := w.Line().Add(s.Text, "   ").Add(s.Accent, console.OrDash(by.TaskID, s.Glyphs)).Add(ink, "  "+did)
	l.Add(s.Muted, "  v"+strconv.Itoa(by.Seq))
	if w.data.Branch.Name != by.Branch {
		l.Add(s.Muted, " of "+text.Safe(by.Branch, " "))
	}
	w.End(l.Add(s.Muted, "  "+w.Ago(by.At)))
	if by.WorkflowID != "" {
		w.End(w.Line().Add(s.Muted, "     "+text.Safe(by.WorkflowID, " ")+"  ").Add(s.Muted, w.steps(by)))
	}
	if by.Rationale != "" {
		w.Prose("     because ", s.Muted, by.Rationale)
	}
}

// steps names the history events of a merge.
func (w *detailWriter) steps(by *playbook.Source) string {
	key := playbooks.RunKey{WorkflowID: by.WorkflowID, RunID: by.RunID}
	st, known := w.data.Steps[key]
	switch {
	case known && st.Err != "":
		return "history not read: " + text.Safe(st.Err, " ")
	case known && st.Persist == 0 && st.Curator == 0:
		return "no history event for this change"
	case known && st.Curator == 0:
		return fmt.Sprintf("persist: event %d", st.Persist)
	case known:
		return fmt.Sprintf("curator: event %d, persist: event %d", st.Curator, st.Persist)
	case w.run() == key:
		return "searching its history" + w.S.Glyphs.Ellipsis
	}
	return ""
}

// changes writes the later changes of a bullet, newest first: rewording, then counters.
func (w *detailWriter) changes(l *playbook.BulletHistory) {
	var edits, tags []*playbook.BulletChange
	for i := len(l.Touches) - 1; i >= 0; i-- {
		switch t := &l.Touches[i]; t.Type {
		case ace.OpAdd:
		case ace.OpTag:
			tags = append(tags, t)
		default:
			edits = append(edits, t)
		}
	}
	w.touches("Reworded by", edits, l.Edits)
	w.touches("Counted by", tags, l.Tags)
}

// touches writes a list of changes; all is the number of changes, including dropped ones.
func (w *detailWriter) touches(title string, list []*playbook.BulletChange, all int) {
	if all == 0 {
		return
	}
	remark := ace.Number(all)
	remark += widget.If(len(list) > 1, ", newest first", "")
	if n := all - len(list); n > 0 {
		remark += "; " + ace.Number(n) + " older not kept"
	}
	w.Section(title, remark)
	for _, t := range list {
		from := len(w.Lines)
		w.touch(t)
		w.linkLines(lineLink{by: t.Source}, from)
	}
}

func (w *detailWriter) touch(t *playbook.BulletChange) {
	ink := w.S.Operation(string(t.Type)).Ink
	if t.Type == ace.OpTag {
		tags := console.TagText(map[string]int{"helpful": t.Helpful, "harmful": t.Harmful,
			"neutral": t.Neutral})
		l := w.Line().Add(w.S.Text, "   ").Add(w.S.Accent, console.OrDash(t.TaskID, w.S.Glyphs)).Add(ink,
			"  "+tags)
		w.End(l.Add(w.S.Muted, "  v"+strconv.Itoa(t.Seq)+"  "+w.Ago(t.At)))
		if st := w.steps(t.Source); st != "" {
			w.Say(w.S.Muted, "     "+st)
		}
		return
	}
	w.source(t.Source, string(t.Type), ink)
	for _, m := range t.Merged {
		w.Prose("     "+w.S.Glyphs.Merged+" ["+text.Safe(m.ID, " ")+"] ", w.S.Muted, m.Content)
	}
	if t.Into != "" {
		w.Say(w.S.Muted, "     merged into ["+text.Safe(t.Into, " ")+"]")
	}
	if t.Type == ace.OpUpdate || t.Type == ace.OpMerge && t.Content != "" {
		w.hunks("     ", playbook.Words(t.Before, t.Content))
	}
}

// version writes a version: its author, reason, and operations with their outcomes.
func (w *detailWriter) version(at *playbooks.VersionDetail, by *playbook.Source) {
	s, g, r := w.S, w.S.Glyphs, at.Record
	w.End(w.Line().Add(s.Accent, "v"+strconv.Itoa(at.Seq)).Add(s.Text, " of "+text.Safe(at.Branch, " ")).
		Add(s.Muted, "  "+console.Short(at.Hash, g)+"  "+ace.Count(r.Bullets, "bullet")))
	if at.Seq == 0 {
		w.Say(s.Muted, "the first version of the branch")
		return
	}
	if by != nil {
		w.merge(by, console.VersionDelta(r, g), s.Text)
	}
	if r.Hash == r.Parent {
		w.Say(s.Muted, "   no change to the playbook")
	}
	if r.Rationale != "" {
		w.Section("Why", "")
		w.Prose("   ", s.Text, r.Rationale)
	}
	w.Section("Operations", ace.Number(len(r.Operations)))
	words := map[string][]playbook.Hunk{}
	for _, c := range at.Changes.Changed {
		words[c.ID] = c.Words
	}
	for _, op := range r.Operations {
		if h := words[op.BulletID]; op.Type == ace.OpUpdate && op.Outcome == ace.OutcomeAccepted &&
			len(h) > 0 {
			w.End(w.Line().Add(s.Updated, "   "+g.Updated+" ["+text.Safe(op.BulletID, " ")+"]"))
			w.hunks("     ", h)
			delete(words, op.BulletID) // several updates of one bullet are shown once
			continue
		}
		console.Operation(w.Writer, op)
	}
}

// difference writes a bullet in two versions.
func (w *detailWriter) difference(d diffRow) {
	s := w.S
	m := s.Operation(d.operation())
	w.End(w.Line().Add(m.Ink, m.Glyph+" "+text.Safe(d.bullet.ID, " ")).Add(s.Muted,
		"  "+text.Safe(d.bullet.Section, " ")))
	c := d.change
	if c == nil {
		w.Say(s.Muted, "   "+d.kind)
		w.Prose("   ", m.Ink, d.bullet.Content)
		w.Say(s.Muted, fmt.Sprintf("   helpful %d, harmful %d, neutral %d",
			d.bullet.Helpful, d.bullet.Harmful, d.bullet.Neutral))
		return
	}
	if c.From != "" {
		w.Say(s.Muted, "   previous ID "+text.Safe(c.From, " "))
	}
	if c.Moved {
		w.Say(s.Updated, "   moved from section "+text.Safe(c.Before.Section, " "))
	}
	if c.Extra {
		w.Say(s.Updated, "   other extra fields")
	}
	for _, n := range counters(c) {
		w.Say(s.Tagged, fmt.Sprintf("   %s %d %s %d (%+d)", n.name, n.before, s.Glyphs.Arrow, n.after,
			n.after-n.before))
	}
	if !c.Content {
		w.Say(s.Text, "")
		w.Prose("   ", s.Muted, c.After.Content)
		return
	}
	w.Section("Text", "[-removed-] {+added+}")
	w.hunks("   ", c.Words)
}

// found writes a finding and its bullets.
func (w *detailWriter) found(f *playbook.Finding) {
	s := w.S
	glyph, ink := findingMark(f, s)
	w.End(w.Line().Add(ink, glyph+" "+string(f.Severity)).Add(s.Strong, "  "+string(f.Kind)))
	w.Prose("", s.Text, f.Text)
	w.Prose("fix ", s.Accent, f.Advice)
	w.Prose("", s.Muted, f.Chance())
	if f.By != nil {
		w.Section("Caused by", "")
		w.merge(f.By, "", s.Text)
	}
	const enough = 50
	for i, id := range f.BulletIDs {
		if i == 0 {
			w.Section("Bullets", "enter opens a bullet")
		}
		if i == enough {
			w.Say(s.Muted, "   and "+ace.Number(len(f.BulletIDs)-enough+f.More)+" more")
			break
		}
		from := len(w.Lines)
		l := w.Line().Add(s.Accent, "   "+text.Safe(id, " "))
		life := w.byID[id]
		if life != nil {
			l.Add(s.Muted, fmt.Sprintf("  helpful %d, harmful %d", life.Bullet.Helpful, life.Bullet.Harmful))
			if life.Added != nil {
				l.Add(s.Muted, "  by "+console.OrDash(life.Added.TaskID, s.Glyphs))
			}
		}
		w.End(l)
		if life != nil {
			w.Prose("     ", s.Text, life.Bullet.Content)
		}
		w.linkLines(lineLink{bullet: id}, from)
	}
	w.uncheckedKinds()
}

// uncheckedKinds writes the kinds of findings that could not be checked.
func (w *detailWriter) uncheckedKinds() {
	if len(w.data.Health.Unchecked) == 0 {
		return
	}
	w.Section("Not checked", "")
	for _, u := range w.data.Health.Unchecked {
		w.Prose("   "+string(u.Kind)+": ", w.S.Muted, u.Why)
	}
}

// hunks writes a text with its removed and added parts in color and between marks.
func (w *detailWriter) hunks(indent string, list []playbook.Hunk) {
	w.Spans(indent, w.S.Text, console.HunkSpans(list, w.S, w.S.Muted))
}
