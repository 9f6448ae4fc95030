package main

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

	"acescope/engine/mcp"
	"acescope/engine/run"
	"acescope/engine/runner"
)

// agentAsk is what a run is asked for with.
type agentAsk struct {
	prompt     string
	params     []string
	parameters string
	mode       string
	demands    runner.Demands
	projectDir string
	session    string // its id
	runID      string
	parent     string
	match      int // seconds
	detach     bool
	wait       bool
}

func (a *app) agentStartCommand() *cobra.Command {
	var f agentAsk
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
		ValidArgsFunction: a.completeBlueprints,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.agentStart(cmd.Context(), args[0], f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.prompt, "prompt", "", "what an agent is to do; @FILE reads a file, - standard input")
	fs.StringArrayVar(&f.params, "param", nil, "a parameter of a program, as NAME=VALUE or NAME:=JSON; can be given again")
	fs.StringVar(&f.parameters, "parameters", "", "all parameters as a JSON object; @FILE reads a file, - standard input")
	fs.StringVar(&f.projectDir, "project-dir", "", "where it works (default: the runner's directory)")
	fs.StringVar(&f.session, "session", "", "id of the session (default: made anew)")
	fs.StringVar(&f.runID, "run-id", "", "id of the run: asking again with the same starts nothing more (default: made anew)")
	fs.IntVar(&f.match, "match-within", 0, "seconds that it waits for a runner (default 300)")
	demandFlags(fs, &f.demands)
	waitFlags(cmd, &f)
	cmd.MarkFlagsMutuallyExclusive("param", "parameters")
	return cmd
}

func (a *app) agentResumeCommand() *cobra.Command {
	var f agentAsk
	cmd := &cobra.Command{
		Use:   "resume SESSION",
		Short: "Send a further prompt to an agent's session",
		Long: "Sends a prompt to the session of an agent that was started before, on the machine and in the directory where it was.\n" +
			"SESSION may be the id of one of its runs. It waits for the answer as agent start does.",
		Example:           "acescope agent resume ses_0123456789ab --prompt 'And now the tests'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRunIDs(true, false),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.agentResume(cmd.Context(), args[0], f) },
	}
	cmd.Flags().StringVar(&f.prompt, "prompt", "", "what the agent is to do now; @FILE reads a file, - standard input")
	cmd.Flags().StringVar(&f.runID, "run-id", "", "id of the run: asking again with the same starts nothing more (default: made anew)")
	waitFlags(cmd, &f)
	return cmd
}

