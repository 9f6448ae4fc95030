package replay

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// Report is what a replayer of an SDK says about a history that its code decides differently.
type Report struct {
	EventID int64  // that differs, or that belongs to the workflow task that does; 0 if unknown
	Does    string // what the code does there, "" if unknown
	Message string // of the SDK
	Code    string // names the code
}

// Messages of the SDKs that name an event, and what the code does instead. Core is the part that the SDKs for
// Python, TypeScript, .NET and Ruby share.
var (
	// [TMPRL1100] Nondeterminism error: Timer machine does not handle this event: HistoryEvent(id: 5, …)
	coreOther = regexp.MustCompile(`(\w[\w ]*) machine does not handle this event: HistoryEvent\(id: (\d+)`)
	// No command scheduled for event HistoryEvent(id: 11, TimerStarted)
	coreMissing = regexp.MustCompile(`No command scheduled for event HistoryEvent\(id: (\d+)`)
	// Activity type of scheduled event 'a' does not match activity type of activity command 'b'
	coreName = regexp.MustCompile(
		`type of scheduled event '([^']*)' does not match .* type of ([\w ]+) command '([^']*)'`)
	// The message of Core in the text of its failure.
	coreMessage = regexp.MustCompile(`\[TMPRL\d+\] (?:[^"\\]|\\.)*`)
)

// Reported returns the divergence of a report. It finds the event and the command in the message if the report
// does not name them. If both fail, its event ID is 0.
func Reported(events []*historypb.HistoryEvent, r Report) *Divergence {
	d := &Divergence{Kind: KindOther, EventID: r.EventID, Code: r.Code}
	message := strings.Join(strings.Fields(r.Message), " ")
	if m := coreMessage.FindString(message); m != "" {
		message = strings.ReplaceAll(m, `\"`, `"`)
	}
	d.SDK = message
	d.read(events, message)
	if r.Does != "" {
		d.Actual = &Command{Kind: r.Does}
	}
	d.place(events)
	d.Sentence, d.Advice = d.describe()
	guard, known := guards[OriginOf(events).SDK]
	switch {
	case known:
		d.Advice = "guard the change with " + guard + ", or let runs started before it finish on the old code"
	default:
		d.Advice = "guard the change as the SDK describes, or let runs started before it finish on the old code"
	}
	return d
}

// guards names the function of each SDK that guards a change.
var guards = map[string]string{
	goSDK: "workflow.GetVersion", "temporal-python": "workflow.patched", "temporal-typescript": "patched",
	"temporal-java": "Workflow.getVersion", "temporal-dotnet": "Workflow.Patched",
	"temporal-ruby": "Temporalio::Workflow.patched", "temporal-php": "Workflow::getVersion",
}

// read sets what a message names.
func (d *Divergence) read(events []*historypb.HistoryEvent, message string) {
	set := func(id string) {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			d.EventID = n
		}
	}
	if m := coreOther.FindStringSubmatch(message); m != nil {
		set(m[2])
		d.Actual = &Command{Kind: kindOf(m[1])}
	} else if m := coreMissing.FindStringSubmatch(message); m != nil {
		set(m[1])
		d.Kind = KindMissing
	} else if m := coreName.FindStringSubmatch(message); m != nil {
		d.Actual = &Command{Kind: kindOf(m[2]), Name: m[3]}
		d.EventID = named(events, d.EventID, d.Actual.Kind, m[1])
	}
}

// kindOf returns the kind of a command as an SDK names it.
func kindOf(name string) string {
	name = strings.ToLower(strings.ReplaceAll(name, "_", " "))
	for _, k := range []struct{ part, kind string }{
		{"local activity", kindLocal}, {"activity", kindActivity}, {"timer", kindTimer}, {"child", kindChild},
		{"complete", kindComplete}, {"continue", kindNew}, {"fail", kindFail}, {"nexus", kindNexus},
		{"signal", kindSignal}, {"update", kindUpdate},
	} {
		if strings.Contains(name, k.part) {
			return k.kind
		}
	}
	return strings.TrimSpace(name)
}

// named returns the event of the command of a kind with a name: in the workflow task of event at, if that is known,
// otherwise the only one of the history. It returns at if there is no such event, or several.
func named(events []*historypb.HistoryEvent, at int64, kind, name string) int64 {
	var first int64
	within := taskAt(events, at)
	for _, e := range events {
		c, task, ok := commandOf(e)
		switch {
		case !ok || c.Kind != kind || c.Name != name || within != 0 && task != within:
		case first != 0 && within == 0:
			return at
		case first == 0:
			first = e.GetEventId()
		}
	}
	if first == 0 {
		return at
	}
	return first
}

// taskAt returns the ID of the completed workflow task that an event belongs to, or 0.
func taskAt(events []*historypb.HistoryEvent, at int64) int64 {
	if at < 1 || at > int64(len(events)) {
		return 0
	}
	if _, task, ok := commandOf(events[at-1]); ok {
		return task
	}
	for _, e := range events[at-1:] {
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			return e.GetEventId()
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
		default:
			return 0
		}
	}
	return 0
}

// place sets what the history has at the event. An event ID that is not in the history becomes 0.
func (d *Divergence) place(events []*historypb.HistoryEvent) {
	if d.EventID < 1 || d.EventID > int64(len(events)) {
		d.EventID = 0
		return
	}
	e := events[d.EventID-1]
	d.EventType = e.GetEventType().String()
	if c, ok := acceptedUpdate(e); ok {
		d.Expected = &c
	} else if c, _, ok := commandOf(e); ok || c.Kind != "" {
		d.Expected = &c
	}
	d.Task = taskAt(events, d.EventID)
	if i := slices.IndexFunc(events, func(e *historypb.HistoryEvent) bool {
		return e.GetEventId() == d.Task
	}); i >= 0 && d.Task > 0 {
		d.Recorded = events[i].GetWorkflowTaskCompletedEventAttributes().GetWorkerVersion().GetBuildId()
	}
}
