package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"acescope/views/console"
)

// FilterFile is where the console keeps saved filters: filters.toml beside the
// configuration file, an array of tables named filter. It implements
// [views.FilterSaver].
type FilterFile struct{}

type tomlFilters struct {
	Filter []tomlFilter `toml:"filter"`
}

type tomlFilter struct {
	Name    string `toml:"name"`
	Query   string `toml:"query"`
	Default bool   `toml:"default,omitempty"`
}

// savingFilters holds that no two savings of this process mix.
var savingFilters sync.Mutex

func (FilterFile) path() (string, error) {
	base := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("saved filters: no home directory: %w", err)
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "acescope", "filters.toml"), nil
}

// Load reads the saved filters. A file that is not there holds none; a mistake in it is
// named by its line, and nothing of it is taken.
func (f FilterFile) Load() ([]console.SavedFilter, error) {
	list, err := f.read()
	if err != nil {
		return nil, err
	}
	var out []console.SavedFilter
	for _, t := range list.Filter {
		out = append(out, console.SavedFilter{Name: t.Name, Query: t.Query, Default: t.Default})
	}
	return out, nil
}

func (f FilterFile) read() (list tomlFilters, err error) {
	path, err := f.path()
	if err != nil {
		return list, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return list, fmt.Errorf("saved filters: %w", err)
	}
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return tomlFilters{}, fmt.Errorf("%s%s", path, tomlMistake(err))
	}
	return list, nil
}

// tomlMistake is where a file is wrong, and how.
func tomlMistake(err error) string {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		row, _ := strict.Errors[0].Position()
		return fmt.Sprintf(":%d: unknown key %q", row, strings.Join(strict.Errors[0].Key(), "."))
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, column := decode.Position()
		return fmt.Sprintf(":%d:%d: %s", row, column, decode.Error())
	}
	return ": " + err.Error()
}

// SaveFilter keeps a query under a name. The file is replaced as a whole, so that a
// reader finds either the old or the new one.
func (f FilterFile) SaveFilter(_ context.Context, name, query string) error {
	savingFilters.Lock()
	defer savingFilters.Unlock()
	list, err := f.read()
	if err != nil {
		return fmt.Errorf("not saved, so that nothing is lost: %w", err)
	}
	found := false
	for i := range list.Filter {
		if list.Filter[i].Name == name {
			list.Filter[i].Query, found = query, true
		}
	}
	if !found {
		list.Filter = append(list.Filter, tomlFilter{Name: name, Query: query})
	}
	data, err := toml.Marshal(list)
	if err != nil {
		return fmt.Errorf("saved filters: %w", err)
	}
	path, err := f.path()
	if err != nil {
		return err
	}
	return replaceFilters(path, data)
}

// replaceFilters writes a file under another name, syncs and renames it.
func replaceFilters(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("saved filters: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".filters-*")
	if err != nil {
		return fmt.Errorf("saved filters: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("saved filters: %w", err)
	}
	return nil
}

// MergeFilters puts saved filters behind those of the configuration; one that has the name
// of another takes its place.
func MergeFilters(config, saved []console.SavedFilter) []console.SavedFilter {
	out := append([]console.SavedFilter{}, config...)
	for _, f := range saved {
		at := slices.IndexFunc(out, func(o console.SavedFilter) bool { return o.Name == f.Name })
		if at < 0 {
			out = append(out, f)
			continue
		}
		f.Default = f.Default || out[at].Default
		out[at] = f
	}
	return out
}

// FilterNamed is the query of a saved filter.
func (a *App) FilterNamed(name string) (string, error) {
	saved, err := FilterFile{}.Load()
	if err != nil {
		return "", UsageError("%v", err)
	}
	var config []console.SavedFilter
	for _, f := range a.Settings.File.Filters {
		config = append(config, console.SavedFilter(f))
	}
	var known []string
	for _, f := range MergeFilters(config, saved) {
		if f.Name == name {
			return console.Filter(f.Query), nil
		}
		known = append(known, f.Name)
	}
	if len(known) == 0 {
		return "", UsageError("--filter %s: no filter is saved; the console saves one with ctrl+s", name)
	}
	return "", UsageError("--filter %s: there are %s", name, strings.Join(known, ", "))
}
