package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/cluster"
	"acescope/sources/historytest"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
)

// talkBuilder makes the history of a session.
type talkBuilder struct {
	*historytest.Builder
	run  string
	turn int64 // event that scheduled the turn under way
}

func newTalk(run, before string, in session.Input) *talkBuilder {
	b := &talkBuilder{Builder: historytest.New(session.Workflow, in), run: run}
	began := b.Events[0].GetWorkflowExecutionStartedEventAttributes()
	began.OriginalExecutionRunId, began.ContinuedExecutionRunId = run, before
	return b
}

func (b *talkBuilder) update(name, id string, arg any) {
	b.Add(time.Second, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
		func(e *historypb.HistoryEvent) {
			e.Attributes = &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{
				AcceptedRequest: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: id},
					Input: &updatepb.Input{Name: name, Args: historytest.JSON(arg)}}}}
		})
}

func (b *talkBuilder) begin(turn int, messages ...session.Message) {
	b.turn = b.Schedule(time.Second, session.ActivityTurn, session.TurnInput{Turn: turn, RunID: b.run,
		Messages: messages})
}

func (b *talkBuilder) end(r session.TurnResult) {
	b.Complete(time.Second, b.turn, b.Begin(time.Millisecond, b.turn, 1, ""), r)
}

var talkInput = session.Input{SessionID: "s1", Agent: "claude", WorkingDir: "/w", Name: "Till",
	Rules: []session.Rule{{Tool: "Read", Action: session.Allow}}}

// someTalkEvents is a session with one turn done, and one in which a call waits.
func someTalkEvents() *talkBuilder {
	in := talkInput
	in.First = &session.Message{ID: "m1", Text: "one", From: "ada"}
	b := newTalk("run-1", "", in)
	b.Activity(0, time.Second, session.ActivityClaim, in, session.Host{Name: "vm", Queue: "q"})
	b.begin(1, *in.First)
	b.update(session.UpdateTool, "c1",
		session.ToolRequest{Name: "Bash", Args: json.RawMessage(`{"command":"ls"}`), Turn: 1, Attempt: 1})
	b.update(session.UpdateDecide, "d1", session.Decision{ID: "c1", Action: session.Deny, Reason: "no",
		By: "ada"})
	no := false
	b.end(session.TurnResult{Turn: 1, Status: session.TurnCompleted, AgentSessionID: "a-1", Text: "so be it",
		Usage: ace.Usage{InputTokens: 10, CostUSD: 0.5}, DurationMS: 1500, Omitted: 2,
		Messages: []session.Out{{Kind: session.OutToolUse, Tool: "Bash", CallID: "c1",
			Args: json.RawMessage(`{"command":"ls"}`)}, {Kind: session.OutToolResult, CallID: "c1",
			Text: "no", OK: &no}, {Kind: session.OutAssistant, Text: "so be it"}}})
	b.update(session.UpdateSend, "m2", session.Message{Text: "two"})
	b.begin(2, session.Message{ID: "m2", Text: "two"})
	b.update(session.UpdateTool, "c2",
		session.ToolRequest{Name: "Write", Args: json.RawMessage(`{"file_path":"/etc/x"}`), Turn: 2,
			Attempt: 1})
	b.update(session.UpdateSend, "m3", session.Message{Text: "three"})
	return b
}

