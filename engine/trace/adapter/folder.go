package adapter

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/price"
	"acescope/engine/temporal/history"
	"acescope/engine/trace"
)

// Folder collects the trace of a run from its events in order. It keeps the newest maxCalls calls; the sums
// are of all. It is not safe for concurrent use.
type Folder struct {
	calls   []*trace.Call // never changed in place
	dropped int
	known   map[uint64]bool   // hashes of the IDs of answers of nodes, also of calls that are not kept
	open    map[int64]working // by the event that scheduled it
	asked   []int             // numbers of calls of tools that no event is known to run
	last    int               // the newest request to a model
	parts   []trace.Part
	tools   int // calls of tools, without handoffs
	ok      int // of them
	failed  int
	ended   []int // numbers of the calls whose outcome the last event set

	framework, agent, model string // the first ones
}

// working is an activity, local activity or child workflow that has not ended.
type working struct {
	n       int // number of its call; 0 for a node
	adapter *Adapter
	source  source
	began   time.Time
}

// Bounds of the calls and of the requests for tools that are kept.
const (
	maxCalls = 1000
	maxAsked = 200
)

// Clone returns a copy that later events do not change.
func (f *Folder) Clone() Folder {
	c := *f
	c.calls, c.asked = slices.Clone(f.calls), slices.Clone(f.asked)
	c.open, c.parts, c.known = maps.Clone(f.open), slices.Clone(f.parts), maps.Clone(f.known)
	return c
}

// Trace returns what the events so far say of the run's agents.
func (f *Folder) Trace() trace.Trace {
	t := trace.Trace{Calls: slices.Clone(f.calls), Dropped: f.dropped, Summary: trace.Summary{
		Framework: f.framework, Agent: f.agent, Model: f.model, Tools: f.tools, OK: f.ok, Failed: f.failed,
		Parts: slices.Clone(f.parts)}}
	for _, p := range f.parts {
		t.Sum = t.Sum.Plus(p.Sum)
	}
	return t
}

// Ended returns the calls whose outcome the last event set or corrected, in order.
func (f *Folder) Ended() (calls []*trace.Call) {
	for _, n := range f.ended {
		if c := f.get(n); c != nil {
			calls = append(calls, c)
		}
	}
	return calls
}

// Apply applies the next event.
func (f *Folder) Apply(e *historypb.HistoryEvent) {
	f.ended = nil
	switch a := history.Attributes(e).(type) {
	case *historypb.ActivityTaskScheduledEventAttributes:
		f.begin(e, trace.InActivity, source{activity: a.GetActivityType().GetName(),
			inputs: a.GetInput().GetPayloads(), recorded: true})
	case *historypb.StartChildWorkflowExecutionInitiatedEventAttributes:
		f.begin(e, trace.InChild, source{activity: a.GetWorkflowType().GetName(),
			inputs: a.GetInput().GetPayloads(), recorded: true})
	case *historypb.MarkerRecordedEventAttributes:
		if m := history.MarkerOf(a); m.Name == history.MarkerLocalActivity && !m.Local.Retried {
			input := a.GetDetails()["input"] // of the Java SDK
			f.begin(e, trace.InLocalActivity, source{activity: m.Local.ActivityType,
				inputs: input.GetPayloads(), recorded: input != nil})
		}
	case *historypb.ActivityTaskStartedEventAttributes:
		if w := f.open[a.GetScheduledEventId()]; w.n != 0 {
			f.change(w.n, func(c *trace.Call) {
				c.Started, c.Attempts = timeOf(e), int(a.GetAttempt())
				if last := a.GetLastFailure(); last != nil {
					c.LastError = history.FailureOf(last).Message
					c.Wait = last.GetApplicationFailureInfo().GetNextRetryDelay().AsDuration()
				}
			})
		}
	}
	if end, ok := history.EndingOf(e); ok {
		f.end(e, end)
	}
	if _, ok := history.CloseStatus(e.GetEventType()); ok {
		for _, n := range f.asked { // no later event tells of them
			f.change(n, func(c *trace.Call) { c.Outcome = trace.Unknown })
		}
	}
}

