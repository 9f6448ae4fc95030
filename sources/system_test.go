package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"acescope/engine/agents/observe"
	"acescope/sources/cluster"
	"acescope/sources/system"
)

func call(m *cluster.Meter, method string, req any, err error) error {
	return m.Intercept(context.Background(), "/temporal.api.workflowservice.v1.WorkflowService/"+method, req,
		nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return err })
}

func TestMeter(t *testing.T) {
	m := cluster.NewMeter()
	now := base
	m.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
	for range 10 {
		_ = call(m, "ListWorkflowExecutions", nil, nil)
	}
	down := status.Error(codes.Unavailable, "no host")
	if err := call(m, "ListWorkflowExecutions", nil, down); !errors.Is(err, down) {
		t.Errorf("the error did not come through: %v", err)
	}
	_ = call(m, "ListWorkflowExecutions", nil, status.Error(codes.Canceled, "given up"))
	_ = call(m, "RespondWorkflowTaskCompleted", nil, status.Error(codes.InvalidArgument, "UnhandledCommand"))
	_ = call(m, "PollWorkflowTaskQueue", nil, status.Error(codes.DeadlineExceeded, "nothing came"))
	_ = call(m, "GetWorkflowExecutionHistory",
		&workflowservice.GetWorkflowExecutionHistoryRequest{WaitNewEvent: true}, nil)
	got := map[string]cluster.CallStat{}
	for _, s := range m.Stats() {
		got[s.Name] = s
	}
	if s := got["ListWorkflowExecutions"]; s.PerMinute != 12 || s.Failed != 1 || s.LastError != "no host" ||
		s.P50MS != 1 {
		t.Errorf("%+v", s)
	}
	if s := got["RespondWorkflowTaskCompleted"]; s.PerMinute != 1 || s.Failed != 0 {
		t.Errorf("a decision that came too late: %+v", s)
	}
	if s := got["PollWorkflowTaskQueue"]; !s.Waits || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	if s := got["GetWorkflowExecutionHistory (waiting)"]; !s.Waits {
		t.Errorf("%+v", s)
	}
	now = now.Add(time.Hour)
	if s := m.Stats()[0]; s.PerMinute != 0 || s.Total != 12 || s.Failures != 1 {
		t.Errorf("after an hour: %+v", s)
	}
}

func TestMeterIsBounded(t *testing.T) {
	m := cluster.NewMeter()
	for i := range 3 * cluster.MeterNames {
		_ = call(m, fmt.Sprint("Call", i), nil, nil)
	}
	total := int64(0)
	for _, s := range m.Stats() {
		total += s.Total
	}
	if len(m.Stats()) != cluster.MeterNames+1 || total != 3*cluster.MeterNames {
		t.Errorf("%d kinds, %d calls", len(m.Stats()), total)
	}
}

// healthySystem is a system without problems.
func healthySystem() *system.System {
	poller := []system.Poller{{Identity: "acescope 1@host", Last: base}}
	return &system.System{At: base, Mode: "embedded", Address: "127.0.0.1:7233", Space: "ace-dev",
		Server: system.ServerInfo{Version: "1.32.1"},
		Host:   cluster.Host{PID: 7, DataDir: "/d", Free: 10 << 30},
		Queues: []system.Queue{{Name: "ace", Kind: "workflow", Ours: true, Pollers: poller},
			{Name: "ace", Kind: "activity", Ours: true, Pollers: poller}}}
}

