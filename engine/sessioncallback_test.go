package engine_test

import (
	"context"
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
func caller(ctx workflow.Context, sessionID string, m session.Message) (heard []session.Report, err error) {
	if err := workflow.SignalExternalWorkflow(ctx, session.WorkflowID(sessionID), "", session.SignalDeliver, m).Get(ctx, nil); err != nil {
		return nil, err
	}
	reports, enough := workflow.GetSignalChannel(ctx, session.SignalReport), workflow.GetSignalChannel(ctx, "enough")
	for done := false; !done; {
		s := workflow.NewSelector(ctx)
		s.AddReceive(reports, func(c workflow.ReceiveChannel, _ bool) {
			var r session.Report
			c.Receive(ctx, &r)
			heard = append(heard, r)
		})
		s.AddReceive(enough, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); done = true })
		s.Select(ctx)
	}
	var r session.Report
	for reports.ReceiveAsync(&r) {
		heard = append(heard, r)
	}
	return heard, nil
}

const callerQueue = "callers"

// callers runs a worker for callers in this process.
func (h *house) callers() {
	w := worker.New(h.Client, callerQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(caller, workflow.RegisterOptions{Name: "caller"})
	if err := w.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(w.Stop)
}

// ask makes a caller send the session a message with its ID.
func (h *house) ask(id string, callback bool, text string) {
	h.t.Helper()
	m := session.Message{ID: id, Text: text + " [" + id + "]", Callback: callback, From: "run " + id, ReplyTo: "run/" + id}
	if _, err := h.Client.ExecuteWorkflow(h.t.Context(), client.StartWorkflowOptions{ID: "run/" + id, TaskQueue: callerQueue}, "caller", "s", m); err != nil {
		h.t.Fatal(err)
	}
}

// heard stops a caller and returns its reports.
func (h *house) heard(id string) (all []session.Report) {
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

// checkHeard checks that each caller received one report on a turn of the session, and that the
// agent received each message in one turn.
func (h *house) checkHeard(ids []string) {
	h.t.Helper()
	turns := h.agent.Did("turn")
	for _, id := range ids {
		all := h.heard(id)
		if len(all) != 1 || all[0].MessageID != id || all[0].Status != session.ReportCompleted || all[0].Turn == 0 {
			h.t.Errorf("%s was told %+v", id, all)
		}
		n := 0
		for _, turn := range turns {
			n += strings.Count(turn.Text, "["+id+"]")
		}
		if n != 1 {
			h.t.Errorf("the agent was given %s %d times", id, n)
		}
	}
}

// closed stops a session and returns its state after its workflow closed, when all reports have
// arrived.
func (h *house) closed(id string) session.State {
	h.t.Helper()
	h.stop(id)
	if err := h.Client.GetWorkflow(h.t.Context(), session.WorkflowID(id), "").Get(h.t.Context(), nil); err != nil {
		h.t.Fatal(err)
	}
	return h.until(id, over)
}

func idsOf(prefix string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(prefix, i))
	}
	return ids
}

// waiting reports whether the given number of messages wait for the agent.
func waiting(n int) func(session.State) bool {
	return func(s session.State) bool { return len(s.Queue) == n }
}

// TestCallbacksKilled kills the worker while callbacks wait for a busy session, and then at steps
// of their turn and of its end, when the reports are sent.
func TestCallbacksKilled(t *testing.T) {
	for _, step := range []string{"turn:2", "send:2", "sent:2", "result:2", "done:2", "done:3"} {
		t.Run(strings.ReplaceAll(step, ":", "-"), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.callers()
			first := h.worker("")
			h.start("s", func(in *session.Input) { in.First.Text = "SCENARIO: bash echo a; gate g; say one" })
			h.agent.Await("gate", 1)
			ids := idsOf("cb", 5)
			for _, id := range ids {
				h.ask(id, true, "callback")
			}
			h.until("s", waiting(5))
			first.kill() // while it is busy
			second := h.worker(step)
			h.ask("last", false, "prompt")
			second.await()
			h.worker("")
			h.until("s", turnsEnded(3))
			s := h.closed("s")
			h.checkHeard(append(ids, "last"))
			if s.ReportsSent != 6 || s.ReportsUndelivered != 0 || s.Turns != 3 || s.Recent[1].Callbacks != 5 {
				t.Errorf("told %d, unheard %d, %d turns: %+v", s.ReportsSent, s.ReportsUndelivered, s.Turns, s.Recent)
			}
			h.checkFold("s")
			recordAs(t, h.Client, session.WorkflowID("s"), "session-callbacks-"+strings.ReplaceAll(step, ":", "-"))
		})
	}
}

