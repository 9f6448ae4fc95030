package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/temporal/server"
	"acescope/sources/runs"
)

// ServeCommand returns the command serve.
func ServeCommand(a *cli.App) *cobra.Command {
	var printEnv bool
	var idle time.Duration
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Host the server and execute runs, without the console",
		Long: "Host the embedded server and execute its runs until interrupted. If another process is the host, this\n" +
			"process executes runs too and takes over when the host ends. With --print-env, print the environment that\n" +
			"the temporal command and other workers need to connect, and exit if another process is the host.",
		Example: "acescope serve\neval \"$(acescope serve --print-env)\" && temporal workflow list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(a, cmd.Context(), printEnv, idle)
		},
	}
	cmd.Flags().BoolVar(&printEnv, "print-env", false, "print the environment of a client with the access token")
	cmd.Flags().DurationVar(&idle, "until-idle", 0,
		"exit when no run has been open for this duration, except sessions that wait for\ntheir user (default never)")
	cli.ProgramFlags(a, cmd.Flags())
	cmd.Flags().IntVar(&a.Port, "port", 0, "port of the server (default the last port, or a free one)")
	return cmd
}

// ServeLine says that a server is running.
type ServeLine struct {
	Type      string            `json:"type"` // serve
	Mode      engine.Mode       `json:"mode"`
	Address   string            `json:"address"`
	Namespace string            `json:"namespace"`
	DataDir   string            `json:"data_dir"`
	Env       map[string]string `json:"env,omitempty"`
}

func serve(a *cli.App, ctx context.Context, printEnv bool, idle time.Duration) error {
	if a.Port < 0 || a.Port > 65535 {
		return cli.UsageError("--port %d: must be from 1 to 65535", a.Port)
	}
	if idle < 0 {
		return cli.UsageError("--until-idle %s: must be a duration above 0, such as 30s", idle)
	}
	e, done, err := a.Open(ctx, true, true)
	if err != nil {
		return err
	}
	defer done()
	if err := checkPort(a, e); err != nil {
		return err
	}
	if err := announce(a, e, printEnv); err != nil {
		return err
	}
	if printEnv && e.Mode() == engine.Attached {
		return nil
	}
	if printEnv {
		fmt.Fprintln(a.Err, "acescope: this process is the host; it serves until it is interrupted")
	}
	if e.Node() != nil {
		if err := stay(ctx, e, idle); err != nil {
			return err
		}
	} else if idle > 0 {
		untilIdle(ctx, e, idle)
	} else {
		<-ctx.Done()
	}
	return nil
}

// stay serves until it is interrupted, or until no run has been open for idle if that is not 0. Other processes may
// leave their runs to this one, so it looks for runs once more after it has announced its end.
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

func announce(a *cli.App, e *engine.Engine, printEnv bool) error {
	line := ServeLine{Type: "serve", Mode: e.Mode(), Address: e.Address(), Namespace: e.Namespace()}
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
		return cli.NewLines(a.Out).Write(line)
	}
	for _, v := range env {
		fmt.Fprintf(a.Out, "export %s=%s\n", v.Name, cli.ShellQuote(v.Value))
	}
	if !printEnv {
		fmt.Fprintf(a.Out, "%s: %s, namespace %s, data in %s\n", line.Mode, line.Address, line.Namespace, line.DataDir)
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
