// Package openai asks models of any server that speaks OpenAI's API of chat completions,
// Ollama among them, with the vendor's own library. It imports engine/model/llm, whose
// [llm.Completer] it makes, and engine/model.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"

	"acescope/engine/model"
	"acescope/engine/model/llm"
	"acescope/engine/price"
)

// What is asked where nobody says otherwise.
const (
	BaseURL       = "https://api.openai.com/v1/"
	OllamaBaseURL = "http://127.0.0.1:11434/v1/"
)

// Options say which server and with which key.
type Options struct {
	Name    string // of the provider, for errors
	BaseURL string // "": OpenAI's
	Key     string // "": none is sent
	HowKey  string // where the key comes from, for errors
}

// New makes a completer. Of the environment nothing is read: a key for one server must not
// go to another.
func New(o Options) llm.Completer {
	if o.BaseURL == "" {
		o.BaseURL = BaseURL
	}
	if !strings.HasSuffix(o.BaseURL, "/") {
		o.BaseURL += "/"
	}
	opts := []option.RequestOption{option.WithBaseURL(o.BaseURL), option.WithHTTPClient(llm.Client()), option.WithMaxRetries(0)}
	if o.Key != "" {
		opts = append(opts, option.WithAPIKey(o.Key))
	}
	// OpenAI's newer models refuse max_tokens, other servers do not know its successor.
	return &completer{chat: openai.NewChatCompletionService(opts...), newer: strings.HasPrefix(o.BaseURL, BaseURL),
		server: llm.Server{Name: o.Name, Address: llm.AddressOf(o.BaseURL), Key: o.Key, HowKey: o.HowKey}}
}

type completer struct {
	chat   openai.ChatCompletionService
	newer  bool
	server llm.Server
}

// Complete implements [llm.Completer].
func (c *completer) Complete(ctx context.Context, r llm.Request, onDelta func(string)) (llm.Response, error) {
	server := c.server
	server.Model = r.Model
	var raw *http.Response
	stream := c.chat.NewStreaming(ctx, c.paramsOf(r), option.WithResponseInto(&raw))
	defer stream.Close()
	a := answer{}
	for stream.Next() {
		if !a.add(stream.Current(), onDelta) {
			return llm.Response{}, model.Errorf(model.ServerError, "%s: %s sent events that make no answer", server.Name, server.Address)
		}
	}
	if err := stream.Err(); err != nil {
		return llm.Response{}, c.fault(ctx, server, err, a.got)
	}
	if !a.ended {
		return llm.Response{}, notEnded(ctx, server, raw, a)
	}
	return a.response(), nil
}

func notEnded(ctx context.Context, server llm.Server, raw *http.Response, a answer) error {
	if ctx.Err() != nil {
		return server.Broken(ctx, ctx.Err(), a.got)
	}
	if kind := raw.Header.Get("Content-Type"); !a.began && !strings.HasPrefix(kind, "text/event-stream") {
		return server.NotAPI(kind)
	}
	return server.Cut(a.got)
}

func (c *completer) fault(ctx context.Context, server llm.Server, err error, got int) error {
	var api *openai.Error
	var inside *ssestream.StreamError
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &api):
		var header http.Header
		if api.Response != nil {
			header = api.Response.Header
		}
		message := api.Message
		if message == "" {
			message = api.RawJSON()
		}
		return server.Status(api.StatusCode, header, api.Code+" "+api.Type, message)
	case errors.As(err, &inside):
		code, message := streamError(inside.Event.Data)
		return server.Status(0, nil, code, message)
	}
	return server.Broken(ctx, err, got)
}

// streamError reads an error that came in the middle of a stream.
func streamError(data []byte) (code, message string) {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	var e struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
	}
	if json.Unmarshal(data, &body) != nil || json.Unmarshal(body.Error, &e) != nil {
		return "server_error", string(body.Error)
	}
	return fmt.Sprint(e.Code) + " " + e.Type + " server_error", e.Message
}

// answer puts the pieces of a stream together.
type answer struct {
	acc          openai.ChatCompletionAccumulator
	began, ended bool
	got          int
	id           string
	at           map[int64]int64  // where calls go, by the index that the server gives
	ids          map[int64]string // of calls, by where they are
}

