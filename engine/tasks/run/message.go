package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/runner"
)

// Message returns the run's message to the agent.
func (s *State) Message() session.Message {
	in := s.Input
	return session.Message{ID: in.RunID, Text: in.Prompt, Ref: in.PromptRef,
		From: cmp.Or(in.By, "run "+in.RunID), ReplyTo: WorkflowID(in.RunID)}
}

// Session returns the input of the agent session that the run starts on its runner's machine.
func (s *State) Session() session.Input {
	in := s.Input
	capabilities := s.Claim.Capabilities
	first := s.Message()
	out := session.Input{SessionID: in.SessionID, Name: in.AgentName,
		Agent:      runner.Agent(in.Requirements.ExecutorType),
		WorkingDir: cmp.Or(in.ProjectDir, capabilities.ProjectDir), First: &first, Revision: session.Revision}
	if s.Claim.SessionQueue != "" {
		out.Host = &session.Host{Name: capabilities.Hostname, Queue: s.Claim.SessionQueue}
	}
	if b := in.Blueprint; b != nil {
		out.Model = b.Model
		out.SystemPrompt = b.SystemPrompt
		out.PermissionMode = b.PermissionMode
		out.AllowedTools = b.AllowedTools
		out.MCPServers = b.MCPServers
	}
	return out
}

// EnqueueNotices returns the notices with which the run asks for a runner: the release of the
// previous claim, then the request. The workflow adds its run id and the deadline.
func (s *State) EnqueueNotices() runner.Notices {
	r := s.request()
	var notices runner.Notices
	for i, m := range s.Moves {
		r.Avoid = append(r.Avoid, m.Queue)
		if i == len(s.Moves)-1 {
			notices = append(notices, runner.Notice{Kind: runner.Release, Run: r.RunID, Claim: m.Claim})
		}
	}
	return append(notices, runner.Notice{Kind: runner.Enqueue, Run: r.RunID, Request: r})
}

func (s *State) request() *runner.Request {
	in := s.Input
	r := &runner.Request{RunID: in.RunID, Requirements: in.Requirements, Name: in.Name(), Try: s.Try}
	if in.Mode == AsyncCallback {
		r.Parent = in.ParentSessionID
	}
	return r
}

// HoldsNotice returns the notice for a dispatcher that does not know the current claim. The
// workflow adds its run id.
func (s *State) HoldsNotice() runner.Notice {
	return runner.Notice{Kind: runner.Holds, Run: s.Input.RunID, Request: s.request(), Held: s.Claim}
}

// ReleaseNotices returns the notices after the end of the run: none if the dispatcher was not
// asked or has given up by itself.
func (s *State) ReleaseNotices() runner.Notices {
	switch {
	case s.Input.Queue != "":
		return nil
	case s.Claim != nil:
		return runner.Notices{{Kind: runner.Release, Run: s.Input.RunID, Claim: s.Claim.Number}}
	case s.Status == Stopped:
		return runner.Notices{{Kind: runner.Withdraw, Run: s.Input.RunID}}
	}
	return nil
}

// MaxCallback bounds a run's output in the message to its parent session, in bytes.
const MaxCallback = 8 << 10

// CallbackID returns the id of the message that reports the end of a run to the parent session. The session
// ignores a second message of the same id.
func CallbackID(runID string) string { return "run." + runID }

// Callback returns the message that reports the end of a run to the parent session.
func Callback(in Input, r Result) session.Message {
	text := fmt.Sprintf("<agent-callback session=\"%s\" run=\"%s\" agent=\"%s\" status=\"%s\">\n%s\n</agent-callback>",
		escapeAttribute(in.SessionID), escapeAttribute(in.RunID), escapeAttribute(in.Name()),
		escapeAttribute(string(r.Status)), callbackBody(in, r))
	return session.Message{ID: CallbackID(in.RunID), Text: text, From: "run " + in.RunID, Callback: true}
}

func callbackBody(in Input, r Result) string {
	var parts []string
	if r.Reason != "" || r.Error != "" {
		parts = append(parts, strings.Trim(string(r.Reason)+": "+escapeText(r.Error, MaxText), ": "))
	}
	if r.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *r.ExitCode))
	}
	text, more := outputText(r)
	if text != "" {
		parts = append(parts, escapeText(text, MaxCallback))
	}
	if more || len(text) > MaxCallback {
		parts = append(parts,
			"(truncated: get_agent_session_result with session_id "+in.SessionID+" returns more)")
	}
	if r.Status == Failed && r.Stderr != "" {
		parts = append(parts, "stderr: "+escapeText(r.Stderr, MaxCallback/4))
	}
	return strings.Join(parts, "\n")
}

// outputText returns an agent's message, the JSON output or stdout, in this order. more is
// set if an artifact holds the whole text.
func outputText(r Result) (text string, more bool) {
	if r.OutputIs == OutputText && json.Unmarshal(r.Output, &text) == nil {
		return text, r.OutputRef != nil
	}
	if out := string(r.Output); out != "" && out != "null" {
		return out, r.OutputRef != nil
	}
	return r.Stdout, r.OutputRef != nil || r.StdoutRef != nil
}

var attributeEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", " ")

func escapeAttribute(text string) string { return attributeEscaper.Replace(removeControls(text)) }

// callbackTags matches text that could start or end a callback within a callback.
var callbackTags = regexp.MustCompile(`(?i)<([\s/]*agent-callback)`)

// escapeText truncates text to limit bytes and makes sure that it cannot end the callback.
func escapeText(text string, limit int) string {
	text = ace.Cut(strings.TrimSpace(removeControls(text)), limit)
	return callbackTags.ReplaceAllString(text, "&lt;$1")
}

// removeControls removes control and invisible characters except newline and tab.
func removeControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "�"))
}
