package activities

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
)

// Bounds of a breakdown, in bytes and in tasks.
const (
	maxBreakdown = 1 << 20
	maxTasks     = 1000
	maxScans     = 50 // positions in an answer at which to look for JSON
)

// ClassBadBreakdown is the exit class of an answer without tasks.
const ClassBadBreakdown = "bad_breakdown"

// breakdown lets an agent divide a plan into tasks and stores these as an artifact.
func (g *agents) breakdown(ctx context.Context, in ace.BreakdownInput) (ace.BreakdownResult, error) {
	text, err := g.breakdownText(ctx, in)
	if err != nil {
		return ace.BreakdownResult{}, permanent(err)
	}
	call := newCall(ctx, in.Provider, "task-breakdown-"+in.Phase, in.SequenceNumber)
	call.Instruction = text
	call.WorkingDir = in.WorkingDir
	call.Resume = in.SessionID
	call.Model = in.Model
	call.Permission = agentcli.Permission(in.PermissionMode)
	call.Timeout = time.Duration(in.TimeoutMS) * time.Millisecond
	end, err := g.callAgent(ctx, call)
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
		r.Error = fmt.Sprintf("the agent's answer contains no tasks: %v", err)
		r.Summary = "CLI execution failed: " + r.Error
		return r, nil
	}
	data, err := json.Marshal(b)
	if err != nil {
		return r, err
	}
	ref, err := g.artifacts.PutBytes(ctx, data, "application/json")
	if err != nil {
		return r, err
	}
	r.Breakdown, r.Tasks = &ref, len(b.Tasks)
	return r, nil
}

// breakdownText returns the instruction of a breakdown.
func (g *agents) breakdownText(ctx context.Context, in ace.BreakdownInput) (string, error) {
	how := ""
	switch in.Phase {
	case "scaffold":
		how = "List the tasks that prepare the implementation: directories, files, interfaces, types, configuration and failing tests; no behavior yet."
	case "implement":
		how = "List the tasks that implement the behavior, in an order in which each can be completed and checked after the previous ones."
	default:
		return "", fmt.Errorf("unknown phase %.40q: use scaffold or implement", in.Phase)
	}
	plan, err := g.resolve(ctx, "plan", in.PlanContent, in.PlanRef)
	if err != nil {
		return "", err
	}
	requirements, err := g.resolve(ctx, "requirements", in.RequirementsContent, in.RequirementsRef)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(plan+requirements) == "" {
		return "", errors.New("plan and requirements are both empty")
	}
	return fmt.Sprintf(breakdownPrompt, how, plan, requirements), nil
}

const breakdownPrompt = `Break a plan down into tasks for another agent, which receives one task at a time. %s
Look at the working directory if that helps, and change nothing.

Answer with one JSON object and nothing else:
{"outline": "the approach in a few sentences", "tasks": [{"id": "t1", "title": "a few words", "description": "everything needed to do the task and to verify it"}]}

The plan:
%s

The requirements:
%s
`

// readBreakdown finds the tasks in an agent's answer: the whole answer, a fenced block, or an
// object within prose. The last valid one wins.
func readBreakdown(text string) (ace.Breakdown, error) {
	if len(text) > maxBreakdown {
		return ace.Breakdown{}, fmt.Errorf("it has %s bytes; the limit is %s", ace.Number(len(text)),
			ace.Number(maxBreakdown))
	}
	err := errors.New("it contains no JSON object with tasks")
	for _, c := range slices.Backward(findJSON(text)) {
		var b ace.Breakdown
		if b, err = parseBreakdown(c); err == nil {
			return b, nil
		}
	}
	return ace.Breakdown{}, err
}

// findJSON returns the outermost objects and arrays in a text.
func findJSON(text string) (found []json.RawMessage) {
	if t := strings.TrimSpace(text); json.Valid([]byte(t)) {
		return []json.RawMessage{json.RawMessage(t)}
	}
	tries := 0
	for at := 0; at < len(text) && tries < maxScans; {
		next := strings.IndexAny(text[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		tries++
		d := json.NewDecoder(strings.NewReader(text[at:]))
		var v json.RawMessage
		if d.Decode(&v) == nil {
			found = append(found, v)
			at += int(d.InputOffset())
			continue
		}
		at++
	}
	return found
}

// parseBreakdown decodes {"tasks": [...], "outline": ...}, or only the list.
func parseBreakdown(v json.RawMessage) (ace.Breakdown, error) {
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
		return ace.Breakdown{}, errors.New(`"tasks" is missing or empty`)
	}
	if len(list) > maxTasks {
		return ace.Breakdown{}, fmt.Errorf("it has %s tasks; the limit is %s", ace.Number(len(list)),
			ace.Number(maxTasks))
	}
	b := ace.Breakdown{Outline: plain(whole.Outline)}
	for i, e := range list {
		t := parseTask(e)
		t.ID = cmp.Or(t.ID, fmt.Sprintf("t%d", i+1))
		if t.Title+t.Description == "" && len(t.Details) == 0 {
			return ace.Breakdown{}, fmt.Errorf("task %d is empty", i+1)
		}
		b.Tasks = append(b.Tasks, t)
	}
	return b, nil
}

// parseTask decodes a task: a text, or an object with one of several spellings of the keys.
func parseTask(v any) (t ace.BreakdownTask) {
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

// plain returns a string as it is and any other value as JSON.
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

// taskText returns a task as text for an agent.
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