func TestChecks(t *testing.T) {
	if c := healthySystem().Checks(); system.CountErrors(c) != 0 {
		t.Fatalf("%+v", c)
	}
	for name, c := range map[string]struct {
		change       func(*system.System)
		row          string
		state        system.CheckState
		text, advice string
	}{
		"away": {func(s *system.System) { s.Err = "connection refused" }, "server", system.CheckError,
			"cannot be reached: connection refused", "acescope serve --data-dir /d"},
		"cluster": {func(s *system.System) { s.Err, s.Host = "refused", cluster.Host{} }, "server",
			system.CheckError, "refused", "acescope doctor --address 127.0.0.1:7233"},
		"worker": {func(s *system.System) { s.Queues[1].Pollers = nil }, "ace activity", system.CheckError,
			"no worker polls", "acescope serve --data-dir /d"},
		"starting": {func(s *system.System) {
			s.Queues[1].Pollers, s.Host.Started = nil, base.Add(-10*time.Second)
		}, "ace activity", system.CheckInfo, "no worker polls yet, no backlog; the host has just started", ""},
		"foreign": {func(s *system.System) {
			s.Queues = append(s.Queues, system.Queue{Name: "orders", Kind: "workflow", Backlog: 3})
		}, "orders workflow", system.CheckError, "3 waiting", "serves task queue orders"},
		"unused": {func(s *system.System) {
			s.Queues = append(s.Queues, system.Queue{Name: "orders", Kind: "activity"})
		}, "orders activity", system.CheckOK, "no worker polls and nothing waits", ""},
		"gone": {func(s *system.System) {
			s.Queues[0].Pollers, s.Queues[0].Gone = nil, base.Add(-time.Hour)
		}, "ace workflow", system.CheckWarning, "no worker polls any more, no backlog",
			"the last worker has ended"},
		"intruder": {func(s *system.System) {
			s.Queues[1].Pollers = append(slices.Clone(s.Queues[1].Pollers),
				system.Poller{Identity: "41@team", Last: base})
		}, "ace activity", system.CheckError, "not acescope: 41@team", "--task-queue"},
		"unserved": {func(s *system.System) { s.Queues[0].Pollers, s.Host = nil, cluster.Host{} },
			"ace workflow",
			system.CheckInfo, "no worker polls, and no run is open",
			"acescope serve --address 127.0.0.1:7233"},
		"slow": {func(s *system.System) { s.Queues[0].Backlog, s.Queues[0].OldestMS = 40, 60_000 },
			"ace workflow", system.CheckWarning, "40 waiting", "do not keep up"},
		"attributes": {func(s *system.System) { s.Attributes = []string{"Phase", "TaskId"} }, "attributes",
			system.CheckError, "lacks Phase, TaskId",
			"acescope setup --address 127.0.0.1:7233 --namespace ace-dev"},
		"lost": {func(s *system.System) { s.Host.Lost = "temporal.db is missing" }, "data", system.CheckError,
			"/d: temporal.db is missing", "end process 7"},
		"agent": {func(s *system.System) {
			s.Agents = []cluster.ToolCheck{{Name: "codex", State: cluster.Info, Text: "not installed"}}
		}, "codex", system.CheckInfo, "not installed", ""},
		"broken": {func(s *system.System) {
			s.Agents = []cluster.ToolCheck{{Name: "codex", State: cluster.Error, Text: "not installed"}}
		}, "codex", system.CheckWarning, "not installed", "acescope doctor"},
		"disk": {func(s *system.System) { s.Host.Free = 1 << 20 }, "data", system.CheckError, "1.0 MiB free",
			"free space"},
		"source": {func(s *system.System) {
			s.Sources = []system.SourceAge{{Name: "disk", State: cluster.Error, Text: "is full", Dropped: 4}}
		}, "disk", system.CheckError, "is full, 4 dropped", ""},
		"refused": {func(s *system.System) {
			s.Spool = &observe.Quarantine{Quarantined: 2, Reason: "too large", File: "/s/quarantine"}
		}, "spool", system.CheckError, "refused 2 events of observed runs: too large",
			"rename /s/quarantine to /s/extra-again"},
		"calls": {func(s *system.System) {
			s.Calls = []cluster.CallStat{{Name: "X", PerMinute: 3, Failed: 1, LastError: "no"}}
		}, "X", system.CheckWarning, "1 failed: no", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthySystem()
			c.change(s)
			for _, got := range s.Checks() {
				if got.Name == c.row {
					if got.State != c.state || !strings.Contains(got.Text, c.text) ||
						!strings.Contains(got.Advice, c.advice) || (c.advice == "") != (got.Advice == "") {
						t.Errorf("%+v", got)
					}
					return
				}
			}
			t.Errorf("there is no row %q", c.row)
		})
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 64 << 20: "64.0 MiB",
		1 << 63: "8.0 EiB"} {
		if got := system.Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
