package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"acescope/engine/run"
	"acescope/engine/runner"
)

// modeArgs is how a caller says the mode, by either name.
type modeArgs struct {
	Execution run.Mode `json:"execution_mode"`
	Mode      run.Mode `json:"mode"`
}

// mode is the mode that is asked for; a caller that is no session cannot be called back.
func (m modeArgs) mode(c call) (run.Mode, error) {
	if m.Execution != "" && m.Mode != "" && m.Execution != m.Mode {
		return "", fmt.Errorf("%w: execution_mode is %s and mode is %s: give one of them", run.ErrBadRequest, m.Execution, m.Mode)
	}
	mode := cmp.Or(m.Execution, m.Mode, run.Sync)
	if mode == run.AsyncCallback && c.caller.Session == "" {
		return "", fmt.Errorf("%w: execution_mode async_callback needs to know which session to call back, and this connection belongs to none: use async_poll, "+
			"or connect with acescope mcp --session ID or header %s", run.ErrBadRequest, HeaderSession)
	}
	return mode, nil
}

type startArgs struct {
	AgentName  string          `json:"agent_name"`
	Prompt     *string         `json:"prompt"`
	Parameters json.RawMessage `json:"parameters"`
	Demands    runner.Demands  `json:"additional_demands"`
	ProjectDir string          `json:"project_dir"`
	modeArgs
}

func (s *Server) start(ctx context.Context, c call, a startArgs) (any, error) {
	mode, err := a.mode(c)
	if err != nil {
		return nil, err
	}
	if err := checkName("agent_name", a.AgentName); err != nil {
		return nil, err
	}
	if err := s.checkSeen(ctx, c, a.AgentName); err != nil {
		return nil, err
	}
	if a.Prompt != nil && *a.Prompt == "" {
		return nil, fmt.Errorf("%w: prompt is empty: say what the agent is to do, or leave it out for a deterministic program", run.ErrBadRequest)
	}
	if len(a.Parameters) > run.MaxParams {
		return nil, fmt.Errorf("%w: parameters have %d bytes, at most %d are taken: put what is long into a file and give its path", run.ErrBadRequest, len(a.Parameters), run.MaxParams)
	}
	r := run.Request{AgentName: a.AgentName, Parameters: a.Parameters, Mode: mode, ProjectDir: a.ProjectDir, ParentSessionID: c.caller.Session, ParentRunID: c.caller.Run, By: c.by()}
	if a.Prompt != nil {
		r.Prompt = *a.Prompt
	}
	if r.Demands, err = merge(c.caller.Demands, a.Demands, "additional_demands"); err != nil {
		return nil, err
	}
	in, err := s.o.Verbs.Start(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.begun(ctx, c, in)
}

// checkSeen refuses a blueprint that the caller's tags hide from it.
func (s *Server) checkSeen(ctx context.Context, c call, name string) error {
	if len(c.caller.Tags) == 0 {
		return nil
	}
	all, err := s.o.Verbs.Blueprints(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(d run.Described) bool { return d.Name == name && c.caller.sees(d) }) {
		return nil
	}
	return fmt.Errorf("%w %q for this connection: list_agent_blueprints shows those that it may start", run.ErrNoBlueprint, name)
}

type resumeArgs struct {
	SessionID string `json:"session_id"`
	Prompt    string `json:"prompt"`
	modeArgs
}

func (s *Server) resume(ctx context.Context, c call, a resumeArgs) (any, error) {
	mode, err := a.mode(c)
	if err != nil {
		return nil, err
	}
	if err := checkName("session_id", a.SessionID); err != nil {
		return nil, err
	}
	if a.Prompt == "" {
		return nil, fmt.Errorf("%w: prompt is empty: say what the agent is to do", run.ErrBadRequest)
	}
	session, err := SessionOf(ctx, s.o.Verbs, a.SessionID)
	if err != nil {
		return nil, err
	}
	in, err := s.o.Verbs.Resume(ctx, run.Request{SessionID: session, Prompt: a.Prompt, Mode: mode, Demands: c.caller.Demands, ParentSessionID: c.caller.Session,
		ParentRunID: c.caller.Run, By: c.by()})
	if err != nil {
		return nil, err
	}
	return s.begun(ctx, c, in)
}

// SessionOf is the session that an id means, which may be a run's. What is not known as a
// run may be a session that no run has started: that is for the verbs to say.
func SessionOf(ctx context.Context, v run.Verbs, id string) (string, error) {
	state, err := v.State(ctx, id)
	switch {
	case errors.Is(err, run.ErrNotFound):
		return id, nil
	case err != nil:
		return "", err
	}
	return cmp.Or(state.Input.SessionID, id), nil
}

// checkName refuses what cannot be a name or an id, before anybody looks for it.
func checkName(argument, name string) error {
	if run.ValidName(name) {
		return nil
	}
	what := "name"
	if strings.HasSuffix(argument, "_id") {
		what = "id"
	}
	return fmt.Errorf("%w: %s %s is no %s: it has letters, digits, dots, dashes and underscores, and begins with a letter or a digit",
		run.ErrBadRequest, argument, cut(fmt.Sprintf("%q", name)), what)
}

// begun answers a call that has started a run.
func (s *Server) begun(ctx context.Context, c call, in run.Input) (any, error) {
	out := outcome{RunID: in.RunID, SessionID: in.SessionID, AgentName: in.Name(), Type: in.Type, Mode: in.Mode, Status: run.Pending}
	switch in.Mode {
	case run.AsyncPoll:
		out.Message = "The run was started. Ask get_agent_session_status, and when it has ended get_agent_session_result, with this session_id or run_id."
		return out, nil
	case run.AsyncCallback:
		out.Message = fmt.Sprintf("The run was started. Session %s is told when it has ended: do not wait for it.", in.ParentSessionID)
		return out, nil
	}
	return s.await(ctx, c, out)
}
