package adapter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/agents/price"
	"acescope/engine/temporal/historyfile"
	"acescope/engine/trace"
)

// recorded returns the events of a recorded history.
func recorded(t testing.TB, name string) []*historypb.HistoryEvent {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := historyfile.Read(f)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d histories, %v", len(all), err)
	}
	return all[0].Events
}

func fold(events []*historypb.HistoryEvent) trace.Trace {
	var f Folder
	for _, e := range events {
		f.Apply(e)
	}
	return f.Trace()
}

// outline says in a line per call what a trace holds.
func outline(t trace.Trace) string {
	var lines []string
	for _, c := range t.Calls {
		line := fmt.Sprintf("%s %s", c.Operation, c.Outcome)
		switch c.Operation {
		case trace.Chat:
			line += fmt.Sprintf(" %s/%s tokens %d", c.Agent, c.ModelName(),
				c.Usage.Tokens())
			if c.Answer != nil && strings.TrimSpace(c.Answer.Text) != "" {
				line += " " + strings.TrimSpace(c.Answer.Text)
			}
			if c.Attempts > 1 {
				line += fmt.Sprintf(" attempts %d wait %s", c.Attempts, c.Wait)
			}
		default:
			line += fmt.Sprintf(" %s %s in %s", c.Name, c.Arguments, c.Where)
			if c.Told {
				line += " told"
			}
		}
		lines = append(lines, strings.TrimSpace(strings.TrimSpace(line+" "+c.Error)+" "+c.Problem))
	}
	return strings.Join(lines, "\n")
}

// The recordings were made with real workers of the frameworks against a stub of the model APIs, which
// counts each request to OpenAI and Gemini as 1,200 tokens of input, 1,000 of them cached, and 45 of output,
// 20 of them reasoning; one to Anthropic as 150 tokens of input, 50 written to and 1,000 read from the cache,
// and 45 of output.
func TestRecordedSums(t *testing.T) {
	openai := func(n int64) trace.Sum {
		return trace.Sum{Requests: int(n), Input: 200 * n, CacheRead: 1000 * n, Output: 45 * n,
			Reasoning: 20 * n}
	}
	anthropic := func(n int64) trace.Sum {
		return trace.Sum{Requests: int(n), Input: 150 * n, CacheRead: 1000 * n, CacheWrite: 50 * n,
			Output: 45 * n}
	}
	noReasoning := func(s trace.Sum) trace.Sum { // Strands does not record it
		s.Reasoning = 0
		return s
	}
	for _, test := range []struct {
		name, framework, agent string
		want                   trace.Sum
		tools                  int
	}{
		{"oa-ok", "openai-agents", "weather-desk", openai(4), 2},
		{"oa-stream", "openai-agents", "weather-desk", openai(4), 2},
		{"oa-local", "openai-agents", "weather-desk", openai(4), 2},
		{"oa-429", "openai-agents", "weather-desk", openai(4), 2},
		{"oa-401", "openai-agents", "weather-desk", trace.Sum{Failed: 1}, 0},
		{"oa-synctool", "openai-agents", "weather-desk", openai(4), 2},
		{"oa-sub", "openai-agents", "weather-desk", openai(4), 2},
		{"pa-ok", "pydantic-ai", "weather-desk", openai(5), 3},
		{"pa-stream", "pydantic-ai", "stream-desk", openai(3), 2},
		{"pa-claude", "pydantic-ai", "claude-desk", anthropic(3), 2},
		{"pa-gemini", "pydantic-ai", "gemini-desk", openai(3), 2},
		{"adk-ok", "google-adk", "weather_desk", openai(4), 2},
		{"adk-stream", "google-adk", "weather_desk", openai(1), 0},
		{"lg-ok", "langgraph", "agent", openai(4), 2},
		{"lg-toolerr", "langgraph", "agent", openai(1), 1},
		{"st-ok", "strands", "", noReasoning(openai(5)), 3},
	} {
		got := fold(recorded(t, test.name))
		sum := got.Sum
		sum.Cost, sum.Unpriced, sum.Written = 0, 0, 0
		if sum != test.want || got.Framework != test.framework || got.Agent != test.agent ||
			got.Tools != test.tools {
			t.Errorf("%s: %s %q, %+v, %d tool calls, want %s %q, %+v, %d", test.name, got.Framework,
				got.Agent, sum, got.Tools, test.framework, test.agent, test.want, test.tools)
		}
	}
}

