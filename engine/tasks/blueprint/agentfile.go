package blueprint

import (
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
	"github.com/tidwall/gjson"

	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// Fields of agent.json: those of every blueprint, and those of one type.
func commonFields() []string {
	return []string{"name", "description", "type", "tags", "demands", "timeout_seconds", "on_runner_loss"}
}

func agentFields() []string {
	return []string{"system_prompt", "mcp_servers", "model", "permission_mode", "allowed_tools"}
}

func programFields() []string {
	return []string{"command", "shell", "parameter_strategy", "parameters_schema", "env", "working_dir", "idempotent"}
}

// agentFile reads agent.json. The blueprint has the valid fields; the document gets the
// problems of the others.
func (d *document) agentFile(root gjson.Result) (b run.Blueprint) {
	if !root.IsObject() {
		d.problem(root.Index, "$", "expected an object, found %s", kindOf(root).words())
		return b
	}
	f := fields{d, root, "$"}
	for _, name := range []string{"name", "description"} {
		if !f.get(name).Exists() {
			d.problem(root.Index, child("$", name), "is missing")
		}
	}
	b.Name = f.line("name")
	b.Description = f.boundedText("description", maxDescription)
	b.Type = run.BlueprintType(f.choice("type", string(run.Agent), string(run.Deterministic)))
	if b.Type == "" && f.get("type").Exists() {
		f.checkUnknown(slices.Concat(commonFields(), agentFields(), programFields()), nil, "")
		return b
	}
	b.Type = cmp.Or(b.Type, run.Agent)
	b.Tags = f.texts("tags", checkTag)
	if n, ok := f.want("demands", objectKind); ok {
		b.Requirements = d.requirements(n, b.Type)
	}
	b.TimeoutSeconds = f.number("timeout_seconds", MaxTimeout)
	b.OnRunnerLoss = run.OnLoss(f.choice("on_runner_loss", string(run.Fail), string(run.Move)))
	if b.Type == run.Agent {
		d.agentFields(f, &b)
	} else {
		d.programFields(f, &b)
	}
	return b
}

func (d *document) agentFields(f fields, b *run.Blueprint) {
	f.checkUnknown(slices.Concat(commonFields(), agentFields()), programFields(),
		`is for programs, and this is an agent: set "type": "deterministic", or remove it`)
	b.SystemPrompt = f.boundedText("system_prompt", MaxPrompt)
	b.Model = f.line("model")
	b.PermissionMode = f.choice("permission_mode", "default", "plan", "acceptEdits", "dontAsk", "full")
	b.AllowedTools = f.texts("allowed_tools", func(text string) string {
		if strings.TrimSpace(text) == "" || strings.HasPrefix(text, "-") || strings.ContainsAny(text, "\x00\r\n") || len(text) > 200 {
			return quote(text) + " is not a valid tool name"
		}
		return ""
	})
	if n, ok := f.want("mcp_servers", objectKind); ok {
		b.MCPServers = d.servers(n, "$.mcp_servers")
	}
	if b.OnRunnerLoss == run.Move {
		f.problem("on_runner_loss",
			"an agent's run cannot be moved, since its work is on its machine: remove it")
	}
}

func (d *document) programFields(f fields, b *run.Blueprint) {
	f.checkUnknown(slices.Concat(commonFields(), programFields()), agentFields(),
		`is for agents, and this is a program: remove it, or set "type": "agent"`)
	b.Shell = f.boolean("shell")
	strategy := f.choice("parameter_strategy", string(run.StdinJSON), string(run.Args), string(run.Env), string(run.File))
	b.Strategy = cmp.Or(run.Strategy(strategy), run.StdinJSON)
	b.Env = f.texts("env", checkEnv)
	b.WorkingDir = f.line("working_dir")
	if slices.Contains(strings.Split(b.WorkingDir, "/"), "..") {
		f.problem("working_dir", "must not contain ..")
	}
	if strings.LastIndex(b.WorkingDir, run.DirPlaceholder) > 0 {
		f.problem("working_dir", "%s is allowed at the beginning only", run.DirPlaceholder)
	}
	b.Idempotent = f.boolean("idempotent")
	if b.OnRunnerLoss == run.Move && !b.Idempotent {
		f.problem("on_runner_loss", `move needs "idempotent": true: the program may have run already`)
	}
	if n := f.get("command"); n.Exists() {
		d.command(f, n, b)
	} else if b.Shell {
		f.problem("shell", "is for a command, and there is no command")
	}
}

var tagPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,99}$`)

func checkTag(tag string) string {
	if tagPattern.MatchString(tag) {
		return ""
	}
	return quote(tag) + " is not a valid tag: use 1 to 100 letters, digits and _ . : / + -, starting with a letter or a digit"
}

// requirements reads the requirements for the runner.
func (d *document) requirements(n gjson.Result, blueprintType run.BlueprintType) *runner.Requirements {
	f := fields{d, n, "$.demands"}
	f.checkUnknown([]string{"hostname", "project_dir", "executor_type", "tags"}, nil, "")
	out := &runner.Requirements{Hostname: f.line("hostname"), ProjectDir: f.line("project_dir"),
		ExecutorType: f.line("executor_type"), Tags: f.texts("tags", checkTag)}
	slices.Sort(out.Tags)
	if out.ProjectDir != "" && !path.IsAbs(out.ProjectDir) {
		f.problem("project_dir", "must be an absolute path")
	}
	switch {
	case out.ExecutorType == "":
	case !run.ValidName(out.ExecutorType):
		f.problem("executor_type", "%s is not a valid executor type", quote(out.ExecutorType))
	case blueprintType == run.Agent && out.ExecutorType == runner.Deterministic:
		f.problem("executor_type", "is for programs, and this is an agent")
	case blueprintType == run.Deterministic && runner.Agent(out.ExecutorType) != "":
		f.problem("executor_type", "is an agent, and this is a program")
	}
	return out
}

var envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// checkEnv says why a program cannot inherit a variable of the runner, or returns "".
func checkEnv(name string) string {
	upper := strings.ToUpper(name)
	switch {
	case strings.Contains(name, "="):
		return "must be the name of a variable of the runner, without a value"
	case !envPattern.MatchString(name):
		return quote(name) + " is not a valid variable name"
	case strings.HasPrefix(upper, run.EnvPrefix):
		return "names with the prefix " + run.EnvPrefix + " are reserved for parameters"
	case upper == "PATH":
		return "every program gets the runner's PATH: remove it"
	case strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "DYLD_") || slices.Contains([]string{"BASH_ENV", "ENV", "IFS"}, upper):
		return quote(name) + " changes what every program loads or runs, and cannot be passed"
	}
	return ""
}

// command splits a command by the rules of a shell, or keeps it if a shell runs it.
func (d *document) command(f fields, n gjson.Result, b *run.Blueprint) {
	text := f.text("command")
	if text == "" {
		return
	}
	argv, err := shellquote.Split(text)
	switch {
	case err != nil:
		f.problem("command", "%s", describeOpenQuote(text))
		return
	case len(argv) == 0 || strings.TrimSpace(argv[0]) == "":
		f.problem("command", "names no program")
		return
	case b.Strategy != run.File && strings.Contains(text, run.FilePlaceholder):
		f.problem("command", `%s needs "parameter_strategy": "file"`, run.FilePlaceholder)
		return
	}
	if b.Shell {
		for _, p := range []string{run.DirPlaceholder, run.FilePlaceholder} {
			if strings.Contains(text, p) {
				f.problem("command", "a shell would read the path in %s as part of the command: remove shell, or use %s", p, CommandFile)
			}
		}
		b.Command = text
		return
	}
	b.Argv = argv
	for i, word := range argv[1:] {
		if isShellSyntax(word) && !(i > 0 && argv[i] == "-c") {
			d.note(n.Index, child(f.path, "command"), `%s is passed to the program unchanged, since no shell reads the command; set "shell": true to use one`, quote(word))
			return
		}
	}
}

// isShellSyntax reports whether a word has a meaning for a shell.
func isShellSyntax(word string) bool {
	if slices.Contains([]string{"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>&1", "2>"}, word) {
		return true
	}
	return strings.HasPrefix(word, "$") && len(word) > 1 || strings.Contains(word, "$(") || strings.HasPrefix(word, "`")
}

