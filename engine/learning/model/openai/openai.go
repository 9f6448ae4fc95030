// Package openai is an [llm.Completer] for servers with OpenAI's Chat Completions API, such as Ollama, based
// on the official SDK.
package openai

import (
	"cmp"
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

	"acescope/engine/agents/price"
	"acescope/engine/learning/model/llm"
)

// Default base URLs.
const (
	BaseURL       = "https://api.openai.com/v1/"
	OllamaBaseURL = "http://127.0.0.1:11434/v1/"
)

// New returns a completer for a server, by default that of OpenAI. It does not read the
// environment: a key for one server must not be sent to another.
func New(s llm.Server) llm.Completer {
	s.BaseURL = strings.TrimSuffix(cmp.Or(s.BaseURL, BaseURL), "/") + "/"
	opts := []option.RequestOption{option.WithBaseURL(s.BaseURL), option.WithHTTPClient(llm.Client()),
		option.WithMaxRetries(0)}
	if s.Key != "" {
		opts = append(opts, option.WithAPIKey(s.Key))
	}
	return &completer{openai.NewChatCompletionService(opts...), openai.NewEmbeddingService(opts...),
		strings.HasPrefix(s.BaseURL, BaseURL), s}
}

type completer struct {
	chat       openai.ChatCompletionService
	embeddings openai.EmbeddingService
	newer      bool // OpenAI itself: its newer models reject max_tokens, whose successor other servers lack
	server     llm.Server
}

func (c *completer) Complete(ctx context.Context, r llm.Request, onDelta func(string)) (llm.Response, error) {
	server := c.server
	server.Model = r.Model
	var raw *http.Response
	stream := c.chat.NewStreaming(ctx, c.paramsOf(r), option.WithResponseInto(&raw))
	defer stream.Close()
	a := answer{}
	for stream.Next() {
		if !a.add(stream.Current(), onDelta) {
			return llm.Response{}, server.Malformed()
		}
	}
	if err := stream.Err(); err != nil {
		return llm.Response{}, responseError(ctx, server, err, a.got)
	}
	if !a.ended {
		return llm.Response{}, server.Incomplete(ctx, raw.Header, a.began, a.got)
	}
	return a.response(), nil
}

// Embed implements [llm.Embedder].
func (c *completer) Embed(ctx context.Context, r llm.Request) (out llm.Response, err error) {
	server := c.server
	server.Model = r.Model
	texts := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		texts[i] = m.Text
	}
	resp, err := c.embeddings.New(ctx, openai.EmbeddingNewParams{Model: r.Model,
		Input:          openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat})
	if err != nil {
		return out, responseError(ctx, server, err, 0)
	}
	out = llm.Response{Model: resp.Model, Stop: llm.StopEnd, Vectors: make([][]float64, len(texts))}
	out.Tokens.Input = resp.Usage.PromptTokens
	for _, e := range resp.Data {
		if e.Index < 0 || e.Index >= int64(len(texts)) {
			return out, server.Malformed()
		}
		out.Vectors[e.Index] = e.Embedding
	}
	return out, nil
}

func responseError(ctx context.Context, server llm.Server, err error, got int) error {
	if ctx.Err() != nil {
		return server.Broken(ctx, err, got)
	}
	if api, ok := errors.AsType[*openai.Error](err); ok {
		var header http.Header
		if api.Response != nil {
			header = api.Response.Header
		}
		return server.Status(api.StatusCode, header, api.Code+" "+api.Type,
			cmp.Or(api.Message, api.RawJSON()))
	}
	if event, ok := errors.AsType[*ssestream.StreamError](err); ok {
		code, message := streamError(event.Event.Data)
		return server.Status(0, nil, code, message)
	}
	return server.Broken(ctx, err, got)
}

// streamError parses an error event of a stream.
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

// answer accumulates the chunks of a stream.
type answer struct {
	acc          openai.ChatCompletionAccumulator
	began, ended bool
	got          int
	id           string
	at           map[int64]int64  // position of a call by the server's index
	ids          map[int64]string // ID of a call by its position
}

// add adds a chunk. Some servers change IDs and indices within a stream, so add normalizes
// them before the SDK's accumulator gets the chunk.
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

// place returns the position of a piece of a call. Some servers use the same index for all
// calls and distinguish them by ID.
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
	r := llm.Response{Model: a.acc.Model, ID: a.acc.ID, Stop: llm.StopEnd, Raw: a.acc.ChatCompletion}
	if len(a.acc.Choices) > 0 {
		ch := a.acc.Choices[0]
		r.Text = ch.Message.Content
		for i, t := range ch.Message.ToolCalls {
			id := t.ID
			id = cmp.Or(id, fmt.Sprintf("call_%d", i+1))
			r.Calls = append(r.Calls, llm.Call{ID: id, Name: t.Function.Name,
				Args: json.RawMessage(t.Function.Arguments)})
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
	if r.Temperature != nil {
		p.Temperature = param.NewOpt(*r.Temperature)
	}
	if r.Seed != nil {
		p.Seed = param.NewOpt(*r.Seed)
	}
	if c.newer {
		p.MaxCompletionTokens = param.NewOpt(r.MaxTokens)
	} else {
		p.MaxTokens = param.NewOpt(r.MaxTokens)
	}
	if len(r.System) > 0 {
		p.Messages = append(p.Messages, openai.SystemMessage(r.SystemText()))
	}
	for _, m := range r.Messages {
		p.Messages = append(p.Messages, messagesOf(m)...)
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(
			shared.FunctionDefinitionParam{Name: t.Name,
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
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name,
					Arguments: string(c.Args)}}})
	}
	return append(out, openai.ChatCompletionMessageParamUnion{OfAssistant: &msg})
}