// begin begins the call that an event schedules.
func (f *Folder) begin(e *historypb.HistoryEvent, where trace.Place, s source) {
	_ = json.Unmarshal(history.PayloadJSON(e.GetUserMetadata().GetSummary()), &s.summary) // "" for none
	a, problem := s.find()
	c := trace.Call{Operation: trace.Chat, Outcome: trace.Pending, Event: e.GetEventId(), Began: timeOf(e),
		Where: where, Problem: problem, Name: s.activity}
	s.event = c.Event
	w := working{adapter: a, source: s}
	switch {
	case a == nil && problem != "":
	case a == nil:
		if w.n = f.take("", s.activity); w.n == 0 {
			return
		}
	case a.Operation == node:
		w.began = c.Began
	case a.Operation == string(trace.Tool):
		f.tool(&c, a, &s)
		if w.n = f.take(c.ID, c.Name); w.n == 0 {
			f.tools++
		}
	default:
		f.chat(&c, a, &s)
	}
	switch {
	case w.n != 0: // its request is known
		f.change(w.n, func(known *trace.Call) {
			known.Event, known.Began, known.Where, known.Server = c.Event, c.Began, c.Where, c.Server
			known.Agent = cmp.Or(c.Agent, known.Agent)
			if c.Arguments != nil {
				known.Arguments = c.Arguments
			}
		})
	case a == nil || a.Operation != node:
		w.n = f.add(c)
	}
	w.source.asked = nil // read again if the response needs it
	if f.open == nil {
		f.open = map[int64]working{}
	}
	f.open[c.Event] = w
}

// chat reads the input of a request to a model.
func (f *Folder) chat(c *trace.Call, a *Adapter, s *source) {
	c.Name = ""
	if c.Where == trace.InActivity {
		c.Where = ""
	}
	c.Framework, c.Agent = a.Framework, s.text(a.Agent)
	c.Provider, c.Model = modelOf(s.text(a.Model))
	c.Alias = s.text(a.Key)
	c.System = cut(joinText(messages(s.get(a.System))))
	for _, t := range s.get(a.Tools).Array() {
		c.Tools = append(c.Tools, strings.Clone(t.String()))
	}
	for _, m := range latest(s.get(a.Messages)) {
		if m.Role == "system" {
			c.System = cut(strings.TrimSpace(c.System + "\n" + m.Text))
			continue
		}
		f.settle(m.Results, a.ToolError)
		c.Asked = append(c.Asked, clipped(m))
	}
	f.framework, f.agent = cmp.Or(f.framework, a.Framework), cmp.Or(f.agent, c.Agent)
	if usd, err := strconv.ParseFloat(s.text(a.PreviousCost), 64); err == nil && usd >= 0 && usd < maxCost {
		f.price(c.Agent, usd)
	}
}

// price sets the cost of the newest answer of an agent to what the framework wrote.
func (f *Folder) price(agent string, usd float64) {
	for _, c := range slices.Backward(f.calls) {
		if c.Operation != trace.Chat || c.Agent != agent || c.Usage == nil {
			continue
		}
		if c.Usage.Cost == nil {
			sum := f.sumOf(c)
			before := trace.Sum{}
			before.Add(c)
			usage := *c.Usage
			usage.Cost = &usd
			f.change(c.N, func(c *trace.Call) { c.Usage, c.CostUSD = &usage, &usd })
			sum.Cost += usd - before.Cost
			sum.Unpriced -= before.Unpriced
			sum.Written++
		}
		return
	}
}

// tool reads the input of a call of a tool.
func (f *Folder) tool(c *trace.Call, a *Adapter, s *source) {
	c.Operation, c.Framework, c.Agent = trace.Tool, cmp.Or(a.Framework, f.framework), s.text(a.Agent)
	c.Name, c.ID = s.text(a.Name), s.text(a.ID)
	if c.Server = s.text(a.Server); c.Server != "" {
		c.Where = trace.InMCP
	}
	if v := s.get(a.Arguments); v.Exists() {
		c.Arguments = raw(v)
	}
}

