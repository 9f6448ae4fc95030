package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"go.uber.org/goleak"

	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// serveStdio is a variable that makes this test binary serve a fake over stdin and stdout.
const serveStdio = "ACESCOPE_MCP_TEST_STDIO"

func TestMain(m *testing.M) {
	if os.Getenv(serveStdio) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	f := newFake()
	go func() {
		for n := 1; f.begun(n) == nil; n++ {
			f.end(fmt.Sprintf("r-%d", n), run.Result{Status: run.Completed,
				Output: json.RawMessage(`{"pages":3}`), OutputIs: "json"})
		}
	}()
	s := New(Options{Service: f, Version: "test"})
	if err := s.ServeStream(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// client connects the official client to a server of the fake.
func client(t *testing.T, f *fake, o Options, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	o.Service, o.Version = f, "test"
	here, there := sdk.NewInMemoryTransports()
	s := New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, there) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test client", Version: "1"}, opts).Connect(ctx, here,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); cancel(); <-done })
	return c
}

// said returns the structured content of a call's answer, or the text of its error.
func said(t *testing.T, c *sdk.ClientSession, tool string, args any) (map[string]any, string) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return unpack(t, res)
}

func unpack(t *testing.T, res *sdk.CallToolResult) (map[string]any, string) {
	t.Helper()
	if len(res.Content) != 1 {
		t.Fatalf("%d contents", len(res.Content))
	}
	text := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		if res.StructuredContent != nil || text == "" || strings.ContainsAny(text, "\n\r\x00\x1b") {
			t.Errorf("an error that is not one line: %q, %v", text, res.StructuredContent)
		}
		return nil, text
	}
	var same map[string]any
	if err := json.Unmarshal([]byte(text), &same); err != nil {
		t.Fatalf("the text is not JSON: %v", err)
	}
	out := res.StructuredContent.(map[string]any)
	if fmt.Sprint(out) != fmt.Sprint(same) {
		t.Errorf("text and structured content differ: %s, %v", text, out)
	}
	return out, ""
}

