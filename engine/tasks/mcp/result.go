package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
)

// reply is the answer to a call about one run. Its own fields override those of the result.
type reply struct {
	SessionID string     `json:"session_id"`
	RunID     string     `json:"run_id"`
	AgentName string     `json:"agent_name,omitempty"`
	Type      run.Type   `json:"type,omitempty"`
	Mode      run.Mode   `json:"execution_mode,omitempty"`
	Status    run.Status `json:"status"`
	Reason    run.Reason `json:"reason,omitempty"`
	Error     string     `json:"error,omitempty"`
	Runner    string     `json:"runner_id,omitempty"`
	Started   time.Time  `json:"started_at,omitzero"`

	// Fields of a status.
	Parent     string    `json:"parent_session_id,omitempty"`
	ProjectDir string    `json:"project_dir,omitempty"`
	Created    time.Time `json:"created_at,omitzero"`
	TimeoutAt  time.Time `json:"timeout_at,omitzero"`

	*run.Result         // nil in the answer to a status call, and before the end of the run
	Stdout      *string `json:"stdout,omitempty"` // of programs
	Stderr      *string `json:"stderr,omitempty"`

	// Message says what was truncated, or how to proceed.
	Message string `json:"message,omitempty"`
}

func newReply(in run.Input, status run.Status) reply {
	return reply{RunID: in.RunID, SessionID: in.SessionID, AgentName: in.Name(), Type: in.Type, Mode: in.Mode,
		Status: status}
}

func (s *Server) result(ctx context.Context, _ call, a idArgs) (any, error) {
	state, err := s.state(ctx, a.SessionID)
	if err != nil {
		return nil, err
	}
	out := newReply(state.Input, state.Status)
	if state.Status.Over() && state.Result != nil {
		return s.withResult(ctx, out, *state.Result), nil
	}
	out.Message = "The run has not ended: there is no result yet. Try again later."
	return out, nil
}

func (r *reply) setOutcome(result run.Result) {
	r.Status = result.Status
	r.Reason = result.Reason
	r.Error = result.Error
	r.Runner = cmp.Or(result.Runner, r.Runner)
	if !result.StartedAt.IsZero() {
		r.Started = result.StartedAt.UTC()
	}
}

// withResult adds a result to a reply and truncates its texts.
func (s *Server) withResult(ctx context.Context, out reply, r run.Result) reply {
	out.setOutcome(r)
	var notes []string
	left := MaxResult
	if out.Type == run.ExecuteTask {
		out.Stdout = &r.Stdout
		out.Stderr = &r.Stderr
		left -= utf8.RuneCountInString(r.Stdout) + utf8.RuneCountInString(r.Stderr)
		notes = append(notes, s.streamNote(ctx, "stdout", r.Stdout, r.StdoutRef),
			s.streamNote(ctx, "stderr", r.Stderr, r.StderrRef))
	}
	var note string
	r.Output, note = s.output(ctx, r, max(left, 0))
	r.Log, r.LogPath, r.Claim = nil, "", 0 // of no use to the caller
	out.Result = &r
	notes = append(notes, note)
	if r.Dropped > 0 {
		notes = append(notes, "Not stored, above the limit: "+ace.Count(r.Dropped, "byte")+".")
	}
	notes = slices.DeleteFunc(notes, func(note string) bool { return note == "" })
	out.Message = strings.Join(notes, " ")
	return out
}

// streamNote returns a note on where the whole text of a truncated stream is, or "".
func (s *Server) streamNote(ctx context.Context, name, text string, ref *ace.Ref) string {
	if ref == nil || ref.Size <= int64(len(text)) {
		return ""
	}
	return fmt.Sprintf("%s is its beginning and its end; the whole text is %s.", name, s.location(ctx, *ref))
}

// output returns the output of a run in at most the given number of characters. A longer
// output becomes a JSON string of its beginning, and the note says so.
func (s *Server) output(ctx context.Context, r run.Result, most int) (out json.RawMessage, note string) {
	if r.OutputRef == nil {
		if utf8.RuneCount(r.Output) <= most || len(r.Output) == 0 {
			return r.Output, ""
		}
		return jsonPrefix(unquote(r.Output), most),
			fmt.Sprintf("output is truncated to its first %s.", ace.Count(most, "character"))
	}
	location := s.location(ctx, *r.OutputRef)
	data, whole, err := s.read(ctx, *r.OutputRef, most)
	switch {
	case err != nil:
		return nil, fmt.Sprintf("output has %s and cannot be read here (%s); it is %s.",
			ace.Count(r.OutputRef.Size, "byte"), oneLine(err.Error()), location)
	case !whole || utf8.RuneCount(data) > most:
		return jsonPrefix(string(data), most),
			fmt.Sprintf("output is truncated to its first %s; the whole text has %s and is %s.",
				ace.Count(most, "character"), ace.Count(r.OutputRef.Size, "byte"), location)
	case r.OutputIs == run.OutputJSON && json.Valid(data):
		return data, ""
	}
	return jsonPrefix(unquote(data), most), ""
}