func told(c *transcripts.Conversation) string {
	var lines []string
	for _, e := range c.Entries {
		line := fmt.Sprintf("%s %s %s", e.Kind, e.Name, e.Text)
		for _, more := range []string{e.Result, e.Note} {
			if more != "" {
				line += " | " + more
			}
		}
		if e.Waits {
			line += " | waits"
		}
		if e.Open {
			line += " | open"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestSessionFolder(t *testing.T) {
	f := sessions.NewFolder()
	for _, e := range someTalkEvents().Events {
		f.Apply(e)
	}
	want := `user ada one
status left out 2 earlier entries; the turn's log has all
tool_use Bash {"command":"ls"} | no | denied by person ada: no
text  so be it
status turn 1 completed took 1.5s, 10 tokens, $0.5000
user  two
tool_use Write {"file_path":"/etc/x"} | waits
user  three | waits for the agent`
	if got := told(f.Conversation()); got != want {
		t.Errorf("%s", got)
	}
	if f.State.Status != session.Waiting || len(sessions.ApprovalsOf(&f.State)) != 1 {
		t.Errorf("%+v", f.State)
	}
	// Turns of runs that are not read are told from what was carried.
	next := sessions.NewFolder()
	in := talkInput
	in.Carried = f.State.Carry()
	for _, e := range newTalk("run-2", "run-1", in).Events {
		next.Apply(e)
	}
	if got := told(next.Conversation()); !strings.Contains(got,
		"user  one\ntext  so be it\nstatus turn 1 completed") {
		t.Errorf("%s", got)
	}
	foreign := sessions.NewFolder()
	for _, e := range historytest.New(session.Workflow, "no object").Events {
		foreign.Apply(e)
	}
	if foreign.Foreign == nil {
		t.Error("an input that is not a session's is accepted")
	}
}

// talkClient answers what a session's readers ask.
type talkClient struct {
	*historytest.Client
	mu     sync.Mutex
	newest string
	state  *session.State // nil: no worker answers
}

func (c *talkClient) DescribeWorkflowExecution(ctx context.Context, id,
	run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if run == "" {
		c.mu.Lock()
		run = c.newest
		c.mu.Unlock()
	}
	return c.Client.DescribeWorkflowExecution(ctx, id, run)
}

func (c *talkClient) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue,
	error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return nil, serviceerror.NewFailedPrecondition("no worker")
	}
	p, err := converter.GetDefaultDataConverter().ToPayloads(c.state)
	return client.NewValue(p), err
}

// A session is followed over its runs; what its log says is there before the turn's end, and
// the screen can tell whether a worker answers.
func TestTalkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	logOf := func(workflowID, runID string, turn int, attempt int32) string {
		return filepath.Join(dir, fmt.Sprintf("%s-%d-%d.jsonl", runID, turn, attempt))
	}
	first := someTalkEvents()
	c := &talkClient{Client: historytest.NewClient(), newest: "run-1"}
	c.Put("run-1", first.Events...)
	s := NewFeeds()
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	s.Link.Deps = cluster.Deps{Client: c, TurnLog: logOf}
	s.Sessions.Details.Look(true)
	done.Go(func() { s.Sessions.Run(ctx) })
	defer func() { stop(); done.Wait() }()
	s.Sessions.Details.Want("session/s1")
	until := func(what string, ok func(*sessions.Detail) bool) *sessions.Detail {
		t.Helper()
		late := time.After(time.Minute)
		for {
			now := s.Sessions.Details.Value()
			if now != nil && ok(now) {
				return now
			}
			select {
			case <-s.Link.Changed():
			case <-late:
				if now != nil {
					t.Logf("%s\n%+v", told(now.Conversation), now)
				}
				t.Fatal("never: " + what)
			}
		}
	}
	talk := until("folded", func(talk *sessions.Detail) bool {
		return talk.State != nil && talk.State.Status == session.Waiting
	})
	if talk.From != runs.FromHistory {
		t.Errorf("no worker answered, but the source is %s", talk.From)
	}
	write := func(attempt int32, lines ...string) {
		f, err := os.OpenFile(logOf("", "run-1", 2, attempt), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, l := range lines {
			if _, err := f.WriteString(l); err != nil {
				t.Fatal(err)
			}
		}
	}
	delta := `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I wr"}}}` + "\n"
	write(1, `{"type":"assistant","message":{"id":"x","content":[{"type":"tool_use","id":"c2","name":"Write","input":{"file_path":"/etc/x"}}]}}`+"\n", delta, `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"ty`)
	until("a part of a text", func(talk *sessions.Detail) bool {
		got := told(talk.Conversation)
		return strings.Contains(got, "text  I wr | open") &&
			strings.Contains(got, `Write {"file_path":"/etc/x"} | waits`) && talk.Log != ""
	})
	write(1, `pe":"text_delta","text":"ite"}}}`+"\n")
	until("the line whole", func(talk *sessions.Detail) bool {
		return strings.Contains(told(talk.Conversation), "text  I write | open")
	})
	write(2, `{"type":"assistant","message":{"id":"y","content":[{"type":"text","text":"I write again"}]}}`+
		"\n")
	until("the next attempt", func(talk *sessions.Detail) bool {
		return strings.Contains(told(talk.Conversation),
			"status attempt 2 the turn continues after a crash\ntext assistant I write again")
	})
	// Its worker answers.
	c.mu.Lock()
	c.state = &session.State{Status: session.Working, Input: talkInput, Turns: 2}
	c.mu.Unlock()
	until("an answer", func(talk *sessions.Detail) bool {
		return talk.From == runs.FromQuery && talk.State.Status == session.Working
	})
	c.mu.Lock()
	c.state = nil
	c.mu.Unlock()
	until("no answer", func(talk *sessions.Detail) bool { return talk.From == runs.FromHistory })
	// It continues as a new run.
	before := len(first.Events)
	first.end(session.TurnResult{Turn: 2, Status: session.TurnCompleted, Text: "done"})
	first.Add(time.Second, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
		func(e *historypb.HistoryEvent) {
			e.Attributes = &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: "run-2"}}
		})
	f := sessions.NewFolder()
	for _, e := range first.Events {
		f.Apply(e)
	}
	in := talkInput
	in.Carried = f.State.Carry()
	second := newTalk("run-2", "run-1", in)
	second.begin(3, session.Message{ID: "m3", Text: "three"})
	second.end(session.TurnResult{Turn: 3, Status: session.TurnCompleted, Text: "the end"})
	c.Put("run-2", second.Events...)
	c.Put("run-1", first.Events[before:]...)
	talk = until("the next run", func(talk *sessions.Detail) bool {
		return talk.RunID == "run-2" && strings.Contains(told(talk.Conversation), "text  the end")
	})
	if got := told(talk.Conversation); !strings.Contains(got, "user ada one") ||
		!strings.Contains(got, "text assistant I write again") || strings.Count(got, "user  three") != 1 {
		t.Error(got)
	}
	if turn := talk.TurnOf("m3"); turn == nil || turn.Turn != 3 || talk.TurnOf("unknown") != nil {
		t.Errorf("%+v", turn)
	}
	// Another reader reads the earlier runs, too.
	c.mu.Lock()
	c.newest = "run-2"
	c.mu.Unlock()
	again, err := sessions.Show(t.Context(), cluster.Deps{Client: c}, "session/s1")
	if err != nil || !strings.Contains(told(again.Conversation), "user ada one") || again.State.Turns != 3 {
		t.Errorf("%v %+v", err, again)
	}
	c.Fail(func(string) error { return errors.New("gone") })
	if _, err := sessions.Show(t.Context(), cluster.Deps{Client: c}, "session/s1"); err == nil {
		t.Error("what cannot be read is shown")
	}
}

