package admin

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/temporal/server"
	"acescope/engine/temporal/webui"
	"acescope/sources/runs"
	"acescope/sources/telemetry"
)

func ServeCommand(a *cli.App) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Host the server and execute runs, without the console",
		Long: "Host the embedded server and execute its runs until interrupted. If another process is the host, this\n" +
			"process executes runs too and takes over when the host ends. With --print-env, print the environment that\n" +
			"the temporal command and other workers need to connect, and exit if another process is the host.\n" +
			"With --ui, also serve the Temporal Web UI to browsers of this machine, and print a link that works once.",
		Example: "acescope serve\nacescope serve --ui\n" +
			"eval \"$(acescope serve --print-env)\" && temporal workflow list",
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(a, cmd.Context(), f) },
	}
	cmd.Flags().BoolVar(&f.printEnv, "print-env", false,
		"print the environment of a client with the access token")
	cmd.Flags().BoolVar(&f.ui, "ui", false, "serve the Temporal Web UI on this machine")
	cmd.Flags().IntVar(&f.uiPort, "ui-port", 0, "port of the Web UI (default a free one)")
	cmd.MarkFlagsMutuallyExclusive("ui", "print-env")
	cmd.Flags().DurationVar(&f.idle, "until-idle", 0,
		"exit when no run has been open for this duration, except sessions that wait for\ntheir user (default never)")
	cli.ProgramFlags(a, cmd.Flags())
	a.ServeFlags(cmd.Flags())
	cmd.Flags().IntVar(&a.Port, "port", 0, "port of the server (default the last port, or a free one)")
	return cmd
}

type ServeLine struct {
	Mode      engine.Mode       `json:"mode"`
	Address   string            `json:"address"`
	Namespace string            `json:"namespace"`
	TaskQueue string            `json:"task_queue" jsonschema:"task queue whose runs it executes"`
	DataDir   string            `json:"data_dir"`
	Store     string            `json:"store,omitempty"`
	UI        string            `json:"ui_url,omitempty"`
	Metrics   string            `json:"metrics,omitempty"` // URL of the metrics
	Env       map[string]string `json:"env,omitempty"`
}

type serveFlags struct {
	printEnv, ui bool
	uiPort       int
	idle         time.Duration
}

func (f serveFlags) check(a *cli.App) error {
	switch {
	case a.Port < 0 || a.Port > 65535:
		return cli.UsageError("--port %d: must be from 1 to 65535", a.Port)
	case f.uiPort < 0 || f.uiPort > 65535:
		return cli.UsageError("--ui-port %d: must be from 1 to 65535", f.uiPort)
	case f.uiPort > 0 && !f.ui:
		return cli.UsageError("--ui-port needs --ui")
	case f.idle < 0:
		return cli.UsageError("--until-idle %s: must be a duration above 0, such as 30s", f.idle)
	}
	return nil
}

func serve(a *cli.App, ctx context.Context, f serveFlags) error {
	if err := f.check(a); err != nil {
		return err
	}
	exports, err := telemetry.New(telemetry.Options{Metrics: a.Settings.Metrics, OTLP: a.Settings.OTLP,
		Version: cli.BuildVersion(), Getenv: os.Getenv})
	if err != nil {
		return err
	}
	defer exports.Close()
	e, err := a.Connect(ctx, engine.Options{Worker: true, Takeover: true,
		Metrics: exports.Registerer(), Warn: func(line string) { cli.Warn(a, "%s", line) }})
	if err != nil {
		return err
	}
	if err := checkPort(a, e); err != nil {
		return err
	}
	line := ServeLine{Mode: e.Mode(), Address: e.Address(), Namespace: e.Namespace(),
		TaskQueue: e.TaskQueue, DataDir: e.DataDir(), Store: e.SharedStore(), Metrics: exports.Address()}
	if f.ui {
		ui, err := startWeb(a, e, f.uiPort)
		if err != nil {
			return err
		}
		defer ui.Close()
		line.UI = ui.Link(webui.Page(e.Namespace(), "", ""))
	}
	if err := announce(a, e, line, f.printEnv); err != nil {
		return err
	}
	if f.printEnv && e.Mode() == engine.Attached {
		return nil
	}
	stop, err := export(a, e, exports)
	if err != nil {
		return err
	}
	defer stop()
	if f.printEnv {
		fmt.Fprintln(a.Err, "acescope: this process is the host; it serves until it is interrupted")
	}
	return serveUntilEnd(ctx, e, f.idle)
}

