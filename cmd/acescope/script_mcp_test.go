package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"acescope/engine/store/bucket/buckettest/ports"
)

// mcpTool calls a tool with the client of the MCP SDK and writes the text of the result to a file, after
// "error: " if the tool failed. The client starts acescope mcp, or connects to a port:
// mcptool FILE TOOL ARGUMENTS [PORT TOKEN-FILE | FLAG …]
func mcpTool(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: mcptool FILE TOOL ARGUMENTS [PORT TOKEN-FILE | FLAG …]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client := sdk.NewClient(&sdk.Implementation{Name: "script", Version: "1"}, nil)
	c, err := client.Connect(ctx, mcpTransport(ts, args[3:]), nil)
	ts.Check(err)
	defer c.Close()
	res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: args[1], Arguments: json.RawMessage(args[2])})
	ts.Check(err)
	text := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		text = "error: " + text
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text+"\n"), 0o600))
}

func mcpTransport(ts *testscript.TestScript, args []string) sdk.Transport {
	if len(args) == 2 && !strings.HasPrefix(args[0], "-") {
		token := strings.TrimSpace(ts.ReadFile(args[1]))
		return &sdk.StreamableClientTransport{
			Endpoint:             "http://127.0.0.1:" + args[0] + "/mcp",
			HTTPClient:           &http.Client{Transport: bearer(token)},
			DisableStandaloneSSE: true,
		}
	}
	cmd := exec.Command("acescope", append([]string{"mcp"}, args...)...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TERM", "XDG_DATA_HOME", "ACESCOPE_SESSION_ID"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return &sdk.CommandTransport{Command: cmd}
}

// bearer is a transport that sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// freePort sets a variable to an unused port: freeport VARIABLE
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport VARIABLE")
	}
	address, release, err := ports.Reserve()
	ts.Check(err)
	ts.Defer(release)
	_, port, err := net.SplitHostPort(address)
	ts.Check(err)
	ts.Setenv(args[0], port)
}

// field sets a variable to a field of the first line of a file: field VARIABLE FILE NAME
func field(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: field VARIABLE FILE NAME")
	}
	first, _, _ := strings.Cut(ts.ReadFile(args[1]), "\n")
	var o map[string]any
	ts.Check(json.Unmarshal([]byte(first), &o))
	value, ok := o[args[2]].(string)
	if !ok {
		ts.Fatalf("%s has no string %s: %s", args[1], args[2], first)
	}
	ts.Setenv(args[0], value)
}