func TestAgentRows(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	file := func(id string, last time.Time) sessions.Row {
		tr := &transcripts.Session{ID: id, Path: "/t/" + id, ModTime: last}
		return sessions.RowOf(tr)
	}
	engine := []*sessions.EngineSession{
		{WorkflowID: "session/a", ID: "a", Last: at, Status: session.Working,
			State: &session.State{AgentSessionID: "t1", Input: session.Input{Name: "A"},
				Status: session.Working, ToolCalls: session.ToolCalls{Pending: []session.ToolRequest{{ID: "c"}}}}},
		{WorkflowID: "session/b", ID: "b", Last: at.Add(-time.Hour), Close: at,
			State: &session.State{Usage: ace.Usage{InputTokens: 5, CostUSD: 0.1},
				ToolCalls: session.ToolCalls{Tools: []session.ToolCount{{Asked: 3, Failed: 1}}}}},
		{WorkflowID: "session/c", ID: "c", Last: at.Add(-2 * time.Hour)},
	}
	rows := sessions.Rows([]sessions.Row{file("t1", at.Add(time.Minute)), file("t2", at.Add(-time.Minute))},
		engine)
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%v %s %v", r.Engine != nil, r.ID, r.Transcript != nil))
	}
	if want := "true a true,false t2 true,true b false,true c false"; strings.Join(got, ",") != want {
		t.Errorf("%v", got)
	}
	if r := rows[0]; r.Waiting != 1 || r.Name != "A" || r.Activity(at) != transcripts.Live ||
		!r.Last.Equal(at.Add(time.Minute)) {
		t.Errorf("%+v", r)
	}
	if r := rows[2]; r.Totals.Calls != 3 || r.Totals.CostUSD != 0.1 || r.Activity(at) != transcripts.Ended {
		t.Errorf("%+v", r)
	}
	if rows[3].Known {
		t.Error("nothing is known of c")
	}
}

func TestCallRisk(t *testing.T) {
	for call, want := range map[[2]string]string{
		{"Bash", `{"command":"git status"}`}:                "",
		{"Bash", `{"command":"go test ./... > /dev/null"}`}: "",
		{"Bash", `{"command":"rm -r build"}`}:               "deletes files",
		{"Bash", `{"command":"sudo ls"}`}:                   "runs as another user",
		{"Bash", `{"command":"curl x | sh"}`}:               "runs what it downloads",
		{"Bash", `{"command":"echo x > ~/.bashrc"}`}:        "changes programs that run later, writes outside its directory",
		{"Bash", `{"command":"git push --force"}`}:          "discards work in git, publishes something",
		{"shell", `{"command":["bash","-lc","rm x"]}`}:      "deletes files",
		{"Write", `{"file_path":"a.go"}`}:                   "",
		{"Write", `{"file_path":"/w/a.go"}`}:                "",
		{"Write", `{"file_path":"/w/../etc/x"}`}:            "writes outside its directory",
		{"write_file", `{"path":"../x"}`}:                   "writes outside its directory",
		{"Read", `{"file_path":"/etc/x"}`}:                  "",
		{"Bash", `no json`}:                                 "",
	} {
		if got := sessions.CallRisk(session.ToolRequest{Name: call[0], Args: json.RawMessage(call[1])},
			"/w"); got != want {
			t.Errorf("%v: %q", call, got)
		}
	}
	if got := sessions.CallRisk(session.ToolRequest{Name: "X", ArgsRef: &ace.Ref{}}, "/w"); got == "" {
		t.Error("arguments that are not shown are no risk")
	}
}

func TestParseToolRule(t *testing.T) {
	if r, err := sessions.ParseRule("Bash(a=b *)=allow"); err != nil || r.Tool != "Bash(a=b *)" ||
		r.Action != session.Allow {
		t.Errorf("%+v %v", r, err)
	}
	for _, bad := range []string{"", "Bash", "Bash=perhaps", "Bash(x=allow", "=deny"} {
		if _, err := sessions.ParseRule(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// ListWorkflow lists nothing: the test reads one conversation.
func (c *talkClient) ListWorkflow(context.Context,
	*workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}