// describeOpenQuote describes the open quote of a command that cannot be split.
func describeOpenQuote(text string) string {
	var open rune
	openAt, count := 0, 0
	escaped := false
	for _, r := range text {
		count++
		switch {
		case escaped:
			escaped = false
		case r == '\\' && open != '\'':
			escaped = true
		case open == 0 && (r == '\'' || r == '"'):
			open = r
			openAt = count
		case r == open:
			open = 0
		}
	}
	if open != 0 {
		return "the " + string(open) + " at character " + strconv.Itoa(openAt) + " is never closed"
	}
	return "it ends with a \\ that escapes nothing"
}

// serversFile reads agent.mcp.json: an object of servers, or an object with the field
// mcpServers, as in the configurations of agents.
func (d *document) serversFile(root gjson.Result) map[string]json.RawMessage {
	if !root.IsObject() {
		d.problem(root.Index, "$", "expected an object, found %s", kindOf(root).words())
		return nil
	}
	if !field(root, "mcpServers").Exists() {
		return d.servers(root, "$")
	}
	f := fields{d, root, "$"}
	f.checkUnknown([]string{"mcpServers"}, nil, "")
	inner, ok := f.want("mcpServers", objectKind)
	if !ok {
		return nil
	}
	return d.servers(inner, "$.mcpServers")
}

// servers reads MCP servers by name.
func (d *document) servers(n gjson.Result, path string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, v := range members(n) {
		at := child(path, name.Str)
		if !v.IsObject() {
			d.problem(v.Index, at, "expected an object, found %s", kindOf(v).words())
			continue
		}
		raw, err := encode(plain(v))
		if err != nil {
			d.problem(v.Index, at, "%v", err)
			continue
		}
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
