package transcript

import (
	"bytes"
	"time"
)

// line is what is known of a line before its content is looked into. All of it points
// into the line. Texts are as they are written, without quotes.
type line struct {
	kind, subtype, level             []byte
	uuid, session, agent, request    []byte
	cwd, version, branch             []byte // with quotes
	at                               []byte
	sidechain, meta, compact, failed bool
	message, result                  []byte
	title, summary, note             []byte // with quotes

	role, id, model, stop []byte
	content, usage        []byte
}

// parse takes a line apart. It is false for what is no whole JSON object.
func (l *line) parse(raw []byte) bool {
	*l = line{}
	if !members(raw, l.member) {
		return false
	}
	if len(l.message) > 0 && l.message[0] == '{' {
		members(l.message, l.part)
	}
	return true
}

func (l *line) member(key, v []byte) bool {
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

func (l *line) part(key, v []byte) bool {
	switch string(key) {
	case "role":
		l.role = bare(v)
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

// time is when the line was written, zero where it does not say.
func (l *line) time() time.Time {
	if len(l.at) == 0 || len(l.at) > 40 {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, string(l.at))
	if err != nil {
		return time.Time{}
	}
	return t
}

// messageID is what the parts of one message have in common, nil where nothing tells.
func (l *line) messageID() []byte {
	switch {
	case len(l.id) > 0:
		return l.id
	case len(l.request) > 0:
		return l.request
	}
	return l.uuid
}

// block is one piece of a message's content.
type block struct {
	kind, id, name, of []byte // of is the call that a result belongs to
	text               []byte // with quotes
	input, content     []byte
	failed             bool
}

func (b *block) parse(raw []byte) bool {
	*b = block{}
	return members(raw, b.member) && len(b.kind) > 0
}

func (b *block) member(key, v []byte) bool {
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
		b.of = bare(v)
	case "content":
		b.content = v
	case "is_error":
		b.failed = isTrue(v)
	}
	return true
}

// use tells whether the block is a tool call: by the agent, by the model's own server, or
// by an MCP connector.
func (b *block) use() bool {
	switch string(b.kind) {
	case "tool_use", "server_tool_use", "mcp_tool_use":
		return len(b.id) > 0
	}
	return false
}

// resultOf tells whether the block is what came of a call.
func (b *block) resultOf() bool {
	return len(b.of) > 0 && bytes.HasSuffix(b.kind, []byte("tool_result"))
}

// blocks calls fn for each piece of a content, which may be a text alone. It tells whether
// there was any.
func blocks(content []byte, fn func(*block)) (any bool) {
	var b block
	switch {
	case len(content) == 0:
		return false
	case content[0] == '"':
		b.kind, b.text = []byte("text"), content
		fn(&b)
		return true
	}
	elements(content, func(v []byte) bool {
		if b.parse(v) {
			any = true
			fn(&b)
		}
		return true
	})
	return any
}

// said is the text of what a tool gave back: a string, or the texts of a list, with its
// escapes undone, up to about limit bytes.
func said(content []byte, limit int) string {
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

// told is what the CLI's own account of a result says: how long the call took, and which
// subagent it was.
func (l *line) told() (took time.Duration, agent []byte) {
	if len(l.result) == 0 || l.result[0] != '{' || !bytes.Contains(l.result, []byte(`urationMs"`)) && !bytes.Contains(l.result, []byte(`"agentId"`)) {
		return 0, nil
	}
	members(l.result, func(key, v []byte) bool {
		switch string(key) {
		case "durationMs", "totalDurationMs":
			took = time.Duration(min(count(v), maxTookMS)) * time.Millisecond
		case "agentId":
			agent = bare(v)
		}
		return true
	})
	return took, agent
}

// maxTookMS is a year: what is told beyond it is a mistake.
const maxTookMS = 365 * 24 * 3600 * 1000
