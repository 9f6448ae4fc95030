package views

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// bookList is the left pane of the playbook screen: bullets, versions, differences or
// findings.
type bookList struct {
	*shelf
	styles        theme.Styles
	tables        [4]*table
	width, height int
}

// newPlaybook makes the two panes of the playbook screen.
func newPlaybook(c *console) (*bookList, *bookDetail) {
	s := &shelf{console: c, seq: -1}
	list := &bookList{shelf: s, tables: bookTables(theme.Unicode())}
	return list, &bookDetail{shelf: s, list: list}
}

func (v *bookList) Name() string { return "Playbook" }

func (v *bookList) Title() string {
	if v.books == nil || v.books.Branch.Name == "" {
		return "Playbook"
	}
	return "Playbook " + text.Safe(v.books.Branch.Name, " ")
}

// Footer is where the cursor is, and in which order the rows are.
func (v *bookList) Footer() string {
	where := v.tables[v.mode].position()
	if v.mode == bulletMode && where != "" {
		return v.order.String() + " " + v.styles.Glyphs.Dot + " " + where
	}
	return where
}

func (v *bookList) Bindings() []tui.Binding {
	find := func(by int) func(tui.Shell) tea.Cmd {
		return func(shell tui.Shell) tea.Cmd { v.find(shell, by, by, v.wrong); return nil }
	}
	list := append(motions("playbook", v),
		tui.Binding{Action: "playbook.detail", Keys: []string{"enter"}, Help: "all that is known of it: who wrote it, when and why", Short: "who & why",
			Do: func(shell tui.Shell) tea.Cmd { shell.Focus(1); return nil }},
		tui.Binding{Action: "playbook.next_error", Keys: []string{"e"}, Help: "the next harmful bullet, removal or bad finding", Do: find(1)},
		tui.Binding{Action: "playbook.prev_error", Keys: []string{"E"}, Help: "the one before", Do: find(-1)})
	return append(list, v.shelf.bindings(v.find)...)
}

// bindings are the keys that work in both panes.
func (s *shelf) bindings(find func(shell tui.Shell, from, by int, match func(i int) bool)) []tui.Binding {
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
			Do: do(func(shell tui.Shell) { s.order = (s.order + 1) % orders; shell.Note("bullets " + s.order.String()) })},
		tui.Binding{Action: "playbook.search", Keys: []string{"/"}, Help: "search in the list", Do: func(shell tui.Shell) tea.Cmd { s.search(shell, find); return nil }},
		tui.Binding{Action: "playbook.next_match", Keys: []string{"n"}, Help: "the next that matches", Do: do(func(shell tui.Shell) { find(shell, 1, 1, s.matches) })},
		tui.Binding{Action: "playbook.prev_match", Keys: []string{"N"}, Help: "the one before that matches", Do: do(func(shell tui.Shell) { find(shell, -1, -1, s.matches) })},
		tui.Binding{Action: "playbook.prev_branch", Keys: []string{"["}, Help: "the branch before, by name", Do: do(func(tui.Shell) { s.choose(s.neighbour(-1)) })},
		tui.Binding{Action: "playbook.next_branch", Keys: []string{"]"}, Help: "the next branch", Do: do(func(tui.Shell) { s.choose(s.neighbour(1)) })},
		tui.Binding{Action: "playbook.branch", Keys: []string{"B"}, Help: "choose a branch by name", Do: func(shell tui.Shell) tea.Cmd { s.askBranch(shell); return nil }},
		tui.Binding{Action: "playbook.refresh", Keys: []string{"ctrl+r"}, Help: "read the playbooks again now",
			Do: func(shell tui.Shell) tea.Cmd { s.Controls.ReadBooks(); shell.Note("reading the playbooks"); return nil }},
	)
}

// enter goes to another mode.
func (s *shelf) enter(shell tui.Shell, mode bookMode) {
	if mode == diffMode && !s.compare() {
		shell.Note("nothing to compare: this is where the branch begins; mark another version with space")
		return
	}
	s.mode, s.rowBy = mode, nil
	shell.Focus(0)
}

// target is the merge of the detail's row, else of what is chosen in the list.
func (s *shelf) target() *sources.BookSource {
	if s.rowBy != nil {
		return s.rowBy
	}
	return s.link()
}

