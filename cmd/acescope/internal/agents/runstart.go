package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/mcp"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	"acescope/sources/runners"
)

// RunFlags are the flags of agent start and agent resume.
type RunFlags struct {
	request    run.Request // the values that flags set directly
	prompt     string
	params     []string
	parameters string
	detach     bool
	wait       bool
}

func runStartCommand(a *cli.App) *cobra.Command {
	var f RunFlags
	cmd := &cobra.Command{
		Use:   "start BLUEPRINT",
		Short: "Start an agent or a deterministic program from its blueprint",
		Long: `Starts a run of a blueprint on a runner that meets its requirements and waits for its end.
The command writes the program's standard output and standard error unchanged, or the agent's last
message. The exit code is 0 if the run has completed and 1 if it failed or was stopped. The first
ctrl+c ends the wait but not the run, and the command says how to continue and how to stop the run.

An agent takes --prompt. A deterministic program takes --param or --parameters; pass '{}' if it
needs none. In --param NAME=VALUE the blueprint's schema decides the type of VALUE: a number, a
boolean, an item of a list or a text. NAME:=JSON is passed unchanged.`,
		Example: `acescope agent start crawler --param url=http://127.0.0.1:8000 --param depth=2
acescope agent start writer --prompt @task.md --detach --json
jq -n '{db:"shop.db"}' | acescope agent start backup --parameters - --require-tag sqlite`,
		Args: nameArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(a, cmd.Context(), func(c *RunClient, r run.Request) error {
				r.AgentName = args[0]
				return c.StartRun(cmd.Context(), r, f)
			})
		},
	}
	f.StartFlags(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("param", "parameters")
	exclusiveWaitFlags(cmd)
	return cmd
}

func runResumeCommand(a *cli.App) *cobra.Command {
	var f RunFlags
	cmd := &cobra.Command{
		Use:   "resume SESSION",
		Short: "Send another prompt to an agent's session",
		Long: `Sends a prompt to the session of an agent that was started before, on the same machine and in the
same directory. SESSION may be the id of one of its runs. The command waits for the answer as agent
start does.`,
		Example: "acescope agent resume ses_0123456789ab --prompt 'And now the tests'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(a, cmd.Context(), func(c *RunClient, r run.Request) error {
				return c.ResumeRun(cmd.Context(), args[0], r, f)
			})
		},
	}
	f.resumeFlags(cmd.Flags())
	_ = cmd.MarkFlagRequired("prompt")
	exclusiveWaitFlags(cmd)
	return cmd
}

func (f *RunFlags) StartFlags(fs *pflag.FlagSet) {
	f.resumeFlags(fs)
	r := &f.request
	fs.StringArrayVar(&f.params, "param", nil,
		"parameter of a program, as NAME=VALUE or NAME:=JSON; can be repeated")
	fs.StringVar(&f.parameters, "parameters", "",
		"all parameters as a JSON object; @FILE reads a file, - standard input")
	fs.StringVar(&r.ProjectDir, "project-dir", "", "working directory of the run (default: the runner's)")
	nameVar(fs, &r.SessionID, "session", "id of the session (default: a new id)")
	secondsVar(fs, &r.MatchWithin, "match-within",
		"time to wait for a runner, such as 90s or 1h (default 5m)")
	requirementFlags(fs, &r.Requirements)
}

func (f *RunFlags) resumeFlags(fs *pflag.FlagSet) {
	r := &f.request
	r.Mode, r.ParentSessionID = run.Sync, os.Getenv(envSession)
	fs.StringVar(&f.prompt, "prompt", "", "prompt for the agent; @FILE reads a file, - standard input")
	nameVar(fs, &r.RunID, "run-id",
		"id of the run; a repeated id does not start another run (default: a new id)")
	choiceVar(fs, &r.Mode, "mode", []run.Mode{run.Sync, run.AsyncPoll, run.AsyncCallback},
		"sync waits for the end, async_poll returns at once, async_callback returns and later notifies --parent")
	nameVar(fs, &r.ParentSessionID, "parent", "session that starts the run (default $"+envSession+")")
	fs.BoolVar(&f.detach, "detach", false,
		"return at once, as --mode async_poll; a background process runs workers if no other process does")
	fs.BoolVar(&f.wait, "wait", false, "wait for the end in every mode")
}

func exclusiveWaitFlags(cmd *cobra.Command) {
	cmd.MarkFlagsMutuallyExclusive("detach", "wait")
	cmd.MarkFlagsMutuallyExclusive("detach", "mode")
}

// Request returns the request for a run, without its blueprint.
func (f RunFlags) Request(ctx context.Context) (run.Request, error) {
	r := f.request
	r.ParentRunID, r.By = os.Getenv(envRun), ace.User()
	if f.detach {
		r.Mode = run.AsyncPoll
	}
	if r.Mode == run.AsyncCallback && r.ParentSessionID == "" {
		return r, cli.UsageError(
			"--mode async_callback needs a session to notify: give --parent ID, or use async_poll")
	}
	for name, id := range map[string]string{envSession: r.ParentSessionID, envRun: r.ParentRunID} {
		if err := checkName(id); err != nil {
			return r, cli.UsageError("$%s: %w", name, err)
		}
	}
	for _, p := range f.params {
		if _, _, _, err := splitParam(p); err != nil {
			return r, err
		}
	}
	if r.ProjectDir != "" {
		dir, err := filepath.Abs(r.ProjectDir)
		if err != nil {
			return r, err
		}
		r.ProjectDir = dir
	}
	prompt, err := ReadArgument(ctx, "--prompt", f.prompt, run.MaxPrompt*utf8.UTFMax)
	if err != nil {
		return r, err
	}
	if n := utf8.RuneCount(prompt); n > run.MaxPrompt {
		return r, cli.UsageError("--prompt: %s, at most %s are allowed", ace.Count(n, "character"),
			ace.Number(run.MaxPrompt))
	}
	r.Prompt = string(prompt)
	if f.parameters == "" {
		return r, nil
	}
	if r.Parameters, err = ReadArgument(ctx, "--parameters", f.parameters, run.MaxParams); err != nil {
		return r, err
	}
	var v any
	if err := json.Unmarshal(r.Parameters, &v); err != nil {
		return r, cli.UsageError("--parameters: not JSON: %w", err)
	}
	return r, nil
}

