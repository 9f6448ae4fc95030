package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/server/api/historyservice/v1"
	"go.temporal.io/server/common/clock"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/service/history/queues"
	"go.temporal.io/server/service/history/tasks"
	"go.temporal.io/server/service/matching"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	// stepSize is the smallest difference between the wall clock and the monotonic clock that counts as
	// a step of the wall clock.
	stepSize = time.Second
	// pauseSize is the smallest gap between two readings that counts as a pause of the process. The host
	// reads its clock every [guardInterval].
	pauseSize = 3 * time.Second
	// heartbeatGrace is how long timeouts of activities wait after a step or a pause. Workers send their
	// heartbeats at least once a second.
	heartbeatGrace = 5 * time.Second
)

// ClockStep is the last step of the machine's clock that the host noticed.
type ClockStep struct {
	At   time.Time `json:"at,omitzero"`
	Step float64   `json:"step_seconds,omitempty"` // below 0 if the clock was set back
	// Ahead is by how much the server's clock was ahead after the step; 0 when the machine's clock has caught
	// up.
	Ahead float64 `json:"ahead_seconds,omitempty"`
}

// shownFor is the time for which a forward step causes a warning.
const shownFor = time.Hour

// Warning describes the effect of a step of the clock on runs. It returns "" if the step has no effect any
// more.
func (s ClockStep) Warning() string {
	step := time.Duration(s.Step * float64(time.Second)).Round(time.Second)
	switch {
	case s.Ahead > 0:
		return fmt.Sprintf("the clock of this machine was set back: the server's clock, which never goes "+
			"back, was %s ahead at %s "+
			"and runs slower until the clock has caught up; new runs show its time",
			time.Duration(s.Ahead*float64(time.Second)).Round(time.Second),
			s.At.Local().Format(time.TimeOnly))
	case step > 0 && time.Since(s.At) < shownFor:
		return fmt.Sprintf("the clock of this machine jumped forward by %s at %s: timers and time limits "+
			"of open runs may have ended early",
			step, s.At.Local().Format(time.TimeOnly))
	}
	return ""
}

// hostClock is the time source of the server's history service, which owns all timers. It follows the
// wall clock forward at once and never goes back: while the wall clock is behind, it runs on the
// monotonic clock, a tenth slower. Otherwise a backward step would stop all timers for its size, because
// the timer queue reads each moment once. After a step, and after a pause of the process such as SIGSTOP,
// timeouts of activities wait until the workers had time for a heartbeat.
type hostClock struct {
	clock.RealTimeSource
	wall   func() time.Time
	done   chan struct{} // closed by stop
	queues sync.Map      // functions that unload the loaded task queues

	mu      sync.Mutex
	read    time.Time // last reading, with the monotonic clock
	readAt  time.Time // the wall clock at the last reading
	latest  time.Time // latest wall clock read since reloadQueues
	last    time.Time // last time returned
	noticed ClockStep
	hold    time.Time // until when timeouts wait, with the monotonic clock
}

// newHostClock returns a clock that starts at the wall clock, or at the last host's time if that is later.
func newHostClock(wall func() time.Time, lastHost time.Time) *hostClock {
	now := wall().Round(0).UTC()
	c := &hostClock{wall: wall, done: make(chan struct{}), read: time.Now(), readAt: now, last: now}
	if ahead := lastHost.Sub(now); ahead >= stepSize {
		c.last = lastHost.UTC()
		c.noticed = ClockStep{At: now.Truncate(time.Second), Step: -ahead.Seconds(), Ahead: ahead.Seconds()}
	}
	return c
}

// Now implements [clock.TimeSource].
func (c *hostClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.advance(now.Sub(c.read), c.wall().Round(0).UTC())
	c.read = now
	return c.last
}