// TestToolsFile checks that the server serves the tools of tools.json, whose bounds are those of the
// contract.
func TestToolsFile(t *testing.T) {
	c := client(t, newFake(), Options{}, nil)
	res, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var file []*sdk.Tool
	if err := json.Unmarshal(toolsJSON, &file); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(file, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	got, want := marshal(t, res.Tools), marshal(t, file)
	if got != want {
		t.Errorf("served:\n%s\nfile:\n%s", got, want)
	}
	for path, want := range map[string]int64{
		"start_agent_session.properties.prompt.maxLength":  run.MaxPrompt,
		"resume_agent_session.properties.prompt.maxLength": run.MaxPrompt,
		"list_agent_sessions.properties.limit.maximum":     maxListed,
	} {
		tool, path, _ := strings.Cut(path, ".")
		if got := gjson.GetBytes(inputSchema(tool), path).Int(); got != want {
			t.Errorf("%s %s is %d, not %d", tool, path, got, want)
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestEveryTool calls each tool once.
func TestEveryTool(t *testing.T) {
	f := newFake()
	f.listed = []run.Summary{{RunID: "r-9", SessionID: "ses_a", AgentName: "writer", Status: run.Running},
		{RunID: "r-8", SessionID: "ses_a", Status: run.Completed},
		{RunID: "r-7", SessionID: "ses_b", Status: run.Failed}}
	everyTool(t, client(t, f, Options{}, nil), f)
}

// everyTool calls each tool once.
func everyTool(t *testing.T, c *sdk.ClientSession, f *fake) {
	out, _ := said(t, c, "list_agent_blueprints", nil)
	if got := fmt.Sprint(out["blueprints"]); !strings.Contains(got, "takes:parameters") ||
		!strings.Contains(got, "it ends in the middle") || strings.Contains(got, "/a/") {
		t.Errorf("blueprints: %s", got)
	}

	out, _ = said(t, c, "start_agent_session",
		map[string]any{"agent_name": "crawl", "parameters": map[string]any{"url": "x"},
			"execution_mode": "async_poll"})
	if out["run_id"] != "r-1" || out["status"] != "pending" || out["session_id"] != "ses_000000000001" {
		t.Errorf("start: %v", out)
	}
	out, _ = said(t, c, "get_agent_session_status", map[string]any{"session_id": "r-1"})
	if out["status"] != "running" || out["agent_name"] != "crawl" || out["message"] != "The run is running." {
		t.Errorf("status: %v", out)
	}
	out, _ = said(t, c, "get_agent_session_result", map[string]any{"session_id": "r-1"})
	if out["status"] != "running" || out["output"] != nil || !strings.Contains(out["message"].(string),
		"not ended") {
		t.Errorf("result of a running run: %v", out)
	}
	code := 0
	f.end("r-1", run.Result{Status: run.Completed, Output: json.RawMessage(`{"pages":[1,2]}`),
		OutputIs: "json", Stdout: `{"pages":[1,2]}`, ExitCode: &code, DurationSeconds: 1.5, Runner: "lnch_1"})
	out, _ = said(t, c, "get_agent_session_result", map[string]any{"session_id": "ses_000000000001"})
	if fmt.Sprint(out["output"]) != "map[pages:[1 2]]" || out["exit_code"] != 0.0 ||
		out["duration_seconds"] != 1.5 || out["stderr"] != "" || out["runner_id"] != "lnch_1" {
		t.Errorf("result: %v", out)
	}

	// sync, with a run id
	answered := make(chan map[string]any)
	go func() {
		out, _ := said(t, c, "resume_agent_session", map[string]any{"session_id": "r-1", "prompt": "go on"})
		answered <- out
	}()
	if err := f.begun(2); err != nil {
		t.Fatal(err)
	}
	if r := f.last(); r.SessionID != "ses_000000000001" || r.Prompt != "go on" || r.Mode != run.Sync {
		t.Errorf("resumed with %+v", r)
	}
	f.end("r-2", run.Result{Status: run.Completed, Output: json.RawMessage(`"done"`), OutputIs: "text",
		Turn: 2})
	if out := <-answered; out["output"] != "done" || out["turn"] != 2.0 || out["stdout"] != nil ||
		out["type"] != "resume_session" {
		t.Errorf("resume: %v", out)
	}

	said(t, c, "start_agent_session", map[string]any{"agent_name": "writer", "prompt": "p",
		"mode": "async_poll"})
	out, _ = said(t, c, "stop_agent_session", map[string]any{"session_id": "r-3", "reason": "enough"})
	if out["status"] != "stopping" || len(f.stopped) != 1 || f.stopped[0].Reason != "enough" ||
		!strings.HasPrefix(f.stopped[0].By, "mcp") {
		t.Errorf("stop: %v, %+v", out, f.stopped)
	}
	f.end("r-3", run.Result{Status: run.Stopped})
	if _, wrong := said(t, c, "stop_agent_session",
		map[string]any{"session_id": "r-3"}); !strings.Contains(wrong, "it has ended") {
		t.Errorf("stopped twice: %q", wrong)
	}

	out, _ = said(t, c, "list_agent_sessions", map[string]any{"agent_name": "writer", "status": "running",
		"limit": 1})
	sessions := out["sessions"].([]any)
	if len(sessions) != 1 || sessions[0].(map[string]any)["run_id"] != "r-9" || out["more"] != true {
		t.Errorf("list: %v", out)
	}
	if q := f.filters[0]; q.AgentName != "writer" || q.Status != run.Running {
		t.Errorf("filter: %+v", q)
	}
}

func TestEveryToolOverStdio(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveStdio+"=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test client", Version: "1"}, nil).Connect(t.Context(),
		&sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := said(t, c, "list_agent_blueprints", nil); len(out["blueprints"].([]any)) != 3 {
		t.Errorf("blueprints: %v", out)
	}
	out, _ := said(t, c, "start_agent_session",
		map[string]any{"agent_name": "crawl", "parameters": map[string]any{"url": "x"}})
	if out["status"] != "completed" || fmt.Sprint(out["output"]) != "map[pages:3]" {
		t.Errorf("start: %v", out)
	}
	if out, _ = said(t, c, "get_agent_session_status",
		map[string]any{"session_id": "r-1"}); out["status"] != "completed" {
		t.Errorf("status: %v", out)
	}
	if err := c.Close(); err != nil || stderr.String() != "" {
		t.Errorf("the end: %v, %q", err, stderr.String())
	}
}

// TestMaximumWait checks the answer after the maximum wait.
func TestMaximumWait(t *testing.T) {
	f := newFake()
	c := client(t, f, Options{Wait: time.Millisecond}, nil)
	out, _ := said(t, c, "start_agent_session", map[string]any{"agent_name": "writer", "prompt": "p"})
	if out["status"] != "running" || !strings.Contains(fmt.Sprint(out["message"]),
		"continues: call get_agent_session_status") {
		t.Errorf("a wait that took too long: %v", out)
	}
}

// TestCanceledCall checks that a run continues after its call was canceled.
func TestCanceledCall(t *testing.T) {
	f := newFake()
	c := client(t, f, Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() {
		_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "start_agent_session",
			Arguments: map[string]any{"agent_name": "writer", "prompt": "p"}})
		answered <- err
	}()
	if err := f.begun(1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if err := <-f.gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	if out, _ := said(t, c, "get_agent_session_status",
		map[string]any{"session_id": "r-1"}); out["status"] != "running" || len(f.stopped) != 0 {
		t.Errorf("the run does not continue: %v", out)
	}
}

// TestCloseEndsWaits checks the answer to a waiting call when the server closes.
func TestCloseEndsWaits(t *testing.T) {
	f := newFake()
	o := Options{Service: f}
	s := New(o)
	here, there := sdk.NewInMemoryTransports()
	go s.serve(t.Context(), there)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "c"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		_ = f.begun(1)
		s.Close()
	}()
	out, _ := said(t, c, "start_agent_session", map[string]any{"agent_name": "writer", "prompt": "p"})
	if !strings.Contains(fmt.Sprint(out["message"]), "This server is closing") {
		t.Errorf("%v", out)
	}
}

// TestProgress checks that a client gets progress notifications.
func TestProgress(t *testing.T) {
	f := newFake()
	notices := make(chan string, 100)
	c := client(t, f, Options{Progress: time.Millisecond},
		&sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
			r *sdk.ProgressNotificationClientRequest) {
			select {
			case notices <- r.Params.Message:
			default:
			}
		}})
	go func() {
		for n := range notices {
			if strings.HasPrefix(n, "running") {
				f.end("r-1", run.Result{Status: run.Completed})
				return
			}
		}
	}()
	p := &sdk.CallToolParams{Name: "start_agent_session", Arguments: map[string]any{"agent_name": "writer",
		"prompt": "p"}}
	p.SetProgressToken("t")
	res, err := c.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := unpack(t, res); out["status"] != "completed" {
		t.Errorf("%v", out)
	}
}

