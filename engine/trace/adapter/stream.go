package adapter

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"acescope/engine/trace"
)

// response is what a model answered.
type response struct {
	message *trace.Message
	model   string
	finish  string
	usage   gjson.Result
}

// streamed joins the events of a stream, or the chunks of a response, that a result lists. It returns false
// for a result of another form.
func streamed(v gjson.Result) (response, bool) {
	if !v.IsArray() {
		return response{}, false
	}
	items := elements(v)
	for _, item := range items {
		switch {
		case item.Get("content.parts").Exists() || item.Get("usage_metadata").Exists() ||
			item.Get("usageMetadata").Exists() || item.Get("candidates").Exists():
			return geminiChunks(items), true
		case item.Get("messageStart").Exists() || item.Get("contentBlockDelta").Exists() ||
			item.Get("type").String() == "modelMessageStartEvent":
			return bedrockEvents(items), true
		}
	}
	return response{}, false
}

// geminiChunks joins the responses of Gemini's API and those of ADK, which repeats the whole text in a last
// response that is not partial. The usage of the last response that has one counts for all.
func geminiChunks(items []gjson.Result) (r response) {
	var all, whole []trace.Message
	for _, item := range items {
		content := item.Get("content")
		if !content.Exists() {
			content = item.Get("candidates.0.content")
		}
		m := messages(content)
		all = append(all, m...)
		if item.Get("partial").Type == gjson.False {
			whole = append(whole, m...)
		}
		last(&r.model, item, "model_version", "modelVersion")
		last(&r.finish, item, "finish_reason", "finishReason", "candidates.0.finishReason")
		for _, name := range []string{"usage_metadata", "usageMetadata"} {
			if u := item.Get(name); u.IsObject() {
				r.usage = u
			}
		}
	}
	if whole != nil {
		all = whole
	}
	r.message = joined(all)
	return r
}

// bedrockEvents joins the events of Bedrock's ConverseStream, as Strands writes them in Python
// ("contentBlockDelta") and in TypeScript ("modelContentBlockDeltaEvent").
func bedrockEvents(items []gjson.Result) (r response) {
	m := trace.Message{Role: assistant}
	input := ""
	end := func() {
		if n := len(m.Calls); n > 0 && m.Calls[n-1].Arguments == nil {
			if !gjson.Valid(input) {
				quoted, _ := json.Marshal(input) // a string
				input = string(quoted)
			}
			m.Calls[n-1].Arguments = json.RawMessage(input)
		}
		input = ""
	}
	for _, item := range items {
		for _, at := range []string{"contentBlockStart.start.toolUse", "start"} {
			if start := item.Get(at); start.Get("toolUseId").Exists() {
				end()
				m.Calls = append(m.Calls, trace.ToolCall{ID: start.Get("toolUseId").String(),
					Name: start.Get("name").String()})
			}
		}
		for _, at := range []string{"contentBlockDelta.delta", "delta"} {
			delta := item.Get(at)
			m.Text += delta.Get("text").String()
			m.Reasoning += delta.Get("reasoningContent.text").String()
			for _, part := range []string{"toolUse.input", "input"} {
				input += delta.Get(part).String()
			}
		}
		if item.Get("contentBlockStop").Exists() ||
			item.Get("type").String() == "modelContentBlockStopEvent" {
			end()
		}
		last(&r.finish, item, "messageStop.stopReason", "stopReason")
		for _, name := range []string{"metadata.usage", "usage"} {
			if u := item.Get(name); u.IsObject() {
				r.usage = u
			}
		}
	}
	end()
	r.message = &m
	return r
}

// last sets a text to the first one under the names, if there is one.
func last(to *string, v valuer, names ...string) {
	if t := text(v, names); t != "" {
		*to = t
	}
}
