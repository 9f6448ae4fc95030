package replay

import (
	"fmt"
	"time"

	"acescope/engine/ace"
	"acescope/engine/run"
	"acescope/engine/session"
)

// Frame is what is known of a run as of one event, and what that event changed. It is
// immutable.
type Frame struct {
	Position  int       `json:"position"` // from 1
	EventID   int64     `json:"event_id"`
	EventType string    `json:"event_type"`
	At        time.Time `json:"at,omitzero"`
	ElapsedMS float64   `json:"elapsed_ms"` // since the first event; never below 0
	// ClockBackMS is how much older the event is than the one before it, by the server's clocks.
	ClockBackMS float64  `json:"clock_back_ms,omitempty"`
	Error       bool     `json:"error"`
	Changes     []Change `json:"changes"`
	Notes       []string `json:"notes,omitempty"` // what of the event cannot be read

	Phase        *ace.PhaseAnswer        `json:"phase,omitempty"`
	Skills       *ace.SkillAnswer        `json:"skills,omitempty"`
	Delta        *ace.DeltaAnswer        `json:"delta,omitempty"`
	Experiment   *ace.ExperimentProgress `json:"experiment,omitempty"`
	Session      *session.State          `json:"session,omitempty"`
	Course       *run.State              `json:"run_state,omitempty"`
	Plan         string                  `json:"plan,omitempty"`
	TrajectoryID string                  `json:"trajectory_id,omitempty"`
	BulletIDs    []string                `json:"bullet_ids,omitempty"`
}

// Frame is the frame at a position from 1 to Len.
func (s *Stepper) Frame(pos int) *Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, m := s.step(pos)
	m.answer(f)
	return f
}

// Step is the frame at a position without the state: what the event changed.
func (s *Stepper) Step(pos int) *Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, _ := s.step(pos)
	return f
}

func (s *Stepper) step(pos int) (*Frame, *mark) {
	e := s.events[pos-1]
	f := &Frame{Position: pos, EventID: s.EventID(pos), EventType: s.EventType(pos), At: timeOf(e), Changes: []Change{}}
	f.Error = has(s.errors, pos)
	s.clock(f)
	f.Notes = s.notes(pos)
	if !has(s.facts, pos) {
		return f, s.seek(pos)
	}
	before := s.seek(pos - 1).values()
	m := s.seek(pos)
	if changes := changesOf(before, m.values()); changes != nil {
		f.Changes = changes
	}
	return f, m
}

func has(list []int, pos int) bool {
	at, ok := beside(list, pos-1, true)
	return ok && at == pos
}

// clock fills in the time since the begin, and by how much the clock was turned back.
func (s *Stepper) clock(f *Frame) {
	if f.At.IsZero() {
		return
	}
	if !s.About.Start.IsZero() {
		f.ElapsedMS = max(millis(f.At.Sub(s.About.Start)), 0)
	}
	f.ClockBackMS = millis(s.backs[f.Position])
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// notes says what of an event cannot be read.
func (s *Stepper) notes(pos int) (list []string) {
	e := s.events[pos-1]
	if name, ok := s.types[pos-1]; ok {
		list = append(list, fmt.Sprintf("an event of type %q, which this program cannot read whole: what it says is not in the fold", name))
	}
	if pos > 1 {
		switch id, before := e.GetEventId(), s.EventID(pos-1); {
		case id == before+2:
			list = append(list, fmt.Sprintf("event %d is missing before it: the state may be another than the run had", before+1))
		case id > before+2:
			list = append(list, fmt.Sprintf("events %d to %d are missing before it: the state may be another than the run had", before+1, id-1))
		case id <= before:
			list = append(list, fmt.Sprintf("it stands behind event %d: the history is out of order, or has events twice", before))
		}
	}
	for _, encoding := range sealedIn(e) {
		list = append(list, fmt.Sprintf("a payload is %s: what it says is not in the fold", encoding))
	}
	if pos == 1 && s.About.Foreign != "" {
		list = append(list, s.About.Foreign)
	}
	return list
}

// answer fills in what a live run would answer.
func (m *mark) answer(f *Frame) {
	if m.session != nil {
		f.Session = m.clone().session
		return
	}
	if m.run != nil {
		f.Course = m.clone().run
		return
	}
	if m.experiment != nil {
		p := m.experiment.Progress
		p.ExitStatus = m.experiment.ExitStatus()
		f.Experiment = &p
		return
	}
	s := m.task
	phase, skills, delta := s.CurrentPhase(), s.SkillUsage(), s.PlaybookDelta()
	phase.ExitStatus = s.ExitStatus()
	f.Phase, f.Skills, f.Delta = &phase, &skills, &delta
	f.Plan, f.TrajectoryID, f.BulletIDs = s.Plan, s.TrajectoryID, s.BulletIDs
}
