package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/logfile"
	"acescope/sources/logs"
)

type LogsFlags struct {
	Follow, FromStart bool
	tail              int
	grep, level       string
	match             []string
	poll              bool
}

func LogsCommand(a *cli.App) *cobra.Command {
	f := &LogsFlags{}
	cmd := &cobra.Command{
		Use:   "logs [TASK|FILE|DIR]...",
		Short: "Print or follow log files: of a run, of directories, by name",
		Long: "Prints the last lines of log files or follows them: files, directories (*.log, *.jsonl, *.ndjson; no\n" +
			"hidden files), or the logs of a run and the lines of other logs that mention it. Without an argument:\n" +
			"the logs of the data directory.",
		Example: "acescope logs -f\n" +
			"acescope logs finance-1-e1-0042 --level warn\n" +
			"acescope logs app.jsonl -f --json | jq -c 'select(.data.ms > 100)'",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return Logs(a, cmd.Context(), f, args) },
	}
	cmd.Flags().BoolVarP(&f.Follow, "follow", "f", false, "follow the files until interrupted")
	cmd.Flags().BoolVar(&f.FromStart, "from-start", false, "start at the beginning of each file")
	cmd.Flags().IntVar(&f.tail, "tail", 100, "start this many lines before the end of each file")
	cmd.Flags().StringVar(&f.grep, "grep", "", "only lines that match this regular expression")
	cmd.Flags().StringVar(&f.level, "level", "",
		"only lines of at least this level: debug, info, warn, error")
	cmd.Flags().StringSliceVar(&f.match, "match", nil,
		"name patterns of the files in directories (default *.log,*.jsonl,*.ndjson)")
	cmd.Flags().BoolVar(&f.poll, "poll", false, "check the files every second, for network drives")
	cmd.MarkFlagsMutuallyExclusive("from-start", "tail")
	return cmd
}

func Logs(a *cli.App, ctx context.Context, f *LogsFlags, args []string) error {
	w := &logWriter{App: a, once: !f.Follow, levels: logfile.Levels{}, prefixes: map[string][]byte{}}
	if err := f.filter(w); err != nil {
		return err
	}
	chosen, err := chooseLogs(a, ctx, f, args)
	if err != nil {
		return err
	}
	w.choice = chosen.Choice
	defer chosen.follow(a, ctx, f.Follow)()
	o := w.choice.Options
	o.FromStart, o.Tail, o.Once, o.Poll = f.FromStart, f.tail, !f.Follow, f.poll
	if len(f.match) > 0 {
		o.Match = f.match
	}
	w.headings = len(o.Paths) != 1 || cli.IsDir(o.Paths[0])
	keepFiles := func(files []logfile.File) error {
		w.files = files
		return nil
	}
	handler := logfile.Handler{Lines: w.lines, Event: w.event, Files: keepFiles}
	if err := logfile.Follow(ctx, o, handler); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return cli.ErrInterrupted
	case len(w.unreadable) > 0:
		return errors.New(strings.Join(w.unreadable, "; "))
	case len(w.files) == 0:
		cli.Warn(a, "no log files found; name a file or directory: acescope logs PATH")
	}
	return nil
}

// filter validates the flags that select lines and passes them to the writer.
func (f *LogsFlags) filter(w *logWriter) (err error) {
	if f.tail < 0 {
		return cli.UsageError("--tail must not be negative")
	}
	for _, m := range f.match {
		if _, err := filepath.Match(m, ""); err != nil {
			return cli.UsageError("--match %q: %v", m, err)
		}
	}
	if f.grep != "" {
		if w.grep, err = regexp.Compile(f.grep); err != nil {
			return cli.UsageError("--grep: %v", err)
		}
	}
	if f.level != "" {
		if w.level = logfile.SeverityOf(f.level); w.level == logfile.Unknown {
			return cli.UsageError("--level %q: use debug, info, warn or error", f.level)
		}
	}
	return nil
}

// chosenLogs are logs, and the run that they belong to.
type chosenLogs struct {
	logs.Choice
	run    *commonpb.WorkflowExecution // nil for files
	mirror cluster.Mirror
}

// follow keeps the logs of other machines up to date, if wanted, until the returned function is called.
func (c chosenLogs) follow(a *cli.App, ctx context.Context, wanted bool) (stop func()) {
	if c.run == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var mirroring sync.WaitGroup
	if wanted {
		run := func() (workflowID, runID string) { return c.run.GetWorkflowId(), c.run.GetRunId() }
		mirroring.Go(func() { c.mirror.Keep(ctx, run, func(problem string) { cli.Warn(a, "%s", problem) }) })
	}
	return func() {
		cancel()
		mirroring.Wait()
	}
}

// chooseLogs returns the logs that the arguments name. Only a task needs the server.
func chooseLogs(a *cli.App, ctx context.Context, f *LogsFlags, args []string) (chosenLogs, error) {
	if len(args) == 0 {
		dir, err := a.DataDir()
		return chosenLogs{Choice: logs.ChooseAll(dir)}, err
	}
	var paths []string
	for _, arg := range args {
		_, err := os.Stat(arg)
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case err == nil, f.Follow && isPath(arg):
			paths = append(paths, arg)
		case !isPath(arg) && len(args) == 1:
			return logsOfTask(a, ctx, arg, f.Follow)
		case missing && !isPath(arg):
			return chosenLogs{}, cli.UsageError("%q is not a file; a task must be the only argument", arg)
		case missing:
			return chosenLogs{}, cli.NotFound("%s: no such file; -f waits for it", arg)
		default:
			return chosenLogs{}, err
		}
	}
	return chosenLogs{Choice: logs.ChoosePaths(paths)}, nil
}