// end ends the call that an ending is about.
func (f *Folder) end(e *historypb.HistoryEvent, end history.Ending) {
	w, ok := f.open[end.Started]
	if !ok {
		return
	}
	delete(f.open, end.Started)
	w.source.results = end.Result
	if w.n == 0 {
		f.node(e, &w, end)
		return
	}
	var answered *trace.Message
	f.change(w.n, func(c *trace.Call) {
		c.End, c.Over = e.GetEventId(), timeOf(e)
		if end.Status != history.EndCompleted {
			c.Outcome, c.Error = trace.Failed, end.Reason().Message
			return
		}
		c.Outcome = trace.OK
		switch a := w.adapter; {
		case a != nil && c.Operation == trace.Chat:
			f.respond(c, a, &w.source)
			answered = c.Answer
		case a != nil:
			c.Result = raw(w.source.get(a.Result))
			result := w.source.result()
			if result.Get("is_error").Bool() || result.Get("isError").Bool() {
				c.Outcome = trace.Failed
			}
		default:
			c.Result = history.JSON(end.Result)
		}
	})
	if c := f.get(w.n); c != nil && c.Operation == trace.Chat {
		f.count(c)
		f.last = c.N
		f.ask(c, answered)
	}
}

// respond reads the response of a model.
func (f *Folder) respond(c *trace.Call, a *Adapter, s *source) {
	v := s.get(a.Answer)
	r, ok := streamed(v)
	if !ok {
		r.message = joined(messages(v))
	}
	c.Streamed = len(elements(s.result().Result)) > 1
	if r.message != nil {
		c.Answer = new(clipped(*r.message))
	}
	provider, answered := modelOf(cmp.Or(s.text(a.Answered), r.model))
	c.Answered = answered
	c.Provider = cmp.Or(s.text(a.Provider), c.Provider, provider)
	c.Finish = cmp.Or(s.text(a.Finish), r.finish)
	if failure := s.text(a.Error); failure != "" {
		c.Outcome, c.Error = trace.Failed, failure
	}
	var err error
	if c.Usage, err = a.usage(s, r.usage); err != nil {
		c.Problem = err.Error()
	} else if c.Usage == nil && c.Answer == nil && c.Outcome == trace.OK {
		c.Problem = "the result has neither an answer nor a usage where " + s.activity + " has them"
	}
	c.CostUSD = cost(c)
}

// node reads the answers and the results of tools in the messages that a node returns.
func (f *Folder) node(e *historypb.HistoryEvent, w *working, end history.Ending) {
	s, a := &w.source, w.adapter
	f.framework = cmp.Or(f.framework, a.Framework)
	if end.Status != history.EndCompleted && len(f.asked) == 1 { // the node ran the tool
		f.change(f.asked[0], func(c *trace.Call) {
			c.Outcome, c.Error, c.Where = trace.Failed, end.Reason().Message, trace.InActivity
			c.Event, c.Began, c.End, c.Over = s.event, w.began, e.GetEventId(), timeOf(e)
		})
		f.asked = nil
	}
	for _, item := range elements(s.get(a.Messages)) {
		m := message(item)
		f.settle(m.Results, a.ToolError)
		meta := item.Get("response_metadata")
		usage := item.Get("usage_metadata")
		if !usage.IsObject() {
			usage = meta.Get("token_usage")
		}
		id := strings.Clone(item.Get("id").String())
		if m.Role != assistant || !usage.IsObject() && !meta.Get("model_name").Exists() || f.knows(id) {
			continue
		}
		c := trace.Call{Operation: trace.Chat, Framework: a.Framework, Agent: s.text(a.Agent), ID: id,
			Outcome: trace.OK, Answer: new(clipped(m)), Answered: text(meta, []string{"model_name", "model"}),
			Provider: text(meta, []string{"model_provider"}),
			Finish:   text(meta, []string{"finish_reason", "stop_reason"}),
			Event:    w.source.event, End: e.GetEventId(), Began: w.began, Over: timeOf(e)}
		var err error
		if c.Usage, err = usageOf(usage); err != nil {
			c.Problem = err.Error()
		}
		c.CostUSD = cost(&c)
		f.agent = cmp.Or(f.agent, c.Agent)
		c.N = f.add(c)
		f.count(&c)
		f.last = c.N
		f.ask(&c, &m)
	}
}

