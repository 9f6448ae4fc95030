//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/engine/temporal/historyfile"
)

// edited returns a recorded history after a change.
func edited(t *testing.T, name string,
	change func([]*historypb.HistoryEvent) []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	t.Helper()
	f, err := os.Open("../../engine/workflows/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := historyfile.Read(f)
	if err != nil || len(list) != 1 {
		t.Fatal(len(list), err)
	}
	return change(list[0].Events)
}

func renamed(id int64, name string) func([]*historypb.HistoryEvent) []*historypb.HistoryEvent {
	return func(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
		events[id-1].GetActivityTaskScheduledEventAttributes().ActivityType.Name = name
		return events
	}
}

// ending appends the last three events of right.json, as commands of a workflow task.
func ending(events, last []*historypb.HistoryEvent, task int64) []*historypb.HistoryEvent {
	for _, e := range last {
		e.EventId = int64(len(events) + 1)
		switch a := e.GetAttributes().(type) {
		case *historypb.HistoryEvent_WorkflowPropertiesModifiedEventAttributes:
			a.WorkflowPropertiesModifiedEventAttributes.WorkflowTaskCompletedEventId = task
		case *historypb.HistoryEvent_UpsertWorkflowSearchAttributesEventAttributes:
			a.UpsertWorkflowSearchAttributesEventAttributes.WorkflowTaskCompletedEventId = task
		case *historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes:
			a.WorkflowExecutionCompletedEventAttributes.WorkflowTaskCompletedEventId = task
		}
		events = append(events, e)
	}
	return events
}

// audited adds an activity before the end by repeating the six events of the last phase.
func audited(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	last := slices.Clone(events[35:])
	events = events[:35:35]
	for _, e := range events[29:35] {
		e = proto.Clone(e).(*historypb.HistoryEvent)
		e.EventId += 6
		switch a := e.GetAttributes().(type) {
		case *historypb.HistoryEvent_ActivityTaskScheduledEventAttributes:
			s := a.ActivityTaskScheduledEventAttributes
			s.ActivityId, s.ActivityType.Name, s.WorkflowTaskCompletedEventId = "36", "run_audit", 35
		case *historypb.HistoryEvent_ActivityTaskStartedEventAttributes:
			a.ActivityTaskStartedEventAttributes.ScheduledEventId += 6
		case *historypb.HistoryEvent_ActivityTaskCompletedEventAttributes:
			a.ActivityTaskCompletedEventAttributes.ScheduledEventId += 6
			a.ActivityTaskCompletedEventAttributes.StartedEventId += 6
		case *historypb.HistoryEvent_WorkflowTaskStartedEventAttributes:
			a.WorkflowTaskStartedEventAttributes.ScheduledEventId += 6
		case *historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes:
			a.WorkflowTaskCompletedEventAttributes.ScheduledEventId += 6
			a.WorkflowTaskCompletedEventAttributes.StartedEventId += 6
		}
		events = append(events, e)
	}
	return ending(events, last, 41)
}

// marked adds a marker before the end.
func marked(name string, details map[string]string) func(
	[]*historypb.HistoryEvent) []*historypb.HistoryEvent {
	return func(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
		all := map[string]*commonpb.Payloads{}
		for k, v := range details {
			all[k] = &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(v)}}}
		}
		marker := &historypb.HistoryEvent{EventId: 36, EventType: enumspb.EVENT_TYPE_MARKER_RECORDED,
			EventTime: events[35].EventTime,
			Attributes: &historypb.HistoryEvent_MarkerRecordedEventAttributes{MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{
				MarkerName: name, Details: all, WorkflowTaskCompletedEventId: 35}}}
		return ending(append(events[:35:35], marker), events[35:], 35)
	}
}

type divergenceCase struct {
	history, kind    string
	event            int64
	expected, actual string
	change           func([]*historypb.HistoryEvent) []*historypb.HistoryEvent
}

// divergences are histories that differ from the code in one way each.
var divergences = map[string]divergenceCase{
	"swapped": {"right", "other", 18, "activity run_curator", "activity run_reflector",
		func(e []*historypb.HistoryEvent) []*historypb.HistoryEvent {
			return renamed(24, "run_reflector")(renamed(18, "run_curator")(e))
		}},
	"renamed": {"right", "other", 18, "activity run_mirror", "activity run_reflector",
		renamed(18, "run_mirror")},
	"removed": {"right", "other", 36, "activity run_audit", "memo", audited},
	"added": {"right", "other", 30, "memo", "activity persist_results",
		func(e []*historypb.HistoryEvent) []*historypb.HistoryEvent {
			return ending(e[:29:29], e[35:], 29)
		}},
	"timer": {"right", "changed", 12, "timer", "timer",
		func(e []*historypb.HistoryEvent) []*historypb.HistoryEvent {
			e[11].GetTimerStartedEventAttributes().StartToFireTimeout = durationpb.New(time.Hour)
			return e
		}},
	"child": {"experiment", "other", 25, "child workflow OldTask", "child workflow AceTaskWorkflow",
		func(e []*historypb.HistoryEvent) []*historypb.HistoryEvent {
			e[24].GetStartChildWorkflowExecutionInitiatedEventAttributes().WorkflowType.Name = "OldTask"
			e[26].GetChildWorkflowExecutionStartedEventAttributes().WorkflowType.Name = "OldTask"
			return e
		}},
	"side effect": {"right", "missing", 36, "marker SideEffect", "",
		marked("SideEffect", map[string]string{"side-effect-id": "1", "data": "7"})},
	"local activity": {"right", "missing", 36, "local activity quick", "",
		marked("LocalActivity", map[string]string{"data": `{"ActivityID":"1","ActivityType":"quick","Attempt":1}`})},
	"result": {"right", "result", 38, "failure", "completion",
		func(e []*historypb.HistoryEvent) []*historypb.HistoryEvent {
			e[37].EventType = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED
			e[37].Attributes = &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{WorkflowTaskCompletedEventId: 35}}
			return e
		}},
}

