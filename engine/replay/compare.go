package replay

import (
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// task is one workflow task of a history that was completed: what it decided, and what
// the code decides in its place.
type task struct {
	started   int64
	completed *historypb.HistoryEvent
	history   []recorded
	next      *historypb.HistoryEvent // the first event behind its commands, nil at the end
}

// tasksOf lists the completed workflow tasks of a history with their commands.
func tasksOf(events []*historypb.HistoryEvent) []*task {
	var all []*task
	byID := map[int64]*task{}
	for _, e := range events {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			t := &task{started: e.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId(), completed: e}
			all = append(all, t)
			byID[e.GetEventId()] = t
			continue
		}
		if c, ok := acceptedOf(e); ok && len(all) > 0 {
			last := all[len(all)-1]
			last.history = append(last.history, recorded{c, e})
			continue
		}
		c, id, compared := commandOf(e)
		if t := byID[id]; t != nil && compared {
			t.history = append(t.history, recorded{c, e})
			continue
		}
		if n := len(all); n > 0 && all[n-1].next == nil && id == 0 {
			all[n-1].next = e
		}
	}
	return all
}

// compare finds the first place in which the code decides otherwise. upTo is the started
// event of the last task that ran code: where the code stopped early, later tasks say
// nothing.
func compare(tasks []*task, actual map[int64][]Command, upTo int64) *Divergence {
	for _, t := range tasks {
		if t.started > upTo {
			return nil
		}
		if d := t.compare(actual[t.started]); d != nil {
			return d
		}
	}
	return nil
}

func (t *task) compare(actual []Command) *Divergence {
	for i, want := range t.history {
		if i >= len(actual) {
			return t.at(KindMissing, want.event, &want.Command, nil)
		}
		if got := actual[i]; !got.matches(want.Command) {
			return t.differs(i, actual)
		}
	}
	if len(actual) > len(t.history) {
		event := t.next
		if event == nil {
			event = t.completed
		}
		return t.at(KindAdded, event, nil, &actual[len(t.history)])
	}
	return nil
}

// differs says whether the code does something else here, does less, or more: less if
// what it does here is what the history has next, more if it does later what the history
// has here.
func (t *task) differs(i int, actual []Command) *Divergence {
	want, got := t.history[i], actual[i]
	rest, ours := t.history[i+1:], actual[i+1:]
	// Both: it was swapped with a neighbour, which is another order, neither less nor more.
	less := len(rest) > 0 && got.matches(rest[0].Command)
	more := len(ours) > 0 && ours[0].matches(want.Command)
	switch {
	case less && !more && len(actual) < len(t.history):
		return t.at(KindMissing, want.event, &want.Command, &got)
	case more && !less && len(actual) > len(t.history):
		return t.at(KindAdded, want.event, &want.Command, &got)
	case isEnding(got.Kind) && isEnding(want.Kind):
		return t.at(KindResult, want.event, &want.Command, &got)
	}
	return t.at(KindOther, want.event, &want.Command, &got)
}

func isEnding(kind string) bool {
	switch kind {
	case kindComplete, kindFail, kindCanceled, kindNew:
		return true
	}
	return false
}

func (t *task) at(kind Kind, e *historypb.HistoryEvent, expected, actual *Command) *Divergence {
	return &Divergence{Kind: kind, EventID: e.GetEventId(), EventType: e.GetEventType().String(), Task: t.completed.GetEventId(),
		Expected: expected, Actual: actual, Recorded: buildOf(t.completed)}
}

// drift finds the first decision that is the same with another length or input.
func drift(tasks []*task, actual map[int64][]Command) *Divergence {
	for _, t := range tasks {
		for i, got := range actual[t.started] {
			if i >= len(t.history) {
				break
			}
			want := t.history[i]
			switch want.Kind {
			case kindTimer, kindActivity, kindChild, kindSignal, kindComplete:
			default:
				continue
			}
			if got.Detail != want.Detail && got.Detail != "" && want.Detail != "" {
				return t.at(KindChanged, want.event, &want.Command, &got)
			}
		}
	}
	return nil
}

// buildOf is the build id of the worker that completed a workflow task.
func buildOf(e *historypb.HistoryEvent) string {
	a := e.GetWorkflowTaskCompletedEventAttributes()
	if v := a.GetWorkerVersion().GetBuildId(); v != "" {
		return v
	}
	return a.GetBinaryChecksum()
}
