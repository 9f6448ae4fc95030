package observe

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"acescope/engine/ace"
	"acescope/engine/observe/spool"
)

// Bounds of what is kept of an agent's session.
const (
	maxSessionID  = 200
	maxLastAnswer = 2 << 10
)

// claude is the source of what Claude Code's hooks tell.
const claude = "claude-code"

// agents makes runs of what agents' hooks tell. It belongs to the forwarder's goroutine.
type agents struct {
	sessions map[string]*session
	payload  func([]byte) json.RawMessage // in place of what is too large
}

// session is what must be known of an agent's session to go on with it.
type session struct {
	Start  string   `json:"start"` // of its run, or of the one to come
	Open   bool     `json:"open,omitempty"`
	Begun  bool     `json:"begun,omitempty"` // the run was told of
	Last   int64    `json:"last"`            // microseconds since 1970
	Answer string   `json:"answer,omitempty"`
	Failed string   `json:"failed,omitempty"` // why its last turn failed
	About  *opening `json:"about,omitempty"`  // until the run begins
}

// opening is what a session's start said.
type opening struct {
	Source string `json:"source,omitempty"`
	Dir    string `json:"dir,omitempty"`
	Model  string `json:"model,omitempty"`
	Mode   string `json:"mode,omitempty"`
	At     int64  `json:"at"`
}

func newAgents(known map[string]*session, payload func([]byte) json.RawMessage) agents {
	a := agents{sessions: map[string]*session{}, payload: payload}
	for id, s := range known {
		own := *s
		a.sessions[id] = &own
	}
	return a
}

