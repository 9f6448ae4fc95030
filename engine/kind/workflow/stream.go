package workflow

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/temporal/history"
)

// The signal and the update of the SDKs' workflow streams, over which a worker sends parts of a model's
// answer to the readers of a run.
const (
	streamPublish = "__temporal_workflow_stream_publish"
	streamPoll    = "__temporal_workflow_stream_poll"
)

// isStream reports whether a signal or an update carries a workflow stream.
func isStream(name string) bool { return name == streamPublish || name == streamPoll }

// streamedText returns the text of an answer that the items of a signal carry, or "".
func streamedText(e *historypb.HistoryEvent) string {
	a := e.GetWorkflowExecutionSignaledEventAttributes()
	if a.GetSignalName() != streamPublish {
		return ""
	}
	var text strings.Builder
	gjson.GetBytes(history.JSON(a.GetInput()), "items").ForEach(func(_, item gjson.Result) bool {
		data, err := base64.StdEncoding.DecodeString(item.Get("data").String())
		var p commonpb.Payload
		if err == nil && proto.Unmarshal(data, &p) == nil && gjson.ValidBytes(p.GetData()) {
			text.WriteString(textDelta(gjson.ParseBytes(p.GetData())))
		}
		return true
	})
	return text.String()
}

// textDelta returns the text of an answer that an event of a stream adds, in the form of any framework, or
// "". Parts of tool calls and of reasoning are left out.
func textDelta(v gjson.Result) string {
	switch v.Get("type").String() {
	case "response.output_text.delta", "output_text_delta", "text-delta": // OpenAI, AI SDK
		return v.Get("delta").String()
	case "modelContentBlockDeltaEvent": // Strands
		return v.Get("delta.text").String()
	}
	switch {
	case v.Get("event_kind").String() == "part_start" && v.Get("part.part_kind").String() == "text":
		return v.Get("part.content").String() // Pydantic AI
	case v.Get("delta.part_delta_kind").String() == "text":
		return v.Get("delta.content_delta").String()
	case v.Get("contentBlockDelta").Exists(): // Bedrock
		return v.Get("contentBlockDelta.delta.text").String()
	case v.Get("partial").Bool(): // ADK
		return joinTexts(v.Get("content.parts"))
	}
	return joinTexts(v.Get("candidates.0.content.parts")) // Gemini
}

func joinTexts(parts gjson.Result) string {
	var text strings.Builder
	for _, p := range parts.Array() {
		if !p.Get("thought").Bool() {
			text.WriteString(p.Get("text").String())
		}
	}
	return text.String()
}
