// Package playbook shows playbooks: bullets, versions, differences and health findings.
package playbook

import (
	"slices"
	"strings"
	"time"

	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/tui"
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
	{diffMode, "d", "Diff", "compare two versions: both marked, or the marked and the selected one, or the selected one and its predecessor"},
	{HealthMode, "h", "Health", "health findings of the selected version"},
}

// browser is the state of both panes: the mode, the selection in each mode, and the newest playbooks.
type browser struct {
	nav      *console.Navigation
	controls console.Controls
	location *time.Location
	feed     Feed
	books    *playbooks.Playbooks
	remote   bool
	shown    bool
	Sent     playbooks.Ask

	Mode   mode
	branch string // name of the chosen branch, "" for the one changed last
	seq    int    // selected version, -1 follows the newest
	Bullet string // ID of the selected bullet
	pairA  playbooks.VersionRef
	pairB  playbooks.VersionRef
	marks  []playbooks.VersionRef
	Order  bulletOrder
	query  string // search text, in lower case

	rows  rowCache
	at    [4]int           // selected row by mode; bullets and versions are found by ID
	RowBy *playbook.Source // merge on the detail's line, nil until its cursor moves
}

// chosen returns the selected version, or nil until it is read.
func (s *browser) chosen() *playbooks.VersionDetail {
	if s.books == nil {
		return nil
	}
	return s.books.Version
}

// newest returns the number of the branch's newest version.
func (s *browser) newest() int {
	if s.books == nil {
		return 0
	}
	return s.books.Branch.Versions
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
	w := playbooks.Ask{Branch: s.branch, Seq: s.seq, Around: -1, Bullets: s.Mode == bulletMode || s.Mode == HealthMode,
		Health: s.Mode == HealthMode, Compare: s.Mode == diffMode, Run: s.run()}
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

// run returns the run whose steps are read: that of the detail's line, or the one that wrote the selected row.
func (s *browser) run() playbooks.RunKey {
	if l := s.target(); l != nil {
		return playbooks.RunKey{WorkflowID: l.WorkflowID, RunID: l.RunID}
	}
	return playbooks.RunKey{}
}

// selectedSource returns the merge that wrote the selected row, or nil if it is unknown.
func (s *browser) selectedSource() *playbook.Source {
	at := s.chosen()
	switch s.Mode {
	case bulletMode:
		if l := s.bulletLife(s.Bullet); l != nil {
			return l.Added
		}
	case versionMode:
		if at != nil && at.Seq > 0 && at.Seq == s.seqNow() && at.Branch == s.books.Branch.Name {
			r := at.Record
			return &playbook.Source{Branch: at.Branch, Seq: at.Seq, Hash: at.Hash, At: r.At, TaskID: r.TaskID,
				WorkflowID: r.WorkflowID, RunID: r.RunID}
		}
	case HealthMode:
		if f := s.finding(); f != nil {
			if f.By != nil {
				return f.By
			}
			if len(f.BulletIDs) > 0 {
				if l := s.bulletLife(f.BulletIDs[0]); l != nil {
					return l.Added
				}
			}
		}
	}
	return nil
}

// bulletLife returns a bullet of the selected version, or nil.
func (s *browser) bulletLife(id string) *playbook.BulletHistory {
	at := s.chosen()
	if at == nil || id == "" {
		return nil
	}
	if i, ok := s.rows.byID[id]; ok && s.rows.of == at {
		return &at.Bullets[i]
	}
	return nil
}

func (s *browser) finding() *playbook.Finding {
	if s.books == nil || s.books.Health == nil {
		return nil
	}
	if i := s.at[HealthMode]; i < len(s.books.Health.Findings) {
		return &s.books.Health.Findings[i]
	}
	return nil
}

// choose goes to the newest version of a branch.
func (s *browser) choose(branch string) {
	s.branch, s.seq, s.Bullet = branch, -1, ""
	s.at = [4]int{}
	s.RowBy = nil
	if s.Mode == diffMode {
		s.Mode = versionMode
	}
	s.want()
}

// neighbor returns the previous or next branch by name.
func (s *browser) neighbor(by int) string {
	if s.books == nil || len(s.books.Branches) == 0 {
		return ""
	}
	list := s.books.Branches
	at := slices.IndexFunc(list, func(b playbook.Branch) bool { return b.Name == s.books.Branch.Name })
	return list[(max(at, 0)+by+len(list))%len(list)].Name
}

// branchLike returns the branch whose name equals, begins with or contains the typed text, or "".
func (s *browser) branchLike(typed string) string {
	if s.books == nil {
		return ""
	}
	typed = strings.ToLower(strings.TrimSpace(typed))
	for _, match := range []func(string) bool{
		func(name string) bool { return name == typed },
		func(name string) bool { return strings.HasPrefix(name, typed) },
		func(name string) bool { return strings.Contains(name, typed) },
	} {
		for _, b := range s.books.Branches {
			if match(strings.ToLower(b.Name)) {
				return b.Name
			}
		}
	}
	return ""
}

// compare chooses the versions to compare. It reports false if there is only one version.
func (s *browser) compare() bool {
	if s.books == nil || s.books.Branch.Name == "" {
		return false
	}
	now := playbooks.VersionRef{Branch: s.books.Branch.Name, Seq: s.seqNow()}
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
		s.pairA, s.pairB, s.at[diffMode] = a, b, 0
	}
	return true
}

// mark marks or unmarks the selected version. A third mark replaces the first.
func (s *browser) mark() {
	if s.books == nil || s.books.Branch.Name == "" {
		return
	}
	now := playbooks.VersionRef{Branch: s.books.Branch.Name, Seq: s.seqNow()}
	kept := slices.DeleteFunc(slices.Clone(s.marks), func(m playbooks.VersionRef) bool { return m == now })
	if len(kept) == len(s.marks) {
		kept = append(kept, now)
	}
	s.marks = kept[max(0, len(kept)-2):]
}

func (s *browser) marked(branch string, seq int) bool {
	return slices.Contains(s.marks, playbooks.VersionRef{Branch: branch, Seq: seq})
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
	if s.books == nil {
		return 0
	}
	return s.books.Steps[playbooks.RunKey{WorkflowID: l.WorkflowID, RunID: l.RunID}].Persist
}
