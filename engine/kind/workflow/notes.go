package workflow

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/trace"
)

// Notes implements [kind.Noter]: calls of agents that the last event ended, then the operation that it began
// or changed. An operation that is a call of an agent ends with a note about the call.
func (f *fold) Notes() (notes []kind.Note) {
	t := f.agent.Trace()
	ended := f.agent.Ended()
	if f.closed {
		for _, c := range t.Calls {
			if c.Outcome == trace.Pending { // no event will end it
				ended = append(ended, c)
			}
		}
	}
	for _, c := range ended {
		notes = append(notes, kind.Note{Name: callName(c), Text: callLine(c), Call: c, Failure: failureOf(c)})
	}
	if f.streamed != "" {
		return append(notes, kind.Note{Name: "stream", Text: f.streamed, Stream: true})
	}
	o := f.last
	if o == nil || f.contracted || o.unremarkable() {
		return notes
	}
	i := slices.IndexFunc(t.Calls, func(c *trace.Call) bool { return c.Event == o.event })
	switch {
	case i < 0:
		notes = append(notes, o.begunOrEnded())
	case o.over.IsZero():
		n := o.begunOrEnded()
		if c := t.Calls[i]; o.newest == o.event {
			n.Text = askedLine(c)
		}
		notes = append(notes, n)
	}
	return notes
}

// unremarkable reports whether nothing is to be said of the newest event of an operation: a server writes the
// start of an activity with its end and that of a child after its initiation, and the state of an ACE task
// describes the task's steps.
func (o *operation) unremarkable() bool {
	_, step := ace.StepOf(o.name)
	return isStream(o.name) || o.group == activities && (o.status == running || step) ||
		o.group == children && o.status == scheduled
}

// begunOrEnded returns a note about an operation.
func (o *operation) begunOrEnded() kind.Note {
	i := o.item()
	n := kind.Note{Name: o.title(), Failure: o.failure, Item: &i}
	line := kind.Item{Head: strings.TrimSpace(n.Name + " " + o.word())}
	if o.failure != nil {
		line.Head = n.Name + " " + string(o.failure.Kind)
		line.Fields = kind.Fields(kind.Field{Kind: kind.FieldError, Text: o.failure.Message})
	}
	leftOut := []string{"worker", "waited"}
	if !o.over.IsZero() && o.group != localActivities {
		leftOut = append(leftOut, "input", "summary", "note")
	}
	for _, field := range i.Fields {
		if field.Kind == kind.FieldError || slices.Contains(leftOut, field.Label) {
			continue
		}
		field.Label = strings.TrimPrefix(field.Label, "note")
		line.Fields = append(line.Fields, field)
	}
	n.Text = line.Line()
	return n
}

// title names an operation so that it cannot be taken for one of another group.
func (o *operation) title() string {
	switch o.group {
	case signals, signalsSent:
		return "signal " + o.name
	case updates:
		return "update " + o.name
	case cancelsSent:
		return "cancel request to " + o.name
	case versions:
		return "version " + o.name
	case timers:
		return "timer" + strings.TrimPrefix(" "+o.name, " timer")
	}
	return o.name
}

// word says what has happened to an operation.
func (o *operation) word() string {
	switch status := string(o.status); {
	case o.group == timers && status == string(ace.Completed):
		return "fired"
	case o.group == timers && status == running, o.group == children && status == running,
		o.group == nexusOperations && status == running:
		return "started"
	case o.group == updates && status == running:
		return "accepted"
	case o.group == signalsSent && status == scheduled, o.group == cancelsSent && status == scheduled:
		return "sent"
	case o.group >= versions && status == string(ace.Completed):
		return ""
	default:
		return strings.ReplaceAll(status, "_", " ")
	}
}

// Bounds of the texts of a call in a line, in bytes.
const (
	maxAnswer   = 400
	maxArgument = 160
)

func callName(c *trace.Call) string {
	switch c.Operation {
	case trace.Chat:
		return cmp.Or(strings.Join(filled(c.Agent, c.ModelName()), " · "), c.Name, "request to a model")
	case trace.Handoff:
		return "handoff to " + c.Name
	}
	return strings.Join(filled(c.Server, c.Name), " · ")
}

// askedLine says in one line that a call began, and what it is about.
func askedLine(c *trace.Call) string {
	if c.Operation != trace.Chat {
		return callName(c) + arguments(c.Arguments) + " scheduled"
	}
	text := callName(c) + " asked"
	if n := len(c.Asked); n > 0 {
		m := c.Asked[n-1]
		text += ", " + m.Role + ": " + ace.OneLine(messageText(&m), maxArgument)
	}
	return text
}

// callLine describes a call that has ended in one line.
func callLine(c *trace.Call) string {
	text, about := callName(c), filled(attemptsText(c), notUnderstood(c))
	if c.Operation == trace.Tool {
		text += arguments(c.Arguments)
	}
	switch c.Outcome {
	case trace.OK:
		switch {
		case c.Operation == trace.Chat:
			text += answerText(c)
			about = append(filled(usageText(c), durationText(c)), about...)
		case c.Operation == trace.Handoff:
			about = nil
		default:
			text += " → " + cmp.Or(ace.OneLine(kind.Plain(c.Result), maxAnswer), "no result")
			about = append(filled(durationText(c)), about...)
		}
	case trace.Failed:
		text += " failed: " + ace.OneLine(c.Error, maxAnswer)
		if c.Told {
			about = append(about, "the model was told")
		}
	case trace.Unknown:
		text += ": the history does not record its result"
	default:
		text += " has not ended"
	}
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return text
}

// answerText returns what a model answered, after a separator.
func answerText(c *trace.Call) string {
	if c.Answer == nil {
		return " answered"
	}
	var asks []string
	for _, call := range c.Answer.Calls {
		asks = append(asks, call.Name+arguments(call.Arguments))
	}
	text := ""
	if c.Answer.Text != "" {
		text = ": " + ace.OneLine(c.Answer.Text, maxAnswer)
	}
	if len(asks) > 0 {
		text += " → " + strings.Join(asks, ", ")
	}
	return cmp.Or(text, " answered")
}

func arguments(raw json.RawMessage) string {
	return "(" + ace.OneLine(kind.Plain(raw), maxArgument) + ")"
}

// usageText returns the tokens and the cost of a request that has ended.
func usageText(c *trace.Call) string {
	if c.Usage == nil {
		return "tokens not recorded"
	}
	text := ace.Count(c.Usage.Tokens(), "token")
	if c.CostUSD != nil {
		text += ", " + ace.Dollars(*c.CostUSD)
	}
	return text
}

func durationText(c *trace.Call) string { return between(later(c.Began, c.Started), c.Over) }

// attemptsText says that a call was tried again, and why.
func attemptsText(c *trace.Call) string {
	if c.Attempts < 2 {
		return ""
	}
	text := "attempt " + ace.Number(c.Attempts)
	if c.Wait > 0 {
		text += " after " + c.Wait.Round(time.Millisecond).String() + " that the failure asked for"
	}
	if c.LastError != "" {
		text += "; the one before failed: " + ace.OneLine(c.LastError, maxArgument)
	}
	return text
}

func notUnderstood(c *trace.Call) string {
	if c.Problem == "" {
		return ""
	}
	return "not understood: " + c.Problem
}

// failureOf returns the failure of a call, or nil.
func failureOf(c *trace.Call) *ace.Failure {
	if c.Outcome != trace.Failed {
		return nil
	}
	return &ace.Failure{Kind: ace.Failed, Message: c.Error}
}
