package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"acescope/engine/ace"
	"acescope/engine/operation"
	"acescope/engine/session"
	"acescope/sources"
)

// output is what a command writes with --json: objects of these types.
type output struct {
	command string // without "acescope"
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

// outputs lists every command that has --json. Tests hold that none is missing and that
// what the commands write is what the schemas say.
func outputs() []output {
	finished := slices.Concat(typed[runLine]("run"), typed[summaryLine]("summary"))
	changes := typed[sources.Change]("phase", "skill", "delta", "status")
	talked := slices.Concat(typed[entryLine]("user", "text", "thinking", "tool", "status", "error"), typed[sessionChange]("session_state"), typed[deltaLine]("delta"))
	return []output{
		{"run", slices.Concat(finished, typed[startedLine]("started"))},
		{"list", slices.Concat(typed[runLine]("run", "experiment"), typed[facetsLine]("facets"), typed[recentLine]("recent"))},
		{"show", slices.Concat(typed[showLine]("task", "experiment", "session", "run"), typed[callLine]("call"))},
		{"timeline", slices.Concat(typed[spanLine]("span"), typed[eventLine]("event"))},
		{"operations", typed[operationLine](operationNames()...)},
		{"logs", slices.Concat(typed[logLine]("line"), typed[logNote]("note"))},
		{"playbook branches", typed[branchLine]("playbook_branch")},
		{"playbook log", typed[bookVersionLine]("playbook_version")},
		{"playbook show", typed[bookLine]("playbook")},
		{"playbook diff", slices.Concat(typed[diffLine]("added", "removed"), typed[changedLine]("changed"), typed[diffEnd]("playbook_diff"))},
		{"playbook blame", typed[blameLine]("blame")},
		{"playbook health", slices.Concat(typed[findingLine]("finding"), typed[healthEnd]("playbook_health"))},
		{"experiment list", typed[experimentRow]("experiment_row")},
		{"experiment show", slices.Concat(typed[experimentSeries]("experiment_series"), typed[taskLine]("experiment_task"))},
		{"experiment compare", slices.Concat(typed[comparisonLine]("comparison"), typed[flipLine]("flip"))},
		{"diff", slices.Concat(typed[runDiffLine]("run_diff"), typed[pairLine]("pair"), typed[comparisonLine]("comparison"), typed[diffFlip]("flip"),
			typed[diffLine]("added", "removed"), typed[changedLine]("changed"), typed[diffEnd]("playbook_diff"))},
		{"triage", typed[triageLine]("triage")},
		{"health", typed[healthLine]("health")},
		{"tail", slices.Concat(changes, finished)},
		{"observe install", typed[hooksLine]("observe_install")},
		{"observe uninstall", typed[hooksLine]("observe_uninstall")},
		{"observe status", typed[observeLine]("observe_status")},
		{"observe temporal tail", slices.Concat(changes, finished)},
		{"cancel", typed[cancelLine]("cancel")},
		{"terminate", typed[doneLine]("terminate")},
		{"signal", typed[doneLine]("signal")},
		{"reset", typed[doneLine]("reset")},
		{"fork", slices.Concat(typed[forkLine]("fork"), finished)},
		{"lineage", typed[lineageLine]("lineage")},
		{"serve", typed[serveLine]("serve")},
		{"doctor", typed[checkLine]("check")},
		{"open", typed[showLine]("task", "experiment", "session", "run")},
		{"replay step", slices.Concat(typed[stepLine]("step"), typed[stepChange]("change"), typed[watchLine]("watch"))},
		{"replay verify", slices.Concat(typed[verdictLine]("verdict"), typed[verifyEnd]("verify_summary"))},
		{"replay export", typed[exportLine]("export")},
		{"observe temporal replay", slices.Concat(typed[verdictLine]("verdict"), typed[verifyEnd]("verify_summary"))},
		{"session list", slices.Concat(typed[sessionLine]("session"), typed[engineLine]("engine_session"))},
		{"session show", slices.Concat(typed[sessionLine]("session"), typed[engineLine]("engine_session"), talked)},
		{"session start", slices.Concat(typed[sessionStarted]("session_started"), typed[engineLine]("engine_session"), talked)},
		{"session send", slices.Concat(typed[sentLine]("sent"), typed[turnLine]("turn"), talked)},
		{"session approve", typed[approvalLine]("approval")},
		{"session interrupt", typed[sessionAsked]("session_interrupt")},
		{"session stop", typed[sessionAsked]("session_stop")},
		{"session receive", typed[receivedLine]("received")},
		{"runner start", typed[runnerEvent](runnerEvents()...)},
		{"runner list", slices.Concat(typed[runnerLine]("runner"), typed[runnerQueueLine]("runner_queue"), typed[runnersLine]("runners"))},
		{"runner show", typed[runnerLine]("runner")},
		{"runner drain", typed[runnerDrained]("runner_drain")},
		{"runner exec", typed[resultLine]("result")},
		{"agent list", typed[blueprintLine]("blueprint")},
		{"agent show", typed[blueprintDetail]("blueprint_detail")},
		{"agent validate", typed[blueprintCheck]("blueprint_check")},
		{"agent new", typed[blueprintNew]("blueprint_new")},
		{"agent start", slices.Concat(typed[agentStarted]("agent_started"), typed[agentResult]("agent_result"))},
		{"agent resume", slices.Concat(typed[agentStarted]("agent_started"), typed[agentResult]("agent_result"))},
		{"agent status", typed[agentRun]("agent_run")},
		{"agent result", typed[agentResult]("agent_result")},
		{"agent stop", typed[agentRun]("agent_run")},
		{"agent runs", typed[agentRun]("agent_run")},
		{"mcp", typed[mcpLine]("mcp")},
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

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [COMMAND]",
		Short: "Print the JSON Schema of what a command writes with --json; without one, list them",
		Long: "Prints a JSON Schema (draft 2020-12) that each line of a command's --json output fits. Fields are only ever added,\n" +
			"so that the schemas allow more of them.",
		Example: "acescope schema list\nacescope schema show | jq '.\"$defs\" | keys'",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return outputNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.schema(strings.Join(args, " ")) },
	}
}

