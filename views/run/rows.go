package run

import (
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
	linker    interface{ target() (runs.Run, bool) }  // the run that the row leads to
	referrer  interface{ refs() []ace.Ref }           // artifacts that the row refers to
	forker    interface{ forkPoint() string }         // where a fork starts; default: at the event of the row
	ager      interface{ showsAges() }                // the inspector shows ages, which change every second
	payloader interface{ payload() (string, []byte) } // JSON that the inspector copies and an unfolded row shows
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

// listedRow is one line of the list: a row, or a further line of the text of a row that is unfolded.
type listedRow struct {
	Key
	Row
	more string // the further line
	Sub  bool   // true for a further line
}

// lister collects the rows of a run.
type lister struct {
	rows    []listedRow
	section string
	extra   func(listedRow) []string // further lines of a row that is unfolded; may be nil
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

// listRows returns the rows of a run, in the memory of into. Of a folded section it lists the heading only.
func listRows(d *histories.Detail, into []listedRow, folded map[string]bool,
	extra func(listedRow) []string) []listedRow {
	b := lister{rows: into[:0], extra: extra}
	for i := range sections {
		s := &sections[i]
		start := len(b.rows)
		b.section = s.name
		b.rows = append(b.rows, listedRow{Key: Key{s.name, "section", 0},
			Row: sectionRow{d: d, section: s, folded: folded[s.name]}})
		s.rows(&b, d)
		switch {
		case len(b.rows) == start+1:
			b.rows = b.rows[:start]
		case folded[s.name]:
			b.rows = b.rows[:start+1]
		}
	}
	clear(b.rows[len(b.rows):cap(b.rows)])
	return b.rows
}

// section is a part of the run screen.
type section struct {
	name    string
	title   func(*histories.Detail, theme.Glyphs) string              // nil for the name
	remark  func(*histories.Detail, theme.Styles) (string, theme.Ink) // beside the title; nil for none
	rows    func(*lister, *histories.Detail)
	facts   func(*widget.Writer, *histories.Detail) // the section in the detail pane; nil to leave it out
	inspect func(*inspection)                       // nil for facts
}

// sections are the parts of the run screen in order.
var sections = []section{
	{name: "Trouble", remark: troubleRemark, rows: troubleRows, facts: writeTrouble,
		inspect: (*inspection).failure},
	{name: "Under way", rows: pendingRows, facts: writePending},
	{name: "Progress", remark: progressRemark, rows: progressRows, facts: writeProgress},
	{name: "Failed tasks", remark: failedTasksRemark, rows: failedTaskRows, inspect: (*inspection).progress},
	{name: "Phases", title: phasesTitle, remark: phasesRemark, rows: phaseRows, inspect: (*inspection).phases},
	{name: "Run", rows: blueprintRows, facts: writeBlueprintRun, inspect: (*inspection).blueprint},
	{name: "Result", rows: resultRows, facts: writeResult, inspect: (*inspection).blueprint},
	{name: "Log", remark: logRemark, rows: logRows},
	{name: "Lineage", remark: lineageRemark, rows: lineageRows},
	{name: "Skills", remark: skillsRemark, rows: skillRows, facts: writeSkills},
	{name: "Playbook", title: deltaTitle, remark: deltaRemark, rows: operationRows, facts: writeDelta},
	{name: "Task", title: taskTitle, remark: verdictRemark, rows: taskRows, facts: writeTask},
	{name: "Reflection", rows: reflectionRows, facts: writeReflection},
	{name: "Tool calls", remark: callsRemark, rows: callRows, facts: writeRecentCalls,
		inspect: (*inspection).calls},
	{name: "About", rows: aboutRows, facts: writeAbout},
}

// sectionRow is the heading of a section.
type sectionRow struct {
	textRow
	ages
	d       *histories.Detail
	section *section
	folded  bool
}

func (r sectionRow) Draw(l *line) {
	title := r.section.name
	if r.section.title != nil {
		title = r.section.title(r.d, l.S.Glyphs)
	}
	remark, ink := "", l.S.Muted
	if r.section.remark != nil {
		remark, ink = r.section.remark(r.d, l.S)
	}
	l.add(l.S.Strong, title).add(ink, "  "+remark)
	if r.folded {
		l.add(l.S.Accent, "  (folded: l unfolds)")
	}
}

func (r sectionRow) Inspect(w *inspection) {
	switch {
	case r.section.inspect != nil:
		r.section.inspect(w)
	case r.section.facts != nil:
		r.section.facts(w.Writer, r.d)
	}
}

func (r sectionRow) title() string { return r.section.name }

// piece is text in an ink.
type piece struct {
	ink  theme.Ink
	text string
}

// line collects the line of a row, unpainted: the selected row is painted in one ink.
type line struct {
	S      theme.Styles
	Width  int // behind the pointer
	Now    time.Time
	Loc    *time.Location
	bars   bool // there is room for time bars
	pieces []piece
}

func (l *line) add(ink theme.Ink, t string) *line {
	if t != "" {
		l.pieces = append(l.pieces, piece{ink, t})
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
		for _, p := range l.pieces {
			out.Add(p.ink, p.text)
		}
		return out.String(l.S.Text)
	}
	out.Add(l.S.Text, l.S.Glyphs.Pointer+" ")
	for _, p := range l.pieces {
		out.Add(theme.Ink{}, p.text)
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
	first, _, _ := strings.Cut(t, "\n")
	l.add(l.S.Muted, text.Fit(name, 15, "")).add(ink, oneLine(first))
	if more := strings.Count(t, "\n"); more > 0 {
		l.add(l.S.Muted, " (+"+widget.Counted(more, "line")+")")
	}
}

func (r textRow) Inspect(w *inspection)     { w.Prose(" ", w.S.Text, r.text) }
func (r textRow) Copy() (what, text string) { return r.name, r.text }
func (r textRow) Event() int64              { return r.event }

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
