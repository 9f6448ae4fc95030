package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine"
	"acescope/engine/server"
	"acescope/sources"
)

func (a *app) serveCommand() *cobra.Command {
	var printEnv bool
	var idle time.Duration
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Host the server and the worker without a screen",
		Long: "Host the embedded server and serve its runs until interrupted. Where another process hosts already, this one\n" +
			"helps with its runs and takes over when that process ends. With --print-env, print what the temporal command\n" +
			"and workers in other languages need to connect, and end if another process hosts.",
		Example: "acescope serve\neval \"$(acescope serve --print-env)\" && temporal workflow list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.serve(cmd.Context(), printEnv, idle)
		},
	}
	cmd.Flags().BoolVar(&printEnv, "print-env", false, "print the environment of a client; it holds the access token")
	cmd.Flags().DurationVar(&idle, "until-idle", 0, "end when no run has been open for so long (default never)")
	cmd.Flags().IntVar(&a.port, "port", 0, "port of the server (default: the last one used, or a free one)")
	return cmd
}

// serveLine says that a server is up.
type serveLine struct {
	Type      string            `json:"type"` // serve
	Mode      engine.Mode       `json:"mode"`
	Address   string            `json:"address"`
	Namespace string            `json:"namespace"`
	DataDir   string            `json:"data_dir"`
	Env       map[string]string `json:"env,omitempty"`
}

func (a *app) serve(ctx context.Context, printEnv bool, idle time.Duration) error {
	if a.port < 0 || a.port > 65535 {
		return usage("--port %d: give a number from 1 to 65535", a.port)
	}
	if idle < 0 {
		return usage("--until-idle %s: give a duration above 0, such as 30s", idle)
	}
	e, done, err := a.open(ctx, true, true)
	if err != nil {
		return err
	}
	defer done()
	if err := a.checkPort(e); err != nil {
		return err
	}
	if err := a.announce(e, printEnv); err != nil {
		return err
	}
	if printEnv && e.Mode() == engine.Attached {
		return nil
	}
	if printEnv {
		fmt.Fprintln(a.err, "acescope: no other process hosts, so this one goes on serving until it is interrupted")
	}
	if idle > 0 {
		return a.untilIdle(ctx, e, idle)
	}
	<-ctx.Done()
	return nil
}

// checkPort refuses a port that was asked for and that this process cannot give, since
// another one hosts.
func (a *app) checkPort(e *engine.Engine) error {
	if a.port == 0 || e.Mode() != engine.Attached || e.Node().Endpoint().Port() == a.port {
		return nil
	}
	ep := e.Node().Endpoint()
	return fmt.Errorf("--port %d: process %d hosts this data directory already, at %s; end it first, or leave --port out", a.port, ep.PID, ep.Address)
}

func (a *app) announce(e *engine.Engine, printEnv bool) error {
	line := serveLine{Type: "serve", Mode: e.Mode(), Address: e.Address(), Namespace: e.Namespace()}
	var env []server.EnvVar
	if e.Node() != nil {
		line.DataDir = e.Node().Dir()
		if printEnv {
			env = e.Node().Env()
		}
	}
	if a.json {
		for _, v := range env {
			if line.Env == nil {
				line.Env = map[string]string{}
			}
			line.Env[v.Name] = v.Value
		}
		return newLines(a.out).write(line)
	}
	for _, v := range env {
		fmt.Fprintf(a.out, "export %s=%s\n", v.Name, shellQuote(v.Value))
	}
	if !printEnv {
		fmt.Fprintf(a.out, "%s: %s, namespace %s, data in %s\n", line.Mode, line.Address, line.Namespace, line.DataDir)
	}
	return nil
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// untilIdle serves until no run has been open for d.
func (a *app) untilIdle(ctx context.Context, e *engine.Engine, d time.Duration) error {
	quiet := time.Now()
	tick := time.NewTicker(min(d, time.Second))
	defer tick.Stop()
	for time.Since(quiet) < d {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		open, err := sources.Count(ctx, e.Client, `ExecutionStatus = "Running"`)
		if err != nil || open > 0 {
			quiet = time.Now()
		}
	}
	return nil
}
