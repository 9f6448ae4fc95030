package blueprint

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kballard/go-shellquote"
	"github.com/tidwall/gjson"

	"acescope/engine/agents/session"
	"acescope/engine/internal/plainjson"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// agentSchemaJSON is the schema of agent.json. The keyword "for" of a field names the type of blueprint that
// may have the field.
//
//go:embed agent.schema.json
var agentSchemaJSON []byte

var agentSchema = sync.OnceValue(func() *Schema {
	s, err := Compile(agentSchemaJSON, run.StdinJSON)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return s
})

// agentFile is agent.json while it is read.
type agentFile struct {
	*document
	root gjson.Result // an object
}

// has reports whether a field has a value. A null field counts as absent.
func (f agentFile) has(name string) bool { return field(f.root, name).Type != gjson.Null }

// fieldProblem adds a problem at a field, or at the object without it.
func (f agentFile) fieldProblem(name, format string, args ...any) {
	f.problem(closest(f.root, []string{name}).Index, child("$", name), format, args...)
}

// read reads agent.json. It sets the valid fields of the blueprint, and adds problems of other fields to the
// document.
func (f agentFile) read(b *run.Blueprint) {
	value := plain(f.root.Raw).(map[string]any)
	removeNulls(value)
	v := Violations{schema: agentSchema()}
	if err := v.check(v.schema.root, value); err != nil {
		f.problem(f.root.Index, "$", "%v", err)
	}
	f.addViolations(v.sorted(), f.root, "$")
	err := json.Unmarshal(f.data, b)
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && len(v.List) == 0 {
		// For the schema, 60.0 is an integer.
		f.fieldProblem(mismatch.Field, "write an integer without a fraction or an exponent")
	}
	b.Schema, b.MCPServers = nil, nil
	b.Tags = sortedSet(b.Tags)
	if !f.has("type") {
		b.Type = run.Agent
	}
	for name, value := range members(f.root) {
		only := gjson.GetBytes(agentSchemaJSON, "properties."+gjson.Escape(name.Str)+".for").Str
		switch {
		case only == string(run.Agent) && b.Type == run.Deterministic:
			f.fieldProblem(name.Str, `is for agents, and this is a program: remove it, or set "type": "agent"`)
		case only == string(run.Deterministic) && b.Type == run.Agent:
			f.fieldProblem(name.Str, `is for programs, and this is an agent: set "type": "deterministic", or remove it`)
		case value.Type == gjson.String && strings.TrimSpace(value.Str) == "":
			f.fieldProblem(name.Str, "is empty: remove it, or fill it in")
		case value.Type == gjson.String && strings.ContainsRune(value.Str, 0):
			f.fieldProblem(name.Str, "contains a NUL")
		}
	}
	f.readRequirements(b)
}

func sortedSet(items []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(items)))
}

// readRequirements checks the requirements for the runner.
func (f agentFile) readRequirements(b *run.Blueprint) {
	r := b.Requirements
	if r == nil {
		return
	}
	r.Tags = sortedSet(r.Tags)
	problem := ""
	switch {
	case r.ExecutorType == "":
	case !run.ValidName(r.ExecutorType):
		problem = quote(r.ExecutorType) + " is not a valid executor type"
	case b.Type == run.Agent && r.ExecutorType == runner.Deterministic:
		problem = quote(r.ExecutorType) + " is for programs, and this is an agent"
	case b.Type == run.Deterministic && runner.Agent(r.ExecutorType) != "":
		problem = quote(r.ExecutorType) + " is for agents, and this is a program"
	}
	if problem != "" {
		at := []string{"demands", "executor_type"}
		f.problem(closest(f.root, at).Index, pathOf("$", at), "%s", problem)
	}
}

// readAgent reads the fields of an agent.
func (f agentFile) readAgent(b *run.Blueprint) {
	if len(b.SystemPrompt) > MaxPrompt {
		f.fieldProblem("system_prompt", "is longer than %d bytes", MaxPrompt)
	}
	if servers := field(f.root, "mcp_servers"); servers.IsObject() {
		b.MCPServers = f.servers(servers, "$.mcp_servers")
	}
	if b.OnRunnerLoss == run.Move {
		f.fieldProblem("on_runner_loss",
			"an agent's run cannot be moved, since its work is on its machine: remove it")
	}
}

