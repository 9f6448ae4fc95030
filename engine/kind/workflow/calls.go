package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/trace"
)

// describe adds what the agents of the run did. It returns the events of the operations that it describes.
func (f *fold) describe(l *kind.Sections, t *trace.Trace) map[int64]bool {
	if t.Empty() {
		return nil
	}
	l.Add("Usage", t.Framework, usageItems(t)...)
	var items []kind.Item
	told := map[int64]bool{}
	for _, c := range t.Calls {
		told[c.Event] = true
	}
	before := map[string]*trace.Call{} // the request before, by agent
	calls := t.Calls[max(0, len(t.Calls)-maxListed):]
	for _, c := range calls {
		items = append(items, f.callItem(c, before[c.Agent]))
		if c.Operation == trace.Chat {
			before[c.Agent] = c
		}
	}
	remark := ""
	if total := len(t.Calls) + t.Dropped; total > len(items) {
		remark = "the newest " + ace.Number(len(items)) + " of " + ace.Number(total)
	}
	l.Add("Model and tool calls", remark, items...)
	return told
}

// usageItems returns the sums of each agent and model, and of all if there are several.
func usageItems(t *trace.Trace) (items []kind.Item) {
	if len(t.Parts) > 1 {
		items = append(items, sumItem("all", t.Sum))
	}
	for _, p := range t.Parts {
		items = append(items, sumItem(strings.Join(filled(p.Agent, p.Model), " · "), p.Sum))
	}
	return items
}

func sumItem(name string, s trace.Sum) kind.Item {
	requests := ace.Number(s.Requests)
	if s.Failed > 0 {
		requests += ", " + ace.Number(s.Failed) + " failed"
	}
	return kind.Item{Head: cmp.Or(name, "unnamed model"), Fields: kind.Fields(
		kind.Field{Label: "requests", Text: requests},
		kind.Field{Label: "tokens", Text: tokensText(s)},
		kind.Field{Label: "cost", Text: costText(s)})}
}

// tokensText says how many tokens a sum has, and how many requests lack a figure.
func tokensText(s trace.Sum) string {
	if s.Requests == 0 {
		return ""
	}
	if s.Unrecorded == s.Requests {
		return "not recorded"
	}
	text := ace.Number(s.Tokens()) + " (" + strings.Join(filled(ace.Number(s.Input)+" input",
		figure(s.CacheRead, "read from the cache"), figure(s.CacheWrite, "written to the cache"),
		ace.Number(s.Output)+" output", figure(s.Reasoning, "of it reasoning")), ", ") + ")"
	if s.Unrecorded > 0 {
		text += fmt.Sprintf(", %s of %s not recorded", ace.Number(s.Unrecorded),
			ace.Count(s.Requests, "request"))
	}
	return text
}

func costText(s trace.Sum) string {
	switch {
	case s.Requests == 0:
		return ""
	case s.Unpriced == s.Requests:
		return "unknown"
	case s.Unpriced > 0:
		return ace.Dollars(s.Cost) + fmt.Sprintf(", without %s of unknown cost",
			ace.Count(s.Unpriced, "request"))
	case s.Written == s.Requests:
		return ace.Dollars(s.Cost) + " as the framework wrote it"
	}
	return ace.Dollars(s.Cost)
}

func figure(n int64, what string) string {
	if n == 0 {
		return ""
	}
	return ace.Number(n) + " " + what
}

// filled returns the texts that are not "".
func filled(all ...string) (texts []string) {
	for _, t := range all {
		if t != "" {
			texts = append(texts, t)
		}
	}
	return texts
}

