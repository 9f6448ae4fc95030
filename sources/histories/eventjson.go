package histories

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/runs"
)

// MaxOpened bounds the displayed bytes of one event.
const MaxOpened = 256 << 10

// OpenedEvent is a complete event as JSON for display. Text is untrusted.
type OpenedEvent struct {
	ID   int64
	Text string // indented JSON, at most MaxOpened bytes
	Size int    // of the complete text, in bytes
	Err  string // why the event cannot be shown
	// Target is the other run that the event names: a child, the previous or next run, or the parent. Its
	// workflow id is "" otherwise.
	Target runs.Run
}

// Open decodes an event of a log.
func (l *EventLog) Open(id int64) *OpenedEvent {
	o := &OpenedEvent{ID: id}
	e, err := l.history.Event(id)
	switch {
	case err != nil:
		o.Err = err.Error()
	case e == nil:
		o.Err = fmt.Sprintf("event %d has not been read", id)
	default:
		o.Target = TargetRun(l.WorkflowID, e)
		data, err := eventJSON(e)
		if err != nil {
			o.Err = fmt.Sprintf("event %d as JSON: %v", id, err)
		}
		o.Size = len(data)
		if len(data) > MaxOpened {
			data = bytes.ToValidUTF8(data[:MaxOpened], nil)
		}
		o.Text = string(data)
	}
	return o
}

// TargetRun returns the other run that an event of a workflow's history names.
func TargetRun(workflowID string, e *historypb.HistoryEvent) runs.Run {
	of := func(workflowID, runID string) runs.Run {
		return runs.Run{WorkflowID: workflowID, RunID: runID, TaskID: ace.TaskIDOf(workflowID)}
	}
	a := history.Attributes(e)
	switch t := a.(type) {
	case *historypb.WorkflowExecutionStartedEventAttributes:
		if id := t.GetContinuedExecutionRunId(); id != "" {
			return of(workflowID, id)
		}
		if p := t.GetParentWorkflowExecution(); p != nil {
			return of(p.GetWorkflowId(), p.GetRunId())
		}
	case *historypb.WorkflowExecutionContinuedAsNewEventAttributes:
		return of(workflowID, t.GetNewExecutionRunId())
	case *historypb.WorkflowTaskFailedEventAttributes:
		if history.IsReset(e) && t.GetBaseRunId() != "" {
			return of(workflowID, t.GetBaseRunId())
		}
	case *historypb.StartChildWorkflowExecutionInitiatedEventAttributes:
		return of(t.GetWorkflowId(), "")
	case interface{ GetNewExecutionRunId() string }:
		if id := t.GetNewExecutionRunId(); id != "" { // retried, or the next run of a schedule
			return of(workflowID, id)
		}
	case hasExecution:
		if x := t.GetWorkflowExecution(); x.GetWorkflowId() != "" {
			return of(x.GetWorkflowId(), x.GetRunId())
		}
	}
	return runs.Run{}
}

// eventJSON returns an event as indented JSON. Payloads with JSON or text are decoded; others show their
// encoding and size.
func eventJSON(e *historypb.HistoryEvent) ([]byte, error) {
	data, err := protojson.Marshal(e)
	if err != nil {
		return nil, err
	}
	fields, err := decodeNumbers[map[string]any](data)
	if err != nil {
		return nil, err
	}
	var out, indented bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	separator := "{"
	for _, name := range slices.SortedFunc(maps.Keys(fields), compareFields) {
		fmt.Fprintf(&out, "%s%q:", separator, name)
		if err := enc.Encode(readable(fields[name])); err != nil {
			return nil, err
		}
		separator = ","
	}
	out.WriteString("}")
	err = json.Indent(&indented, out.Bytes(), "", "  ")
	return indented.Bytes(), err
}

// compareFields orders the fields of an event by name, after those that identify it.
func compareFields(a, b string) int {
	rank := func(name string) int { return slices.Index([]string{"eventType", "eventTime", "eventId"}, name) }
	return cmp.Or(rank(b)-rank(a), strings.Compare(a, b))
}

// decodeNumbers decodes one JSON value and keeps its numbers as they are written.
func decodeNumbers[T any](data []byte) (value T, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		return value, err
	}
	if dec.More() {
		return value, errors.New("more than one value")
	}
	return value, nil
}

// readable replaces payloads within a value by their content.
func readable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if p := payloadOf(v); p != nil {
			return content(p)
		}
		for k, x := range v {
			v[k] = readable(x)
		}
	case []any:
		for i, x := range v {
			v[i] = readable(x)
		}
	}
	return v
}

// payloadOf returns the payload that a value encodes, or nil.
func payloadOf(v map[string]any) *commonpb.Payload {
	meta, _ := v["metadata"].(map[string]any)
	if meta["encoding"] == nil {
		return nil
	}
	var p commonpb.Payload
	if data, err := json.Marshal(v); err != nil || protojson.Unmarshal(data, &p) != nil {
		return nil
	}
	return &p
}

// content returns the value of a payload, or what is known of one that is not readable.
func content(p *commonpb.Payload) any {
	encoding, data := string(p.GetMetadata()[converter.MetadataEncoding]), p.GetData()
	opaque := history.Describe(p)
	switch {
	case encoding == converter.MetadataEncodingNil:
		return nil
	case strings.HasPrefix(encoding, "json/"):
		if inner, err := decodeNumbers[any](data); err == nil {
			return inner
		}
		opaque["remark"] = "invalid JSON"
		opaque["begins"] = strings.ToValidUTF8(string(data[:min(len(data), 80)]), "\uFFFD")
	case strings.HasPrefix(encoding, "text/") && utf8.Valid(data):
		return string(data)
	default:
		if reason := history.CodecReason(p); reason != "" {
			opaque["codec_server"] = reason
		}
	}
	return opaque
}
