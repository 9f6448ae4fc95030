package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/agents/agentcli/agentclitest"
	"acescope/engine/agents/session"
	"acescope/engine/agents/session/host"
)

// caller is a workflow that sends a message to a session and records reports until told to stop,
// like a run that an agent executes.
func caller(ctx workflow.Context, sessionID string, m session.Message) (received []session.Report,
	err error) {
	if err := workflow.SignalExternalWorkflow(ctx, session.WorkflowID(sessionID), "", session.SignalDeliver,
		m).Get(ctx, nil); err != nil {
		return nil, err
	}
	reports, enough := workflow.GetSignalChannel(ctx, session.SignalReport),
		workflow.GetSignalChannel(ctx, "enough")
	for done := false; !done; {
		s := workflow.NewSelector(ctx)
		s.AddReceive(reports, func(c workflow.ReceiveChannel, _ bool) {
			var r session.Report
			c.Receive(ctx, &r)
			received = append(received, r)
		})
		s.AddReceive(enough, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); done = true })
		s.Select(ctx)
	}
	var r session.Report
	for reports.ReceiveAsync(&r) {
		received = append(received, r)
	}
	return received, nil
}

const callerQueue = "callers"

// serveCallers runs a worker for callers in this process.
func (h *sessionEnv) serveCallers() {
	w := worker.New(h.Client, callerQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(caller, workflow.RegisterOptions{Name: "caller"})
	if err := w.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(w.Stop)
}

// startCaller makes a caller send the session a message with its ID.
func (h *sessionEnv) startCaller(id string, callback bool, text string) {
	h.t.Helper()
	m := session.Message{ID: id, Text: text + " [" + id + "]", Callback: callback, From: "run " + id,
		ReplyTo: "run/" + id}
	if _, err := h.Client.ExecuteWorkflow(h.t.Context(), client.StartWorkflowOptions{ID: "run/" + id,
		TaskQueue: callerQueue}, "caller", "s", m); err != nil {
		h.t.Fatal(err)
	}
}

// reportsOf stops a caller and returns its reports.
func (h *sessionEnv) reportsOf(id string) (all []session.Report) {
	h.t.Helper()
	ctx := h.t.Context()
	if err := h.Client.SignalWorkflow(ctx, "run/"+id, "", "enough", nil); err != nil {
		h.t.Fatal(err)
	}
	if err := h.Client.GetWorkflow(ctx, "run/"+id, "").Get(ctx, &all); err != nil {
		h.t.Fatal(err)
	}
	return all
}

// checkReports checks that each caller received one report on a turn of the session, and that the
// agent received each message in one turn.
func (h *sessionEnv) checkReports(ids []string) {
	h.t.Helper()
	turns := h.agent.Did("turn")
	for _, id := range ids {
		all := h.reportsOf(id)
		if len(all) != 1 || all[0].MessageID != id || all[0].Status != session.ReportCompleted ||
			all[0].Turn == 0 {
			h.t.Errorf("the sender of %s received %+v", id, all)
		}
		n := 0
		for _, turn := range turns {
			n += strings.Count(turn.Text, "["+id+"]")
		}
		if n != 1 {
			h.t.Errorf("the agent received %s %d times", id, n)
		}
	}
}

// stopAndWait stops a session and returns its state after its workflow closed, when all reports have
// arrived.
func (h *sessionEnv) stopAndWait(id string) session.State {
	h.t.Helper()
	h.stopSession(id)
	if err := h.Client.GetWorkflow(h.t.Context(), session.WorkflowID(id), "").Get(h.t.Context(),
		nil); err != nil {
		h.t.Fatal(err)
	}
	return h.waitSession(id, hasEnded)
}

func idsOf(prefix string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(prefix, i))
	}
	return ids
}

// hasQueued reports whether the given number of messages wait for the agent.
func hasQueued(n int) func(session.State) bool {
	return func(s session.State) bool { return len(s.Queue) == n }
}