// waitFlags say how the end of a run is waited for.
func waitFlags(cmd *cobra.Command, f *agentAsk) {
	fs := cmd.Flags()
	fs.StringVar(&f.mode, "mode", string(run.Sync), "how the end is told: sync waits for it, async_poll returns at once, async_callback too and tells --parent")
	fs.StringVar(&f.parent, "parent", os.Getenv(envSession), "the session that starts the run (default $"+envSession+")")
	fs.BoolVar(&f.detach, "detach", false, "return at once, as --mode async_poll; where nobody serves, a process in the background does")
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
func demandFlags(fs *pflag.FlagSet, d *runner.Demands) {
	fs.StringArrayVar(&d.Tags, "demand-tag", nil, "a tag that the runner must have; can be given again")
	fs.StringVar(&d.Hostname, "demand-host", "", "the runner's host name")
	fs.StringVar(&d.ExecutorType, "demand-executor", "", "the kind of executor: deterministic, claude-code, codex, gemini, opencode, or one that was added")
	fs.StringVar(&d.ProjectDir, "demand-project-dir", "", "the runner's project directory")
}

// request is what the flags ask for, without what only a blueprint can tell.
func (f agentAsk) request() (run.Request, error) {
	r := run.Request{Mode: run.Mode(f.mode), Demands: f.demands, RunID: f.runID, ParentSessionID: f.parent, ParentRunID: os.Getenv(envRun), MatchWithin: f.match, By: me()}
	if f.detach {
		r.Mode = run.AsyncPoll
	}
	if !slices.Contains([]run.Mode{run.Sync, run.AsyncPoll, run.AsyncCallback}, r.Mode) {
		return r, usage("--mode %s: give sync, async_poll or async_callback", safe(f.mode))
	}
	if r.Mode == run.AsyncCallback && f.parent == "" {
		return r, usage("--mode async_callback: which session is to be told? give --parent ID, or use async_poll")
	}
	for flag, id := range map[string]string{"--session": f.session, "--run-id": f.runID, "--parent": f.parent, "$" + envRun: r.ParentRunID} {
		if id != "" && !run.ValidName(id) {
			return r, usage("%s %s: ids have letters, digits, dots, dashes and underscores, and begin with a letter or a digit", flag, safe(fmt.Sprintf("%q", id)))
		}
	}
	if f.match < 0 {
		return r, usage("--match-within %d: give seconds, 1 or more", f.match)
	}
	for _, p := range f.params {
		if _, _, _, err := splitParam(p); err != nil {
			return r, err
		}
	}
	if f.projectDir != "" {
		dir, err := filepath.Abs(f.projectDir)
		if err != nil {
			return r, err
		}
		r.ProjectDir = dir
	}
	prompt, err := textOf("--prompt", f.prompt, run.MaxPrompt*utf8.UTFMax)
	if err != nil {
		return r, err
	}
	if n := utf8.RuneCount(prompt); n > run.MaxPrompt {
		return r, usage("--prompt: it has %d characters, at most %d are taken", n, run.MaxPrompt)
	}
	r.Prompt = string(prompt)
	return r, nil
}

// waits tells whether the command stays until the run has ended.
func (f agentAsk) waits(m run.Mode) bool { return f.wait || m == run.Sync }

// textOf is the value of a flag: itself, or what a file or standard input holds.
func textOf(flag, value string, limit int64) ([]byte, error) {
	path, file := strings.CutPrefix(value, "@")
	if value == "-" {
		path, file = "-", true
	}
	if !file {
		return []byte(value), nil
	}
	data, err := readFile(path, limit)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(data)) == "" {
		return nil, usage("%s %s: it is empty", flag, safe(value))
	}
	return data, nil
}

func (a *app) agentStart(ctx context.Context, name string, f agentAsk) error {
	r, err := f.request()
	if err != nil {
		return err
	}
	r.AgentName, r.SessionID = name, f.session
	if !run.ValidName(name) {
		return usage("%s is no blueprint's name: names have letters, digits, dots, dashes and underscores, and begin with a letter or a digit", safe(fmt.Sprintf("%q", name)))
	}
	if f.parameters != "" {
		if r.Parameters, err = textOf("--parameters", f.parameters, run.MaxParams); err != nil {
			return err
		}
		if !json.Valid(r.Parameters) {
			return usage("--parameters: they are no JSON: %w", notJSON(r.Parameters))
		}
	}
	if err := a.carry(f.waits(r.Mode)); err != nil {
		return err
	}
	defer a.endUnused()
	return a.withRuns(ctx, false, func(v *agentRuns) error { return v.start(ctx, r, f) })
}

// notJSON says where a text stops to be JSON.
func notJSON(data []byte) error {
	var v any
	return json.Unmarshal(data, &v)
}

// carry has a process in the background carry on what is not waited for, where nobody else
// would.
func (a *app) carry(waits bool) error {
	if waits || a.cluster() != nil || a.hosted() {
		return nil
	}
	return a.spawn()
}

func (a *app) agentResume(ctx context.Context, id string, f agentAsk) error {
	r, err := f.request()
	if err != nil {
		return err
	}
	if r.Prompt == "" {
		return usage("give --prompt: what the agent is to do now")
	}
	if err := a.carry(f.waits(r.Mode)); err != nil {
		return err
	}
	defer a.endUnused()
	return a.withRuns(ctx, false, func(v *agentRuns) error { return v.resume(ctx, id, r, f) })
}

