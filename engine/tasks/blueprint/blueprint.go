package blueprint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"acescope/engine/internal/redact"
	"acescope/engine/tasks/run"
)

// Files of a blueprint in its directory. Other files belong to the program.
const (
	AgentFile   = "agent.json"
	ParamsFile  = "agent.parameters.json"
	PromptFile  = "agent.system-prompt.md"
	CommandFile = "agent.command.sh"
	ServersFile = "agent.mcp.json"
)

func fileNames() []string {
	return []string{AgentFile, ParamsFile, PromptFile, CommandFile, ServersFile}
}

// Bounds.
const (
	MaxFile       = 256 << 10   // bytes of one file
	MaxPrompt     = 100_000     // bytes of a system prompt
	MaxBlueprints = 1_000       // directories of one library directory
	MaxProblems   = 20          // of one blueprint
	MaxViolations = 10          // of parameters
	maxParts      = 5_000       // schemas within a schema
	maxDepth      = 100         // of JSON
	maxNumber     = 400         // bytes of a number, and its largest exponent
	maxArg        = 128<<10 - 1 // bytes of one argument or variable on Linux
)

const nameRule = "use 1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or a digit"

// Blueprint is a blueprint without problems.
type Blueprint struct {
	run.Blueprint
	Parameters *Schema   // checks the parameters of a run; nil for an agent
	Notes      []Problem // warnings
}

// Check fills in and checks the parameters of a run; see [Schema.Check]. An agent has no parameters.
func (b Blueprint) Check(params json.RawMessage) (json.RawMessage, error) {
	if b.Parameters == nil {
		return nil, violation("an agent takes a prompt, not parameters")
	}
	return b.Parameters.Check(params)
}

// Read reads the blueprint in a directory. The error is [*Problems] if its files are invalid.
func Read(dir string) (Blueprint, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Blueprint{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Blueprint{}, fmt.Errorf("blueprint %s: %s", dir, withoutPath(err))
	}
	defer root.Close()
	b, problems := read(root, dir)
	if problems.any() {
		return b, &problems
	}
	return b, nil
}

// read reads the blueprint in root, whose path is dir.
func read(root *os.Root, dir string) (Blueprint, Problems) {
	var all Problems
	files := map[string]*document{}
	for _, name := range fileNames() {
		data, err := readFile(root, name)
		switch {
		case err == nil:
			files[name] = &document{name: name, data: data}
		case !errors.Is(err, fs.ErrNotExist):
			all.add(Problem{File: name, Text: withoutPath(err)})
		}
	}
	if files[AgentFile] == nil {
		if !all.any() {
			all.add(Problem{File: AgentFile, Text: "is missing: every blueprint needs it"})
		}
		return Blueprint{}, all
	}
	b, problems := resolve(files, dir)
	all.addAll(problems)
	return b, all
}

// readFile reads one regular file. It does not block on a named pipe.
func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, errors.New(
				"is a broken link, or a link out of the blueprint's directory: copy the file")
		}
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = fmt.Errorf("is larger than %d KB", MaxFile>>10)
	}
	return data, err
}

// withoutPath returns the text of a file error without the path.
func withoutPath(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	return err.Error()
}

// resolve builds a blueprint from its files.
func resolve(files map[string]*document, dir string) (b Blueprint, all Problems) {
	main := files[AgentFile]
	switch tree := main.parse(); {
	case tree.IsObject():
		f := agentFile{main, tree}
		f.read(&b.Blueprint)
		f.checkName(b.Name, filepath.Base(dir))
		if b.Type == run.Agent {
			f.readAgent(&b.Blueprint)
			b.readAgentFiles(files, f)
		}
		if b.Type == run.Deterministic {
			f.readProgram(&b.Blueprint)
			b.readProgramFiles(files, f)
		}
	case tree.Exists():
		main.problem(tree.Index, "$", "expected an object")
	}
	b.Dir = dir
	b.Digest = digest(files)
	for _, name := range fileNames() {
		d := files[name]
		if d == nil {
			continue
		}
		if !d.any() {
			d.checkSecrets()
		}
		all.addAll(d.Problems)
		b.Notes = append(b.Notes, d.notes.List...)
	}
	return b, all
}

