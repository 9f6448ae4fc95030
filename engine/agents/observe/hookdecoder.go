package observe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/observe/spool"
	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript"
)

// Bounds of a session's texts, in bytes.
const (
	maxSessionID  = 200
	maxLastAnswer = 2 << 10
)

// claude is the source of the events of Claude Code's hooks, and the provider of its runs.
const claude = string(agentcli.Claude)

// hookDecoder turns the records of agents' hooks into the events of runs. It is not safe for
// concurrent use.
type hookDecoder struct {
	sessions map[string]*hookSession
	store    func([]byte) json.RawMessage // returns a reference to a large payload
	redact   Redact                       // of texts that are not in a record
	prices   *price.Prices
	meters   map[string]*transcript.Meter // of the runs of open sessions, by start
}

// hookSession is the decoder's state of an agent's session.
type hookSession struct {
	Start  string       `json:"start"` // Observation.Start of the current or next run
	Open   bool         `json:"open,omitempty"`
	Begun  bool         `json:"begun,omitempty"` // the run was reported
	Last   int64        `json:"last"`            // newest event, in microseconds since 1970
	Answer string       `json:"answer,omitempty"`
	Failed string       `json:"failed,omitempty"` // why its last turn failed
	About  *sessionInfo `json:"about,omitempty"`  // until the run begins

	From     int64               `json:"from,omitempty"`     // start of the run, in microseconds
	Measured int64               `json:"measured,omitempty"` // time of the last measurement, in microseconds
	Calls    map[string]openCall `json:"calls,omitempty"`    // calls without a result, by id
}

// openCall is a tool call without a result.
type openCall struct {
	Name string `json:"name,omitempty"`
	At   int64  `json:"at"`
}

// sessionInfo is the information at the start of a session.
type sessionInfo struct {
	Source string `json:"source,omitempty"`
	Dir    string `json:"dir,omitempty"`
	Model  string `json:"model,omitempty"`
	Mode   string `json:"mode,omitempty"`
	At     int64  `json:"at"`
}

func newHookDecoder(
	known map[string]*hookSession, store func([]byte) json.RawMessage, redact Redact, prices *price.Prices,
) hookDecoder {
	d := hookDecoder{sessions: map[string]*hookSession{}, store: store, redact: redact,
		prices: cmp.Or(prices, price.Shipped()), meters: map[string]*transcript.Meter{}}
	for id, s := range known {
		d.sessions[id] = s.clone()
	}
	return d
}

func (s *hookSession) clone() *hookSession {
	c := *s
	c.Calls = maps.Clone(s.Calls)
	return &c
}

type hookCall struct {
	rec  spool.Record
	json gjson.Result
	name string // of the event
	at   time.Time
}

func (h hookCall) text(key string) string { return h.json.Get(key).String() }

// decode returns the observations of a hook's record and the id of its session. The list is empty
// for a record without session or event.
func (d *hookDecoder) decode(rec spool.Record) (list []Observation, session string) {
	if rec.Kind == spool.Hook && !gjson.ValidBytes(rec.Payload) {
		return nil, ""
	}
	h := hookCall{rec: rec, json: gjson.ParseBytes(rec.Payload), at: time.UnixMicro(rec.Micros).UTC()}
	h.name = h.text("hook_event_name")
	id := sessionID(h.text("session_id"))
	if id == "" || h.name == "" {
		return nil, ""
	}
	s := d.session(id, h)
	if !s.Begun && (h.name == "SessionStart" || h.name == "SessionEnd") {
		s.Open = h.name == "SessionStart"
		return nil, id // a session without a prompt is not a run
	}
	var events []ace.ToolEvent
	if s.Begun {
		events = d.measure(h, s)
	}
	events = append(events, d.events(h, s)...)
	var input *ace.TaskInput
	if !s.Begun {
		events = slices.Insert(events, 0, ace.ToolEvent{
			EventID: rec.ID + ".phase", Kind: ace.KindPhase, Name: string(ace.PhaseSkills),
			Seq: rec.Micros - 1,
		})
		input = d.input(id, s, h)
		s.Begun, s.From, s.About = true, s.About.At, nil
	}
	for i, e := range events {
		e.SessionID, e.Source, e.At = id, source(h), h.at
		e.Seq = cmp.Or(e.Seq, rec.Micros)
		o := Observation{TaskID: taskID(id), Start: s.Start, Event: e}
		if i == 0 {
			o.Input = input
		}
		list = append(list, o)
	}
	return list, id
}

// session returns the session of a hook's call. An event that only an open session has starts another run of
// a session that has ended.
func (d *hookDecoder) session(id string, h hookCall) *hookSession {
	s := d.sessions[id]
	restarts := h.name == "SessionStart" || h.name == "UserPromptSubmit" || h.name == "PreToolUse"
	if s == nil || !s.Open && restarts {
		s = &hookSession{Start: h.rec.ID, Open: true}
		d.sessions[id] = s
	}
	if !s.Begun && (s.About == nil || h.name == "SessionStart") {
		s.About = &sessionInfo{
			Source: h.text("source"), Dir: h.text("cwd"), Model: h.text("model"),
			Mode: h.text("permission_mode"), At: h.rec.Micros,
		}
	}
	s.Last = h.rec.Micros
	if len(d.sessions) > 2*maxSessions {
		forgetSessions(d.sessions)
	}
	return s
}

