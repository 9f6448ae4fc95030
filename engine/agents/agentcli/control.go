package agentcli

import (
	"encoding/json"
	"fmt"
)

// Claude's control protocol consists of JSON lines over standard input and output, between the
// CLI and its host. Invalid JSON ends the CLI, so every function here returns a whole line.

// Subtypes of control requests.
const (
	controlInterrupt  = "interrupt"     // host to CLI: stop the turn; its result follows
	controlEndSession = "end_session"   // host to CLI
	controlCanUseTool = "can_use_tool"  // CLI to host, with Call.Streaming
	controlMCPMessage = "mcp_message"   // CLI to host, with Call.HostServer
	controlInitialize = "initialize"    // host to CLI: asks for hook_callback
	controlHook       = "hook_callback" // CLI to host: a hook of initialize
)

// UserTurn makes the line of a message to the agent. The uuid must be new: the CLI silently
// drops a message whose uuid is already in the session.
func UserTurn(uuid, text string) ([]byte, error) {
	return encode(map[string]any{
		"type": "user", "message": map[string]any{"role": "user", "content": text},
		"parent_tool_use_id": nil, "session_id": "default", "uuid": uuid,
	})
}

// Control is a request of the CLI to the host. For the CLI's answer to a request of the host, at most Refused
// is set.
type Control struct {
	ID      string
	Refused string // the ID of the host's request that the CLI refused
	Cancels bool   // the CLI withdraws the request with this ID
	Subtype string
	Tool    *ToolRequest // of can_use_tool
	Hook    *ToolRequest // of hook_callback
	MCP     *MCPMessage  // of mcp_message
}

// ToolRequest asks for permission to use a tool.
type ToolRequest struct {
	Name      string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
}

// hookEvent is the event of the hook that [HookTools] registers.
const hookEvent = "PreToolUse"

type hookInput struct {
	Event string          `json:"hook_event_name"`
	Name  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
	ID    string          `json:"tool_use_id"`
}

// MCPMessage is a JSON-RPC message of the Model Context Protocol to a server that the host
// implements.
type MCPMessage struct {
	Server  string          `json:"server_name"`
	Message json.RawMessage `json:"message"`
}

// DecodeControl decodes the line of an event of [KindControl] ([Event.Raw]). The result shares
// no memory with the line.
func DecodeControl(line []byte) (Control, error) {
	var in struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
		Response  struct {
			Subtype   string `json:"subtype"`
			RequestID string `json:"request_id"`
		} `json:"response"`
		Request struct {
			Subtype string `json:"subtype"`
			ToolRequest
			MCPMessage
		} `json:"request"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return Control{}, fmt.Errorf("control line: %w", err)
	}
	switch {
	case in.Type == "control_response" && in.Response.Subtype == "error":
		return Control{Refused: in.Response.RequestID}, nil
	case in.Type == "control_response":
		return Control{}, nil
	case in.Type != "control_request" && in.Type != "control_cancel_request":
		return Control{}, fmt.Errorf("unknown control line type %.40q", in.Type)
	case in.RequestID == "":
		return Control{}, fmt.Errorf("%s without an ID", in.Type)
	}
	c := Control{ID: in.RequestID, Cancels: in.Type == "control_cancel_request", Subtype: in.Request.Subtype}
	switch c.Subtype {
	case controlHook:
		var h hookInput
		if err := json.Unmarshal(in.Request.Input, &h); err != nil || h.Event != hookEvent {
			return Control{}, fmt.Errorf("%s with an unknown input", controlHook)
		}
		c.Hook = &ToolRequest{Name: h.Name, Input: h.Input, ToolUseID: h.ID}
	case controlCanUseTool:
		c.Tool = &in.Request.ToolRequest
	case controlMCPMessage:
		c.MCP = &in.Request.MCPMessage
	}
	return c, nil
}

// HookTools makes the line after which the CLI sends a hook_callback before every tool call, also
// of tools that it may use without asking, in every permission mode.
func HookTools(id string) ([]byte, error) {
	hook := map[string]any{"matcher": nil, "hookCallbackIds": []string{id}}
	hooks := map[string]any{hookEvent: []any{hook}}
	return request(id, map[string]any{"subtype": controlInitialize, "hooks": hooks})
}

// HookDecision makes the line that answers a hook_callback: "deny", "ask", or "" for the CLI's own
// decision.
func HookDecision(id, decision, reason string) ([]byte, error) {
	if decision == "" {
		return respond(id, map[string]any{})
	}
	return respond(id, map[string]any{"hookSpecificOutput": map[string]string{
		"hookEventName": hookEvent, "permissionDecision": decision, "permissionDecisionReason": reason,
	}})
}

// Interrupt makes the line that stops the turn.
func Interrupt(id string) ([]byte, error) {
	return request(id, map[string]any{"subtype": controlInterrupt})
}

// EndSession makes the line that ends the CLI.
func EndSession(id string) ([]byte, error) {
	return request(id, map[string]any{"subtype": controlEndSession})
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
