package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
)

// SafeText makes untrusted text safe for one line of a terminal.
func SafeText(s string) string { return text.Safe(s, " ") }

// NewID returns an id that two commands of the same second do not share.
func NewID(prefix string) string {
	return prefix + "-" + time.Now().Format("20060102-150405") + "-" + strings.ToLower(rand.Text()[:5])
}

// ShellQuote quotes s for a POSIX shell.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func IsTerminal(f *os.File) bool { return term.IsTerminal(f.Fd()) }

// Canvas returns the width of the output, its styles, and whether it is a terminal, which alone gets colors.
func (a *App) Canvas() (width int, s theme.Styles, paint bool) {
	s = theme.FromEnv(true, os.Getenv)
	if w, _, ok := Terminal(a.Out); ok && w >= 40 {
		return min(w, 190), s, true
	}
	return 80, s, false
}

// Print writes lines, without their colors unless paint is set.
func (a *App) Print(lines []string, paint bool) error {
	out := a.Out
	if paint {
		out = painted(out)
	}
	for _, l := range lines {
		if !paint {
			l = ansi.Strip(l)
		}
		if _, err := fmt.Fprintln(out, strings.TrimRight(l, " ")); err != nil {
			return err
		}
	}
	return nil
}

// Report writes the only line of a command: v as JSON with --json, otherwise the formatted text.
func Report(a *App, v any, format string, args ...any) error {
	out := NewLines(a)
	out.Line(v, format, args...)
	return out.Flush()
}

// Show writes v as the only line of a command with --json, otherwise calls show.
func Show(a *App, v any, show func() error) error {
	if a.JSON {
		return NewLines(a).Write(v)
	}
	return show()
}

// Join joins words with commas.
func Join[T ~string](words []T) string {
	var list []string
	for _, w := range words {
		list = append(list, string(w))
	}
	return strings.Join(list, ", ")
}

// Arg returns the argument at an index, "" if it is missing.
func Arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// Warn writes a line to standard error.
func Warn(a *App, format string, args ...any) {
	fmt.Fprintln(a.Err, "acescope: "+SafeText(fmt.Sprintf(format, args...)))
}

// namedLines holds the values of the field "type" that were set.
var namedLines []namedLine

type namedLine struct {
	of   reflect.Type
	name string
}

// SetLineType sets the field "type" of the lines of a Go type, unless the Go type has the field itself. Call
// it while the program is initialized.
func SetLineType(of reflect.Type, name string) { namedLines = append(namedLines, namedLine{of, name}) }

// lineTypes are the values of the field "type" by the Go type of the line, for Go types without such a field.
// To find these takes a millisecond, which a command without --json does not need.
var lineTypes = sync.OnceValue(func() map[reflect.Type]string {
	types := map[reflect.Type]string{}
	for _, l := range namedLines {
		if slices.ContainsFunc(reflect.VisibleFields(l.of), func(f reflect.StructField) bool {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == "type"
		}) {
			continue
		}
		if known := types[l.of]; known != "" && known != l.name {
			panic(fmt.Sprintf("lines of %s have the types %s and %s", l.of, known, l.name))
		}
		types[l.of] = l.name
	}
	return types
})

// Lines writes the lines of a command: JSON objects with --json, which docs/reference/json.md describes,
// otherwise text. It is buffered; Flush returns the first error.
type Lines struct {
	JSON bool
	Buf  *bufio.Writer
	enc  *json.Encoder // to line
	line bytes.Buffer
	err  error // of an object that could not be encoded
}

// NewLines returns a writer to the output of a.
func NewLines(a *App) *Lines {
	l := &Lines{JSON: a.JSON, Buf: bufio.NewWriterSize(a.Out, 1<<16)}
	l.enc = json.NewEncoder(&l.line)
	l.enc.SetEscapeHTML(false)
	return l
}

// Line writes v as a JSON line with --json, otherwise the formatted line of text.
func (l *Lines) Line(v any, format string, args ...any) {
	if l.JSON {
		l.Put(v)
	} else {
		l.Printf(format, args...)
	}
}

// Printf writes one line of text. It replaces control characters and drops trailing spaces.
func (l *Lines) Printf(format string, args ...any) {
	fmt.Fprintln(l.Buf, strings.TrimRight(SafeText(fmt.Sprintf(format, args...)), " "))
}

// Put writes one object with its line type, which may stay in the buffer until Flush.
func (l *Lines) Put(v any) {
	l.line.Reset()
	if err := l.enc.Encode(v); err != nil {
		l.err = cmp.Or(l.err, err)
		return
	}
	data := l.line.Bytes()
	if name := lineTypes()[reflect.Indirect(reflect.ValueOf(v)).Type()]; name != "" {
		fmt.Fprintf(l.Buf, `{"type":%q`, name)
		if data = data[1:]; data[0] != '}' {
			_ = l.Buf.WriteByte(',')
		}
	}
	_, _ = l.Buf.Write(data) // Flush returns the error
}

// Flush writes the buffer. It returns the first error since NewLines.
func (l *Lines) Flush() error { return cmp.Or(l.err, l.Buf.Flush()) }

// Write writes one object and the buffer.
func (l *Lines) Write(v any) error {
	l.Put(v)
	return l.Flush()
}

// RunLine is a run in a list, and a task run that has closed.
type RunLine struct {
	// task, experiment, blueprint, session, or workflow for one that is not of the contract
	Kind string `json:"type"`
	runs.Run
	// TasksSummary replaces the summary of an experiment, so that a sum over summaries counts each task once.
	TasksSummary *ace.Summary `json:"tasks_summary,omitempty"`
	DurationMS   float64      `json:"duration_ms,omitempty"`
	Answer       string       `json:"answer,omitempty"`
	Correct      *bool        `json:"correct,omitempty"`
	Playbook     string       `json:"playbook,omitempty" jsonschema:"playbook version after the task"`
	Failure      *ace.Failure `json:"failure,omitempty"`
}

// ListLine returns the line of a run in a list.
func ListLine(r runs.Run) RunLine {
	l := RunLine{Kind: runs.TypeOf(r.Type), Run: r}
	if r.Type == ace.ExperimentWorkflow {
		l.TaskID, l.Summary, l.TasksSummary = "", nil, r.Summary
	}
	if !r.Open() {
		l.DurationMS = cluster.Millis(r.Age(r.Close))
	}
	return l
}

// FinishedLine returns the line of a task run of an experiment that has closed.
func FinishedLine(f experiments.Finished, in ace.ExperimentInput) RunLine {
	r := f.Result
	return RunLine{
		Kind: runs.TypeOf(ace.TaskWorkflow),
		Run: runs.Run{
			TaskID: r.TaskID, WorkflowID: f.WorkflowID, RunID: f.RunID, Experiment: in.ExperimentID,
			Dataset: in.DatasetID, Model: in.Model, Adapter: string(in.Adapter), Status: f.Status,
			Verdict: f.Verdict, Close: f.At, Summary: &r.Summary,
		},
		DurationMS: cluster.Millis(f.Took), Answer: r.Answer, Correct: r.Correct, Playbook: r.PlaybookHash,
		Failure: f.Failure,
	}
}
