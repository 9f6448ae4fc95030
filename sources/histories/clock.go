package histories

import (
	"fmt"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
)

// Skew is what was noticed of clocks that do not agree. Durations that come out below 0 are
// shown as 0 everywhere; this says why. The zero Skew noticed nothing.
type Skew struct {
	Back    int     `json:"events,omitempty"`   // events that are older than the one before them
	Event   int64   `json:"event_id,omitempty"` // the first of them
	MostMS  float64 `json:"most_ms,omitempty"`  // by how much at the most
	AheadMS float64 `json:"ahead_ms,omitempty"` // how far an event lay in the future of this machine, when it was read
}

// ahead is how far an event may lie in the future: clocks of machines differ a little.
const ahead = 2 * time.Second

// skewFolder notices what clocks say.
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
		f.MostMS = max(f.MostMS, float64(by.Microseconds())/1000)
	}
	if by := at.Sub(now); by > ahead {
		f.AheadMS = max(f.AheadMS, float64(by.Microseconds())/1000)
	}
}

// String says it in a sentence, "" where nothing was noticed.
func (s Skew) String() string {
	text := ""
	if s.Back > 0 {
		text = fmt.Sprintf("went back %d times, first at event %d, by %.3f s at the most", s.Back, s.Event, s.MostMS/1000)
	}
	if s.AheadMS > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%.3f s ahead of this machine's", s.AheadMS/1000)
	}
	if text == "" {
		return ""
	}
	return text + ": durations that would be below 0 are shown as 0"
}

// ClockBack is how many events of a log are older than the one before them.
func ClockBack(l *EventLog) int {
	n := 0
	var clock history.Clock
	for i := range l.Len() {
		if e := l.Row(i); clock.StepAt(e.Type, e.At()) > 0 {
			n++
		}
	}
	return n
}
