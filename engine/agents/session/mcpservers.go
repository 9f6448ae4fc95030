package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
)

// ServerType is the type of an entry of [Input.MCPServers] that stands for acescope's own MCP
// server, with which an agent starts other agents.
const ServerType = "acescope"

// ToolServerName is the name of the MCP server with the session's own tools.
const ToolServerName = "acescope"

// ToolPrefix begins the names of these tools, as Claude Code shows them.
const ToolPrefix = "mcp__" + ToolServerName + "__"

// Placeholders in the configuration of MCP servers. The host replaces them, and ${env:NAME} by
// a variable of its environment, so the configuration contains no secrets.
const (
	PlaceholderSessionID = "${ACESCOPE_SESSION_ID}"
	PlaceholderDataDir   = "${ACESCOPE_DATA_DIR}"
)

// EnvReference matches ${env:NAME}; its first group is the name.
var EnvReference = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

var redactor = sync.OnceValue(func() *redact.Redactor { return redact.New() })

// CheckServers reports the first problem of the MCP servers in one sentence, or nil. served
// reports whether the session has tools of its own, whose server is [ToolServerName].
func CheckServers(servers map[string]json.RawMessage, served bool) error {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		size += len(servers[name])
		switch {
		case !serverName.MatchString(name):
			return fmt.Errorf("mcp_servers: name %.80q: use at most 64 letters, digits, dashes and underscores", name)
		case served && name == ToolServerName:
			return fmt.Errorf("mcp_servers.%s: the name is reserved for the session's own tools", name)
		}
		if err := checkServer(servers[name]); err != nil {
			return fmt.Errorf("mcp_servers.%s%w", name, err)
		}
	}
	if size > ace.InlineBytes {
		return fmt.Errorf("mcp_servers: %d bytes; at most %d are allowed", size, ace.InlineBytes)
	}
	return nil
}

// checkServer checks one entry. The fields that it does not know are left to the agent.
func checkServer(raw json.RawMessage) error {
	var s struct {
		Type    string            `json:"type"`
		Command string            `json:"command"`
		URL     string            `json:"url"`
		Env     map[string]string `json:"env"`
		Headers map[string]string `json:"headers"`
	}
	if err := json.Unmarshal(raw, &s); err != nil || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return fmt.Errorf(": use an object with a command or a url; env and headers are objects of strings")
	}
	switch s.Type {
	case ServerType:
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil || len(fields) != 1 {
			return fmt.Errorf(": type %q has no other fields", ServerType)
		}
	case "", "stdio", "http", "sse":
		if (s.Command == "") == (s.URL == "") {
			return fmt.Errorf(": use either a command or a url")
		}
	default:
		return fmt.Errorf(".type: %.40q is not one of stdio, http, sse, %s", s.Type, ServerType)
	}
	if err := checkSecrets("env", s.Env); err != nil {
		return err
	}
	if err := checkSecrets("headers", s.Headers); err != nil {
		return err
	}
	plain := EnvReference.ReplaceAll(raw, nil)
	if !bytes.Equal(redactor().Line(plain), plain) {
		return fmt.Errorf(": it contains text that looks like a secret; %s", useEnv)
	}
	return nil
}

const useEnv = "use ${env:NAME} and set the variable on the host that runs the agent"

// checkSecrets rejects literal values whose name marks them as secret.
func checkSecrets(field string, values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" && isSecretName(name) && !EnvReference.MatchString(values[name]) {
			return fmt.Errorf(".%s.%s: do not write a secret here; %s", field, name, useEnv)
		}
	}
	return nil
}

// isSecretName reports whether the variable or header of that name contains a secret.
func isSecretName(name string) bool {
	upper := strings.ReplaceAll(strings.ToUpper(name), "-", "_")
	return redact.SecretName(upper) || strings.Contains(upper, "AUTHORIZATION") ||
		strings.Contains(upper, "COOKIE")
}
