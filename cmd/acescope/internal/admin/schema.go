package admin

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/flows"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/learning"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/prompts"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/operation"
	"acescope/sources/detail"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	sourceruns "acescope/sources/runs"
	"acescope/sources/system"
)

// output is the JSON output of a command.
type output struct {
	Command string // without "acescope"
	lines   []lineType
}

// lineType is the Go type of the lines whose field "type" is name.
type lineType struct {
	name string
	of   reflect.Type
}

// typed names the lines of a Go type. A Go type without a field "type" has one name, which [cli.Lines] adds.
func typed[T any](names ...string) []lineType {
	var out []lineType
	for _, n := range names {
		out = append(out, lineType{n, reflect.TypeFor[T]()})
	}
	if len(names) == 1 {
		cli.SetLineType(reflect.TypeFor[T](), names[0])
	}
	return out
}

// Lines that several commands write.
var (
	finished = slices.Concat(typed[cli.RunLine]("task"), typed[runs.SummaryLine]("summary"))
	effects  = slices.Concat(typed[runs.EffectLine]("effect"), typed[runs.PrunedLine]("pruned"))
	ablated  = slices.Concat(finished, effects, typed[runs.StartedLine]("started"),
		typed[runs.PlanLine]("plan"))
	changes = typed[histories.Change]("phase", "skill", "command", "delta", "status", "unread", "error",
		"review", "step", "call", "stream")
	conversation = slices.Concat(
		typed[agents.EntryLine]("user", "text", "thinking", "tool", "status", "error"),
		typed[agents.SessionChange]("session_state"), typed[agents.DeltaLine]("delta"))
	sessionLines = typed[agents.SessionLine]("session", "transcript")
	agentStart   = slices.Concat(typed[agents.AgentStarted]("agent_started"),
		typed[agents.AgentResult]("agent_result"))
	bookDiff = slices.Concat(typed[learning.DiffLine]("added", "removed"), typed[playbook.Change]("changed"),
		typed[learning.DiffEnd]("playbook_diff"))
	scores   = slices.Concat(typed[history.ScoreLine]("score"), typed[history.ScoreboardLine]("scoreboard"))
	listed   = typed[cli.RunLine]("task", "experiment", "blueprint", "session", "flow", "workflow")
	verdicts = slices.Concat(typed[history.VerdictLine]("verdict"),
		typed[history.VerifyEnd]("verify_summary"))
)

// RootCommand names the output of acescope itself.
const RootCommand = "acescope"