// isPath reports whether the name of a missing file looks like a path rather than a task.
func isPath(arg string) bool {
	return slices.Contains([]string{".log", ".jsonl", ".ndjson", ".txt", ".out"}, filepath.Ext(arg)) ||
		strings.HasPrefix(arg, ".") || filepath.IsAbs(arg) ||
		strings.HasSuffix(arg, string(filepath.Separator))
}

// logsOfTask returns the logs of a run. If it follows them, they may be missing.
func logsOfTask(a *cli.App, ctx context.Context, id string, follow bool) (c chosenLogs, err error) {
	e, run, err := cli.OpenRun(a, ctx, id, "")
	if err != nil {
		return c, err
	}
	c.run, c.mirror = run, engine.LogMirror(e)
	if err := c.mirror.Once(ctx, run.GetWorkflowId(), run.GetRunId()); err != nil {
		cli.Warn(a, "logs of other machines: %v", err)
	}
	choose := logs.ChooseRunOrAll
	if follow {
		choose = logs.ChooseRun
	}
	c.Choice = choose(e.DataDir(), run.GetWorkflowId(), run.GetRunId())
	cli.Warn(a, "showing logs %s", c.Description)
	return c, nil
}

// logWriter writes log lines as they are read. Reading waits for it, so it drops nothing.
type logWriter struct {
	*cli.App
	once       bool // without --follow
	headings   bool // name the file before its lines
	choice     logs.Choice
	grep       *regexp.Regexp
	level      logfile.Severity
	levels     logfile.Levels
	prefixes   map[string][]byte // start of a file's JSON lines, by path
	buf        []byte
	last       string // path of the last line
	files      []logfile.File
	unreadable []string // files with the reason
}

func (w *logWriter) keeps(l logfile.Line) bool {
	if w.level != logfile.Unknown && w.levels.Next(l.Path, l.Text) < w.level {
		return false
	}
	return (w.grep == nil || w.grep.Match(l.Text)) && w.choice.Keeps(l.Path, l.Text)
}

func (w *logWriter) lines(batch []logfile.Line) error {
	w.buf = w.buf[:0]
	for _, l := range batch {
		if !w.keeps(l) {
			continue
		}
		if w.JSON {
			w.appendJSON(l)
		} else {
			w.appendText(l)
		}
	}
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.Out.Write(w.buf)
	return err
}

func (w *logWriter) appendText(l logfile.Line) {
	if l.Path != w.last {
		if w.headings && w.last != "" {
			w.buf = append(w.buf, '\n')
		}
		if w.headings {
			w.buf = fmt.Appendf(w.buf, "==> %s <==\n", cli.SafeText(l.Path))
		}
		w.last = l.Path
	}
	w.buf = append(w.buf, cli.SafeText(string(l.Text))...)
	if l.Cut > 0 {
		w.buf = fmt.Appendf(w.buf, " (%s)", ace.Count(l.Cut, "more byte"))
	}
	w.buf = append(w.buf, '\n')
}

// LogLine describes the JSON of a log line for its schema; see [logWriter.appendJSON].
type LogLine struct {
	File    string          `json:"file"`
	Offset  int64           `json:"offset"`
	Line    int64           `json:"line,omitempty"`
	At      time.Time       `json:"at"`
	Cut     int64           `json:"cut,omitempty"`
	Partial bool            `json:"partial,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Text    string          `json:"text,omitempty"`
}

// appendJSON appends a [LogLine] without encoding/json, which is slower than reading the log. A line that
// is a JSON object or array is copied.
func (w *logWriter) appendJSON(l logfile.Line) {
	prefix := w.prefixes[l.Path]
	if prefix == nil {
		prefix = appendString([]byte(`{"type":"line","file":`), l.Path)
		w.prefixes[l.Path] = prefix
	}
	b := append(w.buf, prefix...)
	b = strconv.AppendInt(append(b, `,"offset":`...), l.Offset, 10)
	if l.Number > 0 {
		b = strconv.AppendInt(append(b, `,"line":`...), l.Number, 10)
	}
	b = append(l.At.UTC().AppendFormat(append(b, `,"at":"`...), time.RFC3339Nano), '"')
	if l.Cut > 0 {
		b = strconv.AppendInt(append(b, `,"cut":`...), l.Cut, 10)
	}
	if l.Torn {
		b = append(b, `,"partial":true`...)
	}
	if t := l.Text; len(t) > 1 && (t[0] == '{' || t[0] == '[') && utf8.Valid(t) && json.Valid(t) {
		b = append(append(b, `,"data":`...), t...)
	} else {
		b = appendString(append(b, `,"text":`...), string(t))
	}
	w.buf = append(b, '}', '\n')
}

// appendString appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // strings can always be encoded
	return append(b, quoted...)
}

type LogNote struct {
	Event logfile.Kind `json:"event"`
	File  string       `json:"file,omitempty"`
	At    time.Time    `json:"at"`
	Text  string       `json:"text"`
}

func (w *logWriter) event(e logfile.Event) error {
	if e.Kind == logfile.NotReadable {
		w.unreadable = append(w.unreadable, e.Path+": "+e.Text)
	}
	if w.JSON {
		return cli.NewLines(w.App).Write(LogNote{e.Kind, e.Path, e.At.UTC(), e.Text})
	}
	if e.Kind == logfile.Opened || w.once && e.Kind == logfile.NotReadable {
		return nil
	}
	_, err := fmt.Fprintln(w.Err, "acescope: "+cli.SafeText(strings.TrimSpace(e.Path+" "+e.Text)))
	return err
}
