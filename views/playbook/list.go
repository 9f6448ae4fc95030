package playbook

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// List is the left pane: bullets, versions, differences or findings.
type List struct {
	*browser
	console.Pane
	tables [4]*widget.Table
}

// Feed reads playbooks.
type Feed interface {
	console.Feed[*playbooks.Playbooks]
	Refine(playbooks.Ask)
	// Again reads the playbooks again.
	Again()
}

// Screen returns the screen of playbooks.
func Screen(c *console.Console, feed Feed) tui.Screen {
	list, blame := New(c, feed)
	return tui.Screen{Name: "playbook", Short: "book", Keys: []string{"4"}, Views: []tui.View{list, blame},
		Help: "playbooks: bullets and their authors, versions, differences, health"}
}

// New returns the panes of the screen.
func New(c *console.Console, feed Feed) (*List, *detail) {
	s := &browser{nav: c.Navigation, controls: c.Controls, location: c.Location, feed: feed, seq: -1}
	list := &List{browser: s, Pane: console.NewPane("Playbook"), tables: newTables(theme.Unicode())}
	return list, &detail{browser: s, Pane: console.NewPane("Blame"), list: list}
}

func (v *List) Title() string {
	if v.books == nil || v.books.Branch.Name == "" {
		return "Playbook"
	}
	return "Playbook " + text.Safe(v.books.Branch.Name, " ")
}

// Footer shows the order and the position.
func (v *List) Footer() string {
	where := v.tables[v.Mode].Position()
	if v.Mode == bulletMode && where != "" {
		return v.Order.String() + " " + v.Styles.Glyphs.Dot + " " + where
	}
	return where
}

func (v *List) Bindings() []tui.Binding {
	list := append(widget.Motions("playbook", v),
		console.Key("playbook.detail", "show its author, time and reason", "who & why", func(s tui.Shell) { s.Focus(1) }, "enter"),
		console.Key("playbook.next_error", "next harmful bullet, removal or error", "", func(s tui.Shell) { v.find(s, 1, 1, v.wrong) }, "e"),
		console.Key("playbook.prev_error", "previous harmful bullet, removal or error", "",
			func(s tui.Shell) { v.find(s, -1, -1, v.wrong) }, "E"))
	return append(list, v.browser.bindings(v.find)...)
}

// bindings returns the keys of both panes.
func (s *browser) bindings(find func(shell tui.Shell, from, by int, match func(i int) bool)) []tui.Binding {
	do := func(fn func(tui.Shell)) func(tui.Shell) {
		return func(shell tui.Shell) { fn(shell); s.want() }
	}
	open := func(screen string) func(tui.Shell) {
		return do(func(shell tui.Shell) { s.openRun(shell, s.target(), screen) })
	}
	var list []tui.Binding
	for _, m := range modes {
		name := strings.ToLower(m.name)
		list = append(list, console.Key("playbook."+name, m.help, name, do(func(shell tui.Shell) { s.enter(shell, m.mode) }), m.key))
	}
	return append(list,
		console.Key("playbook.open", "open the run that wrote this", "", open("run"), "o"),
		console.Key("playbook.run", "go to the history event that wrote this, on the timeline", "event", open("timeline"), "J"),
		console.Key("playbook.mark", "mark the selected version to compare it; at most two", "",
			do(func(shell tui.Shell) { s.mark(); shell.Note(s.marksText()) }), "space"),
		console.Key("playbook.sort", "sort bullets: playbook order, helpful, harmful, newest, section", "",
			do(func(shell tui.Shell) { s.Order = (s.Order + 1) % Orders; shell.Note("bullets: " + s.Order.String()) }), "s"),
		console.Key("playbook.search", "search the list", "", func(shell tui.Shell) { s.search(shell, find) }, "/"),
		console.Key("playbook.next_match", "next match", "", do(func(shell tui.Shell) { find(shell, 1, 1, s.matches) }), "n"),
		console.Key("playbook.prev_match", "previous match", "", do(func(shell tui.Shell) { find(shell, -1, -1, s.matches) }), "N"),
		console.Key("playbook.prev_branch", "previous branch, by name", "", do(func(tui.Shell) { s.choose(s.neighbor(-1)) }), "["),
		console.Key("playbook.next_branch", "next branch, by name", "", do(func(tui.Shell) { s.choose(s.neighbor(1)) }), "]"),
		console.Key("playbook.branch", "choose a branch by name", "", s.askBranch, "B"),
		console.Key("playbook.refresh", "read the playbooks again now", "",
			func(shell tui.Shell) { s.feed.Again(); shell.Note("reading the playbooks") }, "ctrl+r"),
	)
}

