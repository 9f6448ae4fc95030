package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/tasks/run"
)

const testToken = "0123456789abcdef"

// serving serves a fake over HTTP until the test ends.
func serving(t *testing.T, f *fake, o Options) (url string, end func()) {
	t.Helper()
	o.Service = f
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- New(o).ServeHTTP(ctx, l, testToken) }()
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the server ended with %v", err)
		}
	}
	t.Cleanup(end)
	return URL(l), end
}

// headers adds headers to each request.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for k, v := range h {
		r.Header.Set(k, v)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func dial(t *testing.T, url string, h headers) (*sdk.ClientSession, error) {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test client", Version: "1"}, nil).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: h},
			DisableStandaloneSSE: true, MaxRetries: -1}, nil)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func TestEveryToolOverHTTP(t *testing.T) {
	f := newFake()
	f.listed = []run.Summary{{RunID: "r-9", SessionID: "ses_a", AgentName: "writer", Status: run.Running},
		{RunID: "r-8", SessionID: "ses_a"}, {RunID: "r-7", SessionID: "ses_b"}}
	url, _ := serving(t, f, Options{})
	c, err := dial(t, url, headers{"Authorization": "Bearer " + testToken})
	if err != nil {
		t.Fatal(err)
	}
	everyTool(t, c, f)
}

func TestHeaders(t *testing.T) {
	f := newFake()
	url, _ := serving(t, f, Options{Caller: Caller{Session: "ses_flag", Tags: []string{"none"}}})
	c, err := dial(t, url, headers{"Authorization": "Bearer " + testToken, HeaderSession: "ses_head",
		HeaderTags: "web, internal", HeaderRequirements: `{"tags":["gpu"]}`})
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := said(t, c, "list_agent_blueprints", nil); len(out["blueprints"].([]any)) != 1 {
		t.Errorf("blueprints: %v", out)
	}
	said(t, c, "start_agent_session", map[string]any{"agent_name": "crawl", "parameters": map[string]any{},
		"mode": "async_callback", "additional_demands": map[string]any{"tags": []string{"fast"}}})
	if r := f.last(); r.ParentSessionID != "ses_head" || fmt.Sprint(r.Requirements.Tags) != "[fast gpu]" {
		t.Errorf("%+v", r)
	}
	for header, bad := range map[string][2]string{
		HeaderRequirements: {`["gpu"]`, "header X-Additional-Demands: the arguments must be a JSON object"},
		HeaderSession:      {"../x", `"../x" is not a session id`},
	} {
		c, err := dial(t, url, headers{"Authorization": "Bearer " + testToken, header: bad[0]})
		if err != nil {
			t.Fatal(err)
		}
		if _, wrong := said(t, c, "list_agent_blueprints", nil); !strings.Contains(wrong, bad[1]) {
			t.Errorf("header %s: %q", header, wrong)
		}
	}
}

