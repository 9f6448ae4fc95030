package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// maxMatchWithin bounds the time that a run waits for a runner, in seconds.
const maxMatchWithin = 30 * 24 * 3600

// input validates a request and returns the input of its run, with defaults and with large values
// stored as artifacts.
func (r *Runs) input(ctx context.Context, q run.Request) (run.Input, error) {
	in, err := r.common(ctx, q)
	if err != nil {
		return in, err
	}
	if q.AgentName == "" {
		return in, badRequest("agent_name is missing: run \"acescope agent list\" for the blueprints")
	}
	b, check, err := r.lib.Load(q.AgentName)
	if err != nil {
		return in, err
	}
	if b.Type == run.Deterministic {
		err = r.setParameters(ctx, &in, q, b, check)
	} else {
		err = r.setAgent(ctx, &in, q, b)
	}
	if err != nil {
		return in, err
	}
	if in.Requirements, err = mergeRequirements(b, q.Requirements); err != nil {
		return in, err
	}
	if q.SessionID != "" {
		err = r.checkSessionID(ctx, in)
	}
	return in, errors.Join(err, r.setBlueprint(ctx, &in, b))
}

// common validates the fields that Start and Resume share.
func (r *Runs) common(ctx context.Context, q run.Request) (run.Input, error) {
	in := run.Input{
		RunID: q.RunID, SessionID: q.SessionID, Mode: cmp.Or(q.Mode, run.Sync), ProjectDir: q.ProjectDir,
		ParentSessionID: q.ParentSessionID, ParentRunID: q.ParentRunID, MatchWithin: q.MatchWithin,
		By: r.secrets.String(q.By), CreatedAt: time.Now().UTC(), Revision: run.Revision,
	}
	for _, f := range []struct{ name, value string }{{"run_id", q.RunID}, {"session_id", q.SessionID},
		{"parent_session_id", q.ParentSessionID}, {"parent_run_id", q.ParentRunID}} {
		if f.value != "" && !run.ValidName(f.value) {
			return in, badRequest("%s %q: use at most 100 letters, digits, dots, dashes and underscores",
				f.name, shorten(f.value))
		}
	}
	switch {
	case in.Mode != run.Sync && in.Mode != run.AsyncPoll && in.Mode != run.AsyncCallback:
		return in, badRequest("execution_mode %q: use %s, %s or %s", shorten(string(q.Mode)),
			run.Sync, run.AsyncPoll, run.AsyncCallback)
	case q.ProjectDir != "" && !filepath.IsAbs(q.ProjectDir):
		return in, badRequest("project_dir %q: use an absolute path", shorten(q.ProjectDir))
	case q.MatchWithin < 0 || q.MatchWithin > maxMatchWithin:
		return in, badRequest("match_within_seconds %d: use 1 to %d, or 0 for %d", q.MatchWithin,
			maxMatchWithin,
			run.DefaultMatchWithin)
	}
	if in.ProjectDir != "" {
		in.ProjectDir = filepath.Clean(in.ProjectDir)
	}
	in.RunID = cmp.Or(in.RunID, newID("run_"))
	in.SessionID = cmp.Or(in.SessionID, newID("ses_"))
	return in, r.checkParent(ctx, in)
}

// checkParent checks that the session to call back is open.
func (r *Runs) checkParent(ctx context.Context, in run.Input) error {
	if in.Mode != run.AsyncCallback {
		return nil
	}
	if in.ParentSessionID == "" {
		return badRequest("execution_mode %s needs parent_session_id, the session to call back; %s does not",
			run.AsyncCallback, run.AsyncPoll)
	}
	_, open, err := r.findSession(ctx, in.ParentSessionID)
	if err == nil && !open {
		err = badRequest("session %s is not open and cannot be called back: use %s, or the ID of an open session",
			in.ParentSessionID, run.AsyncPoll)
	}
	return err
}

// findSession reports whether an agent session exists and whether it is open.
func (r *Runs) findSession(ctx context.Context, id string) (exists, open bool, err error) {
	d, err := r.e.Client.DescribeWorkflowExecution(ctx, session.WorkflowID(id), "")
	if isNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("session %s: %w", id, err)
	}
	return true, d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// checkSessionID checks that a requested session ID is not in use.
