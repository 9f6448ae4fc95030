package host

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/agents/session"
)

// TestMCPServers checks that the agent gets the session's MCP servers with expanded placeholders,
// and secrets by the environment.
func TestMCPServers(t *testing.T) {
	t.Setenv("HUB_TOKEN", "planted-hub-4711-secret")
	s := newStage(t, "claude")
	s.Host.o.MCPCommand = []string{"/bin/acescope", "mcp", "--data-dir", "/d"}
	in := s.input(1, "SCENARIO: env HUB_TOKEN; say one")
	in.MCPServers = map[string]json.RawMessage{
		"runs": json.RawMessage(`{"type":"acescope"}`),
		"hub": json.RawMessage(
			`{"type":"http","url":"https://hub.example/${ACESCOPE_SESSION_ID}","headers":{"Authorization":"Bearer ${env:HUB_TOKEN}"}}`),
		"file": json.RawMessage(`{"command":"x","args":["${ACESCOPE_DATA_DIR}"]}`),
	}
	r, err := s.run(in, 1)
	if err != nil || r.Status != session.TurnCompleted {
		t.Fatalf("%v, %+v", err, r)
	}
	start := s.agent.Did("start")[0].Text
	_, rest, _ := strings.Cut(start, "--mcp-config=")
	var config struct {
		Servers map[string]struct {
			Type, Command, URL string
			Args               []string
			Headers            map[string]string
		} `json:"mcpServers"`
	}
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&config); err != nil {
		t.Fatalf("%v: %s", err, start)
	}
	if own := config.Servers["runs"]; own.Command != "/bin/acescope" ||
		strings.Join(own.Args, " ") != "mcp --data-dir /d --session s1" || own.Type != "stdio" {
		t.Errorf("acescope's own: %+v", own)
	}
	if hub := config.Servers["hub"]; hub.URL != "https://hub.example/s1" ||
		hub.Headers["Authorization"] != "Bearer ${HUB_TOKEN}" {
		t.Errorf("hub: %+v", hub)
	}
	if file := config.Servers["file"]; len(file.Args) != 1 || file.Args[0] != s.data {
		t.Errorf("file: %+v", file)
	}
	if strings.Contains(start, "4711") {
		t.Errorf("the arguments contain a secret: %s", start)
	}
	said := s.agent.Did("api_call")
	if len(said) == 0 || !strings.Contains(r.Messages[0].Text, "HUB_TOKEN=[redacted:") {
		t.Errorf("the agent does not have the variable, or it is not redacted: %+v", r.Messages)
	}
}

// TestInvalidMCPServers checks the errors at the first turn and at the claim.
func TestInvalidMCPServers(t *testing.T) {
	for _, c := range []struct{ cli, server, want string }{
		{"codex", `{"type":"acescope"}`, "codex: configuring MCP servers is not supported"},
		{"claude", `{"command":"x","env":{"A_KEY":"${env:ACESCOPE_TEST_UNSET}"}}`,
			"mcp_servers.a: environment variable ACESCOPE_TEST_UNSET is not set on"},
		{"claude", `{"command":"x","env":{"A_KEY":"literally"}}`,
			"mcp_servers.a.env.A_KEY: do not write a secret here"},
	} {
		s := newStage(t, c.cli)
		in := s.input(1, "hello")
		in.MCPServers = map[string]json.RawMessage{"a": json.RawMessage(c.server)}
		for _, in.Unclaimed = range []bool{false, true} {
			r, err := s.run(in, 1)
			if err != nil || r.Status != session.TurnFailed || r.Failed.Type != TypeRefused ||
				!strings.Contains(r.Failed.Message, c.want) {
				t.Errorf("%s %s: %v, %+v", c.cli, c.server, err, r.Failed)
			}
			in.RunID += "x"
		}
		claim := session.Input{SessionID: "s1", Agent: c.cli, WorkingDir: s.work, MCPServers: in.MCPServers}
		if _, err := s.claim(t.Context(), claim); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("claimed: %v", err)
		}
	}
}

// TestUnclaimed checks the host at the first turn of a session that no host claimed.
func TestUnclaimed(t *testing.T) {
	s := newStage(t, "claude")
	in := s.input(1, "hello")
	in.Unclaimed = true
	r, err := s.run(in, 1)
	if err != nil || r.Status != session.TurnCompleted || r.Version != "2.1.329" {
		t.Errorf("%v, %+v", err, r)
	}
	in = s.input(2, "hello")
	in.Unclaimed, in.WorkingDir = true, filepath.Join(s.work, "none")
	if r, err := s.run(in, 1); err != nil || r.Failed == nil || r.Failed.Type != TypeBadDirectory {
		t.Errorf("%v, %+v", err, r)
	}
	s.agent.SetVersion("1.0.0")
	in = s.input(3, "hello")
	in.Unclaimed = true
	if r, err := s.run(in, 1); err != nil || r.Failed == nil || r.Failed.Type != TypeAgentTooOld {
		t.Errorf("%v, %+v", err, r)
	}
}
