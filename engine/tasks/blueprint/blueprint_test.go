package blueprint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acescope/engine/tasks/run"
)

// files are the files of a blueprint.
type files map[string]string

// put writes a blueprint into a library and returns its directory.
func put(t *testing.T, library, name string, f files) string {
	t.Helper()
	dir := filepath.Join(library, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range f {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestProgram reads a program with all fields.
func TestProgram(t *testing.T) {
	dir := put(t, t.TempDir(), "web-crawler", files{
		AgentFile: `{
			"name": "web-crawler", "description": "Crawls", "type": "deterministic", "tags": ["internal", "web", "web"],
			"demands": {"tags": ["python", "disk"], "hostname": "db-server", "project_dir": "/srv", "executor_type": null},
			"command": "uv run 'my script.py' --dir={blueprint_dir} \"a b\"", "timeout_seconds": 3600,
			"parameter_strategy": "args", "env": ["GH_TOKEN"], "working_dir": "{blueprint_dir}/in", "idempotent": true, "on_runner_loss": "move"}`,
		ParamsFile: `{"type": "object", "properties": {"depth": {"type": "integer", "default": 2}}}`,
		"other":    "whatever",
	})
	b, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(b.Argv, "|"); got != "uv|run|my script.py|--dir={blueprint_dir}|a b" ||
		b.Command != "" {
		t.Errorf("argv %s", got)
	}
	if strings.Join(b.Tags, ",") != "internal,web" ||
		strings.Join(b.Requirements.Tags, ",") != "disk,python" || b.Requirements.Hostname != "db-server" {
		t.Errorf("tags %v, requirements %+v", b.Tags, b.Requirements)
	}
	if b.TimeoutSeconds != 3600 || b.Strategy != run.Args || !b.Idempotent || b.OnRunnerLoss != run.Move ||
		b.Dir != dir || len(b.Digest) != 64 {
		t.Errorf("%+v", b.Blueprint)
	}
	if string(b.Schema) != `{"properties":{"depth":{"default":2,"type":"integer"}},"type":"object"}` {
		t.Errorf("schema %s", b.Schema)
	}
	if got, err := b.Check([]byte(`{}`)); err != nil || string(got) != `{"depth":2}` {
		t.Errorf("%s, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, ParamsFile), []byte(`{"type": "object"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	changed, err := Read(dir)
	if err != nil || changed.Digest == b.Digest {
		t.Errorf("the digest is the same, or %v", err)
	}
}

// TestProgramVariants reads a script, a shell command, and a blueprint with few fields.
func TestProgramVariants(t *testing.T) {
	library := t.TempDir()
	b, err := Read(put(t, library, "a",
		files{AgentFile: `{"name":"a","description":"d","type":"deterministic"}`,
			CommandFile: "#!/bin/sh\necho x\n"}))
	if err != nil || b.Script != "#!/bin/sh\necho x\n" || b.Strategy != run.StdinJSON || b.Argv != nil ||
		b.Schema != nil {
		t.Errorf("%+v, %v", b.Blueprint, err)
	}
	if got, err := b.Check([]byte(` {"b": [1.50], "a": null} `)); err != nil ||
		string(got) != `{"a":null,"b":[1.50]}` {
		t.Errorf("without a schema: %s, %v", got, err)
	}
	b, err = Read(put(t, library, "b",
		files{AgentFile: `{"name":"b","description":"d","type":"deterministic","command":"a | b > c","shell":true}`}))
	if err != nil || b.Command != "a | b > c" || !b.Shell || b.Argv != nil || len(b.Notes) != 0 {
		t.Errorf("%+v, %v", b.Blueprint, err)
	}
	b, err = Read(put(t, library, "c",
		files{AgentFile: `{"name":"c","description":"d","type":"deterministic","command":"a | b"}`}))
	if err != nil || len(b.Notes) != 1 ||
		!strings.Contains(b.Notes[0].String(),
			`agent.json:1:64: $.command: "|" is passed to the program unchanged`) {
		t.Errorf("notes %v, %v", b.Notes, err)
	}
	b, err = Read(put(t, library, "d",
		files{AgentFile: `{"name":"d","description":"d","type":"deterministic","command":"a","parameters_schema":{"required":["x"]}}`}))
	if err != nil || string(b.Schema) != `{"required":["x"]}` {
		t.Errorf("%+v, %v", b.Blueprint, err)
	}
}

// TestAgent reads an agent with all files.
func TestAgent(t *testing.T) {
	library := t.TempDir()
	b, err := Read(put(t, library, "helper", files{
		AgentFile:   `{"name": "helper", "description": "Helps", "model": "opus", "permission_mode": "acceptEdits", "allowed_tools": ["Read", "Bash(git log:*)"]}`,
		PromptFile:  "Be kind.\n",
		ServersFile: `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"], "env": {"API_KEY": "${env:API_KEY}"}}}}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	if b.Type != run.Agent || b.SystemPrompt != "Be kind.\n" || b.Parameters != nil || b.Strategy != "" ||
		len(b.AllowedTools) != 2 {
		t.Errorf("%+v", b.Blueprint)
	}
	if _, err := b.Check([]byte(`{}`)); err == nil ||
		err.Error() != "parameters: $: an agent takes a prompt, not parameters" {
		t.Errorf("%v", err)
	}
	if got := string(b.MCPServers["files"]); got != `{"args":["-y","x"],"command":"npx","env":{"API_KEY":"${env:API_KEY}"}}` {
		t.Errorf("server %s", got)
	}
	// The document has them in agent.json; neither a prompt nor servers are needed.
	b, err = Read(put(t, library, "inline",
		files{AgentFile: `{"name": "inline", "description": "d", "type": "agent", "system_prompt": "p", "mcp_servers": {"web": {"url": "http://127.0.0.1:1/mcp"}, "runs": {"type": "acescope"}}}`}))
	if err != nil || b.SystemPrompt != "p" || len(b.MCPServers) != 2 {
		t.Errorf("%+v, %v", b.Blueprint, err)
	}
	if _, err := Read(put(t, library, "plain",
		files{AgentFile: `{"name": "plain", "description": "d"}`})); err != nil {
		t.Error(err)
	}
}

// secret looks like a key.
const secret = "sk-ant-api03-" + "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"

// TestMistakes checks the text and the place of each problem.
func TestMistakes(t *testing.T) {
	program := func(rest string) files {
		return files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "command": "true"` + rest + `}`}
	}
	agent := func(rest string) files {
		return files{AgentFile: `{"name": "x", "description": "d"` + rest + `}`}
	}
	with := func(f files, name, text string) files {
		f[name] = text
		return f
	}
	schema := func(text string) files { return with(program(""), ParamsFile, text) }
	for name, c := range map[string]struct {
		files files
		want  string
	}{
		"nothing": {files{}, `agent.json: is missing`},
		"no JSON": {files{AgentFile: "{\n  \"name\": x\n}"},
			`agent.json:2:11: is not JSON: invalid character 'x'`},
		"cut JSON": {files{AgentFile: `{"name": "x"`},
			`agent.json:1:12: is not JSON: unexpected end of JSON input`},
		"empty": {files{AgentFile: ""}, `agent.json:1:1: is not JSON: unexpected end of JSON input`},
		"more JSON": {files{AgentFile: `{} {}`},
			`agent.json:1:4: is not JSON: invalid character '{' after top-level value`},
		"a list": {files{AgentFile: `[]`}, `agent.json:1:1: $: expected an object`},
		"latin":  {files{AgentFile: "{\"name\": \"\xe4\"}"}, `agent.json:1:11: is not UTF-8`},
		"half": {files{AgentFile: `{"name": "\ud800"}`},
			`agent.json:1:10: $.name: a \u escape is half of a surrogate pair`},
		"twice": {program(`, "name": "y"`), `agent.json:1:79: $.name: occurs twice`},
		"deep": {files{AgentFile: strings.Repeat("[", 200) + strings.Repeat("]", 200)},
			`is nested more than 100 deep`},
		"large": {files{AgentFile: strings.Repeat(" ", MaxFile+1)},
			`agent.json: is larger than 256 KB`},
		"long number": {program(`, "timeout_seconds": 1e999999999`),
			`$.timeout_seconds: the number is too long`},
		"no name":        {files{AgentFile: `{"description": "d"}`}, `agent.json:1:1: $.name: is missing`},
		"no description": {files{AgentFile: `{"name": "x"}`}, `$.description: is missing`},
		"empty text":     {files{AgentFile: `{"name": "x", "description": " "}`}, `$.description: is empty`},
		"other name": {files{AgentFile: `{"name": "y", "description": "d"}`},
			`agent.json:1:10: $.name: is "y", but the directory is "x"`},
		"bad name": {files{AgentFile: `{"name": "../x", "description": "d"}`},
			`$.name: "../x" is not a valid name`},
		"NUL name": {files{AgentFile: `{"name": "x\u0000", "description": "d"}`},
			`$.name: contains a NUL`},
		"unknown field": {program(`, "time_out_seconds": 1`),
			`agent.json:1:99: $.time_out_seconds: unknown field; did you mean "timeout_seconds"?`},
		"dashed field":  {program(`, "timeout-seconds": 1`), `did you mean "timeout_seconds"?`},
		"strange field": {program(`, "zzzzzzzzzz": 1`), `$.zzzzzzzzzz: unknown field`},
		"type": {agent(`, "type": "determinstic"`),
			`$.type: value must be one of 'agent', 'deterministic'`},
		"type's type": {agent(`, "type": 1`), `$.type: value must be one of 'agent', 'deterministic'`},
		"tags":        {program(`, "tags": "a"`), `$.tags: got string, want array`},
		"a tag": {program(`, "tags": ["a", 1]`),
			`agent.json:1:93: $.tags[1]: got number, want string`},
		"demanded tag": {program(`, "demands": {"tags": ["a", {}]}`),
			`$.demands.tags[1]: got object, want string`},
		"comma tag": {program(`, "tags": ["a,b"]`), `$.tags[0]: 'a,b' does not match pattern`},
		"demand":    {program(`, "demands": {"host": "a"}`), `$.demands.host: unknown field`},
		"demands":   {program(`, "demands": []`), `$.demands: got array, want object`},
		"relative": {program(`, "demands": {"project_dir": "a"}`),
			`$.demands.project_dir: 'a' does not match pattern '^/`},
		"agent executor": {program(`, "demands": {"executor_type": "claude-code"}`),
			`$.demands.executor_type: "claude-code" is for agents, and this is a program`},
		"executor": {agent(`, "demands": {"executor_type": "deterministic"}`),
			`$.demands.executor_type: "deterministic" is for programs`},
		"executor path": {program(`, "demands": {"executor_type": "../x"}`),
			`$.demands.executor_type: "../x" is not a valid executor type`},
		"no time":       {program(`, "timeout_seconds": 0`), `$.timeout_seconds: minimum: got 0, want 1`},
		"negative time": {program(`, "timeout_seconds": -1`), `minimum: got -1, want 1`},
		"long time":     {program(`, "timeout_seconds": 604801`), `maximum: got 604,801, want 604,800`},
		"part time": {program(`, "timeout_seconds": 1.5`),
			`$.timeout_seconds: got number, want integer`},
		"real time": {program(`, "timeout_seconds": 3600.0`),
			`$.timeout_seconds: write an integer without a fraction`},
		"text time": {program(`, "timeout_seconds": "60"`),
			`$.timeout_seconds: got string, want integer`},
		"move": {program(`, "on_runner_loss": "move"`),
			`$.on_runner_loss: move needs "idempotent": true`},
		"agent moves": {agent(`, "on_runner_loss": "move"`),
			`$.on_runner_loss: an agent's run cannot be moved`},
		"loss": {program(`, "on_runner_loss": "retry"`),
			`$.on_runner_loss: value must be one of 'fail', 'move'`},
		"strategy": {program(`, "parameter_strategy": "stdin"`),
			`$.parameter_strategy: value must be one of 'stdin_json', 'args', 'args_spaced', 'env', 'file'`},
		"prompt": {program(`, "system_prompt": "x"`),
			`$.system_prompt: is for agents, and this is a program`},
		"prompt file": {with(program(""), PromptFile, "x"), `agent.system-prompt.md: is for agents`},
		"agent command": {agent(`, "command": "x"`),
			`$.command: is for programs, and this is an agent: set "type": "deterministic"`},
		"agent schema": {with(agent(""), ParamsFile, "{}"), `agent.parameters.json: is for programs`},
		"agent script": {with(agent(""), CommandFile, "x"), `agent.command.sh: is for programs`},
		"two prompts": {with(agent(`, "system_prompt": "x"`), PromptFile, "x"),
			`$.system_prompt: conflicts with agent.system-prompt.md`},
		"empty prompt": {with(agent(""), PromptFile, " \n"), `agent.system-prompt.md: is empty`},
		"long field": {agent(`, "system_prompt": "` + strings.Repeat("語", 40_000) + `"`),
			`$.system_prompt: is longer than 100000 bytes`},
		"long prompt": {with(agent(""), PromptFile, strings.Repeat("x", MaxPrompt+1)),
			`agent.system-prompt.md: has 100001 bytes; at most 100000`},
		"mode": {agent(`, "permission_mode": "yolo"`), `$.permission_mode: value must be one of`},
		"tool": {agent(`, "allowed_tools": ["--x"]`),
			`$.allowed_tools[0]: '--x' does not match pattern`},
		"servers": {with(agent(""), ServersFile, `{"mcpServers": {"a": {"args": []}}}`),
			`agent.mcp.json:1:22: $.mcpServers.a: use either a command or a url`},
		"server": {with(agent(""), ServersFile, `{"a": 1}`),
			`agent.mcp.json:1:7: $.a: expected an object`},
		"server secret": {agent(`, "mcp_servers": {"a": {"command": "c", "env": {"GH_TOKEN": "abc"}}}`),
			`$.mcp_servers.a.env.GH_TOKEN: do not write a secret here; use ${env:NAME}`},
		"two servers": {with(agent(`, "mcp_servers": {}`), ServersFile, `{}`),
			`$.mcp_servers: conflicts with agent.mcp.json`},
		"no command": {files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic"}`},
			`$.command: is missing, and there is no agent.command.sh`},
		"both": {with(program(""), CommandFile, "true"),
			`$.command: conflicts with agent.command.sh`},
		"quote":        {program(`x`), `is not JSON`},
		"open quote":   {files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "command": "echo \"it's"}`}, `$.command: Unterminated double-quoted string`},
		"open single":  {files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "command": "echo it's"}`}, `$.command: Unterminated single-quoted string`},
		"open escape":  {files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "command": "echo \\"}`}, `$.command: Unterminated backslash-escape`},
		"no program":   {files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "command": "'' x"}`}, `$.command: names no program`},
		"NUL command":  {files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "command": "a\u0000b"}`}, `$.command: contains a NUL`},
		"shell's path": {files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "shell": true, "command": "{blueprint_dir}/a"}`}, `$.command: a shell would read the path`},
		"shell alone": {with(
			files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "shell": true}`},
			CommandFile, "x"), `$.shell: is for a command`},
		"file of stdin": {files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic", "command": "a {parameters_file}"}`}, `$.command: {parameters_file} needs "parameter_strategy": "file"`},
		"empty script": {with(
			files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic"}`}, CommandFile,
			"\n"), `agent.command.sh: is empty`},
		"CRLF script": {with(
			files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic"}`}, CommandFile,
			"#!/bin/sh\r\n"), `agent.command.sh:1:10: has Windows line ends`},
		"binary script": {with(
			files{AgentFile: `{"name": "x", "description": "d", "type": "deterministic"}`}, CommandFile,
			"a\x00"), `agent.command.sh:1:2: contains a NUL`},
		"env value": {program(`, "env": ["A=b"]`), `$.env[0]: must be the name of a variable`},
		"env PATH":  {program(`, "env": ["PATH"]`), `$.env[0]: every program gets the runner's PATH`},
		"env preload": {program(`, "env": ["LD_PRELOAD"]`),
			`$.env[0]: "LD_PRELOAD" changes what every program loads`},
		"env dyld":  {program(`, "env": ["dyld_insert_libraries"]`), `changes what every program loads`},
		"env param": {program(`, "env": ["PARAM_X"]`), `names with the prefix PARAM_ are reserved`},
		"env name":  {program(`, "env": ["1A"]`), `$.env[0]: must be the name of a variable`},
		"dir up": {program(`, "working_dir": "{blueprint_dir}/../.."`),
			`$.working_dir: must not contain ..`},
		"dir within": {program(`, "working_dir": "/a/{blueprint_dir}"`),
			`$.working_dir: {blueprint_dir} is allowed at the beginning only`},
		"idempotent": {program(`, "idempotent": "yes"`), `$.idempotent: got string, want boolean`},
		"secret": {with(agent(""), PromptFile, "Use\nthe key "+secret+"\n"),
			`agent.system-prompt.md:2:9: contains what looks like a secret`},
		"two schemas": {with(program(`, "parameters_schema": {}`), ParamsFile, `{}`),
			`$.parameters_schema: conflicts with agent.parameters.json`},

		"schema list": {schema(`[]`), `agent.parameters.json:1:1: $: a schema must be an object`},
		"schema draft": {schema(`{"$schema": "http://json-schema.org/draft-04/schema#"}`),
			`agent.parameters.json:1:13: $.$schema`},
		"schema own": {schema(`{"$schema": "https://example.com/my-schema"}`),
			`only draft-07 and 2020-12 are supported`},
		"schema number": {schema(`{"$schema": 7}`), `only draft-07 and 2020-12 are supported`},
		"schema type": {schema("{\n \"properties\": {\"a\": {\"type\": \"int\"}}}"),
			`agent.parameters.json:2:31: $.properties.a.type: `},
		"schema keyword": {schema(`{"required": "a"}`),
			`agent.parameters.json:1:14: $.required: got string, want array`},
		"schema of text": {schema(`{"type": "string"}`),
			`agent.parameters.json:1:10: $.type: must allow an object`},
		"remote": {schema(`{"properties": {"a": {"$ref": "http://example.com/a.json"}}}`),
			`$.properties.a.$ref: "http://example.com/a.json" is outside the schema`},
		"file ref": {schema(`{"allOf": [{"$ref": "file:///etc/passwd"}]}`),
			`$.allOf[0].$ref: "file:///etc/passwd" is outside the schema`},
		"relative ref": {schema(`{"items": {"$ref": "other.json#/a"}}`),
			`$.items.$ref: "other.json#/a" is outside`},
		"meta ref": {schema(`{"$ref": "http://json-schema.org/draft-07/schema#"}`),
			`$.$ref: "http://json-schema.org/draft-07/schema#" is outside`},
		"lost ref": {schema(`{"properties": {"a": {"$ref": "#/definitions/b"}}}`),
			`$.properties.a.$ref: "#/definitions/b" does not exist`},
		"lost anchor": {schema(`{"properties": {"a": {"$ref": "#b"}}}`),
			`$.properties.a.$ref: "#b" does not exist`},
		"own address": {schema(`{"properties": {"a": {"$id": "http://example.com/a"}}}`),
			`$.properties.a.$id: is not supported for a part`},
		"dynamic": {schema(
			`{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"$dynamicRef": "#a"}}}`), `is not supported: use $ref`},
		"circle": {schema(`{"$ref": "#"}`), `refers to itself in a circle`},
		"long circle": {schema(
			`{"definitions": {"a": {"allOf": [{"$ref": "#/definitions/b"}]}, "b": {"anyOf": [{"$ref": "#/definitions/a"}]}}, "properties": {"x": {"$ref": "#/definitions/a"}}}`), `refers to itself in a circle`},
		"pattern": {schema(`{"properties": {"a": {"pattern": "(?=x)"}}}`),
			`$.properties.a.pattern: '(?=x)' is not valid regex: error parsing regexp: invalid or unsupported Perl syntax`},
		"pattern names": {schema(`{"patternProperties": {"(a)\\1": {}}}`),
			`$.patternProperties: invalid propertyName '(a)\\1' ('(a)\\1' is not valid regex`},
		"default": {schema(`{"properties": {"a": {"type": "integer", "default": "2"}}}`),
			`$.properties.a.default: got string, want integer`},
		"inner default": {schema(
			`{"properties": {"a": {"default": {"b": "x"}, "properties": {"b": {"maxLength": 0}}}}}`),
			`$.properties.a.default.b: maxLength: got 1, want 0`},
		"endless default": {schema(
			`{"properties": {"a": {"$ref": "#/definitions/n"}}, "definitions": {"n": {"default": {}, "properties": {"n": {"$ref": "#/definitions/n"}}}}}`), `filling in the default adds defaults without end`},
		"schema secret": {schema(`{"properties": {"a": {"default": "` + secret + `"}}}`),
			`agent.parameters.json:1:35: contains what looks like a secret`},
	} {
		_, err := Read(put(t, t.TempDir(), "x", c.files))
		if err == nil {
			t.Errorf("%s: nothing was wrong", name)
			continue
		}
		var p *Problems
		if !errors.As(err, &p) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		found := false
		for _, one := range p.List {
			found = found || strings.Contains(one.String(), c.want)
		}
		if !found {
			t.Errorf("%s: %v\n wants %s", name, p.List, c.want)
		}
		if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%s: not one line: %q", name, err)
		}
	}
}

// TestAllMistakes checks that all problems are reported, up to a bound.
func TestAllMistakes(t *testing.T) {
	dir := put(t, t.TempDir(), "x",
		files{AgentFile: `{"name": "x", "description": 1, "type": "deterministic", "tags": 1, "shell": 1}`})
	_, err := Read(dir)
	var p *Problems
	if !errors.As(err, &p) || len(p.List) != 4 ||
		!strings.HasSuffix(err.Error(), "(and 3 more: acescope agent validate)") {
		t.Errorf("%v", err)
	}
	var many []string
	for range 50 {
		many = append(many, `1`)
	}
	_, err = Read(put(t, t.TempDir(), "x", files{AgentFile: `{"name": "x", "description": "d", "tags": [` +
		strings.Join(many, ",") + `]}`}))
	if !errors.As(err, &p) || len(p.List) != MaxProblems || p.More != 50-MaxProblems {
		t.Errorf("%v", err)
	}
}
