package stepper

import (
	"fmt"
	"slices"
	"time"

	"acescope/engine/kind"
)

// Frame is the state of a run at an event and what the event changed. It is immutable.
type Frame struct {
	Position  int       `json:"position"` // from 1
	EventID   int64     `json:"event_id"`
	EventType string    `json:"event_type"`
	At        time.Time `json:"at,omitzero"`
	ElapsedMS float64   `json:"elapsed_ms"` // since the first event, at least 0
	// ClockBackMS is the time by which the event is older than its predecessor, by the server's clocks.
	ClockBackMS float64  `json:"clock_back_ms,omitempty"`
	Error       bool     `json:"error"`
	Changes     []Change `json:"changes"`
	Notes       []string `json:"notes,omitempty"` // on what cannot be read

	kind.Answers
}

// Frame returns the frame at a position from 1 to Len.
func (s *Stepper) Frame(pos int) *Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, state := s.frame(pos)
	state.Answer(&f.Answers)
	return f
}

// Step returns the frame at a position without the state.
func (s *Stepper) Step(pos int) *Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, _ := s.frame(pos)
	return f
}

func (s *Stepper) frame(pos int) (*Frame, kind.Fold) {
	f := &Frame{
		Position: pos, EventID: s.EventID(pos), EventType: s.EventType(pos), At: timeOf(s.events[pos-1]),
		Changes: []Change{}, Notes: s.notes(pos),
	}
	_, f.Error = slices.BinarySearch(s.errors, pos)
	if !f.At.IsZero() {
		f.ClockBackMS = millis(s.clockBack[pos])
		if !s.About.Start.IsZero() {
			f.ElapsedMS = max(millis(f.At.Sub(s.About.Start)), 0)
		}
	}
	if _, changed := slices.BinarySearch(s.facts, pos); !changed {
		return f, s.seek(pos)
	}
	before := s.seek(pos - 1).Values()
	state := s.seek(pos)
	if changes := diffValues(before, state.Values()); changes != nil {
		f.Changes = changes
	}
	return f, state
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// notes returns notes on missing events before an event and on parts of it that cannot be read.
func (s *Stepper) notes(pos int) (list []string) {
	note := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	e := s.events[pos-1]
	if name, ok := s.types[pos-1]; ok {
		note("acescope does not know events of type %q: the event does not change the state", name)
	}
	if pos > 1 {
		switch id, before := e.GetEventId(), s.EventID(pos-1); {
		case id == before+2:
			note("event %d is missing before this event: the state may differ from the run's", before+1)
		case id > before+2:
			note("events %d to %d are missing before this event: the state may differ from the run's",
				before+1, id-1)
		case id <= before:
			note("this event follows event %d: the history is out of order or has duplicate events", before)
		}
	}
	for _, encoding := range encodedPayloads(e) {
		note("a payload is %s: the payload does not change the state", encoding)
	}
	if pos == 1 && s.About.Foreign != "" {
		note("%s", s.About.Foreign)
	}
	return list
}