// waits reports whether the command stays until the run has ended.
func (f RunFlags) waits(m run.Mode) bool { return f.wait || m == run.Sync }

// run connects and starts the run of the request. If the command does not wait, another process serves it.
func (f RunFlags) run(a *cli.App, ctx context.Context, do func(*RunClient, run.Request) error) error {
	r, err := f.Request(ctx)
	if err != nil {
		return err
	}
	start := func() error { return withRuns(a, ctx, func(c *RunClient) error { return do(c, r) }) }
	if f.waits(r.Mode) {
		return start()
	}
	return runs.HandOver(a, ctx, start)
}

// StartRun starts a run and waits for its end if the flags say so.
func (c *RunClient) StartRun(ctx context.Context, r run.Request, f RunFlags) error {
	if len(f.params) > 0 {
		blueprints, err := c.Blueprints(ctx)
		if err != nil {
			return err
		}
		// If there is no such blueprint, Start says so.
		var schema json.RawMessage
		if i := slices.IndexFunc(blueprints,
			func(b run.BlueprintInfo) bool { return b.Name == r.AgentName }); i >= 0 {
			schema = blueprints[i].Schema
		}
		if r.Parameters, err = ParseParams(f.params, schema); err != nil {
			return err
		}
	}
	in, err := c.Start(ctx, r)
	if err != nil {
		return err
	}
	return c.started(ctx, in, f)
}

// ResumeRun sends a prompt to the session with the id, or to the session of the run with the id.
func (c *RunClient) ResumeRun(ctx context.Context, id string, r run.Request, f RunFlags) (err error) {
	if r.SessionID, err = mcp.ResolveSession(ctx, c.Service, id); err != nil {
		return err
	}
	in, err := c.Resume(ctx, r)
	if err != nil {
		return err
	}
	return c.started(ctx, in, f)
}

type AgentStarted struct {
	RunID      string              `json:"run_id" jsonschema:"ID of the blueprint run, not of Temporal's run"`
	SessionID  string              `json:"session_id"`
	WorkflowID string              `json:"workflow_id"`
	RunType    run.Type            `json:"run_type"`
	AgentName  string              `json:"agent_name"`
	Mode       run.Mode            `json:"execution_mode"`
	Demands    runner.Requirements `json:"demands"`
	ProjectDir string              `json:"project_dir,omitempty"`
	Parent     string              `json:"parent_session_id,omitempty"`
	PID        int                 `json:"pid,omitempty"` // of the background process that serves the run
}

// started reports that a run was started, and waits for its end if the flags say so.
func (c *RunClient) started(ctx context.Context, in run.Input, f RunFlags) error {
	const text = "run %s of %s started in session %s"
	a := c.App
	a.Begun = true
	waits := f.waits(in.Mode)
	if waits && !a.JSON { // standard output is for the result
		cli.Warn(a, text, in.RunID, in.Name(), in.SessionID)
		return c.await(ctx, in)
	}
	line := AgentStarted{in.RunID, in.SessionID, run.WorkflowID(in.RunID), in.Type, in.Name(), in.Mode,
		in.Requirements, in.ProjectDir, in.ParentSessionID, a.Background}
	err := cli.Report(a, line, text, in.RunID, in.Name(), in.SessionID)
	if err != nil || !waits {
		return err
	}
	return c.await(ctx, in)
}

// await waits for the end of a run and writes its result.
func (c *RunClient) await(ctx context.Context, in run.Input) error {
	waiting, stop := context.WithCancel(ctx)
	noticed := make(chan struct{})
	go func() {
		defer close(noticed)
		c.noticePending(waiting, in.RunID)
	}()
	result, err := c.Await(ctx, in.RunID)
	stop()
	<-noticed
	if err == nil {
		return c.WriteResult(ctx, in, result)
	}
	if ctx.Err() == nil {
		return err
	}
	state := "the run continues"
	if c.alone {
		state = "the run is kept, but its program in this process ends"
	}
	cli.Warn(c.App, `stopped waiting for run %s: %s; wait for it with "acescope wait %s", `+
		`stop it with "acescope cancel %s"`, in.RunID, state, in.RunID, in.RunID)
	return cli.ErrInterrupted
}

// pendingNotice is how long a run may wait for a runner until the user is told.
const pendingNotice = 2 * time.Second

// noticePending tells the user once that no runner has taken the run.
func (c *RunClient) noticePending(ctx context.Context, id string) {
	if cluster.Sleep(ctx, pendingNotice) != nil {
		return
	}
	s, err := c.State(ctx, id)
	if err != nil || s.Status != run.Pending {
		return
	}
	cli.Warn(c.App, `no runner has taken run %s yet; it requires %s and waits up to %s; `+
		`"acescope runner list" shows the runners and the nearest match`,
		id, cmp.Or(runners.RequirementsText(s.Input.Requirements), "nothing special"), s.MatchTimeout())
}

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
