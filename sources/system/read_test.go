package system

import (
	"testing"
	"time"

	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A server lists workers that have ended for minutes. They are not counted.
func TestEndedPollers(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	poller := func(name string, ago time.Duration) *taskqueuepb.PollerInfo {
		return &taskqueuepb.PollerInfo{Identity: name, LastAccessTime: timestamppb.New(now.Add(-ago))}
	}
	// the clock of this machine
	for _, ahead := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} {
		alive, gone := LivePollers([]*taskqueuepb.PollerInfo{
			poller("older", 4*time.Minute), poller("waits", 61*time.Second), poller("ended", 2*time.Minute),
			poller("busy", time.Second),
		}, now.Add(ahead))
		if len(alive) != 2 || alive[0].Identity != "busy" || alive[1].Identity != "waits" ||
			!gone.Equal(now.Add(-2*time.Minute)) {
			t.Errorf("%s ahead: %+v, %s", ahead, alive, gone)
		}
	}
}