// copyOf is a session as it stands now; nil for one that is not known.
func (a *agents) copyOf(id string) *session {
	s := a.sessions[id]
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

// hooked is one call of a hook.
type hooked struct {
	rec  spool.Record
	json gjson.Result
	name string // of the event
	at   time.Time
}

func (h hooked) text(key string) string { return h.json.Get(key).String() }

// hook is what a hook's record tells, and of which session. What names no session or no
// event tells nothing.
func (a *agents) hook(rec spool.Record) ([]Told, string) {
	if rec.Kind == spool.Hook && !gjson.ValidBytes(rec.Payload) {
		return nil, ""
	}
	h := hooked{rec: rec, json: gjson.ParseBytes(rec.Payload), at: time.UnixMicro(rec.Micros).UTC()}
	h.name = h.text("hook_event_name")
	id := sessionID(h.text("session_id"))
	if id == "" || h.name == "" {
		return nil, ""
	}
	s := a.at(id, h)
	if h.name == "SessionStart" && !s.Begun || h.name == "SessionEnd" && !s.Begun {
		s.Open = h.name == "SessionStart"
		return nil, id // a session in which nothing was asked is no run
	}
	var told []Told
	tell := func(e ace.ToolEvent) {
		e.SessionID, e.Source = id, source(h)
		if e.At.IsZero() {
			e.At = h.at
		}
		if e.Seq == 0 {
			e.Seq = rec.Micros
		}
		told = append(told, Told{TaskID: taskOf(id), Start: s.Start, Event: e})
	}
	if !s.Begun {
		tell(ace.ToolEvent{EventID: rec.ID + ".phase", Kind: ace.KindPhase, Name: string(ace.PhaseSkills), Seq: rec.Micros - 1})
		told[0].Input = a.input(id, s, h)
		s.Begun, s.About = true, nil
	}
	for _, e := range a.events(h, s) {
		tell(e)
	}
	return told, id
}

// at is the session as it stands when the hook is called. What comes after a session has
// ended begins another run of it, if it is its start or something that only a live session
// does.
func (a *agents) at(id string, h hooked) *session {
	s := a.sessions[id]
	again := h.name == "SessionStart" || h.name == "UserPromptSubmit" || h.name == "PreToolUse"
	if s == nil || !s.Open && again {
		s = &session{Start: h.rec.ID, Open: true}
		a.sessions[id] = s
	}
	if !s.Begun && (s.About == nil || h.name == "SessionStart") {
		s.About = &opening{Source: h.text("source"), Dir: h.text("cwd"), Model: h.text("model"), Mode: h.text("permission_mode"), At: h.rec.Micros}
	}
	s.Last = h.rec.Micros
	a.forget()
	return s
}

// forget bounds the sessions that are kept in mind.
func (a *agents) forget() {
	if len(a.sessions) <= 2*maxSessions {
		return
	}
	p := position{Sessions: a.sessions}
	p.forget()
}

// input is what the run of a session starts with.
func (a *agents) input(id string, s *session, h hooked) *ace.TaskInput {
	about := *s.About
	if about.Mode == "" {
		about.Mode = h.text("permission_mode")
	}
	if about.Model == "" {
		about.Model = claude
	}
	in := &ace.TaskInput{TaskID: taskOf(id), Adapter: ace.Online, ExperimentID: "observed", DatasetID: projectOf(about.Dir), Provider: claude,
		Model: about.Model, SkillsConfig: ace.SkillsConfig{PermissionMode: about.Mode}, Observed: true, Source: claude}
	if h.name != "UserPromptSubmit" {
		return in
	}
	in.Prompt = h.text("prompt")
	if len(in.Prompt) > ace.InlineBytes {
		var ref ace.Ref
		if json.Unmarshal(a.payload([]byte(in.Prompt)), &ref) == nil && ref.SHA256 != "" {
			in.Prompt, in.PromptRef = "", &ref
		} else {
			in.Prompt = ace.Cut(in.Prompt, ace.InlineBytes)
		}
	}
	return in
}

// events are those that a hook's call stands for, and what of it the session's end needs.
func (a *agents) events(h hooked, s *session) []ace.ToolEvent {
	e := ace.ToolEvent{EventID: h.rec.ID, CallID: h.text("tool_use_id"), Name: h.text("tool_name")}
	yes, no := true, false
	switch h.name {
	case "PreToolUse":
		e.Kind, e.Args = ace.KindToolUse, a.part(h, "tool_input")
	case "PostToolUse":
		e.Kind, e.Result, e.OK, e.DurationMS = ace.KindToolResult, a.part(h, "tool_response"), &yes, h.json.Get("duration_ms").Float()
	case "PostToolUseFailure":
		e.Kind, e.OK, e.DurationMS, e.Error = ace.KindToolResult, &no, h.json.Get("duration_ms").Float(), h.text("error")
		if e.Error == "" && h.json.Get("is_interrupt").Bool() {
			e.Error = "interrupted"
		}
	case "PermissionRequest":
		e.Kind, e.Args = ace.KindPermission, a.part(h, "tool_input")
	case "SessionEnd":
		s.Open = false
		f := ace.Finish{ExitStatus: ace.Success, Answer: s.Answer}
		if s.Failed != "" {
			f.ExitStatus = ace.Failed
		}
		return []ace.ToolEvent{{EventID: h.rec.ID, Kind: ace.KindFinish, Result: toJSON(f), Error: s.Failed}}
	default:
		return []ace.ToolEvent{a.message(h, s)}
	}
	if e.CallID == "" { // there is no call to tell of: a permission before it, or a record that was cut
		return []ace.ToolEvent{a.message(h, s)}
	}
	return []ace.ToolEvent{e}
}

// message is what is kept as it is.
func (a *agents) message(h hooked, s *session) ace.ToolEvent {
	e := ace.ToolEvent{EventID: h.rec.ID, Kind: ace.KindMessage, Name: h.name}
	switch h.name {
	case "UserPromptSubmit":
		if word, _, _ := strings.Cut(strings.TrimSpace(h.text("prompt")), " "); strings.HasPrefix(word, "/") && len(word) > 1 && len(word) < 64 {
			e.Kind, e.Name = ace.KindSlashCommand, word
		}
		e.Args = a.part(h, "prompt")
		return e
	case "Stop":
		s.Answer, s.Failed = ace.Cut(h.text("last_assistant_message"), maxLastAnswer), ""
		e.Result = a.part(h, "last_assistant_message")
		return e
	case "StopFailure":
		s.Failed = ace.Cut(h.text("error"), maxLastAnswer)
		if s.Failed == "" {
			s.Failed = "the last turn failed"
		}
		e.Error = s.Failed
	}
	e.Args = a.fit(h.rec.Payload)
	return e
}

// part is a part of what the hook was given, as JSON.
func (a *agents) part(h hooked, key string) json.RawMessage {
	raw := h.json.Get(key).Raw
	if h.rec.Kind == spool.HookCut && !gjson.Valid(raw) {
		return a.fit([]byte(raw))
	}
	if raw == "" {
		return nil
	}
	return a.fit([]byte(raw))
}

// fit is the JSON itself or, where it is too large, what stands for it. What is none, since
// it was cut, becomes a text.
func (a *agents) fit(data []byte) json.RawMessage {
	if !gjson.ValidBytes(data) {
		data = toJSON(strings.ToValidUTF8(string(data), "�"))
	}
	if len(data) <= ace.InlineBytes {
		return data
	}
	return a.payload(data)
}

// source names the agent, and the subagent that speaks.
func source(h hooked) string {
	id := h.text("agent_id")
	if id == "" {
		return claude
	}
	return ace.Cut(strings.Join([]string{claude, h.text("agent_type"), id}, ":"), maxSessionID)
}

func taskOf(sessionID string) string { return "claude-" + sessionID }

// sessionID is an agent's id of its session, or what stands for one that is too long or
// holds what no id should.
func sessionID(id string) string {
	odd := strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\'' || r == '"' || r == 0xfffd })
	if len(id) <= maxSessionID && !odd {
		return id
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return fmt.Sprintf("%016x", h.Sum64())
}

func projectOf(dir string) string {
	if dir == "" {
		return "none"
	}
	return ace.Cut(filepath.Base(filepath.Clean(dir)), maxSessionID)
}
