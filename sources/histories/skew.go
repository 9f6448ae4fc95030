package histories

import (
	"fmt"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// Skew describes clocks that disagree, and so explains durations that are shown as 0 because they would be
// negative. The zero Skew is without disagreement.
type Skew struct {
	Back   int     `json:"events,omitempty"`   // number of events that are older than the previous event
	Event  int64   `json:"event_id,omitempty"` // first of them
	MostMS float64 `json:"most_ms,omitempty"`  // largest difference
	// how far an event was ahead of this machine's clock when it was read
	AheadMS float64 `json:"ahead_ms,omitempty"`
}

// ahead is the tolerated difference between this machine's clock and the server's.
const ahead = 2 * time.Second

// skewFolder compares the clocks of events.
type skewFolder struct {
	Skew
	clock history.Clock
}

func (f *skewFolder) apply(e *historypb.HistoryEvent, now time.Time) {
	if e.GetEventTime() == nil {
		return
	}
	at := e.GetEventTime().AsTime()
	if by := f.clock.Step(e); by > 0 {
		if f.Back++; f.Back == 1 {
			f.Event = e.GetEventId()
		}
		f.MostMS = max(f.MostMS, cluster.Millis(by))
	}
	if by := at.Sub(now); by > ahead {
		f.AheadMS = max(f.AheadMS, cluster.Millis(by))
	}
}

// String returns a sentence, or "" if the clocks agree.
func (s Skew) String() string {
	text := ""
	if s.Back > 0 {
		text = fmt.Sprintf("went back %s, first at event %d, by at most %.3f s",
			ace.Count(s.Back, "time"), s.Event, s.MostMS/1000)
	}
	if s.AheadMS > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%.3f s ahead of this machine's clock", s.AheadMS/1000)
	}
	if text == "" {
		return ""
	}
	return text + "; negative durations are shown as 0"
}

// countClockBack returns the number of events of a log that are older than the previous event.
func countClockBack(l *EventLog) int {
	n := 0
	var clock history.Clock
	for i := range l.Len() {
		if e := l.Row(i); clock.StepAt(e.Type, e.At()) > 0 {
			n++
		}
	}
	return n
}
