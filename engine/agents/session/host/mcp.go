package host

import (
	"context"
	"encoding/json"
	"errors"
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
	conn   mcp.Connection // the client's end
	end    context.CancelFunc
	closed chan struct{}
	listed chan struct{} // closed when the agent knows the tools
	once   sync.Once

	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan *jsonrpc.Response
}

// listTimeout is how long the first message waits until the agent knows the tools. An agent that
// does not know them answers without them.
const listTimeout = 5 * time.Second

// toolCall executes a call of a tool. id is the agent's, or "".
type toolCall func(ctx context.Context, id, tool string, args json.RawMessage) (text string, failed bool)

// newToolServer serves the named tools.
func newToolServer(ctx context.Context, names []string, call toolCall) (*toolServer, error) {
	server := mcp.NewServer(&mcp.Implementation{Name: session.ToolServerName, Version: "1"}, nil)
	handler := func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		id, _ := r.Params.Meta["claudecode/toolUseId"].(string)
		text, failed := call(ctx, id, r.Params.Name, r.Params.Arguments)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}, nil
	}
	for _, t := range servedTools {
		if slices.Contains(names, t.name) {
			server.AddTool(&mcp.Tool{Name: t.name, Description: t.description, InputSchema: t.schema}, handler)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	client, transport := mcp.NewInMemoryTransports()
	_, err := server.Connect(ctx, transport, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	conn, err := client.Connect(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &toolServer{
		conn: conn, end: cancel, closed: make(chan struct{}), listed: make(chan struct{}),
		waiting: map[jsonrpc.ID]chan *jsonrpc.Response{},
	}
	go s.read(ctx)
	return s, nil
}

// read passes the server's responses on until the connection is closed.
func (s *toolServer) read(ctx context.Context) {
	defer close(s.closed)
	for {
		m, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		if r, ok := m.(*jsonrpc.Response); ok {
			s.mu.Lock()
			waiting := s.waiting[r.ID]
			delete(s.waiting, r.ID)
			s.mu.Unlock()
			if waiting != nil {
				waiting <- r
			}
		}
	}
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

func (s *toolServer) close() {
	if s != nil {
		s.end()
		_ = s.conn.Close()
	}
}

// acknowledgment answers a message that is not a call.
var acknowledgment = json.RawMessage(`{"jsonrpc":"2.0","result":{}}`)

// call gives the server a message and returns its answer.
func (s *toolServer) call(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	m, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil, fmt.Errorf("not an MCP message: %w", err)
	}
	r, ok := m.(*jsonrpc.Request)
	if !ok || !r.IsCall() {
		return acknowledgment, s.conn.Write(ctx, m)
	}
	answer := make(chan *jsonrpc.Response, 1)
	s.mu.Lock()
	s.waiting[r.ID] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, r.ID)
		s.mu.Unlock()
	}()
	if err := s.conn.Write(ctx, m); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return jsonrpc.EncodeMessage(m)
	case <-s.closed:
		return nil, errors.New("the tool server is closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
