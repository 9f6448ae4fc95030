package run

import (
	"strconv"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/tui"
	"acescope/tui/widget"
	"acescope/views/console"
)

// reading is what the two panes of the run screen share: the run, the row under the
// cursor, and what was opened.
type reading struct {
	*console.Console
	feeds     Feeds
	detail    *histories.Detail // of the selected run, or nil
	artifacts *histories.Artifacts
	asked     map[string]bool   // artifacts that are on their way
	merged    *histories.Detail // unmerged together with its lineage
	unmerged  *histories.Detail
	at        Item
	find      string // what was searched for last, in lower case
	payloads  widget.Payloads
}

// Feeds are what the run screen shows.
type Feeds struct {
	Detail    console.Value[*histories.Detail]
	Lineage   console.Feed[*histories.LineageTree]
	Artifacts Artifacts
}

// Artifacts reads the artifacts that the user opens.
type Artifacts interface {
	console.Feed[*histories.Artifacts]
	Open(ace.Ref)
}

func NewReading(c *console.Console, feeds Feeds) *reading {
	return &reading{Console: c, feeds: feeds, asked: map[string]bool{}}
}

// take takes the newest data.
func (r *reading) take() {
	d := r.feeds.Detail.Value()
	if d != nil && !r.Selected.Is(d.WorkflowID, d.RunID) {
		d = nil
	}
	if d != nil {
		d = r.withForks(d, r.feeds.Lineage.Value())
	}
	r.detail, r.artifacts = d, r.feeds.Artifacts.Value()
	if r.artifacts != nil {
		for _, a := range r.artifacts.List {
			delete(r.asked, a.Ref.SHA256)
		}
	}
}

// withForks is the detail together with the lineage, where that is the run's and has
// forks; the same one as before as long as both are the same.
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

// current is the detail if it still belongs to the selected run.
func (r *reading) current() *histories.Detail {
	if d := r.detail; d != nil && r.Selected.Is(d.WorkflowID, d.RunID) {
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
	r.Event = event
	s.Open("timeline")
	return nil
}

// open reads the artifact of the row, or goes to the run that it leads to.
func (r *reading) open(s tui.Shell) tea.Cmd {
	d := r.current()
	if d == nil {
		return nil
	}
	if run, ok := GoesTo(d, r.at); ok && isSession(run) {
		return r.OpenSession(s, run.WorkflowID)
	} else if ok {
		r.GoFrom(run)
		s.Note("now " + console.NameOf(run) + "; backspace leads back")
		return nil
	}
	for _, ref := range refsOf(d, r.at) {
		if have := r.artifacts.Find(ref.SHA256); have == nil || have.Err != "" {
			r.asked[ref.SHA256] = true
			r.feeds.Artifacts.Open(ref)
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
	switch r.at.Kind {
	case ItemPhase:
		return "phase=" + string(d.Phase.Steps[r.at.N].Phase)
	case ItemFailure, itemCause, ItemLineage:
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
		{Action: view + ".back", Keys: []string{"backspace"}, Help: "back to the run that another was opened from", Do: r.Back},
		{Action: view + ".event", Keys: []string{"J"}, Help: "go to the row's event on the timeline; esc leads back", Short: "event", Do: r.jumpToEvent},
	}
}