// Outputs lists every command with --json. Tests check that no command is missing and that the output of the
// commands fits their schemas.
var Outputs = []output{
	{RootCommand, listed},
	{"run", slices.Concat(finished, typed[runs.StartedLine]("started"), typed[runs.PlanLine]("plan"))},
	{"dataset", typed[runs.DatasetLine]("dataset")},
	{"prompts", slices.Concat(typed[runs.PromptLine]("model_call"),
		typed[runs.AgentRequestLine]("agent_request"))},
	{"ask", typed[runs.AskLine]("ask")},
	{"eval", slices.Concat(finished, typed[runs.StartedLine]("started"))},
	{"eval show", slices.Concat(typed[runs.EvalVersionLine]("eval_version"),
		typed[runs.EvalItemLine]("eval_item"), typed[runs.EvalAnswerLine]("eval_answer"))},
	{"list", slices.Concat(listed, typed[runs.FacetsLine]("facets"), typed[sourceruns.Recent]("recent"))},
	{"wait", listed},
	{"review", slices.Concat(listed, typed[runs.ReviewLine]("review_operation"),
		typed[runs.ReviewDecisionLine]("review_decision"))},
	{"show", slices.Concat(
		typed[runs.ShowLine]("workflow", "task", "experiment", "session", "blueprint", "flow"),
		typed[histories.ToolCall]("call"), typed[runs.OperationLine](operationNames()...),
		typed[agents.AgentResult]("agent_result"))},
	{"timeline", slices.Concat(typed[history.SpanLine]("span"), typed[history.EventLine]("event"),
		typed[history.TotalsLine]("totals"))},
	{"adapter try", typed[history.AdapterLine]("adapter")},
	{"logs", slices.Concat(typed[runs.LogLine]("line"), typed[runs.LogNote]("note"))},
	{"import", typed[learning.PlaybookImportLine]("playbook_import")},
	{"playbook branches", typed[playbook.Branch]("playbook_branch")},
	{"playbook log", typed[playbook.Version]("playbook_version")},
	{"playbook export", typed[learning.ExportLine]("playbook_export")},
	{"playbook sync", typed[learning.SyncLine]("playbook_sync")},
	{"playbook show", typed[learning.PlaybookLine]("playbook")},
	{"playbook diff", bookDiff},
	{"playbook blame", typed[learning.BlameLine]("blame")},
	{"playbook effects", effects},
	{"playbook ablate", ablated},
	{"playbook prune", ablated},
	{"playbook health", slices.Concat(typed[playbook.Finding]("finding"),
		typed[learning.HealthEnd]("playbook_health"))},
	{"phase-prompt list", typed[prompts.Prompt]("phase_prompt")},
	{"phase-prompt log", typed[prompts.Prompt]("phase_prompt")},
	{"phase-prompt show", typed[learning.PhasePromptText]("phase_prompt_text")},
	{"phase-prompt diff", typed[learning.PhasePromptDiff]("phase_prompt_diff")},
	{"phase-prompt set", typed[learning.PhasePromptSet]("phase_prompt_set")},
	{"phase-prompt edit", typed[learning.PhasePromptSet]("phase_prompt_set")},
	{"phase-prompt delete", typed[learning.PhasePromptDeleted]("phase_prompt_deleted")},
	{"store show", typed[engine.StoreUse]("store")},
	{"store import", typed[ImportLine]("import")},
	{"store gc", slices.Concat(typed[GarbageLine]("garbage"), typed[GarbageEnd]("garbage_summary"))},
	{"experiment list", typed[learning.ExperimentRow]("experiment_row")},
	{"experiment show", slices.Concat(typed[learning.ExperimentSeries]("experiment_series"),
		typed[learning.TaskLine]("experiment_task"), typed[learning.GroupLine]("experiment_group"))},
	{"experiment report", typed[learning.ReportLine]("experiment_report")},
	{"gate", typed[learning.GateLine]("gate")},
	{"experiment compare", slices.Concat(typed[learning.ComparisonLine]("comparison"),
		typed[experiments.Pair]("flip"), typed[learning.GroupComparisonLine]("group_comparison"))},
	{"diff", slices.Concat(typed[history.RunDiffLine]("run_diff"), typed[history.PairLine]("pair"),
		typed[learning.ComparisonLine]("comparison"), typed[history.DiffFlip]("flip"), bookDiff)},
	{"triage", typed[learning.TriageLine]("triage")},
	{"tail", slices.Concat(changes, finished)},
	{"observe install", typed[agents.HooksLine]("hooks")},
	{"observe uninstall", typed[agents.HooksLine]("hooks")},
	{"observe status", typed[agents.ObserveLine]("observe_status")},
	{"observe temporal tail", slices.Concat(changes, finished)},
	{"cancel", typed[runs.ActionLine]("run_action")},
	{"signal", typed[runs.ActionLine]("run_action")},
	{"reset", typed[runs.ActionLine]("run_action")},
	{"query", slices.Concat(typed[runs.AnswerLine]("answer"), typed[detail.Offer]("offer"))},
	{"fork", slices.Concat(scores, typed[history.BatchLine]("fork_batch"), typed[history.ForkLine]("fork"),
		typed[flows.FlowForkLine]("flow_fork"),
		typed[flow.StepState]("flow_step"), typed[flows.ResultLine]("flow_result"), finished)},
	{"lineage", slices.Concat(typed[history.LineageLine]("lineage"), scores)},
	{"serve", typed[ServeLine]("serve")},
	{"web", typed[WebLine]("web")},
	{"doctor", slices.Concat(typed[system.Check]("check"), typed[HealthLine]("health"))},
	{"setup", typed[SetupLine]("setup")},
	{"open", typed[runs.ShowLine]("workflow", "task", "experiment", "session", "blueprint", "flow")},
	{"replay step", slices.Concat(typed[history.StepLine]("step"), typed[history.StepChange]("change"),
		typed[history.WatchLine]("watch"))},
	{"replay verify", verdicts},
	{"replay export", slices.Concat(typed[history.ExportLine]("export"), typed[history.WalkLine]("walk"))},
	{"observe temporal replay", verdicts},
	{"session list", sessionLines},
	{"session show", slices.Concat(sessionLines, conversation)},
	{"session start", slices.Concat(typed[agents.SessionStarted]("session_started"),
		typed[agents.SessionLine]("session"), conversation)},
	{"session send", slices.Concat(typed[agents.SentLine]("sent"), typed[agents.TurnLine]("turn"),
		conversation)},
	{"session approve", typed[agents.ApprovalLine]("approval")},
	{"session interrupt", typed[agents.SessionAsked]("session_action")},
	{"session stop", typed[agents.SessionAsked]("session_action")},
	{"session move", typed[agents.SessionMoved]("session_moved")},
	{"session receive", typed[agents.ReceivedLine]("received")},
	{"cost", typed[agents.CostLine]("cost")},
	{"runner start", typed[agents.RunnerEvent](agents.RunnerEvents()...)},
	{"runner list", slices.Concat(typed[agents.RunnerLine]("runner"),
		typed[runner.QueueView]("runner_queue"), typed[agents.RunnersLine]("runners"))},
	{"runner show", typed[agents.RunnerLine]("runner")},
	{"runner drain", typed[agents.RunnerDrained]("runner_drain")},
	{"runner exec", typed[run.Result]("result")},
	{"agent list", typed[agents.BlueprintLine]("blueprint_definition")},
	{"agent show", typed[agents.BlueprintDetail]("blueprint_detail")},
	{"agent validate", typed[agents.BlueprintCheck]("blueprint_check")},
	{"agent new", typed[agents.BlueprintNew]("blueprint_new")},
	{"agent start", agentStart},
	{"agent resume", agentStart},
	{"mcp", typed[agents.McpLine]("mcp")},
	{"flow validate", typed[flows.ValidationLine]("flow_validation")},
	{"flow test", typed[flows.TestLine]("flow_test")},
	{"flow check", typed[flows.CheckLine]("flow_check")},
	{"flow list", typed[flows.FlowLine]("flow_definition")},
	{"flow show", typed[flows.DetailLine]("flow_detail")},
	{"flow run", slices.Concat(typed[flows.StartedLine]("flow_started"), typed[flow.StepState]("flow_step"),
		typed[flows.ResultLine]("flow_result"))},
	{"flow copy", typed[flows.CopyLine]("flow_copy")},
	{"flow approve", typed[flows.DecisionLine]("flow_decision")},
	{"flow reject", typed[flows.DecisionLine]("flow_decision")},
	{"config", typed[configLine]("config")},
	{"config themes", typed[themeLine]("theme")},
	{"config keys", typed[keyLine]("key")},
	{"schema", typed[schemaName]("schema")},
	{"version", typed[versionLine]("version")},
}

