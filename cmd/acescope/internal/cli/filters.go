package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"acescope/cmd/acescope/conffile"
	"acescope/sources/runs"
)

// FilterFile is the file of the filters that the console saves: filters.toml next to the configuration file.
// It implements the FilterSaver of the console.
type FilterFile struct{}

type savedFilters struct {
	Filter []runs.SavedFilter `toml:"filter"`
}

// savingFilters serializes SaveFilter within this process.
var savingFilters sync.Mutex

func (FilterFile) path() (string, error) {
	dir, err := ConfigDir()
	return filepath.Join(dir, "filters.toml"), err
}

// Load reads the saved filters; a missing file is empty. An error names the line, and no filter is loaded.
func (f FilterFile) Load() ([]runs.SavedFilter, error) {
	path, err := f.path()
	if err != nil {
		return nil, err
	}
	data, err := conffile.ReadFile(path, conffile.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("saved filters: %w", err)
	}
	var file savedFilters
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, errors.New(conffile.Mistake(path, err))
	}
	return file.Filter, nil
}

// SaveFilter saves a query under a name. It does not overwrite a file that it cannot read.
func (f FilterFile) SaveFilter(_ context.Context, name, query string) error {
	savingFilters.Lock()
	defer savingFilters.Unlock()
	list, err := f.Load()
	if err != nil {
		return fmt.Errorf("filter not saved, to keep the file: %w", err)
	}
	i := slices.IndexFunc(list, func(o runs.SavedFilter) bool { return o.Name == name })
	if i < 0 {
		list = append(list, runs.SavedFilter{Name: name, Query: query})
	} else {
		list[i].Query = query
	}
	data, err := toml.Marshal(savedFilters{list})
	if err != nil {
		return fmt.Errorf("saved filters: %w", err)
	}
	path, err := f.path()
	if err != nil {
		return err
	}
	if err := ReplaceFile(path, data); err != nil {
		return fmt.Errorf("saved filters: %w", err)
	}
	return nil
}

// Filters returns the shipped filters, those of the configuration, then the saved ones. A filter replaces an
// earlier one of the same name. An error is about the saved filters; those of the configuration are returned
// nevertheless.
func (a *App) Filters() ([]runs.SavedFilter, error) {
	saved, err := FilterFile{}.Load()
	var out []runs.SavedFilter
	for _, f := range slices.Concat(runs.ShippedFilters(), a.Settings.File.Filters, saved) {
		i := slices.IndexFunc(out, func(o runs.SavedFilter) bool { return o.Name == f.Name })
		if i < 0 {
			out = append(out, f)
			continue
		}
		f.Default = f.Default || out[i].Default
		out[i] = f
	}
	return out, err
}

// FilterNamed returns a filter with its words translated to a query.
func (a *App) FilterNamed(name string) (runs.SavedFilter, error) {
	filters, err := a.Filters()
	if err != nil {
		return runs.SavedFilter{}, UsageError("%w", err)
	}
	var known []string
	for _, f := range filters {
		if f.Name == name {
			if f.Query, err = runs.Filter(f.Query); err != nil {
				return f, UsageError("--filter %s: %w", name, err)
			}
			return f, nil
		}
		known = append(known, f.Name)
	}
	return runs.SavedFilter{}, UsageError(
		"--filter %s: unknown filter; filters: %s; ctrl+s in the console saves another",
		name, strings.Join(known, ", "))
}

// FilterHelp describes the language of [runs.Filter] in the help of a flag.
const FilterHelp = "words such as \"wrong today\", \"mine\", \"experiment=finance\", \"cost>0.5\" and " +
	"\"agent=triage\", text to search for, or a visibility query"

// FilterOf returns the query of the flag --query.
func FilterOf(typed string) (string, error) {
	query, err := runs.Filter(typed)
	if err != nil {
		return "", UsageError("--query: %w", err)
	}
	return query, nil
}
