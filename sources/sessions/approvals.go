package sessions

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/runs"
)

// maxApprovals bounds the listed tool calls that wait for the user; the others are counted.
const maxApprovals = 100

// Approval is a tool call that waits for the user. Texts are untrusted.
type Approval struct {
	ID    string              `json:"session_id"`
	Name  string              `json:"session_name,omitempty"`
	Agent string              `json:"agent"`
	Dir   string              `json:"work_dir"`
	Host  string              `json:"host,omitempty"`
	Call  session.ToolRequest `json:"call"`
}

// Approvals holds what waits for the user: tool calls, those of the newest session first, and runs.
type Approvals struct {
	Rows []Approval
	More int // calls that are not in Rows
	// Runs are runs that wait for the review of their operations and runs of flows with a step that waits,
	// the newest first.
	Runs []runs.Run
}

// Count returns the number of waiting calls and runs.
func (a *Approvals) Count() int {
	if a == nil {
		return 0
	}
	return len(a.Rows) + a.More + len(a.Runs)
}

// ApprovalsOf returns the waiting calls of a session.
func ApprovalsOf(s *session.State) (list []Approval) {
	if s == nil {
		return nil
	}
	host := ""
	if s.Host != nil {
		host = s.Host.Name
	}
	for _, r := range s.Pending {
		list = append(list, Approval{ID: s.Input.SessionID, Name: s.Input.Name, Agent: s.Input.Agent,
			Dir: s.Input.WorkingDir, Host: host, Call: r})
	}
	return list
}

// waitingQuery lists the sessions with waiting calls.
var waitingQuery = Query + ` AND ExecutionStatus = "Running" AND ` + ace.AttrPhase + " = " +
	strconv.Quote(string(session.Waiting))

// waitingRuns lists the runs that wait for a user, without sessions.
var waitingRuns = runs.WaitingQuery + " AND WorkflowType != " + strconv.Quote(session.Workflow)

// risks are patterns of commands that may be hard to undo. They help a user to decide but are no guard: other
// commands may have the same effect.
var risks = []struct {
	pattern *regexp.Regexp
	risk    string
}{
	{regexp.MustCompile(`\b(sudo|doas|su|pkexec|runas)\b`), "runs as another user"},
	{regexp.MustCompile(`\b(rm|rmdir|unlink|shred|truncate)\b|\bfind\b.*-delete\b|\bdel\b|Remove-Item`),
		"deletes files"},
	{regexp.MustCompile(`\b(mkfs\S*|fdisk|wipefs|parted)\b|\bdd\b.*\bof=`), "overwrites disks"},
	{regexp.MustCompile(`\b(curl|wget|fetch)\b[^|]*\|\s*\S*(sh|python\d?|perl|node)\b`),
		"runs what it downloads"},
	{regexp.MustCompile(`\bbase64\b.*\|\s*\S*sh\b|\beval\b`), "runs a command that is hidden here"},
	{regexp.MustCompile(`\bgit\b.*\b(push\b.*(-f\b|--force)|reset\b.*--hard|clean\b|checkout\s+--|restore\b|branch\b.*-D\b)`), "discards work in git"},
	{regexp.MustCompile(`\bgit\b.*\bpush\b|\b(npm|cargo|twine|gh|docker)\b.*\b(publish|push|upload|release)\b`), "publishes something"},
	{regexp.MustCompile(`\b(chmod|chown|chgrp|setfacl)\b`), "changes file permissions"},
	{regexp.MustCompile(`\b(kill|pkill|killall|shutdown|reboot|halt|systemctl|launchctl)\b`),
		"ends processes or services"},
	{regexp.MustCompile(`(?i)\b(drop\s+(table|database|schema)|delete\s+from|truncate\s+table)\b`),
		"deletes data"},
	{regexp.MustCompile(`\.ssh\b|\.aws\b|\.netrc\b|\bid_(rsa|ed25519)\b|\.env\b|\bcredentials?\b|/etc/shadow`), "may access secrets"},
	{regexp.MustCompile(`\b(ssh|scp|rsync|sftp|nc|ncat|telnet)\b`), "connects to another machine"},
	{regexp.MustCompile(`\bcrontab\b|\bat\b\s|authorized_keys|\.(bash|zsh)rc\b|\.profile\b`),
		"changes programs that run later"},
}

// redirect matches output to a path outside the directory.
var redirect = regexp.MustCompile(`>>?\s*(/|~|\.\./)(\S*)`)

// CallRisk describes the irreversible effects that a tool call may have, such as "deletes files", or returns
// "". dir is the session's working directory.
func CallRisk(call session.ToolRequest, dir string) string {
	var args map[string]any
	_ = json.Unmarshal(call.Args, &args)
	var found []string
	note := func(risk string) {
		if !slices.Contains(found, risk) {
			found = append(found, risk)
		}
	}
	for _, key := range []string{"command", "cmd", "script", "code", "sql", "query"} {
		command := joined(args[key])
		for _, r := range risks {
			if r.pattern.MatchString(command) {
				note(r.risk)
			}
		}
		for _, m := range redirect.FindAllStringSubmatch(command, -1) {
			if m[1] != "/" || !strings.HasPrefix(m[2], "dev/null") {
				note("writes outside its directory")
			}
		}
	}
	if writes(call.Name) {
		for _, key := range []string{"file_path", "path", "notebook_path", "absolute_path", "filePath"} {
			if path, ok := args[key].(string); ok && outside(path, dir) {
				note("writes outside its directory")
			}
		}
	}
	if call.ArgsRef != nil {
		note("has more arguments than are shown")
	}
	return strings.Join(found, ", ")
}

// joined returns a text, or the texts of a list joined by spaces.
func joined(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var parts []string
		for _, w := range v {
			if s, ok := w.(string); ok {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, " ")
	}
	return ""
}

func writes(tool string) bool {
	verbs := []string{"write", "edit", "replace", "patch", "create", "move", "delete"}
	return slices.ContainsFunc(verbs, func(v string) bool {
		return strings.Contains(strings.ToLower(tool), v)
	})
}

// outside reports whether a path is outside a directory. It does not follow links.
func outside(path, dir string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	rel, err := filepath.Rel(dir, path)
	return err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
