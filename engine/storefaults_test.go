package engine

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"acescope/engine/ace"
	"acescope/engine/learning/problems"
	"acescope/engine/store/bucket/buckettest"
)

// faultyMachine serves a namespace whose store has faults.
type faultyMachine struct {
	*testing.T
	*Engine
	store *buckettest.S3
	o     Options
	began chan struct{} // closed by the first request to write a playbook version
	once  sync.Once
}

// TestStoreFaults runs the same experiment with a fast S3 store, a slow one, one that denies access in the
// middle and one that is unreachable in the middle. Each machine has a namespace of one server.
func TestStoreFaults(t *testing.T) {
	t.Parallel()
	server, err := Open(t.Context(), Options{DataDir: t.TempDir(), Version: "test", Takeover: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	var mu sync.Mutex
	heads := map[string]string{}
	t.Run("stores", func(t *testing.T) {
		for name, run := range map[string]func(*faultyMachine) string{
			"fast":        (*faultyMachine).withoutFault,
			"slow":        (*faultyMachine).slow,
			"denied":      (*faultyMachine).denied,
			"unreachable": (*faultyMachine).unreachable,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				head := run(newFaultyMachine(t, server, name))
				mu.Lock()
				defer mu.Unlock()
				heads[name] = head
			})
		}
	})
	for name, head := range heads {
		if head == "" || head != heads["fast"] {
			t.Errorf("the playbook with the %s store is %q, with the fast one %q", name, head, heads["fast"])
		}
	}
}

func (m *faultyMachine) withoutFault() string { return m.finish(m.start(nil)) }

// slow checks that no step is repeated because of a store that takes a second for each request.
func (m *faultyMachine) slow() string {
	runID := m.start(func(*http.Request) string {
		time.Sleep(time.Second)
		return ""
	})
	head := m.finish(runID)
	m.checkFirstAttempts(ace.ExperimentWorkflowID(faultExperiment))
	m.checkFirstAttempts(faultTask)
	return head
}

// denied takes the access away when a version is written, and gives it back when the run says so.
func (m *faultyMachine) denied() string {
	runID := m.start(func(r *http.Request) string {
		if m.hasBegun(r) {
			return buckettest.Denied(r)
		}
		return ""
	})
	m.outage("the store denies access: InvalidAccessKeyId", func() { m.store.Fail(nil) })
	return m.finish(runID)
}

// unreachable stops the store when it writes a version, which it writes, but cannot say so.
func (m *faultyMachine) unreachable() string {
	runID := m.start(func(r *http.Request) string {
		if m.hasBegun(r) {
			m.store.Stop()
		}
		return ""
	})
	m.outage("connection refused", func() {
		if _, err := m.openAnother(); !errors.Is(err, ErrStore) || strings.Contains(err.Error(), "\n") {
			m.Errorf("a process that starts during the outage: %v", err)
		}
		m.store.Fail(nil)
		if err := m.store.Start(); err != nil {
			m.Error(err)
		}
	})
	return m.finish(runID)
}

// hasBegun reports whether the request, or one before it, writes the first version of the playbook.
func (m *faultyMachine) hasBegun(r *http.Request) bool {
	if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+faultExperiment+"/00000001") {
		m.once.Do(func() { close(m.began) })
	}
	select {
	case <-m.began:
		return true
	default:
		return false
	}
}

// outage waits until a step says why it waits, and checks what a serving process reports before and after end.
func (m *faultyMachine) outage(want string, end func()) {
	m.Helper()
	<-m.began
	lines, ticks := make(chan string, 2), make(chan time.Time)
	watches := m.outageWatches(func(line string) { lines <- line })
	watch := inBackground(func(ctx context.Context) { watches[len(watches)-1].run(ctx, ticks) })
	defer watch.stop()
	now := time.Now()
	ticks <- now
	ticks <- now.Add(outageAfter)
	if line := <-lines; !strings.HasPrefix(line, "the store s3://acescope has been unavailable since ") ||
		!strings.Contains(line, want) && !strings.Contains(line, "no answer within") { // on a busy machine
		m.Errorf("the process reports %q, want %q", line, want)
	}
	for text := ""; !strings.Contains(text, want); text = m.lastFailure() {
		time.Sleep(20 * time.Millisecond)
	}
	end()
	ticks <- now.Add(2 * outageAfter)
	if line := <-lines; line != "the store s3://acescope is available again, after 20s" {
		m.Error(line)
	}
}