func (d *hookDecoder) input(id string, s *hookSession, h hookCall) *ace.TaskInput {
	mode := cmp.Or(s.About.Mode, h.text("permission_mode"))
	in := &ace.TaskInput{
		TaskID: taskID(id), Adapter: ace.Online,
		ExperimentID: cmp.Or(h.text(spool.KeyExperiment), ace.ObservedExperiment),
		DatasetID:    projectName(s.About.Dir),
		Provider:     claude, Model: s.About.Model, Observation: ace.Observation{Observed: true,
			Source: claude},
		SkillsConfig: ace.SkillsConfig{PermissionMode: mode},
	}
	if h.name != "UserPromptSubmit" {
		return in
	}
	in.Prompt = h.text("prompt")
	return in
}

// events returns the events of a hook's call, and records in s what the end of the session needs.
func (d *hookDecoder) events(h hookCall, s *hookSession) []ace.ToolEvent {
	e := ace.ToolEvent{EventID: h.rec.ID, CallID: h.text("tool_use_id"), Name: h.text("tool_name")}
	yes, no := true, false
	switch h.name {
	case "PreToolUse":
		e.Kind, e.Args = ace.KindToolUse, d.field(h, "tool_input")
		s.began(e, h)
	case "PostToolUse":
		e.Kind, e.OK, e.Result = ace.KindToolResult, &yes, d.field(h, "tool_response")
		e.DurationMS = s.ended(e.CallID, h)
	case "PostToolUseFailure":
		e.Kind, e.OK, e.Error = ace.KindToolResult, &no, h.text("error")
		e.DurationMS = s.ended(e.CallID, h)
		if e.Error == "" && h.json.Get("is_interrupt").Bool() {
			e.Error = "interrupted"
		}
	case "PermissionRequest":
		e.Kind, e.Args = ace.KindPermission, d.field(h, "tool_input")
	case "SessionEnd":
		s.Open = false
		left := s.unanswered(h)
		f := ace.Finish{ExitStatus: ace.ExitSuccess, Answer: s.Answer}
		if s.Failed != "" {
			f.ExitStatus = ace.ExitFailed
		}
		finish := ace.ToolEvent{EventID: h.rec.ID, Kind: ace.KindFinish, Result: mustJSON(f), Error: s.Failed}
		return append(left, finish)
	}
	if e.Kind == "" || e.CallID == "" { // a permission request has no call id, a truncated record may lack it
		e = d.message(h, s)
	}
	return []ace.ToolEvent{e}
}

// slashCommand matches a slash command at the beginning of a prompt. It does not match a path.
var slashCommand = regexp.MustCompile(`^/[\pL\d][\pL\d:_.-]{0,99}(\s|$)`)

// message returns the event of a hook that is not about a tool call.
func (d *hookDecoder) message(h hookCall, s *hookSession) ace.ToolEvent {
	e := ace.ToolEvent{EventID: h.rec.ID, Kind: ace.KindMessage, Name: h.name}
	switch h.name {
	case "UserPromptSubmit":
		if name := slashCommand.FindString(strings.TrimSpace(h.text("prompt"))); name != "" {
			e.Kind, e.Name = ace.KindSlashCommand, strings.TrimSpace(name)
		}
		e.Args = d.field(h, "prompt")
		return e
	case "Stop":
		s.Answer, s.Failed = ace.Cut(h.text("last_assistant_message"), maxLastAnswer), ""
		e.Result = d.field(h, "last_assistant_message")
		return e
	case "StopFailure":
		s.Failed = cmp.Or(ace.Cut(h.text("error"), maxLastAnswer), "the last turn failed")
		e.Error = s.Failed
	}
	e.Args = d.shorten(h.rec.Payload)
	return e
}

// field returns a field of the hook's input as JSON.
func (d *hookDecoder) field(h hookCall, key string) json.RawMessage {
	raw := h.json.Get(key).Raw
	if raw == "" && h.rec.Kind != spool.HookTruncated {
		return nil
	}
	return d.shorten([]byte(raw))
}

// shorten returns JSON data, or a reference if it is too large. Truncated data becomes a string.
func (d *hookDecoder) shorten(data []byte) json.RawMessage {
	if !gjson.ValidBytes(data) {
		data = mustJSON(strings.ToValidUTF8(string(data), "�"))
	}
	if len(data) <= ace.InlineBytes {
		return data
	}
	return d.store(data)
}

// source names the agent and its subagent.
func source(h hookCall) string {
	id := h.text("agent_id")
	if id == "" {
		return claude
	}
	return ace.Cut(strings.Join([]string{claude, h.text("agent_type"), id}, ":"), maxSessionID)
}

func taskID(sessionID string) string { return claude + "-" + sessionID }

// sessionID returns an agent's session id, or its hash if it is too long or contains unusual
// characters.
func sessionID(id string) string {
	odd := strings.ContainsFunc(id, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == '\'' || r == '"' || r == 0xfffd
	})
	if len(id) <= maxSessionID && !odd {
		return id
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return fmt.Sprintf("%016x", h.Sum64())
}

func projectName(dir string) string {
	if dir == "" {
		return "none"
	}
	return ace.Cut(filepath.Base(filepath.Clean(dir)), maxSessionID)
}
