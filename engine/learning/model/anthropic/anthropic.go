// Package anthropic is an [llm.Completer] for Anthropic's Messages API, based on the official SDK.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"acescope/engine/agents/price"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
)

// Defaults.
const (
	BaseURL      = "https://api.anthropic.com/"
	DefaultModel = "claude-sonnet-5-5"
)

// New returns a completer for a server, by default that of Anthropic. It does not read the
// environment.
func New(s llm.Server) llm.Completer {
	s.BaseURL = cmp.Or(s.BaseURL, BaseURL)
	opts := []option.RequestOption{option.WithBaseURL(s.BaseURL), option.WithHTTPClient(llm.Client()),
		option.WithMaxRetries(0)}
	if s.Key != "" {
		opts = append(opts, option.WithAPIKey(s.Key))
	}
	return &completer{anthropic.NewMessageService(opts...), s}
}

type completer struct {
	messages anthropic.MessageService
	server   llm.Server
}

func (c *completer) Complete(ctx context.Context, r llm.Request, onDelta func(string)) (llm.Response, error) {
	server := c.server
	server.Model = r.Model
	params, err := paramsOf(r)
	if err != nil {
		return llm.Response{}, model.Errorf(model.BadRequest, "%s: %v", server.Name, err)
	}
	var raw *http.Response
	stream := c.messages.NewStreaming(ctx, params, option.WithResponseInto(&raw))
	defer stream.Close()
	var m anthropic.Message
	got, ended := 0, false
	for stream.Next() {
		e := stream.Current()
		text := e.Delta.Text
		got += len(text) + len(e.Delta.PartialJSON)
		if err := m.Accumulate(e); err != nil {
			return llm.Response{}, server.Malformed()
		}
		ended = ended || e.Type == "message_stop"
		onDelta(text)
	}
	if err := stream.Err(); err != nil {
		return llm.Response{}, responseError(ctx, server, err, got)
	}
	if !ended {
		return llm.Response{}, server.Incomplete(ctx, raw.Header, m.ID != "", got)
	}
	return responseOf(m), nil
}

func responseError(ctx context.Context, server llm.Server, err error, got int) error {
	api, ok := errors.AsType[*anthropic.Error](err)
	if !ok || ctx.Err() != nil {
		return server.Broken(ctx, err, got)
	}
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(api.RawJSON()), &body) != nil || body.Error.Message == "" {
		body.Error.Message = api.RawJSON()
	}
	var header http.Header
	if api.Response != nil {
		header = api.Response.Header
	}
	return server.Status(api.StatusCode, header, string(api.Type()), body.Error.Message)
}

func paramsOf(r llm.Request) (anthropic.MessageNewParams, error) {
	p := anthropic.MessageNewParams{Model: anthropic.Model(r.Model), MaxTokens: r.MaxTokens}
	if r.Temperature != nil {
		p.Temperature = param.NewOpt(*r.Temperature)
	}
	for _, b := range r.System {
		block := anthropic.TextBlockParam{Text: b.Text}
		if b.Cache {
			block.CacheControl = anthropic.NewCacheControlEphemeralParam()
		}
		p.System = append(p.System, block)
	}
	for _, m := range r.Messages {
		p.Messages = append(p.Messages, messageOf(m))
	}
	for _, t := range r.Tools {
		schema := anthropic.ToolInputSchemaParam{Properties: t.Schema["properties"]}
		schema.Required, _ = t.Schema["required"].([]string)
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: t.Name,
			Description: param.NewOpt(t.About), InputSchema: schema}})
	}
	if calls := toolsCalled(r.Messages); len(r.Tools) == 0 && len(calls) > 0 {
		// The API requires the tools of a conversation with calls, though none may be called.
		p.Tools = calls
		p.ToolChoice = anthropic.ToolChoiceUnionParam{OfNone: new(anthropic.NewToolChoiceNoneParam())}
	}
	if len(p.Messages) == 0 {
		return p, errors.New("the request has no messages")
	}
	return p, nil
}

// toolsCalled returns the tools that the messages call, by name only.
func toolsCalled(messages []llm.Message) (tools []anthropic.ToolUnionParam) {
	seen := map[string]bool{}
	for _, m := range messages {
		for _, c := range m.Calls {
			if !seen[c.Name] {
				seen[c.Name] = true
				tools = append(tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{Name: c.Name}})
			}
		}
	}
	return tools
}

func messageOf(m llm.Message) anthropic.MessageParam {
	if native, ok := m.Native.(anthropic.MessageParam); ok {
		return native
	}
	var blocks []anthropic.ContentBlockParamUnion
	for _, r := range m.Results {
		blocks = append(blocks, anthropic.NewToolResultBlock(r.ID, r.Text, r.Failed))
	}
	if m.Text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(m.Text))
	}
	for _, c := range m.Calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, c.Args, c.Name))
	}
	if m.Role == llm.Assistant {
		return anthropic.NewAssistantMessage(blocks...)
	}
	return anthropic.NewUserMessage(blocks...)
}

func responseOf(m anthropic.Message) llm.Response {
	r := llm.Response{Model: string(m.Model), ID: m.ID, Stop: stopOf(m.StopReason), Native: m.ToParam(),
		Raw: m}
	var text strings.Builder
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "tool_use":
			r.Calls = append(r.Calls, llm.Call{ID: b.ID, Name: b.Name, Args: slices.Clone(b.Input)})
		}
	}
	r.Text = text.String()
	u := m.Usage
	r.Tokens = price.Tokens{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadInputTokens,
		CacheWrite5m: u.CacheCreation.Ephemeral5mInputTokens,
		CacheWrite1h: u.CacheCreation.Ephemeral1hInputTokens}
	if rest := u.CacheCreationInputTokens - r.Tokens.CacheWrite5m - r.Tokens.CacheWrite1h; rest > 0 {
		r.Tokens.CacheWrite5m += rest
	}
	return r
}

func stopOf(reason anthropic.StopReason) llm.Stop {
	switch reason {
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return llm.StopLength
	case anthropic.StopReasonToolUse:
		return llm.StopCalls
	case anthropic.StopReasonRefusal:
		return llm.StopRefuse
	}
	return llm.StopEnd
}
