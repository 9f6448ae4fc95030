package playbook

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/playbooks"
	playbookspkg "acescope/sources/playbooks"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// PlaybookList is the left pane of the playbook screen: bullets, versions, differences or
// findings.
type PlaybookList struct {
	*browser
	styles        theme.Styles
	tables        [4]*widget.Table
	width, height int
}

// Feed reads playbooks.
type Feed interface {
	console.Feed[*playbookspkg.Books]
	Refine(playbookspkg.BookWish)
	Again()
}

// NewPlaybookScreens makes the two panes of the playbook screen.
func NewPlaybookScreens(c *console.Console, feed Feed) (*PlaybookList, *playbookDetail) {
	s := &browser{nav: c.Navigation, controls: c.Controls, location: c.Location, feed: feed, seq: -1}
	list := &PlaybookList{browser: s, tables: bookTables(theme.Unicode())}
	return list, &playbookDetail{browser: s, list: list}
}

func (v *PlaybookList) Name() string { return "Playbook" }

func (v *PlaybookList) Title() string {
	if v.books == nil || v.books.Branch.Name == "" {
		return "Playbook"
	}
	return "Playbook " + text.Safe(v.books.Branch.Name, " ")
}

// Footer is where the cursor is, and in which order the rows are.
func (v *PlaybookList) Footer() string {
	where := v.tables[v.Mode].Position()
	if v.Mode == bulletMode && where != "" {
		return v.Order.String() + " " + v.styles.Glyphs.Dot + " " + where
	}
	return where
}

func (v *PlaybookList) Bindings() []tui.Binding {
	find := func(by int) func(tui.Shell) tea.Cmd {
		return func(shell tui.Shell) tea.Cmd { v.find(shell, by, by, v.wrong); return nil }
	}
	list := append(widget.Motions("playbook", v),
		tui.Binding{Action: "playbook.detail", Keys: []string{"enter"}, Help: "all that is known of it: who wrote it, when and why", Short: "who & why",
			Do: func(shell tui.Shell) tea.Cmd { shell.Focus(1); return nil }},
		tui.Binding{Action: "playbook.next_error", Keys: []string{"e"}, Help: "the next harmful bullet, removal or bad finding", Do: find(1)},
		tui.Binding{Action: "playbook.prev_error", Keys: []string{"E"}, Help: "the one before", Do: find(-1)})
	return append(list, v.browser.bindings(v.find)...)
}