func serveUntilEnd(ctx context.Context, e *engine.Engine, idle time.Duration) error {
	switch {
	case e.Node() != nil:
		return stay(ctx, e, idle)
	case idle > 0:
		untilIdle(ctx, e, idle)
	default:
		<-ctx.Done()
	}
	return nil
}

// stay serves until it is interrupted, or until no run has been open for idle if that is not 0. Other
// processes may rely on this one for their runs, so it looks for open runs once more after it has announced
// its end.
func stay(ctx context.Context, e *engine.Engine, idle time.Duration) error {
	for {
		release, err := server.Stay(e.DataDir())
		if err != nil {
			return err
		}
		if idle > 0 {
			untilIdle(ctx, e, idle)
		} else {
			<-ctx.Done()
		}
		release()
		if n, err := countBusy(ctx, e); ctx.Err() != nil || err == nil && n == 0 {
			return nil
		}
	}
}

// checkPort rejects --port if another process is the host on a different port.
func checkPort(a *cli.App, e *engine.Engine) error {
	if a.Port == 0 || e.Mode() != engine.Attached || e.Node().Endpoint().Port() == a.Port {
		return nil
	}
	ep := e.Node().Endpoint()
	return fmt.Errorf("--port %d: process %d hosts this data directory at %s; end it first or omit --port",
		a.Port, ep.PID, ep.Address)
}

// export starts to export metrics and traces of the namespace. The returned function ends it and must be
// called before the connection is closed.
func export(a *cli.App, e *engine.Engine, t *telemetry.Telemetry) (stop func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	log, closeLog, err := cli.OpenLog(e.DataDir(), true)
	if err != nil {
		return nil, err
	}
	s := telemetry.Source{Deps: healthDeps(a, e), Save: cli.ReplaceFile, Log: log}
	if e.Node() == nil {
		s.Address = e.Address()
	}
	if err := t.Start(s); err != nil {
		closeLog()
		return nil, err
	}
	return func() {
		t.Close()
		closeLog()
	}, nil
}

func announce(a *cli.App, e *engine.Engine, line ServeLine, printEnv bool) error {
	var env []server.EnvVar
	if e.Node() != nil {
		line.DataDir = e.Node().Dir()
		if printEnv {
			env = e.Node().Env()
		}
	}
	if a.JSON {
		for _, v := range env {
			if line.Env == nil {
				line.Env = map[string]string{}
			}
			line.Env[v.Name] = v.Value
		}
		return cli.NewLines(a).Write(line)
	}
	for _, v := range env {
		fmt.Fprintf(a.Out, "export %s=%s\n", v.Name, cli.ShellQuote(v.Value))
	}
	if printEnv {
		return nil
	}
	fmt.Fprintf(a.Out, "%s: %s, namespace %s, task queue %s, data in %s\n", line.Mode, line.Address,
		line.Namespace, line.TaskQueue, line.DataDir)
	if line.Store != "" {
		fmt.Fprintf(a.Out, "store: %s\n", line.Store)
	}
	if line.Metrics != "" {
		fmt.Fprintf(a.Out, "metrics: %s\n", line.Metrics)
	}
	if line.UI != "" {
		fmt.Fprintf(a.Out, "Web UI: %s (works once, for 10 minutes; \"acescope web\" prints another link)\n",
			line.UI)
	}
	return nil
}

// untilIdle serves until no run has been busy for d. A failed count resets the time.
func untilIdle(ctx context.Context, e *engine.Engine, d time.Duration) {
	idleSince := time.Now()
	tick := time.NewTicker(min(d, time.Second))
	defer tick.Stop()
	for time.Since(idleSince) < d {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if busy, err := countBusy(ctx, e); err != nil || busy > 0 {
			idleSince = time.Now()
		}
	}
}

// countBusy counts the open runs, without the sessions that wait for their user.
func countBusy(ctx context.Context, e *engine.Engine) (int64, error) {
	const open = `ExecutionStatus = "Running"`
	all, err := runs.Count(ctx, e.Client, open)
	if err != nil || all == 0 {
		return all, err
	}
	idle, err := runs.Count(ctx, e.Client, fmt.Sprintf("%s AND WorkflowType = %q AND %s = %q",
		open, session.Workflow, ace.AttrPhase, session.Idle))
	return all - idle, err
}
