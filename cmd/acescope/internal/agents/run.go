package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/mcp"
	"acescope/engine/tasks/run"
	"acescope/sources/runners"
)

// RunService returns the actions on the engine's runs, with the blueprints of the library.
func RunService(a *cli.App, e *engine.Engine) (run.Service, error) {
	l, err := a.Library()
	if err != nil {
		return nil, err
	}
	return e.Runs(cli.Blueprints{Library: l}), nil
}

// RunClient executes the commands on runs.
type RunClient struct {
	run.Service
	Artifacts mcp.Artifacts
	App       *cli.App
	alone     bool // no other process continues the runs that this process has started
}

// withRuns connects to start runs. This process serves if no other one does.
func withRuns(a *cli.App, ctx context.Context, do func(*RunClient) error) error {
	e, err := openToServe(a, ctx)
	if err != nil {
		return err
	}
	c, err := newRunClient(a, e)
	if err != nil {
		return err
	}
	return RunError(do(c))
}

func newRunClient(a *cli.App, e *engine.Engine) (*RunClient, error) {
	service, err := RunService(a, e)
	alone := e.Mode() == engine.Embedded && a.Background == 0
	return &RunClient{Service: service, Artifacts: e.Artifacts, App: a, alone: alone}, err
}

// RunError gives the errors of run requests and blueprints their exit code.
func RunError(err error) error {
	var coded *cli.ExitError
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, run.ErrBadRequest):
		return cli.UsageError("%s", run.ErrorText(err))
	case errors.Is(err, run.ErrNoBlueprint), errors.Is(err, run.ErrNotFound):
		return cli.NotFound("%w", err)
	}
	return err
}

// ShowResult writes the result of a run, or of a session's newest run.
func ShowResult(a *cli.App, ctx context.Context, id string) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	c, err := newRunClient(a, e)
	if err != nil {
		return err
	}
	return RunError(c.Result(ctx, id))
}

func (c *RunClient) Result(ctx context.Context, id string) error {
	state, err := c.State(ctx, id)
	if err != nil {
		return err
	}
	in := state.Input
	switch {
	case state.Result != nil && state.Status.Over():
		return c.WriteResult(ctx, in, *state.Result)
	case state.Status.Over():
		return fmt.Errorf("run %s is %s and has no result", in.RunID, state.Status)
	}
	return fmt.Errorf("run %s has not ended, it is %s: wait for it with \"acescope wait %s\"", in.RunID,
		state.Status, in.RunID)
}

type AgentResult struct {
	RunType   run.Type `json:"run_type"`
	AgentName string   `json:"agent_name"`
	run.Result
}

// WriteResult writes the result of a run. It returns an error if the run has not completed.
func (c *RunClient) WriteResult(ctx context.Context, in run.Input, r run.Result) error {
	a := c.App
	if a.JSON {
		l := AgentResult{in.Type, in.Name(), r}
		l.RunID, l.SessionID, l.Output = in.RunID, in.SessionID, c.output(ctx, r)
		if err := cli.NewLines(a).Write(l); err != nil {
			return err
		}
		return resultError(in, r)
	}
	output, ref := r.Stdout, r.StdoutRef
	if !in.IsProgram() {
		output, ref = runners.OutputText(&r), r.OutputRef
	}
	if err := c.writeOutput(ctx, a.Out, output, ref, !in.IsProgram()); err != nil {
		return err
	}
	if err := c.writeOutput(ctx, a.Err, r.Stderr, r.StderrRef, false); err != nil {
		return err
	}
	if r.Dropped > 0 {
		cli.Warn(a, "run %s: %s of output not stored", in.RunID, ace.Count(r.Dropped, "byte"))
	}
	return resultError(in, r)
}

// output returns the complete output of a run as JSON, or nil if its artifact is not on this machine.
func (c *RunClient) output(ctx context.Context, r run.Result) json.RawMessage {
	if r.OutputRef == nil {
		return r.Output
	}
	content, err := c.complete(ctx, r.OutputRef, "")
	if err != nil || content == "" {
		return nil
	}
	if r.OutputIs == run.OutputJSON && json.Valid([]byte(content)) {
		return json.RawMessage(content)
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil
	}
	return data
}

// resultError returns the error of a run that has not completed, or nil.
func resultError(in run.Input, r run.Result) error {
	reason := cmp.Or(r.Error, string(r.Reason))
	switch {
	case r.Status == run.Completed:
		return nil
	case r.Status == run.Stopped:
		return fmt.Errorf("run %s: %s", in.RunID, cmp.Or(reason, "it was stopped"))
	case reason == "":
		return fmt.Errorf("run %s %s", in.RunID, r.Status)
	}
	return fmt.Errorf("run %s %s: %s", in.RunID, r.Status, reason)
}

// writeOutput writes the output of a run unchanged to a file or a pipe, and safely to a terminal. The
// artifact, if there is one on this machine, replaces the shortened output. With endLine the output ends with
// a line break.
func (c *RunClient) writeOutput(ctx context.Context, to io.Writer, output string, ref *ace.Ref,
	endLine bool) error {
	complete, err := c.complete(ctx, ref, output)
	if err == nil {
		output = complete
	} else {
		cli.Warn(c.App, "only the beginning and the end are shown: %s", cli.OneLine(err))
	}
	if trimmed := strings.TrimRight(output, "\r\n"); endLine && trimmed != "" {
		output = trimmed + "\n"
	}
	_, err = io.WriteString(cli.Exact(to), output)
	return err
}

// complete returns the text of an artifact, or known if there is no artifact.
func (c *RunClient) complete(ctx context.Context, ref *ace.Ref, known string) (string, error) {
	if ref == nil || c.Artifacts == nil {
		return known, nil
	}
	r, err := c.Artifacts.Open(ctx, *ref)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, run.MaxCapture+1))
	return string(data), err
}
