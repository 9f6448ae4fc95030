// Package transcript reads the transcripts that Claude Code writes of its sessions: JSON
// lines below projects/ in its configuration directory. [Fold] makes a [Summary] of a
// transcript, [Events] returns its conversation, [ReadTurn] finds a turn, and [LineSet] compares it
// with its forks. The package imports engine/ace, engine/agents/agentcli and engine/agents/price,
// starts no process and writes no file.
//
// Order: lines count in the order of the file, whatever their timestamps are. Bounds: a line
// over [MaxLine] is skipped and counted; a fold remembers a limited number of IDs, names and
// open calls, so its memory does not grow with the file. Loss: invalid JSON, unknown types and
// malformed messages are counted and affect nothing else. Texts are untrusted and not
// sanitized.
package transcript

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Ext is the file name extension of transcripts.
const Ext = ".jsonl"

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

// maxSlug is the longest directory name of a project that Claude Code does not shorten.
const maxSlug = 200

// Path returns the path of a session's transcript, given the real path of its working
// directory. ok is false if the path is so long that Claude Code shortens it.
func Path(configDir, workingDir, session string) (path string, ok bool) {
	slug := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, workingDir)
	return filepath.Join(configDir, "projects", slug, session+Ext), len(slug) <= maxSlug
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
	if dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".claude")
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
