package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"acescope/engine/ace"
	"acescope/engine/run"
	"acescope/engine/runner"
)

// blueprint is a blueprint in a list.
type blueprint struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Type        run.BlueprintType `json:"type"`
	Takes       string            `json:"takes"` // prompt or parameters
	Tags        []string          `json:"tags"`
	Demands     *runner.Demands   `json:"demands,omitempty"`
	Schema      json.RawMessage   `json:"parameters_schema,omitempty"`
	Error       string            `json:"error,omitempty"`
}

type nothing struct{}

func (s *Server) blueprints(ctx context.Context, c call, _ nothing) (any, error) {
	all, err := s.o.Verbs.Blueprints(ctx)
	if err != nil {
		return nil, err
	}
	out := struct {
		Blueprints []blueprint `json:"blueprints"`
	}{[]blueprint{}}
	seen := map[string]bool{}
	for _, d := range all {
		// Of those with one name the first counts; the others are for whoever keeps them.
		if seen[d.Name] || !c.caller.sees(d) {
			continue
		}
		seen[d.Name] = true
		b := blueprint{Name: d.Name, Description: d.Description, Type: d.Type, Takes: "prompt", Tags: d.Tags, Demands: d.Demands, Schema: d.Schema, Error: d.Error}
		if d.Type == run.Deterministic {
			b.Takes = "parameters"
		}
		if b.Tags == nil {
			b.Tags = []string{}
		}
		out.Blueprints = append(out.Blueprints, b)
	}
	return out, nil
}

// standing is how a run stands.
type standing struct {
	SessionID  string     `json:"session_id"`
	RunID      string     `json:"run_id"`
	AgentName  string     `json:"agent_name,omitempty"`
	Type       run.Type   `json:"type,omitempty"`
	Mode       run.Mode   `json:"execution_mode,omitempty"`
	Status     run.Status `json:"status"`
	Reason     run.Reason `json:"reason,omitempty"`
	Error      string     `json:"error,omitempty"`
	Runner     string     `json:"runner_id,omitempty"`
	Parent     string     `json:"parent_session_id,omitempty"`
	ProjectDir string     `json:"project_dir,omitempty"`
	Created    *time.Time `json:"created_at,omitempty"`
	Started    *time.Time `json:"started_at,omitempty"`
	TimeoutAt  *time.Time `json:"timeout_at,omitempty"`
	Message    string     `json:"message"`
}

func (s *Server) status(ctx context.Context, _ call, a idArgs) (any, error) {
	state, err := s.state(ctx, a.SessionID)
	if err != nil {
		return nil, err
	}
	return standingOf(state), nil
}

func standingOf(state run.State) standing {
	in := state.Input
	out := standing{SessionID: in.SessionID, RunID: in.RunID, AgentName: in.Name(), Type: in.Type, Mode: in.Mode, Status: state.Status,
		Parent: in.ParentSessionID, ProjectDir: in.ProjectDir, Created: timeOf(in.CreatedAt), TimeoutAt: timeOf(state.TimeoutAt)}
	if state.Claim != nil {
		out.Runner = state.Claim.RunnerID
	}
	if state.Began != nil {
		out.Started = timeOf(state.Began.At)
	}
	if r := state.Result; r != nil {
		out.Reason, out.Error, out.Started, out.Runner = r.Reason, r.Error, cmp.Or(timeOf(r.StartedAt), out.Started), cmp.Or(r.Runner, out.Runner)
	}
	out.Message = meaning(state.Status, len(state.Moves))
	return out
}

// meaning says what a status means to who asks.
func meaning(s run.Status, moves int) string {
	said := ""
	switch s {
	case run.Pending:
		said = "It waits for a runner that is free and meets its demands."
	case run.Claimed:
		said = "A runner has taken it and is about to start it."
	case run.Running:
		said = "It runs."
	case run.Stopping:
		said = "It was asked to stop and has not ended yet."
	case run.Completed, run.Failed, run.Stopped:
		return "It has ended: get_agent_session_result tells more."
	}
	if moves > 0 {
		said += fmt.Sprintf(" It was given to %d other runners before, which were lost.", moves)
	}
	return said
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// How many sessions are listed, unless the caller says otherwise, and at most; and how many
// runs are read for that.
const (
	usualListed = 50
	maxListed   = 200
	readPerList = 5 // for each session that is listed: a session may have many
)

type listArgs struct {
	AgentName string     `json:"agent_name"`
	Status    run.Status `json:"status"`
	Parent    string     `json:"parent_session_id"`
	Limit     int        `json:"limit"`
}

// listed is a session in a list, by its newest run.
type listed struct {
	SessionID string         `json:"session_id"`
	RunID     string         `json:"run_id"`
	Type      run.Type       `json:"type"`
	AgentName string         `json:"agent_name"`
	Status    run.Status     `json:"status"`
	Exit      ace.ExitStatus `json:"exit_status,omitempty"`
	Runner    string         `json:"runner_id,omitempty"`
	Parent    string         `json:"parent_session_id,omitempty"`
	Created   *time.Time     `json:"created_at,omitempty"`
	Ended     *time.Time     `json:"ended_at,omitempty"`
}

func (s *Server) list(ctx context.Context, _ call, a listArgs) (any, error) {
	for name, id := range map[string]string{"agent_name": a.AgentName, "parent_session_id": a.Parent} {
		if id == "" {
			continue
		}
		if err := checkName(name, id); err != nil {
			return nil, err
		}
	}
	limit := cmp.Or(a.Limit, usualListed)
	runs, err := s.o.Verbs.List(ctx, run.Filter{AgentName: a.AgentName, Parent: a.Parent, Status: a.Status, Limit: limit * readPerList})
	if err != nil {
		return nil, err
	}
	out := struct {
		Sessions []listed `json:"sessions"`
		More     bool     `json:"more"`
	}{[]listed{}, len(runs) >= limit*readPerList}
	seen := map[string]bool{}
	for _, r := range runs {
		if seen[r.SessionID] {
			continue
		}
		seen[r.SessionID] = true
		if len(out.Sessions) == limit {
			out.More = true
			break
		}
		out.Sessions = append(out.Sessions, listed{r.SessionID, r.RunID, r.Type, r.AgentName, r.Status, r.ExitStatus, r.RunnerID, r.ParentSessionID, timeOf(r.CreatedAt), timeOf(r.EndedAt)})
	}
	return out, nil
}

type stopArgs struct {
	SessionID string `json:"session_id"`
	Reason    string `json:"reason"`
}

func (s *Server) stopRun(ctx context.Context, c call, a stopArgs) (any, error) {
	if err := checkName("session_id", a.SessionID); err != nil {
		return nil, err
	}
	state, err := s.o.Verbs.Stop(ctx, a.SessionID, run.StopRequest{Reason: line(a.Reason), By: c.by()})
	if err != nil {
		return nil, err
	}
	return standingOf(state), nil
}
