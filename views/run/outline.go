package run

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// reading is what the outline and the inspector share: the run, the selected row, and the artifacts
// that were opened.
type reading struct {
	nav      *console.Navigation
	listing  *console.Listing
	pipeline *console.Pipeline
	forks    *console.Forks
	comparer *console.Comparer
	actions  Actions
	location *time.Location
	feeds    Feeds
	detail   *histories.Detail // of the selected run, or nil
	merged   *histories.Detail // unmerged with its lineage
	unmerged *histories.Detail
	at       listedRow // the selected row
	rejected []int     // positions of the operations under review that the user chose to reject
	find     string    // last searched text, in lower case
	list     func()    // brings the rows up to date
}

type Feeds struct {
	Detail    console.Value[*histories.Detail]
	Lineage   console.Feed[*histories.LineageTree]
	Artifacts *console.Artifacts
}

// Actions decide on what waits in a run. Both are nil in a console that only reads.
type Actions struct {
	Flows   console.FlowActions
	Reviews console.ReviewActions
}

func NewReading(c *console.Console, actions Actions, feeds Feeds) *reading {
	return &reading{nav: c.Navigation, listing: c.Listing, pipeline: c.Pipeline, forks: c.Forks,
		comparer: c.Comparer, actions: actions, location: c.Location, feeds: feeds}
}

// take takes the newest data.
func (r *reading) take() {
	d := r.feeds.Detail.Value()
	if d != nil && !r.nav.Selected.Is(d.WorkflowID, d.RunID) {
		d = nil
	}
	if d != nil {
		d = r.withForks(d, r.feeds.Lineage.Value())
	}
	r.detail = d
	r.feeds.Artifacts.Take()
}

// withForks returns the detail with its lineage if that has forks. It returns the same value as long
// as both are the same.
func (r *reading) withForks(d *histories.Detail, t *histories.LineageTree) *histories.Detail {
	if root, _ := ace.ForkRoot(d.WorkflowID); t == nil || t.Root != root || !t.Forks() {
		return d
	}
	if r.merged == nil || r.unmerged != d || r.merged.Forks != t {
		both := *d
		both.Forks = t
		r.merged, r.unmerged = &both, d
	}
	return r.merged
}

// current returns the detail if it still belongs to the selected run, otherwise nil.
func (r *reading) current() *histories.Detail {
	if d := r.detail; d != nil && r.nav.Selected.Is(d.WorkflowID, d.RunID) {
		return d
	}
	return nil
}

// selectedRow returns the row under the cursor as of the newest data, or nil.
func (r *reading) selectedRow() Row {
	r.list()
	return r.at.Row
}

// jumpToEvent opens the timeline at the event of the selected row.
func (r *reading) jumpToEvent(s tui.Shell) {
	row := r.selectedRow()
	switch {
	case row == nil:
	case row.Event() == 0:
		s.Note("this row has no event")
	default:
		r.nav.Event = row.Event()
		s.Open("timeline")
	}
}

// open reads the artifact of the selected row, or goes to the run that it leads to.
func (r *reading) open(s tui.Shell) {
	row := r.selectedRow()
	if row == nil {
		return
	}
	if run, ok := target(row); ok && isSession(run) {
		r.nav.OpenSession(s, run.WorkflowID)
		return
	} else if ok {
		r.nav.GoFrom(run)
		s.Note("now " + console.NameOf(run) + "; backspace leads back")
		return
	}
	if of, ok := row.(referrer); ok && r.feeds.Artifacts.OpenFirst(s, of.refs()) {
		return
	}
	s.Note("this row has nothing to open")
}

// forkPoint returns where a fork from the selected row starts, or "".
func (r *reading) forkPoint() string {
	row := r.selectedRow()
	if row == nil {
		return ""
	}
	if f, ok := row.(forker); ok {
		return f.forkPoint()
	}
	if event := row.Event(); event > 1 {
		return "at=" + strconv.FormatInt(event, 10)
	}
	return ""
}

