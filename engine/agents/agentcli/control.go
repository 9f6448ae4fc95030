package agentcli

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Claude's control protocol consists of JSON lines over standard input and output, between the
// CLI and its host. Invalid JSON ends the CLI, so every function here returns a whole line.

// Subtypes of control requests.
const (
	ControlInitialize = "initialize"   // host to CLI, before the first turn
	ControlInterrupt  = "interrupt"    // host to CLI: stop the turn; its result follows
	ControlEndSession = "end_session"  // host to CLI
	ControlCanUseTool = "can_use_tool" // CLI to host, with Call.AskPermission
	ControlMCPMessage = "mcp_message"  // CLI to host, with Call.HostServer
)

// UserTurn makes the line of a message to the agent. The uuid must be new: the CLI silently
// drops a message whose uuid is already in the session.
func UserTurn(uuid, text string) ([]byte, error) {
	return encode(map[string]any{
		"type": "user", "message": map[string]any{"role": "user", "content": text},
		"parent_tool_use_id": nil, "session_id": "default", "uuid": uuid,
	})
}

// Control is a line of the control protocol from the CLI. Exactly one field is set.
type Control struct {
	Request  *ControlRequest
	Response *ControlResponse
	Cancel   string // the ID of a request that the CLI withdraws
}

// ControlRequest is a request to the other side.
type ControlRequest struct {
	ID      string
	Subtype string
	Tool    *ToolRequest // of can_use_tool
	MCP     *MCPMessage  // of mcp_message
	Raw     json.RawMessage
}

// ToolRequest asks for permission to use a tool.
type ToolRequest struct {
	Name        string          `json:"tool_name"`
	Input       json.RawMessage `json:"input"`
	ToolUseID   string          `json:"tool_use_id"`
	Suggestions json.RawMessage `json:"permission_suggestions,omitempty"`
	AgentID     string          `json:"agent_id,omitempty"`
}

// MCPMessage is a JSON-RPC message of the Model Context Protocol to a server that the host
// implements.
type MCPMessage struct {
	Server  string          `json:"server_name"`
	Message json.RawMessage `json:"message"`
}

// ControlResponse is the answer to a request.
type ControlResponse struct {
	ID       string
	Response json.RawMessage // of a request that succeeded; may be nil
	Err      string          // of a request that failed
}

// DecodeControl decodes the line of an event of [KindControl] ([Event.Raw]). The result shares
// no memory with the line.
func DecodeControl(line []byte) (Control, error) {
	var in struct {
		Type      string          `json:"type"`
		RequestID string          `json:"request_id"`
		Request   json.RawMessage `json:"request"`
		Response  struct {
			Subtype   string          `json:"subtype"`
			RequestID string          `json:"request_id"`
			Response  json.RawMessage `json:"response"`
			Error     string          `json:"error"`
		} `json:"response"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return Control{}, fmt.Errorf("control line: %w", err)
	}
	switch in.Type {
	case "control_request":
		r, err := decodeRequest(in.RequestID, in.Request)
		return Control{Request: r}, err
	case "control_response":
		if in.Response.RequestID == "" {
			return Control{}, errors.New("control response without a request ID")
		}
		r := &ControlResponse{ID: in.Response.RequestID, Response: in.Response.Response}
		if in.Response.Subtype != "success" {
			r.Response, r.Err = nil, in.Response.Error
			if r.Err == "" {
				r.Err = "the request failed: " + in.Response.Subtype
			}
		}
		return Control{Response: r}, nil
	case "control_cancel_request":
		if in.RequestID == "" {
			return Control{}, errors.New("control cancel request without a request ID")
		}
		return Control{Cancel: in.RequestID}, nil
	}
	return Control{}, fmt.Errorf("unknown control line type %.40q", in.Type)
}

func decodeRequest(id string, raw json.RawMessage) (*ControlRequest, error) {
	var what struct {
		Subtype string `json:"subtype"`
	}
	if err := json.Unmarshal(raw, &what); err != nil {
		return nil, fmt.Errorf("control request: %w", err)
	}
	if id == "" {
		return nil, errors.New("control request without an ID")
	}
	r := &ControlRequest{ID: id, Subtype: what.Subtype, Raw: raw}
	switch what.Subtype {
	case ControlCanUseTool:
		r.Tool = &ToolRequest{}
		if err := json.Unmarshal(raw, r.Tool); err != nil {
			return nil, fmt.Errorf("can_use_tool: %w", err)
		}
	case ControlMCPMessage:
		r.MCP = &MCPMessage{}
		if err := json.Unmarshal(raw, r.MCP); err != nil {
			return nil, fmt.Errorf("mcp_message: %w", err)
		}
	}
	return r, nil
}

// Initialize makes the line that starts the protocol.
func Initialize(id string) ([]byte, error) {
	return request(id, map[string]any{"subtype": ControlInitialize, "hooks": nil})
}

// Interrupt makes the line that stops the turn.
func Interrupt(id string) ([]byte, error) {
	return request(id, map[string]any{"subtype": ControlInterrupt})
}

// EndSession makes the line that ends the CLI.
func EndSession(id string) ([]byte, error) {
	return request(id, map[string]any{"subtype": ControlEndSession})
}

func request(id string, request map[string]any) ([]byte, error) {
	return encode(map[string]any{"type": "control_request", "request_id": id, "request": request})
}

// Allow makes the line that lets a tool run, with its requested or a changed input.
func Allow(id string, input json.RawMessage) ([]byte, error) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return respond(id, map[string]any{"behavior": "allow", "updatedInput": input})
}

// Deny makes the line that forbids a tool call. The agent gets the reason. With interrupt the
// turn ends.
func Deny(id, reason string, interrupt bool) ([]byte, error) {
	answer := map[string]any{"behavior": "deny", "message": reason}
	if interrupt {
		answer["interrupt"] = true
	}
	return respond(id, answer)
}

// MCPResponse makes the line that answers an mcp_message with a JSON-RPC message.
func MCPResponse(id string, message json.RawMessage) ([]byte, error) {
	return respond(id, map[string]any{"mcp_response": message})
}

func respond(id string, answer any) ([]byte, error) {
	return encode(map[string]any{
		"type":     "control_response",
		"response": map[string]any{"subtype": "success", "request_id": id, "response": answer},
	})
}

// Fail makes the line that reports that a request failed.
func Fail(id, reason string) ([]byte, error) {
	return encode(map[string]any{
		"type":     "control_response",
		"response": map[string]any{"subtype": "error", "request_id": id, "error": reason},
	})
}

// encode returns v as a line with its newline.
func encode(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("line to the agent: %w", err)
	}
	return append(line, '\n'), nil
}