// knows reports whether it was asked for an ID before: a node may return the messages that it was given.
func (f *Folder) knows(id string) bool {
	if id == "" {
		return false
	}
	if f.known == nil {
		f.known = map[uint64]bool{}
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, id) // never fails
	key := h.Sum64()
	known := f.known[key]
	f.known[key] = true
	return known
}

// sumOf returns the sum that a request counts in.
func (f *Folder) sumOf(c *trace.Call) *trace.Sum {
	key := trace.Part{Framework: c.Framework, Agent: c.Agent, Provider: c.Provider, Model: c.ModelName()}
	i := slices.IndexFunc(f.parts, func(p trace.Part) bool {
		p.Sum = trace.Sum{}
		return p == key
	})
	if i < 0 {
		i = len(f.parts)
		f.parts = append(f.parts, key)
	}
	return &f.parts[i].Sum
}

// count adds a request that has ended to the sums.
func (f *Folder) count(c *trace.Call) {
	f.model = cmp.Or(f.model, c.ModelName())
	f.sumOf(c).Add(c)
}

// cost returns the cost of a request: what the framework wrote, or what its model costs.
func cost(c *trace.Call) *float64 {
	u := c.Usage
	if u == nil || u.Cost != nil {
		return u.WrittenCost()
	}
	write1h := count(u.CacheWrite1h)
	tokens := price.Tokens{Input: u.Input, Output: u.Output, CacheRead: count(u.CacheRead),
		CacheWrite5m: count(u.CacheWrite) - write1h, CacheWrite1h: write1h}
	for _, model := range []string{c.Answered, c.Model} {
		if usd, ok := load().prices.Cost(model, tokens, c.Over); ok {
			return &usd
		}
	}
	return nil
}

// handoff is the beginning of the name of a tool that hands over to another agent.
const handoff = "transfer_to_"

// ask adds the calls of tools that an answer asks for.
func (f *Folder) ask(by *trace.Call, m *trace.Message) {
	if m == nil {
		return
	}
	for _, t := range m.Calls {
		c := trace.Call{Operation: trace.Tool, Framework: by.Framework, Agent: by.Agent, Name: t.Name,
			ID: t.ID, Arguments: t.Arguments, Outcome: trace.Pending, By: by.N}
		if to, ok := strings.CutPrefix(t.Name, handoff); ok {
			c.Operation = trace.Handoff
			c.Name = cmp.Or(gjson.GetBytes(t.Arguments, "agent_name").String(), to)
			c.Where = trace.InWorkflow
		} else {
			f.tools++
		}
		if t.Provider {
			c.Outcome, c.Where = trace.OK, trace.InProvider
		}
		n := f.add(c)
		if !t.Provider {
			f.asked = append(f.asked, n)
		}
	}
	f.asked = f.asked[max(0, len(f.asked)-maxAsked):]
}

// take returns the number of the call of a tool that an answer asked for and that nothing is known to run, or
// 0, and takes it off the list.
func (f *Folder) take(id, name string) int {
	i := slices.IndexFunc(f.asked, func(n int) bool {
		c := f.get(n)
		switch {
		case c == nil:
			return false
		case id == "" || c.ID == "":
			return plain(c.Name) == plain(name)
		}
		return c.ID == id
	})
	if i < 0 {
		return 0
	}
	n := f.asked[i]
	f.asked = slices.Delete(slices.Clone(f.asked), i, i+1)
	return n
}

