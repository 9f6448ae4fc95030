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

// MaxOpened bounds, in bytes, how much of one event is shown.
const MaxOpened = 256 << 10

// OpenedEvent is one event, whole, as JSON for people. Text is untrusted.
type OpenedEvent struct {
	ID   int64
	Text string // indented JSON, at most MaxOpened bytes
	Size int    // of all of it, in bytes
	Err  string // why there is none, "" if there is
	// Leads is the run that the event names beside its own: of a child, the one before or
	// after, else the parent. Its workflow id is "" where there is none.
	Leads runs.Run
}

// Open makes an event of a log readable.
func (l *EventLog) Open(id int64) *OpenedEvent {
	o := &OpenedEvent{ID: id}
	e, err := l.Raw(id)
	switch {
	case err != nil:
		o.Err = err.Error()
	case e == nil && l.Event(id) == nil:
		o.Err = fmt.Sprintf("event %d is not read", id)
	case e == nil:
		o.Err = "this event is held in short only: the history is larger than what is kept whole"
	default:
		o.Leads = Leads(l.WorkflowID, e)
		data, err := EventJSON(e)
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

// Leads is the run that an event of a workflow's history names beside its own.
func Leads(workflowID string, e *historypb.HistoryEvent) runs.Run {
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
		if id := t.GetNewExecutionRunId(); id != "" { // tried again, or the next of a schedule
			return of(workflowID, id)
		}
	case hasExecution:
		if x := t.GetWorkflowExecution(); x.GetWorkflowId() != "" {
			return of(x.GetWorkflowId(), x.GetRunId())
		}
	}
	return runs.Run{}
}

// EventJSON is an event as indented JSON. A payload that holds JSON or text stands there
// decoded; of others there are encoding and size.
func EventJSON(e *historypb.HistoryEvent) ([]byte, error) {
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

// eventFields is the fields of an event, those first that say what it is.
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

// readable replaces payloads within a value by what they hold.
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

// payload is what a payload holds; false for a value that is none.
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
		return map[string]any{"encoding": kind, "bytes": len(data), "remark": "not the JSON that it says it is", "begins": headOf(data)}, true
	case strings.HasPrefix(kind, "text/") && utf8.Valid(data):
		return string(data), true
	}
	sealed := map[string]any{"encoding": kind, "bytes": len(data)}
	reason, _ := meta[history.MetaCodec].(string)
	if said, err := base64.StdEncoding.DecodeString(reason); err == nil && reason != "" {
		sealed["codec_server"] = string(said)
	}
	return sealed, true
}

func headOf(data []byte) string {
	return strings.ToValidUTF8(string(data[:min(len(data), 80)]), "\uFFFD")
}
