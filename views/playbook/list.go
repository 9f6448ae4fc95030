package playbook

import (
	"fmt"
	"slices"
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

// List is the left pane: bullets, versions, differences or findings.
type List struct {
	*browser
	console.Pane
}

// argument lets the command choose a playbook, or a version of it.
func (s *browser) argument() *tui.Argument {
	return &tui.Argument{Name: "NAME[@VERSION]", Help: "NAME selects one", Candidates: s.candidates,
		Check: func(typed string) error { _, err := s.reference(typed); return err },
		Do: func(shell tui.Shell, typed string) tea.Cmd {
			at, _ := s.reference(typed)
			s.goTo(at)
			shell.Open("playbook")
			shell.Focus(0)
			return nil
		}}
}

func (s *browser) candidates() (list []tui.Candidate) {
	if data := s.feed.Value(); data != nil {
		for _, b := range data.Branches {
			list = append(list, tui.Candidate{Value: b.Name, Help: ace.Count(b.Versions, "version")})
		}
	}
	return list
}

// reference parses NAME or NAME@VERSION. Without a version, seq is -1, the newest.
func (s *browser) reference(typed string) (playbooks.VersionRef, error) {
	name, version, given := strings.Cut(typed, "@")
	at := playbooks.VersionRef{Branch: name, Seq: -1}
	known := func(c tui.Candidate) bool { return c.Value == name }
	if !slices.ContainsFunc(s.candidates(), known) {
		return at, fmt.Errorf("playbook %q not found; tab lists the playbooks", name)
	}
	if !given {
		return at, nil
	}
	seq, err := strconv.Atoi(strings.TrimPrefix(version, "v"))
	if err != nil || seq < 0 {
		return at, fmt.Errorf("not a version: %q; give its number", version)
	}
	at.Seq = seq
	return at, nil
}

// goTo shows a version of a branch. With a negative number it shows the bullets of the newest version.
func (s *browser) goTo(at playbooks.VersionRef) {
	s.choose(at.Branch)
	if at.Seq >= 0 {
		s.Mode, s.seq = versionMode, at.Seq
		s.want()
	}
}

// Feed reads playbooks.
type Feed interface {
	console.Feed[*playbooks.Playbooks]
	Refine(playbooks.Ask)
	// Again reads the playbooks again.
	Again()
}

func Screen(c *console.Console, feed Feed) tui.Screen {
	s := &browser{nav: c.Navigation, actor: c.Actor, controls: c.Controls, feed: feed, seq: -1,
		tables: newTables(theme.Unicode())}
	blame := &detail{browser: s, Reader: console.NewReader("Blame", c.Location)}
	blame.Pointer = true
	return tui.Screen{Name: "playbook", Short: "book", Keys: []string{"4"}, Aliases: []string{"playbooks"},
		Argument: s.argument(), Help: "playbooks: bullets and their authors, versions, differences, health",
		Views: []tui.View{&List{browser: s, Pane: console.NewPane("Playbook")}, blame}}
}

func (v *List) Title() string {
	if !v.hasBranch() {
		return "Playbook"
	}
	return "Playbook " + text.Safe(v.data.Branch.Name, " ")
}

func (v *List) Footer() string {
	where := v.tables[v.Mode].Position()
	if v.Mode == bulletMode && where != "" {
		return v.Order.String() + " " + v.Styles.Glyphs.Dot + " " + where
	}
	return where
}

func (v *List) Bindings() []tui.Binding {
	wrong := func(by int) func(tui.Shell) { return func(s tui.Shell) { v.find(s, by, by, row.wrong) } }
	list := append(widget.Motions("playbook", v),
		console.Key("playbook.detail", "show its author, time and reason", "who & why",
			func(s tui.Shell) { s.Focus(1) }, "enter"),
		console.Key("playbook.next_error", "next harmful bullet, removal or error", "", wrong(1), "e"),
		console.Key("playbook.previous_error", "previous harmful bullet, removal or error", "", wrong(-1),
			"E"))
	if v.actor.Changes() {
		export := console.Key("playbook.save", "write the selected version to a file", "export", v.export,
			"ctrl+s")
		list = append(list, export)
	}
	return append(list, v.browser.bindings(v.find)...)
}

// export writes the selected version to a file.
func (v *List) export(s tui.Shell) tea.Cmd {
	if !v.hasBranch() {
		s.Note("no playbook to export yet; n on the overview starts an experiment")
		return nil
	}
	if v.branch != "" && v.branch != v.data.Branch.Name {
		s.Note("reading the playbook " + text.Safe(v.branch, " ") + "; ctrl+s again exports it")
		return nil
	}
	return v.actor.AskExport(s, fmt.Sprintf("%s@%d", v.data.Branch.Name, v.seqNow()))
}

// find goes to the next matching row, from the row that is from rows after the cursor, and wraps around.
type find func(shell tui.Shell, from, by int, match func(row) bool)

// bindings returns the keys of both panes.
func (s *browser) bindings(find find) []tui.Binding {
	b := func(name, help, short string, fn func(tui.Shell), keys ...string) tui.Binding {
		return console.Key("playbook."+name, help, short, func(shell tui.Shell) { fn(shell); s.want() },
			keys...)
	}
	open := func(screen string) func(tui.Shell) {
		return func(shell tui.Shell) { s.openRun(shell, s.target(), screen) }
	}
	match := func(by int) func(tui.Shell) { return func(shell tui.Shell) { find(shell, by, by, s.matches) } }
	var list []tui.Binding
	for _, m := range modes {
		name := strings.ToLower(m.name)
		list = append(list, b(name, m.help, name, func(shell tui.Shell) { s.enter(shell, m.mode) }, m.key))
	}
	return append(list,
		b("related", "open the run that wrote this", "", open("run"), "O"),
		b("event", "go to the history event that wrote this, on the timeline", "event", open("timeline"),
			"J"),
		b("mark", "mark the selected version to compare it; at most two", "",
			func(shell tui.Shell) { s.mark(); shell.Note(s.marksText()) }, "space"),
		b("sort", "sort bullets: playbook order, helpful, harmful, newest, section", "",
			func(shell tui.Shell) {
				s.Order = (s.Order + 1) % Orders
				shell.Note("bullets: " + s.Order.String())
			}, "s"),
		b("search", "search the list", "", func(shell tui.Shell) { s.search(shell, find) }, "/"),
		b("next_match", "next match", widget.If(s.query != "", "next match", ""), match(1), "ctrl+n"),
		b("previous_match", "previous match", "", match(-1), "ctrl+p"),
		b("previous_branch", "previous branch, by name", "", func(tui.Shell) { s.choose(s.neighbor(-1)) },
			"["),
		b("next_branch", "next branch, by name", "", func(tui.Shell) { s.choose(s.neighbor(1)) }, "]"),
		b("branch", "choose a branch by name", "", s.askBranch, "B"),
		b("refresh", "read the playbooks again now", "",
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

func (s *browser) marksText() string {
	var names []string
	for _, m := range s.marks {
		names = append(names, text.Safe(m.Branch, " ")+" v"+strconv.Itoa(m.Seq))
	}
	switch len(names) {
	case 0:
		return "no version is marked; press space to mark one"
	case 1:
		return "marked " + names[0] + "; = compares it with the selected version"
	}
	return "marked " + strings.Join(names, " and ") + "; = compares them"
}

func (s *browser) search(shell tui.Shell, find find) {
	shell.Ask(tui.Prompt{Label: "/", Value: s.query, Hint: "words of a bullet, a section, a task, a reason",
		Done: func(typed string) tea.Cmd {
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
				return func() tea.Msg { return tui.Failed(fmt.Errorf("playbook branch %q not found", typed)) }
			}
			s.choose(b)
			return nil
		}})
}

func (s *browser) matches(r row) bool { return s.query != "" && widget.Holds(s.query, r.words()...) }

func (v *List) find(shell tui.Shell, from, by int, match func(row) bool) {
	t := v.sync()
	for n := range t.Rows {
		i := ((t.Cursor+from+n*by)%t.Rows + t.Rows) % t.Rows
		if match(v.row(i)) {
			v.Scroll(i - t.Cursor)
			return
		}
	}
	shell.Note("no row matches")
}

func (v *List) SetShown(shown bool) {
	v.shown = shown
	v.feed.Look(shown)
	v.Sent = playbooks.Ask{} // other screens ask for other versions
	if at := v.nav.Version; shown && at.Branch != "" {
		v.nav.Version = playbooks.VersionRef{}
		v.goTo(at)
		if v.nav.Bullet != "" {
			v.Mode, v.Bullet, v.nav.Bullet = bulletMode, v.nav.Bullet, ""
		}
	}
	v.want()
}

func (v *List) SetStyles(s theme.Styles) {
	v.Styles = s
	before := v.tables
	v.tables, v.listed = newTables(s.Glyphs), listed{}
	for i, t := range v.tables {
		t.Cursor, t.Top = before[i].Cursor, before[i].Top
	}
	v.SetSize(v.Width, v.Height)
}

func (v *List) SetSize(width, height int) {
	v.Width, v.Height = width, height
	for _, t := range v.tables {
		t.SetSize(width, max(height-headLines, 2))
	}
}

func (v *List) Refresh() {
	v.data, v.remote = v.feed.Value(), v.controls.Connection().Mode == "remote"
}

// pair returns the requested difference, or nil until it is read.
func (s *browser) pair() *playbooks.Pair {
	if s.data == nil || s.data.Compared == nil || s.data.Compared.A != s.pairA ||
		s.data.Compared.B != s.pairB {
		return nil
	}
	return s.data.Compared
}

func (s *browser) health() *playbooks.VersionHealth {
	if s.data == nil || s.data.Health == nil {
		return nil
	}
	return s.data.Health
}

func (v *List) Page() int { return v.tables[v.Mode].Page() }

func (v *List) Scroll(by int) {
	t := v.sync()
	t.Scroll(by)
	v.RowBy = nil
	switch {
	case t.Rows == 0:
	case v.Mode == bulletMode:
		v.Bullet = v.row(t.Cursor).key()
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
	t := v.sync()
	v.want()
	lines := []string{v.modeLine(), v.stateLine()}
	if t.Rows == 0 {
		return v.Message(lines, v.empty()...)
	}
	rows := t.Draw(v.Styles, focused, func(i int) []widget.Cell { return v.row(i).cells(now, v.Styles) })
	return widget.Fill(append(lines, rows...), v.Width, v.Height)
}

// modeLine names the modes and their keys.
func (v *List) modeLine() string {
	s := v.Styles
	l := v.Line()
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
func (v *List) stateLine() string {
	s, g := v.Styles, v.Styles.Glyphs
	l := v.Line()
	sep := "  " + g.Dot + "  "
	if !v.hasBranch() {
		return l.String(s.Text)
	}
	if v.data.Err != "" {
		l.Add(s.Error, " "+g.Failed+" "+text.Safe(v.data.Err, " "))
		return l.String(s.Text)
	}
	switch at := v.chosen(); {
	case v.Mode == diffMode:
		l.Add(s.Text, " "+markName(v.pairA, v.pairB)+" "+g.Arrow+" "+markName(v.pairB, v.pairA))
		if p := v.pair(); p != nil && p.Diff != nil {
			l.Add(s.Added, sep+g.Added+strconv.Itoa(len(p.Diff.Added))).
				Add(s.Updated, " "+g.Updated+strconv.Itoa(len(p.Diff.Changed))).
				Add(s.Removed, " "+g.Removed+strconv.Itoa(len(p.Diff.Removed))).
				Add(s.Muted, ", "+ace.Number(p.Diff.Same)+" unchanged")
		}
	case at != nil:
		l.Add(s.Text, fmt.Sprintf(" v%d of %d", v.seqNow(), v.newest()))
		if v.seq < 0 {
			l.Add(s.Muted, " (newest)")
		}
		l.Add(s.Muted, sep+ace.Count(at.Record.Bullets, "bullet"))
		v.sizeLine(l, at, sep)
	}
	if n := len(v.data.Branches); n > 1 {
		l.Add(s.Muted, sep+"[ ] "+ace.Number(n)+" branches")
	}
	return l.String(s.Text)
}

// sizeLine shows the size of the playbook over its versions, or the number of graded tasks.
func (v *List) sizeLine(l *text.Line, at *playbooks.VersionDetail, sep string) {
	s := v.Styles
	if h := v.health(); v.Mode == HealthMode && h != nil {
		l.Add(s.Muted, sep+ace.Count(h.Judged, "graded task"))
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

// markName names a marked version, with its branch if the other marked version is of another branch.
func markName(m, other playbooks.VersionRef) string {
	name := "v" + strconv.Itoa(m.Seq)
	if m.Branch != other.Branch {
		name = text.Safe(m.Branch, " ") + " " + name
	}
	return name
}

// reportedChanges says where to find the changes of playbooks that acescope does not store.
const reportedChanges = "what a run of another program changed is on its run screen"

// empty explains why the list is empty.
func (v *List) empty() []string {
	b, g := v.data, v.Styles.Glyphs
	switch {
	case b == nil:
		return []string{"reading the playbooks" + g.Ellipsis}
	case b.Missing != "":
		return []string{text.Safe(b.Missing, " ")}
	case b.Branch.Name == "" && b.Err != "":
		return []string{"the playbooks cannot be read", text.Safe(b.Err, " ")}
	case b.Branch.Name == "" && v.remote:
		return []string{"no playbooks on this machine",
			"the worker of a remote cluster keeps them on its machine",
			reportedChanges}
	case b.Branch.Name == "":
		return []string{"no playbooks yet", "an experiment makes one: press 5, then n",
			reportedChanges}
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

func (s *browser) Copy() (what, text string) {
	if r := s.current(); r != nil {
		return r.copied()
	}
	return "", ""
}

func (s *browser) Copies() []tui.Copy {
	if r, ok := s.current().(tui.MultiCopier); ok {
		return r.Copies()
	}
	return nil
}

func (v *List) Keep() map[string]string {
	return map[string]string{"branch": v.branch, "mode": modes[v.Mode].key,
		"order":  strconv.Itoa(int(v.Order)),
		"bullet": v.Bullet}
}

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
