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
	"go.temporal.io/api/serviceerror"

	"acescope/engine/ace"
	"acescope/engine/run"
	"acescope/engine/runner"
	"acescope/engine/session"
)

// maxWithin bounds how long a run waits for a runner, in seconds.
const maxWithin = 30 * 24 * 3600

// input is what a request starts a run with: checked, with its defaults, and with what is
// large put aside.
func (r *Runs) input(ctx context.Context, q run.Request) (run.Input, error) {
	in, err := r.common(ctx, q)
	if err != nil {
		return in, err
	}
	if q.AgentName == "" {
		return in, fmt.Errorf("%w: agent_name is missing: acescope agent list shows the blueprints", run.ErrBadRequest)
	}
	b, check, err := r.lib.Load(q.AgentName)
	if err != nil {
		return in, err
	}
	if b.Type == run.Deterministic {
		err = r.program(ctx, &in, q, b, check)
	} else {
		err = r.agent(ctx, &in, q, b)
	}
	if err != nil {
		return in, err
	}
	if in.Demands, err = demands(b, q.Demands); err != nil {
		return in, err
	}
	if q.SessionID != "" {
		err = r.unused(ctx, in)
	}
	return in, errors.Join(err, r.aside(ctx, &in, b))
}

// common checks what starting and resuming have in common.
func (r *Runs) common(ctx context.Context, q run.Request) (run.Input, error) {
	in := run.Input{RunID: q.RunID, SessionID: q.SessionID, Mode: cmp.Or(q.Mode, run.Sync), ProjectDir: q.ProjectDir, ParentSessionID: q.ParentSessionID,
		ParentRunID: q.ParentRunID, MatchWithin: q.MatchWithin, By: r.secrets.String(q.By), CreatedAt: time.Now().UTC()}
	for _, f := range []struct{ name, value string }{{"run_id", q.RunID}, {"session_id", q.SessionID},
		{"parent_session_id", q.ParentSessionID}, {"parent_run_id", q.ParentRunID}} {
		if f.value != "" && !run.ValidName(f.value) {
			return in, fmt.Errorf("%w: %s %q: letters, digits, dot, dash and underscore only, at most 100", run.ErrBadRequest, f.name, shorten(f.value))
		}
	}
	switch {
	case in.Mode != run.Sync && in.Mode != run.AsyncPoll && in.Mode != run.AsyncCallback:
		return in, fmt.Errorf("%w: execution_mode %q: one of %s, %s and %s is needed", run.ErrBadRequest, shorten(string(q.Mode)), run.Sync, run.AsyncPoll, run.AsyncCallback)
	case q.ProjectDir != "" && !filepath.IsAbs(q.ProjectDir):
		return in, fmt.Errorf("%w: project_dir %q: an absolute path is needed", run.ErrBadRequest, shorten(q.ProjectDir))
	case q.MatchWithin < 0 || q.MatchWithin > maxWithin:
		return in, fmt.Errorf("%w: match_within_seconds %d: from 1 to %d, or 0 for %d", run.ErrBadRequest, q.MatchWithin, maxWithin, run.DefaultMatchWithin)
	}
	if in.ProjectDir != "" {
		in.ProjectDir = filepath.Clean(in.ProjectDir)
	}
	in.RunID = cmp.Or(in.RunID, newID("run_"))
	in.SessionID = cmp.Or(in.SessionID, newID("ses_"))
	return in, r.parent(ctx, in)
}

// parent checks that there is somebody to call back.
func (r *Runs) parent(ctx context.Context, in run.Input) error {
	if in.Mode != run.AsyncCallback {
		return nil
	}
	if in.ParentSessionID == "" {
		return fmt.Errorf("%w: execution_mode %s needs parent_session_id, the session that is told; %s needs none", run.ErrBadRequest, run.AsyncCallback, run.AsyncPoll)
	}
	_, open, err := r.sessionStands(ctx, in.ParentSessionID)
	if err == nil && !open {
		err = fmt.Errorf("%w: session %s is not open and cannot be told: choose %s, or give the id of an open one", run.ErrBadRequest, in.ParentSessionID, run.AsyncPoll)
	}
	return err
}

// sessionStands tells whether there is a session of an agent with the id, and whether it goes on.
func (r *Runs) sessionStands(ctx context.Context, id string) (there, open bool, err error) {
	d, err := r.e.Client.DescribeWorkflowExecution(ctx, session.WorkflowID(id), "")
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("session %s: %w", id, err)
	}
	return true, d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// unused checks that a session id which somebody chose is nobody's.
func (r *Runs) unused(ctx context.Context, in run.Input) error {
	taken := fmt.Errorf("%w: session %s exists already: resume it, or choose another session_id", run.ErrBadRequest, in.SessionID)
	newest, err := r.newestOf(ctx, in.SessionID)
	switch {
	case err == nil && newest != in.RunID:
		return taken
	case err == nil:
		return nil // asked for again
	case !errors.Is(err, run.ErrNotFound):
		return err
	}
	there, _, err := r.sessionStands(ctx, in.SessionID)
	if err == nil && there {
		return taken
	}
	return err
}