// TestCallbacksServerKilled kills the process that hosts the server while callbacks wait.
func TestCallbacksServerKilled(t *testing.T) {
	t.Parallel()
	h := &house{t: t, dir: t.TempDir(), work: t.TempDir(), agent: agentclitest.New(t, "claude")}
	first := h.worker("")
	h.worker("")
	e, err := engine.Open(t.Context(), engine.Options{DataDir: h.dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	h.Engine = e
	h.callers()
	h.start("s", func(in *session.Input) { in.First.Text = "SCENARIO: bash echo a; gate g; say one" })
	h.agent.Await("gate", 1)
	ids := idsOf("cb", 5)
	for _, id := range ids {
		h.ask(id, true, "callback")
	}
	h.until("s", waiting(5))
	first.kill()
	h.until("s", turnsEnded(2))
	h.closed("s")
	h.checkHeard(ids)
	h.checkFold("s")
}

// TestTwoThousandCallbacks sends 2,000 callbacks to a busy session, whose worker is killed and
// which continues as new: each arrives once.
func TestTwoThousandCallbacks(t *testing.T) {
	t.Parallel()
	const many = 2000
	h := newHouse(t)
	h.callers()
	first := h.worker("")
	h.start("s", func(in *session.Input) { in.First.Text = "SCENARIO: bash echo a; gate g; say one" })
	h.agent.Await("gate", 1)
	ids := idsOf("told", 3)
	for _, id := range ids {
		h.ask(id, true, "callback")
	}
	for h.events("s") < 1800 { // a session continues as new from 3,500 events on (maxHistory in engine/workflows)
		if _, err := h.Receive(t.Context(), "s", session.Receive{}); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.Repeat("what came of it ", 30)
	errs := make(chan error, 8)
	for lane := range cap(errs) {
		go func() {
			for i := lane; i < many; i += cap(errs) {
				m := session.Message{ID: fmt.Sprint("run.", i), Text: fmt.Sprintf("<agent-callback run=%q>%s</agent-callback>", fmt.Sprint("r", i, "."), text), Callback: true}
				if err := h.Client.SignalWorkflow(t.Context(), session.WorkflowID("s"), "", session.SignalDeliver, m); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	h.until("s", func(s session.State) bool { return len(s.Queue) > many/4 })
	first.kill()
	h.worker("")
	h.agent.Open("g")
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	s := h.until("s", func(s session.State) bool { return s.Current == nil && len(s.Queue) == 0 && s.Turns > 1 })
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
			t.Errorf("%s came %d times", id, n)
		}
	}
	if len(seen) != many {
		t.Errorf("%d of %d callbacks came", len(seen), many)
	}
	t.Logf("%d callbacks in %d turns, %d runs", many, s.Turns, s.Runs)
	h.closed("s")
	h.checkHeard(ids)
	h.checkFold("s")
}

// TestPresetHost checks that a session with a preset host is not claimed and that its agent gets
// the MCP servers.
func TestPresetHost(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.worker("")
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	h.start("s", func(in *session.Input) {
		in.First.Text, in.Host = "SCENARIO: say one", &session.Host{Name: "here", Queue: host.Queue(name, h.dir)}
	})
	s := h.until("s", turnsEnded(1))
	if s.Host.Version != "2.1.329" || s.Host.Name != "here" || s.Recent[0].Status != session.TurnCompleted {
		t.Errorf("%+v, %+v", s.Host, s.Recent)
	}
	for _, e := range eventsOf(t, h.Client, session.WorkflowID("s")).Events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == session.ActivityClaim {
			t.Error("it was claimed")
		}
	}
	h.stop("s")
	h.until("s", over)
	h.checkFold("s")
	recordAs(t, h.Client, session.WorkflowID("s"), "session-preset")
}

// TestReportsConcurrent sends messages to a session concurrently by signals and updates, from
// senders of which some are gone. Each remaining sender gets one report.
func TestReportsConcurrent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.callers()
	h.worker("")
	h.start("s", func(in *session.Input) { in.First.Text = "SCENARIO: bash echo a; gate g; say one" })
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
		h.ask(id, false, "SCENARIO: say x")
	}
	go lane(func(i int) error {
		if i%3 != 0 {
			return nil
		}
		return signal(session.SignalWithdraw, session.Withdraw{MessageID: ids[i]})
	})
	go lane(func(i int) error {
		return signal(session.SignalDeliver, session.Message{ID: fmt.Sprint("gone", i), Text: "x", ReplyTo: "run/nobody", Callback: i%2 == 0})
	})
	go lane(func(i int) error {
		_, err := h.Send(t.Context(), "s", session.Message{ID: fmt.Sprint("person", i), Text: "y"})
		return err
	})
	go lane(func(i int) error {
		if i == 5 {
			h.agent.Open("g")
		}
		if i%2 == 0 { // a signal without an argument, after ones that had some
			_, err := h.Client.WorkflowService().SignalWorkflowExecution(t.Context(), &workflowservice.SignalWorkflowExecutionRequest{
				Namespace: h.Namespace(), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: session.WorkflowID("s")}, SignalName: session.SignalDeliver})
			return err
		}
		return signal(session.SignalDeliver, i) // which is no message
	})
	for range cap(done) {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	h.until("s", func(s session.State) bool { return s.Turns > 8 })
	s := h.closed("s")
	for i, id := range ids {
		all := h.heard(id)
		if len(all) != 1 || i%3 != 0 && all[0].Status == session.ReportFailed {
			t.Errorf("%s was told %+v", id, all)
		}
	}
	if s.ReportsSent != 2*len(ids) || s.ReportsUndelivered != len(ids) || s.Dropped < len(ids) {
		t.Errorf("told %d, unheard %d, dropped %d", s.ReportsSent, s.ReportsUndelivered, s.Dropped)
	}
	h.checkFold("s")
	recordAs(t, h.Client, session.WorkflowID("s"), "session-reports")
}
