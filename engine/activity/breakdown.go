package activity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"acescope/engine/ace"
)

// Bounds of a breakdown, in bytes and in tasks.
const (
	maxBreakdown = 1 << 20
	maxTasks     = 1000
	maxLooked    = 50 // places in an answer at which JSON may begin
)

// ClassBadBreakdown is the class of an answer that holds no tasks.
const ClassBadBreakdown = "bad_breakdown"

// breakdown has an agent make tasks of a plan, and keeps them as an artifact.
func (a *Activities) breakdown(ctx context.Context, in ace.BreakdownInput) (ace.BreakdownResult, error) {
	text, err := a.breakdownText(in)
	if err != nil {
		return ace.BreakdownResult{}, permanent(err)
	}
	call := callOf(ctx, in.Provider, "task-breakdown-"+in.Phase, in.SequenceNumber)
	call.Instruction, call.WorkingDir, call.Resume, call.Model = text, in.WorkingDir, in.SessionID, in.Model
	call.Permission, call.Timeout = in.PermissionMode, time.Duration(in.TimeoutMS)*time.Millisecond
	end, err := a.callAgent(ctx, call)
	if err != nil {
		return ace.BreakdownResult{}, err
	}
	r := ace.BreakdownResult{AgentResult: end.AgentResult}
	if !end.Success {
		return r, nil
	}
	b, err := readBreakdown(end.Text)
	if err != nil {
		r.Success, r.ExitClass = false, ClassBadBreakdown
		r.Error = fmt.Sprintf("the agent's answer holds no tasks: %v", err)
		r.Summary = "CLI execution failed: " + r.Error
		return r, nil
	}
	data, err := json.Marshal(b)
	if err != nil {
		return r, err
	}
	ref, err := a.Artifacts.PutBytes(ctx, data, "application/json")
	if err != nil {
		return r, err
	}
	r.Breakdown, r.Tasks = &ref, len(b.Tasks)
	return r, nil
}

// breakdownText is what an agent is asked.
func (a *Activities) breakdownText(in ace.BreakdownInput) (string, error) {
	how := ""
	switch in.Phase {
	case "scaffold":
		how = "Name the tasks that lay the ground: directories, files, interfaces, types, configuration and tests that fail; no behaviour yet."
	case "implement":
		how = "Name the tasks that make it work, in an order in which each can be done and checked after those before it."
	default:
		return "", fmt.Errorf("phase %.40q is none: give scaffold or implement", in.Phase)
	}
	plan, err := a.textOf("plan", in.PlanContent, in.PlanRef)
	if err != nil {
		return "", err
	}
	requirements, err := a.textOf("requirements", in.RequirementsContent, in.RequirementsRef)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(plan+requirements) == "" {
		return "", fmt.Errorf("there is neither a plan nor requirements")
	}
	return fmt.Sprintf(breakdownPrompt, how, plan, requirements), nil
}

const breakdownPrompt = `Break a plan down into tasks for another agent, which will be given one task at a time. %s
Look at the working directory where that helps, and change nothing.

Answer with one JSON object and nothing else:
{"outline": "the way in a few sentences", "tasks": [{"id": "t1", "title": "a few words", "description": "all that is needed to do it and to tell that it is done"}]}

The plan:
%s

The requirements:
%s
`

// readBreakdown finds the tasks in what an agent said: all of it, a fenced block, or an
// object within prose; of several the last.
func readBreakdown(text string) (ace.Breakdown, error) {
	if len(text) > maxBreakdown {
		return ace.Breakdown{}, fmt.Errorf("it has %d bytes, at most %d are read", len(text), maxBreakdown)
	}
	why := fmt.Errorf("there is no JSON object with tasks in it")
	for _, c := range jsonIn(text) {
		b, err := breakdownOf(c)
		if err == nil {
			return b, nil
		}
		why = err
	}
	return ace.Breakdown{}, why
}

// jsonIn are the objects and arrays in a text, the last first; those within others are left
// out.
func jsonIn(text string) (found []json.RawMessage) {
	if t := strings.TrimSpace(text); json.Valid([]byte(t)) {
		return []json.RawMessage{json.RawMessage(t)}
	}
	tries := 0
	for at := 0; at < len(text) && tries < maxLooked; {
		next := strings.IndexAny(text[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		tries++
		d := json.NewDecoder(strings.NewReader(text[at:]))
		var v json.RawMessage
		if d.Decode(&v) == nil {
			found = append([]json.RawMessage{v}, found...)
			at += int(d.InputOffset())
			continue
		}
		at++
	}
	return found
}

// breakdownOf reads {"tasks": [...], "outline": ...}, or only the list.
func breakdownOf(v json.RawMessage) (ace.Breakdown, error) {
	var whole struct {
		Tasks   json.RawMessage `json:"tasks"`
		Outline any             `json:"outline"`
	}
	if bytes.HasPrefix(v, []byte("[")) {
		whole.Tasks = v
	} else if err := json.Unmarshal(v, &whole); err != nil {
		return ace.Breakdown{}, err
	}
	var list []any
	if json.Unmarshal(whole.Tasks, &list) != nil || len(list) == 0 {
		return ace.Breakdown{}, fmt.Errorf(`there is no list of "tasks" with something in it`)
	}
	if len(list) > maxTasks {
		return ace.Breakdown{}, fmt.Errorf("there are %d tasks, at most %d are taken", len(list), maxTasks)
	}
	b := ace.Breakdown{Outline: plain(whole.Outline)}
	for i, e := range list {
		t := taskOf(e)
		if t.ID == "" {
			t.ID = fmt.Sprintf("t%d", i+1)
		}
		if t.Title+t.Description == "" && len(t.Details) == 0 {
			return ace.Breakdown{}, fmt.Errorf("task %d says nothing", i+1)
		}
		b.Tasks = append(b.Tasks, t)
	}
	return b, nil
}

// taskOf reads a task: a text, or an object whose keys may be called otherwise.
func taskOf(v any) (t ace.BreakdownTask) {
	fields, ok := v.(map[string]any)
	if !ok {
		t.Description = plain(v)
		return t
	}
	for _, f := range []struct {
		to    *string
		names []string
	}{{&t.ID, []string{"id", "task_id", "key"}}, {&t.Title, []string{"title", "name", "task"}},
		{&t.Description, []string{"description", "instruction", "details", "prompt", "content"}}} {
		for _, name := range f.names {
			if *f.to == "" && fields[name] != nil {
				*f.to = plain(fields[name])
				delete(fields, name)
			}
		}
	}
	if len(fields) > 0 {
		t.Details = fields
	}
	return t
}

// plain is a value as a text.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(data)
}

// taskText is a task as an agent is given it.
func taskText(t ace.BreakdownTask) (string, error) {
	var parts []string
	for _, p := range []string{t.Title, t.Description} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(t.Details) > 0 {
		data, err := json.MarshalIndent(t.Details, "", "  ")
		if err != nil {
			return "", err
		}
		parts = append(parts, string(data))
	}
	return strings.Join(parts, "\n\n"), nil
}

// contextReader ends reading when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