// start starts a run.
func (v *agentRuns) start(ctx context.Context, r run.Request, f agentAsk) error {
	if len(f.params) > 0 {
		schema, err := v.schemaOf(ctx, r.AgentName)
		if err != nil {
			return err
		}
		if r.Parameters, err = paramsOf(f.params, schema); err != nil {
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
func (v *agentRuns) schemaOf(ctx context.Context, name string) (json.RawMessage, error) {
	all, err := v.Blueprints(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(d run.Described) bool { return d.Name == name }); i >= 0 {
		return all[i].Schema, nil
	}
	return nil, nil
}

func (v *agentRuns) resume(ctx context.Context, id string, r run.Request, f agentAsk) error {
	session, err := mcp.SessionOf(ctx, v.Verbs, id)
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

// agentStarted says that a run was started.
type agentStarted struct {
	Type       string         `json:"type"` // agent_started
	RunID      string         `json:"run_id"`
	SessionID  string         `json:"session_id"`
	WorkflowID string         `json:"workflow_id"`
	RunType    run.Type       `json:"run_type"`
	AgentName  string         `json:"agent_name"`
	Mode       run.Mode       `json:"execution_mode"`
	Demands    runner.Demands `json:"demands"`
	ProjectDir string         `json:"project_dir,omitempty"`
	Parent     string         `json:"parent_session_id,omitempty"`
	PID        int            `json:"pid,omitempty"` // of the process in the background that serves it
}

// begun says that a run was started, and waits for its end where that is asked for.
func (v *agentRuns) begun(ctx context.Context, in run.Input, f agentAsk) error {
	a := v.app
	a.begun = true
	waits := f.waits(in.Mode)
	switch {
	case a.json:
		l := agentStarted{"agent_started", in.RunID, in.SessionID, run.WorkflowID(in.RunID), in.Type, in.Name(), in.Mode, in.Demands, in.ProjectDir, in.ParentSessionID, a.background}
		if err := newLines(a.out).write(l); err != nil {
			return err
		}
	case waits:
		fmt.Fprintf(a.err, "acescope: run %s of %s is started, session %s\n", in.RunID, in.Name(), in.SessionID)
	default:
		if _, err := fmt.Fprintf(a.out, "run %s of %s is started, session %s\n", in.RunID, in.Name(), in.SessionID); err != nil {
			return err
		}
	}
	if !waits {
		return nil
	}
	return v.await(ctx, in)
}

// await waits for the end of a run and writes what came of it.
func (v *agentRuns) await(ctx context.Context, in run.Input) error {
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
		return v.writeResult(in, res)
	}
	if ctx.Err() == nil {
		return err
	}
	goesOn := "it goes on"
	if v.alone {
		goesOn = "it is kept, and what of it ran in this process ends with it"
	}
	fmt.Fprintf(v.app.err, "acescope: no longer waiting for run %s: %s; acescope agent result %s --wait waits again, acescope agent stop %s stops it\n", in.RunID, goesOn, in.RunID, in.RunID)
	return errInterrupted
}

// pendingAfter is how long a run may wait for a runner before whoever waits is told so.
const pendingAfter = 2 * time.Second

// sayPending says, once, that no runner has taken the run.
func (v *agentRuns) sayPending(ctx context.Context, id string) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(pendingAfter):
	}
	s, err := v.State(ctx, id)
	if err != nil || s.Status != run.Pending {
		return
	}
	fmt.Fprintf(v.app.err, "acescope: no runner has taken run %s so far; it demands %s and waits %s at most; acescope runner list shows the runners, and which one comes nearest\n",
		safe(id), cmp.Or(safe(demandsWords(s.Input.Demands)), "nothing"), s.MatchWithin())
}
