package transcript

import (
	"bytes"
	"cmp"
	"strings"
	"time"
)

type line struct {
	object
	message object
}

// parse takes a line apart. It returns false if the line is not a complete JSON object.
func (l *line) parse(raw []byte) bool {
	ok := l.object.parse(raw)
	l.message.parse(l.get("message"))
	return ok
}

// isError reports whether a line of the type system is an error.
func (l *line) isError() bool {
	return string(l.bare("level")) == "error" || string(l.bare("subtype")) == "api_error"
}

// isGenerated reports whether the CLI wrote the texts of a user message.
func (l *line) isGenerated() bool { return l.isTrue("isMeta") || l.isTrue("isCompactSummary") }

// messageID returns the ID that all lines of a message have.
func (l *line) messageID() []byte {
	id := l.message.bare("id")
	if len(id) == 0 {
		id = l.bare("requestId")
	}
	if len(id) == 0 {
		id = l.bare("uuid")
	}
	return id
}

// maxCallMS bounds the duration of a call, in milliseconds: more than a year is a mistake.
const maxCallMS = 365 * 24 * 3600 * 1000

// resultInfo returns the duration and the subagent that the CLI recorded for a tool result.
func (l *line) resultInfo() (duration time.Duration, agent []byte) {
	result := l.child("toolUseResult")
	ms := cmp.Or(result.count("totalDurationMs"), result.count("durationMs"))
	return time.Duration(min(ms, maxCallMS)) * time.Millisecond, result.bare("agentId")
}

// The methods below are for the blocks of a message's content.

func (o object) is(kind string) bool { return string(o.bare("type")) == kind }

// isCall reports whether the block is a tool call by the agent, by the model's own server, or
// by an MCP connector.
func (o object) isCall() bool {
	return len(o.bare("id")) > 0 && (o.is("tool_use") || o.is("server_tool_use") || o.is("mcp_tool_use"))
}

// isResult reports whether the block is the result of the call tool_use_id.
func (o object) isResult() bool {
	return len(o.bare("tool_use_id")) > 0 && bytes.HasSuffix(o.bare("type"), []byte("tool_result"))
}

// blocks calls fn for each block of a content, which may be a single string. It reports
// whether there was a block.
func blocks(content []byte, fn func(object)) (any bool) {
	if len(content) > 0 && content[0] == '"' {
		fn(object{{[]byte("type"), []byte(`"text"`)}, {[]byte("text"), content}})
		return true
	}
	var b object
	scan(content, '[', func(_, v []byte) {
		if b.parse(v) && len(b.bare("type")) > 0 {
			any = true
			fn(b)
		}
	})
	return any
}

// userText classifies the text of a user message, which the user or the CLI wrote.
type userText int

const (
	prompt      userText = iota
	command              // a slash command
	generated            // by the CLI: output of a local command, reminders, caveats
	interrupted          // the user interrupted the turn
)

// classify classifies a text by its beginning.
func classify(t string) userText {
	t = strings.TrimSpace(t)
	switch {
	case t == "":
		return generated
	case strings.HasPrefix(t, "[Request interrupted by user"):
		return interrupted
	case hasAnyPrefix(t, "<command-name>", "<command-message>"):
		return command
	case hasAnyPrefix(t, "<local-command-", "<bash-", "<system-reminder>", "<task-notification>",
		"Caveat: The messages below"):
		return generated
	}
	return prompt
}

func hasAnyPrefix(t string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	return false
}

// typedCommand returns a slash command as the user typed it.
func typedCommand(t string) string {
	name := between(t, "<command-name>", "</command-name>")
	if name != "" && !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return strings.TrimSpace(name + " " + between(t, "<command-args>", "</command-args>"))
}

func between(t, start, end string) string {
	_, t, ok := strings.Cut(t, start)
	if !ok {
		return ""
	}
	t, _, _ = strings.Cut(t, end)
	return strings.TrimSpace(t)
}

// denied reports whether a failed result says that a user, a rule or a hook denied the call.
func denied(result string) bool {
	result = strings.TrimPrefix(strings.TrimSpace(result), "Error: ")
	return hasAnyPrefix(result, "The user doesn't want to proceed with this tool use",
		"The user doesn't want to take this action", "Permission to use ", "Claude requested permissions to ",
		"This command requires approval") ||
		strings.Contains(result, "denied by the Claude Code auto mode classifier")
}