// checkName checks that the name of a blueprint is valid and the name of its directory.
func (f agentFile) checkName(name, dir string) {
	switch {
	case name == "":
	case !run.ValidName(name):
		f.fieldProblem("name", "%s is not a valid name: %s", quote(name), nameRule)
	case name != dir:
		f.fieldProblem("name", "is %s, but the directory is %s: they must be equal", quote(name), quote(dir))
	}
}

// conflict reports a field whose value is also in a file of its own.
func (f agentFile) conflict(name, file string) {
	if f.has(name) {
		f.fieldProblem(name, "conflicts with %s: remove one of them", file)
	}
}

func (b *Blueprint) readAgentFiles(files map[string]*document, f agentFile) {
	for _, name := range []string{ParamsFile, CommandFile} {
		if d := files[name]; d != nil {
			d.problem(-1, "",
				`is for programs, and this is an agent: remove it, or set "type": "deterministic" in %s`,
				AgentFile)
		}
	}
	if d := files[PromptFile]; d != nil {
		f.conflict("system_prompt", PromptFile)
		d.checkText(MaxPrompt)
		b.SystemPrompt = string(d.data)
	}
	if d := files[ServersFile]; d != nil {
		f.conflict("mcp_servers", ServersFile)
		if tree := d.parse(); tree.Exists() {
			b.MCPServers = d.serversFile(tree)
		}
	}
}

func (b *Blueprint) readProgramFiles(files map[string]*document, f agentFile) {
	for _, name := range []string{PromptFile, ServersFile} {
		if d := files[name]; d != nil {
			d.problem(-1, "",
				`is for agents, and this is a program: remove it, or set "type": "agent" in %s`, AgentFile)
		}
	}
	if d := files[CommandFile]; d != nil {
		f.conflict("command", CommandFile)
		d.checkText(MaxFile)
		if i := bytes.Index(d.data, []byte("\r\n")); i >= 0 && !d.any() {
			d.problem(i, "", "has Windows line ends, which a shell takes as part of the command")
		}
		b.Script = string(d.data)
	} else if !f.has("command") {
		f.fieldProblem("command", "is missing, and there is no %s: add one of them", CommandFile)
	}
	switch d := files[ParamsFile]; {
	case d != nil:
		f.conflict("parameters_schema", ParamsFile)
		if tree := d.parse(); tree.Exists() {
			b.Parameters = d.compile(tree, "$", b.Strategy)
		}
	case f.has("parameters_schema"):
		b.Parameters = f.compile(field(f.root, "parameters_schema"), "$.parameters_schema", b.Strategy)
	default:
		b.Parameters = anyObject(b.Strategy)
	}
	if b.Parameters != nil {
		b.Schema = b.Parameters.raw
	}
}

// checkText reports problems of a text file.
func (d *document) checkText(most int) {
	nul, invalid := bytes.IndexByte(d.data, 0), invalidAt(d.data)
	switch {
	case len(bytes.TrimSpace(d.data)) == 0:
		d.problem(-1, "", "is empty: fill it in, or remove it")
	case invalid >= 0:
		d.problem(invalid, "", "is not UTF-8")
	case nul >= 0:
		d.problem(nul, "", "contains a NUL")
	case len(d.data) > most:
		d.problem(-1, "", "has %d bytes; at most %d are allowed", len(d.data), most)
	}
}

// digest returns the SHA-256 of the files with their names and lengths.
func digest(files map[string]*document) string {
	h := sha256.New()
	for _, name := range slices.Sorted(slices.Values(fileNames())) {
		if d := files[name]; d != nil {
			fmt.Fprintf(h, "%s %d\n", name, len(d.data))
			h.Write(d.data)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// checkSecrets reports text that looks like a secret, since the history of every run contains the blueprint.
func (d *document) checkSecrets() {
	clean := redact.New().Bytes(d.data)
	if bytes.Equal(clean, d.data) {
		return
	}
	at := 0
	for at < len(clean) && at < len(d.data) && clean[at] == d.data[at] {
		at++
	}
	d.problem(at, "", "contains what looks like a secret, which would be recorded with every run: use a variable of the runner instead")
}
