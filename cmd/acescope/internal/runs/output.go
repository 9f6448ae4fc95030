package runs

import (
	"fmt"
	"strings"

	"acescope/cmd/acescope/internal/cli"
)

// Output writes the lines of a command: JSON objects with --json, otherwise text. It is buffered; Flush
// returns the first error.
type Output struct {
	*cli.Lines
	JSON bool
}

func NewOutput(a *cli.App) *Output { return &Output{Lines: cli.NewLines(a.Out), JSON: a.JSON} }

// Line writes v as a JSON line with --json, otherwise the formatted line of text.
func (o *Output) Line(v any, format string, args ...any) {
	if o.JSON {
		o.Put(v)
		return
	}
	o.Printf(format, args...)
}

// Printf writes one line of text. It replaces control characters and drops trailing spaces.
func (o *Output) Printf(format string, args ...any) {
	text := cli.SafeText(fmt.Sprintf(format, args...))
	fmt.Fprintln(o.Buf, strings.TrimRight(text, " "))
}
