package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/activities"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
)

// payload is a payload of the contract. Its name is that of a workflow type, an activity type, a signal or a
// query, and for inputs and results ".input" or ".result"; that of a memo begins with "memo.", that of an
// update with its workflow type.
type payload struct {
	name  string
	about string
	of    reflect.Type
}

func payloadOf[T any](name, about string) payload { return payload{name, about, reflect.TypeFor[T]()} }

// call returns the payloads of a workflow type or an activity type.
func call[In, Out any](name, what string) []payload {
	return []payload{
		payloadOf[In](name+".input", "Argument of the "+what),
		payloadOf[Out](name+".result", "Result of the "+what),
	}
}

// contract holds every payload of docs/reference/contract.md, in its order.
var contract = slices.Concat(
	call[ace.TaskInput, ace.TaskResult](ace.TaskWorkflow, "workflow of a task"),
	call[ace.ExperimentInput, ace.ExperimentProgress](ace.ExperimentWorkflow, "workflow of an experiment"),
	call[run.Input, run.Result](run.Workflow, "workflow of a blueprint run"),
	call[ace.GeneratorInput, ace.GeneratorResult](ace.ActivityGenerator, "generator"),
	call[ace.SkillsInput, ace.SkillSessionResult](ace.ActivitySkills, "skills phase"),
	call[ace.ReflectorInput, ace.ReflectorResult](ace.ActivityReflector, "reflector"),
	call[ace.CuratorInput, ace.CuratorResult](ace.ActivityCurator, "curator"),
	call[ace.PersistInput, ace.PersistResult](ace.ActivityPersist, "merge into a playbook"),
	call[ace.HeadInput, ace.HeadResult](ace.ActivityHead, "newest version of a playbook branch"),
	call[ace.ReadPlaybookInput, activities.PlaybookContent](ace.ActivityReadPlaybook, "playbook version"),
	call[ace.LoadStepInput, any](ace.ActivityLoadStep, "step that a fork reuses"),
	call[ace.LoadTasksInput, []ace.Task](ace.ActivityLoadTasks, "tasks of a data set"),
	call[ace.EvaluateInput, ace.EvaluateResult](ace.ActivityEvaluate, "evaluation of a playbook version"),
	call[ace.PlanTrialsInput, ace.PlanTrialsResult](ace.ActivityPlanTrials, "next round of an ablation"),
	call[ace.AgentCall, ace.AgentResult](ace.ActivityAgentCLI, "call of an agent"),
	call[ace.ReadLogInput, ace.LogContent](ace.ActivityReadLog, "log of an agent"),
	call[ace.BreakdownInput, ace.BreakdownResult](ace.ActivityBreakdown, "breakdown of a plan"),
	[]payload{
		payloadOf[ace.ToolEvent](ace.SignalToolEvent, "Signal of a task: one event or a list"),
		payloadOf[ace.ReviewDecision](ace.SignalReview, "Signal of a task: decision on its operations"),
		payloadOf[run.StopRequest](run.Workflow+"."+run.UpdateStop, "Argument of the update of a blueprint run"),
		payloadOf[session.Message](session.SignalDeliver, "Signal of a session: a message for the agent"),
		payloadOf[session.Withdraw](session.SignalWithdraw, "Signal of a session: takes a message back"),
		payloadOf[session.TurnAttempt](session.SignalAttempt, "Signal of a session: a turn is tried again"),
		payloadOf[session.Report](session.SignalReport, "Signal of a session to the sender of a message"),
		payloadOf[ace.PhaseAnswer](ace.QueryPhase, "Answer of the query of a task"),
		payloadOf[ace.SkillAnswer](ace.QuerySkills, "Answer of the query of a task"),
		payloadOf[ace.DeltaAnswer](ace.QueryDelta, "Answer of the query of a task"),
		payloadOf[ace.ExperimentProgress](ace.QueryExperiment, "Answer of the query of an experiment"),
		payloadOf[run.State](run.QueryRun, "Answer of the query of a blueprint run"),
		payloadOf[ace.Summary]("memo."+ace.MemoSummary, "Memo of a run of any kind"),
		payloadOf[ace.Forked]("memo."+ace.MemoFork, "Memo of a fork"),
		payloadOf[string]("memo."+ace.MemoBy, "Memo of a run: who started it"),
		payloadOf[ace.ObservedStart]("memo."+ace.MemoObserved, "Memo of an observed run"),
		payloadOf[ace.ReviewMemo]("memo."+ace.MemoReview, "Memo of a run that waits for review"),
	})

// ContractSchema returns a document that defines the payloads with a name, or all if it is "": an activity,
// for example, has an input and a result. With strict it allows no additional fields. Unlike the output of a
// command, a payload may have null in place of a list or an optional field.
func ContractSchema(name string, strict bool) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{
		Schema: schemaDialect,
		Title:  strings.TrimSpace("Payloads of acescope's contract " + name),
		Defs:   map[string]*jsonschema.Schema{},
	}
	types := contractTypeSchemas()
	for _, p := range contract {
		if name != "" && p.name != name && !strings.HasPrefix(p.name, name+".") {
			continue
		}
		def, err := jsonschema.ForType(p.of, &jsonschema.ForOptions{TypeSchemas: types})
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", p.name, err)
		}
		if !strict {
			open(def)
		}
		if p.name == ace.SignalToolEvent {
			def = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{def, {Type: "array", Items: def}}}
		}
		def.Description = p.about
		s.Defs[p.name] = def
	}
	if len(s.Defs) == 0 {
		return nil, cli.NotFound("the contract has no %q; its names: %s", name,
			strings.Join(ContractNames(), ", "))
	}
	return s, nil
}

// ContractNames returns the names of workflow types, activities, signals, queries and memos of the contract.
func ContractNames() []string {
	var names []string
	for _, p := range contract {
		name := strings.TrimSuffix(strings.TrimSuffix(p.name, ".input"), ".result")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// contractTypeSchemas returns the schemas of types whose JSON differs from their Go types, or that
// only acescope writes.
func contractTypeSchemas() map[reflect.Type]*jsonschema.Schema {
	types := knownTypes()
	maps.Copy(types, map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[ace.Carried]():       {Type: "object"},
		reflect.TypeFor[json.RawMessage]():   {},
		reflect.TypeFor[ace.OperationType](): {Type: "string"}, // readers accept any
	})
	return types
}

// open allows additional fields in every object of a schema.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	open(s.AdditionalProperties)
	open(s.Items)
	for _, p := range s.Properties {
		open(p)
	}
}
