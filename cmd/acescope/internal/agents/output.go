// Package agents holds the commands on agent sessions, blueprint runs, runners, MCP and observation.
package agents

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
)

// newGroup returns a command that only holds other commands.
func newGroup(name, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs}
	group.AddCommand(commands...)
	group.RunE = func(*cobra.Command, []string) error {
		var names []string
		for _, c := range commands {
			names = append(names, c.Name())
		}
		return cli.UsageError("%s needs a command: %s", name, strings.Join(names, ", "))
	}
	return group
}

// report writes v as a JSON line with --json, otherwise the formatted line.
func report(a *cli.App, v any, format string, args ...any) error {
	if a.JSON {
		return cli.NewLines(a.Out).Write(v)
	}
	_, err := fmt.Fprintln(a.Out, cli.SafeText(fmt.Sprintf(format, args...)))
	return err
}

// mapped returns the lines of values.
func mapped[V, L any](values []V, line func(V) L) iter.Seq[L] {
	return func(yield func(L) bool) {
		for _, v := range values {
			if !yield(line(v)) {
				return
			}
		}
	}
}

// notice writes a line to standard error.
func notice(a *cli.App, format string, args ...any) {
	fmt.Fprintln(a.Err, "acescope: "+cli.SafeText(fmt.Sprintf(format, args...)))
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
	w := tabwriter.NewWriter(to, 11, 0, 1, ' ', 0)
	for _, row := range d {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
	return w.Flush()
}

// timeOrNil returns a time in UTC, or nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	return cli.TimeOrNil(t.UTC())
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}