// Since implements [clock.TimeSource].
func (c *hostClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// advance sets the time after elapsed on the monotonic clock.
func (c *hostClock) advance(elapsed time.Duration, wall time.Time) {
	step := wall.Sub(c.readAt) - elapsed
	c.readAt = wall
	if wall.After(c.latest) {
		c.latest = wall
	}
	if slow := c.last.Add(elapsed - elapsed/10); wall.Before(slow) {
		c.last = slow
	} else {
		c.last = wall
	}
	ahead := c.last.Sub(wall)
	if step >= stepSize || step <= -stepSize {
		c.noticed = ClockStep{At: wall.Truncate(time.Second), Step: step.Seconds(), Ahead: ahead.Seconds()}
	}
	if ahead < stepSize {
		c.noticed.Ahead = 0
	}
	if step >= stepSize || elapsed >= pauseSize {
		c.hold = time.Now().Add(heartbeatGrace)
	}
}

// step returns the last step.
func (c *hostClock) step() ClockStep {
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.noticed
}

// watchQueues makes the clock aware of the task queues that the matching service loads. It keeps their
// subscriptions to a setting whose change unloads a task queue.
func (c *hostClock) watchQueues(cfg *matching.Config) *matching.Config {
	subscribe := cfg.NewMatcherSub
	cfg.NewMatcherSub = func(ns, queue string, kind enums.TaskQueueType, unload func(useNewMatcher)) (
		useNewMatcher, func(),
	) {
		value, cancel := subscribe(ns, queue, kind, unload)
		if unload == nil { // a reader of the value
			return value, cancel
		}
		key := new(byte)
		c.queues.Store(key, unload)
		return value, func() {
			c.queues.Delete(key)
			cancel()
		}
	}
	return cfg
}

// useNewMatcher is a value of the setting that [hostClock.watchQueues] watches.
type useNewMatcher = dynamicconfig.GradualChange[bool]

// reloadQueues unloads all task queues if the wall clock was set back since the last call. The next poll or
// task loads them again. The matching service has no option for a time source: the limiter of a loaded queue
// would let no task pass until the wall clock has caught up.
func (c *hostClock) reloadQueues() {
	c.mu.Lock()
	back := c.latest.Sub(c.readAt) >= stepSize
	c.latest = c.readAt
	c.mu.Unlock()
	if !back {
		return
	}
	var unloading sync.WaitGroup
	c.queues.Range(func(_, unload any) bool {
		unloading.Go(func() { unload.(func(useNewMatcher))(dynamicconfig.StaticGradualChange(false)) })
		return true
	})
	unloading.Wait()
}

// rebase sets the expiration time of a run that starts, which the frontend takes from the wall clock, by the
// history service's clock. It implements [grpc.UnaryServerInterceptor].
func (c *hostClock) rebase(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (any, error) {
	var starts []*historyservice.StartWorkflowExecutionRequest
	switch r := req.(type) {
	case *historyservice.StartWorkflowExecutionRequest:
		starts = append(starts, r)
	case *historyservice.ExecuteMultiOperationRequest:
		for _, o := range r.GetOperations() {
			starts = append(starts, o.GetStartWorkflow())
		}
	}
	for _, s := range starts {
		if s.GetWorkflowExecutionExpirationTime() != nil {
			s.WorkflowExecutionExpirationTime = timestamppb.New(
				c.Now().Add(s.GetStartRequest().GetWorkflowExecutionTimeout().AsDuration()))
		}
	}
	return next(ctx, req)
}

// Wrap implements [queues.ExecutorWrapper].
func (c *hostClock) Wrap(next queues.Executor) queues.Executor { return heldTimeouts{next, c} }

// heldTimeouts executes tasks of the server's queues. It executes timeouts of activities only after their
// workers had time for a heartbeat. A timeout whose heartbeat has arrived by then does nothing.
type heldTimeouts struct {
	queues.Executor
	clock *hostClock
}

// Execute implements [queues.Executor].
func (h heldTimeouts) Execute(ctx context.Context, e queues.Executable) queues.ExecuteResponse {
	if _, ok := e.GetTask().(*tasks.ActivityTimeoutTask); ok {
		h.clock.awaitHeartbeats(ctx)
	}
	return h.Executor.Execute(ctx, e)
}

func (c *hostClock) awaitHeartbeats(ctx context.Context) {
	c.Now()
	c.mu.Lock()
	wait := time.Until(c.hold)
	c.mu.Unlock()
	if wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.done:
	case <-ctx.Done():
	}
}