// What an outline of a recording must say.
func TestRecordedCalls(t *testing.T) {
	for name, want := range map[string]string{
		// A tool that ran in the workflow's code, a handoff, and the agent that it led to.
		"oa-ok": `chat ok weather-desk/gpt-5 tokens 1245
execute_tool ok get_weather {"city": "Paris"} in activity
chat ok weather-desk/gpt-5 tokens 1245
execute_tool ok convert_temp {"celsius": 21.0} in workflow code
chat ok weather-desk/gpt-5 tokens 1245
handoff ok translator {} in workflow code
chat ok translator/gpt-5-mini tokens 1245 It is 21 C (69.8 F) in Paris.`,
		// Two attempts: the wait that the server asked for is apart.
		"oa-429": "chat ok weather-desk/gpt-5 tokens 1245 attempts 2 wait 2s",
		"oa-401": "chat failed weather-desk/gpt-5 tokens 0 Non retryable OpenAI status code: 401",
		// A tool that failed without an event; the model was told.
		"oa-synctool": `execute_tool failed convert_temp {"celsius": 21.0} in workflow code told An error`,
		// The result of a tool that only the request of a local activity would have.
		"oa-local": `execute_tool unknown convert_temp {"celsius": 21.0} in`,
		// Streamed: the text stands in two chunks and once more as a whole.
		"adk-stream": "chat ok weather_desk/gemini-3-flash tokens 1245 It is 21 C (69.8 F) in Paris.",
		"pa-ok":      "chat ok translator/gpt-5-mini tokens 1245 It is 21 C (69.8 F) in Paris.",
		"lg-toolerr": `execute_tool failed get_weather {"city":"Nowhere"} in activity no such city: Nowhere`,
		"st-toolerr": `execute_tool failed get_weather {"city": "Nowhere"} in activity told no such city`,
	} {
		if got := outline(fold(recorded(t, name))); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s\nlacks\n%s", name, got, want)
		}
	}
}

// A cost that the framework wrote in the next request counts; the last one follows from the prices.
func TestWrittenCost(t *testing.T) {
	sum := fold(recorded(t, "pa-claude")).Sum
	if sum.Written != 2 || sum.Unpriced != 0 || sum.Cost < 0.0032 || sum.Cost > 0.0033 {
		t.Errorf("%+v", sum)
	}
	// The model of Strands' requests is in no event, so their cost is unknown.
	if sum := fold(recorded(t, "st-ok")).Sum; sum.Unpriced != 5 || sum.Cost != 0 {
		t.Errorf("Strands: %+v", sum)
	}
}

// What tools a run called, and of how many the outcome is known.
func TestToolCounts(t *testing.T) {
	for name, want := range map[string][3]int{"oa-ok": {2, 2, 0}, "oa-local": {2, 1, 0},
		"oa-synctool": {2, 1, 1}, "st-toolerr": {3, 2, 1}} {
		if s := fold(recorded(t, name)).Summary; [3]int{s.Tools, s.OK, s.Failed} != want {
			t.Errorf("%s: %d, ok %d, failed %d, want %v", name, s.Tools, s.OK, s.Failed, want)
		}
	}
}

// A node that returns the whole state repeats answers whose calls are no longer kept. They count once.
func TestNodeRepeatsAnswers(t *testing.T) {
	const turns = maxCalls + 50
	var steps []step
	answer := func(i int) string {
		return fmt.Sprintf(`{"type": "ai", "id": "m%d", "content": "x", "usage_metadata": {"input_tokens": 2,
			"output_tokens": 1}}`, i)
	}
	for i := range turns {
		steps = append(steps, step{"desk.agent", "", `{"langgraph_config": {"metadata": {}}}`,
			`{"result": {"messages": [` + answer(0) + "," + answer(i) + `]}}`})
	}
	got := fold(events(steps...))
	if got.Sum.Requests != turns || got.Sum.Tokens() != 3*turns || len(got.Calls) != maxCalls {
		t.Errorf("%+v, %d calls are kept", got.Sum, len(got.Calls))
	}
}

// An answer to a tool is found also after an agent that another tool asked has answered.
func TestToldAfterSubagent(t *testing.T) {
	ask := func(name, history, result string) step {
		return step{"AgentLLMActivity", "", `{"agent_name": "` + name + `", "messages": ` + history + `}`, result}
	}
	got := outline(fold(events(
		ask("boss", `[]`, `{"tool_calls": [{"tool_call_id": "a", "tool_name": "look_up", "args": {}},
			{"tool_call_id": "b", "tool_name": "ask_other", "args": {}}]}`),
		step{"look_up", "", "1", ""},
		ask("other", `[{"role": "user", "content": "?"}]`, `{"content": "!"}`),
		ask("boss", `[{"role": "tool", "tool_call_id": "a", "content": "failed"},
			{"role": "tool", "tool_call_id": "b", "content": "!"}]`, `{"content": "done"}`))))
	if !strings.Contains(got, "execute_tool failed look_up {} in activity told") ||
		!strings.Contains(got, "execute_tool ok ask_other {} in workflow code") {
		t.Error(got)
	}
}

