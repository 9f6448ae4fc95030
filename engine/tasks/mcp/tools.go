package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// hints tell a client which calls need the user's permission.
func hints(title string, readOnly, destructive, openWorld bool) *sdk.ToolAnnotations {
	return &sdk.ToolAnnotations{Title: title, ReadOnlyHint: readOnly, IdempotentHint: readOnly,
		DestructiveHint: &destructive, OpenWorldHint: &openWorld}
}

func (s *Server) addTools() {
	addTool(s, &sdk.Tool{
		Name: "list_agent_blueprints",
		Description: "Lists the blueprints that can be started: agents, which take a prompt, and deterministic programs, which take " +
			"parameters that match the JSON Schema parameters_schema. A blueprint with an error cannot be started.",
		Annotations: hints("List blueprints", true, false, false),
	}, objectSchema(""), s.blueprints)
	addTool(s, &sdk.Tool{
		Name: "start_agent_session",
		Description: "Starts an agent or a deterministic program in a new session, on a runner that meets its requirements. " +
			"Give an agent a prompt and no parameters; give a deterministic program parameters ({} if it needs none) and no prompt. " +
			"Returns session_id and run_id; with execution_mode sync also the result: status completed, failed or stopped, output, " +
			"stdout, stderr, exit_code. Canceling the call does not stop the run; stop_agent_session does.",
		Annotations: hints("Start a session", false, true, true),
	}, startSchema(), s.start)
	addTool(s, &sdk.Tool{
		Name: "resume_agent_session",
		Description: "Sends another prompt to an agent's session, on the same machine and in the same directory. Returns the same as " +
			"start_agent_session. A deterministic program cannot be resumed: start it again.",
		Annotations: hints("Resume a session", false, true, true),
	}, objectSchema("", append([]property{idProperty(),
		required("prompt", promptSchema("What the agent should do next, at most 100,000 characters.")),
	}, modeProperties()...)...), s.resume)
	addTool(s, &sdk.Tool{
		Name: "get_agent_session_status",
		Description: "Returns the status of a run: pending (it waits for a runner), claimed, running, stopping, and at the end completed, " +
			"failed or stopped. It returns immediately. Wait a few seconds between two calls.",
		Annotations: hints("Get the status", true, false, false),
	}, objectSchema("", idProperty()), s.status)
	addTool(s, &sdk.Tool{
		Name: "get_agent_session_result",
		Description: "Returns the result of a run that has ended: output (JSON if the program wrote JSON, otherwise text; an agent's last " +
			"message), stdout, stderr, exit_code, duration_seconds. For other runs it returns the status. Texts are truncated to 50,000 " +
			"characters in total; then message says where the whole text is.",
		Annotations: hints("Get the result", true, false, false),
	}, objectSchema("", idProperty()), s.result)
	addTool(s, &sdk.Tool{
		Name:        "list_agent_sessions",
		Description: "Lists the sessions that runs have started, with the newest run of each: open runs first, then by time.",
		Annotations: hints("List sessions", true, false, false),
	}, objectSchema("",
		optional("agent_name", textSchema("Only sessions of this blueprint.")),
		optional("status", enumSchema("Only sessions with a run of this status; that run is listed.",
			run.Pending, run.Claimed, run.Running, run.Stopping, run.Completed, run.Failed, run.Stopped)),
		optional("parent_session_id", textSchema("Only sessions that this session started.")),
		optional("limit", integerSchema("Maximum number of sessions, 50 by default.", 1, maxListed)),
	), s.list)
	addTool(s, &sdk.Tool{
		Name: "stop_agent_session",
		Description: "Stops the newest run of a session: its program is asked to end and killed after five seconds, an agent's turn is " +
			"interrupted, a run that waits for a runner is withdrawn. It returns the status immediately, which is stopping until the run " +
			"is stopped.",
		Annotations: hints("Stop a session", false, true, false),
	}, objectSchema("", idProperty(), optional("reason", textSchema("The reason, for readers of the history."))), s.stopRun)
}

