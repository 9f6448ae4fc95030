// Package copies keeps copies of agents' transcripts in the shared store, so that every machine can show the
// sessions of the others, also after their machine is gone.
//
// A copy is transcripts/<workflow>/<agent>/<file>/<machine>-<offset>-<bytes> in the store: lines without
// secrets. Transcripts that are not files of JSON lines are not copied. Order: lines are copied in the order
// of the file. Bounds: [MaxBytes] of a transcript, and [maxHere] of the files that
// [Mirror] keeps on a machine. Loss: what the agent wrote after the last [Copier.Copy] is on its machine
// only.
package copies

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/transcript"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
)

// Prefix is the first part of the keys of copies.
const Prefix = "transcripts"

const (
	// MaxBytes is how much of the beginning of a transcript is copied.
	MaxBytes = 64 << 20
	maxHere  = 1 << 30 // bytes of the copies on a machine
	piece    = 1 << 20 // bytes that are copied at once, or one line
)

// Copier copies transcripts on this machine to the shared store.
type Copier struct {
	logs *artifact.Logs

	mu    sync.Mutex         // held while a session is copied
	files map[string]*source // by path
}

// source is a transcript that is copied.
type source struct {
	rel    string
	reader *transcript.Reader
	at     int64  // bytes of the copy that were read or skipped
	sent   int64  // bytes of the copy in the store
	lines  []byte // to be sent
}

// New returns a copier, or nil if the logs are not shared.
func New(logs *artifact.Logs) *Copier {
	if !logs.Shares() {
		return nil
	}
	return &Copier{logs: logs, files: map[string]*source{}}
}

// Copy copies the new lines in the transcripts of an agent's session and of its subagents. environ is the
// environment of the agent. Copy may be called on nil.
func (c *Copier) Copy(
	ctx context.Context, workflowID string, agent agentcli.CLI, environ []string, sessionID string,
) error {
	format := transcript.Of(agent)
	if c == nil || format == nil || !agentcli.ValidSessionID(sessionID) {
		return nil
	}
	root := format.Root(func(name string) (value string) {
		for _, v := range environ {
			if n, of, _ := strings.Cut(v, "="); n == name {
				value = of
			}
		}
		return value
	})
	if root == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	entries, err := find(ctx, format, root, sessionID)
	if err != nil {
		return err
	}
	dir := path.Join(Prefix, ace.FileName(workflowID), string(agent))
	for _, e := range entries {
		name, ok := nameOf(format, root, e)
		if !ok {
			continue
		}
		if err := c.copyFile(ctx, e.Path, path.Join(dir, name)); err != nil {
			delete(c.files, e.Path) // the next call asks the store again how much it has
			return err
		}
	}
	return nil
}

func find(ctx context.Context, format transcript.Format, root, sessionID string) (found []transcript.Entry,
	err error) {
	if format.Agent() == agentcli.Claude { // avoids listing all sessions
		path, err := transcript.Find(root, sessionID)
		if err != nil || path == "" {
			return nil, err
		}
		return format.Stat(ctx, path)
	}
	entries, err := format.List(ctx, root)
	for _, e := range entries {
		if e.Session == sessionID {
			found = append(found, e)
		}
	}
	return found, err
}

// nameOf returns the path of a copy below the directory of its agent, with slashes. ok is false for
// transcripts that are not copied.
func nameOf(format transcript.Format, root string, e transcript.Entry) (name string, ok bool) {
	name = filepath.Base(e.Path)
	if rel, err := filepath.Rel(e.Project, e.Path); err == nil && filepath.IsLocal(rel) {
		name = filepath.ToSlash(rel) // for a subagent, it begins with the session
	}
	for part := range strings.SplitSeq(name, "/") {
		if ace.FileName(part) != part {
			return "", false
		}
	}
	return name, strings.HasSuffix(name, transcript.Ext) &&
		format.Owns(filepath.Join(format.Dir(root), "x", name))
}

func (c *Copier) copyFile(ctx context.Context, path, rel string) error {
	s := c.files[path]
	if s == nil {
		sent, err := c.logs.SharedSize(ctx, rel)
		if err != nil {
			return err
		}
		s = &source{rel: rel, reader: transcript.NewReader(path), sent: sent}
		c.files[path] = s
	}
	restart := func() { s.at, s.lines = 0, nil }
	for s.sent < MaxBytes {
		p, err := s.reader.Read(ctx, piece, restart, s.add)
		if err != nil {
			return err
		}
		if len(s.lines) > 0 {
			if err := c.logs.Append(ctx, s.rel, s.sent, s.lines); err != nil {
				return err
			}
			s.sent += int64(len(s.lines))
			s.lines = s.lines[:0]
		}
		if !p.More {
			return nil
		}
	}
	return nil
}

// add adds a line to those that are sent, unless the store has it.
func (s *source) add(raw []byte, _ int64) {
	line := transcript.Redacted(raw)
	before := s.at
	if s.at += int64(len(line)) + 1; before >= s.sent {
		s.lines = append(append(s.lines, line...), '\n')
	}
}

// dir returns the directory of the copies on this machine.
func dir(dataDir string) string { return filepath.Join(dataDir, "shared", Prefix) }

// Root is a directory with copies, in the layout of an agent's own transcripts.
type Root struct {
	Format transcript.Format
	Dir    string
}

// Roots returns the directories of the copies on this machine, which may not exist.
func Roots(dataDir string) (roots []Root) {
	for _, f := range transcript.Formats {
		roots = append(roots, Root{f, filepath.Join(dir(dataDir), string(f.Agent()))})
	}
	return roots
}

// machineMark is between the machine and the workflow in the name of a directory with copies.
const machineMark = "%~"

// Mirror updates this machine's copies of the transcripts that other machines have put into the shared store.
func Mirror(ctx context.Context, logs *artifact.Logs, dataDir string) error {
	place := func(rel, machine string) (file string) {
		parts := strings.SplitN(rel, "/", 4) // transcripts, workflow, agent, name
		if len(parts) < 4 {
			return ""
		}
		format := transcript.Of(agentcli.CLI(parts[2]))
		if format == nil || !filepath.IsLocal(filepath.FromSlash(rel)) {
			return ""
		}
		below := format.Dir(filepath.Join(dir(dataDir), parts[2]))
		file = filepath.Join(below, machine+machineMark+parts[1], filepath.FromSlash(parts[3]))
		if !format.Owns(file) {
			return ""
		}
		return file
	}
	if err := logs.MirrorTo(ctx, Prefix+"/", place); err != nil {
		return err
	}
	if _, err := os.Stat(dir(dataDir)); err == nil {
		bucket.NewCache(dir(dataDir), maxHere)
	}
	return nil
}

// MachineOf returns the machine whose transcript a file is a copy of, or "".
func MachineOf(file string) string {
	for part := range strings.SplitSeq(filepath.ToSlash(file), "/") {
		if machine, _, ok := strings.Cut(part, machineMark); ok {
			return machine
		}
	}
	return ""
}
