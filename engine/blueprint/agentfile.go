package blueprint

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"acescope/engine/run"
	"acescope/engine/runner"
	"acescope/engine/session"
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

// agentFile reads agent.json into a blueprint. Where something is wrong, that is among the
// document's problems, and the blueprint holds what was right.
func (d *document) agentFile(root *node) (b run.Blueprint) {
	if root.kind != objectKind {
		d.problem(root.at, "$", "expected an object, found %s", root.kind.words())
		return b
	}
	f := fields{d, root, "$"}
	for _, name := range []string{"name", "description"} {
		if f.get(name) == nil {
			d.problem(root.at, below("$", name), "is missing")
		}
	}
	b.Name = f.line("name")
	b.Description = f.text("description")
	if len(b.Description) > maxDescription {
		f.wrong(f.get("description"), "description", "has %d bytes; at most %d", len(b.Description), maxDescription)
	}
	kinds := []string{string(run.Agent), string(run.Deterministic)}
	b.Type = run.BlueprintType(f.choice("type", kinds...))
	if b.Type == "" && f.get("type") != nil {
		f.known(slices.Concat(commonFields(), agentFields(), programFields()), func(string) string { return "" })
		return b
	}
	if b.Type == "" {
		b.Type = run.Agent
	}
	b.Tags = f.texts("tags", tagWrong)
	if n := f.want("demands", objectKind); n != nil {
		b.Demands = d.demands(n, b.Type)
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
	f.known(slices.Concat(commonFields(), agentFields()), func(name string) string {
		if slices.Contains(programFields(), name) {
			return `is for a program, and this is an agent: say "type": "deterministic", or leave it out`
		}
		return ""
	})
	if b.SystemPrompt = f.text("system_prompt"); len(b.SystemPrompt) > MaxPrompt {
		f.wrong(f.get("system_prompt"), "system_prompt", "has %d bytes; at most %d", len(b.SystemPrompt), MaxPrompt)
	}
	b.Model = f.line("model")
	b.PermissionMode = f.choice("permission_mode", "default", "plan", "acceptEdits", "dontAsk", "full")
	b.AllowedTools = f.texts("allowed_tools", func(text string) string {
		if strings.TrimSpace(text) == "" || strings.HasPrefix(text, "-") || strings.ContainsAny(text, "\x00\r\n") || len(text) > 200 {
			return quoted(text) + " is no tool's name"
		}
		return ""
	})
	if n := f.want("mcp_servers", objectKind); n != nil {
		b.MCPServers = d.servers(n, "$.mcp_servers")
	}
	if b.OnRunnerLoss == run.Move {
		f.wrong(f.get("on_runner_loss"), "on_runner_loss", "an agent's run cannot be moved: what it has done stays on its machine; leave it out")
	}
}

func (d *document) programFields(f fields, b *run.Blueprint) {
	f.known(slices.Concat(commonFields(), programFields()), func(name string) string {
		if slices.Contains(agentFields(), name) {
			return `is for an agent, and this is a program: leave it out, or say "type": "agent"`
		}
		return ""
	})
	b.Shell = f.truth("shell")
	b.Strategy = run.Strategy(f.choice("parameter_strategy", string(run.StdinJSON), string(run.Args), string(run.Env), string(run.File)))
	if b.Strategy == "" {
		b.Strategy = run.StdinJSON
	}
	b.Env = f.texts("env", envWrong)
	b.WorkingDir = f.line("working_dir")
	if slices.Contains(strings.Split(b.WorkingDir, "/"), "..") {
		f.wrong(f.get("working_dir"), "working_dir", "must not lead upwards by ..")
	}
	if at := strings.LastIndex(b.WorkingDir, DirPlaceholder); at > 0 {
		f.wrong(f.get("working_dir"), "working_dir", "%s stands at its beginning only", DirPlaceholder)
	}
	b.Idempotent = f.truth("idempotent")
	if b.OnRunnerLoss == run.Move && !b.Idempotent {
		f.wrong(f.get("on_runner_loss"), "on_runner_loss", `move needs "idempotent": true: the program may have run already`)
	}
	if n := f.get("command"); n != nil {
		d.command(f, n, b)
	} else if b.Shell {
		f.wrong(f.get("shell"), "shell", "is for a command, and there is none")
	}
}

// tags are words without blanks and commas.
var tags = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,99}$`)

func tagWrong(tag string) string {
	if tags.MatchString(tag) {
		return ""
	}
	return quoted(tag) + " is no tag: letters, digits and _ . : / + - only, beginning with a letter or digit, at most 100"
}

// demands reads what the blueprint asks of its runner.
func (d *document) demands(n *node, of run.BlueprintType) *runner.Demands {
	f := fields{d, n, "$.demands"}
	f.known([]string{"hostname", "project_dir", "executor_type", "tags"}, func(string) string { return "" })
	out := &runner.Demands{Hostname: f.line("hostname"), ProjectDir: f.line("project_dir"), ExecutorType: f.line("executor_type"), Tags: f.texts("tags", tagWrong)}
	slices.Sort(out.Tags)
	if out.ProjectDir != "" && !path.IsAbs(out.ProjectDir) {
		f.wrong(f.get("project_dir"), "project_dir", "must be an absolute path")
	}
	at := f.get("executor_type")
	switch {
	case out.ExecutorType == "":
	case !run.ValidName(out.ExecutorType):
		f.wrong(at, "executor_type", "%s is no executor's name", quoted(out.ExecutorType))
	case of == run.Agent && out.ExecutorType == runner.Deterministic:
		f.wrong(at, "executor_type", "is for programs, and this is an agent")
	case of == run.Deterministic && runner.Agent(out.ExecutorType) != "":
		f.wrong(at, "executor_type", "is an agent, and this is a program")
	}
	return out
}

// envName is the name of a variable.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// envWrong says why a variable of the runner cannot be handed on by its name.
func envWrong(name string) string {
	upper := strings.ToUpper(name)
	switch {
	case strings.Contains(name, "="):
		return "names a variable of the runner; values do not belong here"
	case !envName.MatchString(name):
		return quoted(name) + " is no variable's name"
	case strings.HasPrefix(upper, EnvPrefix):
		return "names that begin with " + EnvPrefix + " are those of parameters"
	case upper == "PATH":
		return "every program gets the runner's PATH: leave it out"
	case strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "DYLD_") || upper == "BASH_ENV" || upper == "ENV" || upper == "IFS":
		return quoted(name) + " changes what every program loads or runs, and is never handed on"
	}
	return ""
}

// serversFile reads agent.mcp.json: an object of servers, or one with the field mcpServers
// that holds it, as agents' own configurations have it.
func (d *document) serversFile(root *node) map[string]json.RawMessage {
	if root.kind != objectKind {
		d.problem(root.at, "$", "expected an object, found %s", root.kind.words())
		return nil
	}
	if inner := root.field("mcpServers"); inner != nil {
		f := fields{d, root, "$"}
		f.known([]string{"mcpServers"}, func(string) string { return "" })
		if inner = f.want("mcpServers", objectKind); inner == nil {
			return nil
		}
		return d.servers(inner, "$.mcpServers")
	}
	return d.servers(root, "$")
}

// servers reads servers of tools: an object each, by name, as the agent's configuration has it.
func (d *document) servers(n *node, path string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, m := range n.members {
		at := below(path, m.name)
		if m.value.kind != objectKind {
			d.problem(m.value.at, at, "expected an object, found %s", m.value.kind.words())
			continue
		}
		raw, err := encode(m.value.plain())
		if err != nil {
			d.problem(m.value.at, at, "%v", err)
			continue
		}
		if err := session.CheckServers(map[string]json.RawMessage{m.name: raw}, false); err != nil {
			d.serverProblem(m, at, err)
			continue
		}
		out[m.name] = raw
	}
	if err := session.CheckServers(out, false); err != nil {
		d.problem(n.at, path, "%s", strings.TrimPrefix(err.Error(), "mcp_servers: "))
	}
	return out
}

// serverProblem puts what a session would say of a server where the server stands.
func (d *document) serverProblem(m member, at string, err error) {
	rest, inside := strings.CutPrefix(err.Error(), "mcp_servers."+m.name)
	if !inside {
		d.problem(m.at, at, "%s", strings.TrimPrefix(rest, "mcp_servers: "))
		return
	}
	field, said, _ := strings.Cut(rest, ": ")
	d.problem(m.value.at, at+field, "%s", said)
}