func (s *shelf) saysMarks() string {
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

func (s *shelf) search(shell tui.Shell, find func(tui.Shell, int, int, func(int) bool)) {
	shell.Ask(tui.Prompt{Label: "/", Value: s.query, Hint: "words of a bullet, a section, a task, a reason", Done: func(typed string) tea.Cmd {
		if s.query = strings.ToLower(strings.TrimSpace(typed)); s.query != "" {
			find(shell, 0, 1, s.matches)
			s.want()
		}
		return nil
	}})
}

func (s *shelf) askBranch(shell tui.Shell) {
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
func (s *shelf) matches(i int) bool {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(strings.ToLower(p), s.query) {
				return true
			}
		}
		return false
	}
	switch s.mode {
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
func (s *shelf) wrong(i int) bool {
	switch s.mode {
	case bulletMode:
		b := s.rows.of.Bullets[s.rows.list[i]].Bullet
		return b.Harmful > 0 && b.Harmful >= b.Helpful
	case versionMode:
		at := s.newest() - i - s.books.From
		return at >= 0 && at < len(s.books.Versions) && s.books.Versions[at].Removed > 0
	case diffMode:
		return s.rows.diffs[i].kind == "removed"
	}
	return s.books.Health.Findings[i].Severity == sources.FindingBad
}

// find moves to the nearest row that matches, from so many rows on, round the ends.
func (v *bookList) find(shell tui.Shell, from, by int, match func(i int) bool) {
	v.sync()
	t := v.tables[v.mode]
	for n := range t.rows {
		i := ((t.cursor+from+n*by)%t.rows + t.rows) % t.rows
		if match(i) {
			v.scroll(i - t.cursor)
			return
		}
	}
	shell.Note("nothing in this list matches")
}

func (v *bookList) Update(tea.Msg) tea.Cmd { return nil }

func (v *bookList) SetShown(shown bool) {
	v.shown = shown
	v.Controls.Look(sources.PartBooks, shown)
	v.want()
}

func (v *bookList) SetStyles(s theme.Styles) {
	v.styles = s
	tables := bookTables(s.Glyphs)
	for i, t := range tables {
		t.cursor, t.top = v.tables[i].cursor, v.tables[i].top
	}
	v.tables = tables
}

func (v *bookList) SetSize(width, height int) { v.width, v.height = width, height }

func (v *bookList) SetSnapshot(s *sources.Snapshot) {
	v.books, v.remote = s.Books, s.Connection.Mode == "remote"
}

// sync brings the table of the mode up to what there is, its cursor on what is chosen.
func (v *bookList) sync() {
	t := v.tables[v.mode]
	t.setSize(v.width, max(v.height-bookHead, 2))
	rows, cursor := 0, v.at[v.mode]
	if v.mode == bulletMode || v.mode == healthMode {
		v.rows.set(v.chosen(), v.order)
	}
	switch v.mode {
	case bulletMode:
		rows = len(v.rows.list)
		if i, ok := v.rows.byID[v.bullet]; ok {
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
	case healthMode:
		if h := v.health(); h != nil {
			rows = len(h.Findings)
		}
	}
	t.setRows(rows)
	if t.cursor != cursor {
		t.cursor = cursor
		t.reveal()
	}
	v.at[v.mode] = t.cursor
	if v.mode == bulletMode && rows > 0 {
		v.bullet = v.chosen().Bullets[v.rows.list[t.cursor]].Bullet.ID
	}
}

// pair is the difference that was asked for, nil while it is being made.
func (s *shelf) pair() *sources.BookPair {
	if s.books == nil || s.books.Compared == nil || s.books.Compared.A != s.pairA || s.books.Compared.B != s.pairB {
		return nil
	}
	return s.books.Compared
}

func (s *shelf) health() *sources.HealthOf {
	if s.books == nil || s.books.Health == nil {
		return nil
	}
	return s.books.Health
}

func (v *bookList) page() int { return v.tables[v.mode].page() }

func (v *bookList) scroll(by int) {
	v.sync()
	t := v.tables[v.mode]
	t.scroll(by)
	v.at[v.mode] = t.cursor
	v.rowBy = nil
	switch {
	case t.rows == 0:
	case v.mode == bulletMode:
		v.bullet = v.chosen().Bullets[v.rows.list[t.cursor]].Bullet.ID
	case v.mode == versionMode:
		if v.seq = v.newest() - t.cursor; t.cursor == 0 {
			v.seq = -1
		}
	}
	v.want()
}

// bookHead is how many lines stand above the list.
const bookHead = 2

func (v *bookList) Draw(now time.Time, focused bool) []string {
	v.sync()
	v.want()
	lines := []string{v.modeLine(), v.stateLine(now)}
	t, s := v.tables[v.mode], v.styles
	if t.rows == 0 {
		return fill(append(lines, centre(v.empty(), v.width, v.height-len(lines), s)...), v.width, v.height)
	}
	return fill(append(lines, t.draw(s, focused, func(i int) []cell { return v.cells(i, now) })...), v.width, v.height)
}

func (v *bookList) cells(i int, now time.Time) []cell {
	switch v.mode {
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
func (v *bookList) modeLine() string {
	s := v.styles
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	for _, m := range bookModes {
		if m.mode == v.mode {
			l.Add(s.Title, " "+s.Glyphs.Pointer).Add(s.Title, m.name+" ")
		} else {
			l.Add(s.Key, "  "+m.key).Add(s.Hint, " "+strings.ToLower(m.name)+" ")
		}
	}
	return l.String(s.Text)
}

// stateLine says of which version the list is, and what there is to know of the whole.
func (v *bookList) stateLine(now time.Time) string {
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
	case v.mode == diffMode:
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
func (v *bookList) sizeLine(l *text.Line, at *sources.BookAt, sep string) {
	s := v.styles
	if h := v.health(); v.mode == healthMode && h != nil {
		l.Add(s.Muted, sep+text.Count(int64(h.Judged))+" judged tasks")
		return
	}
	if len(at.Sizes) > 2 {
		var sizes []float64
		for _, size := range at.Sizes {
			sizes = append(sizes, float64(size.Bullets))
		}
		l.Add(s.Muted, " "+spark(sizes, 16, s.Glyphs))
	}
}

// markName names a version, with its branch where the other one is of another.
func markName(m, other sources.BookMark) string {
	name := "v" + strconv.Itoa(m.Seq)
	if m.Branch != other.Branch {
		name = text.Safe(m.Branch, " ") + " " + name
	}
	return name
}

// empty is what is said in place of an empty list.
func (v *bookList) empty() []string {
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
	case v.mode == diffMode && v.pair() == nil:
		return []string{"comparing" + g.Ellipsis}
	case v.mode == diffMode && v.pair().Err != "":
		return []string{text.Safe(v.pair().Err, " ")}
	case v.mode == diffMode:
		return []string{"no difference"}
	case at == nil || !at.Blamed || v.mode == healthMode && v.health() == nil:
		return []string{"reading who wrote what" + g.Ellipsis}
	case v.mode == healthMode:
		return []string{"nothing is wrong that could be checked"}
	}
	return []string{"this version has no bullets"}
}

// Copy is what y copies: a bullet's text, a version's hash, a finding.
func (s *shelf) Copy() (what, text string) {
	switch s.mode {
	case bulletMode:
		if l := s.life(s.bullet); l != nil {
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
	case healthMode:
		if f := s.finding(); f != nil {
			return "finding", f.Text + " " + f.Advice
		}
	}
	return "", ""
}

// Keep is what outlives the process.
func (v *bookList) Keep() map[string]string {
	return map[string]string{"branch": v.branch, "mode": bookModes[v.mode].key, "order": strconv.Itoa(int(v.order)), "bullet": v.bullet}
}

// Restore takes back what Keep gave, as far as it makes sense still.
func (v *bookList) Restore(kept map[string]string) {
	v.branch, v.bullet = kept["branch"], kept["bullet"]
	for _, m := range bookModes {
		if m.key == kept["mode"] && m.mode != diffMode {
			v.mode = m.mode
		}
	}
	if n, err := strconv.Atoi(kept["order"]); err == nil && n >= 0 && n < int(orders) {
		v.order = bulletOrder(n)
	}
}