// readProgram reads the fields of a program.
func (f agentFile) readProgram(b *run.Blueprint) {
	b.Strategy = cmp.Or(b.Strategy, run.StdinJSON)
	for i, name := range b.Env {
		if why := checkEnv(name); why != "" {
			at := pathOf("$.env", []string{strconv.Itoa(i)})
			f.problem(closest(f.root, []string{"env", strconv.Itoa(i)}).Index, at, "%s", why)
		}
	}
	if slices.Contains(strings.Split(b.WorkingDir, "/"), "..") {
		f.fieldProblem("working_dir", "must not contain ..")
	}
	if strings.LastIndex(b.WorkingDir, run.DirPlaceholder) > 0 {
		f.fieldProblem("working_dir", "%s is allowed at the beginning only", run.DirPlaceholder)
	}
	if b.OnRunnerLoss == run.Move && !b.Idempotent {
		f.fieldProblem("on_runner_loss", `move needs "idempotent": true: the program may have run already`)
	}
	if f.has("command") {
		f.readCommand(b)
	} else if b.Shell {
		f.fieldProblem("shell", "is for a command, and there is no command")
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// checkEnv says why a program cannot inherit a variable of the runner, or returns "".
func checkEnv(name string) string {
	upper := strings.ToUpper(name)
	switch {
	case !variableName.MatchString(name): // the text may contain a secret
		return "must be the name of a variable: letters, digits and underscores, without a value"
	case strings.HasPrefix(upper, run.EnvPrefix):
		return "names with the prefix " + run.EnvPrefix + " are reserved for parameters"
	case upper == "PATH":
		return "every program gets the runner's PATH: remove it"
	case strings.HasPrefix(upper, "LD_"), strings.HasPrefix(upper, "DYLD_"),
		slices.Contains([]string{"BASH_ENV", "ENV", "IFS"}, upper):
		return quote(name) + " changes what every program loads or runs, and cannot be passed"
	}
	return ""
}

// readCommand splits a command by the rules of a shell, or keeps it if a shell runs it.
func (f agentFile) readCommand(b *run.Blueprint) {
	text := b.Command
	b.Command = ""
	argv, err := shellquote.Split(text)
	switch {
	case err != nil:
		f.fieldProblem("command", "%v", err)
		return
	case len(argv) == 0 || strings.TrimSpace(argv[0]) == "":
		f.fieldProblem("command", "names no program")
		return
	case b.Strategy != run.File && strings.Contains(text, run.FilePlaceholder):
		f.fieldProblem("command", `%s needs "parameter_strategy": "file"`, run.FilePlaceholder)
		return
	case b.Shell && (strings.Contains(text, run.DirPlaceholder) ||
		strings.Contains(text, run.FilePlaceholder)):
		f.fieldProblem("command",
			"a shell would read the path in %s or %s as part of the command: remove shell, or use %s",
			run.DirPlaceholder, run.FilePlaceholder, CommandFile)
		return
	case b.Shell:
		b.Command = text
		return
	}
	b.Argv = argv
	for i, word := range argv[1:] {
		if isShellSyntax(word) && !(i > 0 && argv[i] == "-c") {
			f.note(field(f.root, "command").Index, "$.command", `%s is passed to the program unchanged, `+
				`since no shell reads the command; set "shell": true to use one`, quote(word))
			return
		}
	}
}

// isShellSyntax reports whether a word has a meaning for a shell.
func isShellSyntax(word string) bool {
	if slices.Contains([]string{"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>&1", "2>"}, word) {
		return true
	}
	return strings.HasPrefix(word, "$") && len(word) > 1 || strings.Contains(word, "$(") ||
		strings.HasPrefix(word, "`")
}

// serversFile reads agent.mcp.json: an object of servers, or an object with the field
// mcpServers, as in the configurations of agents.
func (d *document) serversFile(root gjson.Result) map[string]json.RawMessage {
	inner := field(root, "mcpServers")
	if !inner.Exists() {
		return d.servers(root, "$")
	}
	for name := range members(root) {
		if name.Str != "mcpServers" {
			d.problem(name.Index, child("$", name.Str), "unknown field")
		}
	}
	return d.servers(inner, "$.mcpServers")
}

// servers reads MCP servers by name.
func (d *document) servers(n gjson.Result, path string) map[string]json.RawMessage {
	if !n.IsObject() {
		d.problem(n.Index, path, "expected an object")
		return nil
	}
	out := map[string]json.RawMessage{}
	for name, v := range members(n) {
		at := child(path, name.Str)
		if !v.IsObject() {
			d.problem(v.Index, at, "expected an object")
			continue
		}
		raw, _ := plainjson.Marshal(plain(v.Raw)) // cannot fail for a value of a parsed document
		if err := session.CheckServers(map[string]json.RawMessage{name.Str: raw}, false); err != nil {
			d.serverProblem(name, v, at, err)
			continue
		}
		out[name.Str] = raw
	}
	if err := session.CheckServers(out, false); err != nil {
		d.problem(n.Index, path, "%s", strings.TrimPrefix(err.Error(), "mcp_servers: "))
	}
	return out
}

// serverProblem adds an error of [session.CheckServers] at the place of the server.
func (d *document) serverProblem(name, server gjson.Result, path string, err error) {
	rest, inside := strings.CutPrefix(err.Error(), "mcp_servers."+name.Str)
	if !inside {
		d.problem(name.Index, path, "%s", strings.TrimPrefix(rest, "mcp_servers: "))
		return
	}
	field, text, _ := strings.Cut(rest, ": ")
	d.problem(server.Index, path+field, "%s", text)
}