// plain returns a name as functions in several languages share it: "get_weather" and "GetWeather".
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// settle applies the results of tools that a model is told.
func (f *Folder) settle(results []trace.Result, failure string) {
	for _, r := range results {
		n := f.take(r.ID, r.Name)
		ran := n == 0
		if ran {
			n = f.told(r)
		}
		var said string
		_ = json.Unmarshal(r.Content, &said) // "" if it is not a text
		failed := r.Failed || failure != "" && strings.HasPrefix(said, failure)
		f.change(n, func(c *trace.Call) {
			switch {
			case c.Outcome == trace.Failed:
				c.Told = true
				return
			case failed:
				c.Outcome, c.Error, c.Told = trace.Failed, cmp.Or(said, string(r.Content)), true
			case !ran:
				c.Outcome = trace.OK
			}
			if !ran {
				c.Result, c.Where = cutJSON(r.Content), cmp.Or(c.Where, trace.InWorkflow)
			}
		})
	}
}

// told returns the number of the call of a tool that an event ran and that a result is about, or 0. Without
// an ID, it is one that the newest answer asked for.
func (f *Folder) told(r trace.Result) int {
	for _, c := range slices.Backward(f.calls) {
		switch {
		case c.Operation == trace.Chat:
		case r.ID != "" && c.ID == r.ID:
			return c.N
		case r.ID == "" && c.By == f.last && !c.Told && plain(c.Name) == plain(r.Name):
			return c.N
		}
	}
	return 0
}

// add adds a call and returns its number.
func (f *Folder) add(c trace.Call) int {
	c.N = f.dropped + len(f.calls) + 1
	f.calls = append(f.calls, &c)
	f.tally(&c, 1)
	if c.Outcome != trace.Pending {
		f.ended = append(f.ended, c.N)
	}
	if over := len(f.calls) - maxCalls; over > 0 {
		f.calls = slices.Delete(slices.Clone(f.calls), 0, over)
		f.dropped += over
	}
	return c.N
}

// tally counts the outcome of a call of a tool.
func (f *Folder) tally(c *trace.Call, n int) {
	switch {
	case c.Operation != trace.Tool:
	case c.Outcome == trace.OK:
		f.ok += n
	case c.Outcome == trace.Failed:
		f.failed += n
	}
}

// get returns a call that is kept, or nil.
func (f *Folder) get(n int) *trace.Call {
	if i := n - f.dropped - 1; n > 0 && i >= 0 && i < len(f.calls) {
		return f.calls[i]
	}
	return nil
}

// change replaces a call that is kept.
func (f *Folder) change(n int, fn func(*trace.Call)) {
	if c := f.get(n); c != nil {
		now := *c
		fn(&now)
		f.tally(c, -1)
		f.tally(&now, 1)
		f.calls[n-f.dropped-1] = &now
		if now.Outcome != c.Outcome && !slices.Contains(f.ended, n) {
			f.ended = append(f.ended, n)
		}
	}
}

// maxText bounds a text of a call; the event has the whole.
const maxText = 16 << 10

func cut(text string) string { return strings.Clone(ace.Cut(text, maxText)) }

// cutJSON returns JSON, or the beginning of a larger one as a text.
func cutJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxText {
		return slices.Clone(raw)
	}
	short, err := json.Marshal(cut(string(raw)))
	if err != nil {
		return nil
	}
	return short
}

// clipped returns a message with bounded texts.
func clipped(m trace.Message) trace.Message {
	m.Text, m.Reasoning = cut(m.Text), cut(m.Reasoning)
	for i, c := range m.Calls {
		m.Calls[i].Arguments = cutJSON(c.Arguments)
	}
	for i, r := range m.Results {
		m.Results[i].Content = cutJSON(r.Content)
	}
	return m
}

func joinText(all []trace.Message) string {
	var texts []string
	for _, m := range all {
		texts = append(texts, m.Text)
	}
	return strings.Join(texts, "\n")
}

func timeOf(e *historypb.HistoryEvent) time.Time {
	if t := e.GetEventTime(); t != nil {
		return t.AsTime()
	}
	return time.Time{}
}
