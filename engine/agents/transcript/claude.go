package transcript

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
)

// Ext is the file name extension of Claude Code's transcripts.
const Ext = ".jsonl"

// claude reads Claude Code's transcripts: projects/PROJECT/SESSION.jsonl in its configuration directory, and
// those of subagents beside them.
type claude struct{}

func (claude) Agent() agentcli.CLI { return agentcli.Claude }

func (claude) Root(getenv func(string) string) string {
	return cmp.Or(getenv("CLAUDE_CONFIG_DIR"), inHome(".claude"))
}

func (claude) Dir(root string) string { return filepath.Join(root, "projects") }

func (f claude) Owns(path string) bool { return strings.HasSuffix(path, Ext) }

func (f claude) List(_ context.Context, root string) ([]Entry, error) {
	var l lister
	for _, project := range l.dirs(f.Dir(root)) {
		for _, e := range l.read(project) {
			path := filepath.Join(project, e.Name())
			if strings.HasSuffix(path, Ext) {
				l.add(path, f.entry)
				continue
			}
			for _, path := range AgentPaths(path) {
				l.add(path, f.entry)
			}
		}
	}
	return l.entries, l.err
}

func (f claude) Stat(_ context.Context, path string) ([]Entry, error) {
	list, err := statFile(path, f.entry)
	if len(list) == 0 {
		return nil, err
	}
	l := lister{entries: list}
	for _, agent := range AgentPaths(path) {
		l.add(agent, f.entry)
	}
	return l.entries, nil
}

// entry returns the session and the project that the path of a transcript names. The project is the directory
// with the transcripts of its sessions.
func (claude) entry(path string) (e Entry, ok bool) {
	e.Session, e.Agent, ok = SessionOf(path)
	e.Project = filepath.Dir(path)
	if e.Agent != "" && e.Session != "" {
		e.Project = filepath.Dir(filepath.Dir(e.Project)) // SESSION/subagents
	}
	return e, ok
}

func (claude) Open(path string) LineReader { return NewReader(path) }

func (claude) Fold(prices *price.Prices) Folder { return NewFold(prices) }

func (claude) Events() func(raw []byte) []agentcli.Event { return Events }

// SessionOf returns the session, and the subagent if any, that the path of a transcript names:
// SESSION.jsonl, SESSION/subagents/agent-ID.jsonl, or agent-ID.jsonl next to the sessions as in
// older versions, where session is "". ok is false for other names.
func SessionOf(path string) (session, agent string, ok bool) {
	name, ok := strings.CutSuffix(filepath.Base(path), Ext)
	if !ok || name == "" {
		return "", "", false
	}
	agent, ok = strings.CutPrefix(name, "agent-")
	if !ok {
		return name, "", true
	}
	dir := filepath.Dir(path)
	if filepath.Base(dir) == "subagents" {
		session = filepath.Base(filepath.Dir(dir))
	}
	return session, agent, true
}

// AgentPaths returns the transcripts of the subagents of a session, given the path of its own
// transcript or of its directory.
func AgentPaths(session string) (paths []string) {
	dir := filepath.Join(strings.TrimSuffix(session, Ext), "subagents")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // most sessions have none
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), Ext) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// ConfigDir returns the configuration directory of a Claude Code with this environment, or ""
// if it is unknown.
func ConfigDir(environ []string) string {
	dir := ""
	for _, v := range environ {
		if name, value, _ := strings.Cut(v, "="); name == "CLAUDE_CONFIG_DIR" {
			dir = value
		}
	}
	return cmp.Or(dir, inHome(".claude"))
}

// Find returns the path of a session's transcript, or "" if it does not exist. It searches all
// projects, because session IDs are unique and Claude Code has changed the names of projects
// more than once. The ID must pass [agentcli.ValidSessionID].
func Find(configDir, session string) (string, error) {
	projects := filepath.Join(configDir, "projects")
	dirs, err := os.ReadDir(projects)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, d := range dirs {
		path := filepath.Join(projects, d.Name(), session+Ext)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", nil
}