// TestCallbacksKilled kills the worker while callbacks wait for a busy session, and then at steps
// of their turn and of its end, when the reports are sent.
func TestCallbacksKilled(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"turn:2", "send:2", "sent:2", "result:2", "done:2", "done:3"} {
		t.Run(strings.ReplaceAll(step, ":", "-"), func(t *testing.T) {
			t.Parallel()
			h := newSessionEnv(t)
			h.serveCallers()
			first := h.startWorker("")
			h.startSession("s", func(in *session.Input) {
				in.First.Text = "SCENARIO: bash echo a; gate g; say one"
			})
			h.agent.Await("gate", 1)
			ids := idsOf("cb", 5)
			for _, id := range ids {
				h.startCaller(id, true, "callback")
			}
			h.waitSession("s", hasQueued(5))
			first.kill() // during its first turn
			second := h.startWorker(step)
			h.startCaller("last", false, "prompt")
			second.await()
			h.startWorker("")
			h.waitSession("s", turnsEnded(3))
			s := h.stopAndWait("s")
			h.checkReports(append(ids, "last"))
			if s.ReportsSent != 6 || s.ReportsUndelivered != 0 || s.Turns != 3 || s.Recent[1].Callbacks != 5 {
				t.Errorf("%d reports, %d undelivered, %d turns: %+v", s.ReportsSent, s.ReportsUndelivered,
					s.Turns, s.Recent)
			}
			h.checkFold("s")
			recordAs(t, h.Client, session.WorkflowID("s"), "session-callbacks-"+
				strings.ReplaceAll(step, ":", "-"))
		})
	}
}

// TestCallbacksServerKilled kills the process that hosts the server while callbacks wait.
func TestCallbacksServerKilled(t *testing.T) {
	t.Parallel()
	h := &sessionEnv{t: t, dir: t.TempDir(), work: t.TempDir(), agent: agentclitest.New(t, "claude")}
	first := h.startWorker("")
	h.startWorker("")
	e := openEngine(t, engine.Options{DataDir: h.dir})
	h.Engine = e
	h.serveCallers()
	h.startSession("s", func(in *session.Input) { in.First.Text = "SCENARIO: bash echo a; gate g; say one" })
	h.agent.Await("gate", 1)
	ids := idsOf("cb", 5)
	for _, id := range ids {
		h.startCaller(id, true, "callback")
	}
	h.waitSession("s", hasQueued(5))
	first.kill()
	h.waitSession("s", turnsEnded(2))
	h.stopAndWait("s")
	h.checkReports(ids)
	h.checkFold("s")
}

