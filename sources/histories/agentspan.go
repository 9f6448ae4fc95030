package histories

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
)

// AgentCall is what a span is of an agent: a request to a model or a call of a tool.
type AgentCall struct {
	Operation trace.Operation
	Agent     string
	Model     string
	Tool      string
	Requests  int // to models, of an activity that makes any number of them
	N         int // number of the call in its run

	event  int64  // that reports a call without events of its own; 0 for others
	failed string // why it failed although its activity completed
	bad    bool
	told   bool // the model was told of the failure
}

// label returns the name of the span: "chat gpt-5 · triage", "tool get_weather". The text is untrusted.
func (c *AgentCall) label() string {
	switch c.Operation {
	case trace.Handoff:
		return "handoff to " + c.Tool
	case trace.Tool:
		return "tool " + c.Tool
	}
	name := strings.TrimSpace("chat " + c.Model)
	if c.Requests > 1 {
		name = ace.Number(c.Requests) + " × " + name
	}
	if c.Agent != "" {
		name += " · " + c.Agent
	}
	return name
}

// agentCalls are the calls of the agents of a run, by event. Those without events are by number.
type agentCalls struct {
	folder adapter.Folder
	events map[int64]*AgentCall
	inside map[int]*AgentCall
}

// foldEvery is the number of events after which calls are taken from the folder, which keeps the newest
// 1,000.
const foldEvery = 250

func (a *agentCalls) apply(events []*historypb.HistoryEvent) {
	for i, e := range events {
		if a.folder.Apply(e); (i+1)%foldEvery == 0 || i == len(events)-1 {
			a.take()
		}
	}
}

// take takes the calls that the folder knows.
func (a *agentCalls) take() {
	t := a.folder.Trace()
	if len(t.Calls) == 0 {
		return
	}
	if a.events == nil {
		a.events, a.inside = map[int64]*AgentCall{}, map[int]*AgentCall{}
	}
	first := t.Calls[0].N
	for _, c := range t.Calls {
		call := &AgentCall{Operation: c.Operation, Agent: c.Agent, Model: c.ModelName(), Tool: c.Name, N: c.N,
			Requests: 1, failed: c.Error, bad: c.Outcome == trace.Failed, told: c.Told}
		if c.Server != "" {
			call.Tool = c.Server + "." + c.Name
		}
		if c.Event != 0 {
			if known := a.events[c.Event]; known != nil && known.N < c.N {
				call.Requests += known.Requests // of a node
			}
			a.events[c.Event] = call
			delete(a.inside, c.N)
			continue
		}
		if by := c.By - first; by >= 0 && by < len(t.Calls) {
			call.event = cmp.Or(t.Calls[by].End, t.Calls[by].Event)
			a.inside[c.N] = call
		}
	}
}

// name names the span of an event by the call that it is, if it is one.
func (b *spanBuilder) name(s *Span, event int64) {
	c := b.log.agent.events[event]
	if c == nil {
		return
	}
	s.Activity, s.Agent = s.Name, c
	s.Name = c.label()
}

// settleAgents marks spans whose call failed although its activity completed, and adds the calls without
// events of their own, such as those in workflow code, as points.
func (b *spanBuilder) settleAgents() {
	for i := range b.spans {
		s := &b.spans[i]
		if s.Agent == nil || !s.Agent.bad || s.State.Open() {
			continue
		}
		if s.State == SpanDone {
			s.State, s.Error = SpanFailed, s.Agent.failed
		}
		if s.Agent.told {
			s.Note = "the model was told of the failure"
		}
	}
	for _, n := range slices.Sorted(maps.Keys(b.log.agent.inside)) {
		c := b.log.agent.inside[n]
		e := b.log.Event(c.event)
		if e == nil || c.Operation == trace.Chat {
			continue
		}
		s := Span{Kind: SpanCall, Point: true, Start: e.Nanos, Run: e.Nanos, End: e.Nanos, Event: e.ID,
			Name: c.label(), Agent: c, Note: "no event of its own"}
		if c.bad {
			s.State, s.Error = SpanFailed, c.failed
			s.Note += ", the model was told of the failure"
		}
		b.add(s)
	}
}

