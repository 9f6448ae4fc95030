package playbook

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/playbooks"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// playbookDetail is the right pane of the playbook screen: all that is known of what is
// chosen in the list. Its cursor is a line; some lines lead to a run or to a bullet.
type playbookDetail struct {
	*browser
	list          *PlaybookList // may be out of sight, and is brought up to date all the same
	styles        theme.Styles
	width, height int
	cursor, top   int
	of            string // what the cursor was on a line of
	doc           widget.Document
	lines         []string
	links         []bookLink // by line, empty where it leads nowhere
}

// bookLink is where a line leads.
type bookLink struct {
	by     *playbooks.BookSource
	bullet string
}

func (v *playbookDetail) Name() string { return "Blame" }

func (v *playbookDetail) Title() string {
	switch v.Mode {
	case bulletMode:
		return "Who wrote it"
	case versionMode:
		return "What it changed"
	case diffMode:
		return "Difference"
	}
	return "Finding"
}

func (v *playbookDetail) Footer() string {
	if len(v.lines) <= v.height {
		return ""
	}
	return text.Count(int64(v.cursor+1)) + "/" + text.Count(int64(len(v.lines)))
}

func (v *playbookDetail) Bindings() []tui.Binding {
	list := append(widget.Motions("blame", v), tui.Binding{Action: "blame.open", Keys: []string{"enter"}, Help: "show the run, or the bullet, that the line names", Short: "run",
		Do: func(shell tui.Shell) tea.Cmd { v.open(shell); return nil }})
	return append(list, v.browser.bindings(v.find)...)
}

// find moves to the nearest line with what is searched for.
func (v *playbookDetail) find(shell tui.Shell, from, by int, _ func(int) bool) {
	for n := range v.lines {
		i := ((v.cursor+from+n*by)%len(v.lines) + len(v.lines)) % len(v.lines)
		if v.query != "" && strings.Contains(strings.ToLower(text.Safe(v.lines[i], " ")), v.query) {
			v.Scroll(i - v.cursor)
			return
		}
	}
	shell.Note("nothing here matches")
}

func (v *playbookDetail) SetStyles(s theme.Styles) {
	v.styles = s
	v.doc.Clear()
}

func (v *playbookDetail) SetSize(width, height int) { v.width, v.height = width, height }

func (v *playbookDetail) Refresh() { v.books = v.feed.Value() }

func (v *playbookDetail) Page() int { return max(v.height, 1) }

func (v *playbookDetail) Scroll(by int) {
	v.cursor = widget.Clamp(v.cursor+by, 0, max(len(v.lines)-1, 0))
	v.reveal()
	v.RowBy = v.link().by
	v.want()
}

func (v *playbookDetail) reveal() {
	v.cursor = widget.Clamp(v.cursor, 0, max(len(v.lines)-1, 0))
	v.top = widget.Clamp(v.top, v.cursor-v.height+1, v.cursor)
	v.top = widget.Clamp(v.top, 0, max(len(v.lines)-v.height, 0))
}

// link is where the cursor's line leads, or the nearest above it.
func (v *playbookDetail) link() bookLink {
	for i := min(v.cursor, len(v.links)-1); i >= 0; i-- {
		if v.links[i] != (bookLink{}) {
			return v.links[i]
		}
	}
	return bookLink{by: v.browser.link()}
}

// open shows what the line leads to.
func (v *playbookDetail) open(shell tui.Shell) {
	l := v.link()
	if l.bullet == "" {
		v.openRun(shell, l.by, "run")
		return
	}
	v.Mode, v.Bullet, v.RowBy = bulletMode, l.bullet, nil
	v.want()
}

func (v *playbookDetail) Draw(now time.Time, focused bool) []string {
	v.list.sync()
	if focused {
		v.hold()
	}
	v.want()
	w := &bookWriter{Writer: widget.Writer{Doc: &v.doc, S: v.styles, Width: max(v.width-widget.PointerWidth, 1), Now: now, Loc: v.location}, browser: v.browser}
	of := w.write()
	v.lines, v.links = w.Lines, w.links
	if of != v.of {
		v.of, v.cursor, v.top = of, 0, 0
	}
	if len(v.lines) == 0 {
		return widget.Centre([]string{"nothing is chosen"}, v.width, v.height, v.styles)
	}
	v.reveal()
	out := make([]string, 0, v.height)
	for i := v.top; i < min(v.top+v.height, len(v.lines)); i++ {
		gutter := text.Spaces(widget.PointerWidth)
		if i == v.cursor && focused {
			gutter = v.styles.Title.Paint(v.styles.Glyphs.Pointer) + " "
		}
		out = append(out, text.Fit(gutter+v.lines[i], v.width, ""))
	}
	return widget.Fill(out, v.width, v.height)
}

