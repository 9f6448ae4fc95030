package histories

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

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
			o.Err = err.Error()
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
	a := attributesOf(e)
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
		return nil, fmt.Errorf("event %d as JSON: %w", e.GetEventId(), err)
	}
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil {
		return nil, fmt.Errorf("event %d as JSON: %w", e.GetEventId(), err)
	}
	var out bytes.Buffer
	out.WriteString("{")
	for i, name := range eventFields(fields) {
		if i > 0 {
			out.WriteString(",")
		}
		value, err := plainJSON(readable(fields[name]))
		if err != nil {
			return nil, fmt.Errorf("event %d as JSON: %w", e.GetEventId(), err)
		}
		fmt.Fprintf(&out, "%q:%s", name, value)
	}
	out.WriteString("}")
	var indented bytes.Buffer
	if err := json.Indent(&indented, out.Bytes(), "", "  "); err != nil {
		return nil, fmt.Errorf("event %d as JSON: %w", e.GetEventId(), err)
	}
	return indented.Bytes(), nil
}

// eventFields returns the names of an event's fields, the identifying fields first.
func eventFields(fields map[string]any) []string {
	names := []string{}
	for _, n := range []string{"eventId", "eventTime", "eventType"} {
		if _, ok := fields[n]; ok {
			names = append(names, n)
		}
	}
	rest := []string{}
	for n := range fields {
		if !slices.Contains(names, n) {
			rest = append(rest, n)
		}
	}
	slices.Sort(rest)
	return append(names, rest...)
}

func plainJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}

// readable replaces payloads within a value by their content.
func readable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if p, ok := payload(v); ok {
			return p
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

// payload returns the content of a payload, and false if the value is not a payload.
func payload(v map[string]any) (any, bool) {
	meta, ok := v["metadata"].(map[string]any)
	encoded, isText := meta["encoding"].(string)
	if !ok || !isText {
		return nil, false
	}
	name, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, false
	}
	text, _ := v["data"].(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	kind := string(name)
	switch {
	case kind == converter.MetadataEncodingNil:
		return nil, true
	case strings.HasPrefix(kind, "json/"):
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var inner any
		if dec.Decode(&inner) == nil && !dec.More() {
			return inner, true
		}
		return map[string]any{"encoding": kind, "bytes": len(data), "remark": "invalid JSON", "begins": headOf(data)}, true
	case strings.HasPrefix(kind, "text/") && utf8.Valid(data):
		return string(data), true
	}
	opaque := map[string]any{"encoding": kind, "bytes": len(data)}
	reason, _ := meta[history.MetaCodec].(string)
	if text, err := base64.StdEncoding.DecodeString(reason); err == nil && reason != "" {
		opaque["codec_server"] = string(text)
	}
	return opaque, true
}

func headOf(data []byte) string {
	return strings.ToValidUTF8(string(data[:min(len(data), 80)]), "\uFFFD")
}
