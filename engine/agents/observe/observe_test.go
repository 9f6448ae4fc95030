package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
)

// fakeServer is a Temporal server that applies events to runs and can be unavailable.
type fakeServer struct {
	mu     sync.Mutex
	away   bool
	runs   map[string][]*fakeRun // by workflow id, the newest last
	poison string                // text that the server refuses, or ""
	news   chan struct{}
}

type fakeRun struct {
	client.WorkflowRun
	state ace.State
	start string
	by    any // the memo
}

func (r *fakeRun) GetRunID() string { return "run-" + r.start }

func newFakeServer() *fakeServer {
	return &fakeServer{runs: map[string][]*fakeRun{}, news: make(chan struct{}, 1)}
}

func (h *fakeServer) newest(id string) *fakeRun {
	if n := len(h.runs[id]); n > 0 {
		return h.runs[id][n-1]
	}
	return nil
}

func (h *fakeServer) apply(r *fakeRun, arg any) {
	r.state.Apply(ace.ToolEvents(arg.([]ace.ToolEvent)))
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// refuses reports whether a signal is too large or contains the poison.
func (h *fakeServer) refuses(arg any) bool {
	data := mustJSON(arg)
	return len(data) > 2<<20 || h.poison != "" && strings.Contains(string(data), h.poison)
}

func (h *fakeServer) SignalWorkflow(_ context.Context, id, _, _ string, arg any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.newest(id)
	switch {
	case h.away:
		return serviceerror.NewUnavailable("away")
	case h.refuses(arg):
		return serviceerror.NewInvalidArgument("Blob data size exceeds limit.")
	case r == nil || r.state.Finished():
		return serviceerror.NewNotFound("no such run")
	}
	h.apply(r, arg)
	return nil
}

func (h *fakeServer) SignalWithStartWorkflow(_ context.Context, id, _ string, arg any,
	o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away {
		return nil, serviceerror.NewUnavailable("away")
	}
	if h.refuses(arg) {
		return nil, serviceerror.NewInvalidArgument("Blob data size exceeds limit.")
	}
	r := h.newest(id)
	if r == nil || r.state.Finished() {
		r = &fakeRun{start: o.Memo[ace.MemoObserved].(ace.ObservedStart).ID, by: o.Memo[ace.MemoBy]}
		r.state.Apply(ace.Started(args[0].(ace.TaskInput)))
		h.runs[id] = append(h.runs[id], r)
	}
	h.apply(r, arg)
	return r, nil
}

func (h *fakeServer) DescribeWorkflowExecution(_ context.Context, id,
	_ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.newest(id)
	if h.away {
		return nil, serviceerror.NewUnavailable("away")
	}
	if r == nil {
		return nil, serviceerror.NewNotFound("no such run")
	}
	memo, err := converter.GetDefaultDataConverter().ToPayload(ace.ObservedStart{ID: r.start})
	if err != nil {
		return nil, err
	}
	status := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	if r.state.Finished() {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status,
		Execution: &commonpb.WorkflowExecution{RunId: r.GetRunID()},
		Memo:      &commonpb.Memo{Fields: map[string]*commonpb.Payload{ace.MemoObserved: memo}}}}, nil
}

func (h *fakeServer) setAway(away bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = away
}

// until waits for a condition of the server's runs.
func (h *fakeServer) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		h.mu.Lock()
		yes := ok()
		h.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-h.news:
		case <-time.After(20 * time.Millisecond):
		case <-late:
			t.Fatal("timeout: " + what)
		}
	}
}

type fakeStore struct{ sizes map[string]int }

func (s *fakeStore) PutBytes(_ context.Context, data []byte, mediaType string) (ace.Ref, error) {
	s.sizes[string(data[:20])] = len(data)
	return ace.Ref{SHA256: strings.Repeat("ab", 32), Size: int64(len(data)), MediaType: mediaType}, nil
}

