package agentcall

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/internal/process"
	"acescope/engine/internal/redact"
	"acescope/engine/store/artifact"
)

// Types of the lines of a log that acescope writes itself.
const (
	lineCall    = "acescope_call"    // the first line: the call
	lineGarbage = "acescope_garbage" // output of the agent that is not JSON
	lineStderr  = "acescope_stderr"  // the beginning and the end of standard error
	lineEnd     = "acescope_end"     // the last line: the result
)

// ownPrefix begins every line that acescope writes itself.
var ownPrefix = []byte(`{"type":"acescope_`)

// ownLine is a line that acescope writes itself. Only the fields of its type are set.
type ownLine struct {
	Type string  `json:"type"`
	Call *Header `json:"call,omitempty"`
	End  *footer `json:"end,omitempty"`
	Name string  `json:"name,omitempty"` // of garbage
	Text string  `json:"text,omitempty"` // of garbage and of standard error
	Size int64   `json:"size,omitempty"` // of the whole text, in bytes
}

// EventLog writes the events of an agent to a live log.
type EventLog struct {
	*artifact.LiveLog
	Redact *redact.Redactor // of the lines that acescope writes itself, and of texts in parts
	Lines  int64
	Err    error // the first one; nothing is written after it

	parts *redact.Stream // redacts the text that arrives in parts, or nil
	part  []byte         // the line of the newest part, which is not written yet
	text  []byte         // the redacted text of that line
	// Fault, if set, is called before each write, for tests that fill the disk.
	Fault func(path string) error
}

// Add writes the line of an event. Output that is not JSON is written as JSON.
func (l *EventLog) Add(e agentcli.Event) {
	if e.Kind != agentcli.KindDelta && e.Kind != agentcli.KindOther {
		l.endParts()
	}
	switch {
	case e.Kind == agentcli.KindDelta && e.Raw != nil:
		if l.parts == nil {
			l.parts = l.Redact.Stream()
		} else {
			l.writePart()
		}
		l.part = append(l.part[:0], e.Raw...)
		l.text = l.parts.Add([]byte(e.Text))
	case e.Kind == agentcli.KindGarbage:
		l.AddOwn(ownLine{Type: lineGarbage, Name: e.Name, Text: e.Text, Size: e.Size})
	case e.Part == 0 && e.Raw != nil:
		l.write(e.Raw)
	}
}

func (l *EventLog) endParts() {
	if l.parts != nil {
		l.text = append(l.text, l.parts.Flush()...)
		l.writePart()
		l.parts = nil
	}
}

// writePart writes the line of the newest part with its redacted text: a part may end within a secret.
func (l *EventLog) writePart() {
	quoted, err := json.Marshal(string(l.text))
	if err != nil {
		l.Err = cmp.Or(l.Err, err)
		return
	}
	for _, path := range []string{"event.delta.text", "event.delta.thinking", "content"} {
		if old := gjson.GetBytes(l.part, path); old.Type == gjson.String {
			l.write(slices.Concat(l.part[:old.Index], quoted, l.part[old.Index+len(old.Raw):]))
			return
		}
	}
}

// AddOwn writes a line that does not come from the agent. What ReadLog needs to understand the line is
// not redacted.
func (l *EventLog) AddOwn(v any) {
	l.endParts()
	line, err := json.Marshal(v)
	if err != nil {
		l.Err = cmp.Or(l.Err, err)
		return
	}
	l.write(l.Redact.Fields(line, "type", "provider", "exit_class"))
}

func (l *EventLog) write(line []byte) {
	if l.Err == nil && l.Fault != nil {
		l.Err = l.Fault(l.Path())
	}
	if l.Err == nil {
		l.Err = l.Line(line)
	}
	l.Lines++
}

// Header is the first line of a log.
type Header struct {
	ID             string      `json:"id"` // of the call, the same for every attempt
	At             time.Time   `json:"at"`
	WorkflowID     string      `json:"workflow_id"`
	RunID          string      `json:"run_id"`
	ActivityName   string      `json:"activity_name"`
	SequenceNumber int         `json:"sequence_number"`
	Attempt        int32       `json:"attempt"`
	Provider       string      `json:"provider"`
	Version        string      `json:"version"`
	Argv           []string    `json:"argv"`
	WorkingDir     string      `json:"working_dir"`
	Model          string      `json:"model,omitempty"`
	PermissionMode string      `json:"permission_mode,omitempty"`
	Session        string      `json:"agent_session_id,omitempty"`
	Resumed        bool        `json:"resumed,omitempty"`
	Continued      bool        `json:"continued,omitempty"` // from an earlier attempt
	Instruction    Instruction `json:"instruction"`
	// Before is the length of the session's transcript before the call, in bytes.
	Before int64 `json:"transcript_bytes,omitempty"`
	// Meter is the meter's state before the call, and Used the usage of earlier attempts.
	Meter agentcli.Meter `json:"meter,omitzero"`
	Used  ace.Usage      `json:"used,omitzero"`
}