func operationNames() (names []string) {
	for _, t := range operation.EventTypes() {
		names = append(names, string(t))
	}
	return names
}

const (
	schemaDialect = "https://json-schema.org/draft/2020-12/schema"
	contractWord  = "contract" // in place of a command
)

func SchemaCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [COMMAND | contract [NAME]]",
		Short: "Print the JSON Schema of a command's --json output or of the contract's payloads, or list the commands",
		Long: "Print the JSON Schema (draft 2020-12) of the lines that a command writes with --json, or of the payloads of\n" +
			"the contract for workers of other programs: inputs and results of workflows and activities, signals, answers\n" +
			"of queries and memos, each in \"$defs\". NAME selects a workflow type, an activity, a signal, a query or a\n" +
			"memo. Later versions may add fields, so the schemas allow additional ones.",
		Example: "acescope schema list\nacescope schema show | jq '.\"$defs\" | keys'\n" +
			"acescope schema contract run_curator",
		Args: cobra.ArbitraryArgs, // the words of a command
		ValidArgsFunction: func(
			_ *cobra.Command, args []string, _ string,
		) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && args[0] == contractWord {
				return ContractNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return append(OutputNames(), contractWord), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return schema(a, strings.Join(args, " ")) },
	}
}

// schemaName is a schema in the list.
type schemaName struct {
	Command string   `json:"command" jsonschema:"command"`
	Lines   []string `json:"lines" jsonschema:"types of its lines"`
}

func schema(a *cli.App, command string) error {
	if command == "" {
		return schemaList(a)
	}
	s, err := schemaOf(command)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(s)
}

// schemaOf returns the schema of a command, or of the payloads of the contract.
func schemaOf(command string) (*jsonschema.Schema, error) {
	if name, ok := strings.CutPrefix(command+" ", contractWord+" "); ok {
		return ContractSchema(strings.TrimSpace(name), false)
	}
	for _, o := range Outputs {
		if o.Command == command {
			return o.Schema(false)
		}
	}
	return nil, cli.NotFound("no command %q writes JSON; commands: %s", command,
		strings.Join(OutputNames(), ", "))
}

