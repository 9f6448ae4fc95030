package agentcli

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Claude's control protocol: JSON lines over standard input and output, between the CLI and
// its host. A line that is no JSON ends the CLI, so every function here gives whole lines.

// Subtypes of control requests.
const (
	ControlInitialize        = "initialize"          // host to CLI, before the first turn
	ControlInterrupt         = "interrupt"           // host to CLI: stop the turn; its result comes
	ControlSetPermissionMode = "set_permission_mode" // host to CLI
	ControlSetModel          = "set_model"           // host to CLI
	ControlEndSession        = "end_session"         // host to CLI
	ControlCanUseTool        = "can_use_tool"        // CLI to host, with Call.AskPermission
	ControlMCPMessage        = "mcp_message"         // CLI to host, with Call.HostServer
	ControlHookCallback      = "hook_callback"       // CLI to host
)

// UserTurn is the line of a message to the agent. The uuid must be a new one: a message
// with one that the session knows is swallowed, without a call of the API or a result.
func UserTurn(uuid, text string) ([]byte, error) {
	return encode(map[string]any{
		"type": "user", "message": map[string]any{"role": "user", "content": text},
		"parent_tool_use_id": nil, "session_id": "default", "uuid": uuid,
	})
}

// Control is a line of the control protocol that the CLI has sent. One of the fields is set.
type Control struct {
	Request  *ControlRequest
	Response *ControlResponse
	Cancel   string // the id of a request of the CLI that must not be answered any more
}

// ControlRequest asks the other side for something.
type ControlRequest struct {
	ID      string
	Subtype string
	Tool    *ToolRequest // of can_use_tool
	MCP     *MCPMessage  // of mcp_message
	Raw     json.RawMessage
}

// ToolRequest asks whether a tool may be used.
type ToolRequest struct {
	Name        string          `json:"tool_name"`
	Input       json.RawMessage `json:"input"`
	ToolUseID   string          `json:"tool_use_id"`
	Suggestions json.RawMessage `json:"permission_suggestions,omitempty"`
	AgentID     string          `json:"agent_id,omitempty"`
}

// MCPMessage is a JSON-RPC message of the Model Context Protocol to a server that the host
// plays.
type MCPMessage struct {
	Server  string          `json:"server_name"`
	Message json.RawMessage `json:"message"`
}

// ControlResponse answers a request.
type ControlResponse struct {
	ID       string
	Response json.RawMessage // of one that succeeded; may be nil
	Err      string          // of one that did not
}

// DecodeControl reads the line of an event of [KindControl] ([Event.Raw]). It keeps nothing
// of the line.
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
			return Control{}, errors.New("control response without a request's id")
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
			return Control{}, errors.New("cancellation without a request's id")
		}
		return Control{Cancel: in.RequestID}, nil
	}
	return Control{}, fmt.Errorf("%.40q is no line of the control protocol", in.Type)
}

func decodeRequest(id string, raw json.RawMessage) (*ControlRequest, error) {
	var what struct {
		Subtype string `json:"subtype"`
	}
	if err := json.Unmarshal(raw, &what); err != nil {
		return nil, fmt.Errorf("control request: %w", err)
	}
	if id == "" {
		return nil, errors.New("control request without an id")
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

// Initialize is the line that begins the protocol.
func Initialize(id string) ([]byte, error) {
	return Request(id, ControlInitialize, map[string]any{"hooks": nil})
}

// Interrupt is the line that stops the turn.
func Interrupt(id string) ([]byte, error) { return Request(id, ControlInterrupt, nil) }

// SetPermissionMode is the line that changes what may be done unasked.
func SetPermissionMode(id string, p Permission) ([]byte, error) {
	mode, err := claudeMode(p)
	if err != nil {
		return nil, err
	}
	if mode == "" {
		mode = "default"
	}
	return Request(id, ControlSetPermissionMode, map[string]any{"mode": mode})
}

// SetModel is the line that changes the model.
func SetModel(id, model string) ([]byte, error) {
	return Request(id, ControlSetModel, map[string]any{"model": model})
}

// EndSession is the line that ends the CLI.
func EndSession(id string) ([]byte, error) { return Request(id, ControlEndSession, nil) }

// Request is the line of a request of any subtype.
func Request(id, subtype string, fields map[string]any) ([]byte, error) {
	request := map[string]any{"subtype": subtype}
	for k, v := range fields {
		request[k] = v
	}
	return encode(map[string]any{"type": "control_request", "request_id": id, "request": request})
}

// Allow is the line that lets a tool run, with the input as it was asked for or another.
func Allow(id string, input json.RawMessage) ([]byte, error) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return Respond(id, map[string]any{"behavior": "allow", "updatedInput": input})
}

// Deny is the line that keeps a tool from running. The reason is told to the agent. With
// interrupt the turn ends.
func Deny(id, reason string, interrupt bool) ([]byte, error) {
	answer := map[string]any{"behavior": "deny", "message": reason}
	if interrupt {
		answer["interrupt"] = true
	}
	return Respond(id, answer)
}

// MCPResponse is the line that answers an mcp_message with a JSON-RPC message.
func MCPResponse(id string, message json.RawMessage) ([]byte, error) {
	return Respond(id, map[string]any{"mcp_response": message})
}

// Respond is the line of an answer.
func Respond(id string, answer any) ([]byte, error) {
	return encode(map[string]any{
		"type":     "control_response",
		"response": map[string]any{"subtype": "success", "request_id": id, "response": answer},
	})
}

// Fail is the line that says that a request cannot be answered.
func Fail(id, reason string) ([]byte, error) {
	return encode(map[string]any{
		"type":     "control_response",
		"response": map[string]any{"subtype": "error", "request_id": id, "error": reason},
	})
}

// encode is a value as a line, with its end.
func encode(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("line to the agent: %w", err)
	}
	return append(line, '\n'), nil
}
