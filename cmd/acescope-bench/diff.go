package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/temporal/historyfile"
)

// diffEvents is how many events each of two compared histories has.
const diffEvents = 10_000

// diff measures how long the whole command takes for two exported histories in which every
// tenth result differs and one more step stands in the middle.
func (b *bench) diff(ctx context.Context) error {
	dir, remove, err := b.fresh("diff")
	if err != nil {
		return err
	}
	defer remove()
	paths := [2]string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")}
	var size int64
	for i, path := range paths {
		n, err := writeHistory(path, longHistory(i))
		if err != nil {
			return err
		}
		size += n
	}
	var seconds, cpu, peak series
	for range b.size.runs {
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, b.acescope, "diff", paths[0], paths[1], "--json", "--data-dir", dir)
		cmd.Stdout = &said
		started := time.Now()
		err := cmd.Run()
		seconds = append(seconds, time.Since(started).Seconds())
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 4 {
			return fmt.Errorf("the histories differ, but diff ended with %v", err)
		}
		if lines := bytes.Count(said.Bytes(), []byte("\n")); lines < diffEvents/3 {
			return fmt.Errorf("diff wrote %d lines only", lines)
		}
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = append(peak, peakMB(u))
			cpu = append(cpu, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
		}
	}
	what := fmt.Sprintf("two histories of %d events (%.0f MB of JSON), read, compared, written", diffEvents, float64(size)/1e6)
	b.report.add(row{section: "diff", what: what, unit: "s", ours: seconds, target: below(1)},
		row{section: "diff", what: "processor time meanwhile", unit: "s", ours: cpu},
		row{section: "diff", what: "peak memory meanwhile", unit: "MB", ours: peak})
	return nil
}

func writeHistory(path string, events []*historypb.HistoryEvent) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(historyfile.Write(f, events), f.Close()); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// longHistory is a run of activities, three events each; another salt gives other ids, times and
// some other results.
func longHistory(salt int) []*historypb.HistoryEvent {
	var events []*historypb.HistoryEvent
	began := time.Date(2026, 5, 4, 12+salt, 0, 0, 0, time.UTC)
	add := func(t enumspb.EventType, set func(*historypb.HistoryEvent)) int64 {
		e := &historypb.HistoryEvent{EventId: int64(len(events) + 1), EventType: t, EventTime: timestamppb.New(began.Add(time.Duration(len(events)) * time.Millisecond))}
		set(e)
		events = append(events, e)
		return e.EventId
	}
	data := func(format string, args ...any) *commonpb.Payloads {
		return &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: fmt.Appendf(nil, format, args...)}}}
	}
	add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			WorkflowType: &commonpb.WorkflowType{Name: "Long"}, WorkflowId: fmt.Sprintf("long-%d", salt), OriginalExecutionRunId: fmt.Sprintf("run-%d", salt)}}
	})
	for i := 0; len(events) < diffEvents; i++ {
		value := i
		if i%10 == 0 {
			value += salt
		}
		if i == 1500 && salt > 0 {
			i--
			salt = 0 // one step more, once; the results that follow are the same
			value = -1
		}
		id := add(enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, func(e *historypb.HistoryEvent) {
			e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityId: fmt.Sprint(e.EventId), ActivityType: &commonpb.ActivityType{Name: fmt.Sprintf("step_%d", i%7)},
				Input: data(`{"task":{"task_id":"long-%d","run_id":"run-%d","model":"m"},"prompt":%q,"n":%d}`, salt, salt, logFiller, i)}}
		})
		start := add(enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, func(e *historypb.HistoryEvent) {
			e.Attributes = &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: id, Attempt: 1}}
		})
		add(enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, func(e *historypb.HistoryEvent) {
			e.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: id, StartedEventId: start,
				Result: data(`{"answer":%d,"notes":[%q,"b","c"],"time":{"started_at":%q,"duration_ms":%d}}`, value, logFiller, began.Format(time.RFC3339Nano), i)}}
		})
	}
	return events
}
