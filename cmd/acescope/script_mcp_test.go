package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
)

// mcpTool calls a tool with the official client and writes what it answers to a file: the
// text, in a line, after "error: " where it is a tool's error. The client starts acescope
// mcp, or with a port speaks to the one that is served there:
// mcptool FILE TOOL ARGUMENTS [PORT TOKEN-FILE | FLAG …]
func mcpTool(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: mcptool FILE TOOL ARGUMENTS [PORT TOKEN-FILE | FLAG …]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "script", Version: "1"}, nil).Connect(ctx, mcpTransport(ts, args[3:]), nil)
	ts.Check(err)
	defer c.Close()
	res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: args[1], Arguments: json.RawMessage(args[2])})
	ts.Check(err)
	said := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		said = "error: " + said
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(said+"\n"), 0o600))
}

func mcpTransport(ts *testscript.TestScript, args []string) sdk.Transport {
	if len(args) == 2 && !strings.HasPrefix(args[0], "-") {
		token := strings.TrimSpace(ts.ReadFile(args[1]))
		return &sdk.StreamableClientTransport{Endpoint: "http://127.0.0.1:" + args[0] + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true}
	}
	cmd := exec.Command("acescope", append([]string{"mcp"}, args...)...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TERM", "XDG_DATA_HOME", "ACESCOPE_SESSION_ID"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return &sdk.CommandTransport{Command: cmd}
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// freePort puts a port that nobody has into a variable: freeport VARIABLE
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport VARIABLE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	ts.Check(l.Close())
}

// field puts a field of the first line of a file into a variable: field VARIABLE FILE NAME
func field(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: field VARIABLE FILE NAME")
	}
	first, _, _ := strings.Cut(ts.ReadFile(args[1]), "\n")
	var o map[string]any
	ts.Check(json.Unmarshal([]byte(first), &o))
	value, ok := o[args[2]].(string)
	if !ok {
		ts.Fatalf("%s has no text %s: %s", args[1], args[2], first)
	}
	ts.Setenv(args[0], value)
}