// The trace of a clone does not change with later events.
func TestClone(t *testing.T) {
	var f Folder
	var clones []Folder
	var outlines []string
	for _, e := range recorded(t, "oa-429") {
		f.Apply(e)
		clones = append(clones, f.Clone())
		outlines = append(outlines, outline(f.Trace()))
	}
	for i, c := range clones {
		if got := outline(c.Trace()); got != outlines[i] {
			t.Fatalf("after %d events:\n%s\nlater\n%s", i+1, outlines[i], got)
		}
	}
}

// step is an activity of a history: its type and its payloads, as JSON. Without a result it fails.
type step struct{ activity, summary, input, result string }

// events returns the history of a run of activities.
func events(steps ...step) (all []*historypb.HistoryEvent) {
	at := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	add := func(of enumspb.EventType) *historypb.HistoryEvent {
		at = at.Add(time.Second)
		e := &historypb.HistoryEvent{EventId: int64(len(all) + 1), EventType: of,
			EventTime: timestamppb.New(at)}
		all = append(all, e)
		return e
	}
	for _, s := range steps {
		e := add(enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
		e.UserMetadata = &sdkpb.UserMetadata{Summary: payload(fmt.Sprintf("%q", s.summary))}
		e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityId: "same", ActivityType: &commonpb.ActivityType{Name: s.activity},
				Input: payloads(s.input)}}
		scheduled := e.EventId
		if s.result == "" {
			add(enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED).Attributes =
				&historypb.HistoryEvent_ActivityTaskFailedEventAttributes{
					ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{
						ScheduledEventId: scheduled, Failure: &failurepb.Failure{Message: "no such city"}}}
			continue
		}
		add(enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED).Attributes =
			&historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
					ScheduledEventId: scheduled, Result: payloads(s.result)}}
	}
	add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED).Attributes =
		&historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
			WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{}}
	return all
}

func payload(json string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")},
		Data: []byte(json)}
}

// payloads returns one payload of JSON that is broken into lines, also within texts.
func payloads(json string) *commonpb.Payloads {
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{
		payload(strings.Join(strings.Fields(json), " "))}}
}

