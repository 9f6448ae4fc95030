// Package playbook shows playbooks: bullets, versions, differences and health findings.
package playbook

import (
	"slices"
	"strings"

	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/widget"
	"acescope/views/console"
)

// mode selects what the playbook screen lists.
type mode int

const (
	bulletMode mode = iota
	versionMode
	diffMode
	HealthMode
)

// modes are the modes and their keys, in the order of the screen.
var modes = []struct {
	mode      mode
	key, name string
	help      string
}{
	{bulletMode, "b", "Bullets", "the bullets of the selected version, and who wrote them"},
	{versionMode, "v", "Versions", "the versions of the branch, and what each changed"},
	{diffMode, "=", "Diff", "compare two versions: both marked, or the marked and the selected one, " +
		"or the selected one and its predecessor"},
	{HealthMode, "K", "Health", "health findings of the selected version"},
}

// browser is the state of both panes: the mode, the selection in each mode, and the newest playbooks.
type browser struct {
	actor    *console.Actor
	nav      *console.Navigation
	controls console.Controls
	feed     Feed

	data   *playbooks.Playbooks
	remote bool
	shown  bool
	Sent   playbooks.Ask

	Mode   mode
	branch string // name of the chosen branch, "" for the one changed last
	seq    int    // selected version, -1 follows the newest
	Bullet string // ID of the selected bullet
	pairA  playbooks.VersionRef
	pairB  playbooks.VersionRef
	marks  []playbooks.VersionRef
	Order  bulletOrder
	query  string // search text, in lower case

	tables [4]*widget.Table // by mode; the cursors of bullets and versions are found by ID
	rows   []row            // of all modes but versions
	listed listed
	byID   map[string]*playbook.BulletHistory // bullets of the selected version
	// merge on the line under the detail's cursor, nil until that cursor moves
	RowBy *playbook.Source
}

// listed identifies what the rows were listed from.
type listed struct {
	data  *playbooks.Playbooks
	mode  mode
	order bulletOrder
	a, b  playbooks.VersionRef
}

// sync lists the rows if the data or the mode changed, and moves the cursor to the selected row.
func (s *browser) sync() *widget.Table {
	if of := (listed{s.data, s.Mode, s.Order, s.pairA, s.pairB}); of != s.listed {
		s.listed = of
		s.list()
	}
	t := s.tables[s.Mode]
	cursor := -1
	switch {
	case s.Mode == bulletMode:
		cursor = slices.IndexFunc(s.rows, func(r row) bool { return r.key() == s.Bullet })
	case s.Mode == versionMode && s.hasBranch():
		cursor = s.newest() - s.seqNow()
	}
	if cursor >= 0 && cursor != t.Cursor {
		t.Cursor = cursor
		t.Reveal()
	}
	if s.Mode == bulletMode && t.Rows > 0 {
		s.Bullet = s.rows[t.Cursor].key()
	}
	return t
}

func (s *browser) list() {
	s.rows, s.byID = nil, map[string]*playbook.BulletHistory{}
	at, count := s.chosen(), 0
	if at != nil {
		for i := range at.Bullets {
			s.byID[at.Bullets[i].Bullet.ID] = &at.Bullets[i]
		}
	}
	switch {
	case s.Mode == versionMode && s.hasBranch():
		count = s.newest() + 1
	case s.Mode == bulletMode && at != nil:
		s.rows = bulletRows(at, s.Order)
	case s.Mode == diffMode && s.pair() != nil && s.pair().Diff != nil:
		s.rows = diffRows(s.pair().Diff)
	case s.Mode == HealthMode && s.health() != nil:
		for i := range s.health().Findings {
			s.rows = append(s.rows, findingRow{s, &s.health().Findings[i]})
		}
	}
	s.tables[s.Mode].SetRows(count + len(s.rows))
}

func (s *browser) row(i int) row {
	if s.Mode == versionMode {
		return versionRow{s, s.newest() - i}
	}
	return s.rows[i]
}

// current returns the selected row, or nil.
func (s *browser) current() row {
	if t := s.sync(); t.Cursor < t.Rows {
		return s.row(t.Cursor)
	}
	return nil
}

func (s *browser) hasBranch() bool { return s.data != nil && s.data.Branch.Name != "" }

// chosen returns the selected version, or nil until it is read.
func (s *browser) chosen() *playbooks.VersionDetail {
	if s.data == nil {
		return nil
	}
	return s.data.Version
}

// newest returns the number of the branch's newest version.
func (s *browser) newest() int {
	if s.data == nil {
		return 0
	}
	return s.data.Branch.Versions
}

// seqNow returns the number of the selected version.
func (s *browser) seqNow() int {
	if s.seq < 0 || s.seq > s.newest() {
		return s.newest()
	}
	return s.seq
}