func startSchema() *jsonschema.Schema {
	return objectSchema("", slices.Concat([]property{
		required("agent_name", textSchema("The name of the blueprint, from list_agent_blueprints.")),
		optional("prompt", promptSchema("What the agent should do, at most 100,000 characters. Only for blueprints of type agent.")),
		optional("parameters", &jsonschema.Schema{Type: "object", Description: "The parameters of a deterministic program, which match " +
			"its parameters_schema. Only for blueprints of type deterministic, where they are required: pass {} if there are none."}),
	}, modeProperties(), []property{
		optional("additional_demands", requirementsSchema()),
		optional("project_dir", textSchema("The absolute path of the working directory. The default is the runner's.")),
	})...)
}

// blueprintItem is a blueprint in a list.
type blueprintItem struct {
	Name         string               `json:"name"`
	Description  string               `json:"description"`
	Type         run.BlueprintType    `json:"type"`
	Takes        string               `json:"takes"` // prompt or parameters
	Tags         []string             `json:"tags"`
	Requirements *runner.Requirements `json:"demands,omitempty"`
	Schema       json.RawMessage      `json:"parameters_schema,omitempty"`
	Error        string               `json:"error,omitempty"`
}

func (s *Server) blueprints(ctx context.Context, c call, _ struct{}) (any, error) {
	all, err := s.o.Service.Blueprints(ctx)
	if err != nil {
		return nil, err
	}
	out := struct {
		Blueprints []blueprintItem `json:"blueprints"`
	}{[]blueprintItem{}}
	seen := map[string]bool{}
	for _, b := range all {
		if seen[b.Name] || !c.caller.sees(b) { // the first of a name is used
			continue
		}
		seen[b.Name] = true
		item := blueprintItem{Name: b.Name, Description: b.Description, Type: b.Type, Takes: "prompt",
			Tags: append([]string{}, b.Tags...), Requirements: b.Requirements, Schema: b.Schema, Error: b.Error}
		if b.Type == run.Deterministic {
			item.Takes = "parameters"
		}
		out.Blueprints = append(out.Blueprints, item)
	}
	return out, nil
}

// modeArgs is the execution mode under either name.
type modeArgs struct {
	Execution run.Mode `json:"execution_mode"`
	Mode      run.Mode `json:"mode"`
}