// agent fills in what an agent is given.
func (r *Runs) agent(ctx context.Context, in *run.Input, q run.Request, b run.Blueprint) error {
	in.Type, in.AgentName = run.StartSession, b.Name
	if q.Parameters != nil {
		return fmt.Errorf("%w: %s is an agent: it takes a prompt and no parameters", run.ErrBadRequest, b.Name)
	}
	if strings.TrimSpace(q.Prompt) == "" {
		return fmt.Errorf("%w: %s is an agent: it needs a prompt", run.ErrBadRequest, b.Name)
	}
	return r.prompt(ctx, in, q.Prompt)
}

// prompt keeps a prompt, without the secrets in it.
func (r *Runs) prompt(ctx context.Context, in *run.Input, text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%w: the prompt is not valid UTF-8", run.ErrBadRequest)
	}
	if n := utf8.RuneCountInString(text); n > run.MaxPrompt {
		return fmt.Errorf("%w: the prompt has %d characters, at most %d are taken: put what is long into a file and name it", run.ErrBadRequest, n, run.MaxPrompt)
	}
	in.Prompt = r.secrets.String(text)
	if len(in.Prompt) <= ace.InlineBytes {
		return nil
	}
	ref, err := r.e.Artifacts.PutBytes(ctx, []byte(in.Prompt), "text/plain; charset=utf-8")
	if err != nil {
		return fmt.Errorf("keep the prompt: %w", err)
	}
	in.Prompt, in.PromptRef = "", &ref
	return nil
}

// program fills in what a deterministic program is given.
func (r *Runs) program(ctx context.Context, in *run.Input, q run.Request, b run.Blueprint, check func(json.RawMessage) (json.RawMessage, error)) error {
	in.Type, in.TaskName = run.ExecuteTask, b.Name
	switch {
	case q.Prompt != "":
		return fmt.Errorf("%w: %s is a program: it takes parameters and no prompt", run.ErrBadRequest, b.Name)
	case q.Parameters == nil:
		return fmt.Errorf("%w: %s is a program: it needs parameters, {} where there are none to give", run.ErrBadRequest, b.Name)
	case len(q.Parameters) > run.MaxParams:
		return fmt.Errorf("%w: the parameters have %d bytes, at most %d are taken: put what is long into a file and name it", run.ErrBadRequest, len(q.Parameters), run.MaxParams)
	}
	filled := q.Parameters
	if check != nil {
		var err error
		if filled, err = check(q.Parameters); err != nil {
			return fmt.Errorf("%w: %s: %w", run.ErrBadRequest, b.Name, err)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, filled); err != nil || !bytes.HasPrefix(compact.Bytes(), []byte("{")) {
		return fmt.Errorf("%w: parameters of %s: a JSON object is needed", run.ErrBadRequest, b.Name)
	}
	if clean := r.secrets.Bytes(bytes.Clone(compact.Bytes())); !bytes.Equal(clean, compact.Bytes()) {
		return fmt.Errorf("%w: the parameters of %s hold a secret, and parameters are recorded: let the program read it from a variable that the blueprint's env names", run.ErrBadRequest, b.Name)
	}
	if compact.Len() <= ace.InlineBytes {
		in.Parameters = compact.Bytes()
		return nil
	}
	ref, err := r.e.Artifacts.PutBytes(ctx, compact.Bytes(), "application/json")
	if err != nil {
		return fmt.Errorf("keep the parameters: %w", err)
	}
	in.ParametersRef = &ref
	return nil
}

// demands are those of the blueprint and of the caller together.
func demands(b run.Blueprint, more runner.Demands) (runner.Demands, error) {
	if err := more.Check(); err != nil {
		return more, fmt.Errorf("%w: additional_demands: %w", run.ErrBadRequest, err)
	}
	var own runner.Demands
	if b.Demands != nil {
		own = *b.Demands
	}
	both, err := own.Merge(more)
	if err != nil {
		return both, fmt.Errorf("%w: additional_demands of %s: %w", run.ErrBadRequest, b.Name, err)
	}
	if both.ExecutorType == "" {
		both.ExecutorType = runner.ClaudeCode
		if b.Type == run.Deterministic {
			both.ExecutorType = runner.Deterministic
		}
	}
	return both, nil
}

// aside keeps the blueprint with the run; the long texts that only its runner needs lie in an
// artifact, which has the whole blueprint.
func (r *Runs) aside(ctx context.Context, in *run.Input, b run.Blueprint) error {
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
		return fmt.Errorf("keep the blueprint: %w", err)
	}
	in.BlueprintRef = &ref
	in.Blueprint.Script, in.Blueprint.Schema, in.Blueprint.Description = "", nil, ""
	return nil
}

// newID is a new id: a prefix and twelve hexadecimal digits.
func newID(prefix string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return prefix + hex.EncodeToString(b[:])
}

// shorten is the beginning of a text, for a message.
func shorten(text string) string { return ace.Cut(text, 60) }