// enter switches the mode.
func (s *browser) enter(shell tui.Shell, mode mode) {
	if mode == diffMode && !s.compare() {
		shell.Note("this is the first version; mark another version with space to compare")
		return
	}
	s.Mode, s.RowBy = mode, nil
	shell.Focus(0)
}

// target returns the merge on the detail's line, or that of the selected row.
func (s *browser) target() *playbook.Source {
	if s.RowBy != nil {
		return s.RowBy
	}
	return s.selectedSource()
}

func (s *browser) marksText() string {
	var names []string
	for _, m := range s.marks {
		names = append(names, text.Safe(m.Branch, " ")+" v"+strconv.Itoa(m.Seq))
	}
	switch len(names) {
	case 0:
		return "no version is marked"
	case 1:
		return "marked " + names[0] + "; d compares it with the selected version"
	}
	return "marked " + strings.Join(names, " and ") + "; d compares them"
}

func (s *browser) search(shell tui.Shell, find func(tui.Shell, int, int, func(int) bool)) {
	shell.Ask(tui.Prompt{Label: "/", Value: s.query, Hint: "words of a bullet, a section, a task, a reason", Done: func(typed string) tea.Cmd {
		if s.query = strings.ToLower(strings.TrimSpace(typed)); s.query != "" {
			find(shell, 0, 1, s.matches)
			s.want()
		}
		return nil
	}})
}

func (s *browser) askBranch(shell tui.Shell) {
	shell.Ask(tui.Prompt{Label: "branch", Hint: "part of its name",
		Preview: func(typed string) string {
			if b := s.branchLike(typed); b != "" {
				return b
			}
			return "no matching branch"
		},
		Done: func(typed string) tea.Cmd {
			b := s.branchLike(typed)
			if b == "" {
				return func() tea.Msg {
					return tui.Failed(errors.New("playbook branch " + strconv.Quote(typed) + " not found"))
				}
			}
			s.choose(b)
			return nil
		}})
}

// matches reports whether a row matches the search.
func (s *browser) matches(i int) bool {
	if s.query == "" {
		return false
	}
	has := func(parts ...string) bool { return widget.Holds(s.query, parts...) }
	switch s.Mode {
	case bulletMode:
		b := s.rows.of.Bullets[s.rows.list[i]].Bullet
		return has(b.ID, b.Section, b.Content)
	case versionMode:
		at := s.newest() - i - s.books.From
		if at < 0 || at >= len(s.books.Versions) {
			return false
		}
		v := s.books.Versions[at]
		return has("v"+strconv.Itoa(s.newest()-i), v.TaskID, v.Rationale, v.Hash)
	case diffMode:
		b := s.rows.diffs[i].bullet
		return has(b.ID, b.Section, b.Content)
	}
	f := s.books.Health.Findings[i]
	return has(string(f.Kind), f.Text, strings.Join(f.BulletIDs, " "))
}

// wrong reports whether e stops at a row.
func (s *browser) wrong(i int) bool {
	switch s.Mode {
	case bulletMode:
		b := s.rows.of.Bullets[s.rows.list[i]].Bullet
		return b.Harmful > 0 && b.Harmful >= b.Helpful
	case versionMode:
		at := s.newest() - i - s.books.From
		return at >= 0 && at < len(s.books.Versions) && s.books.Versions[at].Removed > 0
	case diffMode:
		return s.rows.diffs[i].kind == "removed"
	}
	return s.books.Health.Findings[i].Severity == playbook.SeverityError
}

// find moves to the nearest matching row, starting from rows after the cursor and wrapping around.
func (v *List) find(shell tui.Shell, from, by int, match func(i int) bool) {
	v.sync()
	t := v.tables[v.Mode]
	for n := range t.Rows {
		i := ((t.Cursor+from+n*by)%t.Rows + t.Rows) % t.Rows
		if match(i) {
			v.Scroll(i - t.Cursor)
			return
		}
	}
	shell.Note("no row matches")
}

func (v *List) SetShown(shown bool) {
	v.shown = shown
	v.feed.Look(shown)
	v.want()
}

func (v *List) SetStyles(s theme.Styles) {
	v.Styles = s
	tables := newTables(s.Glyphs)
	for i, t := range tables {
		t.Cursor, t.Top = v.tables[i].Cursor, v.tables[i].Top
	}
	v.tables = tables
}

func (v *List) Refresh() {
	v.books, v.remote = v.feed.Value(), v.controls.Connection().Mode == "remote"
}