func (r *Runs) checkSessionID(ctx context.Context, in run.Input) error {
	newest, err := r.newestOf(ctx, in.SessionID)
	exists := err == nil && newest != in.RunID // the same run ID means that the request is repeated
	if errors.Is(err, run.ErrNotFound) {
		exists, _, err = r.findSession(ctx, in.SessionID)
	}
	if err == nil && exists {
		err = badRequest("session %s already exists: resume it, or choose another session_id", in.SessionID)
	}
	return err
}

// setAgent sets the fields of the run of an agent.
func (r *Runs) setAgent(ctx context.Context, in *run.Input, q run.Request, b run.Blueprint) error {
	in.Type, in.AgentName = run.StartSession, b.Name
	if q.Parameters != nil {
		return badRequest("%s is an agent: it takes a prompt and no parameters", b.Name)
	}
	if strings.TrimSpace(q.Prompt) == "" {
		return badRequest("%s is an agent: it needs a prompt", b.Name)
	}
	return r.setPrompt(ctx, in, q.Prompt)
}

// setPrompt sets the prompt, with secrets redacted.
func (r *Runs) setPrompt(ctx context.Context, in *run.Input, text string) error {
	if !utf8.ValidString(text) {
		return badRequest("the prompt is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(text); n > run.MaxPrompt {
		return badRequest("the prompt has %d characters, more than %d: put long text into a file and name the file",
			n, run.MaxPrompt)
	}
	in.Prompt = r.secrets.String(text)
	if len(in.Prompt) <= ace.InlineBytes {
		return nil
	}
	ref, err := r.e.Artifacts.PutBytes(ctx, []byte(in.Prompt), "text/plain; charset=utf-8")
	if err != nil {
		return fmt.Errorf("store the prompt: %w", err)
	}
	in.Prompt, in.PromptRef = "", &ref
	return nil
}

// setParameters sets the fields of the run of a deterministic program.
func (r *Runs) setParameters(ctx context.Context, in *run.Input, q run.Request, b run.Blueprint,
	check func(json.RawMessage) (json.RawMessage, error)) error {
	in.Type, in.TaskName = run.ExecuteTask, b.Name
	switch {
	case q.Prompt != "":
		return badRequest("%s is a program: it takes parameters and no prompt", b.Name)
	case q.Parameters == nil:
		return badRequest("%s is a program: it needs parameters; use {} for an empty set", b.Name)
	case len(q.Parameters) > run.MaxParams:
		return badRequest("the parameters have %d bytes, more than %d: put long text into a file and name the file",
			len(q.Parameters), run.MaxParams)
	}
	filled := q.Parameters
	if check != nil {
		var err error
		if filled, err = check(q.Parameters); err != nil {
			return badRequest("%s: %w", b.Name, err)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, filled); err != nil || !bytes.HasPrefix(compact.Bytes(), []byte("{")) {
		return badRequest("parameters of %s: not a JSON object", b.Name)
	}
	if clean := r.secrets.Bytes(bytes.Clone(compact.Bytes())); !bytes.Equal(clean, compact.Bytes()) {
		return badRequest("the parameters of %s contain a secret, and parameters are recorded: "+
			"let the program read it from a variable in the blueprint's env", b.Name)
	}
	if compact.Len() <= ace.InlineBytes {
		in.Parameters = compact.Bytes()
		return nil
	}
	ref, err := r.e.Artifacts.PutBytes(ctx, compact.Bytes(), "application/json")
	if err != nil {
		return fmt.Errorf("store the parameters: %w", err)
	}
	in.ParametersRef = &ref
	return nil
}

// mergeRequirements merges the requirements of the blueprint and the caller.
func mergeRequirements(b run.Blueprint, more runner.Requirements) (runner.Requirements, error) {
	if err := more.Check(); err != nil {
		return more, badRequest("additional_demands: %w", err)
	}
	var own runner.Requirements
	if b.Requirements != nil {
		own = *b.Requirements
	}
	both, err := own.Merge(more)
	if err != nil {
		return both, badRequest("additional_demands of %s: %w", b.Name, err)
	}
	if both.ExecutorType == "" {
		both.ExecutorType = runner.ClaudeCode
		if b.Type == run.Deterministic {
			both.ExecutorType = runner.Deterministic
		}
	}
	return both, nil
}

// setBlueprint records the blueprint with the run. A large one is stored as an artifact, and the
// texts that only the runner needs are removed from the input.
func (r *Runs) setBlueprint(ctx context.Context, in *run.Input, b run.Blueprint) error {
	in.Blueprint = &b
	whole, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("blueprint %s: %w", b.Name, err)
	}
	if len(whole) <= ace.InlineBytes {
		return nil
	}
	ref, err := r.e.Artifacts.PutBytes(ctx, whole, "application/json")
	if err != nil {
		return fmt.Errorf("store the blueprint: %w", err)
	}
	in.BlueprintRef = &ref
	in.Blueprint.Script, in.Blueprint.Schema, in.Blueprint.Description = "", nil, ""
	return nil
}

func badRequest(format string, args ...any) error {
	return fmt.Errorf("%w: %w", run.ErrBadRequest, fmt.Errorf(format, args...))
}

// newID returns a prefix and twelve random hexadecimal digits.
func newID(prefix string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// shorten truncates a text for an error message.
func shorten(text string) string { return ace.Cut(text, 60) }

// Resume implements [run.Service]: it sends another prompt to an open agent session, on the machine of the
// session.
func (r *Runs) Resume(ctx context.Context, q run.Request) (run.Input, error) {
	if q.SessionID == "" {
		return run.Input{}, badRequest("session_id is missing: set the session to resume")
	}
	in, err := r.common(ctx, q)
	if err != nil {
		return in, err
	}
	if q.Parameters != nil {
		return in, badRequest("resuming a session takes a prompt and no parameters")
	}
	if strings.TrimSpace(q.Prompt) == "" {
		return in, badRequest("resuming a session needs a prompt")
	}
	if err := r.setSession(ctx, q, &in); err != nil {
		return in, err
	}
	if err := r.setPrompt(ctx, &in, q.Prompt); err != nil {
		return in, err
	}
	return r.begin(ctx, q, in)
}

// setSession finds the session and requires its machine.
func (r *Runs) setSession(ctx context.Context, q run.Request, in *run.Input) error {
	in.Type = run.ResumeSession
	last, err := r.lastOf(ctx, in.SessionID)
	if err != nil {
		return err
	}
	if last.Input.IsProgram() {
		return badRequest("a deterministic run cannot be resumed: start %s again with its parameters",
			last.Input.Name())
	}
	if own := last.Input.Requirements; last.Input.RunID != "" && runner.Agent(own.ExecutorType) == "" {
		return r.setExternalSession(q, in, last)
	}
	s, err := r.e.Describe(ctx, in.SessionID)
	switch {
	case errors.Is(err, ErrNoSession):
		return run.ErrNotFound.Of(in.SessionID)
	case err != nil:
		return err
	case !s.Open():
		return fmt.Errorf("session %s: %w: start a new one", in.SessionID, run.ErrOver)
	}
	in.AgentName = cmp.Or(last.Input.AgentName, s.Input.Agent)
	in.ProjectDir = s.Input.WorkingDir
	d := runner.Requirements{ProjectDir: s.Input.WorkingDir, ExecutorType: runner.TypeOf(s.Input.Agent)}
	if h := cmp.Or(s.Host, s.Input.Host); h != nil {
		d.Hostname = h.Name
	}
	return r.setRequirements(q, in, d)
}

// setExternalSession resumes a session of a foreign executor on the runner of its last run.
func (r *Runs) setExternalSession(q run.Request, in *run.Input, last run.State) error {
	if !last.Status.Over() {
		return badRequest("run %s of session %s is %s: wait for its end", last.Input.RunID, in.SessionID,
			last.Status)
	}
	in.AgentName = last.Input.AgentName
	in.Blueprint = last.Input.Blueprint
	in.BlueprintRef = last.Input.BlueprintRef
	in.ProjectDir = last.Input.ProjectDir
	d := last.Input.Requirements
	if c := last.Claim; c != nil {
		d.Hostname = c.Capabilities.Hostname
	}
	return r.setRequirements(q, in, d)
}

func (r *Runs) setRequirements(q run.Request, in *run.Input, d runner.Requirements) (err error) {
	if err := q.Requirements.Check(); err != nil {
		return badRequest("additional_demands: %w", err)
	}
	if in.Requirements, err = d.Merge(q.Requirements); err != nil {
		return badRequest("the requirements contradict the machine of session %s: %w", in.SessionID, err)
	}
	return nil
}

// lastOf returns the state of the newest run of a session, or the zero value if it has no runs.
func (r *Runs) lastOf(ctx context.Context, sessionID string) (run.State, error) {
	id, err := r.newestOf(ctx, sessionID)
	if errors.Is(err, run.ErrNotFound) {
		return run.State{}, nil
	}
	if err != nil {
		return run.State{}, err
	}
	return r.stateOf(ctx, id)
}