// schemaName names a schema in the list of them.
type schemaName struct {
	Type    string   `json:"type"` // schema
	Command string   `json:"command"`
	Lines   []string `json:"lines"` // the types of its lines
}

func (a *app) schema(command string) error {
	if command == "" {
		return a.schemaList()
	}
	for _, o := range outputs() {
		if o.command != command {
			continue
		}
		s, err := o.schema(false)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(s)
	}
	return &coded{exitNotFound, fmt.Errorf("no command %q writes JSON; there are: %s", command, strings.Join(outputNames(), ", "))}
}

func (a *app) schemaList() error {
	out := newLines(a.out)
	for _, o := range outputs() {
		s := schemaName{Type: "schema", Command: o.command}
		for _, l := range o.lines {
			s.Lines = append(s.Lines, l.name)
		}
		var err error
		if a.json {
			err = out.put(s)
		} else {
			_, err = fmt.Fprintf(out.buf, "%-24s %s\n", s.Command, strings.Join(s.Lines, ", "))
		}
		if err != nil {
			return err
		}
	}
	return out.flush()
}

func outputNames() []string {
	var names []string
	for _, o := range outputs() {
		names = append(names, o.command)
	}
	return names
}

// schema is what one line of the output fits; strict does not let it have other fields.
func (o output) schema(strict bool) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{Schema: "https://json-schema.org/draft/2020-12/schema", Title: "acescope " + o.command + " --json: one line",
		Defs: map[string]*jsonschema.Schema{}}
	for _, l := range o.lines {
		def, err := lineSchema(l, strict)
		if err != nil {
			return nil, fmt.Errorf("schema of %s, %s: %w", o.command, l.name, err)
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
		reflect.TypeFor[ace.Fate]():          text("accepted", "rejected", "ignored", "unparsable"),
		reflect.TypeFor[ace.OperationType](): text("ADD", "UPDATE", "TAG", "REMOVE", "MERGE"),
		// A session's state holds the input that may carry an earlier state: it goes by its own
		// contract, engine/session.
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
