package blueprint

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
)

// Library finds blueprints by name, which is the name of their directory, in each of its
// directories. The first blueprint of a name is used, even if it has problems. A missing
// directory counts as empty.
type Library struct {
	Dirs []string
}

// Entry is a blueprint of a library, with or without problems.
type Entry struct {
	Blueprint
	Name     string // of its directory
	Dir      string
	Problems Problems
	Shadowed string // the directory of the blueprint of the same name that is used instead, or ""
}

// Info returns the entry for a list.
func (e Entry) Info() run.BlueprintInfo {
	info := run.BlueprintInfo{Name: e.Name, Description: e.Description, Type: e.Type,
		Tags:         append([]string{}, e.Tags...),
		Requirements: e.Requirements, Schema: e.Schema, Path: e.Dir}
	switch {
	case len(e.Problems.List) > 0:
		info.Error = e.Problems.Error()
	case e.Shadowed != "":
		info.Error = "shadowed by " + e.Shadowed
	}
	return info
}

// List returns all blueprints, sorted by name and then by precedence.
func (l Library) List(ctx context.Context) ([]run.BlueprintInfo, error) {
	entries, err := l.Entries(ctx)
	if err != nil {
		return nil, err
	}
	out := []run.BlueprintInfo{}
	for _, e := range entries {
		out = append(out, e.Info())
	}
	return out, nil
}