// callItem describes a call of an agent. before is the agent's request before, or nil.
func (f *fold) callItem(c, before *trace.Call) kind.Item {
	i := kind.Item{Outcome: kind.Outcome(c.Outcome), Event: cmp.Or(c.End, c.Event)}
	var fields []kind.Field
	switch c.Operation {
	case trace.Chat:
		i.Head = cmp.Or(strings.Join(filled(c.Agent, c.ModelName()), " · "), c.Name, "request to a model")
		fields = chatFields(c, before)
	case trace.Handoff:
		i.Head = "handoff to " + c.Name
	default:
		i.Head = strings.Join(filled(c.Server, c.Name), " · ")
		fields = []kind.Field{{Label: "input", Kind: kind.FieldPayload, Text: string(c.Arguments)},
			{Label: "result", Kind: kind.FieldPayload, Text: string(c.Result)}}
		if c.Where != trace.InActivity {
			fields = append(fields, kind.Field{Label: "ran in", Text: string(c.Where)})
		}
		if c.Outcome == trace.Unknown {
			fields = append(fields, kind.Field{Label: "note", Text: "the history does not record its result"})
		}
		if c.Told {
			fields = append(fields, kind.Field{Label: "note", Text: "the model was told of the failure"})
		}
	}
	if o := f.operationAt(c.Event); o != nil {
		of := o.item()
		for _, field := range of.Fields {
			payload := field.Kind == kind.FieldPayload && c.Operation == trace.Chat && c.Problem != ""
			if payload || field.Kind == "" && field.Label != "summary" {
				fields = append(fields, field)
			}
		}
		i.Run = of.Run
	}
	i.Fields = append(kind.Fields(fields...), kind.Fields(
		kind.Field{Label: "waited for retry", Text: waitText(c.Wait)},
		kind.Field{Label: "not understood", Kind: kind.FieldError, Text: c.Problem},
		kind.Field{Label: "error", Kind: kind.FieldError, Text: c.Error})...)
	return i
}

func waitText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String() + ", as the failure asked for"
}

// chatFields returns what was new to the model, what it answered, and what that took. Results of tools are in
// the items of their calls.
func chatFields(c, before *trace.Call) (fields []kind.Field) {
	for _, m := range c.Asked {
		m.Results = nil
		fields = append(fields, kind.Field{Label: m.Role, Text: messageText(&m)})
	}
	if c.Answer != nil {
		fields = append(fields, kind.Field{Label: "reasoning", Text: c.Answer.Reasoning},
			kind.Field{Label: "answer", Text: messageText(c.Answer)})
	}
	if c.Where == trace.InLocalActivity && c.Asked == nil {
		fields = append(fields, kind.Field{Label: "note",
			Text: "the input of a local activity is not recorded"})
	}
	var one trace.Sum
	if one.Add(c); c.Outcome == trace.OK {
		fields = append(fields, kind.Field{Label: "tokens", Text: tokensText(one)},
			kind.Field{Label: "cost", Text: costText(one)})
	}
	if c.Finish != "" && c.Outcome == trace.OK {
		fields = append(fields, kind.Field{Label: "finish reason", Text: c.Finish})
	}
	if c.Answered != "" && c.Model != "" && c.Answered != c.Model {
		fields = append(fields, kind.Field{Label: "answered by", Text: c.Answered})
	}
	if before == nil || before.System != c.System {
		fields = append(fields, kind.Field{Label: "system", Text: c.System})
	}
	if before == nil || !slices.Equal(before.Tools, c.Tools) {
		fields = append(fields, kind.Field{Label: "tools", Text: strings.Join(c.Tools, ", ")})
	}
	return fields
}

// messageText returns a message in one text.
func messageText(m *trace.Message) string {
	texts := filled(m.Text)
	for _, c := range m.Calls {
		texts = append(texts, c.Name+"("+string(c.Arguments)+")")
	}
	for _, r := range m.Results {
		texts = append(texts, strings.TrimSpace(r.Name+" → "+kind.Plain(r.Content)))
	}
	return strings.Join(texts, "\n")
}

// operationAt returns the operation that an event began, or nil.
func (f *fold) operationAt(event int64) *operation {
	for _, o := range f.operations {
		if o.event == event && event != 0 {
			return o
		}
	}
	return nil
}