// shared returns the keys that both panes have.
func (r *reading) shared(view string) []tui.Binding {
	return []tui.Binding{
		console.Key(view+".related", "open the artifact or the run of the row", "open", r.open, "O"),
		console.Key(view+".back", "back to the previous run", "", r.nav.Back, "backspace"),
		console.Key(view+".event", "go to the event of the row on the timeline; esc leads back", "event",
			r.jumpToEvent, "J"),
	}
}

// Outline is the run row by row.
type Outline struct {
	*reading
	console.Pane

	Rows   []listedRow
	of     *histories.Detail
	stale  bool // rows must be listed again
	Cursor int
	top    int
	Folded map[string]bool // sections by name
	open   map[Key]bool    // rows whose text is unfolded
	doc    widget.Document // keeps texts wrapped
	run    string          // of the rows
	Last   Key             // of the selected row
	moved  bool            // the cursor was moved in this run; until then it stays at the top
}

func NewOutline(r *reading) *Outline {
	v := &Outline{reading: r, Pane: console.NewPane("Run rows"), Folded: map[string]bool{},
		open: map[Key]bool{}}
	r.list = v.list
	return v
}

func (v *Outline) Title() string { return title(v.nav) }

func (v *Outline) Footer() string {
	d := v.current()
	if d == nil {
		return ""
	}
	return v.Join(origin(d, v.Styles.Glyphs), ace.Number(v.Cursor+1)+"/"+ace.Number(len(v.Rows)))
}

func (v *Outline) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return console.Key("outline."+name, help, short, func(s tui.Shell) { v.list(); do(s) }, keys...)
	}
	jump := func(by int, is func(listedRow) bool, none string) func(tui.Shell) {
		return func(s tui.Shell) {
			if !v.seek(by, is) {
				s.Note(none)
			}
		}
	}
	match := func(by int) func(tui.Shell) { return func(s tui.Shell) { v.match(s, by) } }
	all := append(widget.Motions("outline", v), v.decideKey("outline")...)
	all = append(all,
		b("next_section", "next section", "section", jump(1, isSection, "no further section"), "]"),
		b("previous_section", "previous section", "", jump(-1, isSection, "no previous section"), "["),
		b("fold", "fold the text or the section", "", func(tui.Shell) { v.fold() }, "h", "left"),
		b("unfold", "unfold the text or the section", "", func(tui.Shell) { v.unfold() }, "l", "right"),
		b("next_error", "next error", "error", jump(1, isFailed, "no error"), "e"),
		b("previous_error", "previous error", "", jump(-1, isFailed, "no error"), "E"),
		b("search", "find text in this run, payloads included", "find", v.ask, "/"),
		b("next_match", "next match", widget.If(v.find != "", "next match", ""), match(1), "ctrl+n"),
		b("previous_match", "previous match", "", match(-1), "ctrl+p"),
	)
	if v.Last.Kind == "review" {
		all = append(all, b("mark", "mark the operation to reject it; w decides", "reject", v.mark, "space"))
	}
	if v.Last.Kind == "link" || v.Last.Kind == "lineage" {
		all = append(all, b("go", "open the run of the row", "open it", v.reading.open, "enter"))
	}
	all = append(all, b("diff", "compare the fork of the row, or this run, with its original", "", v.diff,
		"="))
	if v.of != nil && v.of.Experiment != nil {
		all = append(all, console.Key("outline.filter", "list the runs of this experiment", "list its runs",
			v.listRuns, "F"))
	}
	all = append(all, v.forks.ForkAt("outline", v.forkPoint)...)
	return append(all, v.shared("outline")...)
}

// listRuns lists the runs of the experiment on the screen.
func (v *Outline) listRuns(s tui.Shell) {
	name := strings.TrimPrefix(v.of.WorkflowID, ace.ExperimentIDPrefix)
	if v.listing.ApplyFilter(s, ace.AttrExperiment+" = "+runs.Quote(name)) {
		s.Open("runs")
	}
}