func schemaList(a *cli.App) error {
	var rows []schemaName
	for _, o := range Outputs {
		row := schemaName{Command: o.Command}
		for _, l := range o.lines {
			row.Lines = append(row.Lines, l.name)
		}
		rows = append(rows, row)
	}
	return cli.WriteRows(a, slices.Values(rows), "", func(s schemaName) []any {
		return []any{s.Command, strings.Join(s.Lines, ", ")}
	})
}

func OutputNames() []string {
	var names []string
	for _, o := range Outputs {
		names = append(names, o.Command)
	}
	return names
}

// Schema returns the schema of one line of the output. With strict it allows no additional fields.
func (o output) Schema(strict bool) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{
		Schema: schemaDialect,
		Title:  "acescope " + o.Command + " --json: one line",
		Defs:   map[string]*jsonschema.Schema{},
	}
	for _, l := range o.lines {
		def, err := lineSchema(l, strict)
		if err != nil {
			return nil, fmt.Errorf("schema of %s, %s: %w", o.Command, l.name, err)
		}
		s.Defs[l.name] = def
		s.OneOf = append(s.OneOf, &jsonschema.Schema{Ref: "#/$defs/" + l.name})
	}
	return s, nil
}

func lineSchema(l lineType, strict bool) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(l.of, &jsonschema.ForOptions{TypeSchemas: knownTypes()})
	if err != nil {
		return nil, err
	}
	tidy(s, strict)
	describe(s, l.name)
	kind := &jsonschema.Schema{Const: jsonschema.Ptr(any(l.name))}
	if own := s.Properties["type"]; own != nil {
		kind.Description = own.Description
	} else {
		s.Required = append(s.Required, "type")
		s.PropertyOrder = append([]string{"type"}, s.PropertyOrder...)
	}
	s.Properties["type"] = kind
	return s, nil
}

// knownTypes returns schemas of types that are narrower than their Go types.
func knownTypes() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():         {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage]():   {},
		reflect.TypeFor[playbook.Extra]():    {Type: "object"},
		reflect.TypeFor[ace.Outcome]():       enum(ace.Outcomes()...),
		reflect.TypeFor[ace.OperationType](): enum("ADD", "UPDATE", "TAG", "REMOVE", "MERGE"),
		// The state of a session is described by its own contract, engine/agents/session.
		reflect.TypeFor[session.State](): {Type: "object"},
		// A run of another program may have "" for these.
		reflect.TypeFor[ace.Status]():     enum(append([]ace.Status{""}, ace.Statuses()...)...),
		reflect.TypeFor[ace.Verdict]():    enum(append([]ace.Verdict{""}, ace.Verdicts()...)...),
		reflect.TypeFor[ace.ExitStatus](): enum(append([]ace.ExitStatus{""}, ace.ExitStatuses()...)...),
	}
}

func enum[T ~string](words ...T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range words {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

// tidy describes how the commands encode: an empty optional field is omitted and a list is never null.
func tidy(s *jsonschema.Schema, strict bool) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	if s.Properties != nil && !strict {
		s.AdditionalProperties = nil
	}
	if s.Properties == nil {
		tidy(s.AdditionalProperties, strict)
	}
	tidy(s.Items, strict)
	for _, p := range s.Properties {
		tidy(p, strict)
	}
}

//go:embed descriptions.toml
var descriptionsFile []byte

const (
	commonFields = "common" // section of fields that mean the same in every type
	aboutType    = "_"      // entry that describes a type as a whole
)

// descriptions returns the descriptions of the JSON output, by section and field name. A section is a line's
// type, or a path to a nested object such as "summary.epochs". A struct tag jsonschema:"…" on the field comes
// first.
var descriptions = sync.OnceValue(func() (sections map[string]map[string]string) {
	if err := toml.Unmarshal(descriptionsFile, &sections); err != nil {
		panic("descriptions.toml: " + err.Error())
	}
	return sections
})

func describe(s *jsonschema.Schema, name string) {
	all := descriptions()
	s.Description = all[name][aboutType]
	for field, property := range s.Properties {
		property.Description = cmp.Or(property.Description, all[name][field], all[commonFields][field])
	}
}
