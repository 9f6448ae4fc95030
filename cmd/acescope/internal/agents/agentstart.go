package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	"acescope/engine/tasks/mcp"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// AgentAsk is what a run is asked for with.
type AgentAsk struct {
	Prompt     string
	Params     []string
	parameters string
	Mode       string
	Demands    runner.Requirements
	ProjectDir string
	Session    string // its id
	RunID      string
	parent     string
	Match      int // seconds
	Detach     bool
	wait       bool
}

func agentStartCommand(a *cli.App) *cobra.Command {
	var f AgentAsk
	cmd := &cobra.Command{
		Use:   "start NAME",
		Short: "Start an agent or a deterministic program by its blueprint",
		Long: "Starts a run of the blueprint NAME on a runner that meets its demands, and waits for its end: what the program wrote\n" +
			"is written as it is, to standard output and standard error; of an agent its last message. It exits with 0 where the\n" +
			"run was completed and with 1 where it failed or was stopped. The first ctrl+c ends the wait and not the run: it says\n" +
			"how to go on and how to stop it.\n\n" +
			"An agent takes --prompt. A deterministic program takes --param or --parameters, '{}' where it needs none. With\n" +
			"--param NAME=VALUE the blueprint's schema says what VALUE is (a number, a boolean, an item of a list, a text);\n" +
			"NAME:=JSON is taken as it is.",
		Example: "acescope agent start crawler --param url=http://127.0.0.1:8000 --param depth=2\n" +
			"acescope agent start writer --prompt @task.md --detach --json\n" +
			"jq -n '{db:\"shop.db\"}' | acescope agent start backup --parameters - --demand-tag sqlite",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteBlueprints,
		RunE:              func(cmd *cobra.Command, args []string) error { return agentStart(a, cmd.Context(), args[0], f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.Prompt, "prompt", "", "what an agent is to do; @FILE reads a file, - standard input")
	fs.StringArrayVar(&f.Params, "param", nil, "a parameter of a program, as NAME=VALUE or NAME:=JSON; can be given again")
	fs.StringVar(&f.parameters, "parameters", "", "all parameters as a JSON object; @FILE reads a file, - standard input")
	fs.StringVar(&f.ProjectDir, "project-dir", "", "where it works (default: the runner's directory)")
	fs.StringVar(&f.Session, "session", "", "id of the session (default: made anew)")
	fs.StringVar(&f.RunID, "run-id", "", "id of the run: asking again with the same starts nothing more (default: made anew)")
	fs.IntVar(&f.Match, "match-within", 0, "seconds that it waits for a runner (default 300)")
	demandFlags(fs, &f.Demands)
	waitFlags(cmd, &f)
	cmd.MarkFlagsMutuallyExclusive("param", "parameters")
	return cmd
}

func agentResumeCommand(a *cli.App) *cobra.Command {
	var f AgentAsk
	cmd := &cobra.Command{
		Use:   "resume SESSION",
		Short: "Send a further prompt to an agent's session",
		Long: "Sends a prompt to the session of an agent that was started before, on the machine and in the directory where it was.\n" +
			"SESSION may be the id of one of its runs. It waits for the answer as agent start does.",
		Example:           "acescope agent resume ses_0123456789ab --prompt 'And now the tests'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRunIDs(a, true, false),
		RunE:              func(cmd *cobra.Command, args []string) error { return agentResume(a, cmd.Context(), args[0], f) },
	}
	cmd.Flags().StringVar(&f.Prompt, "prompt", "", "what the agent is to do now; @FILE reads a file, - standard input")
	cmd.Flags().StringVar(&f.RunID, "run-id", "", "id of the run: asking again with the same starts nothing more (default: made anew)")
	waitFlags(cmd, &f)
	return cmd
}

// waitFlags say how the end of a run is waited for.
func waitFlags(cmd *cobra.Command, f *AgentAsk) {
	fs := cmd.Flags()
	fs.StringVar(&f.Mode, "mode", string(run.Sync), "how the end is told: sync waits for it, async_poll returns at once, async_callback too and tells --parent")
	fs.StringVar(&f.parent, "parent", os.Getenv(envSession), "the session that starts the run (default $"+envSession+")")
	fs.BoolVar(&f.Detach, "detach", false, "return at once, as --mode async_poll; where nobody serves, a process in the background does")
	fs.BoolVar(&f.wait, "wait", false, "wait for the end in every mode")
	cmd.MarkFlagsMutuallyExclusive("detach", "wait")
	cmd.MarkFlagsMutuallyExclusive("detach", "mode")
}

// Variables that name the session and the run that a command belongs to, where an agent or a
// program calls it.
const (
	envSession = "ACESCOPE_SESSION_ID"
	envRun     = "ACESCOPE_RUN_ID"
)

// demandFlags say what a runner must be besides what a blueprint demands.
func demandFlags(fs *pflag.FlagSet, d *runner.Requirements) {
	fs.StringArrayVar(&d.Tags, "demand-tag", nil, "a tag that the runner must have; can be given again")
	fs.StringVar(&d.Hostname, "demand-host", "", "the runner's host name")
	fs.StringVar(&d.ExecutorType, "demand-executor", "", "the kind of executor: deterministic, claude-code, codex, gemini, opencode, or one that was added")
	fs.StringVar(&d.ProjectDir, "demand-project-dir", "", "the runner's project directory")
}

// Request is what the flags ask for, without what only a blueprint can tell.
func (f AgentAsk) Request() (run.Request, error) {
	r := run.Request{Mode: run.Mode(f.Mode), Requirements: f.Demands, RunID: f.RunID, ParentSessionID: f.parent, ParentRunID: os.Getenv(envRun), MatchWithin: f.Match, By: Me()}
	if f.Detach {
		r.Mode = run.AsyncPoll
	}
	if !slices.Contains([]run.Mode{run.Sync, run.AsyncPoll, run.AsyncCallback}, r.Mode) {
		return r, cli.UsageError("--mode %s: give sync, async_poll or async_callback", cli.SafeText(f.Mode))
	}
	if r.Mode == run.AsyncCallback && f.parent == "" {
		return r, cli.UsageError("--mode async_callback: which session is to be told? give --parent ID, or use async_poll")
	}
	for flag, id := range map[string]string{"--session": f.Session, "--run-id": f.RunID, "--parent": f.parent, "$" + envRun: r.ParentRunID} {
		if id != "" && !run.ValidName(id) {
			return r, cli.UsageError("%s %s: ids have letters, digits, dots, dashes and underscores, and begin with a letter or a digit", flag, cli.SafeText(fmt.Sprintf("%q", id)))
		}
	}
	if f.Match < 0 {
		return r, cli.UsageError("--match-within %d: give seconds, 1 or more", f.Match)
	}
	for _, p := range f.Params {
		if _, _, _, err := splitParam(p); err != nil {
			return r, err
		}
	}
	if f.ProjectDir != "" {
		dir, err := filepath.Abs(f.ProjectDir)
		if err != nil {
			return r, err
		}
		r.ProjectDir = dir
	}
	prompt, err := textOf("--prompt", f.Prompt, run.MaxPrompt*utf8.UTFMax)
	if err != nil {
		return r, err
	}
	if n := utf8.RuneCount(prompt); n > run.MaxPrompt {
		return r, cli.UsageError("--prompt: it has %d characters, at most %d are taken", n, run.MaxPrompt)
	}
	r.Prompt = string(prompt)
	return r, nil
}

// waits tells whether the command stays until the run has ended.
func (f AgentAsk) waits(m run.Mode) bool { return f.wait || m == run.Sync }

// textOf is the value of a flag: itself, or what a file or standard input holds.
func textOf(flag, value string, limit int64) ([]byte, error) {
	path, file := strings.CutPrefix(value, "@")
	if value == "-" {
		path, file = "-", true
	}
	if !file {
		return []byte(value), nil
	}
	data, err := cli.ReadFile(path, limit)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(data)) == "" {
		return nil, cli.UsageError("%s %s: it is empty", flag, cli.SafeText(value))
	}
	return data, nil
}

func agentStart(a *cli.App, ctx context.Context, name string, f AgentAsk) error {
	r, err := f.Request()
	if err != nil {
		return err
	}
	r.AgentName, r.SessionID = name, f.Session
	if !run.ValidName(name) {
		return cli.UsageError("%s is no blueprint's name: names have letters, digits, dots, dashes and underscores, and begin with a letter or a digit", cli.SafeText(fmt.Sprintf("%q", name)))
	}
	if f.parameters != "" {
		if r.Parameters, err = textOf("--parameters", f.parameters, run.MaxParams); err != nil {
			return err
		}
		if !json.Valid(r.Parameters) {
			return cli.UsageError("--parameters: they are no JSON: %w", notJSON(r.Parameters))
		}
	}
	if err := carry(a, f.waits(r.Mode)); err != nil {
		return err
	}
	defer runs.EndUnused(a)
	return withRuns(a, ctx, false, func(v *AgentRuns) error { return v.StartRun(ctx, r, f) })
}

// notJSON says where a text stops to be JSON.
func notJSON(data []byte) error {
	var v any
	return json.Unmarshal(data, &v)
}

// carry has a process in the background carry on what is not waited for, where nobody else
// would.
func carry(a *cli.App, waits bool) error {
	if waits || a.Cluster() != nil || hosted(a) {
		return nil
	}
	return runs.Spawn(a)
}

func agentResume(a *cli.App, ctx context.Context, id string, f AgentAsk) error {
	r, err := f.Request()
	if err != nil {
		return err
	}
	if r.Prompt == "" {
		return cli.UsageError("give --prompt: what the agent is to do now")
	}
	if err := carry(a, f.waits(r.Mode)); err != nil {
		return err
	}
	defer runs.EndUnused(a)
	return withRuns(a, ctx, false, func(v *AgentRuns) error { return v.ResumeRun(ctx, id, r, f) })
}

// Start starts a run.
func (v *AgentRuns) StartRun(ctx context.Context, r run.Request, f AgentAsk) error {
	if len(f.Params) > 0 {
		schema, err := v.schemaOf(ctx, r.AgentName)
		if err != nil {
			return err
		}
		if r.Parameters, err = paramsOf(f.Params, schema); err != nil {
			return err
		}
	}
	in, err := v.Start(ctx, r)
	if err != nil {
		return err
	}
	return v.begun(ctx, in, f)
}

// schemaOf is the schema of a blueprint's parameters, nil where it has none; that there is no
// such blueprint is for the start to say.
func (v *AgentRuns) schemaOf(ctx context.Context, name string) (json.RawMessage, error) {
	all, err := v.Blueprints(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(d run.BlueprintInfo) bool { return d.Name == name }); i >= 0 {
		return all[i].Schema, nil
	}
	return nil, nil
}

func (v *AgentRuns) ResumeRun(ctx context.Context, id string, r run.Request, f AgentAsk) error {
	session, err := mcp.ResolveSession(ctx, v.Service, id)
	if err != nil {
		return err
	}
	r.SessionID = session
	in, err := v.Resume(ctx, r)
	if err != nil {
		return err
	}
	return v.begun(ctx, in, f)
}

// AgentStarted says that a run was started.
type AgentStarted struct {
	Type       string              `json:"type"` // agent_started
	RunID      string              `json:"run_id"`
	SessionID  string              `json:"session_id"`
	WorkflowID string              `json:"workflow_id"`
	RunType    run.Type            `json:"run_type"`
	AgentName  string              `json:"agent_name"`
	Mode       run.Mode            `json:"execution_mode"`
	Demands    runner.Requirements `json:"demands"`
	ProjectDir string              `json:"project_dir,omitempty"`
	Parent     string              `json:"parent_session_id,omitempty"`
	PID        int                 `json:"pid,omitempty"` // of the process in the background that serves it
}

// begun says that a run was started, and waits for its end where that is asked for.
func (v *AgentRuns) begun(ctx context.Context, in run.Input, f AgentAsk) error {
	a := v.App
	a.Begun = true
	waits := f.waits(in.Mode)
	switch {
	case a.JSON:
		l := AgentStarted{"agent_started", in.RunID, in.SessionID, run.WorkflowID(in.RunID), in.Type, in.Name(), in.Mode, in.Requirements, in.ProjectDir, in.ParentSessionID, a.Background}
		if err := cli.NewLines(a.Out).Write(l); err != nil {
			return err
		}
	case waits:
		fmt.Fprintf(a.Err, "acescope: run %s of %s is started, session %s\n", in.RunID, in.Name(), in.SessionID)
	default:
		if _, err := fmt.Fprintf(a.Out, "run %s of %s is started, session %s\n", in.RunID, in.Name(), in.SessionID); err != nil {
			return err
		}
	}
	if !waits {
		return nil
	}
	return v.await(ctx, in)
}

// await waits for the end of a run and writes what came of it.
func (v *AgentRuns) await(ctx context.Context, in run.Input) error {
	saying, quiet := context.WithCancel(ctx)
	said := make(chan struct{})
	go func() {
		defer close(said)
		v.sayPending(saying, in.RunID)
	}()
	res, err := v.Await(ctx, in.RunID)
	quiet()
	<-said
	if err == nil {
		return v.WriteResult(in, res)
	}
	if ctx.Err() == nil {
		return err
	}
	goesOn := "it goes on"
	if v.alone {
		goesOn = "it is kept, and what of it ran in this process ends with it"
	}
	fmt.Fprintf(v.App.Err, "acescope: no longer waiting for run %s: %s; acescope agent result %s --wait waits again, acescope agent stop %s stops it\n", in.RunID, goesOn, in.RunID, in.RunID)
	return cli.ErrInterrupted
}

// pendingAfter is how long a run may wait for a runner before whoever waits is told so.
const pendingAfter = 2 * time.Second

// sayPending says, once, that no runner has taken the run.
func (v *AgentRuns) sayPending(ctx context.Context, id string) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(pendingAfter):
	}
	s, err := v.State(ctx, id)
	if err != nil || s.Status != run.Pending {
		return
	}
	fmt.Fprintf(v.App.Err, "acescope: no runner has taken run %s so far; it demands %s and waits %s at most; acescope runner list shows the runners, and which one comes nearest\n",
		cli.SafeText(id), cmp.Or(cli.SafeText(demandsWords(s.Input.Requirements)), "nothing"), s.MatchTimeout())
}
