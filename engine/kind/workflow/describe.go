package workflow

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/temporal/history"
)

// Bounds of descriptions: operations of a section, and values of open operations.
const (
	maxListed = 100
	maxOpen   = 100
)

func (f *fold) Values() []kind.Value {
	var l kind.ValueList
	if f.contract() {
		l = f.task.Values()
	} else {
		l.Put("status", string(f.status))
	}
	l.Put("cancel_requested", f.cancel)
	l.Put("workflow_task", f.workflowTask)
	l.Put("workflow_task_failures", f.attempts.Failures)
	l.Put("sdk", f.sdk)
	l.Put("build", f.build)
	for _, c := range slices.SortedFunc(maps.Keys(f.counts), func(a, b count) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.name, b.name),
			cmp.Compare(a.status, b.status))
	}) {
		l.Put(groups[c.group].path+"."+c.name+"."+c.status, f.counts[c])
	}
	open := slices.Sorted(maps.Keys(f.open))
	for _, at := range open[max(0, len(open)-maxOpen):] {
		o := f.open[at]
		l.Put("open."+strconv.FormatInt(at, 10), strings.TrimSpace(o.label()+" "+o.note))
	}
	putFields(&l, "memo.", f.memo)
	putFields(&l, "search_attributes.", f.attrs)
	l.Put("result", payloadText(f.result))
	if f.failure != nil && !f.contract() {
		l.Put("failure", strings.TrimPrefix(f.failure.Type+": "+f.failure.Message, ": "))
	}
	return l
}

func putFields(l *kind.ValueList, at string, fields map[string]*commonpb.Payload) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		l.Put(at+name, payloadText(history.PayloadList(fields[name])))
	}
}

// payloadText returns payloads as JSON, or what prevents that, or "" without payloads.
func payloadText(p *commonpb.Payloads) string {
	if len(p.GetPayloads()) == 0 {
		return ""
	}
	if values, ok := history.Values(p); ok {
		return string(values)
	}
	return cmp.Or(history.Unread(p), "not JSON")
}

// payload returns a field of payloads; its text is "" without payloads.
func payload(label string, p *commonpb.Payloads) kind.Field {
	field := kind.Field{Label: label, Kind: kind.FieldPayload, Text: payloadText(p)}
	if _, ok := history.Values(p); !ok {
		field.Kind = ""
	}
	return field
}

func (f *fold) Sections(b kind.Books, e *historypb.HistoryEvent) []kind.Section {
	var l kind.Sections
	if f.contract() {
		l = f.task.Sections(b, e)
	}
	if f.name == "" && len(f.operations) == 0 {
		return l
	}
	l.Add("Workflow", f.name, f.about())
	if f.failure != nil && !f.contract() {
		l.Add("Failure", "", kind.Item{Head: f.failure.Type, Outcome: kind.OutcomeFailed,
			Fields: kind.Fields(kind.Field{Kind: kind.FieldError, Text: f.failure.Message})})
	}
	calls := f.agent.Trace()
	ran := f.describe(&l, &calls)
	for g := range groupCount {
		items, total := f.items(g, ran)
		remark := ""
		if total > len(items) {
			remark = "the newest " + ace.Number(len(items)) + " of " + ace.Number(total)
		}
		l.Add(groups[g].title, remark, items...)
	}
	l.Add("Memo", "", fieldItems(f.memo)...)
	l.Add("Search attributes", "", fieldItems(f.attrs)...)
	return l
}

func fieldItems(fields map[string]*commonpb.Payload) (items []kind.Item) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text := kind.Plain([]byte(payloadText(history.PayloadList(fields[name]))))
		items = append(items, kind.Item{Fields: kind.Fields(kind.Field{Label: name, Text: text})})
	}
	return items
}

func (f *fold) about() kind.Item {
	status := string(f.status)
	if f.cancel && f.status == ace.Running {
		status += ", cancel requested"
	}
	return kind.Item{Fields: kind.Fields(
		kind.Field{Label: "status", Text: strings.ReplaceAll(status, "_", " ")},
		kind.Field{Label: "workflow task", Text: f.workflowTask},
		kind.Field{Label: "workflow task fails", Kind: kind.FieldError, Text: f.trouble()},
		kind.Field{Label: "task queue", Text: f.queue},
		kind.Field{Label: "priority", Text: f.priority},
		kind.Field{Label: "SDK", Text: f.sdk},
		kind.Field{Label: "build", Text: f.build},
		kind.Field{Label: "summary", Text: f.summary},
		kind.Field{Label: "details", Text: f.details},
		kind.Field{Label: "parent", Text: f.parent.WorkflowID},
		payload("input", f.input), payload("result", f.result))}
}

// trouble says how often the workflow task of an open run has failed, and why; "" if it does not fail.
func (f *fold) trouble() string {
	if f.attempts.Failures == 0 || f.status != ace.Running {
		return ""
	}
	return strconv.Itoa(f.attempts.Failures) + " or more times: " +
		history.FailureOf(f.attempts.Failure).Message
}

// items returns the newest operations of a group that are no calls of agents, and the number of all.
func (f *fold) items(g group, calls map[int64]bool) (items []kind.Item, total int) {
	for c, n := range f.counts {
		if c.group == g {
			total += n
		}
	}
	for _, o := range slices.Backward(f.operations) {
		if o.group == g && calls[o.event] {
			total--
		} else if o.group == g && len(items) < maxListed {
			items = append(items, o.item())
		}
	}
	slices.Reverse(items)
	return items, total
}

var outcomes = map[string]kind.Outcome{string(ace.Completed): kind.OutcomeOK, received: ""}

func (o *operation) item() kind.Item {
	outcome, ok := outcomes[o.status]
	if !ok {
		outcome = kind.Outcome(o.status)
	}
	attempts := ""
	if o.attempt > 1 {
		attempts = strconv.Itoa(int(o.attempt))
		if o.lastFailure != "" {
			attempts += "; the one before failed: " + o.lastFailure
		}
	}
	i := kind.Item{Head: o.name, Outcome: outcome, Event: o.newest, Fields: kind.Fields(
		kind.Field{Label: "summary", Text: strings.TrimPrefix(o.summary, o.name)},
		payload("input", o.input), payload("result", o.result),
		kind.Field{Label: "attempts", Text: attempts},
		kind.Field{Label: "waited", Text: between(o.began, o.started)},
		kind.Field{Label: "took", Text: between(later(o.began, o.started), o.over)},
		kind.Field{Label: "note", Text: o.note},
		kind.Field{Label: "worker", Text: o.worker})}
	if o.failure != nil {
		i.Fields = append(i.Fields, kind.Fields(kind.Field{Label: "error", Kind: kind.FieldError,
			Text: strings.TrimPrefix(o.failure.Type+": "+o.failure.Message, ": ")})...)
	}
	if o.run.WorkflowID != "" {
		i.Run = &o.run
		i.Fields = append(i.Fields, kind.Field{Label: "workflow", Text: o.run.WorkflowID})
	}
	return i
}

// later returns started, or began if it never started.
func later(began, started time.Time) time.Time {
	if started.IsZero() {
		return began
	}
	return started
}

// between returns the time between two events, or "" if it is unknown or below a millisecond.
func between(from, to time.Time) string {
	took := to.Sub(from).Round(time.Millisecond)
	if from.IsZero() || to.IsZero() || took <= 0 {
		return ""
	}
	return took.String()
}