// TestTwoThousandCallbacks sends 2,000 callbacks to a busy session, whose worker is killed and
// which continues as new: each arrives once.
func TestTwoThousandCallbacks(t *testing.T) {
	t.Parallel()
	const many = 2000
	h := newSessionEnv(t)
	h.serveCallers()
	first := h.startWorker("")
	h.startSession("s", func(in *session.Input) { in.First.Text = "SCENARIO: bash echo a; gate g; say one" })
	h.agent.Await("gate", 1)
	ids := idsOf("told", 3)
	for _, id := range ids {
		h.startCaller(id, true, "callback")
	}
	// a session continues as new from 3,500 events on (maxHistory in engine/workflows)
	h.growHistory("s", 1800)
	text := strings.Repeat("the result of the run ", 30)
	errs := make(chan error, 8)
	for lane := range cap(errs) {
		go func() {
			for i := lane; i < many; i += cap(errs) {
				m := session.Message{ID: fmt.Sprint("run.", i),
					Text: fmt.Sprintf("<agent-callback run=%q>%s</agent-callback>", fmt.Sprint("r", i, "."),
						text), Callback: true}
				if err := h.Client.SignalWorkflow(t.Context(), session.WorkflowID("s"), "",
					session.SignalDeliver, m); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	h.waitSession("s", func(s session.State) bool { return len(s.Queue) > many/4 })
	first.kill()
	h.startWorker("")
	h.agent.Open("g")
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	s := h.waitSession("s", func(s session.State) bool {
		return s.Current == nil && len(s.Queue) == 0 && s.Turns > 1
	})
	if s.Runs < 2 || s.Dropped != 0 {
		t.Errorf("%d runs, %d dropped", s.Runs, s.Dropped)
	}
	turns := h.agent.Did("turn")
	seen := map[string]int{}
	for _, turn := range turns {
		for _, part := range strings.Split(turn.Text, `<agent-callback run="`)[1:] {
			id, _, _ := strings.Cut(part, `"`)
			seen[id]++
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("callback %s arrived %d times", id, n)
		}
	}
	if len(seen) != many {
		t.Errorf("%d of %d callbacks arrived", len(seen), many)
	}
	t.Logf("%d callbacks in %d turns, %d runs", many, s.Turns, s.Runs)
	h.stopAndWait("s")
	h.checkReports(ids)
	h.checkFold("s")
}

// TestPresetHost checks that a session with a preset host is not claimed and that its agent gets
// the MCP servers.
func TestPresetHost(t *testing.T) {
	t.Parallel()
	h := newSessionEnv(t)
	h.startWorker("")
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	h.startSession("s", func(in *session.Input) {
		in.First.Text, in.Host = "SCENARIO: say one",
			&session.Host{Name: "here", Queue: host.Queue(name, h.dir)}
	})
	s := h.waitSession("s", turnsEnded(1))
	if s.Host.Version != "2.1.329" || s.Host.Name != "here" || s.Recent[0].Status != session.TurnCompleted {
		t.Errorf("%+v, %+v", s.Host, s.Recent)
	}
	for _, e := range eventsOf(t, h.Client, session.WorkflowID("s")).Events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == session.ActivityClaim {
			t.Error("the session was claimed")
		}
	}
	h.stopSession("s")
	h.waitSession("s", hasEnded)
	h.checkFold("s")
	recordAs(t, h.Client, session.WorkflowID("s"), "session-preset")
}

// TestReportsConcurrent sends messages to a session concurrently by signals and updates, from
// senders of which some are gone. Each remaining sender gets one report.
func TestReportsConcurrent(t *testing.T) {
	t.Parallel()
	h := newSessionEnv(t)
	h.serveCallers()
	h.startWorker("")
	h.startSession("s", func(in *session.Input) { in.First.Text = "SCENARIO: bash echo a; gate g; say one" })
	h.agent.Await("gate", 1)
	ids := idsOf("ask", 12)
	done := make(chan error, 4)
	signal := func(name string, arg any) error {
		return h.Client.SignalWorkflow(t.Context(), session.WorkflowID("s"), "", name, arg)
	}
	lane := func(do func(i int) error) {
		for i := range len(ids) {
			if err := do(i); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}
	for _, id := range ids {
		h.startCaller(id, false, "SCENARIO: say x")
	}
	go lane(func(i int) error {
		if i%3 != 0 {
			return nil
		}
		return signal(session.SignalWithdraw, session.Withdraw{MessageID: ids[i]})
	})
	go lane(func(i int) error {
		return signal(session.SignalDeliver, session.Message{ID: fmt.Sprint("gone", i), Text: "x",
			ReplyTo: "run/missing", Callback: i%2 == 0})
	})
	go lane(func(i int) error {
		_, err := h.Send(t.Context(), "s", session.Message{ID: fmt.Sprint("person", i), Text: "y"})
		return err
	})
	go lane(func(i int) error {
		if i == 5 {
			h.agent.Open("g")
		}
		if i%2 == 0 { // a signal without an argument
			_, err := h.Client.WorkflowService().SignalWorkflowExecution(t.Context(),
				&workflowservice.SignalWorkflowExecutionRequest{
					Namespace: h.Namespace(), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: session.WorkflowID("s")}, SignalName: session.SignalDeliver})
			return err
		}
		return signal(session.SignalDeliver, i) // not a message
	})
	for range cap(done) {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	h.waitSession("s", func(s session.State) bool { return s.Turns > 8 })
	s := h.stopAndWait("s")
	for i, id := range ids {
		all := h.reportsOf(id)
		if len(all) != 1 || i%3 != 0 && all[0].Status == session.ReportFailed {
			t.Errorf("the sender of %s received %+v", id, all)
		}
	}
	if s.ReportsSent != 2*len(ids) || s.ReportsUndelivered != len(ids) || s.Dropped < len(ids) {
		t.Errorf("%d reports, %d undelivered, %d dropped messages", s.ReportsSent, s.ReportsUndelivered,
			s.Dropped)
	}
	h.checkFold("s")
	recordAs(t, h.Client, session.WorkflowID("s"), "session-reports")
}