// lastFailure returns why the last attempt of the first task's step failed, or "".
func (m *faultyMachine) lastFailure() string {
	m.Helper()
	d, err := m.Client.DescribeWorkflowExecution(m.Context(), faultTask, "")
	if err != nil {
		m.Fatal(err)
	}
	for _, step := range d.GetPendingActivities() {
		return step.GetLastFailure().GetMessage()
	}
	return ""
}

const (
	faultExperiment = "x"
	faultTask       = "ace/x-e1-0001" // workflow ID of its only task
)

// start starts an experiment with a fault of the store.
func (m *faultyMachine) start(fault buckettest.Fault) (runID string) {
	m.Helper()
	line, err := json.Marshal(problems.Finance(1, 1)[0])
	if err != nil {
		m.Fatal(err)
	}
	dataset, err := m.Artifacts.PutBytes(m.Context(), line, "application/jsonl")
	if err != nil {
		m.Fatal(err)
	}
	m.store.Fail(fault)
	runID, err = m.StartExperiment(m.Context(), ace.ExperimentInput{ExperimentID: faultExperiment,
		DatasetID: "sums", Dataset: dataset, Tasks: 1, Adapter: ace.Offline, Epochs: 1, Parallel: 1,
		Provider: "builtin", Model: "rules"})
	if err != nil {
		m.Fatal(err)
	}
	return runID
}

// finish waits for the experiment and returns the version of its playbook.
func (m *faultyMachine) finish(runID string) string {
	m.Helper()
	var result ace.ExperimentProgress
	workflow := m.Client.GetWorkflow(m.Context(), ace.ExperimentWorkflowID(faultExperiment), runID)
	if err := workflow.Get(m.Context(), &result); err != nil {
		m.Fatal(err)
	}
	if e := result.Epochs[0]; e.Tasks != 1 || e.Failed != 0 || result.Bullets == 0 {
		m.Errorf("%+v", result)
	}
	return result.After
}

// checkFirstAttempts checks that no step of a run was retried or timed out.
func (m *faultyMachine) checkFirstAttempts(workflowID string) {
	m.Helper()
	events := m.Client.GetWorkflowHistory(m.Context(), workflowID, "", false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			m.Fatal(err)
		}
		started := event.GetActivityTaskStartedEventAttributes()
		switch kind := event.GetEventType(); {
		case started.GetAttempt() > 1:
			m.Errorf("%s: attempt %d after %s", workflowID, started.GetAttempt(), started.GetLastFailure())
		case strings.HasSuffix(kind.String(), "TimedOut"), strings.HasSuffix(kind.String(), "TaskFailed"):
			m.Errorf("%s: %s", workflowID, kind)
		}
	}
}

// newFaultyMachine sets up a namespace with a store and serves it.
func newFaultyMachine(t *testing.T, server *Engine, namespace string) *faultyMachine {
	t.Helper()
	m := &faultyMachine{T: t, store: buckettest.StartS3(t), began: make(chan struct{})}
	m.o = Options{Version: "test", Worker: true, Remote: &Remote{Namespace: namespace}, Store: m.store.URL()}
	var token string
	for _, v := range server.Node().Env() {
		switch v.Name {
		case "TEMPORAL_ADDRESS":
			m.o.Remote.Address = v.Value
		case "TEMPORAL_GRPC_META_AUTHORIZATION":
			token = v.Value
		}
	}
	m.o.Intercept = func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return call(metadata.AppendToOutgoingContext(ctx, "authorization", token), method, req, reply, cc, opts...)
	}
	s, err := PlanSetup(t.Context(), m.o, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, step := range s.Steps {
		if err := s.Do(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	if m.Engine, err = m.openAnother(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// openAnother opens an engine with a data directory of its own.
func (m *faultyMachine) openAnother() (*Engine, error) {
	o := m.o
	o.DataDir = m.TempDir()
	return Open(m.Context(), o)
}