// retryFacts are what an event says about the attempts of an activity.
type retryFacts struct {
	first, maximum time.Duration // of the intervals between attempts
	factor         float64
	asked          time.Duration // that the failure before this attempt asked to wait
}

// retryOf returns what an event says about attempts, or nil.
func retryOf(e *historypb.HistoryEvent) *retryFacts {
	if p := e.GetActivityTaskScheduledEventAttributes().GetRetryPolicy(); p.GetInitialInterval() != nil {
		return &retryFacts{first: p.GetInitialInterval().AsDuration(), factor: p.GetBackoffCoefficient(),
			maximum: p.GetMaximumInterval().AsDuration()}
	}
	f := e.GetActivityTaskStartedEventAttributes().GetLastFailure()
	if d := f.GetApplicationFailureInfo().GetNextRetryDelay().AsDuration(); d > 0 {
		return &retryFacts{asked: d}
	}
	return nil
}

// interval returns how long the server waits after an attempt, from 1.
func (r *retryFacts) interval(attempt int32) time.Duration {
	if r == nil {
		return 0
	}
	d := float64(r.first)
	for range min(attempt-1, 64) {
		d *= max(r.factor, 1)
	}
	if limit := float64(r.maximum); limit > 0 {
		d = min(d, limit)
	}
	return time.Duration(min(d, float64(time.Hour*24*365)))
}

// intervals returns how long the server waits between the first attempts up to the last one.
func (r *retryFacts) intervals(last int32) (sum time.Duration) {
	for n := int32(1); n < last && n < 1000; n++ {
		sum += r.interval(n)
	}
	return sum
}

// Totals are the times of the calls of a run's agents. Calls that run at the same time count each.
type Totals struct {
	Models    Total `json:"model"`
	Tools     Total `json:"tool"`
	Retries   Total `json:"failed_attempts"`
	RetryWait Total `json:"retry_wait"`
	Queue     Total `json:"queue_wait"` // for a worker, of calls with one attempt
}

// Total is a number of periods and their sum.
type Total struct {
	Count int     `json:"count"`
	MS    float64 `json:"duration_ms"`
}

func (t *Total) add(n int, d time.Duration) {
	t.Count += n
	t.MS += float64(d) / float64(time.Millisecond)
}

// Time returns the sum.
func (t Total) Time() time.Duration { return time.Duration(t.MS * float64(time.Millisecond)) }

// TotalsOf returns the times of the calls of agents, or nil if the spans have none. Calls without events
// have no times.
func TotalsOf(spans []Span, now time.Time) *Totals {
	var t Totals
	calls := 0
	for i := range spans {
		s := &spans[i]
		if s.Parent >= 0 && s.Agent == nil && spans[s.Parent].Agent != nil {
			switch {
			case s.Kind == SpanWait:
				t.RetryWait.add(1, s.Ran(now))
			case s.State == SpanRetrying:
				t.RetryWait.add(1, s.Waited(now))
			case s.Kind == SpanAttempt && s.earlier:
				t.Retries.add(int(s.Attempt), s.Ran(now))
				t.RetryWait.add(int(s.Attempt)-1, time.Duration(s.Paused))
			}
		}
		if s.Agent == nil {
			continue
		}
		calls++
		switch {
		case s.Point:
		case s.Agent.Operation == trace.Chat:
			t.Models.add(s.Agent.Requests, s.Ran(now))
		default:
			t.Tools.add(1, s.Ran(now))
		}
		if !s.Point && s.Attempt < 2 {
			t.Queue.add(1, s.Waited(now))
		}
	}
	if calls == 0 {
		return nil
	}
	return &t
}

// Text returns the totals in one line; duration formats a time.
func (t *Totals) Text(duration func(time.Duration) string, dot string) string {
	parts := []string{"models " + duration(t.Models.Time()) + " in " + ace.Count(t.Models.Count, "request"),
		"tools " + duration(t.Tools.Time()) + " in " + ace.Count(t.Tools.Count, "call")}
	if t.Retries.Count+t.RetryWait.Count > 0 {
		parts = append(parts, ace.Count(t.Retries.Count, "failed attempt")+" "+duration(t.Retries.Time()),
			"waited "+duration(t.RetryWait.Time())+" to retry")
	}
	return strings.Join(append(parts, "queued "+duration(t.Queue.Time())), dot)
}
