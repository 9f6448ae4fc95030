// Package transcript reads the transcripts that coding agents write of their sessions. A [Format] finds the
// transcripts of one agent and interprets their lines: a [Folder] makes a [Summary] of the lines, and
// Format.Events returns their conversation. For Claude Code, [ReadTurn] also finds a turn, and [LineSet]
// compares a transcript with its forks. The package starts no process and writes no file.
//
// Order: lines count in the order of the file, whatever their timestamps are. Bounds: a line over [MaxLine]
// is skipped and counted; a fold remembers a limited number of IDs, names and open calls, so its memory does
// not grow with the file. Loss: invalid JSON, unknown types and malformed messages are counted and affect
// nothing else. Texts are untrusted and not sanitized.
package transcript

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
)

// Format is the way in which an agent keeps its transcripts.
type Format interface {
	Agent() agentcli.CLI
	// Root returns the directory of the agent's data in an environment, "" if it is unknown.
	Root(getenv func(string) string) string
	// Dir returns where the transcripts below a root are, to be shown to a user.
	Dir(root string) string
	// List returns the transcripts below a root. With an error, it returns those that it could list.
	List(ctx context.Context, root string) ([]Entry, error)
	// Owns reports whether a path has the form of the format's transcripts.
	Owns(path string) bool
	// Stat returns the transcript with a path, and those of its subagents that are found by its path.
	Stat(ctx context.Context, path string) ([]Entry, error)
	Open(path string) LineReader
	Fold(prices *price.Prices) Folder
	// Events returns a function that converts the lines of one transcript, in their order, to the events of
	// its conversation, at least one for each line.
	Events() func(raw []byte) []agentcli.Event
}

// Formats are all formats. The last one, of Claude Code, owns all .jsonl files that no other format owns.
var Formats = []Format{codex{}, opencode{}, gemini{}, claude{}}

// Of returns the format of an agent, or nil.
func Of(agent agentcli.CLI) Format {
	for _, f := range Formats {
		if f.Agent() == agent {
			return f
		}
	}
	return nil
}

// FormatOf returns the format of a transcript by its path, or nil if no format has such paths.
func FormatOf(path string) Format {
	if i := slices.IndexFunc(Formats, func(f Format) bool { return f.Owns(path) }); i >= 0 {
		return Formats[i]
	}
	return nil
}

// Entry is a transcript in a list. Size and ModTime change when the transcript does.
type Entry struct {
	Path    string    `json:"path"` // of a file, or of a session in a database
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mod_time"`
	Session string    `json:"session,omitempty"` // "" if only the lines contain it
	Agent   string    `json:"agent,omitempty"`   // the subagent, "" for a session's own transcript
	// Project names a group of sessions: session IDs are unique in it. WorkDir is "" if only the lines
	// contain it.
	Project string `json:"project"`
	WorkDir string `json:"work_dir,omitempty"`
}

// LineReader reads a growing transcript; see [Reader.Read].
type LineReader interface {
	Read(ctx context.Context, budget int64, restart func(), fn func(raw []byte, at int64)) (Progress, error)
	// SkipTo makes a new reader start with the first line that begins after offset, if it can.
	SkipTo(offset int64)
}

// Folder makes a summary of lines, one after the other. It is not safe for concurrent use.
type Folder interface {
	// Add adds the next line. It does not keep raw.
	Add(raw []byte)
	// Oversize counts n lines that were too long to read.
	Oversize(n int)
	// Summary returns the summary of the lines so far, without secrets.
	Summary() Summary
}

// jsonExt is the file name extension of transcripts that are not JSON lines.
const jsonExt = ".json"

// inHome returns a path in the home directory, or "" if that is unknown.
func inHome(path string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, path)
}

// lister lists files and keeps the last error.
type lister struct {
	entries []Entry
	err     error
}

// read returns the entries of a directory, none if it does not exist.
func (l *lister) read(dir string) []fs.DirEntry {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		l.err = err
	}
	return entries
}

// dirs returns the paths of the directories in a directory, also of links to directories.
func (l *lister) dirs(dir string) (paths []string) {
	for _, e := range l.read(dir) {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			paths = append(paths, path)
		}
	}
	return paths
}

// walk calls fn with the files below a directory, which need not exist.
func (l *lister) walk(ctx context.Context, dir string, fn func(path string, e fs.DirEntry)) {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			if !os.IsNotExist(err) {
				l.err = err
			}
			return nil
		}
		if !e.IsDir() {
			fn(path, e)
		}
		return ctx.Err()
	})
	if err != nil {
		l.err = err
	}
}

// add adds a file as the entry that its path names, unless it is gone or not a regular file.
func (l *lister) add(path string, entryOf func(path string) (Entry, bool)) {
	if list, err := statFile(path, entryOf); err == nil {
		l.entries = append(l.entries, list...)
	} else if !os.IsNotExist(err) {
		l.err = err
	}
}

// statFile returns a regular file as the entry that its path names, or nothing if it is another file.
func statFile(path string, entryOf func(path string) (Entry, bool)) ([]Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	e, ok := entryOf(path)
	if !ok || !info.Mode().IsRegular() {
		return nil, nil
	}
	e.Path, e.Size, e.ModTime = path, info.Size(), info.ModTime()
	return []Entry{e}, nil
}