// diff compares the fork on the selected row, or else the run of the screen, with its original.
func (v *Outline) diff(s tui.Shell) {
	if row := v.selectedRow(); v.of != nil {
		if r, ok := row.(nodeRow); ok && (r.n.Original >= 0 || r.n.Run.RunID != v.of.RunID) {
			v.comparer.CompareOriginal(s, v.of.Forks, r.n)
			return
		}
		this := histories.LineageNode{Run: v.nav.Selected.Run, Original: -1}
		this.Run.RunID, this.Run.Fork = v.of.RunID, v.of.Lineage.Fork
		v.comparer.CompareOriginal(s, v.of.Forks, &this)
	}
}

func (v *Outline) SetShown(shown bool) {
	v.feeds.Artifacts.Look(shown)
	v.feeds.Lineage.Look(shown)
}

func (v *Outline) SetStyles(s theme.Styles) { v.Styles, v.stale = s, true }

func (v *Outline) SetSize(width, height int) {
	if width != v.Width {
		v.stale = true
	}
	v.Width, v.Height = width, height
}

func (v *Outline) Refresh() { v.take() }

// list brings the rows up to date and keeps the cursor on its row.
func (v *Outline) list() {
	d := v.current()
	if d == nil {
		v.Rows, v.of, v.at = v.Rows[:0], nil, listedRow{}
		return
	}
	if run := d.WorkflowID + " " + d.RunID; run != v.run {
		v.run, v.Cursor, v.top, v.Last, v.find, v.moved = run, 0, 0, Key{}, "", false
		v.open = map[Key]bool{}
		v.rejected = nil
	}
	if v.of == d && !v.stale {
		return
	}
	v.of, v.stale = d, false
	extra := widget.If(len(v.open) == 0, nil, v.extra)
	v.Rows = listRows(d, v.Rows, v.Folded, v.rejected, extra)
	if v.moved {
		v.keep()
	}
	v.reveal()
}

// keep moves the cursor to the row that it was on, or to the heading of its section.
func (v *Outline) keep() {
	if v.Last == (Key{}) || v.Cursor < len(v.Rows) && v.Rows[v.Cursor].Key == v.Last {
		return
	}
	heading := -1
	for i, r := range v.Rows {
		if r.Key == v.Last {
			v.Cursor = i
			return
		}
		if isSection(r) && r.Section == v.Last.Section {
			heading = i
		}
	}
	if heading >= 0 {
		v.Cursor = heading
	}
}

// Bounds of a text that is unfolded in the list. The inspector shows more.
const (
	maxUnfolded      = 16 << 10 // bytes
	maxUnfoldedLines = 400
)

// extra returns the further lines of a row that is unfolded.
func (v *Outline) extra(r listedRow) []string {
	if !v.open[r.Key] {
		return nil
	}
	width := v.Width - widget.PointerWidth - 6
	var lines []string
	var size int
	var more bool
	if of, ok := r.Row.(payloader); ok {
		_, raw := of.payload()
		p := v.feeds.Artifacts.Payloads.Of(raw)
		size, more = p.Size, p.Rest > 0
		for _, l := range p.Lines {
			if len(lines) > maxUnfoldedLines {
				break
			}
			lines = append(lines, text.Wrap(l, width)...)
		}
	} else {
		_, t := r.Copy()
		size, more = len(t), len(t) > maxUnfolded
		lines = v.doc.Wrap(t[:min(len(t), maxUnfolded)], width)
	}
	if n := min(len(lines), maxUnfoldedLines); n < len(lines) || more {
		lines = append(lines[:n:n], "("+widget.SizeText(int64(size))+" in all; enter shows more)")
	}
	return lines
}

// headerHeight is the number of lines above the rows.
const headerHeight = 3

func (v *Outline) Page() int { return max(v.Height-headerHeight, 1) }

func (v *Outline) Scroll(by int) {
	v.list()
	v.Move(v.Cursor + by)
}

// Move puts the cursor on the row with a number.
func (v *Outline) Move(to int) {
	v.moved = true
	v.Cursor = to
	v.reveal()
}

// reveal scrolls to the cursor and selects its row.
func (v *Outline) reveal() {
	v.Cursor = widget.Clamp(v.Cursor, 0, max(len(v.Rows)-1, 0))
	v.top = widget.TopOf(v.top, v.Cursor, v.Page(), len(v.Rows))
	if v.Cursor < len(v.Rows) {
		v.at = v.Rows[v.Cursor]
		v.Last = v.at.Key
	}
}