// TestCallback checks that async_callback needs the caller's session.
func TestCallback(t *testing.T) {
	f := newFake()
	args := map[string]any{"agent_name": "writer", "prompt": "p", "execution_mode": "async_callback"}
	_, wrong := said(t, client(t, f, Options{}, nil), "start_agent_session", args)
	if !strings.Contains(wrong, "has no session: use async_poll") {
		t.Errorf("a callback without a session: %q", wrong)
	}
	out, _ := said(t, client(t, f, Options{Caller: Caller{Session: "ses_mine"}}, nil), "start_agent_session",
		args)
	if out["execution_mode"] != "async_callback" || !strings.Contains(fmt.Sprint(out["message"]),
		"Session ses_mine gets a message") || f.last().ParentSessionID != "ses_mine" {
		t.Errorf("%v, %+v", out, f.last())
	}
}

// TestTagsHideBlueprints checks the tags and requirements of the caller.
func TestTagsHideBlueprints(t *testing.T) {
	f := newFake()
	c := client(t, f, Options{Caller: Caller{Tags: []string{"web"},
		Requirements: runner.Requirements{Hostname: "here", Tags: []string{"b"}}}}, nil)
	out, _ := said(t, c, "list_agent_blueprints", nil)
	if len(out["blueprints"].([]any)) != 1 {
		t.Errorf("blueprints: %v", out)
	}
	_, wrong := said(t, c, "start_agent_session", map[string]any{"agent_name": "writer", "prompt": "p"})
	if !strings.Contains(wrong, `blueprint "writer" not found; list_agent_blueprints`) {
		t.Errorf("a hidden blueprint: %q", wrong)
	}
	said(t, c, "start_agent_session", map[string]any{"agent_name": "crawl", "parameters": map[string]any{},
		"mode": "async_poll", "additional_demands": map[string]any{"tags": []string{"a", "b"}}})
	if d := f.last().Requirements; d.Hostname != "here" || fmt.Sprint(d.Tags) != "[a b]" {
		t.Errorf("requirements: %+v", d)
	}
	_, wrong = said(t, c, "start_agent_session",
		map[string]any{"agent_name": "crawl", "parameters": map[string]any{},
			"additional_demands": map[string]any{"hostname": "there"}})
	if !strings.Contains(wrong, `hostname "there" contradicts hostname "here"`) {
		t.Errorf("requirements that contradict: %q", wrong)
	}
}

