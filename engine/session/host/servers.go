package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"acescope/engine/agentcli"
	"acescope/engine/session"
)

// equipped is a call with the servers of tools that the session gives its agent, and the
// variables that they need. What a variable of this machine holds goes by the agent's
// environment and is filled in by the agent: so it stands in no argument, which everybody on
// the machine could read.
func (h *Host) equipped(in session.TurnInput, call agentcli.Call) (agentcli.Call, []string, error) {
	if len(in.MCPServers) == 0 {
		return call, nil, nil
	}
	if err := session.CheckServers(in.MCPServers, len(in.Served) > 0); err != nil {
		return call, nil, &agentcli.CallError{CLI: agentcli.CLI(in.Agent), Reason: err.Error()}
	}
	servers, env := map[string]json.RawMessage{}, []string{}
	for name, raw := range in.MCPServers {
		filled, needs, err := h.filled(in.SessionID, raw)
		if err != nil {
			return call, nil, &agentcli.CallError{CLI: agentcli.CLI(in.Agent), Reason: fmt.Sprintf("mcp_servers.%s: %v", name, err)}
		}
		servers[name], env = filled, append(env, needs...)
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return call, nil, err
	}
	call.MCPConfig = string(config)
	slices.Sort(env)
	return call, slices.Compact(env), nil
}

// filled is the entry of a server as the agent is given it, and the variables that it needs.
func (h *Host) filled(sessionID string, raw json.RawMessage) (json.RawMessage, []string, error) {
	var s struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, nil, err
	}
	if s.Type == session.ServerType {
		own, err := json.Marshal(map[string]any{"type": "stdio", "command": h.o.Tools[0], "args": append(slices.Clone(h.o.Tools[1:]), "--session", sessionID)})
		return own, nil, err
	}
	var env []string
	for _, m := range session.EnvReference.FindAllSubmatch(raw, -1) {
		name := string(m[1])
		value, ok := os.LookupEnv(name)
		if !ok {
			return nil, nil, fmt.Errorf("the variable %s is not set on %s", name, h.name)
		}
		env = append(env, name+"="+value)
	}
	raw = session.EnvReference.ReplaceAll(raw, []byte("$${$1}"))
	for place, value := range map[string]string{session.PlaceSession: sessionID, session.PlaceDataDir: h.o.DataDir} {
		quoted, err := json.Marshal(value)
		if err != nil {
			return nil, nil, err
		}
		raw = bytes.ReplaceAll(raw, []byte(place), quoted[1:len(quoted)-1])
	}
	return raw, env, nil
}
