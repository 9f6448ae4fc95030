package blueprint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"acescope/engine/run"
)

// Library finds blueprints by their names: in each of its directories, in their order, in the
// directory that is called as the blueprint is. Of two with one name the first counts, also
// where it cannot be used. A directory that does not exist holds none.
type Library struct {
	Dirs []string
}

// Entry is a blueprint of a library, whether it can be used or not.
type Entry struct {
	Blueprint
	// Name is that of its directory.
	Name     string
	Dir      string
	Problems Problems
	// Shadowed is the directory of the blueprint of the same name that counts in its place.
	Shadowed string
}

// Described is the entry in a list.
func (e Entry) Described() run.Described {
	d := run.Described{Name: e.Name, Description: e.Description, Type: e.Type, Tags: append([]string{}, e.Tags...), Demands: e.Demands, Schema: e.Schema, Path: e.Dir}
	switch {
	case len(e.Problems.List) > 0:
		d.Error = e.Problems.Error()
	case e.Shadowed != "":
		d.Error = "the one in " + e.Shadowed + " counts in its place"
	}
	return d
}

// List is what is known of every blueprint, sorted by name; of those with one name the one
// that counts is first.
func (l Library) List(ctx context.Context) ([]run.Described, error) {
	entries, err := l.Entries(ctx)
	if err != nil {
		return nil, err
	}
	out := []run.Described{}
	for _, e := range entries {
		out = append(out, e.Described())
	}
	return out, nil
}

// Entries reads every blueprint, in the order of [Library.List].
func (l Library) Entries(ctx context.Context) ([]Entry, error) {
	var all []Entry
	first := map[string]string{}
	for _, dir := range l.Dirs {
		names, err := namesIn(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e, err := entry(dir, name)
			if err != nil {
				return nil, err
			}
			if e.Shadowed = first[name]; e.Shadowed == "" {
				first[name] = e.Dir
			}
			if e.Shadowed != e.Dir { // a directory may stand on the path twice
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Find reads the blueprint of a name that counts. The error is [run.ErrNoBlueprint] where
// there is none, and [run.ErrBadRequest] for what is no name.
func (l Library) Find(name string) (Entry, error) {
	if !run.ValidName(name) {
		return Entry{}, fmt.Errorf("%w: %s is no blueprint's name: letters, digits, dot, dash and underscore only, beginning with a letter or digit, at most 100", run.ErrBadRequest, quoted(name))
	}
	for _, dir := range l.Dirs {
		there, err := holds(dir, name)
		if err != nil {
			return Entry{}, err
		}
		if there {
			return entry(dir, name)
		}
	}
	return Entry{}, fmt.Errorf("%w: %s%s", run.ErrNoBlueprint, name, l.instead(name))
}

// Load reads the blueprint of a name for a run. Where its files are wrong, the error holds
// [*Problems].
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

// instead says which name may have been meant, and where was looked.
func (l Library) instead(name string) string {
	var known []string
	for _, dir := range l.Dirs {
		names, err := namesIn(dir)
		if err == nil {
			known = append(known, names...)
		}
	}
	if n := nearest(name, known); n != "" {
		return "; is " + n + " meant?"
	}
	if len(l.Dirs) == 0 {
		return "; there is no directory to look in"
	}
	return "; looked in " + strings.Join(l.Dirs, ", ")
}

// namesIn are the names of the directories in a library's directory that hold an agent.json,
// sorted.
func namesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("blueprints in %s: %s", dir, plainly(err))
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if there, err := holds(dir, e.Name()); err != nil || !there {
			continue
		}
		if names = append(names, e.Name()); len(names) > MaxBlueprints {
			return nil, fmt.Errorf("blueprints in %s: there are more than %d directories", dir, MaxBlueprints)
		}
	}
	return names, nil
}

// holds tells whether there is a blueprint of the name in a directory, however broken. A link
// that cannot be followed counts as one, so that what is wrong with it is said.
func holds(dir, name string) (bool, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("blueprints in %s: %s", dir, plainly(err))
	}
	defer root.Close()
	if _, err := root.Lstat(name); err != nil {
		return false, nil
	}
	info, err := root.Stat(name)
	if err != nil {
		return true, nil
	}
	if !info.IsDir() {
		return false, nil
	}
	_, err = root.Lstat(filepath.Join(name, AgentFile))
	return !errors.Is(err, fs.ErrNotExist), nil
}

// entry reads a blueprint of a library's directory. No link leads out of that.
func entry(dir, name string) (Entry, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Name: name, Dir: filepath.Join(dir, name)}
	library, err := os.OpenRoot(dir)
	if err != nil {
		return e, fmt.Errorf("blueprints in %s: %s", dir, plainly(err))
	}
	defer library.Close()
	root, err := library.OpenRoot(name)
	if err != nil {
		text := plainly(err)
		if info, bad := library.Lstat(name); bad == nil && info.Mode()&fs.ModeSymlink != 0 {
			text = "is a link that leads out of its directory, or nowhere: put the directory that it leads to on the search path"
		}
		e.Problems.add(Problem{Text: text})
		return e, nil
	}
	defer root.Close()
	e.Blueprint, e.Problems = read(root, e.Dir)
	if !run.ValidName(name) {
		e.Problems.add(Problem{Text: "the directory's name is no blueprint's name: letters, digits, dot, dash and underscore only, beginning with a letter or digit, at most 100"})
	}
	return e, nil
}
