package telemetry

import (
	"maps"
	"slices"
	"strings"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"acescope/engine/ace"
)

// Attributes and operations of the semantic conventions.
const (
	keyOperation    = string(semconv.GenAIOperationNameKey)
	keyWorkflow     = string(semconv.GenAIWorkflowNameKey)
	keyProvider     = string(semconv.GenAIProviderNameKey)
	keyModel        = string(semconv.GenAIRequestModelKey)
	keyAgent        = string(semconv.GenAIAgentNameKey)
	keyConversation = string(semconv.GenAIConversationIDKey)
	keyTool         = string(semconv.GenAIToolNameKey)
	keyToolCall     = string(semconv.GenAIToolCallIDKey)
	keyError        = string(semconv.ErrorTypeKey)

	keyInput     = string(semconv.GenAIUsageInputTokensKey)
	keyOutput    = string(semconv.GenAIUsageOutputTokensKey)
	keyCacheRead = string(semconv.GenAIUsageCacheReadInputTokensKey)
	keyEvalName  = string(semconv.GenAIEvaluationNameKey)
	keyEvalLabel = string(semconv.GenAIEvaluationScoreLabelKey)
	keyEvalValue = string(semconv.GenAIEvaluationScoreValueKey)
)

var (
	operationChat           = semconv.GenAIOperationNameChat.Value.AsString()
	operationInvokeAgent    = semconv.GenAIOperationNameInvokeAgent.Value.AsString()
	operationInvokeWorkflow = semconv.GenAIOperationNameInvokeWorkflow.Value.AsString()
	operationExecuteTool    = semconv.GenAIOperationNameExecuteTool.Value.AsString()
)

// maxLabel and maxText bound a label of a metric and a text of a span, in bytes.
const (
	maxLabel = 100
	maxText  = 250
)

// attributes are string, int64, float64 or count by name. Empty strings and an int64 of 0 are left out.
type attributes map[string]any

// count is a number that is exported even if it is 0.
type count int64

// encode returns the attributes by name.
func (a attributes) encode() []*commonpb.KeyValue {
	var out []*commonpb.KeyValue
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if v := a[key]; v != "" && v != int64(0) {
			out = append(out, attribute(key, v))
		}
	}
	return out
}

func attribute(key string, value any) *commonpb.KeyValue {
	v := &commonpb.AnyValue{}
	switch x := value.(type) {
	case string:
		v.Value = &commonpb.AnyValue_StringValue{StringValue: clean(x)}
	case int64:
		v.Value = &commonpb.AnyValue_IntValue{IntValue: x}
	case count:
		v.Value = &commonpb.AnyValue_IntValue{IntValue: int64(x)}
	case float64:
		v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: x}
	}
	return &commonpb.KeyValue{Key: key, Value: v}
}

// clean returns untrusted text as a collector accepts it: valid UTF-8 and short.
func clean(text string) string { return ace.Cut(strings.ToValidUTF8(text, "\ufffd"), maxText) }
