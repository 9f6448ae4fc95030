package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
	"acescope/sources/cluster"
	"acescope/sources/system"
)

// HealthCommand returns the command health.
func HealthCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Check the server, the workers and their task queues",
		Long: "Check the server, the workers and their task queues, and advise what to do. The exit code is 0 if every\n" +
			"check passes, 1 if one fails, and 5 if the server cannot be reached. See also acescope doctor.",
		Example: "acescope health\nacescope health --json | jq '.checks[] | select(.state != \"ok\")'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return health(a, cmd.Context()) },
	}
}

const healthTimeout = 30 * time.Second

func health(a *cli.App, ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return unreachable(a, err)
	}
	defer done()
	s := system.Read(ctx, healthDeps(a, e), cluster.Connection{Mode: string(e.Mode()), Address: e.Address()})
	if err := writeHealth(a, s); err != nil {
		return err
	}
	if s.Err != "" {
		return &cli.ExitError{Code: cli.ExitUnreachable, Err: errors.New(s.Err)}
	}
	if n := system.CountErrors(s.Checks()); n > 0 {
		return checksFailed(n)
	}
	return nil
}

// unreachable writes the health of a server that cannot be reached, and returns err.
func unreachable(a *cli.App, err error) error {
	if code := cli.ExitCode(err); code != cli.ExitUnreachable {
		return err
	}
	s := system.New(string(engine.Embedded), "", ace.DefaultNamespace)
	s.At, s.Err = time.Now().UTC(), cli.OneLine(err)
	if c := a.Cluster(); c != nil {
		s.Mode, s.Address = string(engine.Cluster), c.Address
		if c.Namespace != "" {
			s.Space = c.Namespace
		}
	} else if dir, dirErr := a.DataDir(); dirErr == nil {
		s.Host.DataDir = dir
	}
	s.Process = system.ThisProcess()
	if writeErr := writeHealth(a, s); writeErr != nil {
		return writeErr
	}
	return err
}

// healthDeps returns what the readers of the health need.
func healthDeps(a *cli.App, e *engine.Engine) cluster.Deps {
	dir, _ := a.DataDir() // the connection exists, so there is a data directory
	return cluster.Deps{
		Client: e.Client, Namespace: e.Namespace(), TaskQueue: e.TaskQueue, Playbooks: e.Books, DataDir: dir,
		Mirror: engine.LogMirror(e), Transcripts: engine.TranscriptMirror(e), Spool: spool.Dir(os.Getenv),
		Artifact: e.Artifacts.Get,
		Meter:    a.Meter, Host: host(e, dir),
		Agents: a.AgentChecks(),
	}
}

// host returns a function that describes the host of the server, which changes at a takeover.
func host(e *engine.Engine, dir string) func() cluster.Host {
	return func() cluster.Host {
		h := cluster.Host{Worker: e.Serves()}
		n := e.Node()
		if n == nil {
			return h
		}
		ep := n.Endpoint()
		h.PID, h.Version, h.Started, h.DataDir, h.Lost = ep.PID, ep.Version, ep.Started, dir, ep.Lost(dir)
		h.Clock = ep.Clock.Warning()
		free, err := e.Free()
		if err != nil {
			h.FreeErr = err.Error()
		}
		h.Free = free
		return h
	}
}

// healthLine is the health of the server and the workers.
type healthLine struct {
	Type string `json:"type"` // health
	OK   bool   `json:"ok"`
	*system.System
	Checks []system.Check `json:"checks"`
}

// marks are the severities as text.
var marks = map[cluster.Severity]string{
	cluster.OK: "ok", cluster.Info: "info", cluster.Warning: "WARNING", cluster.Error: "ERROR",
}

func writeHealth(a *cli.App, s *system.System) error {
	checks := s.Checks()
	l := healthLine{"health", system.CountErrors(checks) == 0, s, checks}
	if a.JSON {
		return cli.NewLines(a.Out).Write(l)
	}
	w := cli.NewTable(a.Out)
	for _, c := range l.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", marks[c.State], c.Section, cli.SafeText(c.Name), cli.SafeText(c.Text))
		if c.Advice != "" {
			fmt.Fprintf(w, "\t\t\t  %s\n", cli.SafeText(c.Advice))
		}
	}
	return w.Flush()
}