// Instruction identifies an instruction in a log.
type Instruction struct {
	SHA256  string `json:"sha256"`
	Size    int    `json:"size"`
	Preview string `json:"preview"`
}

// previewBytes bounds the preview of an instruction or an argument in a log.
const previewBytes = 500

func instructionOf(text string) Instruction {
	sum := sha256.Sum256([]byte(text))
	return Instruction{hex.EncodeToString(sum[:]), len(text), ace.Cut(text, previewBytes)}
}

// footer is the last line of a log.
type footer struct {
	Success    bool      `json:"success"`
	ExitClass  string    `json:"exit_class"`
	Retry      bool      `json:"retry,omitempty"`
	Error      string    `json:"error,omitempty"`
	SessionID  string    `json:"agent_session_id,omitempty"`
	CostUSD    float64   `json:"cost_usd"`
	Usage      ace.Usage `json:"usage"`
	DurationMS float64   `json:"duration_ms"`
	ExitCode   int       `json:"exit_code"`
	Events     int64     `json:"events"`
	At         time.Time `json:"at"`
}

// Log is the content of a log.
type Log struct {
	Header  Header
	End     *footer // nil if the log is truncated
	Outcome agentcli.Outcome
	Meter   agentcli.Meter // the last cumulative sums of the session
	Ended   bool           // the agent sent a result
	Events  int64          // of the agent
}

// ErrNoLog means that the data is not a log of an agent call.
var ErrNoLog = errors.New("not a log of an agent call")

// ReadLog reads a log, even a truncated one, and calls each, if set, for every event of the
// agent.
func ReadLog(r io.Reader, each func(n int64, e agentcli.Event)) (Log, error) {
	var l Log
	lines := agentcli.NewLineReader(r)
	first, err := lines.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return l, err
	}
	var head ownLine
	if err != nil || json.Unmarshal(first.Bytes, &head) != nil || head.Type != lineCall || head.Call == nil {
		return l, ErrNoLog
	}
	l.Header = *head.Call
	stderr, judge := "", agentcli.Judge{Meter: l.Header.Meter}
	add := func(e agentcli.Event, line int64) {
		// The result that OpenCode's parser makes at the end of any stream is not the agent's.
		l.Ended = l.Ended || e.Kind == agentcli.KindResult && line > 0
		judge.Add(e)
		if each != nil {
			each(l.Events, e)
		}
		l.Events++
	}
	parser := agentcli.NewParser(agentcli.CLI(l.Header.Provider))
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return l, err
		}
		if !bytes.HasPrefix(line.Bytes, ownPrefix) {
			for _, e := range parser.Line(line.Bytes) {
				add(e, line.Number)
			}
			continue
		}
		var own ownLine
		_ = json.Unmarshal(line.Bytes, &own) // an invalid line has no type
		switch own.Type {
		case lineEnd:
			l.End = own.End
		case lineStderr:
			stderr = own.Text
		case lineGarbage:
			add(agentcli.Event{Kind: agentcli.KindGarbage, Name: own.Name, Text: own.Text, Size: own.Size},
				line.Number)
		}
	}
	for _, e := range parser.End() {
		add(e, 0)
	}
	exit := process.Exit{Class: process.Exited}
	if l.End != nil {
		exit.Code = l.End.ExitCode
	}
	l.Outcome, l.Meter = judge.Outcome(exit, stderr), judge.Meter
	return l, nil
}

func readLogFile(path string) (Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return Log{}, err
	}
	defer f.Close()
	return ReadLog(f, nil)
}

// final reports whether the log has a result that another attempt would not change.
func (l Log) final() bool {
	switch {
	case l.End != nil && (l.End.Success || l.Ended):
		return !l.End.Retry
	case l.End != nil:
		return !l.End.Retry && agentcli.Class(l.End.ExitClass) != ClassCanceled
	}
	return l.Ended && !l.Outcome.Retry
}

// usage returns the usage of the attempt and of those before it, as far as the log has it.
func (l Log) usage() ace.Usage {
	if l.End != nil {
		return l.End.Usage
	}
	return l.Header.Used.Add(l.Outcome.Usage)
}
