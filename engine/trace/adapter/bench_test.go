package adapter

import (
	"fmt"
	"strings"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
)

// loop returns the history of an agent that asks a model 50 times; the conversation grows to 25 KB in the
// middle, and every request repeats it.
func loop() []*historypb.HistoryEvent {
	var steps []step
	messages := `{"role": "user", "content": "` + strings.Repeat("Read all of it, then answer. ", 60) + `"}`
	for i := range 50 {
		steps = append(steps, step{"invoke_model_activity", "desk", `{"model_name": "gpt-5", "system_instructions":
			"` + strings.Repeat("Be brief. ", 100) + `", "input": [` + messages + `], "model_settings": {"a": 1},
			"tools": [{"name": "look_up"}], "tracing": 1}`, fmt.Sprintf(`{"output": [{"type": "function_call",
			"name": "look_up", "call_id": "c%d", "arguments": "{\"page\": %d}"}], "usage": {"input_tokens": 1200,
			"input_tokens_details": {"cached_tokens": 1000}, "output_tokens": 45}}`, i, i)},
			step{"look_up", "", fmt.Sprint(i), `"found"`})
		messages += fmt.Sprintf(`, {"type": "function_call", "name": "look_up", "call_id": "c%d", "arguments":
			"{\"page\": %d}"}, {"type": "function_call_output", "call_id": "c%d", "output": "%s"}`, i, i, i,
			strings.Repeat("A line that says little. ", 30))
	}
	return events(steps...)
}

// BenchmarkFold compares the fold of a history with decoding it alone.
func BenchmarkFold(b *testing.B) {
	histories := map[string][]*historypb.HistoryEvent{"loop": loop()}
	for _, name := range []string{"oa-ok", "pa-ok", "adk-ok", "lg-ok", "st-ok"} {
		histories[name] = recorded(b, name)
	}
	for name, all := range histories {
		data, err := proto.Marshal(&historypb.History{Events: all})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/decode", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := proto.Unmarshal(data, &historypb.History{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/fold", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				fold(all)
			}
		})
	}
}
