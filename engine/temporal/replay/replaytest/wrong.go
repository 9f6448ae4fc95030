package replaytest

import (
	"encoding/json"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// WrongTask returns the history of a task whose answer is wrong: it used two bullets, called two tools, of
// which one failed, and its curator proposed an operation of each type.
func WrongTask() []*historypb.HistoryEvent {
	m := Begin(ace.TaskWorkflow)
	label := "2437.5"
	m.Events[0].GetWorkflowExecutionStartedEventAttributes().Input = Encoded(ace.TaskInput{TaskID: "q-1",
		Prompt: "How much interest is due?", Label: &label, PlaybookHash: "v1", Branch: "books"})
	generator := m.Activity(m.Task(), ace.ActivityGenerator)
	m.Done(generator, ace.GeneratorResult{Plan: "Divide the first number by the second.",
		BulletIDs:  []string{"calc-1", "calc-2"},
		StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 10, CostUSD: 0.5}}})
	skills := m.Activity(m.Task(), ace.ActivitySkills)
	yes, no := true, false
	args := json.RawMessage(`{"expression":"150000 / 6.5"}`)
	m.Signal(ace.ToolEvent{EventID: "u1", CallID: "c1", Kind: ace.KindToolUse, Name: "calculate", At: Noon,
		Args: args})
	m.Signal(ace.ToolEvent{EventID: "r1", CallID: "c1", Kind: ace.KindToolResult, OK: &yes, DurationMS: 3,
		Result: json.RawMessage(`{"value":23076.92}`)})
	m.Signal(ace.ToolEvent{EventID: "u2", CallID: "c2", Kind: ace.KindToolUse, Name: "look_up", At: Noon,
		Args: json.RawMessage(`{"formula":"interest"}`)})
	m.Signal(ace.ToolEvent{EventID: "r2", CallID: "c2", Kind: ace.KindToolResult, OK: &no, DurationMS: 40,
		Error: "no such formula"})
	m.Done(skills, ace.SkillSessionResult{Answer: "23076.92"})
	m.Done(m.Activity(m.Task(), ace.ActivityReflector), ace.ReflectorResult{Correct: &no,
		Insights: `The answer "23076.92" is wrong: the formula was a guess.`, GradeReason: "exact: differs",
		Cause:      "no recipe was known for the formula",
		BulletTags: []ace.BulletTag{{ID: "calc-2", Tag: "harmful"}}})
	m.Done(m.Activity(m.Task(), ace.ActivityCurator), ace.CuratorResult{Rationale: "A recipe was missing.",
		Accepted: []ace.Operation{
			{Type: ace.OpAdd, Section: "recipes", Content: "interest = a * r * t / 360"},
			{Type: ace.OpUpdate, BulletID: "calc-1", Content: "Divide only if a rate is wanted."},
			{Type: ace.OpTag, BulletID: "calc-2", Metadata: map[string]int{"harmful": 1}}},
		Rejected: []ace.Operation{{Type: ace.OpRemove, BulletID: "calc-2", Reason: "used by others"}}})
	m.Done(m.Activity(m.Task(), ace.ActivityPersist), ace.PersistResult{PlaybookBefore: "v1",
		PlaybookAfter: "v2", Seq: 2,
		Bullets: 3, Operations: []ace.Operation{
			{Type: ace.OpAdd, BulletID: "calc-3", Content: "interest = a * r * t / 360",
				Outcome: ace.OutcomeAccepted},
			{Type: ace.OpUpdate, BulletID: "calc-1", Content: "Divide only if a rate is wanted.",
				Outcome: ace.OutcomeAccepted},
			{Type: ace.OpTag, BulletID: "calc-2", Metadata: map[string]int{"harmful": 1},
				Outcome: ace.OutcomeAccepted}}})
	return m.Complete(m.Task(), ace.TaskResult{TaskID: "q-1", Answer: "23076.92"})
}
