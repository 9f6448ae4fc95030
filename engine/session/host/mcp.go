package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolServer is the MCP server that an agent's process talks to over its control protocol:
// messages come one by one, each with its answer.
type toolServer struct {
	pipe   *messages
	end    context.CancelFunc
	listed chan struct{} // closed when the agent knows the tools
	once   sync.Once
}

// knownWithin is how long the first message to an agent waits until it knows the tools: one
// that is given at once is answered without them.
const knownWithin = 5 * time.Second

// await waits until the agent knows the tools, or has ended, or is to stop.
func (s *toolServer) await(gone, stop <-chan struct{}) {
	if s == nil {
		return
	}
	select {
	case <-s.listed:
	case <-gone:
	case <-stop:
	case <-time.After(knownWithin):
	}
}

// sent is called when the answer to a message is on its way.
func (s *toolServer) sent(message json.RawMessage) {
	var m struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(message, &m) == nil && m.Method == "tools/list" {
		s.once.Do(func() { close(s.listed) })
	}
}

// toolCall makes a call of a tool; its id is the agent's own, "" where it told none. The
// error says that there is no answer.
type toolCall func(ctx context.Context, id, tool string, args json.RawMessage) (text string, failed bool, err error)

// newToolServer serves the tools of the names.
func newToolServer(ctx context.Context, names []string, answer toolCall) (*toolServer, error) {
	server := mcp.NewServer(&mcp.Implementation{Name: serverName, Version: "1"}, nil)
	for _, t := range served {
		for _, name := range names {
			if t.name == name {
				server.AddTool(&mcp.Tool{Name: t.name, Description: t.about, InputSchema: t.schema}, handler(answer))
			}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &toolServer{pipe: newMessages(), end: cancel, listed: make(chan struct{})}
	if _, err := server.Connect(ctx, s.pipe, nil); err != nil {
		cancel()
		return nil, err
	}
	return s, nil
}

func handler(answer toolCall) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		id, _ := r.Params.Meta["claudecode/toolUseId"].(string)
		text, failed, err := answer(ctx, id, r.Params.Name, r.Params.Arguments)
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}, nil
	}
}

func (s *toolServer) close() {
	if s != nil {
		s.end()
		_ = s.pipe.Close()
	}
}

// noted answers a message that wants no answer.
var noted = json.RawMessage(`{"jsonrpc":"2.0","result":{}}`)

// message gives the server a message and waits for its answer.
func (s *toolServer) message(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	m, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil, fmt.Errorf("this is no message of MCP: %w", err)
	}
	r, ok := m.(*jsonrpc.Request)
	if !ok || !r.IsCall() {
		return noted, s.pipe.put(ctx, m)
	}
	answer := s.pipe.await(r.ID)
	defer s.pipe.forget(r.ID)
	if err := s.pipe.put(ctx, m); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return jsonrpc.EncodeMessage(m)
	case <-s.pipe.closed:
		return nil, errors.New("the tools are gone")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// messages is a transport of MCP whose messages are handed over one by one.
type messages struct {
	in     chan jsonrpc.Message
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	waits map[string]chan jsonrpc.Message // by the id of the call
}

func newMessages() *messages {
	return &messages{in: make(chan jsonrpc.Message, 16), closed: make(chan struct{}), waits: map[string]chan jsonrpc.Message{}}
}

// Connect implements [mcp.Transport].
func (p *messages) Connect(context.Context) (mcp.Connection, error) { return p, nil }

// SessionID implements [mcp.Connection].
func (p *messages) SessionID() string { return "" }

// Read implements [mcp.Connection].
func (p *messages) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.in:
		return m, nil
	case <-p.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection]. What the server says unasked is nobody's business.
func (p *messages) Write(_ context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return nil
	}
	p.mu.Lock()
	to := p.waits[key(r.ID)]
	p.mu.Unlock()
	if to != nil {
		select {
		case to <- m:
		default: // a second answer
		}
	}
	return nil
}

// Close implements [mcp.Connection].
func (p *messages) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *messages) put(ctx context.Context, m jsonrpc.Message) error {
	select {
	case p.in <- m:
		return nil
	case <-p.closed:
		return errors.New("the tools are gone")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *messages) await(id jsonrpc.ID) <-chan jsonrpc.Message {
	c := make(chan jsonrpc.Message, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits[key(id)] = c
	return c
}

func (p *messages) forget(id jsonrpc.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, key(id))
}

func key(id jsonrpc.ID) string { return fmt.Sprintf("%T %v", id.Raw(), id.Raw()) }
