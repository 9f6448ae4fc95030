package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// blueprintItem is a blueprint in a list.
type blueprintItem struct {
	run.BlueprintInfo
	Takes string `json:"takes"`          // prompt or parameters
	Path  string `json:"path,omitempty"` // always "": hides the path in BlueprintInfo
}

func (s *Server) blueprints(ctx context.Context, c call, _ struct{}) (any, error) {
	all, err := s.o.Service.Blueprints(ctx)
	if err != nil {
		return nil, err
	}
	out := []blueprintItem{}
	seen := map[string]bool{}
	for _, b := range all {
		if seen[b.Name] || !c.caller.sees(b) { // the first of a name is used
			continue
		}
		seen[b.Name] = true
		takes := "prompt"
		if b.Type == run.Deterministic {
			takes = "parameters"
		}
		out = append(out, blueprintItem{BlueprintInfo: b, Takes: takes})
	}
	return map[string]any{"blueprints": out}, nil
}

// modeArgs holds the execution mode, which may have either of two names.
type modeArgs struct {
	Execution run.Mode `json:"execution_mode"`
	Mode      run.Mode `json:"mode"`
}

func (m modeArgs) mode(c call) (run.Mode, error) {
	if m.Execution != "" && m.Mode != "" && m.Execution != m.Mode {
		return "", fmt.Errorf("%w: execution_mode is %s and mode is %s: give only one", run.ErrBadRequest,
			m.Execution, m.Mode)
	}
	mode := cmp.Or(m.Execution, m.Mode, run.Sync)
	if mode == run.AsyncCallback && c.caller.Session == "" {
		return "", fmt.Errorf(
			"%w: execution_mode async_callback needs a session to call back, and this connection has no session: "+
				"use async_poll, or connect with acescope mcp --session ID or header %s", run.ErrBadRequest,
			HeaderSession)
	}
	return mode, nil
}

type startArgs struct {
	AgentName    string              `json:"agent_name"`
	Prompt       *string             `json:"prompt"`
	Parameters   json.RawMessage     `json:"parameters"`
	Requirements runner.Requirements `json:"additional_demands"`
	ProjectDir   string              `json:"project_dir"`
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
	if err := s.checkVisible(ctx, c, a.AgentName); err != nil {
		return nil, err
	}
	if string(a.Parameters) == "null" {
		a.Parameters = nil
	}
	if len(a.Parameters) > run.MaxParams {
		return nil, fmt.Errorf(
			"%w: parameters have %d bytes, at most %d are allowed: write long values to a file and pass its path",
			run.ErrBadRequest, len(a.Parameters), run.MaxParams)
	}
	r := run.Request{AgentName: a.AgentName, Parameters: a.Parameters, Mode: mode, ProjectDir: a.ProjectDir,
		ParentSessionID: c.caller.Session, ParentRunID: c.caller.Run, By: c.by()}
	if a.Prompt != nil {
		r.Prompt = *a.Prompt
		if r.Prompt == "" {
			return nil, fmt.Errorf(
				"%w: prompt is empty: say what the agent should do, or omit it for a deterministic program",
				run.ErrBadRequest)
		}
	}
	if r.Requirements, err = mergeRequirements(c.caller.Requirements, a.Requirements,
		"additional_demands"); err != nil {
		return nil, err
	}
	in, err := s.o.Service.Start(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.started(ctx, c, in)
}

// checkVisible refuses a blueprint that the caller's tags hide.
func (s *Server) checkVisible(ctx context.Context, c call, name string) error {
	if len(c.caller.Tags) == 0 {
		return nil
	}
	all, err := s.o.Service.Blueprints(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(b run.BlueprintInfo) bool {
		return b.Name == name && c.caller.sees(b)
	}) {
		return nil
	}
	return run.ErrNoBlueprint.With(name, "list_agent_blueprints shows those for this connection")
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
		return nil, fmt.Errorf("%w: prompt is empty: say what the agent should do", run.ErrBadRequest)
	}
	session, err := ResolveSession(ctx, s.o.Service, a.SessionID)
	if err != nil {
		return nil, err
	}
	in, err := s.o.Service.Resume(ctx, run.Request{SessionID: session, Prompt: a.Prompt, Mode: mode,
		Requirements: c.caller.Requirements, ParentSessionID: c.caller.Session, ParentRunID: c.caller.Run,
		By: c.by()})
	if err != nil {
		return nil, err
	}
	return s.started(ctx, c, in)
}

