package agentrun

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
)

// Types of the lines of a log that are not the agent's.
const (
	lineCall    = "acescope_call"    // the first: what was called, and how
	lineGarbage = "acescope_garbage" // what the agent printed that is no JSON
	lineStderr  = "acescope_stderr"  // the begin and the end of standard error
	lineEnd     = "acescope_end"     // the last: how it ended
)

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
	Continued      bool        `json:"continued,omitempty"` // of an earlier attempt
	Instruction    Instruction `json:"instruction"`
	// Before is how long the session's transcript was when the call began, in bytes.
	Before int64 `json:"transcript_bytes,omitempty"`
	// Meter is what the agent's process counts on from, and Used what earlier attempts used:
	// no line of its own tells.
	Meter agentcli.Meter `json:"meter,omitzero"`
	Used  ace.Usage      `json:"used,omitzero"`
}

// Instruction is what a log tells of an instruction.
type Instruction struct {
	SHA256  string `json:"sha256"`
	Size    int    `json:"size"`
	Preview string `json:"preview"`
}

// previewBytes is how much of an instruction is shown in a log.
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

type headLine struct {
	Type string `json:"type"`
	Call Header `json:"call"`
}

type endLine struct {
	Type string `json:"type"`
	End  footer `json:"end"`
}

// ErrNoLog means that what was read is no log of an agent's call.
var ErrNoLog = errors.New("no log of an agent's call")

// Log is what a log tells.
type Log struct {
	Header  Header
	End     *footer // nil of a log that breaks off
	Outcome agentcli.Outcome
	Meter   agentcli.Meter // the session's sums as last told
	Ended   bool           // the agent told a result
	Events  int64          // of the agent
}

// ReadLog reads a log, whole or broken off, and tells of every event of the agent.
func ReadLog(r io.Reader, each func(n int64, e agentcli.Event)) (Log, error) {
	var l Log
	lines := agentcli.NewLineReader(r)
	first, err := lines.Next()
	if errors.Is(err, io.EOF) {
		return l, ErrNoLog
	}
	if err != nil {
		return l, err
	}
	var head headLine
	if json.Unmarshal(first.Bytes, &head) != nil || head.Type != lineCall {
		return l, ErrNoLog
	}
	l.Header = head.Call
	stderr, judge := "", agentcli.Judge{Meter: l.Header.Meter}
	add := func(e agentcli.Event, line int64) {
		// The end that OpenCode's reader makes of any stream's end is none of the agent's.
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
		switch ownLine(line.Bytes) {
		case lineEnd:
			l.End = footerOf(line.Bytes)
		case lineStderr:
			stderr = textOf(line.Bytes)
		case lineGarbage:
			add(garbageOf(line.Bytes), line.Number)
		default:
			for _, e := range parser.Line(line.Bytes) {
				add(e, line.Number)
			}
		}
	}
	for _, e := range parser.End() {
		add(e, 0)
	}
	exit := agentcli.Exit{}
	if l.End != nil {
		exit.Code = l.End.ExitCode
	}
	l.Outcome, l.Meter = judge.Outcome(exit, stderr), judge.Meter
	return l, nil
}

var ownPrefix = []byte(`{"type":"acescope_`)

// ownLine is the type of a line that is ours, "" of others.
func ownLine(line []byte) string {
	rest, ok := bytes.CutPrefix(line, ownPrefix)
	if !ok {
		return ""
	}
	name, _, _ := bytes.Cut(rest, []byte{'"'})
	return "acescope_" + string(name)
}

func footerOf(line []byte) *footer {
	var l endLine
	if json.Unmarshal(line, &l) != nil {
		return nil
	}
	return &l.End
}

type stderrLine struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Size int64  `json:"size"` // of all of it, in bytes
}

func textOf(line []byte) string {
	var l stderrLine
	_ = json.Unmarshal(line, &l) // what is not understood has no text
	return l.Text
}

type garbageLine struct {
	Type string `json:"type"`
	Name string `json:"name"`
	Text string `json:"text"`
	Size int64  `json:"size,omitempty"`
}

func garbageOf(line []byte) agentcli.Event {
	var l garbageLine
	_ = json.Unmarshal(line, &l)
	return agentcli.Event{Kind: agentcli.KindGarbage, Name: l.Name, Text: l.Text, Size: l.Size}
}

// readLogFile reads a log by its path.
func readLogFile(path string, each func(n int64, e agentcli.Event)) (Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return Log{}, err
	}
	defer f.Close()
	return ReadLog(f, each)
}
