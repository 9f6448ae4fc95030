package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/agents/session"
)

// toolServer is the MCP server with the session's tools. The agent sends its messages one by one
// over the control protocol.
type toolServer struct {
	names  []string
	run    toolCall
	listed chan struct{} // closed when the agent knows the tools
	once   sync.Once
	calls  sync.Map // cancel functions of the requests in progress, by their ids
}

// listTimeout is how long the first message waits until the agent knows the tools. An agent that
// does not know them answers without them.
const listTimeout = 5 * time.Second

// toolCall executes a call of a tool. id is the agent's, or "".
type toolCall func(ctx context.Context, id, tool string, args json.RawMessage) (text string, failed bool)

func newToolServer(names []string, run toolCall) *toolServer {
	return &toolServer{names: names, run: run, listed: make(chan struct{})}
}

// await waits until the agent knows the tools, has ended or must stop.
func (s *toolServer) await(gone, stop <-chan struct{}) {
	if s == nil {
		return
	}
	select {
	case <-s.listed:
	case <-gone:
	case <-stop:
	case <-time.After(listTimeout):
	}
}

// sent is called after the answer to a message was sent.
func (s *toolServer) sent(message json.RawMessage) {
	var m struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(message, &m) == nil && m.Method == "tools/list" {
		s.once.Do(func() { close(s.listed) })
	}
}

// acknowledgment answers a message that is not a call.
var acknowledgment = json.RawMessage(`{"jsonrpc":"2.0","result":{}}`)

func (s *toolServer) answer(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	m, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil, fmt.Errorf("not an MCP message: %w", err)
	}
	r, ok := m.(*jsonrpc.Request)
	if !ok || !r.IsCall() {
		if ok && r.Method == "notifications/cancelled" {
			s.cancel(r.Params)
		}
		return acknowledgment, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.calls.Store(r.ID, cancel)
	defer s.calls.Delete(r.ID)
	response := &jsonrpc.Response{ID: r.ID}
	result, err := s.result(ctx, r)
	if err == nil {
		response.Result, err = json.Marshal(result)
	}
	if err != nil {
		response.Error = err
	}
	return jsonrpc.EncodeMessage(response)
}

// cancel cancels the request that a notification names.
func (s *toolServer) cancel(params json.RawMessage) {
	var p mcp.CancelledParams
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if cancel, ok := s.calls.Load(id); ok && err == nil {
		cancel.(context.CancelFunc)()
	}
}

func (s *toolServer) result(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p struct {
		mcp.CallToolParamsRaw
		ProtocolVersion string `json:"protocolVersion"`
	}
	if len(r.Params) > 0 {
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, invalid(jsonrpc.CodeInvalidParams, "%v", err)
		}
	}
	switch r.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": p.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": &mcp.Implementation{Name: session.ToolServerName, Version: "1"},
		}, nil
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		tools := []mcp.Tool{}
		for _, t := range servedTools {
			if slices.Contains(s.names, t.name) {
				tools = append(tools, mcp.Tool{Name: t.name, Description: t.description,
					InputSchema: t.schema})
			}
		}
		return map[string]any{"tools": tools}, nil
	case "tools/call":
		if !slices.Contains(s.names, p.Name) {
			return nil, invalid(jsonrpc.CodeInvalidParams, "unknown tool %q", p.Name)
		}
		id, _ := p.Meta["claudecode/toolUseId"].(string)
		text, failed := s.run(ctx, id, p.Name, p.Arguments)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}, nil
	}
	return nil, invalid(jsonrpc.CodeMethodNotFound, "unknown method %q", r.Method)
}

// invalid returns the error of a request that the server does not execute.
func invalid(code int64, format string, args ...any) error {
	return &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
