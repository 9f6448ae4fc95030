package run

import (
	"encoding/json"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
)

// textOf is what a row is about as plain, unsafe text, for searching and copying: a name
// for it, and the text.
func textOf(d *histories.Detail, it Item) (what, t string) {
	switch it.Kind {
	case ItemFailure:
		return "failure", d.Phase.Failure.Message
	case itemCause:
		c := causes(d)[it.N]
		return "cause", strings.TrimSpace(c.Message + "\n" + c.StackTrace)
	case itemReading:
		return "error", d.Err
	case itemMissing:
		return "missing queries", strings.Join(d.Missing, "\n")
	case ItemSealed:
		s := d.Sealed[it.N]
		return "payload", s.What + " " + s.Encoding
	case itemPending:
		p := d.Pending[it.N]
		return "pending activity", strings.TrimSpace(p.Type + " " + p.LastError)
	case itemFailedTask:
		return "task", d.FailedTasks[it.N].WorkflowID
	case ItemPhase:
		return "phase", string(d.Phase.Steps[it.N].Phase)
	case itemActivity:
		return "activity", d.Activities[it.N].Name
	case ItemSkill:
		u := d.Skills.Skills[it.N]
		return "skill", strings.TrimSpace(u.Name + " " + u.LastError)
	case ItemOperation:
		op := d.Delta.Operations[it.N]
		if op.Content != "" {
			return "operation", op.Content
		}
		return "bullet id", op.BulletID
	case itemTag:
		return "bullet id", d.Delta.BulletTags[it.N].ID
	case itemPrompt:
		if d.Input.PromptRef != nil {
			return "artifact", d.Input.PromptRef.SHA256
		}
		return "prompt", d.Input.Prompt
	case ItemAnswer:
		return "answer", d.Phase.Answer
	case itemExpected:
		return "expected answer", *d.Input.Label
	case ItemPlan:
		return "plan", d.Plan
	case itemTrajectory:
		return "trajectory id", d.TrajectoryID
	case itemBullets:
		return "bullet ids", strings.Join(d.BulletIDs, "\n")
	case itemInsights:
		return "insights", d.Delta.Insights
	case itemRationale:
		return "rationale", d.Delta.Rationale
	case itemFollowUp:
		return "follow up", d.Delta.FollowUpActions[it.N]
	case itemCallLog:
		return "artifact", d.CallLog.SHA256
	case ItemCall:
		return "call id", d.Calls.At(int(it.N)).ID
	case ItemLineage:
		return "workflow id", nodeOf(d, it).Run.WorkflowID
	case itemField:
		f := fieldsOf(d)[it.N]
		return f[0], f[1]
	case ItemLink:
		if r := linksOf(d)[it.N].run; r.RunID == "" {
			return "workflow id", r.WorkflowID
		}
		return "run id", linksOf(d)[it.N].run.RunID
	case itemLog:
		return "line", logOf(d, it).Text
	case itemCourse, itemResult:
		f := courseField(d, it)
		return f.Name, f.Value
	}
	return "", ""
}

// inspected is what the inspector shows of a row, as text to copy: of a call its result,
// or its arguments while there is none.
func inspected(d *histories.Detail, it Item) (what, t string) {
	if it.Kind != ItemCall {
		return textOf(d, it)
	}
	c := d.Calls.At(int(it.N))
	what, raw := "result", c.Result
	if len(raw) == 0 {
		what, raw = "arguments", c.Args
	}
	if len(raw) == 0 {
		return textOf(d, it)
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return what, s
	}
	return what, string(raw)
}

// maxSearched bounds the bytes of one payload that a search looks at.
const maxSearched = 1 << 20

// Contains tells whether a row holds what is looked for, which is in lower case.
func Contains(d *histories.Detail, it Item, lower string) bool {
	has := func(s string) bool {
		return strings.Contains(strings.ToLower(s[:min(len(s), maxSearched)]), lower)
	}
	switch it.Kind {
	case itemNone, ItemSection, itemProgress, itemSpent:
		return false
	case ItemCall:
		c := d.Calls.At(int(it.N))
		return has(c.Name) || has(c.ID) || has(string(c.Args)) || has(string(c.Result)) || has(c.Error)
	case ItemOperation:
		op := d.Delta.Operations[it.N]
		return has(op.Content) || has(op.BulletID) || has(string(op.Type)) || has(op.Reason) || has(string(op.Outcome))
	case ItemPhase:
		a := activityOf(d, d.Phase.Steps[it.N].Phase)
		if a != nil && (a.Failure != nil && has(a.Failure.Message) || a.LastError != nil && has(a.LastError.Message)) {
			return true
		}
	case itemFailedTask:
		t := d.FailedTasks[it.N]
		return has(t.Result.TaskID) || t.Failure != nil && has(t.Failure.Message)
	}
	_, t := textOf(d, it)
	return has(t)
}

// verdict is whether the answer was right, in words; "" where nobody said.
func verdict(d *histories.Detail) (ace.ExitStatus, string) {
	c := d.Phase.Correct
	switch {
	case c == nil:
		return "", ""
	case *c:
		return ace.Success, "correct"
	}
	said := "wrong"
	if d.Input.Label != nil {
		said += ": answered " + strconv.Quote(brief(d.Phase.Answer)) + ", expected " + strconv.Quote(brief(*d.Input.Label))
	}
	return ace.Wrong, said
}

// brief is the beginning of a text, for a heading.
func brief(s string) string {
	s = strings.Join(strings.Fields(s[:min(len(s), 400)]), " ")
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "..."
	}
	return s
}