// sync updates the rows of the table and puts its cursor on the selected row.
func (v *List) sync() {
	t := v.tables[v.Mode]
	t.SetSize(v.Width, max(v.Height-headLines, 2))
	rows, cursor := 0, v.at[v.Mode]
	if v.Mode == bulletMode || v.Mode == HealthMode {
		v.rows.set(v.chosen(), v.Order)
	}
	switch v.Mode {
	case bulletMode:
		rows = len(v.rows.list)
		if i, ok := v.rows.byID[v.Bullet]; ok {
			cursor = slices.Index(v.rows.list, i)
		}
	case versionMode:
		if v.books != nil && v.books.Branch.Name != "" {
			rows, cursor = v.newest()+1, v.newest()-v.seqNow()
		}
	case diffMode:
		v.rows.setPair(v.pair())
		rows = len(v.rows.diffs)
	case HealthMode:
		if h := v.health(); h != nil {
			rows = len(h.Findings)
		}
	}
	t.SetRows(rows)
	if t.Cursor != cursor {
		t.Cursor = cursor
		t.Reveal()
	}
	v.at[v.Mode] = t.Cursor
	if v.Mode == bulletMode && rows > 0 {
		v.Bullet = v.chosen().Bullets[v.rows.list[t.Cursor]].Bullet.ID
	}
}

// pair returns the requested difference, or nil until it is read.
func (s *browser) pair() *playbooks.Pair {
	if s.books == nil || s.books.Compared == nil || s.books.Compared.A != s.pairA || s.books.Compared.B != s.pairB {
		return nil
	}
	return s.books.Compared
}

func (s *browser) health() *playbooks.VersionHealth {
	if s.books == nil || s.books.Health == nil {
		return nil
	}
	return s.books.Health
}

func (v *List) Page() int { return v.tables[v.Mode].Page() }

func (v *List) Scroll(by int) {
	v.sync()
	t := v.tables[v.Mode]
	t.Scroll(by)
	v.at[v.Mode] = t.Cursor
	v.RowBy = nil
	switch {
	case t.Rows == 0:
	case v.Mode == bulletMode:
		v.Bullet = v.chosen().Bullets[v.rows.list[t.Cursor]].Bullet.ID
	case v.Mode == versionMode:
		if v.seq = v.newest() - t.Cursor; t.Cursor == 0 {
			v.seq = -1
		}
	}
	v.want()
}

// headLines is the number of lines above the table.
const headLines = 2

func (v *List) Draw(now time.Time, focused bool) []string {
	v.sync()
	v.want()
	lines := []string{v.modeLine(), v.stateLine(now)}
	t, s := v.tables[v.Mode], v.Styles
	if t.Rows == 0 {
		return v.Message(lines, v.empty()...)
	}
	return widget.Fill(append(lines, t.Draw(s, focused, func(i int) []widget.Cell { return v.cells(i, now) })...), v.Width, v.Height)
}

func (v *List) cells(i int, now time.Time) []widget.Cell {
	switch v.Mode {
	case bulletMode:
		at := v.rows.of
		return bulletCells(&at.Bullets[v.rows.list[i]], at.Seq, now, v.Styles)
	case versionMode:
		return v.versionCells(v.newest()-i, now, v.Styles)
	case diffMode:
		return diffCells(v.rows.diffs[i], v.Styles)
	}
	return findingCells(v.books.Health.Findings[i], v.Styles)
}

// modeLine names the modes and their keys.
func (v *List) modeLine() string {
	s := v.Styles
	l := text.Line{Max: v.Width, Tail: s.Glyphs.Ellipsis}
	for _, m := range modes {
		if m.mode == v.Mode {
			l.Add(s.Title, " "+s.Glyphs.Pointer).Add(s.Title, m.name+" ")
		} else {
			l.Add(s.Key, "  "+m.key).Add(s.Hint, " "+strings.ToLower(m.name)+" ")
		}
	}
	return l.String(s.Text)
}

// stateLine shows the version and a summary of it.
func (v *List) stateLine(now time.Time) string {
	s, g := v.Styles, v.Styles.Glyphs
	l := text.Line{Max: v.Width, Tail: g.Ellipsis}
	sep := "  " + g.Dot + "  "
	if v.books == nil || v.books.Branch.Name == "" {
		return l.String(s.Text)
	}
	if v.books.Err != "" {
		l.Add(s.Error, " "+g.Failed+" "+text.Safe(v.books.Err, " "))
		return l.String(s.Text)
	}
	switch at := v.chosen(); {
	case v.Mode == diffMode:
		l.Add(s.Text, " "+markName(v.pairA, v.pairB)+" "+g.Arrow+" "+markName(v.pairB, v.pairA))
		if p := v.pair(); p != nil && p.Diff != nil {
			l.Add(s.Added, sep+g.Added+strconv.Itoa(len(p.Diff.Added))).Add(s.Updated, " "+g.Updated+strconv.Itoa(len(p.Diff.Changed))).
				Add(s.Removed, " "+g.Removed+strconv.Itoa(len(p.Diff.Removed))).Add(s.Muted, ", "+text.Count(int64(p.Diff.Same))+" unchanged")
		}
	case at != nil:
		l.Add(s.Text, fmt.Sprintf(" v%d of %d", v.seqNow(), v.newest()))
		if v.seq < 0 {
			l.Add(s.Muted, " (newest)")
		}
		l.Add(s.Muted, sep+widget.HowMany(at.Record.Bullets, "bullet"))
		v.sizeLine(&l, at, sep)
	}
	if n := len(v.books.Branches); n > 1 {
		l.Add(s.Muted, sep+"[ ] "+text.Count(int64(n))+" branches")
	}
	return l.String(s.Text)
}

