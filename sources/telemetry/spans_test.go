package telemetry

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/sources/historytest"
)

func valueOf(v *commonpb.AnyValue) string {
	switch x := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return x.StringValue
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(x.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprint(x.DoubleValue)
	}
	return "?"
}

func attributesOf(s *tracepb.Span) map[string]string {
	out := map[string]string{}
	for _, kv := range s.Attributes {
		out[kv.Key] = valueOf(kv.Value)
	}
	return out
}

// treeOf writes spans as text: a line each, children below their parents.
func treeOf(spans []*tracepb.Span) string {
	var b strings.Builder
	var write func(parent string, depth int)
	write = func(parent string, depth int) {
		for _, s := range spans {
			if string(s.ParentSpanId) != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s [%s] %d ms\n", strings.Repeat("  ", depth), s.Name,
				strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")),
				time.Duration(s.EndTimeUnixNano-s.StartTimeUnixNano).Milliseconds())
			for _, kv := range s.Attributes {
				fmt.Fprintf(&b, "%s  | %s = %s\n", strings.Repeat("  ", depth), kv.Key, valueOf(kv.Value))
			}
			if s.Status != nil {
				fmt.Fprintf(&b, "%s  | status %s\n", strings.Repeat("  ", depth), s.Status.Code)
			}
			write(string(s.SpanId), depth+1)
		}
	}
	write("", 0)
	return b.String()
}

// TestSpansGolden compares the trace of a task with retries, failed and denied calls with testdata/task.txt.
func TestSpansGolden(t *testing.T) {
	b := historytest.Task(true).Of("ace/q-00060", runA, "", runA)
	r := rowOf(b.Events)
	r.TaskID, r.Model, r.Verdict = "q-00060", "builtin", ace.Wrong
	got := treeOf(newRecord(r, "ace-dev", b.Events).Spans())
	const golden = "testdata/task.txt"
	if os.Getenv("ACESCOPE_UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("trace:\n%s\nwant (ACESCOPE_UPDATE=1 writes it):\n%s", got, want)
	}
}

// TestSpansOfEveryRecordedHistory checks what every trace must fulfill.
func TestSpansOfEveryRecordedHistory(t *testing.T) {
	chats, agents, tools := 0, 0, 0
	eachRecorded(t, func(t *testing.T, c *record, _ []*historypb.HistoryEvent) {
		spans := c.Spans()
		if again := treeOf(newRecord(c.Run, c.namespace, nil).Spans()); again == "" {
			t.Error("a run without a history has no span")
		}
		known := map[string]bool{}
		for i, s := range spans {
			if known[string(s.SpanId)] {
				t.Errorf("span %s: its ID %x occurs twice", s.Name, s.SpanId)
			}
			known[string(s.SpanId)] = true
			if len(s.SpanId) != 8 || hex.EncodeToString(s.TraceId) != strings.ReplaceAll(c.RunID, "-", "") {
				t.Errorf("span %s: span ID %x, trace ID %x of run %s", s.Name, s.SpanId, s.TraceId, c.RunID)
			}
			if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano == 0 || s.Name == "" {
				t.Errorf("span %q from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
			}
			if (i == 0) != (len(s.ParentSpanId) == 0) || i > 0 && !known[string(s.ParentSpanId)] {
				t.Errorf("span %s: parent %x comes later or not at all", s.Name, s.ParentSpanId)
			}
			switch attributesOf(s)["gen_ai.operation.name"] {
			case "chat":
				chats++
			case "invoke_agent":
				agents++
			case "execute_tool":
				tools++
			}
		}
	})
	if chats < 5 || agents < 20 || tools < 10 {
		t.Errorf("%d model calls, %d calls of agents, %d tool calls are too few", chats, agents, tools)
	}
}

// TestSpansHoldNoTexts: prompts, answers, arguments, results and messages of failures stay in the history.
func TestSpansHoldNoTexts(t *testing.T) {
	const secret = "sk-ant-SECRET"
	b := historytest.New(ace.TaskWorkflow, ace.TaskInput{TaskID: "q", Prompt: secret})
	b.Of("ace/q", runA, "", runA)
	s := b.Schedule(0, ace.ActivityGenerator, map[string]any{"prompt": secret})
	begun := b.Begin(time.Second, s, 2, secret)
	b.Signal(0, ace.SignalToolEvent, []ace.ToolEvent{{EventID: "1", CallID: "1", Kind: ace.KindToolUse,
		Name: "look_up", Args: []byte(`"` + secret + `"`)}})
	b.Complete(time.Second, s, begun, ace.GeneratorResult{Plan: secret, Answer: secret, PromptTokens: 3})
	b.Task(0)
	s = b.Schedule(0, ace.ActivitySkills, secret)
	b.Fail(time.Second, s, b.Begin(time.Second, s, 1, ""), secret)
	b.Task(0)
	b.End(time.Second, &historypb.WorkflowExecutionFailedEventAttributes{Failure: historytest.Failure(
		secret)})
	spans := newRecord(rowOf(b.Events), "ace-dev", b.Events).Spans()
	if len(spans) < 6 {
		t.Fatalf("%d spans", len(spans))
	}
	for _, s := range spans {
		if strings.Contains(s.String(), "SECRET") {
			t.Errorf("span %s has the secret: %s", s.Name, s)
		}
	}
}

// TestSpansOfObservedRun: an observed run has no activities, but model calls and tool calls.
func TestSpansOfObservedRun(t *testing.T) {
	c := recordOf(t, recordedHistories+"observed.json")
	if c.state == nil || !c.state.Input.Observed {
		t.Fatal("not an observed run")
	}
	tools := 0
	for _, s := range c.Spans() {
		if attributesOf(s)["gen_ai.tool.name"] != "" {
			tools++
		}
	}
	if tools == 0 {
		t.Error("no tool calls")
	}
}

// TestSpansAreBounded: a long run has its first spans, and the number of the others.
func TestSpansAreBounded(t *testing.T) {
	b := historytest.Long(6 * maxSpans)
	b.Of("agent/long", runA, "", runA)
	spans := newRecord(rowOf(b.Events), "ace-dev", b.Events).Spans()
	if len(spans) > maxSpans+2 || attributesOf(spans[0])["acescope.spans.omitted"] == "" {
		t.Errorf("%d spans, root %v", len(spans), attributesOf(spans[0]))
	}
}

// TestStarter links a run to the span that started it, as Temporal's SDKs propagate it.
func TestStarter(t *testing.T) {
	for header, want := range map[string]string{
		`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`: "0af7651916cd43dd8448eb211c80319c",
		`{"traceparent":"00-zz-b7ad6b7169203331-01"}`:                               "",
		`{"uber-trace-id":"1:2:3:4"}`:                                               "", `"no object"`: "",
		``: "",
	} {
		b := historytest.New("Any", nil)
		b.Of("any", runA, "", runA)
		b.Events[0].GetWorkflowExecutionStartedEventAttributes().Header = headerOf(header)
		b.Close(time.Second, nil)
		links := newRecord(rowOf(b.Events), "ace-dev", b.Events).Spans()[0].Links
		got := ""
		if len(links) == 1 {
			got = hex.EncodeToString(links[0].TraceId)
		}
		if got != want {
			t.Errorf("header %s: linked to %q, want %q", header, got, want)
		}
	}
}