// bindings are the keys that work in both panes.
func (s *browser) bindings(find func(shell tui.Shell, from, by int, match func(i int) bool)) []tui.Binding {
	do := func(fn func(tui.Shell)) func(tui.Shell) tea.Cmd {
		return func(shell tui.Shell) tea.Cmd { fn(shell); s.want(); return nil }
	}
	var list []tui.Binding
	for _, m := range bookModes {
		list = append(list, tui.Binding{Action: "playbook." + strings.ToLower(m.name), Keys: []string{m.key}, Help: m.help, Short: strings.ToLower(m.name),
			Do: do(func(shell tui.Shell) { s.enter(shell, m.mode) })})
	}
	return append(list,
		tui.Binding{Action: "playbook.open", Keys: []string{"o"}, Help: "open the run that wrote this",
			Do: do(func(shell tui.Shell) { s.openRun(shell, s.target(), "run") })},
		tui.Binding{Action: "playbook.run", Keys: []string{"J"}, Help: "show the history event of the run that wrote this", Short: "event",
			Do: do(func(shell tui.Shell) { s.openRun(shell, s.target(), "timeline") })},
		tui.Binding{Action: "playbook.mark", Keys: []string{"space"}, Help: "mark the chosen version for comparing; two at most",
			Do: do(func(shell tui.Shell) { s.mark(); shell.Note(s.saysMarks()) })},
		tui.Binding{Action: "playbook.sort", Keys: []string{"s"}, Help: "sort bullets: as in the book, helpful, harmful, newest, section",
			Do: do(func(shell tui.Shell) { s.Order = (s.Order + 1) % Orders; shell.Note("bullets " + s.Order.String()) })},
		tui.Binding{Action: "playbook.search", Keys: []string{"/"}, Help: "search in the list", Do: func(shell tui.Shell) tea.Cmd { s.search(shell, find); return nil }},
		tui.Binding{Action: "playbook.next_match", Keys: []string{"n"}, Help: "the next that matches", Do: do(func(shell tui.Shell) { find(shell, 1, 1, s.matches) })},
		tui.Binding{Action: "playbook.prev_match", Keys: []string{"N"}, Help: "the one before that matches", Do: do(func(shell tui.Shell) { find(shell, -1, -1, s.matches) })},
		tui.Binding{Action: "playbook.prev_branch", Keys: []string{"["}, Help: "the branch before, by name", Do: do(func(tui.Shell) { s.choose(s.neighbour(-1)) })},
		tui.Binding{Action: "playbook.next_branch", Keys: []string{"]"}, Help: "the next branch", Do: do(func(tui.Shell) { s.choose(s.neighbour(1)) })},
		tui.Binding{Action: "playbook.branch", Keys: []string{"B"}, Help: "choose a branch by name", Do: func(shell tui.Shell) tea.Cmd { s.askBranch(shell); return nil }},
		tui.Binding{Action: "playbook.refresh", Keys: []string{"ctrl+r"}, Help: "read the playbooks again now",
			Do: func(shell tui.Shell) tea.Cmd { s.feed.Again(); shell.Note("reading the playbooks"); return nil }},
	)
}

// enter goes to another mode.
func (s *browser) enter(shell tui.Shell, mode bookMode) {
	if mode == diffMode && !s.compare() {
		shell.Note("nothing to compare: this is where the branch begins; mark another version with space")
		return
	}
	s.Mode, s.RowBy = mode, nil
	shell.Focus(0)
}

// target is the merge of the detail's row, else of what is chosen in the list.
func (s *browser) target() *playbooks.BookSource {
	if s.RowBy != nil {
		return s.RowBy
	}
	return s.link()
}

func (s *browser) saysMarks() string {
	var names []string
	for _, m := range s.marks {
		names = append(names, text.Safe(m.Branch, " ")+" v"+strconv.Itoa(m.Seq))
	}
	switch len(names) {
	case 0:
		return "no version is marked"
	case 1:
		return "marked " + names[0] + "; d compares it with the chosen one"
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
	shell.Ask(tui.Prompt{Label: "branch", Hint: "its name, or a part of it",
		Preview: func(typed string) string {
			if b := s.branchLike(typed); b != "" {
				return b
			}
			return "no branch has that in its name"
		},
		Done: func(typed string) tea.Cmd {
			b := s.branchLike(typed)
			if b == "" {
				return func() tea.Msg { return tui.Failed(errors.New("no playbook branch is called " + typed)) }
			}
			s.choose(b)
			return nil
		}})
}

// matches tells whether a row of the list holds what is searched for.
func (s *browser) matches(i int) bool {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(strings.ToLower(p), s.query) {
				return true
			}
		}
		return false
	}
	switch s.Mode {
	case bulletMode:
		b := s.rows.of.Bullets[s.rows.list[i]].Bullet
		return s.query != "" && has(b.ID, b.Section, b.Content)
	case versionMode:
		at := s.newest() - i - s.books.From
		if at < 0 || at >= len(s.books.Versions) {
			return false
		}
		v := s.books.Versions[at]
		return s.query != "" && has("v"+strconv.Itoa(s.newest()-i), v.TaskID, v.Rationale, v.Hash)
	case diffMode:
		b := s.rows.diffs[i].bullet
		return s.query != "" && has(b.ID, b.Section, b.Content)
	}
	f := s.books.Health.Findings[i]
	return s.query != "" && has(string(f.Kind), f.Text, strings.Join(f.BulletIDs, " "))
}