// sizeLine adds the size of the playbook over its versions, or the number of graded tasks.
func (v *List) sizeLine(l *text.Line, at *playbooks.VersionDetail, sep string) {
	s := v.Styles
	if h := v.health(); v.Mode == HealthMode && h != nil {
		l.Add(s.Muted, sep+widget.HowMany(h.Judged, "graded task"))
		return
	}
	if len(at.Sizes) > 2 {
		var sizes []float64
		for _, size := range at.Sizes {
			sizes = append(sizes, float64(size.Bullets))
		}
		l.Add(s.Muted, " "+widget.Spark(sizes, 16, s.Glyphs))
	}
}

// markName names a version, with its branch if the other version is of another branch.
func markName(m, other playbooks.VersionRef) string {
	name := "v" + strconv.Itoa(m.Seq)
	if m.Branch != other.Branch {
		name = text.Safe(m.Branch, " ") + " " + name
	}
	return name
}

// empty explains why the list is empty.
func (v *List) empty() []string {
	b, g := v.books, v.Styles.Glyphs
	switch {
	case b == nil:
		return []string{"reading the playbooks" + g.Ellipsis}
	case b.Missing != "":
		return []string{text.Safe(b.Missing, " ")}
	case b.Branch.Name == "" && b.Err != "":
		return []string{"the playbooks cannot be read", text.Safe(b.Err, " ")}
	case b.Branch.Name == "" && v.remote:
		return []string{"no playbooks on this machine", "the worker of a remote cluster keeps them on its machine"}
	case b.Branch.Name == "":
		return []string{"no playbooks yet", "an experiment makes one:  acescope run --dataset FILE"}
	case b.Err != "":
		return []string{text.Safe(b.Err, " ")}
	}
	switch at := v.chosen(); {
	case v.Mode == diffMode && v.pair() == nil:
		return []string{"comparing" + g.Ellipsis}
	case v.Mode == diffMode && v.pair().Err != "":
		return []string{text.Safe(v.pair().Err, " ")}
	case v.Mode == diffMode:
		return []string{"no difference"}
	case at == nil || !at.HasBullets || v.Mode == HealthMode && v.health() == nil:
		return []string{"reading the authors" + g.Ellipsis}
	case v.Mode == HealthMode:
		return []string{"no findings"}
	}
	return []string{"this version has no bullets"}
}

// Copy returns the bullet's text, the version's hash, or the finding.
func (s *browser) Copy() (what, text string) {
	switch s.Mode {
	case bulletMode:
		if l := s.bulletLife(s.Bullet); l != nil {
			return "bullet " + l.Bullet.ID, l.Bullet.Content
		}
	case versionMode:
		if at := s.chosen(); at != nil {
			return "hash of v" + strconv.Itoa(at.Seq), at.Hash
		}
	case diffMode:
		if i := s.at[diffMode]; i < len(s.rows.diffs) {
			return "bullet " + s.rows.diffs[i].bullet.ID, s.rows.diffs[i].bullet.Content
		}
	case HealthMode:
		if f := s.finding(); f != nil {
			return "finding", f.Text + " " + f.Advice
		}
	}
	return "", ""
}

// Keep returns the branch, mode, order and bullet.
func (v *List) Keep() map[string]string {
	return map[string]string{"branch": v.branch, "mode": modes[v.Mode].key, "order": strconv.Itoa(int(v.Order)), "bullet": v.Bullet}
}

// Restore applies what Keep returned and ignores invalid values.
func (v *List) Restore(kept map[string]string) {
	v.branch, v.Bullet = kept["branch"], kept["bullet"]
	for _, m := range modes {
		if m.key == kept["mode"] && m.mode != diffMode {
			v.Mode = m.mode
		}
	}
	if n, err := strconv.Atoi(kept["order"]); err == nil && n >= 0 && n < int(Orders) {
		v.Order = bulletOrder(n)
	}
}
