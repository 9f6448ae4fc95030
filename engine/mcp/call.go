package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/run"
)

// call is one call of a tool.
type call struct {
	req    *sdk.CallToolRequest
	caller Caller
}

// by says who calls, for the history.
func (c call) by() string {
	name := ""
	if p := c.req.Session.InitializeParams(); p != nil && p.ClientInfo != nil {
		name = p.ClientInfo.Name
	} else if c.req.Extra != nil {
		name, _, _ = strings.Cut(c.req.Extra.Header.Get("User-Agent"), " ")
	}
	return strings.TrimSpace("mcp " + cut(line(name)))
}

// add gives the server a tool that takes In, as the schema says. The handler's errors are
// told to the caller as errors of the tool.
func add[In any](s *Server, t *sdk.Tool, in *jsonschema.Schema, do func(context.Context, call, In) (any, error)) {
	t.InputSchema = in
	check := newChecker(in)
	s.sdk.AddTool(t, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		out, err := func() (any, error) {
			var args In
			if err := check.decode(req.Params.Arguments, &args); err != nil {
				return nil, fmt.Errorf("%w: %s: %w", run.ErrBadRequest, t.Name, err)
			}
			caller, err := s.caller(req)
			if err != nil {
				return nil, err
			}
			return do(ctx, call{req, caller}, args)
		}()
		if err != nil {
			s.note(t.Name, err)
			return refused(err), nil
		}
		return answer(out)
	})
}

// note logs what failed here. What a caller did wrong it is told, and nobody else: such an
// error may quote what was sent.
func (s *Server) note(tool string, err error) {
	for _, theirs := range []error{run.ErrBadRequest, run.ErrNoBlueprint, run.ErrNotFound, run.ErrOver, context.Canceled} {
		if errors.Is(err, theirs) {
			return
		}
	}
	s.o.Logger.Warn("a tool failed", "tool", tool, "error", line(err.Error()))
}

// refused is the answer to a call that cannot be done.
func refused(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: line(run.Sentence(err))}}}
}

// answer is a value as structured content, and as JSON in a text for clients that know
// none.
func answer(out any) (*sdk.CallToolResult, error) {
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{StructuredContent: json.RawMessage(data), Content: []sdk.Content{&sdk.TextContent{Text: string(data)}}}, nil
}

// maxLine bounds an error, in characters.
const maxLine = 2_000

// line is a text as one line without control characters.
func line(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' }), " ")
	if r := []rune(s); len(r) > maxLine {
		s = string(r[:maxLine]) + "…"
	}
	return s
}
