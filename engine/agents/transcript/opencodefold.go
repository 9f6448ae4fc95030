package transcript

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"acescope/engine/agents/agentcli"
)

// opencodeRow is a row of OpenCode's database as a line: a session, a message, or a part of the last message.
type opencodeRow struct {
	kind    string
	id      []byte
	data    object
	created time.Time // of the session
	// Of the last message:
	role   string
	model  string
	at     time.Time
	copied bool // from the session that this one was forked from: it is older than the session
}

// parse reads the next row. It returns false if it is not one.
func (r *opencodeRow) parse(raw []byte) bool {
	var line object
	if !line.parse(raw) {
		return false
	}
	r.kind, r.id, r.data = string(line.bare("type")), line.bare("id"), line.child("data")
	switch r.kind {
	case "session":
		r.created = r.data.child("time").millis("created")
	case "message":
		r.role, r.model = string(r.data.bare("role")), cutName(r.data.bare("modelID"))
		r.at = r.data.child("time").millis("created")
		r.copied = !r.at.IsZero() && r.at.Before(r.created)
	}
	return true
}

// opencodeFold is the [Folder] of OpenCode's sessions.
//
// A message of the model has the tokens of its request. Input excludes what a cache read or wrote. Newer
// versions also have the total, which shows whether output excludes reasoning. The cost is OpenCode's own if
// that is above zero.
type opencodeFold struct {
	tally
	row      opencodeRow
	prompted bool // the last message is a prompt that was counted
}

// Add implements [Folder].
func (f *opencodeFold) Add(raw []byte) {
	f.s.Lines++
	r := &f.row
	if !r.parse(raw) {
		f.s.Unreadable++
		return
	}
	f.at = r.at
	switch {
	case r.kind == "session":
		f.session()
	case r.copied:
		f.s.Repeated++
	case r.kind == "message":
		f.message()
	case r.kind == "part":
		f.part()
	default:
		f.s.Unknown++
	}
}

func (f *opencodeFold) session() {
	r, s := &f.row, &f.s
	s.SessionID = cutName(r.id)
	set(&s.Title, r.data.get("title"), maxPrompt)
	set(&s.WorkDir, r.data.get("directory"), maxPath)
	set(&s.Version, r.data.get("version"), maxName)
	f.at = r.created
	f.touch()
}

func (f *opencodeFold) message() {
	f.touch()
	f.prompted = false
	d := f.row.data
	if f.row.role != "assistant" {
		return
	}
	f.use(f.row.id, d.bare("modelID"), opencodeTokens(d.child("tokens")), d.dollars("cost"))
	if f.s.WorkDir == "" {
		set(&f.s.WorkDir, d.child("path").get("cwd"), maxPath)
	}
	if d.isTrue("summary") {
		f.s.Compactions++
	}
	times := d.child("time")
	if f.at = times.millis("completed"); !f.at.IsZero() {
		f.touch()
	}
	f.s.Unfinished = f.at.IsZero() || string(d.bare("finish")) == "tool-calls"
	if fault := opencodeFault(d); fault != "" {
		f.fail(fault)
	}
}

// opencodeFault returns why a message failed, or "".
func opencodeFault(d object) string {
	fault := d.child("error")
	if len(fault) == 0 {
		return ""
	}
	return cmp.Or(text(fault.child("data").get("message"), MaxLine), text(fault.get("name"), maxName),
		"error")
}

func opencodeTokens(o object) Tokens {
	cache := o.child("cache")
	t := Tokens{
		Input: o.count("input"), Output: o.count("output"),
		CacheRead: cache.count("read"), CacheWrite5m: cache.count("write"),
	}
	t.Output += max(0, o.count("total")-t.Total())
	return t
}

func (f *opencodeFold) part() {
	d := f.row.data
	switch {
	case d.is("tool"):
		f.call(d)
	case d.is("text") && f.row.role == "user" && !d.isTrue("synthetic") && !f.prompted:
		f.prompted = true
		f.ask(text(d.get("text"), maxPrompt))
	}
}

