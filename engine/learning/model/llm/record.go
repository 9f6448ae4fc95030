package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/learning/model"
)

// record adds a request and its response or error to the record of the phase.
func (s *step) record(ctx context.Context, r Request, resp Response, err error, begun time.Time) {
	recorder := calls.RecorderOf(ctx)
	if recorder == nil {
		return
	}
	c := ace.ModelCall{Provider: s.o.Name, StartedAt: begun.UTC(), Request: requestRecord(r),
		DurationMS: float64(time.Since(begun).Microseconds()) / 1000}
	if s.prompt.Name != "" {
		c.PhasePrompt = &s.prompt
	}
	if err != nil {
		c.Error = err.Error()
	} else {
		c.Response = responseRecord(resp)
	}
	recorder.Add(c)
}

func requestRecord(r Request) ace.ModelRequest {
	out := ace.ModelRequest{Model: r.Model, MaxTokens: r.MaxTokens, Sampling: r.Sampling,
		Embeddings: r.Vectors}
	for _, b := range r.System {
		out.System = append(out.System, ace.ModelText{Text: b.Text})
	}
	for _, m := range r.Messages {
		message := ace.ModelMessage{Role: string(m.Role), Content: ace.ModelText{Text: m.Text},
			Calls: callRecords(m.Calls)}
		for _, result := range m.Results {
			message.Results = append(message.Results, ace.ModelToolResult{ID: result.ID,
				Content: ace.ModelText{Text: result.Text}, Failed: result.Failed})
		}
		out.Messages = append(out.Messages, message)
	}
	for _, t := range r.Tools {
		schema, _ := json.Marshal(t.Schema) // a map of plain values
		out.Tools = append(out.Tools, ace.ModelTool{Name: t.Name, Description: t.About, Parameters: schema})
	}
	return out
}

func responseRecord(r Response) *ace.ModelResponse {
	out := &ace.ModelResponse{Model: r.Model, ID: r.ID, FinishReason: string(r.Stop),
		Text: ace.ModelText{Text: r.Text}, Calls: callRecords(r.Calls), Usage: *r.Usage}
	if r.Raw != nil {
		out.Raw, _ = json.Marshal(r.Raw) // a message that was parsed from JSON
	}
	return out
}

func callRecords(list []Call) (out []ace.ModelToolCall) {
	for _, c := range list {
		out = append(out, ace.ModelToolCall{ID: c.ID, Name: c.Name, Arguments: string(c.Args)})
	}
	return out
}

// Send implements [model.Sender].
func (p *provider) Send(ctx context.Context, recorded ace.ModelRequest) (ace.ModelResponse, error) {
	s, err := p.begin(ctx, ace.TaskContext{Model: recorded.Model}, nil)
	if err != nil {
		return ace.ModelResponse{}, err
	}
	r, err := requestOf(recorded)
	if err != nil {
		return ace.ModelResponse{}, err
	}
	r.Step = s.shared
	resp, err := s.complete(ctx, r)
	if err != nil {
		return ace.ModelResponse{}, err
	}
	return *responseRecord(resp), nil
}

// requestOf returns the request that a record describes.
func requestOf(recorded ace.ModelRequest) (Request, error) {
	if recorded.Embeddings {
		return Request{}, model.Errorf(model.BadRequest,
			"the request asked for embeddings, which have no text")
	}
	r := Request{Model: recorded.Model, MaxTokens: recorded.MaxTokens, Sampling: recorded.Sampling}
	for _, t := range recorded.System {
		r.System = append(r.System, Block{Text: t.Text})
	}
	for _, m := range recorded.Messages {
		message := Message{Role: Role(m.Role), Text: m.Content.Text}
		for _, c := range m.Calls {
			message.Calls = append(message.Calls,
				Call{ID: c.ID, Name: c.Name, Args: json.RawMessage(c.Arguments)})
		}
		for _, t := range m.Results {
			message.Results = append(message.Results, CallResult{ID: t.ID, Text: t.Content.Text,
				Failed: t.Failed})
		}
		r.Messages = append(r.Messages, message)
	}
	for _, t := range recorded.Tools {
		tool := Tool{Name: t.Name, About: t.Description}
		if err := json.Unmarshal(t.Parameters, &tool.Schema); err != nil {
			return r, fmt.Errorf("parameters of the tool %s: %w", t.Name, err)
		}
		var lists struct {
			Required []string `json:"required"`
		}
		if json.Unmarshal(t.Parameters, &lists) == nil && lists.Required != nil {
			tool.Schema["required"] = lists.Required // completers expect this type
		}
		r.Tools = append(r.Tools, tool)
	}
	return r, nil
}
