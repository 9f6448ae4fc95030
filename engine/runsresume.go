package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"acescope/engine/run"
	"acescope/engine/runner"
	"acescope/engine/session"
)

// Resume implements [run.Verbs]: it gives an open agent session another prompt, on the machine
// that it lives on.
func (r *Runs) Resume(ctx context.Context, q run.Request) (run.Input, error) {
	if q.SessionID == "" {
		return run.Input{}, fmt.Errorf("%w: session_id is missing: which session is to be resumed?", run.ErrBadRequest)
	}
	in, err := r.common(ctx, q)
	if err != nil {
		return in, err
	}
	if q.Parameters != nil {
		return in, fmt.Errorf("%w: a session that is resumed takes a prompt and no parameters", run.ErrBadRequest)
	}
	if strings.TrimSpace(q.Prompt) == "" {
		return in, fmt.Errorf("%w: a session that is resumed needs a prompt", run.ErrBadRequest)
	}
	if err := r.talks(ctx, q, &in); err != nil {
		return in, err
	}
	if err := r.prompt(ctx, &in, q.Prompt); err != nil {
		return in, err
	}
	return r.begin(ctx, q, in)
}

// talks finds the session and demands the machine that it lives on.
func (r *Runs) talks(ctx context.Context, q run.Request, in *run.Input) error {
	in.Type = run.ResumeSession
	last, err := r.lastOf(ctx, in.SessionID)
	if err != nil {
		return err
	}
	if last.Input.Program() {
		return fmt.Errorf("%w: a deterministic run cannot be resumed: start %s again with its parameters", run.ErrBadRequest, last.Input.Name())
	}
	if own := last.Input.Demands; last.Input.RunID != "" && runner.Agent(own.ExecutorType) == "" {
		return r.external(q, in, last)
	}
	s, err := r.e.Describe(ctx, in.SessionID)
	switch {
	case errors.Is(err, ErrNoSession):
		return fmt.Errorf("%w: session %s", run.ErrNotFound, in.SessionID)
	case err != nil:
		return err
	case !s.Open():
		return fmt.Errorf("session %s: %w: start a new one", in.SessionID, run.ErrOver)
	}
	in.AgentName = last.Input.AgentName
	if in.AgentName == "" {
		in.AgentName = s.Input.Agent
	}
	in.ProjectDir = s.Input.WorkingDir
	return r.demand(q, in, where(s))
}

// where is what the machine of a session must offer.
func where(s session.State) runner.Demands {
	d := runner.Demands{ProjectDir: s.Input.WorkingDir, ExecutorType: runner.TypeOf(s.Input.Agent)}
	if h := cmp.Or(s.Host, s.Input.Host); h != nil {
		d.Hostname = h.Name
	}
	return d
}

// external resumes a session of an executor that acescope does not know from within, which is
// done by the runner that had it.
func (r *Runs) external(q run.Request, in *run.Input, last run.State) error {
	if !last.Status.Over() {
		return fmt.Errorf("%w: run %s of session %s goes on (%s): await its end", run.ErrBadRequest, last.Input.RunID, in.SessionID, last.Status)
	}
	in.AgentName, in.Blueprint, in.BlueprintRef, in.ProjectDir = last.Input.AgentName, last.Input.Blueprint, last.Input.BlueprintRef, last.Input.ProjectDir
	d := last.Input.Demands
	if c := last.Claim; c != nil {
		d.Hostname = c.Capabilities.Hostname
	}
	return r.demand(q, in, d)
}

func (r *Runs) demand(q run.Request, in *run.Input, d runner.Demands) (err error) {
	if err := q.Demands.Check(); err != nil {
		return fmt.Errorf("%w: additional_demands: %w", run.ErrBadRequest, err)
	}
	if in.Demands, err = d.Merge(q.Demands); err != nil {
		return fmt.Errorf("%w: session %s lives elsewhere: %w", run.ErrBadRequest, in.SessionID, err)
	}
	return nil
}

// lastOf is the newest run of a session, or nothing where it was started by none.
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