func (m modeArgs) mode(c call) (run.Mode, error) {
	if m.Execution != "" && m.Mode != "" && m.Execution != m.Mode {
		return "", fmt.Errorf("%w: execution_mode is %s and mode is %s: give only one", run.ErrBadRequest, m.Execution, m.Mode)
	}
	mode := cmp.Or(m.Execution, m.Mode, run.Sync)
	if mode == run.AsyncCallback && c.caller.Session == "" {
		return "", fmt.Errorf("%w: execution_mode async_callback needs a session to call back, and this connection has none: "+
			"use async_poll, or connect with acescope mcp --session ID or header %s", run.ErrBadRequest, HeaderSession)
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
	if len(a.Parameters) > run.MaxParams {
		return nil, fmt.Errorf("%w: parameters have %d bytes, at most %d are allowed: write long values to a file and pass its path",
			run.ErrBadRequest, len(a.Parameters), run.MaxParams)
	}
	r := run.Request{AgentName: a.AgentName, Parameters: a.Parameters, Mode: mode, ProjectDir: a.ProjectDir,
		ParentSessionID: c.caller.Session, ParentRunID: c.caller.Run, By: c.by()}
	if a.Prompt != nil {
		r.Prompt = *a.Prompt
		if r.Prompt == "" {
			return nil, fmt.Errorf("%w: prompt is empty: say what the agent should do, or omit it for a deterministic program", run.ErrBadRequest)
		}
	}
	if r.Requirements, err = mergeRequirements(c.caller.Requirements, a.Requirements, "additional_demands"); err != nil {
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
	if slices.ContainsFunc(all, func(b run.BlueprintInfo) bool { return b.Name == name && c.caller.sees(b) }) {
		return nil
	}
	return fmt.Errorf("%w %q for this connection: list_agent_blueprints shows the available ones", run.ErrNoBlueprint, name)
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
		Requirements: c.caller.Requirements, ParentSessionID: c.caller.Session, ParentRunID: c.caller.Run, By: c.by()})
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

// runInfo identifies a run in the answers of tools.
type runInfo struct {
	SessionID string     `json:"session_id"`
	RunID     string     `json:"run_id"`
	AgentName string     `json:"agent_name,omitempty"`
	Type      run.Type   `json:"type,omitempty"`
	Mode      run.Mode   `json:"execution_mode,omitempty"`
	Status    run.Status `json:"status"`
	Reason    run.Reason `json:"reason,omitempty"`
	Error     string     `json:"error,omitempty"`
}

func newRunInfo(in run.Input, status run.Status) runInfo {
	return runInfo{RunID: in.RunID, SessionID: in.SessionID, AgentName: in.Name(), Type: in.Type, Mode: in.Mode, Status: status}
}

// statusReply is the answer to a call for the status.
type statusReply struct {
	runInfo
	Runner     string     `json:"runner_id,omitempty"`
	Parent     string     `json:"parent_session_id,omitempty"`
	ProjectDir string     `json:"project_dir,omitempty"`
	Created    *time.Time `json:"created_at,omitempty"`
	Started    *time.Time `json:"started_at,omitempty"`
	TimeoutAt  *time.Time `json:"timeout_at,omitempty"`
	Message    string     `json:"message"`
}

type idArgs struct {
	SessionID string `json:"session_id"`
}

func (s *Server) status(ctx context.Context, _ call, a idArgs) (any, error) {
	state, err := s.state(ctx, a.SessionID)
	if err != nil {
		return nil, err
	}
	return newStatusReply(state), nil
}

func (s *Server) state(ctx context.Context, id string) (run.State, error) {
	if err := checkName("session_id", id); err != nil {
		return run.State{}, err
	}
	return s.o.Service.State(ctx, id)
}

func newStatusReply(state run.State) statusReply {
	in := state.Input
	out := statusReply{runInfo: newRunInfo(in, state.Status), Parent: in.ParentSessionID, ProjectDir: in.ProjectDir,
		Created: optionalTime(in.CreatedAt), TimeoutAt: optionalTime(state.TimeoutAt)}
	if state.Claim != nil {
		out.Runner = state.Claim.RunnerID
	}
	if state.ProgramStart != nil {
		out.Started = optionalTime(state.ProgramStart.At)
	}
	if r := state.Result; r != nil {
		out.Reason = r.Reason
		out.Error = r.Error
		out.Started = cmp.Or(optionalTime(r.StartedAt), out.Started)
		out.Runner = cmp.Or(r.Runner, out.Runner)
	}
	out.Message = describeStatus(state.Status, len(state.Moves))
	return out
}

func describeStatus(s run.Status, moves int) string {
	text := ""
	switch s {
	case run.Pending:
		text = "The run waits for a free runner that meets its requirements."
	case run.Claimed:
		text = "A runner is about to start the run."
	case run.Running:
		text = "The run is running."
	case run.Stopping:
		text = "The run was asked to stop and has not ended yet."
	case run.Completed, run.Failed, run.Stopped:
		return "The run has ended: call get_agent_session_result."
	}
	if moves > 0 {
		text += fmt.Sprintf(" Runners that lost it before: %d.", moves)
	}
	return text
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
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

// sessionItem is a session in a list, with its newest run.
type sessionItem struct {
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
	limit := cmp.Or(a.Limit, defaultListed)
	runs, err := s.o.Service.List(ctx, run.Filter{AgentName: a.AgentName, Parent: a.Parent, Status: a.Status, Limit: limit * runsPerSession})
	if err != nil {
		return nil, err
	}
	out := struct {
		Sessions []sessionItem `json:"sessions"`
		More     bool          `json:"more"`
	}{[]sessionItem{}, len(runs) >= limit*runsPerSession}
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
		out.Sessions = append(out.Sessions, sessionItem{r.SessionID, r.RunID, r.Type, r.AgentName, r.Status, r.ExitStatus,
			r.RunnerID, r.ParentSessionID, optionalTime(r.CreatedAt), optionalTime(r.EndedAt)})
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
	state, err := s.o.Service.Stop(ctx, a.SessionID, run.StopRequest{Reason: oneLine(a.Reason), By: c.by()})
	if err != nil {
		return nil, err
	}
	return newStatusReply(state), nil
}
