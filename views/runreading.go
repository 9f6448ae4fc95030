package views

import (
	"strconv"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/tui"
)

// ArtifactControls reads what is too large for a history.
type ArtifactControls interface {
	// OpenArtifact reads an artifact into the snapshot.
	OpenArtifact(ref ace.Ref)
}

// reading is what the two panes of the run screen share: the run, the row under the
// cursor, and what was opened.
type reading struct {
	*console
	detail    *sources.Detail // of the selected run, or nil
	artifacts *sources.Artifacts
	asked     map[string]bool // artifacts that are on their way
	merged    *sources.Detail // unmerged together with its lineage
	unmerged  *sources.Detail
	at        item
	find      string // what was searched for last, in lower case
	payloads  payloads
}

func newReading(c *console) *reading { return &reading{console: c, asked: map[string]bool{}} }

// take takes the newest data.
func (r *reading) take(s *sources.Snapshot) {
	d := s.Detail
	if d != nil && !r.selected.is(d.WorkflowID, d.RunID) {
		d = nil
	}
	if d != nil {
		d = r.withForks(d, s.Lineage)
	}
	r.detail, r.artifacts = d, s.Artifacts
	if s.Artifacts != nil {
		for _, a := range s.Artifacts.List {
			delete(r.asked, a.Ref.SHA256)
		}
	}
}

// withForks is the detail together with the lineage, where that is the run's and has
// forks; the same one as before as long as both are the same.
func (r *reading) withForks(d *sources.Detail, t *sources.LineageTree) *sources.Detail {
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

// current is the detail if it still belongs to the selected run.
func (r *reading) current() *sources.Detail {
	if d := r.detail; d != nil && r.selected.is(d.WorkflowID, d.RunID) {
		return d
	}
	return nil
}

// jumpToEvent opens the timeline at the event of the row under the cursor.
func (r *reading) jumpToEvent(s tui.Shell) tea.Cmd {
	d := r.current()
	if d == nil {
		return nil
	}
	event := eventOf(d, r.at)
	if event == 0 {
		s.Note("this row has no event of its own")
		return nil
	}
	r.jump = event
	s.Open("timeline")
	return nil
}

// open reads the artifact of the row, or goes to the run that it leads to.
func (r *reading) open(s tui.Shell) tea.Cmd {
	d := r.current()
	if d == nil {
		return nil
	}
	if run, ok := goesTo(d, r.at); ok && isSession(run) {
		return r.goSession(s, run.WorkflowID)
	} else if ok {
		r.goFrom(run)
		s.Note("now " + nameOf(run) + "; backspace leads back")
		return nil
	}
	for _, ref := range refsOf(d, r.at) {
		if have := r.artifacts.Find(ref.SHA256); have == nil || have.Err != "" {
			r.asked[ref.SHA256] = true
			r.Controls.OpenArtifact(ref)
			s.Note("reading " + refText(ref))
			return nil
		}
	}
	s.Note("there is nothing more to open here")
	return nil
}

// forkPoint is the phase of the row under the cursor, else the event that it comes from.
func (r *reading) forkPoint() string {
	d := r.current()
	if d == nil {
		return ""
	}
	switch r.at.kind {
	case itemPhase:
		return "phase=" + string(d.Phase.Steps[r.at.n].Phase)
	case itemFailure, itemCause, itemLineage:
		return ""
	}
	if event := eventOf(d, r.at); event > 1 {
		return "at=" + strconv.FormatInt(event, 10)
	}
	return ""
}

// shared are the keys that both panes have.
func (r *reading) shared(view string) []tui.Binding {
	return []tui.Binding{
		{Action: view + ".open", Keys: []string{"o"}, Help: "open the artifact or the run that the row names", Short: "open", Do: r.open},
		{Action: view + ".back", Keys: []string{"backspace"}, Help: "back to the run that another was opened from", Do: r.back},
		{Action: view + ".event", Keys: []string{"J"}, Help: "go to the row's event on the timeline; esc leads back", Short: "event", Do: r.jumpToEvent},
	}
}
