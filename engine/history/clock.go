package history

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// Orderly is how much older than the one before it an event may be though all clocks agree:
// a server keeps what happens during a workflow task back until that ends.
const Orderly = time.Second

// Clock notices clocks that go backwards within a history. The zero Clock has seen nothing.
type Clock struct{ last time.Time }

// Back is by how much the clock went back from the events before to this one, 0 where that
// is as it should be. An event that has no time says nothing.
func (c *Clock) Back(e *historypb.HistoryEvent) time.Duration {
	if e.GetEventTime() == nil {
		return 0
	}
	return c.Step(e.GetEventType(), e.GetEventTime().AsTime())
}

// Step is Back of an event of a type at a time. The start of an activity is recorded with
// its end, whenever it was: it says nothing of clocks.
func (c *Clock) Step(t enumspb.EventType, at time.Time) time.Duration {
	if t == enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED {
		return 0
	}
	by := c.last.Sub(at)
	if c.last.IsZero() || by <= Orderly {
		by = 0
	}
	c.last = at
	return by
}