// wrong tells whether a row is one that e goes to.
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
	return s.books.Health.Findings[i].Severity == playbooks.FindingBad
}

// find moves to the nearest row that matches, from so many rows on, round the ends.
func (v *PlaybookList) find(shell tui.Shell, from, by int, match func(i int) bool) {
	v.sync()
	t := v.tables[v.Mode]
	for n := range t.Rows {
		i := ((t.Cursor+from+n*by)%t.Rows + t.Rows) % t.Rows
		if match(i) {
			v.Scroll(i - t.Cursor)
			return
		}
	}
	shell.Note("nothing in this list matches")
}

func (v *PlaybookList) SetShown(shown bool) {
	v.shown = shown
	v.feed.Look(shown)
	v.want()
}

func (v *PlaybookList) SetStyles(s theme.Styles) {
	v.styles = s
	tables := bookTables(s.Glyphs)
	for i, t := range tables {
		t.Cursor, t.Top = v.tables[i].Cursor, v.tables[i].Top
	}
	v.tables = tables
}

func (v *PlaybookList) SetSize(width, height int) { v.width, v.height = width, height }

func (v *PlaybookList) Refresh() {
	v.books, v.remote = v.feed.Value(), v.controls.Connection().Mode == "remote"
}

// sync brings the table of the mode up to what there is, its cursor on what is chosen.
func (v *PlaybookList) sync() {
	t := v.tables[v.Mode]
	t.SetSize(v.width, max(v.height-bookHead, 2))
	rows, cursor := 0, v.at[v.Mode]
	if v.Mode == bulletMode || v.Mode == HealthMode {
		v.rows.set(v.chosen(), v.Order)
	}
	switch v.Mode {
	case bulletMode:
		rows = len(v.rows.list)
		if i, ok := v.rows.byID[v.Bullet]; ok {
			for at, j := range v.rows.list {
				if i == j {
					cursor = at
				}
			}
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

// pair is the difference that was asked for, nil while it is being made.
func (s *browser) pair() *playbooks.BookPair {
	if s.books == nil || s.books.Compared == nil || s.books.Compared.A != s.pairA || s.books.Compared.B != s.pairB {
		return nil
	}
	return s.books.Compared
}

func (s *browser) health() *playbooks.HealthOf {
	if s.books == nil || s.books.Health == nil {
		return nil
	}
	return s.books.Health
}

func (v *PlaybookList) Page() int { return v.tables[v.Mode].Page() }

func (v *PlaybookList) Scroll(by int) {
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

// bookHead is how many lines stand above the list.
const bookHead = 2

func (v *PlaybookList) Draw(now time.Time, focused bool) []string {
	v.sync()
	v.want()
	lines := []string{v.modeLine(), v.stateLine(now)}
	t, s := v.tables[v.Mode], v.styles
	if t.Rows == 0 {
		return widget.Fill(append(lines, widget.Centre(v.empty(), v.width, v.height-len(lines), s)...), v.width, v.height)
	}
	return widget.Fill(append(lines, t.Draw(s, focused, func(i int) []widget.Cell { return v.cells(i, now) })...), v.width, v.height)
}

func (v *PlaybookList) cells(i int, now time.Time) []widget.Cell {
	switch v.Mode {
	case bulletMode:
		at := v.rows.of
		return bulletCells(&at.Bullets[v.rows.list[i]], at.Seq, now, v.styles)
	case versionMode:
		return v.versionCells(v.newest()-i, now, v.styles)
	case diffMode:
		return diffCells(v.rows.diffs[i], v.styles)
	}
	return findingCells(v.books.Health.Findings[i], v.styles)
}

// modeLine names the modes and their keys.
func (v *PlaybookList) modeLine() string {
	s := v.styles
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	for _, m := range bookModes {
		if m.mode == v.Mode {
			l.Add(s.Title, " "+s.Glyphs.Pointer).Add(s.Title, m.name+" ")
		} else {
			l.Add(s.Key, "  "+m.key).Add(s.Hint, " "+strings.ToLower(m.name)+" ")
		}
	}
	return l.String(s.Text)
}

// stateLine says of which version the list is, and what there is to know of the whole.
func (v *PlaybookList) stateLine(now time.Time) string {
	s, g := v.styles, v.styles.Glyphs
	l := text.Line{Max: v.width, Tail: g.Ellipsis}
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
				Add(s.Removed, " "+g.Removed+strconv.Itoa(len(p.Diff.Removed))).Add(s.Muted, ", "+text.Count(int64(p.Diff.Same))+" the same")
		}
	case at != nil:
		l.Add(s.Text, fmt.Sprintf(" v%d of %d", v.seqNow(), v.newest()))
		if v.seq < 0 {
			l.Add(s.Muted, " (newest)")
		}
		l.Add(s.Muted, sep+text.Count(int64(at.Record.Bullets))+" bullets")
		v.sizeLine(&l, at, sep)
	}
	if n := len(v.books.Branches); n > 1 {
		l.Add(s.Muted, sep+"[ ] "+text.Count(int64(n))+" branches")
	}
	return l.String(s.Text)
}

// sizeLine adds the size of the book over its versions, or how tasks were judged.
func (v *PlaybookList) sizeLine(l *text.Line, at *playbooks.BookAt, sep string) {
	s := v.styles
	if h := v.health(); v.Mode == HealthMode && h != nil {
		l.Add(s.Muted, sep+text.Count(int64(h.Judged))+" judged tasks")
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

// markName names a version, with its branch where the other one is of another.
func markName(m, other playbooks.BookMark) string {
	name := "v" + strconv.Itoa(m.Seq)
	if m.Branch != other.Branch {
		name = text.Safe(m.Branch, " ") + " " + name
	}
	return name
}

// empty is what is said in place of an empty list.
func (v *PlaybookList) empty() []string {
	b, g := v.books, v.styles.Glyphs
	switch {
	case b == nil:
		return []string{"reading the playbooks" + g.Ellipsis}
	case b.Missing != "":
		return []string{text.Safe(b.Missing, " ")}
	case b.Branch.Name == "" && b.Err != "":
		return []string{"the playbooks cannot be read", text.Safe(b.Err, " ")}
	case b.Branch.Name == "" && v.remote:
		return []string{"no playbooks on this machine", "those of a remote cluster lie where its worker runs"}
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
	case at == nil || !at.Blamed || v.Mode == HealthMode && v.health() == nil:
		return []string{"reading who wrote what" + g.Ellipsis}
	case v.Mode == HealthMode:
		return []string{"nothing is wrong that could be checked"}
	}
	return []string{"this version has no bullets"}
}

// Copy is what y copies: a bullet's text, a version's hash, a finding.
func (s *browser) Copy() (what, text string) {
	switch s.Mode {
	case bulletMode:
		if l := s.life(s.Bullet); l != nil {
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

// Keep is what outlives the process.
func (v *PlaybookList) Keep() map[string]string {
	return map[string]string{"branch": v.branch, "mode": bookModes[v.Mode].key, "order": strconv.Itoa(int(v.Order)), "bullet": v.Bullet}
}

// Restore takes back what Keep gave, as far as it makes sense still.
func (v *PlaybookList) Restore(kept map[string]string) {
	v.branch, v.Bullet = kept["branch"], kept["bullet"]
	for _, m := range bookModes {
		if m.key == kept["mode"] && m.mode != diffMode {
			v.Mode = m.mode
		}
	}
	if n, err := strconv.Atoi(kept["order"]); err == nil && n >= 0 && n < int(Orders) {
		v.Order = bulletOrder(n)
	}
}
