package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/histories"
)

// maxSpans bounds the spans of a run, the earliest ones; the run's span says how many are omitted.
const maxSpans = 5000

// traceID returns the trace ID of a run: its run ID, which is a UUID, without hyphens.
func traceID(runID string) []byte {
	id, err := hex.DecodeString(strings.ReplaceAll(runID, "-", ""))
	if err == nil && len(id) == 16 {
		return id
	}
	sum := sha256.Sum256([]byte(runID))
	return sum[:16]
}

// spanID returns the ID of a span of a run. It depends only on its arguments, so that a trace that is
// exported twice has the same spans.
func spanID(runID string, parts ...any) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %v", runID, parts))
	return sum[:8]
}

// rootID returns the ID of the span of a run.
func rootID(runID string) []byte { return spanID(runID, "run") }

// tracer makes the spans of one run.
type tracer struct {
	*record
	calls   map[int64]modelCall // by the activity
	ids     [][]byte            // of the spans of the timeline; nil for those that are left out
	spans   []*tracepb.Span
	omitted int64
}

// Spans returns the spans of a closed run, its own span first.
func (c *record) Spans() []*tracepb.Span {
	t := &tracer{record: c, calls: map[int64]modelCall{}, ids: make([][]byte, len(c.spans))}
	for _, call := range c.calls {
		if call.scheduled != 0 {
			t.calls[call.scheduled] = call
		}
	}
	root := t.root()
	t.spans = []*tracepb.Span{root}
	for i := range c.spans {
		t.add(i)
	}
	for _, call := range c.calls {
		if call.scheduled == 0 { // of an observed run, which has no activities
			t.chat(rootID(c.RunID), call, c.Began().UnixNano(), c.Began().Add(c.Age(c.Close)).UnixNano())
		}
	}
	if t.omitted > 0 {
		root.Attributes = append(root.Attributes, attribute("acescope.spans.omitted", t.omitted))
	}
	return t.spans
}

// root returns the span of the run.
func (t *tracer) root() *tracepb.Span {
	end := t.Close
	if began := t.Began(); !began.IsZero() {
		end = began.Add(t.Age(t.Close))
	}
	s := t.span(rootID(t.RunID), nil, operationInvokeWorkflow+" "+t.Type, t.Began().UnixNano(),
		end.UnixNano())
	list := attributes{
		keyOperation: operationInvokeWorkflow, keyWorkflow: t.Type,
		"temporalWorkflowID": t.WorkflowID, "temporalRunID": t.RunID, "temporal.namespace": t.namespace,
		"acescope.status": string(t.Status), "acescope.verdict": string(t.Verdict),
		"acescope.task.id": t.TaskID, "acescope.experiment.id": t.Experiment,
		"acescope.dataset.id": t.Dataset,
		"acescope.adapter":    t.Adapter, keyModel: t.Model, keyConversation: t.Session,
	}
	if t.state != nil {
		list["acescope.playbook.before"] = t.state.Delta.PlaybookBefore
		list["acescope.playbook.after"] = t.state.Delta.PlaybookAfter
		list["acescope.playbook.bullets"] = int64(t.state.Delta.Bullets)
	}
	switch t.Status {
	case ace.Failed, ace.TimedOut, ace.Terminated:
		list[keyError] = string(t.Status)
		s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
	}
	s.Attributes = list.encode()
	s.Links = t.links()
	if e := t.evaluation(); e != nil {
		s.Events = append(s.Events, e)
	}
	return s
}

// evaluation returns the verdict on the answer as an event, or nil without one.
func (t *tracer) evaluation() *tracepb.Span_Event {
	list := attributes{keyEvalName: "answer", keyEvalLabel: string(t.Verdict)}
	switch t.Verdict {
	case ace.Correct:
		list[keyEvalValue] = 1.0
	case ace.Wrong:
		list[keyEvalValue] = 0.0
	default:
		return nil
	}
	return &tracepb.Span_Event{Name: "gen_ai.evaluation.result", TimeUnixNano: uint64(t.Close.UnixNano()),
		Attributes: list.encode()}
}

// links returns links to the runs that this run belongs to, and to the span that started it.
func (t *tracer) links() (links []*tracepb.Span_Link) {
	link := func(relation, runID string) {
		if runID == "" || runID == t.RunID {
			return
		}
		links = append(links, &tracepb.Span_Link{TraceId: traceID(runID), SpanId: rootID(runID),
			Attributes: attributes{"acescope.link": relation, "temporalRunID": runID}.encode()})
	}
	link("parent", t.started.GetParentWorkflowExecution().GetRunId())
	link("continued from", t.origin.Prev)
	if t.origin.Reset != nil {
		link("reset from", t.origin.Reset.RunID)
	}
	if t.Fork != nil {
		link("forked from", t.Fork.RunID)
	}
	if l := t.starter(); l != nil {
		links = append(links, l)
	}
	return links
}

// starter returns a link to the span that started the workflow, which Temporal's SDKs send in a header if
// their program traces.
func (t *tracer) starter() *tracepb.Span_Link {
	var carrier map[string]string
	p := t.started.GetHeader().GetFields()["_tracer-data"]
	if json.Unmarshal(history.PayloadJSON(p), &carrier) != nil {
		return nil
	}
	parts := strings.Split(carrier["traceparent"], "-") // version, trace, span, flags
	if len(parts) != 4 {
		return nil
	}
	trace, err := hex.DecodeString(parts[1])
	span, err2 := hex.DecodeString(parts[2])
	if err != nil || err2 != nil || len(trace) != 16 || len(span) != 8 {
		return nil
	}
	return &tracepb.Span_Link{TraceId: trace, SpanId: span, TraceState: ace.Cut(carrier["tracestate"], 512),
		Attributes: attributes{"acescope.link": "started by"}.encode()}
}

