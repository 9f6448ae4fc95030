// Package agents holds the commands on agent sessions, their cost, blueprint runs, runners, MCP and hooks.
package agents

import (
	"fmt"
	"io"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
)

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
