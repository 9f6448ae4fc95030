package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/redact"
)

// ServerType is the type of an entry of [Input.MCPServers] that stands for acescope's own
// server of tools, by which an agent starts others.
const ServerType = "acescope"

// ServedName is what the agent knows the session's own tools by.
const ServedName = "acescope"

// Placeholders in the texts of MCP servers, which the host fills in. A secret is never written
// there: ${env:NAME} is the value that a variable has on the host.
const (
	PlaceSession = "${ACESCOPE_SESSION_ID}"
	PlaceDataDir = "${ACESCOPE_DATA_DIR}"
)

// EnvReference matches ${env:NAME}; its first group is the name.
var EnvReference = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// server is what is looked at of an entry. Its other fields are the agent's business.
type server struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	URL     string            `json:"url"`
	Env     map[string]string `json:"env"`
	Headers map[string]string `json:"headers"`
}

// shapes knows secrets by what they look like.
var shapes = redact.New()

// CheckServers says in one sentence what is wrong with servers of tools, nil where nothing
// is. served tells that the session has tools of its own, under [ServedName].
func CheckServers(servers map[string]json.RawMessage, served bool) error {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		size += len(servers[name])
		switch {
		case !serverName.MatchString(name):
			return fmt.Errorf("mcp_servers: name %.80q: letters, digits, dash and underscore only, at most 64", name)
		case served && name == ServedName:
			return fmt.Errorf("mcp_servers.%s: the session's own tools have that name: choose another", name)
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

func checkServer(raw json.RawMessage) error {
	var s server
	if err := json.Unmarshal(raw, &s); err != nil || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return fmt.Errorf(": an object with a command or a url is needed, whose env and headers hold texts")
	}
	switch s.Type {
	case ServerType:
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil || len(fields) != 1 {
			return fmt.Errorf(": type %q has no other fields", ServerType)
		}
	case "", "stdio", "http", "sse":
		if (s.Command == "") == (s.URL == "") {
			return fmt.Errorf(": either a command or a url is needed")
		}
	default:
		return fmt.Errorf(".type: %.40q is none of stdio, http, sse, %s", s.Type, ServerType)
	}
	if err := checkValues("env", s.Env); err != nil {
		return err
	}
	if err := checkValues("headers", s.Headers); err != nil {
		return err
	}
	plain := EnvReference.ReplaceAll(raw, nil)
	if !bytes.Equal(shapes.Line(plain), plain) {
		return fmt.Errorf(": it holds what looks like a secret: use ${env:NAME}, the variable of the machine that runs the agent")
	}
	return nil
}

// checkValues refuses a value whose name says that it is a secret.
func checkValues(field string, values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" && secretName(name) && !EnvReference.MatchString(values[name]) {
			return fmt.Errorf(".%s.%s: a secret is not written here: use ${env:NAME}, the variable of the machine that runs the agent", field, name)
		}
	}
	return nil
}

// secretName tells whether the value of such a variable or header is a secret.
func secretName(name string) bool {
	upper := strings.ReplaceAll(strings.ToUpper(name), "-", "_")
	return redact.SecretName(upper) || strings.Contains(upper, "AUTHORIZATION") || strings.Contains(upper, "COOKIE")
}