// forward starts a forwarder. The returned function ends it, as a crash would if crash is set.
func forward(t *testing.T, h *fakeServer, dir string, redact Redact) (end func(crash bool)) {
	t.Helper()
	to := NewTemporal(h, ace.TaskQueue, redact, slog.New(slog.DiscardHandler))
	f := &Forwarder{Dir: dir, To: to, Redact: redact, Artifacts: &fakeStore{map[string]int{}}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	var once sync.Once
	end = func(crash bool) {
		once.Do(func() {
			before, err := os.ReadFile(filepath.Join(dir, positionFile))
			cancel()
			closed, stop := context.WithCancel(context.Background())
			stop()
			to.Close(closed)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if crash && err == nil { // the last deliveries were not saved
				_ = os.WriteFile(filepath.Join(dir, positionFile), before, 0o600)
			} else if crash {
				_ = os.Remove(filepath.Join(dir, positionFile))
			}
		})
	}
	t.Cleanup(func() { end(false) })
	return end
}

func hooks(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/hooks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

const hookRun = "ace/claude-5e551011-0000-4000-8000-000000000001"

func appendHooks(t *testing.T, dir string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err := spool.Append(dir, spool.Hook, []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHooksBecomeRun checks the run of a session's hooks.
func TestHooksBecomeRun(t *testing.T) {
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	forward(t, h, dir, nil)
	appendHooks(t, dir, hooks(t)...)
	h.until(t, "the run ends", func() bool { r := h.newest(hookRun); return r != nil && r.state.Finished() })
	s := &h.newest(hookRun).state
	if by := h.newest(hookRun).by; by != ace.User() || s.Input.By != by {
		t.Errorf("observed by %v, %q", by, s.Input.By)
	}
	if in := s.Input; in.Prompt != "How many files are there?" || in.DatasetID != "project" ||
		!ace.IsAgent(in.Source) || in.Provider != in.Source || in.SkillsConfig.PermissionMode != "default" {
		t.Errorf("input %+v", in)
	}
	var got []string
	for _, c := range s.Calls() {
		got = append(got, fmt.Sprint(c.ID, " ", c.Name, " ", c.OK, " ", c.Pending, " ", c.DurationMS, " ",
			c.Error))
	}
	if want := "toolu_1 Bash true false 12 |toolu_2 Read true false 3 |toolu_3 Bash false false 5 exit code 1"; strings.Join(got, "|") != want {
		t.Errorf("calls %s", strings.Join(got, "|"))
	}
	if ref := s.Calls()[1].Result; !strings.Contains(string(ref), `"size":40`) {
		t.Errorf("large result: %s", ref)
	}
	if n := s.SkillUsage().Other[ace.KindMessage]; n != 7 {
		t.Errorf("%d messages: %v", n, s.SkillUsage().Other)
	}
	if p := s.CurrentPhase(); p.Status != ace.Completed || p.Answer != "There are 2 files." ||
		len(p.Steps) != 1 || p.Steps[0].Status != ace.StatusDone {
		t.Errorf("%+v", p)
	}
}

// TestOlderHook checks that the records are delivered that an older hook wrote to a file of their own.
func TestOlderHook(t *testing.T) {
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	appendHooks(t, dir, hooks(t)[1])
	older := filepath.Join(dir, "extra-1")
	if err := os.Rename(filepath.Join(dir, spool.Active), older); err != nil {
		t.Fatal(err)
	}
	forward(t, h, dir, nil)
	h.until(t, "the run starts", func() bool { return h.newest(hookRun) != nil })
	if _, err := os.Stat(older); err == nil {
		t.Error("the file is still there")
	}
}

// TestSharedHooks runs the recorded hooks of Claude Code if they are available.
func TestSharedHooks(t *testing.T) {
	data, err := os.ReadFile("/work/shared/data/agent-streams/claude/hooks-tool-bash.jsonl")
	if err != nil {
		t.Skip("no recorded hooks")
	}
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	forward(t, h, dir, nil)
	appendHooks(t, dir, strings.Split(strings.TrimSpace(string(data)), "\n")...)
	const id = "ace/claude-11111111-1111-4111-8111-111111111111"
	h.until(t, "the run ends", func() bool { r := h.newest(id); return r != nil && r.state.Finished() })
	s := &h.newest(id).state
	if c := s.Calls(); len(c) != 1 || c[0].Name != "Bash" || c[0].DurationMS != 44 ||
		s.Input.Prompt != "SCENARIO:tool-bash please" ||
		s.Answer != "Done: the command printed its greeting." {
		t.Errorf("calls %+v, input %+v", c, s.Input)
	}
}

// TestDeliversOnce checks that all events arrive once and in order although the forwarder is killed
// after any record and the server is unavailable at times.
func TestDeliversOnce(t *testing.T) {
	lines := hooks(t)
	whole, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	forward(t, whole, dir, nil)
	appendHooks(t, dir, lines...)
	whole.until(t, "the run ends", func() bool {
		r := whole.newest(hookRun)
		return r != nil && r.state.Finished()
	})
	want := whole.newest(hookRun).state.SkillUsage()
	for n := range lines {
		h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
		h.setAway(n%3 == 1)
		end := forward(t, h, dir, nil)
		appendHooks(t, dir, lines[:n]...)
		if n > 1 && n%3 != 1 {
			h.until(t, "the first arrive", func() bool { return h.newest(hookRun) != nil })
		}
		end(n%2 == 0)
		h.setAway(false)
		appendHooks(t, dir, lines[n:]...)
		end = forward(t, h, dir, nil)
		h.until(t, "the run ends", func() bool {
			r := h.newest(hookRun)
			return r != nil && r.state.Finished()
		})
		end(true)
		forward(t, h, dir, nil) // delivers again what was not saved
		appendHooks(t, dir, strings.ReplaceAll(strings.ReplaceAll(lines[0], "0001", "0002"), "startup",
			"resume"), strings.ReplaceAll(lines[1], "0001", "0002"))
		h.until(t, "another session begins", func() bool {
			return h.newest(strings.ReplaceAll(hookRun, "0001", "0002")) != nil
		})
		if runs := len(h.runs[hookRun]); runs != 1 {
			t.Errorf("killed after %d: %d runs", n, runs)
		}
		got := h.newest(hookRun).state.SkillUsage()
		if got.Total != want.Total || fmt.Sprint(got.Other) != fmt.Sprint(want.Other) || got.Dropped != 0 {
			t.Errorf("killed after %d: %d calls, %v, want %d, %v", n, got.Total, got.Other, want.Total,
				want.Other)
		}
	}
}

// TestResumed checks that a session that is resumed after its end is a new run.
func TestResumed(t *testing.T) {
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	forward(t, h, dir, nil)
	lines := hooks(t)
	appendHooks(t, dir, lines...)
	appendHooks(t, dir, strings.Replace(lines[0], "startup", "resume", 1),
		strings.Replace(lines[1], "How many", "And how many", 1), lines[len(lines)-1])
	h.until(t, "both end", func() bool {
		return len(h.runs[hookRun]) == 2 && h.newest(hookRun).state.Finished()
	})
	if in := h.newest(hookRun).state.Input; !strings.HasPrefix(in.Prompt, "And how many") {
		t.Errorf("%+v", in)
	}
}

// TestGarbage checks that malformed records are counted and do not block later ones.
func TestGarbage(t *testing.T) {
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	appendHooks(t, dir, "no json", `{"session_id": 7}`, `{"hook_event_name": "PreToolUse"}`, `[]`, "\x00\xff")
	f, err := os.OpenFile(filepath.Join(dir, spool.Active), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "\nace1 h 1 2 torn 500 0 {\"session_i")
	f.Close()
	if err := spool.Append(dir, spool.HookTruncated,
		[]byte(`{"session_id": "cut", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": "aaaaaaa`)); err != nil {
		t.Fatal(err)
	}
	appendHooks(t, dir, hooks(t)...)
	forward(t, h, dir, nil)
	h.until(t, "all records are ignored or forwarded, and the run ends", func() bool {
		p, err := readPosition(dir)
		r := h.newest(hookRun)
		// one of the seven starts a session
		counted := err == nil && p.Ignored == 7 && p.Forwarded == int64(len(hooks(t)))
		return counted && r != nil && r.state.Finished() && h.newest("ace/claude-cut") != nil
	})
}

// TestSpooledEvents checks that events of observers of earlier versions, which wrote to the spool,
// arrive in order, once and without secrets.
func TestSpooledEvents(t *testing.T) {
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	redact := func(data []byte) []byte { return []byte(strings.ReplaceAll(string(data), "hunter2", "***")) }
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			b := &recorder{emit: func(o Observation) {
				if err := spool.Append(dir, spool.Event, mustJSON(o)); err != nil {
					t.Error(err)
				}
			}}
			id := fmt.Sprint("t", n)
			b.Start(ace.TaskInput{TaskID: id, Prompt: "my password is hunter2", Model: "m"})
			b.Phase(id, ace.PhaseGenerator)
			b.Step(id, ace.PhaseGenerator, ace.GeneratorResult{Plan: "think"}, nil)
			for call := range 300 {
				c := fmt.Sprint("c", call)
				b.ToolEvent(id, ace.ToolEvent{CallID: c, Kind: ace.KindToolUse, Name: "look",
					Args: json.RawMessage(`"hunter2"`)})
				b.ToolEvent(id, ace.ToolEvent{CallID: c, Kind: ace.KindToolResult})
			}
			b.Step(id, ace.PhaseCurator, ace.CuratorResult{Accepted: []ace.Operation{{Type: ace.OpAdd,
				Content: "c"}}}, nil)
			b.Finish(id, ace.Finish{Answer: "42"}, nil)
			b.ToolEvent("other", ace.ToolEvent{Kind: ace.KindMessage, Name: "of a run without start"})
		})
	}
	all.Wait()
	forward(t, h, dir, redact)
	for n := range 3 {
		id := fmt.Sprint("ace/t", n)
		h.until(t, id+" ends", func() bool { r := h.newest(id); return r != nil && r.state.Finished() })
		s := &h.newest(id).state
		if u := s.SkillUsage(); u.Total != 300 || u.Skills[0].OK != 300 || s.Answer != "42" ||
			s.Plan != "think" || len(s.Delta.Operations) != 1 || strings.Contains(s.Input.Prompt, "hunter2") {
			t.Errorf("%s: %d calls, %+v, %+v", id, u.Total, u.Skills, s.CurrentPhase())
		}
	}
}

// TestTemporal checks that the observer retries until the server is available.
func TestTemporal(t *testing.T) {
	h := newFakeServer()
	h.setAway(true)
	to := NewTemporal(h, ace.TaskQueue, nil, nil)
	o := to
	o.Start(ace.TaskInput{TaskID: "t"})
	o.ToolEvent("t", ace.ToolEvent{Kind: ace.KindToolUse, Name: "look"})
	h.until(t, "it fails", func() bool { return to.Failure() != "" })
	h.setAway(false)
	o.Finish("t", ace.Finish{}, nil)
	to.Close(t.Context())
	r := h.newest("ace/t")
	if r == nil || !r.state.Finished() || r.state.SkillUsage().Total != 1 || to.Waiting() != 0 ||
		to.Dropped() != 0 || to.Failure() != "" {
		t.Errorf("%+v", r)
	}
}

// TestRotation checks that files are rotated and removed without losing records.
func TestRotation(t *testing.T) {
	h, dir := newFakeServer(), filepath.Join(t.TempDir(), "spool")
	forward(t, h, dir, nil)
	lines := hooks(t)
	appendHooks(t, dir, lines[:2]...)
	const calls = 400
	padding := strings.Repeat("x", 30<<10)
	for n := range calls {
		appendHooks(t, dir, strings.NewReplacer("toolu_1", fmt.Sprint("n", n), `"ls"`, `"`+padding+
			`"`).Replace(lines[2]))
	}
	appendHooks(t, dir, lines[len(lines)-1])
	h.until(t, "the run ends", func() bool { r := h.newest(hookRun); return r != nil && r.state.Finished() })
	if n := h.newest(hookRun).state.SkillUsage().Total; n != calls {
		t.Errorf("%d of %d calls", n, calls)
	}
	h.until(t, "delivered files are removed", func() bool {
		size := int64(0)
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				size += info.Size()
			}
		}
		return size < 2*rotateBytes
	})
}

