// Package contracttest checks the payloads of histories against the schemas of the contract, for tests.
package contracttest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/admin"
	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// Schemas holds the compiled schemas of payloads by name.
type Schemas map[string]*jsonschema.Schema

// Compile compiles the schemas of the contract with another library than the one that generates them.
func Compile(t *testing.T, strict bool) Schemas {
	t.Helper()
	all, err := admin.ContractSchema("", strict)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("contract.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled := Schemas{}
	for name := range all.Defs {
		if compiled[name], err = c.Compile("contract.json#/$defs/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return compiled
}

// Check reports why a payload does not fit its schema, and whether the contract has a payload of that name.
func (s Schemas) Check(name string, data []byte) (known bool, err error) {
	schema := s[name]
	if schema == nil {
		return false, nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return true, err
	}
	return true, schema.Validate(v)
}

// payloadReader names the payloads of a history.
type payloadReader struct {
	workflow   string
	activities map[int64]string // by scheduled event id
	children   map[int64]string // by initiated event id
	found      func(name string, p *commonpb.Payload)
}

func (r *payloadReader) first(name string, list *commonpb.Payloads) {
	if p := list.GetPayloads(); len(p) > 0 {
		r.found(name, p[0])
	}
}

func (r *payloadReader) memo(m *commonpb.Memo) {
	for key, p := range m.GetFields() {
		r.found("memo."+key, p)
	}
}

func (r *payloadReader) read(e *historypb.HistoryEvent) {
	switch a := e.GetAttributes().(type) {
	case *historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes:
		started := a.WorkflowExecutionStartedEventAttributes
		r.workflow = started.GetWorkflowType().GetName()
		r.first(r.workflow+".input", started.GetInput())
		r.memo(started.GetMemo())
	case *historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes:
		r.first(r.workflow+".result", a.WorkflowExecutionCompletedEventAttributes.GetResult())
	case *historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes:
		r.first(r.workflow+".input", a.WorkflowExecutionContinuedAsNewEventAttributes.GetInput())
	case *historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes:
		signal := a.WorkflowExecutionSignaledEventAttributes
		r.first(signal.GetSignalName(), signal.GetInput())
	case *historypb.HistoryEvent_SignalExternalWorkflowExecutionInitiatedEventAttributes:
		signal := a.SignalExternalWorkflowExecutionInitiatedEventAttributes
		r.first(signal.GetSignalName(), signal.GetInput())
	case *historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes:
		update := a.WorkflowExecutionUpdateAcceptedEventAttributes.GetAcceptedRequest().GetInput()
		r.first(r.workflow+"."+update.GetName(), update.GetArgs())
	case *historypb.HistoryEvent_WorkflowPropertiesModifiedEventAttributes:
		r.memo(a.WorkflowPropertiesModifiedEventAttributes.GetUpsertedMemo())
	case *historypb.HistoryEvent_ActivityTaskScheduledEventAttributes:
		scheduled := a.ActivityTaskScheduledEventAttributes
		r.activities[e.GetEventId()] = scheduled.GetActivityType().GetName()
		r.first(r.activities[e.GetEventId()]+".input", scheduled.GetInput())
	case *historypb.HistoryEvent_ActivityTaskCompletedEventAttributes:
		completed := a.ActivityTaskCompletedEventAttributes
		r.first(r.activities[completed.GetScheduledEventId()]+".result", completed.GetResult())
	case *historypb.HistoryEvent_StartChildWorkflowExecutionInitiatedEventAttributes:
		child := a.StartChildWorkflowExecutionInitiatedEventAttributes
		r.children[e.GetEventId()] = child.GetWorkflowType().GetName()
		r.first(r.children[e.GetEventId()]+".input", child.GetInput())
		r.memo(child.GetMemo())
	case *historypb.HistoryEvent_ChildWorkflowExecutionCompletedEventAttributes:
		completed := a.ChildWorkflowExecutionCompletedEventAttributes
		r.first(r.children[completed.GetInitiatedEventId()]+".result", completed.GetResult())
	}
}

// Payloads calls found with the payloads of a history, and with the answers of queries at every event.
func Payloads(t *testing.T, events []*historypb.HistoryEvent,
	found func(event int64, name string, data []byte)) {
	t.Helper()
	r := payloadReader{activities: map[int64]string{}, children: map[int64]string{}}
	var decoder history.Decoder
	var state ace.State
	for _, e := range events {
		r.found = func(name string, p *commonpb.Payload) {
			found(e.GetEventId(), name, history.PayloadJSON(p))
		}
		r.read(e)
		fact, ok, err := decoder.Fact(e)
		if r.workflow != ace.TaskWorkflow || !ok || err != nil {
			continue
		}
		state.Apply(fact)
		for name, answer := range map[string]any{ace.QueryPhase: state.CurrentPhase(),
			ace.QuerySkills: state.SkillUsage(), ace.QueryDelta: state.PlaybookDelta()} {
			data, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			found(e.GetEventId(), name, data)
		}
	}
}