// hold keeps the version that somebody reads: the list no longer follows the newest.
func (v *playbookDetail) hold() {
	if at := v.chosen(); v.Mode == versionMode && v.seq < 0 && at != nil && at.Branch == v.books.Branch.Name {
		v.seq = at.Seq
		v.want()
	}
}

// bookWriter writes the detail of what is chosen.
type bookWriter struct {
	widget.Writer
	*browser
	links []bookLink
}

// lead makes the lines written since lead to something.
func (w *bookWriter) lead(l bookLink, from int) {
	for len(w.links) < len(w.Lines) {
		w.links = append(w.links, bookLink{})
	}
	for i := from; i < len(w.Lines); i++ {
		w.links[i] = l
	}
}

// write writes the detail and tells what it is of.
func (w *bookWriter) write() (of string) {
	switch w.Mode {
	case bulletMode:
		if l := w.life(w.Bullet); l != nil {
			w.life1(l)
			return "bullet " + w.Bullet
		}
	case versionMode:
		if at := w.chosen(); at != nil && at.Seq == w.seqNow() {
			w.version(at)
			return "version " + at.Branch + " " + strconv.Itoa(at.Seq)
		}
	case diffMode:
		if i := w.at[diffMode]; i < len(w.rows.diffs) && w.rows.pair == w.pair() {
			w.difference(w.rows.diffs[i])
			return "difference " + w.rows.diffs[i].bullet.ID
		}
	case HealthMode:
		if f := w.finding(); f != nil {
			w.found(f)
			return "finding " + f.Text
		}
	}
	return ""
}

// life1 is one bullet: what it says, how it did, who wrote it and who changed it.
func (w *bookWriter) life1(l *playbooks.BulletLife) {
	s := w.S
	w.End(w.Line().Add(s.Accent, text.Safe(l.Bullet.ID, " ")).Add(s.Muted, "  "+text.Safe(l.Bullet.Section, " ")))
	w.Prose("", s.Text, l.Bullet.Content)
	w.counters(l)
	w.Section("Written by", "")
	if l.Added == nil {
		w.Say(s.Muted, "   the playbook that the branch began with; no merge wrote it")
	} else {
		from := len(w.Lines)
		w.source(l.Added, "ADD", s.Added)
		w.lead(bookLink{by: l.Added}, from)
	}
	w.changes(l)
}

// counters is how often a bullet helped and harmed, over time.
func (w *bookWriter) counters(l *playbooks.BulletLife) {
	s, b := w.S, l.Bullet
	at := w.chosen()
	helpful, harmful := l.Counts.Sample(at.Seq, 20)
	w.Say(s.Text, "")
	row := func(name string, ink theme.Ink, n int, values []float64) {
		w.End(w.Line().Add(s.Muted, "   "+text.Fit(name, 8, "")).Add(ink, text.FitLeft(text.Count(int64(n)), 6, "")+"  "+widget.Spark(values, 20, s.Glyphs)))
	}
	row("helpful", s.Added, b.Helpful, helpful)
	row("harmful", widget.Unless(b.Harmful == 0, s.Muted, s.Removed), b.Harmful, harmful)
	if b.Neutral > 0 {
		row("neutral", s.Muted, b.Neutral, nil)
	}
}

