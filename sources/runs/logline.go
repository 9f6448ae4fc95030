package runs

import "time"

// LogLine is one thing that happened in a run. Text is untrusted and is made safe
// where it is drawn.
type LogLine struct {
	Event int64 // history event id
	At    time.Time
	Kind  string // phase, skill, delta, status, error
	Text  string
}

// Origin says where a detail's knowledge comes from.
type Origin string

const (
	FromQuery   Origin = "live query"
	FromHistory Origin = "folded from history"
)
