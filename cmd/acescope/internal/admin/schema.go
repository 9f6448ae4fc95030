package admin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/learning"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/temporal/operation"
	"acescope/sources/histories"
)

// output is what a command writes with --json: objects of these types.
type output struct {
	Command string // without "acescope"
	lines   []lineType
}

// lineType is one kind of object, by what its field "type" says.
type lineType struct {
	name string
	of   reflect.Type
}

func typed[T any](names ...string) []lineType {
	var out []lineType
	for _, n := range names {
		out = append(out, lineType{n, reflect.TypeFor[T]()})
	}
	return out
}

// Outputs lists every command that has --json. Tests hold that none is missing and that
// what the commands write is what the schemas say.
func Outputs() []output {
	finished := slices.Concat(typed[cli.RunLine]("run"), typed[runs.SummaryLine]("summary"))
	changes := typed[histories.Change]("phase", "skill", "delta", "status")
	talked := slices.Concat(typed[agents.EntryLine]("user", "text", "thinking", "tool", "status", "error"), typed[agents.SessionChange]("session_state"), typed[agents.DeltaLine]("delta"))
	return []output{
		{"run", slices.Concat(finished, typed[runs.StartedLine]("started"))},
		{"list", slices.Concat(typed[cli.RunLine]("run", "experiment"), typed[runs.FacetsLine]("facets"), typed[runs.RecentLine]("recent"))},
		{"show", slices.Concat(typed[runs.ShowLine]("task", "experiment", "session", "run"), typed[runs.CallLine]("call"))},
		{"timeline", slices.Concat(typed[history.SpanLine]("span"), typed[history.EventLine]("event"))},
		{"operations", typed[history.OperationLine](operationNames()...)},
		{"logs", slices.Concat(typed[runs.LogLine]("line"), typed[runs.LogNote]("note"))},
		{"playbook branches", typed[learning.BranchLine]("playbook_branch")},
		{"playbook log", typed[learning.BookVersionLine]("playbook_version")},
		{"playbook show", typed[learning.BookLine]("playbook")},
		{"playbook diff", slices.Concat(typed[learning.DiffLine]("added", "removed"), typed[learning.ChangedLine]("changed"), typed[learning.DiffEnd]("playbook_diff"))},
		{"playbook blame", typed[learning.BlameLine]("blame")},
		{"playbook health", slices.Concat(typed[learning.FindingLine]("finding"), typed[learning.HealthEnd]("playbook_health"))},
		{"experiment list", typed[learning.ExperimentRow]("experiment_row")},
		{"experiment show", slices.Concat(typed[learning.ExperimentSeries]("experiment_series"), typed[learning.TaskLine]("experiment_task"))},
		{"experiment compare", slices.Concat(typed[learning.ComparisonLine]("comparison"), typed[learning.FlipLine]("flip"))},
		{"diff", slices.Concat(typed[history.RunDiffLine]("run_diff"), typed[history.PairLine]("pair"), typed[learning.ComparisonLine]("comparison"), typed[history.DiffFlip]("flip"),
			typed[learning.DiffLine]("added", "removed"), typed[learning.ChangedLine]("changed"), typed[learning.DiffEnd]("playbook_diff"))},
		{"triage", typed[learning.TriageLine]("triage")},
		{"health", typed[healthLine]("health")},
		{"tail", slices.Concat(changes, finished)},
		{"observe install", typed[agents.HooksLine]("observe_install")},
		{"observe uninstall", typed[agents.HooksLine]("observe_uninstall")},
		{"observe status", typed[agents.ObserveLine]("observe_status")},
		{"observe temporal tail", slices.Concat(changes, finished)},
		{"cancel", typed[runs.CancelLine]("cancel")},
		{"terminate", typed[runs.DoneLine]("terminate")},
		{"signal", typed[runs.DoneLine]("signal")},
		{"reset", typed[runs.DoneLine]("reset")},
		{"fork", slices.Concat(typed[history.ForkLine]("fork"), finished)},
		{"lineage", typed[history.LineageLine]("lineage")},
		{"serve", typed[ServeLine]("serve")},
		{"doctor", typed[checkLine]("check")},
		{"open", typed[runs.ShowLine]("task", "experiment", "session", "run")},
		{"replay step", slices.Concat(typed[history.StepLine]("step"), typed[history.StepChange]("change"), typed[history.WatchLine]("watch"))},
		{"replay verify", slices.Concat(typed[history.VerdictLine]("verdict"), typed[history.VerifyEnd]("verify_summary"))},
		{"replay export", typed[history.ExportLine]("export")},
		{"observe temporal replay", slices.Concat(typed[history.VerdictLine]("verdict"), typed[history.VerifyEnd]("verify_summary"))},
		{"session list", slices.Concat(typed[agents.SessionLine]("session"), typed[agents.EngineLine]("engine_session"))},
		{"session show", slices.Concat(typed[agents.SessionLine]("session"), typed[agents.EngineLine]("engine_session"), talked)},
		{"session start", slices.Concat(typed[agents.SessionStarted]("session_started"), typed[agents.EngineLine]("engine_session"), talked)},
		{"session send", slices.Concat(typed[agents.SentLine]("sent"), typed[agents.TurnLine]("turn"), talked)},
		{"session approve", typed[agents.ApprovalLine]("approval")},
		{"session interrupt", typed[agents.SessionAsked]("session_interrupt")},
		{"session stop", typed[agents.SessionAsked]("session_stop")},
		{"session receive", typed[agents.ReceivedLine]("received")},
		{"runner start", typed[agents.RunnerEvent](agents.RunnerEvents()...)},
		{"runner list", slices.Concat(typed[agents.RunnerLine]("runner"), typed[agents.RunnerQueueLine]("runner_queue"), typed[agents.RunnersLine]("runners"))},
		{"runner show", typed[agents.RunnerLine]("runner")},
		{"runner drain", typed[agents.RunnerDrained]("runner_drain")},
		{"runner exec", typed[agents.ResultLine]("result")},
		{"agent list", typed[agents.BlueprintLine]("blueprint")},
		{"agent show", typed[agents.BlueprintDetail]("blueprint_detail")},
		{"agent validate", typed[agents.BlueprintCheck]("blueprint_check")},
		{"agent new", typed[agents.BlueprintNew]("blueprint_new")},
		{"agent start", slices.Concat(typed[agents.AgentStarted]("agent_started"), typed[agents.AgentResult]("agent_result"))},
		{"agent resume", slices.Concat(typed[agents.AgentStarted]("agent_started"), typed[agents.AgentResult]("agent_result"))},
		{"agent status", typed[agents.AgentRun]("agent_run")},
		{"agent result", typed[agents.AgentResult]("agent_result")},
		{"agent stop", typed[agents.AgentRun]("agent_run")},
		{"agent runs", typed[agents.AgentRun]("agent_run")},
		{"mcp", typed[agents.McpLine]("mcp")},
		{"config", typed[configLine]("config")},
		{"config themes", typed[themeLine]("theme")},
		{"config keys", typed[keyLine]("key")},
		{"schema", typed[schemaName]("schema")},
		{"version", typed[versionLine]("version")},
	}
}