// exportedKinds are the kinds of spans of the timeline that are exported.
var exportedKinds = []histories.SpanKind{histories.SpanPhase, histories.SpanActivity, histories.SpanAttempt,
	histories.SpanCall, histories.SpanChild}

// add adds a span of the timeline if it is of [exportedKinds]. Other kinds are about Temporal, not about the
// work.
func (t *tracer) add(i int) {
	s := &t.record.spans[i]
	if !slices.Contains(exportedKinds, s.Kind) || t.inherited(s.Last) {
		return
	}
	if len(t.spans) >= maxSpans {
		t.omitted++
		return
	}
	attempt := s.Attempt
	if s.Kind != histories.SpanAttempt {
		attempt = 0
	}
	t.ids[i] = spanID(t.RunID, s.Kind, s.Event, attempt, s.Call)
	name, list := t.describe(s)
	out := t.span(t.ids[i], t.parentOf(s), name, s.Start, s.End)
	if s.State.Bad() {
		out.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
	}
	if s.Run > s.Start {
		out.Events = append(out.Events, &tracepb.Span_Event{Name: "started", TimeUnixNano: uint64(s.Run)})
	}
	if child := t.steps[s.Event].child.runID; child != "" && s.Kind == histories.SpanChild {
		out.Links = append(out.Links, &tracepb.Span_Link{TraceId: traceID(child), SpanId: rootID(child),
			Attributes: attributes{"acescope.link": "child", "temporalRunID": child}.encode()})
	}
	call, ok := t.calls[s.Event]
	if ok && s.Kind == histories.SpanActivity && call.agent != "" {
		out.Name, out.Kind = operationInvokeAgent+" "+call.agent, tracepb.Span_SPAN_KIND_CLIENT
		call.describe(list)
		list[keyOperation] = operationInvokeAgent
	}
	out.Attributes = list.encode()
	t.spans = append(t.spans, out)
	if ok && s.Kind == histories.SpanActivity && call.agent == "" {
		t.chat(t.ids[i], call, s.Run, s.End)
	}
}

// describe returns the name and the attributes of a span of the timeline.
func (t *tracer) describe(s *histories.Span) (string, attributes) {
	st := t.steps[s.Event]
	list := attributes{"acescope.state": s.State.String(), "temporal.event.id": s.Event}
	if s.State.Bad() {
		list[keyError] = s.State.String()
		if st.errorType != "" {
			list[keyError] = st.errorType
		}
	}
	switch s.Kind {
	case histories.SpanPhase:
		list["acescope.phase"] = s.Name
		return s.Name, list
	case histories.SpanCall:
		list[keyOperation], list[keyTool], list[keyToolCall] = operationExecuteTool, s.Name, s.Call
		return operationExecuteTool + " " + s.Name, list
	case histories.SpanChild:
		list["temporalWorkflowID"], list["temporalRunID"] = st.child.workflowID, st.child.runID
		return "child " + st.child.workflowType, list
	case histories.SpanAttempt:
		list["temporal.attempt"] = int64(s.Attempt)
		return s.Name, list
	}
	list["temporalActivityID"], list["temporal.activity.type"] = st.id, st.activity
	list["acescope.phase"], list["temporal.worker.identity"] = string(st.phase), st.worker
	list["temporal.attempt"] = int64(s.Attempt)
	if st.tool != "" {
		list[keyOperation], list[keyTool], list[keyToolCall] = operationExecuteTool, st.tool, st.call
		return operationExecuteTool + " " + st.tool, list
	}
	return st.activity, list
}

// parentOf returns the ID of the nearest enclosing span that is exported.
func (t *tracer) parentOf(s *histories.Span) []byte {
	for p := s.Parent; p > 0; p = t.record.spans[p].Parent {
		if t.ids[p] != nil {
			return t.ids[p]
		}
	}
	return rootID(t.RunID)
}

// chat adds the span of a model call within another span. Its times are those that the worker measured,
// within the server's times of the activity.
func (t *tracer) chat(parent []byte, call modelCall, from, until int64) {
	start, end := from, until
	if !call.start.IsZero() && call.duration > 0 {
		start = min(max(call.start.UnixNano(), from), until)
		end = min(start+int64(call.duration), until)
	}
	s := t.span(spanID(t.RunID, "chat", call.scheduled, call.phase), parent,
		strings.TrimSpace(operationChat+" "+call.model), start, end)
	s.Kind = tracepb.Span_SPAN_KIND_CLIENT
	list := attributes{keyOperation: operationChat}
	call.describe(list)
	s.Attributes = list.encode()
	t.spans = append(t.spans, s)
}

// describe adds the attributes of a model call.
func (call modelCall) describe(list attributes) {
	list[keyProvider], list[keyModel], list[keyAgent] = call.provider, call.model, call.agent
	list[keyConversation] = call.conversation
	u := call.usage
	if u == (ace.Usage{}) {
		return
	}
	list[keyInput], list[keyOutput] = count(u.InputTokens), count(u.OutputTokens)
	list[keyCacheRead] = u.CacheReadTokens
	if u.CostUSD > 0 {
		list["acescope.cost.usd"] = u.CostUSD
	}
}

// span returns a span without attributes. Times are in nanoseconds since 1970; a span never ends before it
// starts.
func (t *tracer) span(id, parent []byte, name string, start, end int64) *tracepb.Span {
	return &tracepb.Span{TraceId: traceID(t.RunID), SpanId: id, ParentSpanId: parent, Name: clean(name),
		Kind:              tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: uint64(start), EndTimeUnixNano: uint64(max(end, start))}
}