// TestBadInput checks the errors of wrong arguments.
func TestBadInput(t *testing.T) {
	f := newFake()
	c := client(t, f, Options{}, nil)
	long := strings.Repeat("x", 200<<10)
	for _, bad := range []struct{ tool, args, want string }{
		{"start_agent_session", `{}`, "agent_name: is missing"},
		{"start_agent_session", `{"agent_name":7,"prompt":"p"}`, "agent_name: got number, want string"},
		{"start_agent_session", `{"agent_name":"writer","promt":"p"}`,
			`promt: unknown field; did you mean "prompt"?`},
		{"start_agent_session", `{"agent_name":"writer","Prompt":"p"}`,
			`Prompt: unknown field; did you mean "prompt"?`},
		{"start_agent_session", `{"agent_name":"writer","prompt":""}`, "prompt is empty"},
		{"start_agent_session", `{"agent_name":"writer","prompt":null}`, "agent writer needs a prompt"},
		{"start_agent_session", `{"agent_name":"writer","prompt":"` + long + `"}`,
			"prompt: maxLength: got 204,800, want 100,000"},
		{"start_agent_session", `{"agent_name":"crawl","parameters":{"x":"` + strings.Repeat("x", 300<<10) +
			`"}}`, "at most 262144 are allowed"},
		{"start_agent_session", `{"agent_name":"crawl","parameters":"{}"}`,
			"parameters: got string, want object"},
		{"start_agent_session", `{"agent_name":"crawl","parameters":[1]}`,
			"parameters: got array, want object"},
		{"start_agent_session", `{"agent_name":"crawl","parameters":null}`,
			"needs parameters, {} where it needs none"},
		{"start_agent_session", `{"agent_name":"crawl"}`, "needs parameters, {} where it needs none"},
		{"start_agent_session", `{"agent_name":"writer","prompt":"p","execution_mode":"later"}`,
			`execution_mode: value must be one of 'sync', 'async_poll', 'async_callback'`},
		{"start_agent_session", `{"agent_name":"writer","prompt":"p","execution_mode":"sync","mode":"async_poll"}`, "give only one"},
		{"start_agent_session", `{"agent_name":"writer","prompt":"p","additional_demands":{"os":"plan9"}}`,
			`additional_demands.os: unknown field; known: executor_type, hostname, project_dir, tags`},
		{"start_agent_session", `{"agent_name":"writer","prompt":"p","additional_demands":{"tags":"gpu"}}`,
			"additional_demands.tags: got string, want array"},
		{"start_agent_session", `{"agent_name":"writer","prompt":"p","additional_demands":{"tags":[1]}}`,
			"additional_demands.tags[0]: got number, want string"},
		{"start_agent_session", `{"agent_name":"../../etc/passwd","prompt":"p"}`,
			`agent_name "../../etc/passwd" is not a valid name`},
		{"start_agent_session", `{"agent_name":"a/b","prompt":"p"}`, `agent_name "a/b" is not a valid name`},
		{"start_agent_session", `{"agent_name":"a\u0000b","prompt":"p"}`,
			`agent_name "a\x00b" is not a valid name`},
		{"start_agent_session", `{"agent_name":"` + long + `","prompt":"p"}`, "is not a valid name"},
		{"start_agent_session", `{"agent_name":"missing","prompt":"p"}`, `blueprint "missing" not found`},
		{"resume_agent_session", `{"session_id":"ses_x"}`, "prompt: is missing"},
		{"resume_agent_session", `{"session_id":"ses_x","prompt":"p"}`, `run or session "ses_x" not found`},
		{"resume_agent_session", `{"session_id":"ses/../x","prompt":"p"}`, "is not a valid id"},
		{"get_agent_session_status", `{}`, "session_id: is missing"},
		{"get_agent_session_status", `{"session_id":"..","id":1}`, `id: unknown field; known: session_id`},
		{"get_agent_session_status", `{"session_id":""}`, `session_id "" is not a valid id`},
		{"get_agent_session_status", `{"session_id":"missing"}`, `run or session "missing" not found`},
		{"get_agent_session_result", `{"session_id":"a\nb"}`, `session_id "a\nb" is not a valid id`},
		{"list_agent_sessions", `{"limit":0}`, "limit: minimum: got 0, want 1"},
		{"list_agent_sessions", `{"limit":1.5}`, "limit: got number, want integer"},
		{"list_agent_sessions", `{"limit":100000}`, "limit: maximum: got 100,000, want 200"},
		{"list_agent_sessions", `{"agent_name":"../x"}`, "is not a valid name"},
		{"list_agent_blueprints", `{"x":1}`, `x: unknown field; no fields are known`},
		{"stop_agent_session", `{"session_id":["a"]}`, "session_id: got array, want string"},
	} {
		_, wrong := said(t, c, bad.tool, json.RawMessage(bad.args))
		if !strings.Contains(wrong, bad.want) {
			t.Errorf("%s %.80s: %.300q, want %q", bad.tool, bad.args, wrong, bad.want)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("%d runs were started", len(f.asked))
	}
	if _, err := c.CallTool(t.Context(),
		&sdk.CallToolParams{Name: "delete_all_agent_sessions"}); err == nil ||
		!strings.Contains(err.Error(), `unknown tool "delete_all_agent_sessions"`) {
		t.Errorf("an unknown tool: %v", err)
	}
}

// TestKeepsParameters checks that parameters arrive unchanged: {} is kept, and so are numbers.
func TestKeepsParameters(t *testing.T) {
	f := newFake()
	c := client(t, f, Options{}, nil)
	for _, p := range []string{`{}`, `{"n":12345678901234567890,"f":1e400,"t":"<&>"}`} {
		said(t, c, "start_agent_session",
			json.RawMessage(`{"agent_name":"crawl","mode":"async_poll","parameters":`+p+`}`))
		var got, want any
		if json.Unmarshal(f.last().Parameters, &got) == nil && json.Unmarshal([]byte(p), &want) == nil {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s became %s", p, f.last().Parameters)
			}
		}
		if !strings.Contains(p, "n") {
			continue
		}
		if !strings.Contains(string(f.last().Parameters), "12345678901234567890") ||
			!strings.Contains(string(f.last().Parameters), "1e400") {
			t.Errorf("%s became %s", p, f.last().Parameters)
		}
	}
}
