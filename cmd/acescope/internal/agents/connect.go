// Package agents holds the commands on agent sessions, their cost, blueprint runs, runners, MCP and hooks.
package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
)

// answerTimeout bounds how long a session or a runner may take to answer a request, which needs a worker.
const answerTimeout = 20 * time.Second

// openToServe connects for a command that changes something. If no process hosts the data directory, this one
// hosts and serves it.
func openToServe(a *cli.App, ctx context.Context) (*engine.Engine, error) {
	return a.Open(ctx, !a.Served())
}

// reachable reports whether there is anything to read: a cluster, a host, or a data directory that was used
// before.
func reachable(a *cli.App) bool {
	if a.Served() {
		return true
	}
	dir, err := a.DataDir()
	if err != nil {
		return false
	}
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// answerError gives the error of a request to a session or a runner its exit code, and explains a missing
// answer.
func answerError(what string, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ErrInterrupted
	case errors.Is(err, context.DeadlineExceeded), cluster.Unreachable(err):
		return &cli.ExitError{Code: cli.ExitUnreachable, Err: fmt.Errorf(
			`%s did not answer within %s; check that a worker is running ("acescope serve" starts one)`,
			what, answerTimeout)}
	case errors.Is(err, engine.ErrNoRunner), errors.Is(err, engine.ErrNoSession):
		return cli.NotFound("%w", err)
	}
	return err
}

func CompleteRunners(a *cli.App) cobra.CompletionFunc {
	return cli.CompleteFrom(a, func(ctx context.Context, e *engine.Engine) (out []cobra.Completion) {
		view, err := e.Runners(ctx, runner.ViewOptions{})
		if err != nil {
			return nil
		}
		for _, r := range view.Runners {
			out = append(out, cobra.CompletionWithDesc(r.ID, string(r.Status)+" on "+r.Capabilities.Hostname))
		}
		return out
	})
}

// details are names and untrusted values, one per line.
type details [][2]string

// add appends a line. Lines without a value are left out.
func (d *details) add(name, format string, args ...any) {
	value := strings.TrimSpace(cli.SafeText(fmt.Sprintf(format, args...)))
	if value != "" {
		*d = append(*d, [2]string{name, value})
	}
}

func (d details) print(to io.Writer) error {
	w := cli.NewTable(to)
	w.Wrap = true
	for _, row := range d {
		w.Row(row[0], row[1])
	}
	return w.Flush()
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}