// add takes a piece. Servers differ in what they keep steady over a stream, so ids and the
// indices of calls are made steady before the vendor's own accumulator sees them.
func (a *answer) add(chunk openai.ChatCompletionChunk, onDelta func(string)) bool {
	if !a.began {
		a.began, a.id = true, chunk.ID
		a.at, a.ids = map[int64]int64{}, map[int64]string{}
	}
	chunk.ID = a.id
	text := ""
	for i := range chunk.Choices {
		ch := &chunk.Choices[i]
		if ch.Index != 0 {
			continue
		}
		text += ch.Delta.Content
		a.got += len(ch.Delta.Content)
		a.ended = a.ended || ch.FinishReason != ""
		for j := range ch.Delta.ToolCalls {
			t := &ch.Delta.ToolCalls[j]
			t.Index = a.place(t.Index, t.ID)
			a.got += len(t.Function.Arguments)
		}
	}
	onDelta(text)
	return a.acc.AddChunk(chunk)
}

// place is where a piece of a call belongs: some servers give all calls one index and tell
// them apart by their ids.
func (a *answer) place(index int64, id string) int64 {
	index = max(index, 0)
	to, known := a.at[index]
	if !known || id != "" && a.ids[to] != "" && a.ids[to] != id {
		to = int64(len(a.ids))
		a.at[index] = to
		a.ids[to] = ""
	}
	if id != "" {
		a.ids[to] = id
	}
	return to
}

func (a *answer) response() llm.Response {
	r := llm.Response{Model: a.acc.Model, ID: a.acc.ID, Stop: llm.StopEnd}
	if len(a.acc.Choices) > 0 {
		ch := a.acc.Choices[0]
		r.Text = ch.Message.Content
		for i, t := range ch.Message.ToolCalls {
			id := t.ID
			if id == "" {
				id = fmt.Sprintf("call_%d", i+1)
			}
			r.Calls = append(r.Calls, llm.Call{ID: id, Name: t.Function.Name, Args: json.RawMessage(t.Function.Arguments)})
		}
		r.Stop = stopOf(ch.FinishReason, r)
		if refusal := ch.Message.Refusal; refusal != "" {
			r.Text, r.Stop = refusal, llm.StopRefuse
		}
	}
	u := a.acc.Usage
	cached := min(u.PromptTokensDetails.CachedTokens, u.PromptTokens)
	r.Tokens = price.Tokens{Input: u.PromptTokens - cached, Output: u.CompletionTokens, CacheRead: cached}
	return r
}

func stopOf(reason string, r llm.Response) llm.Stop {
	switch {
	case reason == "length":
		return llm.StopLength
	case reason == "content_filter":
		return llm.StopRefuse
	case len(r.Calls) > 0:
		return llm.StopCalls
	}
	return llm.StopEnd
}

func (c *completer) paramsOf(r llm.Request) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: shared.ChatModel(r.Model),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}}
	if c.newer {
		p.MaxCompletionTokens = param.NewOpt(r.MaxTokens)
	} else {
		p.MaxTokens = param.NewOpt(r.MaxTokens)
	}
	var system []string
	for _, b := range r.System {
		system = append(system, b.Text)
	}
	if len(system) > 0 {
		p.Messages = append(p.Messages, openai.SystemMessage(strings.Join(system, "\n\n")))
	}
	for _, m := range r.Messages {
		p.Messages = append(p.Messages, messagesOf(m)...)
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: t.Name,
			Description: param.NewOpt(t.About), Parameters: t.Schema}))
	}
	return p
}

func messagesOf(m llm.Message) (out []openai.ChatCompletionMessageParamUnion) {
	for _, r := range m.Results {
		out = append(out, openai.ToolMessage(r.Text, r.ID))
	}
	if m.Role == llm.User {
		if m.Text != "" {
			out = append(out, openai.UserMessage(m.Text))
		}
		return out
	}
	var msg openai.ChatCompletionAssistantMessageParam
	if m.Text != "" || len(m.Calls) == 0 {
		msg.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.Calls {
		msg.ToolCalls = append(msg.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: string(c.Args)}}})
	}
	return append(out, openai.ChatCompletionMessageParamUnion{OfAssistant: &msg})
}