func (f *opencodeFold) call(d object) {
	state := d.child("state")
	times := state.child("time")
	if began := times.millis("start"); !began.IsZero() {
		f.at = began
	}
	var agent *AgentCall
	meta := state.child("metadata")
	if string(d.bare("tool")) == "task" {
		input := state.child("input")
		agent = &AgentCall{CallID: cutName(d.bare("callID")), Type: text(input.get("subagent_type"), maxName),
			Description: text(input.get("description"), maxPrompt)}
	}
	f.begin(f.row.id, d.bare("tool"), agent)
	how, ended := opencodeOutcome(state)
	if !ended {
		return
	}
	if at := times.millis("end"); !at.IsZero() {
		f.at = at
	}
	f.touch()
	f.end(f.row.id, how, 0, meta.bare("sessionId"))
	if how == refused { // ends the turn
		f.s.Unfinished = false
	}
}

// opencodeOutcome returns the outcome of a call. ended is false while it runs.
func opencodeOutcome(state object) (how outcome, ended bool) {
	switch string(state.bare("status")) {
	case "completed":
		if code := string(state.child("metadata").get("exit")); code != "" && code != "0" && code != "null" {
			return failed, true
		}
		return succeeded, true
	case "error":
		fault := text(state.get("error"), maxVerdict)
		if strings.Contains(fault, "rejected permission") ||
			strings.Contains(fault, "prevents you from using") {
			return refused, true
		}
		return failed, true
	}
	return succeeded, false
}

// opencodeEvents converts the rows of a session.
type opencodeEvents struct{ row opencodeRow }

func (c *opencodeEvents) events(raw []byte) []agentcli.Event {
	r := &c.row
	if !r.parse(raw) {
		return []agentcli.Event{garbage(raw)}
	}
	e := agentcli.Event{At: r.at, Kind: agentcli.KindOther, Name: r.kind, Model: r.model}
	d := r.data
	switch {
	case r.kind == "message":
		if fault := opencodeFault(d); fault != "" {
			e.Kind, e.Name, e.Text = agentcli.KindError, "", fault
		}
	case r.kind != "part":
	case d.is("text") && r.role == "user" && d.isTrue("synthetic"):
		e.Kind, e.Name, e.Text = agentcli.KindStatus, "note", text(d.get("text"), MaxLine)
	case d.is("text") && r.role == "user":
		e.Kind, e.Name, e.Text = agentcli.KindUser, "", text(d.get("text"), MaxLine)
	case d.is("text"):
		e.Kind, e.Name, e.Text = agentcli.KindText, "", text(d.get("text"), MaxLine)
	case d.is("reasoning"):
		e.Kind, e.Name, e.Text = agentcli.KindThinking, "", text(d.get("text"), MaxLine)
	case d.is("compaction"):
		e.Kind, e.Name = agentcli.KindStatus, "compact_boundary"
	case d.is("tool"):
		return c.call(e)
	}
	return []agentcli.Event{e}
}

func (c *opencodeEvents) call(e agentcli.Event) []agentcli.Event {
	d, state := c.row.data, c.row.data.child("state")
	times := state.child("time")
	e.Kind, e.Name = agentcli.KindToolUse, ""
	if began := times.millis("start"); !began.IsZero() {
		e.At = began
	}
	id := string(c.row.id)
	e.Tool = &agentcli.Tool{ID: id, Name: string(d.bare("tool")), Args: compactJSON(state.get("input"))}
	how, ended := opencodeOutcome(state)
	if !ended {
		return []agentcli.Event{e}
	}
	result := e
	result.Kind, result.At = agentcli.KindToolResult, times.millis("end")
	result.Tool = &agentcli.Tool{ID: id, OK: how == succeeded, Denied: how == refused}
	for _, key := range []string{"output", "error"} {
		if v := cloneJSON(state.get(key)); v != nil {
			result.Tool.Result = json.RawMessage(v)
		}
	}
	return []agentcli.Event{e, result}
}