// seek moves to the next row that satisfies the function is, and starts over at the end. It reports
// whether such a row exists.
func (v *Outline) seek(by int, is func(listedRow) bool) bool {
	n := len(v.Rows)
	for step := 1; step <= n; step++ {
		i := ((v.Cursor+by*step)%n + n) % n
		if r := v.Rows[i]; !r.Sub && is(r) {
			v.Move(i)
			return true
		}
	}
	return false
}

func (v *Outline) fold() {
	v.moved = true
	switch {
	case v.Last == Key{}:
		return
	case v.open[v.Last]:
		delete(v.open, v.Last)
	default:
		v.Folded[v.Last.Section] = true
		v.Last = Key{v.Last.Section, "section", 0}
	}
	v.stale = true
	v.list()
}

func (v *Outline) unfold() {
	v.moved = true
	switch v.Last.Kind {
	case "":
		return
	case "section":
		delete(v.Folded, v.Last.Section)
	default:
		v.open[v.Last] = true
	}
	v.stale = true
	v.list()
	// Scroll to the lines that were unfolded, as far as they fit.
	unfolded := func(r listedRow) bool {
		return r.Key == v.Last || v.Last.Kind == "section" && r.Section == v.Last.Section
	}
	end := v.Cursor + 1
	for end < len(v.Rows) && unfolded(v.Rows[end]) {
		end++
	}
	v.top = min(max(v.top, end-v.Page()), v.Cursor)
}

func (v *Outline) ask(s tui.Shell) {
	s.Ask(tui.Prompt{Label: "find: ", Value: v.find,
		Hint: "text in this run: names, arguments, results, errors",
		Done: func(typed string) tea.Cmd {
			v.find = strings.ToLower(strings.TrimSpace(typed))
			v.Folded, v.stale = map[string]bool{}, true
			v.list()
			v.match(s, 1)
			return nil
		}})
}

func (v *Outline) match(s tui.Shell, by int) {
	switch {
	case v.find == "":
		s.Note("nothing to find: press / to search")
	case !v.seek(by, func(r listedRow) bool { return contains(r.Row, v.find) }):
		s.Note("no row contains " + strconv.Quote(v.find))
	}
}

func (v *Outline) Copy() (what, text string) {
	if r := v.selectedRow(); r != nil {
		return r.Copy()
	}
	return "", ""
}

func (v *Outline) Copies() []tui.Copy { return v.nav.SelectedCopies() }

func (v *Outline) Keep() map[string]string {
	var folded []string
	for _, name := range slices.Sorted(maps.Keys(v.Folded)) {
		known := slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) ||
			slices.ContainsFunc(v.Rows, func(r listedRow) bool { return r.Section == name })
		if v.Folded[name] && known {
			folded = append(folded, name)
		}
	}
	return map[string]string{"folded": strings.Join(folded, ",")}
}

func (v *Outline) Restore(kept map[string]string) {
	v.Folded, v.stale = map[string]bool{}, true
	for _, name := range strings.Split(kept["folded"], ",") {
		v.Folded[name] = true
	}
}

func (v *Outline) Draw(now time.Time, focused bool) []string {
	v.nav.Following = v.nav.Following && !focused
	v.list()
	d := v.of
	if d == nil {
		return v.Message(nil, emptyLines(v.nav, v.listing, v.Styles.Glyphs)...)
	}
	now = d.Clock(now)
	lines := append(header(d, v.Width, now, v.Styles),
		v.Styles.Border.Paint(strings.Repeat(v.Styles.Glyphs.Plain.Top, v.Width)))
	v.reveal()
	l := line{S: v.Styles, Width: v.Width - widget.PointerWidth, Now: now, Loc: v.location,
		bars: v.Width >= 96}
	for i := v.top; i < min(v.top+v.Page(), len(v.Rows)); i++ {
		lines = append(lines, l.draw(v.Rows[i], v.Width, widget.MarkOf(i == v.Cursor, focused)))
	}
	return widget.Fill(lines, v.Width, v.Height)
}
