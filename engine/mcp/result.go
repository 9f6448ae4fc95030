package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"acescope/engine/ace"
	"acescope/engine/run"
)

// outcome is what a call tells of a run that it started or asked for: at the end its
// result too.
type outcome struct {
	SessionID string     `json:"session_id"`
	RunID     string     `json:"run_id"`
	AgentName string     `json:"agent_name,omitempty"`
	Type      run.Type   `json:"type,omitempty"`
	Mode      run.Mode   `json:"execution_mode,omitempty"`
	Status    run.Status `json:"status"`
	Reason    run.Reason `json:"reason,omitempty"`
	Error     string     `json:"error,omitempty"`

	Output   json.RawMessage `json:"output,omitempty"`
	OutputIs string          `json:"output_is,omitempty"` // json, text, none or invalid
	Stdout   *string         `json:"stdout,omitempty"`    // of programs
	Stderr   *string         `json:"stderr,omitempty"`
	ExitCode *int            `json:"exit_code,omitempty"`
	Signal   string          `json:"signal,omitempty"`
	Seconds  *float64        `json:"duration_seconds,omitempty"`
	Started  *time.Time      `json:"started_at,omitempty"`
	Runner   string          `json:"runner_id,omitempty"`
	Turn     int             `json:"turn,omitempty"`
	Usage    *ace.Usage      `json:"usage,omitempty"`

	OutputRef *ace.Ref `json:"output_ref,omitempty"`
	StdoutRef *ace.Ref `json:"stdout_ref,omitempty"`
	StderrRef *ace.Ref `json:"stderr_ref,omitempty"`
	Dropped   int64    `json:"dropped_bytes,omitempty"`

	// Message says what a reader must know besides: what was cut, how to go on.
	Message string `json:"message,omitempty"`
}

// ended puts a result into an outcome, its texts cut.
func (s *Server) ended(out outcome, r run.Result) outcome {
	out.Status, out.Reason, out.Error, out.Runner, out.Turn = r.Status, r.Reason, r.Error, r.Runner, r.Turn
	out.OutputIs, out.ExitCode, out.Signal, out.Seconds, out.Dropped = r.OutputIs, r.ExitCode, r.Signal, &r.DurationSeconds, r.Dropped
	out.OutputRef, out.StdoutRef, out.StderrRef = r.OutputRef, r.StdoutRef, r.StderrRef
	if !r.StartedAt.IsZero() {
		out.Started = &r.StartedAt
	}
	if r.Usage != (ace.Usage{}) {
		out.Usage = &r.Usage
	}
	var notes []string
	left := MaxResult
	if out.Type == run.ExecuteTask {
		for _, t := range []struct {
			name, said string
			ref        *ace.Ref
			at         **string
		}{{"stdout", r.Stdout, r.StdoutRef, &out.Stdout}, {"stderr", r.Stderr, r.StderrRef, &out.Stderr}} {
			said := t.said
			*t.at = &said
			left -= utf8.RuneCountInString(said)
			if t.ref != nil && t.ref.Size > int64(len(said)) {
				notes = append(notes, fmt.Sprintf("%s is its beginning and its end; the whole is %s.", t.name, s.where(*t.ref)))
			}
		}
	}
	var note string
	out.Output, note = s.output(r, max(left, 0))
	if note != "" {
		notes = append(notes, note)
	}
	if r.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d bytes were more than is kept, and are nowhere.", r.Dropped))
	}
	out.Message = strings.Join(notes, " ")
	return out
}

// output is the output of a run in at most so many characters. What is longer becomes its
// beginning, as text.
func (s *Server) output(r run.Result, most int) (json.RawMessage, string) {
	if r.OutputRef == nil {
		if size := utf8.RuneCount(r.Output); size <= most || len(r.Output) == 0 {
			return r.Output, ""
		}
		return begin(plain(r.Output), most), fmt.Sprintf("output is cut to its first %d characters.", most)
	}
	where := s.where(*r.OutputRef)
	data, whole, err := s.read(*r.OutputRef, most)
	if err != nil {
		return nil, fmt.Sprintf("output has %d bytes and cannot be read here (%s); it is %s.", r.OutputRef.Size, line(err.Error()), where)
	}
	if whole && utf8.RuneCount(data) <= most {
		if r.OutputIs == "json" && json.Valid(data) {
			return data, ""
		}
		return begin(plain(data), most), ""
	}
	return begin(string(data), most), fmt.Sprintf("output is cut to its first %d characters; the whole has %d bytes and is %s.", most, r.OutputRef.Size, where)
}

// plain is the text of a JSON string, and of anything else the text that it is.
func plain(data []byte) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	return string(data)
}

// begin is the beginning of a text as a JSON string.
func begin(text string, most int) json.RawMessage {
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most])
	}
	data, err := json.Marshal(text)
	if err != nil {
		return nil // a string always can
	}
	return data
}

var errElsewhere = errors.New("artifacts are on the machine of the runner")

// read reads the beginning of an artifact, enough for so many characters.
func (s *Server) read(ref ace.Ref, most int) (data []byte, whole bool, err error) {
	if s.o.Artifacts == nil {
		return nil, false, errElsewhere
	}
	r, err := s.o.Artifacts.Open(ref)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	limit := int64(most+1) * utf8.UTFMax
	data, err = io.ReadAll(io.LimitReader(r, limit))
	return data, int64(len(data)) == ref.Size, err
}

// where says where an artifact is: its file, where it is on this machine.
func (s *Server) where(ref ace.Ref) string {
	if s.o.Artifacts != nil {
		if path, err := s.o.Artifacts.Path(ref); err == nil {
			return "the file " + path
		}
	}
	return "artifact " + ref.SHA256
}

type idArgs struct {
	SessionID string `json:"session_id"`
}

func (s *Server) result(ctx context.Context, _ call, a idArgs) (any, error) {
	state, err := s.state(ctx, a.SessionID)
	if err != nil {
		return nil, err
	}
	in := state.Input
	out := outcome{RunID: in.RunID, SessionID: in.SessionID, AgentName: in.Name(), Type: in.Type, Mode: in.Mode, Status: state.Status}
	if state.Result != nil && state.Status.Over() {
		return s.ended(out, *state.Result), nil
	}
	if state.Status.Over() {
		out.Message = "The run has ended without a result."
		return out, nil
	}
	out.Message = "The run has not ended: there is no result yet. Ask again later."
	return out, nil
}

func (s *Server) state(ctx context.Context, id string) (run.State, error) {
	if err := checkName("session_id", id); err != nil {
		return run.State{}, err
	}
	return s.o.Verbs.State(ctx, id)
}
