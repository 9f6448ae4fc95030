// Package agents holds the commands on agent sessions, blueprint runs, runners, MCP and observation.
package agents

import (
	"fmt"
	"io"
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

// writeLines writes each value as a JSON line.
func writeLines[T any](a *cli.App, values []T) error {
	out := cli.NewLines(a.Out)
	for _, v := range values {
		if err := out.Put(v); err != nil {
			return err
		}
	}
	return out.Flush()
}

// notice writes a line to standard error.
func notice(a *cli.App, format string, args ...any) {
	fmt.Fprintln(a.Err, "acescope: "+cli.SafeText(fmt.Sprintf(format, args...)))
}

// table is rows of untrusted cells. The first row is the header.
type table [][]string

func newTable(header string) table { return table{strings.Split(header, " ")} }

func (t *table) add(cells ...any) {
	var row []string
	for _, c := range cells {
		row = append(row, cli.SafeText(fmt.Sprint(c)))
	}
	*t = append(*t, row)
}

// print writes the rows in aligned columns, or nothing if there is only the header.
func (t table) print(to io.Writer) error {
	if len(t) < 2 {
		return nil
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
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