// source is a merge: its version, age, task and event, and why.
func (w *bookWriter) source(by *playbooks.BookSource, did string, ink theme.Ink) {
	s := w.S
	l := w.Line().Add(s.Text, "   ").Add(s.Accent, console.OrDash(by.TaskID, s.Glyphs)).Add(ink, "  "+did)
	l.Add(s.Muted, "  v"+strconv.Itoa(by.Seq))
	if w.books.Branch.Name != by.Branch {
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

// steps says which events of the run told of the change.
func (w *bookWriter) steps(by *playbooks.BookSource) string {
	key := playbooks.RunKey{WorkflowID: by.WorkflowID, RunID: by.RunID}
	st, known := w.books.Steps[key]
	switch {
	case known && st.Err != "":
		return "its events: " + text.Safe(st.Err, " ")
	case known && st.Persist == 0 && st.Curator == 0:
		return "no event of it tells of a change"
	case known && st.Curator == 0:
		return fmt.Sprintf("persist: event %d", st.Persist)
	case known:
		return fmt.Sprintf("curator: event %d, persist: event %d", st.Curator, st.Persist)
	case w.run() == key:
		return "finding its event" + w.S.Glyphs.Ellipsis
	}
	return ""
}

// changes are what became of a bullet after it was written, the newest first: who reworded
// it, then who counted it.
func (w *bookWriter) changes(l *playbooks.BulletLife) {
	var edits, tags []*playbooks.BulletTouch
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

// touches lists those of so many changes that are kept.
func (w *bookWriter) touches(title string, list []*playbooks.BulletTouch, all int) {
	if all == 0 {
		return
	}
	remark := text.Count(int64(all))
	if len(list) > 1 {
		remark += ", newest first"
	}
	if n := all - len(list); n > 0 {
		remark += "; " + text.Count(int64(n)) + " older ones are not kept here"
	}
	w.Section(title, remark)
	for _, t := range list {
		from := len(w.Lines)
		w.touch(t)
		w.lead(bookLink{by: t.Source}, from)
	}
}

func (w *bookWriter) touch(t *playbooks.BulletTouch) {
	_, ink := console.OpMark(t.Type, w.S)
	if t.Type == ace.OpTag {
		l := w.Line().Add(w.S.Text, "   ").Add(w.S.Accent, console.OrDash(t.TaskID, w.S.Glyphs)).Add(ink, "  "+console.TagText(map[string]int{"helpful": t.Helpful, "harmful": t.Harmful, "neutral": t.Neutral}))
		w.End(l.Add(w.S.Muted, "  v"+strconv.Itoa(t.Seq)+"  "+w.Ago(t.At)))
		if st := w.steps(t.Source); st != "" {
			w.Say(w.S.Muted, "     "+st)
		}
		return
	}
	w.source(t.Source, string(t.Type), ink)
	if t.Type == ace.OpUpdate {
		w.hunks("     ", playbooks.WordHunks(t.Before, t.Content))
	}
}

// version is one version: who made it, why, and every operation with its fate.
func (w *bookWriter) version(at *playbooks.BookAt) {
	s, g, r := w.S, w.S.Glyphs, at.Record
	w.End(w.Line().Add(s.Accent, "v"+strconv.Itoa(at.Seq)).Add(s.Text, " of "+text.Safe(at.Branch, " ")).Add(s.Muted, "  "+console.Short(at.Hash, g)+"  "+text.Count(int64(r.Bullets))+" bullets"))
	if at.Seq == 0 {
		w.Say(s.Muted, "what the branch began with")
		return
	}
	from := len(w.Lines)
	w.source(w.link(), versionDelta(r, g), s.Text)
	w.lead(bookLink{by: w.link()}, from)
	if r.Hash == r.Parent {
		w.Say(s.Muted, "   the playbook stayed as it was")
	}
	if r.Rationale != "" {
		w.Section("Why", "")
		w.Prose("   ", s.Text, r.Rationale)
	}
	w.Section("Operations", text.Count(int64(len(r.Operations))))
	words := map[string][]playbooks.WordHunk{}
	for _, c := range at.Changes.Changed {
		words[c.ID] = c.Words
	}
	for _, op := range r.Operations {
		if h := words[op.BulletID]; op.Type == ace.OpUpdate && op.Outcome == ace.OutcomeAccepted && len(h) > 0 {
			w.End(w.Line().Add(s.Updated, "   "+g.Updated+" ["+text.Safe(op.BulletID, " ")+"]"))
			w.hunks("     ", h)
			delete(words, op.BulletID) // what several updates made together is shown once
			continue
		}
		console.Operation(&w.Writer, op)
	}
}

// difference is one bullet of two versions.
func (w *bookWriter) difference(d diffRow) {
	s := w.S
	glyph, ink := diffMark(d, s)
	w.End(w.Line().Add(ink, glyph+" "+text.Safe(d.bullet.ID, " ")).Add(s.Muted, "  "+text.Safe(d.bullet.Section, " ")))
	c := d.change
	if c == nil {
		w.Say(s.Muted, "   "+d.kind)
		w.Prose("   ", ink, d.bullet.Content)
		w.Say(s.Muted, fmt.Sprintf("   helpful %d, harmful %d, neutral %d", d.bullet.Helpful, d.bullet.Harmful, d.bullet.Neutral))
		return
	}
	if c.From != "" {
		w.Say(s.Muted, "   was numbered "+text.Safe(c.From, " "))
	}
	if c.Moved {
		w.Say(s.Updated, "   moved here from "+text.Safe(c.Before.Section, " "))
	}
	for _, n := range []struct {
		name   string
		before int
		after  int
	}{{"helpful", c.Before.Helpful, c.After.Helpful}, {"harmful", c.Before.Harmful, c.After.Harmful}, {"neutral", c.Before.Neutral, c.After.Neutral}} {
		if n.before != n.after {
			w.Say(s.Tagged, fmt.Sprintf("   %s %d %s %d (%s)", n.name, n.before, s.Glyphs.Arrow, n.after, signedCount(n.after-n.before)))
		}
	}
	if !c.Content {
		w.Say(s.Text, "")
		w.Prose("   ", s.Muted, c.After.Content)
		return
	}
	w.Section("Text", "[-removed-] {+added+}")
	w.hunks("   ", c.Words)
}

// found is one finding, with the bullets that it names.
func (w *bookWriter) found(f *playbooks.BookFinding) {
	s := w.S
	glyph, ink := findingMark(*f, s)
	w.End(w.Line().Add(ink, glyph+" "+string(f.Severity)).Add(s.Strong, "  "+string(f.Kind)))
	w.Prose("", s.Text, f.Text)
	w.Prose("do  ", s.Accent, f.Advice)
	if f.By != nil {
		w.Section("Done by", "")
		from := len(w.Lines)
		w.source(f.By, "", s.Text)
		w.lead(bookLink{by: f.By}, from)
	}
	const enough = 50
	for i, id := range f.BulletIDs {
		if i == 0 {
			w.Section("Bullets", "enter goes there")
		}
		if i == enough {
			w.Say(s.Muted, "   and "+text.Count(int64(len(f.BulletIDs)-enough+f.More))+" more")
			break
		}
		from := len(w.Lines)
		l := w.Line().Add(s.Accent, "   "+text.Safe(id, " "))
		life := w.life(id)
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
		w.lead(bookLink{bullet: id}, from)
	}
	w.unchecked()
}

// unchecked says what could not be looked for.
func (w *bookWriter) unchecked() {
	if len(w.books.Health.Unchecked) == 0 {
		return
	}
	w.Section("Not checked", "")
	for _, u := range w.books.Health.Unchecked {
		w.Prose("   "+string(u.Kind)+": ", w.S.Muted, u.Why)
	}
}

// hunks writes a text with what was taken out and put in, in colour and between marks.
func (w *bookWriter) hunks(indent string, list []playbooks.WordHunk) {
	l := w.Line().Add(w.S.Text, indent)
	empty := true
	put := func(ink theme.Ink, word string) {
		for first := true; first || word != ""; first = false {
			if text.Width(word) > l.Room() && !empty {
				w.End(l)
				l, empty = w.Line().Add(w.S.Text, indent), true
				word = strings.TrimLeft(word, " ")
			}
			fits := text.Cut(word, l.Room(), "")
			if fits == "" {
				return // not even one character has room
			}
			l.Add(ink, fits)
			empty = false
			word = word[len(fits):]
		}
	}
	for _, h := range list {
		ink, before, after := w.S.Muted, "", ""
		switch h.Kind {
		case playbooks.HunkAdded:
			ink, before, after = w.S.Added, "{+", "+}"
		case playbooks.HunkRemoved:
			ink, before, after = w.S.Removed, "[-", "-]"
		}
		shown := h.Text
		if len(shown) > widget.MaxText {
			shown = shown[:widget.MaxText]
		}
		for i, part := range text.Lines(before + shown + after) {
			if i > 0 {
				w.End(l)
				l, empty = w.Line().Add(w.S.Text, indent), true
			}
			for _, word := range strings.SplitAfter(part, " ") {
				if word != "" {
					put(ink, word)
				}
			}
		}
	}
	w.End(l)
}
