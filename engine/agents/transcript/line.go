package transcript

import (
	"bytes"
	"strings"
	"time"
)

// line holds the fields of a line, as slices of it. Strings have no quotes but are still
// escaped, unless a comment says otherwise.
type line struct {
	kind, subtype, level             []byte
	uuid, session, agent, request    []byte
	cwd, version, branch             []byte // with quotes
	at                               []byte
	sidechain, meta, compact, failed bool
	message, result                  []byte // JSON
	title, summary, note             []byte // with quotes

	id, model, stop []byte // of the message
	content, usage  []byte // of the message, JSON
}

// parse takes a line apart. It returns false if the line is not a complete JSON object.
func (l *line) parse(raw []byte) bool {
	*l = line{}
	if !members(raw, l.field) {
		return false
	}
	members(l.message, l.messageField)
	return true
}

func (l *line) field(key, v []byte) bool {
	switch string(key) {
	case "type":
		l.kind = bare(v)
	case "message":
		l.message = v
	case "toolUseResult":
		l.result = v
	case "uuid":
		l.uuid = bare(v)
	case "timestamp":
		l.at = bare(v)
	case "sessionId":
		l.session = bare(v)
	case "agentId":
		l.agent = bare(v)
	case "requestId":
		l.request = bare(v)
	case "cwd":
		l.cwd = v
	case "version":
		l.version = v
	case "gitBranch":
		l.branch = v
	case "subtype":
		l.subtype = bare(v)
	case "level":
		l.level = bare(v)
	case "content":
		l.note = v
	case "isSidechain":
		l.sidechain = isTrue(v)
	case "isMeta":
		l.meta = isTrue(v)
	case "isCompactSummary":
		l.compact = isTrue(v)
	case "isApiErrorMessage":
		l.failed = isTrue(v)
	case "summary":
		l.summary = v
	case "customTitle", "aiTitle":
		l.title = v
	}
	return true
}

func (l *line) messageField(key, v []byte) bool {
	switch string(key) {
	case "id":
		l.id = bare(v)
	case "model":
		l.model = bare(v)
	case "stop_reason":
		l.stop = bare(v)
	case "content":
		l.content = v
	case "usage":
		l.usage = v
	}
	return true
}

// time returns when the line was written, or the zero time.
func (l *line) time() time.Time {
	if len(l.at) > 40 {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, string(l.at))
	if err != nil {
		return time.Time{}
	}
	return t
}

// messageID returns what the lines of one message have in common.
func (l *line) messageID() []byte {
	switch {
	case len(l.id) > 0:
		return l.id
	case len(l.request) > 0:
		return l.request
	}
	return l.uuid
}

// maxCallMS bounds the duration of a call, in milliseconds: more than a year is a mistake.
const maxCallMS = 365 * 24 * 3600 * 1000

// resultInfo returns the duration and the subagent that the CLI recorded for a tool result.
func (l *line) resultInfo() (duration time.Duration, agent []byte) {
	if !bytes.Contains(l.result, []byte(`urationMs"`)) && !bytes.Contains(l.result, []byte(`"agentId"`)) {
		return 0, nil
	}
	members(l.result, func(key, v []byte) bool {
		switch string(key) {
		case "durationMs", "totalDurationMs":
			duration = time.Duration(min(count(v), maxCallMS)) * time.Millisecond
		case "agentId":
			agent = bare(v)
		}
		return true
	})
	return duration, agent
}

// block is one block of a message's content.
type block struct {
	kind, id, name []byte
	callID         []byte // of the call that a result belongs to
	text           []byte // with quotes
	input, content []byte // JSON
	failed         bool
}

func (b *block) field(key, v []byte) bool {
	switch string(key) {
	case "type":
		b.kind = bare(v)
	case "text", "thinking":
		b.text = v
	case "id":
		b.id = bare(v)
	case "name":
		b.name = bare(v)
	case "input":
		b.input = v
	case "tool_use_id":
		b.callID = bare(v)
	case "content":
		b.content = v
	case "is_error":
		b.failed = isTrue(v)
	}
	return true
}

func (b *block) is(kind string) bool { return string(b.kind) == kind }

// isCall reports whether the block is a tool call by the agent, by the model's own server, or
// by an MCP connector.
func (b *block) isCall() bool {
	return len(b.id) > 0 && (b.is("tool_use") || b.is("server_tool_use") || b.is("mcp_tool_use"))
}

// isResult reports whether the block is the result of a call.
func (b *block) isResult() bool {
	return len(b.callID) > 0 && bytes.HasSuffix(b.kind, []byte("tool_result"))
}

// blocks calls fn for each block of a content, which may be a single string. It reports
// whether there was a block.
func blocks(content []byte, fn func(*block)) (any bool) {
	if len(content) > 0 && content[0] == '"' {
		fn(&block{kind: []byte("text"), text: content})
		return true
	}
	var b block
	elements(content, func(v []byte) bool {
		b = block{}
		if members(v, b.field) && len(b.kind) > 0 {
			any = true
			fn(&b)
		}
		return true
	})
	return any
}

// resultText returns the text of a tool result, a string or the texts of a list, up to about
// limit bytes.
func resultText(content []byte, limit int) string {
	if len(content) > 0 && content[0] == '"' {
		return text(content, limit)
	}
	var out []byte
	blocks(content, func(b *block) {
		if t := text(b.text, limit-len(out)); t != "" && len(out) < limit {
			if len(out) > 0 {
				out = append(out, '\n')
			}
			out = append(out, t...)
		}
	})
	return string(out)
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