// FuzzHook checks that any input of a hook becomes events that match the contract.
func FuzzHook(f *testing.F) {
	data, err := os.ReadFile("testdata/hooks.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f.Add([]byte(line), false)
		f.Add([]byte(line)[:len(line)/2], true)
	}
	f.Fuzz(func(t *testing.T, payload []byte, isCut bool) {
		kind := spool.Hook
		if isCut {
			kind = spool.HookTruncated
		}
		a := newHookDecoder(nil, func(data []byte) json.RawMessage { return ace.Preview(data) }, nil, nil)
		var s ace.State
		for n := range int64(3) {
			observations, _ := a.decode(spool.Record{Kind: kind, Micros: n + 5, ID: fmt.Sprint(n),
				Payload: payload})
			for _, e := range observations {
				if e.Input != nil {
					s.Apply(ace.Started(*e.Input))
				}
				data, err := json.Marshal(e.Event)
				if err != nil || len(data) > 4*ace.InlineBytes {
					t.Fatalf("an event of %d bytes, %v", len(data), err)
				}
				fact := ace.ToolEventsFrom(data)
				if fact.Unreadable > 0 {
					t.Fatalf("unreadable: %s", data)
				}
				s.Apply(fact)
			}
		}
	})
}

// TestOpenRunsAreBounded checks that the oldest open run is forgotten, and that ended runs are.
func TestOpenRunsAreBounded(t *testing.T) {
	starts := map[string]string{}
	r := recorder{emit: func(o Observation) { starts[o.TaskID] = o.Start }}
	for range 3 * maxOpen {
		r.Start(ace.TaskInput{TaskID: "again"})
		r.Finish("again", ace.Finish{}, nil)
	}
	if len(r.open) != 0 {
		t.Fatalf("%d open", len(r.open))
	}
	for n := range maxOpen + 1 {
		r.Start(ace.TaskInput{TaskID: fmt.Sprint(n)})
	}
	if len(r.open) != maxOpen || r.open["0"] != nil || r.open["1"] == nil {
		t.Errorf("%d open", len(r.open))
	}
}