// Entries reads all blueprints, in the order of [Library.List].
func (l Library) Entries(ctx context.Context) ([]Entry, error) {
	var all []Entry
	first := map[string]string{}
	for _, dir := range l.Dirs {
		names, err := blueprintNames(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e, err := readEntry(dir, name)
			if err != nil {
				return nil, err
			}
			e.Shadowed = first[name]
			if e.Shadowed == "" {
				first[name] = e.Dir
			}
			if e.Shadowed != e.Dir { // a directory may be on the path twice
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Find reads the blueprint of a name. It returns [run.ErrNoBlueprint] if it is not found, and
// [run.ErrBadRequest] if the name is invalid.
func (l Library) Find(name string) (Entry, error) {
	if !run.ValidName(name) {
		return Entry{}, invalidName(name)
	}
	var known []string
	for _, dir := range l.Dirs {
		root, err := openDir(dir)
		if err != nil {
			return Entry{}, err
		}
		if root == nil {
			continue
		}
		found := hasBlueprint(root, name)
		root.Close()
		if found {
			return readEntry(dir, name)
		}
		names, _ := blueprintNames(dir) // for the hint
		known = append(known, names...)
	}
	hint := "no directories are searched"
	if len(l.Dirs) > 0 {
		hint = "searched in " + strings.Join(l.Dirs, ", ")
	}
	if similar := ace.Nearest(name, known); similar != "" {
		hint = "did you mean " + similar + "?"
	}
	return Entry{}, run.ErrNoBlueprint.With(name, hint)
}

func invalidName(name string) error {
	return fmt.Errorf("%w: %s is not a valid blueprint name: %s", run.ErrBadRequest, quote(name), nameRule)
}

// Load reads the blueprint of a name for a run. The error wraps [*Problems] if its files are
// invalid.
func (l Library) Load(name string) (Blueprint, error) {
	e, err := l.Find(name)
	if err != nil {
		return Blueprint{}, err
	}
	if e.Problems.any() {
		return Blueprint{}, fmt.Errorf("blueprint %s cannot be used: %w", name, &e.Problems)
	}
	return e.Blueprint, nil
}

// openDir opens a directory of blueprints. It returns nil if the directory does not exist.
func openDir(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blueprints in %s: %s", dir, withoutPath(err))
	}
	return root, nil
}

// hasBlueprint reports whether a directory has a blueprint of the name, valid or not. A broken link counts as
// a blueprint, so that the problem is reported.
func hasBlueprint(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	if err != nil || strings.HasPrefix(name, ".") || !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	if info, err = root.Stat(name); err != nil {
		return true
	}
	_, err = root.Lstat(filepath.Join(name, AgentFile))
	return info.IsDir() && !errors.Is(err, fs.ErrNotExist)
}

// blueprintNames returns the sorted names of the blueprints in a directory, valid or not.
func blueprintNames(dir string) (names []string, err error) {
	root, err := openDir(dir)
	if root == nil {
		return nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("blueprints in %s: %s", dir, withoutPath(err))
	}
	for _, e := range entries {
		if !hasBlueprint(root, e.Name()) {
			continue
		}
		names = append(names, e.Name())
		if len(names) > MaxBlueprints {
			return nil, fmt.Errorf("blueprints in %s: there are more than %d directories", dir, MaxBlueprints)
		}
	}
	return names, nil
}

// readEntry reads a blueprint of a directory. It does not follow links out of the directory.
func readEntry(dir, name string) (Entry, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Name: name, Dir: filepath.Join(dir, name)}
	library, err := os.OpenRoot(dir)
	if err != nil {
		return e, fmt.Errorf("blueprints in %s: %s", dir, withoutPath(err))
	}
	defer library.Close()
	root, err := library.OpenRoot(name)
	if err != nil {
		text := withoutPath(err)
		if info, statErr := library.Lstat(name); statErr == nil && info.Mode()&fs.ModeSymlink != 0 {
			text = "is a broken link, or a link out of its directory: put the target's directory on the search path"
		}
		e.Problems.add(Problem{Text: text})
		return e, nil
	}
	defer root.Close()
	e.Blueprint, e.Problems = read(root, e.Dir)
	if !run.ValidName(name) {
		e.Problems.add(Problem{Text: "the directory's name is not a valid blueprint name: " + nameRule})
	}
	return e, nil
}

// ErrExists means that a new blueprint would overwrite something.
var ErrExists = errors.New("a file or directory of that name exists already")

// New writes a new blueprint, which can be run unchanged, into a directory of a library, and
// returns its directory. It writes all or nothing, and never overwrites. strategy is for
// programs; "" is stdin_json.
func New(library, name string, blueprintType run.BlueprintType, strategy run.Strategy) (string, error) {
	if !run.ValidName(name) {
		return "", invalidName(name)
	}
	files, err := starterFiles(name, blueprintType, strategy)
	if err != nil {
		return "", err
	}
	library, err = filepath.Abs(library)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(library, 0o755); err != nil {
		return "", err
	}
	dir := filepath.Join(library, name)
	if _, err := os.Lstat(dir); err == nil {
		return "", fmt.Errorf("%s: %w", dir, ErrExists)
	}
	tmp, err := os.MkdirTemp(library, ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp) // does nothing after the rename
	for file, text := range files {
		mode := fs.FileMode(0o644)
		if file == CommandFile {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(tmp, file), []byte(text), mode); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	return dir, os.Rename(tmp, dir)
}

// starterAgent is the agent.json of a new blueprint.
type starterAgent struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Type        run.BlueprintType `json:"type"`
	Tags        []string          `json:"tags"`
	Strategy    run.Strategy      `json:"parameter_strategy,omitempty"`
	Timeout     int               `json:"timeout_seconds,omitempty"`
}

// starter holds one example program per parameter strategy. Each program prints the parameters that it
// receives.
//
//go:embed starter
var starter embed.FS

//go:embed starter/agent.parameters.json
var starterSchema string

// starterFiles returns the files of a new blueprint.
func starterFiles(name string, blueprintType run.BlueprintType, strategy run.Strategy) (map[string]string,
	error) {
	agent := starterAgent{Name: name, Type: blueprintType, Tags: []string{}}
	files := map[string]string{}
	switch blueprintType {
	case run.Agent:
		if strategy != "" {
			return nil, fmt.Errorf("%w: a parameter strategy is for programs", run.ErrBadRequest)
		}
		agent.Description = "Answers in one sentence."
		files[PromptFile] = "Answer in one sentence. Say what you do not know.\n"
	case run.Deterministic:
		agent.Description = "Returns its parameters."
		agent.Strategy = cmp.Or(strategy, run.StdinJSON)
		agent.Timeout = 60
		script, err := starter.ReadFile("starter/" + string(agent.Strategy) + ".sh")
		if err != nil {
			return nil, fmt.Errorf("%w: strategy %s must be one of %v", run.ErrBadRequest,
				quote(string(strategy)), run.Strategies())
		}
		files[CommandFile] = string(script)
		files[ParamsFile] = starterSchema
	default:
		return nil, fmt.Errorf("%w: type %s must be agent or deterministic", run.ErrBadRequest,
			quote(string(blueprintType)))
	}
	main, err := json.MarshalIndent(agent, "", "  ")
	files[AgentFile] = string(main) + "\n"
	return files, err
}
