package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.temporal.io/server/common/headers"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// formatVersion is the layout of the data directory that this version reads and
// writes: its files, the namespace and its search attributes.
const formatVersion = 1

// dirFormat is format.json: who wrote the data directory, and in which form.
type dirFormat struct {
	Format     int    `json:"format"`
	Schema     string `json:"schema"`            // of Temporal's SQLite tables
	Visibility string `json:"visibility_schema"` // of its visibility tables
	Temporal   string `json:"temporal"`          // server version that wrote last
	Acescope   string `json:"acescope"`          // acescope version that wrote last
}

func currentFormat(acescope string) dirFormat {
	return dirFormat{
		Format:     formatVersion,
		Schema:     sqliteschema.Version,
		Visibility: sqliteschema.VisibilityVersion,
		Temporal:   headers.ServerVersion,
		Acescope:   acescope,
	}
}

// readFormat reads format.json and refuses a form that this version cannot open. A
// fresh directory gives the zero value. A database without a format.json was made by
// something else.
func readFormat(dir string) (dirFormat, error) {
	var f dirFormat
	data, err := os.ReadFile(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, databaseFile)); err == nil {
			return f, failf(ErrVersion, nil,
				"data directory %s: holds %s but no %s, so acescope did not write it; nothing was changed, choose another with --data-dir",
				dir, databaseFile, formatFile)
		}
		return f, nil
	}
	if err != nil {
		return f, dirError(dir, err)
	}
	if err := json.Unmarshal(data, &f); err != nil || f.Format == 0 {
		return f, failf(ErrVersion, err,
			"data directory %s: %s is not readable, so its version is unknown; nothing was changed, restore the file or choose another directory with --data-dir",
			dir, formatFile)
	}
	return f, f.check(dir)
}

func (f dirFormat) check(dir string) error {
	ours := currentFormat("")
	if f.Format == ours.Format && f.Schema == ours.Schema && f.Visibility == ours.Visibility {
		return nil
	}
	return failf(ErrVersion, nil,
		"data directory %s: written by acescope %s (%s), this version reads %s; nothing was changed, use that version or another --data-dir",
		dir, f.Acescope, f.form(), ours.form())
}

func (f dirFormat) form() string {
	return fmt.Sprintf("format %d, schema %s/%s", f.Format, f.Schema, f.Visibility)
}

// stamp writes format.json before the database is made or opened, so that a
// database never exists without it. An unchanged file is left alone.
func stamp(dir, acescope string) error {
	have, err := readFormat(dir)
	if err != nil {
		return err
	}
	want := currentFormat(acescope)
	if have == want {
		return nil
	}
	data, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(dir, formatFile, append(data, '\n'))
}