// ResolveSession returns the session of an id, which may be a run id. An unknown id is returned
// unchanged: it may be a session that no run has started.
func ResolveSession(ctx context.Context, service run.Service, id string) (string, error) {
	state, err := service.State(ctx, id)
	if errors.Is(err, run.ErrNotFound) {
		return id, nil
	}
	if err != nil {
		return "", err
	}
	return cmp.Or(state.Input.SessionID, id), nil
}

type idArgs struct {
	SessionID string `json:"session_id"`
}

func (s *Server) status(ctx context.Context, _ call, a idArgs) (any, error) {
	state, err := s.state(ctx, a.SessionID)
	if err != nil {
		return nil, err
	}
	return newStatus(state), nil
}

func (s *Server) state(ctx context.Context, id string) (run.State, error) {
	if err := checkName("session_id", id); err != nil {
		return run.State{}, err
	}
	return s.o.Service.State(ctx, id)
}

func newStatus(state run.State) reply {
	in := state.Input
	out := newReply(in, state.Status)
	out.Parent = in.ParentSessionID
	out.ProjectDir = in.ProjectDir
	out.Created = in.CreatedAt.UTC()
	out.TimeoutAt = state.TimeoutAt.UTC()
	if state.Claim != nil {
		out.Runner = state.Claim.RunnerID
	}
	if state.ProgramStart != nil {
		out.Started = state.ProgramStart.At.UTC()
	}
	if state.Result != nil {
		out.setOutcome(*state.Result)
	}
	out.Message = map[run.Status]string{
		run.Pending:  "The run waits for a free runner that meets its requirements.",
		run.Claimed:  "A runner is about to start the run.",
		run.Running:  "The run is running.",
		run.Stopping: "The run was asked to stop and has not ended yet.",
	}[state.Status]
	if state.Status.Over() {
		out.Message = "The run has ended: call get_agent_session_result."
	} else if moves := len(state.Moves); moves > 0 {
		out.Message += fmt.Sprintf(" Runners that lost it before: %d.", moves)
	}
	return out
}

// Numbers of listed sessions, and of runs that are read for each, since a session may have
// many runs.
const (
	defaultListed  = 50
	maxListed      = 200
	runsPerSession = 5
)

type listArgs struct {
	AgentName string     `json:"agent_name"`
	Status    run.Status `json:"status"`
	Parent    string     `json:"parent_session_id"`
	Limit     int        `json:"limit"`
}

func (s *Server) list(ctx context.Context, _ call, a listArgs) (any, error) {
	if err := cmp.Or(checkName("agent_name", cmp.Or(a.AgentName, "any")),
		checkName("parent_session_id", cmp.Or(a.Parent, "any"))); err != nil {
		return nil, err
	}
	limit := cmp.Or(a.Limit, defaultListed)
	runs, err := s.o.Service.List(ctx, run.Filter{AgentName: a.AgentName, Parent: a.Parent, Status: a.Status,
		Limit: limit * runsPerSession})
	if err != nil {
		return nil, err
	}
	sessions := []run.Summary{} // with the newest run of each
	more := len(runs) >= limit*runsPerSession
	seen := map[string]bool{}
	for _, r := range runs {
		if seen[r.SessionID] {
			continue
		}
		seen[r.SessionID] = true
		if len(sessions) == limit {
			more = true
			break
		}
		r.CreatedAt = r.CreatedAt.UTC()
		r.EndedAt = r.EndedAt.UTC()
		sessions = append(sessions, r)
	}
	return map[string]any{"sessions": sessions, "more": more}, nil
}

type stopArgs struct {
	SessionID string `json:"session_id"`
	Reason    string `json:"reason"`
}

func (s *Server) stopRun(ctx context.Context, c call, a stopArgs) (any, error) {
	if err := checkName("session_id", a.SessionID); err != nil {
		return nil, err
	}
	state, err := s.o.Service.Stop(ctx, a.SessionID, run.StopRequest{Reason: oneLine(a.Reason), By: c.by()})
	if err != nil {
		return nil, err
	}
	return newStatus(state), nil
}