// TestVerifyNamesDivergences checks the event and the names of every kind of divergence, as JSON and as
// JUnit.
func TestVerifyNamesDivergences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range divergences {
		var b bytes.Buffer
		if err := historyfile.Write(&b, edited(t, c.history, c.change)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report := filepath.Join(t.TempDir(), "report.xml")
	cmd := exec.Command("acescope", "replay", "verify", dir, "--strict", "--json", "--junit", report)
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != cli.ExitDiverged {
		t.Fatalf("exit code %d: %v", cmd.ProcessState.ExitCode(), err)
	}
	seen := 0
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		var l history.VerdictLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil || l.Source == "" {
			continue
		}
		seen++
		name := strings.TrimSuffix(filepath.Base(l.Source), ".json")
		want, d := divergences[name], l.Divergence
		if d == nil {
			t.Errorf("%s: %s %s", name, l.Outcome, l.Why)
			continue
		}
		if string(d.Kind) != want.kind || d.EventID != want.event ||
			!strings.HasPrefix(d.Expected.String(), want.expected) ||
			!strings.HasPrefix(d.Actual.String(), want.actual) {
			t.Errorf("%s: %s at %d, expected %q, actual %q: %s (%s)",
				name, d.Kind, d.EventID, d.Expected, d.Actual, d.Sentence, d.SDK)
		}
	}
	if seen != len(divergences) {
		t.Errorf("%d verdicts: %s", seen, out)
	}
	var suites cli.JUnitSuites
	data, err := os.ReadFile(report)
	if err != nil || xml.Unmarshal(data, &suites) != nil || len(suites.Suites) != 1 {
		t.Fatalf("%v: %s", err, data)
	}
	failed := 0
	for _, c := range suites.Suites[0].Cases {
		if c.Failure != nil && strings.Contains(c.Failure.Message, "at event ") && c.Failure.Text != "" {
			failed++
		}
	}
	if s := suites.Suites[0]; failed != len(divergences) || s.Failures != failed || s.Tests != failed {
		t.Errorf("%d failures: %s", failed, data)
	}
}

// TestVerifyInterrupted interrupts the command on a terminal: the progress bar shows the total, and the
// finished verdicts are written, also as JUnit.
func TestVerifyInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, err := os.ReadFile("../../engine/workflows/testdata/right.json")
	if err != nil {
		t.Fatal(err)
	}
	const files = 100
	for i := range files - 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.json", i)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Reading the last file blocks, since there is no writer.
	if err := syscall.Mkfifo(filepath.Join(dir, "waits.gz.json"), 0o600); err != nil {
		t.Skip(err)
	}
	fifo := filepath.Join(dir, "waits.gz.json")
	report := filepath.Join(t.TempDir(), "report.xml")
	cmd := exec.Command("acescope", "replay", "verify", dir, fifo, "--parallel", "2", "--json", "--junit",
		report)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	cmd.Stderr = tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	shown := make(chan string)
	go func() {
		var all bytes.Buffer
		buf := make([]byte, 4096)
		interrupted := false
		for {
			n, err := screen.Read(buf)
			all.Write(buf[:n])
			if !interrupted && strings.Contains(all.String(), "99/100 99%") {
				interrupted = true
				_ = cmd.Process.Signal(os.Interrupt)
			}
			if err != nil {
				shown <- all.String()
				return
			}
		}
	}()
	lines := 0
	last := ""
	for s := bufio.NewScanner(out); s.Scan(); lines++ {
		last = s.Text()
	}
	_ = cmd.Wait()
	text := <-shown
	for _, want := range []string{"99/100 99%", "ETA", "/s", "acescope: interrupted"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing on the terminal: %q", want, text)
		}
	}
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if lines != files || !strings.Contains(last, `"histories":99,"deterministic":99`) ||
		!strings.Contains(last, `"incomplete":true`) {
		t.Errorf("%d lines, the last %s", lines, last)
	}
	xml, err := os.ReadFile(report)
	if err != nil || strings.Count(string(xml), "<testcase") != files ||
		!strings.Contains(string(xml), `type="incomplete"`) {
		t.Errorf("%v: %s", err, xml)
	}
}
