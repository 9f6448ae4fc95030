package ace

import (
	"encoding/json"
	"time"
)

// CallsMediaType is the media type of the artifact of a [CallLog]: a [ModelCall] per line, as JSON.
const CallsMediaType = "application/vnd.acescope.model-calls+jsonl"

// CallLog refers to the record of the requests that a phase sent to its model, in the order in which they
// ended. Where OpenTelemetry's semantic conventions for GenAI have a name, the JSON of a [ModelCall] uses it.
type CallLog struct {
	Ref
	Requests int `json:"requests"` // that are in the record
	// Omitted counts the requests that are not in the record, because it would be larger than MaxCallLog.
	Omitted int `json:"omitted,omitempty"`
	// Usage is the usage of all requests of a failed step; the result of a completed step has its usage.
	Usage *Usage `json:"usage,omitempty"`
}

// MaxCallLog bounds the record of one phase, in bytes without the texts that it refers to.
const MaxCallLog = 2 << 20

// InlineText is the size above which a text of a [ModelCall] is an artifact of its own, in bytes. Equal
// texts, such as the playbook in the system prompts of many runs, are then stored once.
const InlineText = 4 << 10

// ModelCall is one request to a model and its response or error, without secrets.
type ModelCall struct {
	Provider   string         `json:"provider"`
	StartedAt  time.Time      `json:"started_at,omitzero"`
	DurationMS float64        `json:"duration_ms"`
	Request    ModelRequest   `json:"request"`
	Response   *ModelResponse `json:"response,omitempty"`
	Error      string         `json:"error,omitempty"` // why there is no response
	// PhasePrompt is the phase prompt of the system instructions, without its text; nil if the request does
	// not use a phase prompt. The default has no version.
	PhasePrompt *PhasePrompt `json:"phase_prompt,omitempty"`
}

// ModelRequest is a request as it was sent.
type ModelRequest struct {
	Model  string      `json:"model"`
	System []ModelText `json:"system_instructions,omitempty"`
	// Repeated is the number of leading messages that the request shares with the previous request. Messages
	// holds the other messages.
	Repeated  int            `json:"repeated_messages,omitempty"`
	Messages  []ModelMessage `json:"messages"`
	Tools     []ModelTool    `json:"tools,omitempty"`
	MaxTokens int64          `json:"max_tokens,omitempty"`
	// Embeddings means that the vectors of the messages were requested; the record does not have them.
	Embeddings bool `json:"embeddings,omitempty"`
	Sampling
}

// ModelText is a text, or the artifact that holds it.
type ModelText struct {
	Text string `json:"text,omitempty"`
	Ref  *Ref   `json:"ref,omitempty"`
}

// ModelMessage is a message of a conversation: of the user, a text or results of tool calls; of the
// assistant, a text and tool calls.
type ModelMessage struct {
	Role    string            `json:"role"`
	Content ModelText         `json:"content,omitzero"`
	Calls   []ModelToolCall   `json:"tool_calls,omitempty"`
	Results []ModelToolResult `json:"tool_results,omitempty"`
}

// ModelToolCall is a tool call that a model asks for. Arguments is what the model wrote, which may not be
// JSON.
type ModelToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ModelToolResult is the result of a tool call as the model got it.
type ModelToolResult struct {
	ID      string    `json:"id"`
	Content ModelText `json:"content,omitzero"`
	Failed  bool      `json:"failed,omitempty"`
}

// ModelTool is a tool that a model may call. Parameters is a JSON Schema.
type ModelTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// ModelResponse is the answer of a model.
type ModelResponse struct {
	Model        string          `json:"model,omitempty"` // the version that answered, as the server names it
	ID           string          `json:"id,omitempty"`
	FinishReason string          `json:"finish_reason,omitempty"`
	Text         ModelText       `json:"text,omitzero"`
	Calls        []ModelToolCall `json:"tool_calls,omitempty"`
	Usage        Usage           `json:"usage"`
	// Raw is the whole message in the server's own format, if the provider has one.
	Raw json.RawMessage `json:"raw,omitempty"`
}