// windowStep is the granularity of the window of versions that is read.
const windowStep = 200

// want requests the data that the screen shows, if it changed.
func (s *browser) want() {
	if !s.shown {
		return
	}
	w := playbooks.Ask{Branch: s.branch, Seq: s.seq, Around: -1, Bullets: s.Mode == bulletMode ||
		s.Mode == HealthMode, Health: s.Mode == HealthMode, Compare: s.Mode == diffMode, Run: s.run()}
	if s.seq >= 0 {
		w.Around = s.seq / windowStep * windowStep
	}
	if w.Compare {
		w.A, w.B = s.pairA, s.pairB
	}
	if w != s.Sent {
		s.Sent = w
		s.feed.Refine(w)
	}
}

// run returns the run whose steps are read: the run on the selected line of the detail, or else the run
// that wrote the selected row.
func (s *browser) run() playbooks.RunKey {
	if l := s.target(); l != nil {
		return playbooks.RunKey{WorkflowID: l.WorkflowID, RunID: l.RunID}
	}
	return playbooks.RunKey{}
}

// target returns the merge on the selected line of the detail, or else the merge that wrote the selected row;
// nil if it is unknown.
func (s *browser) target() *playbook.Source {
	if s.RowBy != nil {
		return s.RowBy
	}
	if r := s.current(); r != nil {
		return r.source()
	}
	return nil
}

// choose goes to the newest version of a branch.
func (s *browser) choose(branch string) {
	s.branch, s.seq, s.Bullet, s.RowBy = branch, -1, "", nil
	for _, t := range s.tables {
		t.Cursor, t.Top = 0, 0
	}
	if s.Mode == diffMode {
		s.Mode = versionMode
	}
	s.want()
}

// neighbor returns the previous or next branch by name.
func (s *browser) neighbor(by int) string {
	if s.data == nil || len(s.data.Branches) == 0 {
		return ""
	}
	list := s.data.Branches
	at := slices.IndexFunc(list, func(b playbook.Branch) bool { return b.Name == s.data.Branch.Name })
	return list[(max(at, 0)+by+len(list))%len(list)].Name
}

// branchLike returns the branch whose name equals, begins with or contains the typed text, or "".
func (s *browser) branchLike(typed string) string {
	if s.data == nil {
		return ""
	}
	typed = strings.ToLower(strings.TrimSpace(typed))
	for _, match := range []func(string) bool{
		func(name string) bool { return name == typed },
		func(name string) bool { return strings.HasPrefix(name, typed) },
		func(name string) bool { return strings.Contains(name, typed) },
	} {
		for _, b := range s.data.Branches {
			if match(strings.ToLower(b.Name)) {
				return b.Name
			}
		}
	}
	return ""
}

// compare chooses the versions to compare. It reports false if there is only one version.
func (s *browser) compare() bool {
	if !s.hasBranch() {
		return false
	}
	now := playbooks.VersionRef{Branch: s.data.Branch.Name, Seq: s.seqNow()}
	a, b := now, now
	switch {
	case len(s.marks) == 2:
		a, b = s.marks[0], s.marks[1]
	case len(s.marks) == 1 && s.marks[0] != now:
		a = s.marks[0]
	case now.Seq > 0:
		a.Seq--
	default:
		return false
	}
	if a.Branch == b.Branch && a.Seq > b.Seq {
		a, b = b, a
	}
	if a != s.pairA || b != s.pairB {
		s.pairA, s.pairB, s.tables[diffMode].Cursor = a, b, 0
	}
	return true
}

// mark marks or unmarks the selected version. A third mark replaces the first.
func (s *browser) mark() {
	if !s.hasBranch() {
		return
	}
	now := playbooks.VersionRef{Branch: s.data.Branch.Name, Seq: s.seqNow()}
	kept := slices.DeleteFunc(slices.Clone(s.marks), func(m playbooks.VersionRef) bool { return m == now })
	if len(kept) == len(s.marks) {
		kept = append(kept, now)
	}
	s.marks = kept[max(0, len(kept)-2):]
}

// openRun opens the run of a merge on another screen.
func (s *browser) openRun(shell tui.Shell, l *playbook.Source, screen string) {
	if l == nil || l.WorkflowID == "" {
		shell.Note("the run that wrote this is unknown")
		return
	}
	s.nav.Show(runs.Run{WorkflowID: l.WorkflowID, RunID: l.RunID, TaskID: l.TaskID})
	if screen == "timeline" {
		s.nav.Event = s.eventOf(l)
	}
	shell.Open(screen)
}

// eventOf returns the history event of a merge, or 0 until it is known.
func (s *browser) eventOf(l *playbook.Source) int64 {
	if s.data == nil {
		return 0
	}
	return s.data.Steps[playbooks.RunKey{WorkflowID: l.WorkflowID, RunID: l.RunID}].Persist
}