func operationNames() (names []string) {
	for _, t := range operation.EventTypes() {
		names = append(names, string(t))
	}
	return names
}

func SchemaCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [COMMAND]",
		Short: "Print the JSON Schema of what a command writes with --json; without one, list them",
		Long: "Prints a JSON Schema (draft 2020-12) that each line of a command's --json output fits. Fields are only ever added,\n" +
			"so that the schemas allow more of them.",
		Example: "acescope schema list\nacescope schema show | jq '.\"$defs\" | keys'",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return OutputNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return schema(a, strings.Join(args, " ")) },
	}
}

// schemaName names a schema in the list of them.
type schemaName struct {
	Type    string   `json:"type"` // schema
	Command string   `json:"command"`
	Lines   []string `json:"lines"` // the types of its lines
}

func schema(a *cli.App, command string) error {
	if command == "" {
		return schemaList(a)
	}
	for _, o := range Outputs() {
		if o.Command != command {
			continue
		}
		s, err := o.Schema(false)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(a.Out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(s)
	}
	return &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("no command %q writes JSON; there are: %s", command, strings.Join(OutputNames(), ", "))}
}

func schemaList(a *cli.App) error {
	out := cli.NewLines(a.Out)
	for _, o := range Outputs() {
		s := schemaName{Type: "schema", Command: o.Command}
		for _, l := range o.lines {
			s.Lines = append(s.Lines, l.name)
		}
		var err error
		if a.JSON {
			err = out.Put(s)
		} else {
			_, err = fmt.Fprintf(out.Buf, "%-24s %s\n", s.Command, strings.Join(s.Lines, ", "))
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

func OutputNames() []string {
	var names []string
	for _, o := range Outputs() {
		names = append(names, o.Command)
	}
	return names
}

// Schema is what one line of the output fits; strict does not let it have other fields.
func (o output) Schema(strict bool) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{Schema: "https://json-schema.org/draft/2020-12/schema", Title: "acescope " + o.Command + " --json: one line",
		Defs: map[string]*jsonschema.Schema{}}
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
	kind := s.Properties["type"]
	if kind == nil {
		return nil, fmt.Errorf("%s has no field type", l.of)
	}
	s.Properties["type"] = &jsonschema.Schema{Const: jsonschema.Ptr(any(l.name)), Description: kind.Description}
	return s, nil
}

// knownTypes are types that say less of themselves than is known.
func knownTypes() map[reflect.Type]*jsonschema.Schema {
	text := func(words ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: words} }
	var exits []any
	for _, e := range ace.ExitStatuses() {
		exits = append(exits, string(e))
	}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():         {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage]():   {},
		reflect.TypeFor[ace.Outcome]():       text("accepted", "rejected", "ignored", "unparsable"),
		reflect.TypeFor[ace.OperationType](): text("ADD", "UPDATE", "TAG", "REMOVE", "MERGE"),
		// A session's state holds the input that may carry an earlier state: it goes by its own
		// contract, engine/agents/session.
		reflect.TypeFor[session.State](): {Type: "object"},
		// A foreign run may have no status.
		reflect.TypeFor[ace.ExitStatus](): text(append(exits, string(ace.Continued), "")...),
	}
}

// tidy says what encoding does: an optional field is left out rather than null, and a
// list is never null.
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