// unquote returns the text of a JSON string, and other data unchanged.
func unquote(data []byte) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	return string(data)
}

// jsonPrefix returns the first characters of a text as a JSON string.
func jsonPrefix(text string, most int) json.RawMessage {
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most])
	}
	data, _ := json.Marshal(text) // cannot fail for a string
	return data
}

// read reads an artifact, or the beginning of it that has at least the given number of
// characters.
func (s *Server) read(ctx context.Context, ref ace.Ref, most int) (data []byte, whole bool, err error) {
	if s.o.Artifacts == nil {
		return nil, false, errors.New("artifacts are on the machine of the runner")
	}
	r, err := s.o.Artifacts.Open(ctx, ref)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	data, err = io.ReadAll(io.LimitReader(r, int64(most+1)*utf8.UTFMax))
	return data, int64(len(data)) == ref.Size, err
}

// location describes an artifact by its file, or by its digest if it is on another machine.
func (s *Server) location(ctx context.Context, ref ace.Ref) string {
	if s.o.Artifacts != nil {
		if path, err := s.o.Artifacts.Path(ctx, ref); err == nil {
			return "the file " + path
		}
	}
	return "artifact " + ref.SHA256
}

// started answers a call that has started a run.
func (s *Server) started(ctx context.Context, c call, in run.Input) (any, error) {
	out := newReply(in, run.Pending)
	switch in.Mode {
	case run.AsyncPoll:
		out.Message = "The run was started. Call get_agent_session_status, and after the end get_agent_session_result, " +
			"with this session_id or run_id."
		return out, nil
	case run.AsyncCallback:
		out.Message = fmt.Sprintf(
			"The run was started. Session %s gets a message when the run ends: do not wait for it.",
			in.ParentSessionID)
		return out, nil
	}
	return s.await(ctx, c, out)
}

// await waits for the end of a run. After the maximum wait, or when the server closes, the
// answer says how to proceed.
func (s *Server) await(ctx context.Context, c call, out reply) (any, error) {
	wait, cancel := context.WithTimeout(ctx, s.o.Wait)
	defer context.AfterFunc(s.life, cancel)()
	var progress sync.WaitGroup
	progress.Go(func() { s.reportProgress(wait, c, out.RunID) })
	defer progress.Wait()
	defer cancel()
	res, err := s.o.Service.Await(wait, out.RunID)
	if err == nil {
		return s.withResult(ctx, out, res), nil
	}
	next := "call get_agent_session_status or get_agent_session_result with run_id " + out.RunID +
		"; stop_agent_session stops it"
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the call was canceled (%w), and run %s of session %s continues: %s",
			ctx.Err(), out.RunID, out.SessionID, next)
	case s.life.Err() != nil:
		out.Message = "This server is closing. The run continues: " + next + "."
	case wait.Err() != nil:
		out.Message = fmt.Sprintf(
			"The run has not ended within %s, the maximum wait of a call. It continues: %s.", s.o.Wait, next)
	default:
		return nil, err
	}
	out.Status = s.statusNow(ctx, out.RunID, run.Running)
	return out, nil
}

// statusNow returns the status of a run, or the last known one if there is no answer in time.
func (s *Server) statusNow(ctx context.Context, id string, last run.Status) run.Status {
	const timeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	state, err := s.o.Service.State(ctx, id)
	if err != nil || state.Status == "" {
		return last
	}
	return state.Status
}

// reportProgress sends progress notifications until the context ends, if the client asked for
// them.
func (s *Server) reportProgress(ctx context.Context, c call, id string) {
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return
	}
	start := time.Now()
	status := run.Pending
	tick := time.NewTicker(s.o.Progress)
	defer tick.Stop()
	for n := 1.0; ; n++ {
		text := fmt.Sprintf("%s, %s since the start", status, time.Since(start).Round(time.Second))
		err := c.req.Session.NotifyProgress(ctx,
			&sdk.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: text})
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		status = s.statusNow(ctx, id, status)
	}
}