// TestRefusedRequests checks the status codes of requests, in particular of those without the
// token and those of web pages.
func TestRefusedRequests(t *testing.T) {
	url, _ := serving(t, newFake(), Options{})
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	for name, c := range map[string]struct {
		method, path, body, host string
		h                        headers
		want                     int
	}{
		"fine":            {h: headers{}, want: 200},
		"own origin":      {h: headers{"Origin": strings.TrimSuffix(url, Path)}, want: 200},
		"no token":        {h: headers{"Authorization": ""}, want: 401},
		"wrong token":     {h: headers{"Authorization": "Bearer 0123456789abcdeX"}, want: 401},
		"long token":      {h: headers{"Authorization": "Bearer " + strings.Repeat("x", 30<<10)}, want: 401},
		"basic":           {h: headers{"Authorization": "Basic " + testToken}, want: 401},
		"token in url":    {h: headers{"Authorization": ""}, path: "?token=" + testToken, want: 401},
		"web page":        {h: headers{"Origin": "https://evil.example"}, want: 403},
		"local web page":  {h: headers{"Origin": "http://localhost:3000"}, want: 403},
		"opaque origin":   {h: headers{"Origin": "null"}, want: 403},
		"rebound name":    {host: "evil.example", want: 403},
		"rebound address": {host: "192.168.0.1:80", want: 403},
		"another path":    {path: "x", want: 404},
		"get":             {method: "GET", h: headers{"Accept": "text/event-stream"}, want: 405},
		"delete":          {method: "DELETE", want: 405},
		"not json":        {body: "hello", want: 400},
		"empty":           {body: " ", want: 400},
		"too much": {body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"` +
			strings.Repeat("x", MaxMessage) + `"}}`, want: 413},
		"text":         {h: headers{"Content-Type": "text/plain"}, want: 415},
		"huge headers": {h: headers{"X-Agent-Tags": strings.Repeat("x", 128<<10)}, want: 431},
	} {
		t.Run(name, func(t *testing.T) {
			method, body := "POST", list
			if c.method != "" {
				method = c.method
			}
			if c.body != "" {
				body = c.body
			}
			r, err := http.NewRequestWithContext(t.Context(), method, url+c.path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			for k, v := range map[string]string{"Authorization": "Bearer " + testToken,
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
				r.Header.Set(k, v)
			}
			for k, v := range c.h {
				r.Header.Set(k, v)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, _ := io.ReadAll(res.Body)
			if res.StatusCode != c.want {
				t.Errorf("%d %.200s, want %d", res.StatusCode, got, c.want)
			}
			if strings.Contains(string(got), testToken) {
				t.Errorf("the answer contains the token: %.200s", got)
			}
		})
	}
}

// TestWrongToken checks that a client cannot connect with a wrong token.
func TestWrongToken(t *testing.T) {
	url, _ := serving(t, newFake(), Options{})
	if _, err := dial(t, url, headers{"Authorization": "Bearer unknownunknownunknown"}); err == nil {
		t.Error("a client connected with a wrong token")
	}
}

// TestDisconnectOverHTTP checks that a run continues after its client disconnects, or after the
// server closes.
func TestDisconnectOverHTTP(t *testing.T) {
	f := newFake()
	url, end := serving(t, f, Options{})
	c, err := dial(t, url, headers{"Authorization": "Bearer " + testToken})
	if err != nil {
		t.Fatal(err)
	}
	start := &sdk.CallToolParams{Name: "start_agent_session",
		Arguments: map[string]any{"agent_name": "writer", "prompt": "p"}}
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, start)
		answered <- err
	}()
	if err := f.begun(1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	<-f.gaveUp
	if s, _ := f.State(t.Context(), "r-1"); s.Status != run.Running {
		t.Errorf("the run is %s", s.Status)
	}

	results := make(chan *sdk.CallToolResult, 1)
	go func() {
		res, err := c.CallTool(t.Context(), start)
		if err != nil {
			t.Errorf("the call ended with %v", err)
		}
		results <- res
	}()
	if err := f.begun(2); err != nil {
		t.Fatal(err)
	}
	end()
	if res := <-results; res != nil {
		if out, _ := unpack(t, res); !strings.Contains(fmt.Sprint(out["message"]), "This server is closing") {
			t.Errorf("%v", out)
		}
	}
}

func TestToken(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	token, err := LoadToken(path)
	if err != nil || len(token) < 32 {
		t.Fatalf("%q, %v", token, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if again, err := LoadToken(path); err != nil || again != token {
		t.Errorf("again: %q, %v", again, err)
	}
	for name, bad := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"readable": {token, 0o644, "others can read"},
		"short":    {"secret", 0o600, "16 to 1000"},
		"lines":    {token + "\n" + token, 0o600, "16 to 1000"},
		"empty":    {"", 0o600, "16 to 1000"},
		"binary":   {token + "\x00", 0o600, "16 to 1000"},
		"endless":  {strings.Repeat("x", 1<<20), 0o600, "16 to 1000"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(bad.content), bad.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadToken(path); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), bad.want) ||
			strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadToken(dir); !errors.Is(err, ErrToken) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := LoadToken(filepath.Join(dir, "none", "token")); err == nil {
		t.Error("a missing directory")
	}
}
