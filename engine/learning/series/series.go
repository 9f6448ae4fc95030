// Package series reads playbooks that other programs wrote: the run folders of ace-agent/ace, series of
// snapshots of one playbook, and single files. The result is a [playbook.Series], which a store appends to a
// branch. It writes no file and starts no goroutine.
//
// Bounds: at most [MaxFiles] playbooks and [maxLog] bytes of each log. Loss: Result.Losses counts everything
// that was not read.
package series

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"acescope/engine/learning/playbook"
)

// Bounds of what is read.
const (
	MaxFiles = 10_000
	maxLog   = 256 << 20
)

// ErrInput is the error for input that cannot be imported. Its text says which file is wrong and why.
var ErrInput = errors.New("cannot import")

// Kind is the kind of import that [Read] recognized.
type Kind string

// Kinds of imports.
const (
	RunFolder Kind = "run folder of ace-agent/ace"
	Snapshots Kind = "series of snapshots"
	Single    Kind = "playbook"
)

// File is a playbook file that was read. Version is its place in the branch.
type File struct {
	Name    string          `json:"file"`
	Version int             `json:"version"`
	Hash    string          `json:"hash"`
	Report  playbook.Report `json:"report"`
}

// Result is what was read.
type Result struct {
	playbook.Series
	Kind   Kind
	Order  string // what the order of the snapshots follows
	Files  []File
	Losses []playbook.Loss // besides those of the files
}

func (r *Result) lose(field string, count int, reason string) {
	if count > 0 {
		r.Losses = append(r.Losses, playbook.Loss{Field: field, Count: count, Reason: reason})
	}
}

// Read reads a run folder, a directory of snapshots, the snapshots in several files, or a single playbook.
// The branch is named after them.
func Read(paths []string, order Order) (*Result, error) {
	if len(paths) != 1 {
		return readFiles(paths, order, commonName(paths))
	}
	path := filepath.Clean(paths[0])
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return readFiles(paths, order, commonName(paths))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if isRunFolder(path) {
		return readRun(path, filepath.Base(abs))
	}
	return readDirectory(path, order, filepath.Base(abs))
}

// readDirectory reads the snapshots in a directory: its files with the extension of a playbook.
func readDirectory(dir string, order Order, name string) (*Result, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	other := 0
	for _, e := range entries {
		extension := strings.ToLower(filepath.Ext(e.Name()))
		if slices.Contains([]string{".txt", ".json", ".md"}, extension) && !e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		} else {
			other++
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf(
			"%w %s: it is neither a run folder, which has a run_config.json, nor a directory with "+
				".txt, .json or .md files", ErrInput, dir)
	}
	r, err := readFiles(paths, order, name)
	if err == nil {
		r.lose(name, other, "other files and directories of the directory")
	}
	return r, err
}

// snapshotFile is a playbook file that was parsed.
type snapshotFile struct {
	path   string
	name   string
	at     time.Time
	book   *playbook.Playbook
	report playbook.Report
}

func readSnapshot(path string) (f snapshotFile, err error) {
	f = snapshotFile{path: path, name: filepath.Base(path)}
	file, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f, err
	}
	if !info.Mode().IsRegular() {
		return f, fmt.Errorf("%w %s: it is not a file", ErrInput, path)
	}
	f.at = info.ModTime().UTC().Truncate(time.Second)
	f.book, f.report, err = playbook.ParseSnapshot(file)
	if errors.Is(err, playbook.ErrNotPlaybook) {
		err = fmt.Errorf("%w %s: %w", ErrInput, path, err)
	}
	return f, err
}

func readFiles(paths []string, order Order, name string) (*Result, error) {
	if len(paths) > MaxFiles {
		return nil, fmt.Errorf("%w: %d files, at most %d are allowed", ErrInput, len(paths), MaxFiles)
	}
	files := make([]snapshotFile, 0, len(paths))
	for _, path := range paths {
		f, err := readSnapshot(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	r := &Result{Kind: Single}
	if len(files) > 1 {
		r.Kind = Snapshots
		var err error
		if r.Order, err = sortFiles(files, order); err != nil {
			return nil, err
		}
	}
	first := files[0]
	r.Series = playbook.Series{
		Branch: name, Origin: playbook.Origin{Kind: string(r.Kind), Name: name, File: first.name},
		Start: first.book, At: first.at,
	}
	for i, f := range files {
		r.add(f, i)
		if i > 0 {
			r.Steps = append(r.Steps, playbook.Snapshot{Imported: playbook.Imported{File: f.name},
				Book: f.book, At: f.at,
				TaskID: stem(f.name), Rationale: "snapshot " + f.name})
		}
	}
	return r, nil
}

// add records the version that a file became.
func (r *Result) add(f snapshotFile, version int) {
	r.Files = append(r.Files, File{f.name, version, f.book.Hash(), f.report})
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// commonName returns the name of a branch for files: their common prefix without a number, or the name of one
// file.
func commonName(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	prefix := stem(filepath.Base(paths[0]))
	if len(paths) == 1 {
		return prefix
	}
	for _, path := range paths[1:] {
		name := stem(filepath.Base(path))
		n := 0
		for n < len(prefix) && n < len(name) && prefix[n] == name[n] {
			n++
		}
		prefix = strings.ToValidUTF8(prefix[:n], "")
	}
	prefix = strings.TrimRight(prefix, "0123456789_-. ")
	for _, word := range []string{"step", "epoch", "window", "snapshot", "version"} {
		prefix = strings.TrimRight(strings.TrimSuffix(prefix, word), "_-. ")
	}
	return cmp.Or(prefix, "imported")
}

// readLog reads a file within bounds; nil without the file.
func readLog(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLog+1))
	if err == nil && len(data) > maxLog {
		err = fmt.Errorf("%w %s: more than %d MiB", ErrInput, path, maxLog>>20)
	}
	return data, err
}
