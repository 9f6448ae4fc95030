package blueprint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"acescope/engine/run"
)

// Blueprint is a blueprint that can be run.
type Blueprint struct {
	run.Blueprint
	// Params checks the parameters of a run; it is nil for an agent.
	Params *Schema
	// Notes are remarks on what works, but may not be what was meant.
	Notes []Problem
}

// Read reads the blueprint in a directory. The error is [*Problems] where its files are
// wrong.
func Read(dir string) (Blueprint, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Blueprint{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Blueprint{}, fmt.Errorf("blueprint %s: %s", dir, plainly(err))
	}
	defer root.Close()
	b, problems := read(root, dir)
	if problems.any() {
		return b, &problems
	}
	return b, nil
}

// read reads the blueprint whose directory is open as root and is called dir.
func read(root *os.Root, dir string) (Blueprint, Problems) {
	var all Problems
	files := readFiles(root, &all)
	if files[AgentFile] == nil {
		if !all.any() {
			all.add(Problem{File: AgentFile, Text: "is not there: a blueprint needs it"})
		}
		return Blueprint{}, all
	}
	b, wrong := resolve(files, dir)
	all.addAll(wrong)
	return b, all
}

// resolve makes a blueprint of its files.
func resolve(files map[string]*document, dir string) (b Blueprint, all Problems) {
	main := files[AgentFile]
	tree := main.parse()
	if tree != nil {
		b.Blueprint = main.agentFile(tree)
		main.checkName(tree, b.Name, filepath.Base(dir))
	}
	b.Dir, b.Digest = dir, digest(files)
	if tree != nil && tree.kind == objectKind && b.Type != "" {
		rest(&b, files, fields{main, tree, "$"})
	}
	for _, name := range fileNames() {
		d := files[name]
		if d == nil {
			continue
		}
		if !d.any() {
			d.checkSecrets()
		}
		all.addAll(d.Problems)
		b.Notes = append(b.Notes, d.notes...)
	}
	return b, all
}

// checkName demands that a blueprint is called as its directory is.
func (d *document) checkName(tree *node, name, dir string) {
	n := fields{d, tree, "$"}.get("name")
	switch {
	case name == "" || n == nil:
	case !run.ValidName(name):
		d.problem(n.at, "$.name", "%s is no name: letters, digits, dot, dash and underscore only, beginning with a letter or digit, at most 100", quoted(name))
	case name != dir:
		d.problem(n.at, "$.name", "is %s, but the directory is called %s: they must be the same", quoted(name), quoted(dir))
	}
}

// rest adds what the other files say.
func rest(b *Blueprint, files map[string]*document, f fields) {
	if b.Type == run.Agent {
		agentRest(b, files, f)
		return
	}
	for _, name := range []string{PromptFile, ServersFile} {
		if d := files[name]; d != nil {
			d.problem(-1, "", `is for an agent, and this is a program: take it away, or say "type": "agent" in %s`, AgentFile)
		}
	}
	script := files[CommandFile]
	switch said := f.get("command"); {
	case script != nil && said != nil:
		f.wrong(said, "command", "there is %s too: only one of the two can be run", CommandFile)
	case script != nil:
		b.Script = script.script()
	case said == nil:
		f.doc.problem(f.obj.at, "$.command", "is missing, and there is no %s: nothing can be run", CommandFile)
	}
	b.Params = schemaOf(b, files[ParamsFile], f)
}

func agentRest(b *Blueprint, files map[string]*document, f fields) {
	for _, name := range []string{ParamsFile, CommandFile} {
		if d := files[name]; d != nil {
			d.problem(-1, "", `is for a program, and this is an agent: take it away, or say "type": "deterministic" in %s`, AgentFile)
		}
	}
	if d := files[PromptFile]; d != nil {
		if said := f.get("system_prompt"); said != nil {
			f.wrong(said, "system_prompt", "there is %s too: leave one of the two out", PromptFile)
		}
		b.SystemPrompt = d.prompt()
	}
	if d := files[ServersFile]; d != nil {
		if said := f.get("mcp_servers"); said != nil {
			f.wrong(said, "mcp_servers", "there is %s too: leave one of the two out", ServersFile)
		}
		if tree := d.parse(); tree != nil {
			b.MCPServers = d.serversFile(tree)
		}
	}
}

// prompt reads agent.system-prompt.md.
func (d *document) prompt() string {
	switch {
	case len(bytes.TrimSpace(d.data)) == 0:
		d.problem(-1, "", "is empty: fill it in, or take it away")
	case invalidAt(d.data) >= 0:
		d.problem(invalidAt(d.data), "", "is not UTF-8")
	case bytes.IndexByte(d.data, 0) >= 0:
		d.problem(bytes.IndexByte(d.data, 0), "", "holds a NUL")
	case len(d.data) > MaxPrompt:
		d.problem(-1, "", "has %d bytes; at most %d", len(d.data), MaxPrompt)
	}
	return string(d.data)
}

// schemaOf is the schema of a program's parameters, from its file or from agent.json; where
// there is none, any object will do.
func schemaOf(b *Blueprint, file *document, f fields) *Schema {
	said := f.want("parameters_schema", objectKind)
	switch {
	case file == nil && said == nil:
		return anything(b.Strategy)
	case file == nil:
		return f.doc.schema(said, "$.parameters_schema", b)
	case said != nil:
		f.wrong(said, "parameters_schema", "there is %s too: leave one of the two out", ParamsFile)
	}
	tree := file.parse()
	if tree == nil {
		return nil
	}
	return file.schema(tree, "$", b)
}

// schema compiles a schema that stands in the document, and puts it into the blueprint.
func (d *document) schema(n *node, path string, b *Blueprint) *Schema {
	s := d.compile(n, path, b.Strategy)
	if s != nil {
		b.Schema = s.raw
	}
	return s
}

// Check fills in and checks the parameters of a run; see [Schema.Check]. An agent takes none.
func (b Blueprint) Check(params json.RawMessage) (json.RawMessage, error) {
	if b.Params == nil {
		v := &Violations{}
		v.add("$", "an agent takes a prompt, and no parameters")
		return nil, v
	}
	return b.Params.Check(params)
}
