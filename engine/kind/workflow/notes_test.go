package workflow_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/kind"
	"acescope/engine/kind/kinds"
	"acescope/engine/temporal/replay/replaytest"
)

// notes returns the lines of all notes on a history.
func notes(events []*historypb.HistoryEvent) (lines []string) {
	f := kinds.Of("OrderWorkflow").New()
	for _, e := range events {
		f.Apply(e)
		for _, n := range kind.Notes(f, e) {
			lines = append(lines, n.Text)
		}
	}
	return lines
}

// Every operation of an order begins and ends with a line, with its attempts and failures.
func TestNotesOfOperations(t *testing.T) {
	var got []string
	for _, line := range notes(order().Events) {
		line, _, _ = strings.Cut(line, ", took ")
		got = append(got, line)
	}
	want := []string{`charge scheduled, input {"cents":1999}`,
		`charge completed, result "paid", attempts 2; the one before failed: card declined`,
		"mail scheduled", "mail failed: no such host",
		"ShipmentWorkflow started, workflow ship-7", `ShipmentWorkflow completed, result "child"`,
		"timer started, 1m0s", "timer fired",
		`signal address received, input "Main St"`,
		"update add accepted, input 3", "update add failed: too many",
		"ledger/book scheduled, endpoint bank", "ledger/book started, endpoint bank",
		"ledger/book started, cancel requested", "ledger/book started, cancel request delivered"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The parts of an answer in a workflow stream are text, whatever framework sends them; tool calls, reasoning
// and events that repeat the text are not, nor is anything that cannot be read.
func TestStreamedText(t *testing.T) {
	m := replaytest.Begin("OrderWorkflow")
	var items []any
	for _, data := range []string{
		`{"delta":"It is ","type":"response.output_text.delta"}`,
		`{"delta":"{}","type":"response.function_call_arguments.delta"}`,
		`{"type":"model","event":{"type":"response.output_text.delta","delta":"It is "}}`,
		`{"type":"output_text_delta","delta":"21 "}`,
		`{"index":0,"part":{"content":"C","part_kind":"text"},"event_kind":"part_start"}`,
		`{"delta":{"content_delta":" in ","part_delta_kind":"text"},"event_kind":"part_delta"}`,
		`{"content":{"parts":[{"text":"hm","thought":true},{"text":"Par"}]},"partial":true}`,
		`{"content":{"parts":[{"text":"Paris"}]},"partial":false}`,
		`{"contentBlockDelta":{"delta":{"text":"is"}}}`,
		`{"type":"text-delta","id":"1","delta":"."}`,
		`{"candidates":[{"content":{"parts":[{"text":"!"}]}}]}`,
		`{broken`,
	} {
		p, err := proto.Marshal(&commonpb.Payload{Data: []byte(data)})
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, map[string]any{"topic": "events", "data": base64.StdEncoding.EncodeToString(p)})
	}
	items = append(items, map[string]any{"data": "no base64"}, "no object")
	for _, input := range []any{map[string]any{"items": items}, map[string]any{"items": 1}, "text"} {
		m.Append(&historypb.WorkflowExecutionSignaledEventAttributes{
			SignalName: "__temporal_workflow_stream_publish", Input: replaytest.Encoded(input)})
	}
	if got := notes(m.Events); !slices.Equal(got, []string{"It is 21 C in Paris.!"}) {
		t.Errorf("%q", got)
	}
}

// counter is a fold without notes of its own.
type counter struct {
	kind.Fold
	now *historypb.HistoryEvent
}

func (c *counter) Apply(e *historypb.HistoryEvent) kind.Effect {
	c.now = e
	return kind.Effect{Changed: true}
}

func (c *counter) Sections(kind.Books, *historypb.HistoryEvent) []kind.Section {
	return []kind.Section{{Title: "Reports", Items: []kind.Item{{Head: "old", Event: 1},
		{Head: "report", Outcome: kind.OutcomeOK, Event: c.now.GetEventId(),
			Fields: []kind.Field{{Label: "pages", Text: "3\n  of 4"}, {Kind: kind.FieldError, Text: "torn"}}},
		{Fields: []kind.Field{{Text: "prose"}}, Changed: true}}}}
}

// A kind needs no notes of its own: those of its sections tell what the last event changed.
func TestNotesOfSections(t *testing.T) {
	var lines []string
	c := &counter{}
	e := &historypb.HistoryEvent{EventId: 7}
	c.Apply(e)
	for _, n := range kind.Notes(c, e) {
		lines = append(lines, n.Name+"|"+n.Text)
	}
	if !slices.Equal(lines, []string{"report|report ok, pages 3 of 4: torn", "|prose"}) {
		t.Errorf("%q", lines)
	}
}