// The shapes of frameworks in TypeScript, Java and Go, and of those in Python that no recording has.
func TestShapes(t *testing.T) {
	const question = "What is the weather in Paris?"
	for _, test := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"AI SDK", []step{
			{"invokeModel", "", `{"modelId": "claude-sonnet-5", "options": {"prompt": [{"role": "system",
				"content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}}`,
				`{"content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "getWeather",
				"input": "{\"city\":\"Paris\"}"}], "finishReason": {"unified": "tool-calls"}, "usage":
				{"inputTokens": {"total": 1200, "noCache": 150, "cacheRead": 1000, "cacheWrite": 50},
				"outputTokens": {"total": 45}}, "response": {"modelId": "claude-sonnet-5"}}`},
			{"getWeather", "", `{"city": "Paris"}`, ``},
			{"invokeModel", "", `{"modelId": "claude-sonnet-5", "options": {"prompt": [{"role": "user",
				"content": "Hi"}, {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1",
				"toolName": "getWeather", "input": {}}]}, {"role": "tool", "content": [{"type": "tool-result",
				"toolCallId": "c1", "toolName": "getWeather", "output": {"type": "error-text",
				"value": "ActivityFailure: Activity task failed"}}]}]}}`,
				`{"content": [{"type": "text", "text": "No."}], "usage": {"inputTokens": 1200,
				"cachedInputTokens": 1000, "outputTokens": 45, "reasoningTokens": 20}}`}},
			`chat ok /claude-sonnet-5 tokens 1245
execute_tool failed getWeather {"city":"Paris"} in activity told no such city
chat ok /claude-sonnet-5 tokens 1245 No.`},
		{"OpenAI Agents for TypeScript, streamed", []step{{"invokeModelStreamActivity", "desk",
			`{"modelName": "gpt-5-mini", "request": {"systemInstructions": "Be brief.", "input": "Hi"}}`,
			`[{"type": "response_started"}, {"type": "response_done", "response": {"output": [{"type":
			"message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}], "usage":
			{"inputTokens": 1200, "inputTokensDetails": [{"cached_tokens": 1000}], "outputTokens": 45,
			"outputTokensDetails": [{"reasoning_tokens": 20}]}}}]`}},
			`chat ok desk/gpt-5-mini tokens 1245 Hello`},
		{"Strands for TypeScript with Claude", []step{{"invokeModel", "", `{"modelName": "claude", "messages":
			[{"role": "user", "content": [{"text": "Hi"}]}], "options": {"systemPrompt": "Be brief."}}`,
			`[{"type": "modelMessageStartEvent", "role": "assistant"}, {"type": "modelContentBlockStartEvent",
			"start": {"type": "toolUseStart", "name": "getWeather", "toolUseId": "t1"}},
			{"type": "modelContentBlockDeltaEvent", "delta": {"type": "toolUseInputDelta", "input": "{\"ci"}},
			{"type": "modelContentBlockDeltaEvent", "delta": {"type": "toolUseInputDelta",
			"input": "ty\": 1}"}}, {"type": "modelContentBlockStopEvent"}, {"type": "modelMetadataEvent",
			"usage": {"inputTokens": 150, "cacheReadInputTokens": 1000, "cacheWriteInputTokens": 50,
			"outputTokens": 45}}, {"type": "modelMessageStopEvent", "stopReason": "toolUse"}]`}},
			"chat ok /claude tokens 1245\nexecute_tool unknown getWeather {\"city\": 1} in"},
		{"Google Gen AI", []step{{"gemini_api_client_async_request", "", `{"path":
			"models/gemini-3-flash:generateContent", "request_dict": {"contents": [{"role": "user", "parts":
			[{"text": "Hi"}]}]}}`, `{"headers": {}, "body": "{\"candidates\": [{\"content\": {\"role\":
			\"model\", \"parts\": [{\"functionCall\": {\"name\": \"look_up\", \"args\": {\"q\": 1}}}]},
			\"finishReason\": \"STOP\"}], \"usageMetadata\": {\"promptTokenCount\": 1200,
			\"cachedContentTokenCount\": 1000, \"candidatesTokenCount\": 25, \"thoughtsTokenCount\": 20},
			\"modelVersion\": \"gemini-3-flash\"}"}`}, {"look_up", "", `1`, `"found"`}},
			"chat ok /gemini-3-flash tokens 1245\nexecute_tool ok look_up {\"q\": 1} in activity"},
		{"Deep Agents", []step{{"deepagents.invoke_model", "", `{"model_name": "anthropic:claude-sonnet-5",
			"messages": [{"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Hi",
			"type": "human"}}]}`, `{"message": {"lc": 1, "kwargs": {"content": [{"type": "tool_use", "id":
			"t1", "name": "task", "input": {"subagent_type": "translator"}}], "tool_calls": [{"name": "task",
			"args": {"subagent_type": "translator"}, "id": "t1"}], "type": "ai", "usage_metadata":
			{"input_tokens": 1200, "output_tokens": 45, "input_token_details": {"cache_read": 1000,
			"cache_creation": 50}}, "response_metadata": {"model_name": "claude-sonnet-5"}}}}`}},
			"chat ok /claude-sonnet-5 tokens 1245\nexecute_tool unknown task {\"subagent_type\": " +
				`"translator"} in`},
		{"Spring AI", []step{{"CallChatModel", "chat: default", `{"messages": [{"role": "user", "content":
			"` + question + `"}], "model_options": {"model": "gpt-5-mini"}}`, `{"generations": [{"message":
			{"role": "assistant", "content": "21 C"}}], "metadata": {"model": "gpt-5-mini", "usage":
			{"prompt_tokens": 1200, "completion_tokens": 45}}}`}},
			"chat ok /gpt-5-mini tokens 1245 21 C"},
		// Activity IDs repeat within such a run.
		{"agent-sdk-go", []step{{"AgentLLMActivity", "", `{"agent_name": "desk", "messages": [{"role": "user",
			"content": "Hi"}]}`, `{"content": "", "tool_calls": [{"tool_call_id": "c1", "tool_name":
			"get_weather", "args": {"city": "Paris"}}], "usage": {"prompt_tokens": 1200,
			"cached_prompt_tokens": 1000, "completion_tokens": 45, "reasoning_tokens": 20}}`},
			{"AgentToolExecuteActivity", "", `{"tool_name": "get_weather", "tool_call_id": "c1", "args":
			{"city": "Paris"}}`, `"sunny"`},
			{"AgentLLMActivity", "", `{"agent_name": "desk", "messages": []}`, `{"content": "Sunny."}`}},
			`chat ok desk/ tokens 1245
execute_tool ok get_weather {"city": "Paris"} in activity
chat ok desk/ tokens 0 Sunny.`},
		{"MCP", []step{{"temporalio.mcp.docs.call-tool", "", `{"name": "search", "arguments": {"q": 1}}`,
			`{"content": [{"type": "text", "text": "x"}], "is_error": true}`}},
			`execute_tool failed search {"q": 1} in MCP server`},

		// Shapes that no adapter understands.
		{"another shape", []step{{"invoke_model_activity", "", `{"prompt": "Hi"}`, `{"text": "Hello"}`}},
			"chat ok / tokens 0 input.0.tracing is missing"},
		{"no answer", []step{{"CallChatModel", "", `{"messages": ["Hi"]}`, `{"other": 1}`}},
			"chat ok / tokens 0 the result has neither an answer nor a usage where CallChatModel has them"},
		{"a negative figure", []step{{"CallChatModel", "", `{"messages": ["Hi"]}`,
			`{"generations": [{"message": {"content": "x"}}], "metadata": {"usage": {"prompt_tokens": -5, "completion_tokens": 1}}}`}},
			"chat ok / tokens 0 x usage: prompt_tokens is -5"},
		{"an activity of one's own", []step{{"charge_card", "", `{"model": "x"}`, `{"usage": {}}`}}, ""},
	} {
		if got := outline(fold(events(test.steps...))); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// What the user's own adapter says comes first.
func TestUsersAdapter(t *testing.T) {
	own, err := parse([]byte(`
[[adapters]]
framework = "our-loop"
activity = ["Ask*"]
agent = "activity.1"
model = "input.0.model"
messages = ["input.0.history"]
answer = ["result.reply"]
input_tokens = ["result.cost.in"]
cache_read_tokens = ["result.cost.cached"]
output_tokens = ["result.cost.out"]
`))
	if err != nil {
		t.Fatal(err)
	}
	Use(own, price.Shipped)
	t.Cleanup(func() { Use(nil, price.Shipped) })
	got := fold(events(step{"AskPlanner", "",
		`{"model": "gpt-5", "history": [{"role": "user", "text": "Hi"}]}`,
		`{"reply": "Hello", "cost": {"in": 1200, "cached": 1000, "out": 45}}`}))
	want := "chat ok Planner/gpt-5 tokens 1245 Hello"
	if outline(got) != want || got.Sum.Input != 200 || got.Calls[0].Asked[0].Text != "Hi" {
		t.Errorf("%s, %+v; want %s", outline(got), got.Sum, want)
	}
	// It comes before that of a framework which has the same type, also for its pattern.
	own[0].Activity, own[0].Agent = Paths{"Call*Model"}, nil
	Use(own, price.Shipped)
	got = fold(events(step{"CallChatModel", "", `{"model": "qwen3:8b", "messages": ["Hi"]}`,
		`{"reply": "Hello", "cost": {"in": 5, "out": 7}}`}))
	if c := got.Calls[0]; outline(got) != "chat ok /qwen3:8b tokens 12 Hello" || c.Usage.CacheRead != nil {
		t.Errorf("%s, %+v", outline(got), c.Usage)
	}
	for text, mistake := range map[string]string{
		"activity = ['x']\nmodel = ['output.model']": "does not begin with",
		"model = ['input.0']":                        "names no activity",
		"activity = ['x']\noperation = 'talk'":       "is not chat",
	} {
		own, err := parse([]byte("[[adapters]]\n" + text))
		if err == nil {
			err = own[0].Check()
		}
		if err == nil || !strings.Contains(err.Error(), mistake) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzPayloads folds the recordings with one payload replaced: nothing but the call may depend on it.
func FuzzPayloads(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `"x"`, `{"usage": {"input_tokens": 1e300}}`,
		`{"output": [[[]]]}`,
		`{"content": {"parts": {"parts": 1}}}`, `[{"content": {"parts": []}}]`, "\xff"} {
		f.Add(seed, uint8(3))
	}
	histories := map[string][]*historypb.HistoryEvent{}
	for _, name := range []string{"oa-ok", "pa-ok", "adk-ok", "lg-ok", "st-ok"} {
		histories[name] = recorded(f, name)
	}
	f.Fuzz(func(t *testing.T, text string, at uint8) {
		for name, all := range histories {
			all = slices.Clone(all)
			i := int(at) % len(all)
			e := proto.CloneOf(all[i])
			all[i] = e
			if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
				a.Input = &commonpb.Payloads{Payloads: []*commonpb.Payload{payload(text)}}
			} else if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
				a.Result = &commonpb.Payloads{Payloads: []*commonpb.Payload{payload(text)}}
			}
			if sum := fold(all).Sum; sum.Input < 0 || sum.Output < 0 || sum.Cost < 0 {
				t.Errorf("%s: %+v", name, sum)
			}
		}
	})
}
