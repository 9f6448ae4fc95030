// Package transcript reads the transcripts that Claude Code keeps of its sessions: JSON
// lines below projects/ in its configuration directory. [Fold] makes a [Summary] of one,
// [Events] its conversation, [ToolEvents] its tool calls as an observer would have told
// them, [Kin] what it has in common with others. It imports engine/ace and
// engine/agentcli, starts nothing and writes nothing.
//
// Order: lines count in the order of the file, whatever their times say. Bounds: a line
// over [MaxLine] is passed by and counted; a fold remembers so many ids, names and open
// calls as its constants say, so that what it holds does not grow with the file. Loss:
// what is no JSON, of an unknown type, or oddly made is counted and costs nothing else.
// Texts are untrusted and as the file has them.
package transcript

import (
	"path/filepath"
	"strings"
)

// Ext is how the names of transcripts end.
const Ext = ".jsonl"

// agentPrefix begins the names of the transcripts of subagents.
const agentPrefix = "agent-"

// SessionOf is the session that a transcript's name tells, and the subagent where it is
// that of one: SESSION.jsonl, SESSION/subagents/agent-ID.jsonl, and agent-ID.jsonl beside
// the sessions, as older versions have it; session is then "". ok is false for other names.
func SessionOf(path string) (session, agent string, ok bool) {
	name, ok := strings.CutSuffix(filepath.Base(path), Ext)
	if !ok || name == "" {
		return "", "", false
	}
	agent, ok = strings.CutPrefix(name, agentPrefix)
	if !ok {
		return name, "", true
	}
	dir := filepath.Dir(path)
	if filepath.Base(dir) == "subagents" {
		session = filepath.Base(filepath.Dir(dir))
	}
	return session, agent, true
}

// Path is where a session's transcript lies below projects/ of a configuration directory,
// given the real path of its working directory. ok is false for paths so long that Claude
// Code shortens them in a way of its own.
func Path(configDir, workingDir, session string) (path string, ok bool) {
	slug := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, workingDir)
	return filepath.Join(configDir, "projects", slug, session+Ext), len(slug) <= maxSlug
}

// maxSlug is how long a project's directory name may be before it is shortened.
const maxSlug = 200
