// Package playbook shows playbooks: bullets, versions, differences and health findings.
package playbook

import (
	"strings"
	"time"

	playbookspkg "acescope/sources/playbooks"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/views/console"
)

// bookMode is what the playbook screen lists.
type bookMode int

const (
	bulletMode bookMode = iota
	versionMode
	diffMode
	HealthMode
)

// bookModes are the modes with their keys, in the order of the screen.
var bookModes = []struct {
	mode      bookMode
	key, name string
	help      string
}{
	{bulletMode, "b", "Bullets", "the bullets of the chosen version, and who wrote them"},
	{versionMode, "v", "Versions", "the versions of the branch, and what each changed"},
	{diffMode, "d", "Diff", "compare the two marked versions; one with the chosen; the chosen with the one before"},
	{HealthMode, "h", "Health", "what is wrong with the chosen version"},
}

// playbooks is what the two panes of the playbook screen share: the mode, what is chosen in
// each, and the newest state of the playbooks.
type browser struct {
	nav      *console.Navigation
	controls console.Controls
	location *time.Location
	feed     Feed
	books    *playbookspkg.Books
	remote   bool
	shown    bool
	Sent     playbookspkg.BookWish

	Mode   bookMode
	branch string // chosen by name, "" for the one that changed last
	seq    int    // the chosen version, -1 follows the newest
	Bullet string // the chosen bullet
	pairA  playbookspkg.BookMark
	pairB  playbookspkg.BookMark
	marks  []playbookspkg.BookMark
	Order  bulletOrder
	query  string // what is searched for, in lower case

	rows  shelfRows
	at    [4]int                   // the chosen row by mode, but for bullets and versions where it is found by name
	RowBy *playbookspkg.BookSource // the merge that the detail's line names, nil where its cursor was not moved
}

// chosen is the version that is shown, nil while it is being read.
func (s *browser) chosen() *playbookspkg.BookAt {
	if s.books == nil {
		return nil
	}
	return s.books.Version
}

// newest is the number of the branch's newest version.
func (s *browser) newest() int {
	if s.books == nil {
		return 0
	}
	return s.books.Branch.Versions
}

// seqNow is the number of the chosen version.
func (s *browser) seqNow() int {
	if s.seq < 0 || s.seq > s.newest() {
		return s.newest()
	}
	return s.seq
}

// windowStep keeps the listed versions the same while the cursor moves within them.
const windowStep = 200

// want asks for what the screen shows now, where that has changed.
func (s *browser) want() {
	if !s.shown {
		return
	}
	w := playbookspkg.BookWish{Branch: s.branch, Seq: s.seq, Around: -1, Bullets: s.Mode == bulletMode || s.Mode == HealthMode,
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

// run is the run whose steps are wanted: that of the detail's row, else the one that wrote
// what is chosen in the list.
func (s *browser) run() playbookspkg.RunKey {
	if l := s.target(); l != nil {
		return playbookspkg.RunKey{WorkflowID: l.WorkflowID, RunID: l.RunID}
	}
	return playbookspkg.RunKey{}
}

// link is the merge that made what is chosen in the list, nil where none is known.
func (s *browser) link() *playbookspkg.BookSource {
	at := s.chosen()
	switch s.Mode {
	case bulletMode:
		if l := s.life(s.Bullet); l != nil {
			return l.Added
		}
	case versionMode:
		if at != nil && at.Seq > 0 && at.Seq == s.seqNow() && at.Branch == s.books.Branch.Name {
			r := at.Record
			return &playbookspkg.BookSource{Branch: at.Branch, Seq: at.Seq, Version: at.Hash, At: r.At, TaskID: r.TaskID,
				WorkflowID: r.WorkflowID, RunID: r.RunID}
		}
	case HealthMode:
		if f := s.finding(); f != nil {
			if f.By != nil {
				return f.By
			}
			if len(f.BulletIDs) > 0 {
				if l := s.life(f.BulletIDs[0]); l != nil {
					return l.Added
				}
			}
		}
	}
	return nil
}

// life is a bullet of the chosen version.
func (s *browser) life(id string) *playbookspkg.BulletLife {
	at := s.chosen()
	if at == nil || id == "" {
		return nil
	}
	if i, ok := s.rows.byID[id]; ok && s.rows.of == at {
		return &at.Bullets[i]
	}
	return nil
}

func (s *browser) finding() *playbookspkg.BookFinding {
	if s.books == nil || s.books.Health == nil {
		return nil
	}
	if i := s.at[HealthMode]; i < len(s.books.Health.Findings) {
		return &s.books.Health.Findings[i]
	}
	return nil
}

// choose goes to a branch: its newest version, from the first bullet on.
func (s *browser) choose(branch string) {
	s.branch, s.seq, s.Bullet = branch, -1, ""
	s.at = [4]int{}
	s.RowBy = nil
	if s.Mode == diffMode {
		s.Mode = versionMode
	}
	s.want()
}

// neighbour is the branch before or after the shown one, by name.
func (s *browser) neighbour(by int) string {
	if s.books == nil || len(s.books.Branches) == 0 {
		return ""
	}
	list := s.books.Branches
	for i, b := range list {
		if b.Name == s.books.Branch.Name {
			return list[(i+by+len(list))%len(list)].Name
		}
	}
	return list[0].Name
}

// branchLike is the branch that is meant by what was typed: of that name, else the first
// that begins with it, else one that has it within; "" where there is none.
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

// compare chooses the pair that d compares; false where there is nothing to compare.
func (s *browser) compare() bool {
	if s.books == nil || s.books.Branch.Name == "" {
		return false
	}
	now := playbookspkg.BookMark{Branch: s.books.Branch.Name, Seq: s.seqNow()}
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

// mark marks the chosen version, or takes the mark away. The older of three goes.
func (s *browser) mark() {
	if s.books == nil || s.books.Branch.Name == "" {
		return
	}
	now := playbookspkg.BookMark{Branch: s.books.Branch.Name, Seq: s.seqNow()}
	var kept []playbookspkg.BookMark
	for _, m := range s.marks {
		if m != now {
			kept = append(kept, m)
		}
	}
	if len(kept) == len(s.marks) {
		kept = append(kept, now)
	}
	s.marks = kept[max(0, len(kept)-2):]
}

func (s *browser) marked(branch string, seq int) bool {
	for _, m := range s.marks {
		if m.Branch == branch && m.Seq == seq {
			return true
		}
	}
	return false
}

// openRun shows the run of a merge on another screen.
func (s *browser) openRun(shell tui.Shell, l *playbookspkg.BookSource, screen string) {
	if l == nil || l.WorkflowID == "" {
		shell.Note("no run is known that did this")
		return
	}
	s.nav.Show(runs.Run{WorkflowID: l.WorkflowID, RunID: l.RunID, TaskID: l.TaskID})
	if screen == "timeline" {
		s.nav.Event = s.eventOf(l)
	}
	shell.Open(screen)
}

// eventOf is the history event that told of a merge, 0 while it is not known.
func (s *browser) eventOf(l *playbookspkg.BookSource) int64 {
	if s.books == nil {
		return 0
	}
	return s.books.Steps[playbookspkg.RunKey{WorkflowID: l.WorkflowID, RunID: l.RunID}].Persist
}
