// Package library finds flows: by path, by name in the directories of a project and a user, and among those
// that are shipped with acescope. It may import engine/flow.
package library

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/internal/redact"
)

//go:embed shipped
var shipped embed.FS

// ErrNotFound means that no flow has the name.
var ErrNotFound = ace.NotFound{Kind: "flow"}

// ProjectDir is the directory of a project's flows, below its root.
const ProjectDir = ".acescope/flows"

// Shipped is the place of flows that are part of acescope.
const Shipped = "shipped"

// Library finds flows in directories and among the shipped flows. Earlier directories take precedence over
// later ones, and all over the shipped flows.
type Library struct{ Dirs []string }

// Entry is a flow of a library.
type Entry struct {
	Name   string
	Place  string // path of the file, or [Shipped]
	Source flow.Source
	Flow   *flow.Flow // nil if Err is set
	Err    error      // why the file is not a valid flow
}

// Find returns the flow of a name or of a file. A name with a slash or an extension is a path. The error
// wraps [ErrNotFound], or says what is wrong with the flow.
func (l Library) Find(name string) (Entry, error) {
	if strings.ContainsAny(name, `/\`) || isYAML(name) {
		e, err := open(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrNotFound.With(name, "the file does not exist")
		}
		return e, err
	}
	all, err := l.List()
	if err != nil {
		return Entry{}, err
	}
	var names []string
	for _, e := range all {
		if e.Name == name {
			return e, e.Err
		}
		names = append(names, e.Name)
	}
	hint := "flows are " + strings.Join(names, ", ") + "; a file is named with its path, such as ./flow.yaml"
	if similar := ace.Nearest(name, names); similar != "" {
		hint = "did you mean " + similar + "?"
	}
	return Entry{}, ErrNotFound.With(name, hint)
}

// List lists the flows by name. Of several flows with the same name it lists the first.
func (l Library) List() ([]Entry, error) {
	var all []Entry
	add := func(e Entry) {
		if !slices.ContainsFunc(all, func(other Entry) bool { return other.Name == e.Name }) {
			all = append(all, e)
		}
	}
	for _, dir := range l.Dirs {
		files, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, f := range files {
			if isYAML(f.Name()) && !isCases(f.Name()) && !f.IsDir() {
				e, _ := open(filepath.Join(dir, f.Name()))
				add(e)
			}
		}
	}
	root, err := fs.Sub(shipped, Shipped)
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(root, "*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if isCases(name) {
			continue
		}
		add(load(root, name, Shipped))
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

func isCases(name string) bool { return strings.HasSuffix(name, flow.CasesSuffix) }

// Cases returns the path and the text of the test cases beside a flow. The error is [fs.ErrNotExist] if there
// is no file.
func Cases(e Entry) (name, text string, err error) {
	beside := strings.TrimSuffix(e.Source.Main, path.Ext(e.Source.Main)) + flow.CasesSuffix
	var data []byte
	if e.Place == Shipped {
		name = path.Join(Shipped, beside)
		data, err = shipped.ReadFile(name)
	} else {
		name = filepath.Join(filepath.Dir(e.Place), beside)
		data, err = os.ReadFile(name)
	}
	return name, string(data), err
}

// open reads the flow of a file. Included files must be in its directory, also after symbolic links.
func open(name string) (Entry, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return Entry{}, err
	}
	defer root.Close()
	e := load(root.FS(), filepath.Base(name), name)
	return e, e.Err
}

func load(dir fs.FS, main, place string) Entry {
	e := Entry{Name: strings.TrimSuffix(path.Base(main), path.Ext(main)), Place: place}
	if e.Source, e.Err = flow.Load(dir, main); e.Err != nil {
		return e
	}
	if e.Flow, e.Err = flow.Parse(e.Source); e.Err != nil {
		return e
	}
	e.Name = e.Flow.Name
	if p := secrets(e.Source); len(p) > 0 {
		e.Err = p
	}
	return e
}

// secrets finds texts that look like secrets, because each run records its files.
func secrets(src flow.Source) (found flow.Problems) {
	r := redact.New()
	for _, name := range src.Names() {
		text := src.Files[name]
		clean := r.String(text)
		if clean == text {
			continue
		}
		at := 0
		for at < len(clean) && clean[at] == text[at] {
			at++
		}
		line := strings.Count(text[:at], "\n") + 1
		column := at - strings.LastIndexByte(text[:at], '\n')
		found = append(found, flow.Problem{Position: flow.Position{File: name, Line: line, Column: column},
			Message: "the text looks like a secret",
			Hint:    "each run records its files; programs and models get keys from the environment of the worker"})
	}
	return found
}
