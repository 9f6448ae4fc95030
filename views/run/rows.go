package run

import (
	"math"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// Row is one fact of a run. Rows are comparable: equal rows are drawn and inspected alike.
type Row interface {
	// Draw adds the row to a line.
	Draw(l *line)
	// Inspect writes everything that is known about the row.
	Inspect(w *inspection)
	// Copy returns the text that the row is copied as, unsafe, and a name for it.
	Copy() (what, text string)
	// Event returns the history event that the row comes from, or 0.
	Event() int64
}

// A row may also implement some of these.
type (
	failer interface{ failed() bool }  // e and E stop at the row
	titler interface{ title() string } // heading of the inspector; default: the name of the copied text
	finder interface {
		find(has func(string) bool) bool
	} // searches more than the copied text
	linker   interface{ target() (runs.Run, bool) } // the run that the row leads to
	referrer interface{ refs() []ace.Ref }          // artifacts that the row refers to
	forker   interface{ forkPoint() string }        // where a fork starts; default: at the event of the row
	ager     interface{ showsAges() }               // the inspector shows ages, which change every second
	// JSON that the inspector copies and an unfolded row shows
	payloader interface{ payload() (string, []byte) }
)

// ages marks a row whose inspection shows ages.
type ages struct{}

func (ages) showsAges() {}

// Key identifies a row in every snapshot of a run: the N-th of its kind in a section. Lists only grow
// while a run is watched.
type Key struct {
	Section, Kind string
	N             int
}

// listedRow is one line of the list: the first line of a row, or a further line of an unfolded row.
type listedRow struct {
	Key
	Row
	more string // the further line
	Sub  bool   // true for a further line
}

// lister collects the rows of a run.
type lister struct {
	rows     []listedRow
	section  string
	rejected []int                    // positions of operations that the user chose to reject
	extra    func(listedRow) []string // further lines of a row that is unfolded; may be nil
}

func (b *lister) add(kind string, n int, r Row) {
	row := listedRow{Key: Key{b.section, kind, n}, Row: r}
	b.rows = append(b.rows, row)
	if b.extra == nil {
		return
	}
	for _, l := range b.extra(row) {
		row.more, row.Sub = l, true
		b.rows = append(b.rows, row)
	}
}

// text adds a textRow unless the text is empty.
func (b *lister) text(kind string, n int, r textRow) {
	if r.text != "" {
		b.add(kind, n, r)
	}
}

// listRows returns the rows of a run and reuses the memory of into. For a folded section it lists only the
// heading.
func listRows(d *histories.Detail, into []listedRow, folded map[string]bool,
	rejected []int, extra func(listedRow) []string) []listedRow {
	b := lister{rows: into[:0], rejected: rejected, extra: extra}
	for _, p := range partsOf(d) {
		start, title := len(b.rows), p.title()
		b.section = title
		b.rows = append(b.rows, listedRow{Key: Key{title, "section", 0},
			Row: sectionRow{d: d, part: p, folded: folded[title]}})
		p.list(&b, d)
		switch {
		case len(b.rows) == start+1:
			b.rows = b.rows[:start]
		case folded[title]:
			b.rows = b.rows[:start+1]
		}
	}
	clear(b.rows[len(b.rows):cap(b.rows)])
	return b.rows
}

// part is a part of the run screen: a section of the contract, or one that the kind of the run describes.
type part interface {
	title() string
	// head returns the title as drawn, and the remark beside it.
	head(*histories.Detail, theme.Styles) (title, remark string, ink theme.Ink)
	list(*lister, *histories.Detail)
	pane() int                     // newest rows in the detail pane
	inspection() func(*inspection) // what the inspector shows, nil for all rows
}

// section is a section of the contract.
type section struct {
	name    string
	heading func(*histories.Detail, theme.Glyphs) string              // nil for the name
	remark  func(*histories.Detail, theme.Styles) (string, theme.Ink) // beside the title; nil for none
	rows    func(*lister, *histories.Detail)
	inPane  int               // newest rows in the detail pane
	inspect func(*inspection) // nil for all rows
	anyKind bool              // runs of every kind have it
}

// Numbers of rows in the detail pane.
const (
	noRows  = 0
	allRows = math.MaxInt
)

// sections are the parts of the run screen in order.
var sections = []section{
	{name: "Approval", remark: approvalRemark, rows: approvalRows, inPane: allRows},
	{name: "Review", remark: reviewRemark, rows: reviewRows, inPane: allRows},
	{name: "Trouble", remark: troubleRemark, rows: troubleRows, inPane: allRows,
		inspect: (*inspection).failure, anyKind: true},
	{name: "Under way", rows: pendingRows, inPane: allRows, anyKind: true},
	{name: "Progress", remark: progressRemark, rows: progressRows, inPane: allRows},
	{name: "Not completed", remark: failedTasksRemark, rows: failedTaskRows, inPane: 5},
	{name: "Phases", heading: phasesTitle, remark: phasesRemark, rows: phaseRows, inPane: noRows,
		inspect: (*inspection).phases},
	{name: "Steps", remark: flowRemark, rows: flowRows, inPane: allRows},
	{name: "Outputs", rows: outputRows, inPane: allRows},
	{name: "Inputs", rows: inputRows, inPane: allRows},
	{name: "Run", rows: blueprintRows, inPane: allRows},
	{name: "Result", rows: resultRows, inPane: allRows},
	{name: "Log", remark: logRemark, rows: logRows, inPane: noRows},
	{name: "Lineage", remark: lineageRemark, rows: lineageRows, inPane: noRows, anyKind: true},
	{name: "Skills", remark: skillsRemark, rows: skillRows, inPane: allRows},
	{name: "Playbook", heading: deltaTitle, remark: deltaRemark, rows: operationRows, inPane: allRows},
	{name: "Task", heading: taskTitle, remark: verdictRemark, rows: taskRows, inPane: allRows},
	{name: "Reflection", rows: reflectionRows, inPane: allRows},
	{name: "Tool calls", remark: callsRemark, rows: callRows, inPane: 10, inspect: (*inspection).calls},
	{name: "About", rows: aboutRows, inPane: allRows, anyKind: true},
}

func (s *section) title() string                       { return s.name }
func (s *section) list(b *lister, d *histories.Detail) { s.rows(b, d) }
func (s *section) pane() int                           { return s.inPane }
func (s *section) inspection() func(*inspection)       { return s.inspect }

func (s *section) head(d *histories.Detail, styles theme.Styles) (title, remark string, ink theme.Ink) {
	title, ink = s.name, styles.Muted
	if s.heading != nil {
		title = s.heading(d, styles.Glyphs)
	}
	if s.remark != nil {
		remark, ink = s.remark(d, styles)
	}
	return title, remark, ink
}

// writePart writes the heading and the newest rows of a part, each wrapped to at most most lines.
func writePart(w *widget.Writer, p part, d *histories.Detail, newest, most int) {
	b := lister{section: p.title()}
	p.list(&b, d)
	if len(b.rows) == 0 {
		return
	}
	title, remark, ink := p.head(d, w.S)
	if len(w.Lines) > 0 {
		w.Say(w.S.Text, "")
	}
	w.End(w.Line().Add(w.S.Strong, " "+title).Add(ink, "  "+remark))
	writeRows(w, b.rows[max(len(b.rows)-newest, 0):], most)
}

// writeRows writes rows, each wrapped to at most most lines.
func writeRows(w *widget.Writer, rows []listedRow, most int) {
	l := line{S: w.S, Width: w.Width - widget.PointerWidth, Now: w.Now, Loc: w.Loc, whole: true}
	for _, r := range rows {
		l.pieces = l.pieces[:0]
		r.Draw(&l)
		writePieces(w, l.pieces, "   ", most)
	}
}

// writePieces writes pieces one after the other, wrapped between words to at most most lines.
func writePieces(w *widget.Writer, pieces []widget.Span, indent string, most int) {
	const hanging = "  "
	space := w.Width - len(indent+hanging) - 1
	l, used := w.Line().Add(w.S.Text, indent), -len(hanging)
	for _, p := range pieces {
		for _, word := range widget.SplitWords(p.Text) {
			if used > 0 && used+text.Width(word) > space {
				if most--; most == 0 {
					w.End(l.Add(w.S.Muted, w.S.Glyphs.Ellipsis))
					return
				}
				w.End(l)
				l, used = w.Line().Add(w.S.Text, indent+hanging), 0
				word = strings.TrimLeft(word, " ")
			}
			l.Add(p.Ink, word)
			used += text.Width(word)
		}
	}
	w.End(l)
}

// sectionRow is the heading of a section.
type sectionRow struct {
	textRow
	ages
	part
	d      *histories.Detail
	folded bool
}

func (r sectionRow) Draw(l *line) {
	title, remark, ink := r.head(r.d, l.S)
	l.add(l.S.Strong, title).add(ink, "  "+remark)
	if r.folded {
		l.add(l.S.Accent, "  (folded: l unfolds)")
	}
}

func (r sectionRow) Inspect(w *inspection) {
	if inspect := r.inspection(); inspect != nil {
		inspect(w)
		return
	}
	writePart(w.Writer, r.part, r.d, allRows, allRows)
}

// line collects the line of a row, unpainted: the selected row is painted in one ink.
type line struct {
	S      theme.Styles
	Width  int // behind the pointer
	Now    time.Time
	Loc    *time.Location
	bars   bool // there is room for time bars
	whole  bool // the line will be wrapped
	pieces []widget.Span
}

func (l *line) add(ink theme.Ink, t string) *line {
	if t != "" {
		l.pieces = append(l.pieces, widget.Span{Ink: ink, Text: t})
	}
	return l
}

// draw returns a row in exactly width cells.
func (l *line) draw(r listedRow, width int, mark widget.RowMark) string {
	l.pieces = l.pieces[:0]
	switch {
	case r.Sub:
		l.add(l.S.Text, "      "+r.more)
	case r.Kind == "section":
		r.Draw(l)
	default:
		r.Draw(l.add(l.S.Text, " "))
	}
	out := text.Line{Max: width, Tail: l.S.Glyphs.Ellipsis}
	if mark == widget.RowPlain {
		out.Add(l.S.Text, text.Spaces(widget.PointerWidth))
		return widget.AddSpans(&out, l.pieces).String(l.S.Text)
	}
	out.Add(l.S.Text, l.S.Glyphs.Pointer+" ")
	for _, p := range l.pieces {
		out.Add(theme.Ink{}, p.Text)
	}
	return widget.RowInk(mark, l.S).Paint(out.String(theme.Ink{}))
}

// clock returns a time of day in 8 cells.
func (l *line) clock(at time.Time) string { return clock(at, l.Loc) }

func clock(at time.Time, loc *time.Location) string {
	if at.IsZero() {
		return text.Spaces(8)
	}
	return at.In(loc).Format("15:04:05")
}

// textRow is a named text and its event. The list shows the first line. Other rows embed a textRow to
// be copied as it.
type textRow struct {
	name, text string
	event      int64
}

func (r textRow) Draw(l *line) { drawText(l, r.name, l.S.Text, r.text) }

// drawText adds a name and the first line of a text.
func drawText(l *line, name string, ink theme.Ink, t string) {
	t = strings.TrimSpace(t)
	if l.whole {
		l.add(l.S.Muted, text.Fit(name, max(text.Width(name)+1, 10), "")).
			add(ink, text.Safe(widget.Bounded(t, maxWrapped), " "))
		return
	}
	first, _, _ := strings.Cut(t, "\n")
	l.add(l.S.Muted, text.Fit(name, 15, "")).add(ink, oneLine(first))
	if more := strings.Count(t, "\n"); more > 0 {
		l.add(l.S.Muted, " (+"+ace.Count(more, "line")+")")
	}
}

func (r textRow) Inspect(w *inspection)     { w.Prose(" ", w.S.Text, r.text) }
func (r textRow) Copy() (what, text string) { return r.name, r.text }
func (r textRow) Event() int64              { return r.event }

// maxWrapped bounds the bytes of a text that is wrapped in the detail pane.
const maxWrapped = 4096

// oneLine returns the beginning of a text as one safe line.
func oneLine(t string) string { return text.Safe(strings.TrimSpace(widget.Bounded(t, 400)), " ") }

// quoted returns the beginning of a text in quotes.
func quoted(s string) string {
	s = strings.Join(strings.Fields(s[:min(len(s), 400)]), " ")
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "..."
	}
	return strconv.Quote(s)
}

// maxSearched bounds the bytes of one payload that are searched.
const maxSearched = 1 << 20

// contains reports whether a row contains a text, given in lower case.
func contains(r Row, lower string) bool {
	has := func(s string) bool {
		return strings.Contains(strings.ToLower(s[:min(len(s), maxSearched)]), lower)
	}
	if f, ok := r.(finder); ok {
		return f.find(has)
	}
	_, t := r.Copy()
	return has(t)
}

// target returns the run that a row leads to.
func target(r Row) (runs.Run, bool) {
	if l, ok := r.(linker); ok {
		return l.target()
	}
	return runs.Run{}, false
}

func isSection(r listedRow) bool { return r.Kind == "section" }

func isFailed(r listedRow) bool {
	f, ok := r.Row.(failer)
	return ok && f.failed()
}
