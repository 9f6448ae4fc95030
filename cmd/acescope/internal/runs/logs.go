package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/sources/logfile"
	"acescope/sources/logs"
)

// LogsFlags are what acescope logs was asked for.
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
		Short: "Print log files, or follow them: of a run, of directories, by name",
		Long: "Prints the last lines of log files, or follows them: files, directories (*.log, *.jsonl, *.ndjson, hidden ones left out), or the\n" +
			"logs of a run and the lines of others that mention it. Without an argument, the logs of the data directory.",
		Example: "acescope logs -f\nacescope logs finance-1-e1-0042 --level warn\nacescope logs app.jsonl -f --json | jq -c 'select(.data.ms > 100)'",
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return Logs(a, cmd.Context(), f, args) },
	}
	cmd.Flags().BoolVarP(&f.Follow, "follow", "f", false, "go on with what is added, until interrupted")
	cmd.Flags().BoolVar(&f.FromStart, "from-start", false, "begin at the start of each file")
	cmd.Flags().IntVar(&f.tail, "tail", 100, "begin this many lines before the end of each file")
	cmd.Flags().StringVar(&f.grep, "grep", "", "only lines that this regular expression matches")
	cmd.Flags().StringVar(&f.level, "level", "", "only lines at least this bad: debug, info, warn, error")
	cmd.Flags().StringSliceVar(&f.match, "match", nil, "patterns of the names of files in directories (default *.log,*.jsonl,*.ndjson)")
	cmd.Flags().BoolVar(&f.poll, "poll", false, "look at files every second: for network drives, which notify nobody")
	cmd.MarkFlagsMutuallyExclusive("from-start", "tail")
	return cmd
}

func Logs(a *cli.App, ctx context.Context, f *LogsFlags, args []string) error {
	keep, err := f.filter()
	if err != nil {
		return err
	}
	choice, err := chooseLogs(a, ctx, f, args)
	if err != nil {
		return err
	}
	o := choice.Options
	o.FromStart, o.Tail, o.Once, o.Poll = f.FromStart, f.tail, !f.Follow, f.poll
	if len(f.match) > 0 {
		o.Match = f.match
	}
	keep.choice = choice
	out := &logWriter{out: a.Out, err: a.Err, json: a.JSON, once: o.Once, heads: !oneFile(o.Paths), keep: keep}
	if err := logfile.Follow(ctx, o, out.handler()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	return out.end(choice)
}

// oneFile tells whether all lines are of one file, so that none needs its name.
func oneFile(paths []string) bool {
	if len(paths) != 1 {
		return false
	}
	info, err := os.Stat(paths[0])
	return err != nil || !info.IsDir()
}

// filter checks the flags that choose lines.
func (f *LogsFlags) filter() (*logFilter, error) {
	k := &logFilter{levels: map[string]*logfile.Levels{}}
	if f.tail < 0 {
		return nil, cli.UsageError("--tail must not be negative")
	}
	for _, m := range f.match {
		if _, err := filepath.Match(m, ""); err != nil {
			return nil, cli.UsageError("--match %q: %v", m, err)
		}
	}
	if f.grep != "" {
		re, err := regexp.Compile(f.grep)
		if err != nil {
			return nil, cli.UsageError("--grep: %v", err)
		}
		k.grep = re
	}
	if f.level != "" {
		if k.level = logfile.SeverityOf(f.level); k.level == logfile.Unknown {
			return nil, cli.UsageError("--level %q: choose debug, info, warn or error", f.level)
		}
	}
	return k, nil
}

// chooseLogs finds out what the arguments name. Only a task needs the server.
func chooseLogs(a *cli.App, ctx context.Context, f *LogsFlags, args []string) (logs.LogChoice, error) {
	if len(args) == 0 {
		dir, err := a.DataDir()
		return logs.LogsOf(dir, "", ""), err
	}
	var paths []string
	for _, arg := range args {
		_, err := os.Stat(arg)
		switch {
		case err == nil || f.Follow && isPath(arg):
			paths = append(paths, arg)
		case !isPath(arg) && len(args) == 1:
			return logsOfTask(a, ctx, arg)
		case errors.Is(err, fs.ErrNotExist) && !isPath(arg):
			return logs.LogChoice{}, cli.UsageError("%q is no file; a task must be the only argument", arg)
		case errors.Is(err, fs.ErrNotExist):
			return logs.LogChoice{}, &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("%s: there is no such file; -f waits for it", arg)}
		default:
			return logs.LogChoice{}, err
		}
	}
	return logs.ChosenLogs(paths), nil
}

// isPath tells whether a name that nothing has looks like a file's rather than a task's.
func isPath(arg string) bool {
	if ext := filepath.Ext(arg); ext == ".log" || ext == ".jsonl" || ext == ".ndjson" || ext == ".txt" || ext == ".out" {
		return true
	}
	return strings.HasPrefix(arg, ".") || filepath.IsAbs(arg) || strings.HasSuffix(arg, string(filepath.Separator))
}

func logsOfTask(a *cli.App, ctx context.Context, id string) (c logs.LogChoice, err error) {
	_, exec, done, err := a.OpenRun(ctx, id, "")
	if err != nil {
		return c, err
	}
	defer done()
	dir, err := a.DataDir()
	if err != nil {
		return c, err
	}
	c = logs.LogsOf(dir, exec.GetWorkflowId(), exec.GetRunId())
	fmt.Fprintln(a.Err, "acescope: logs "+c.Why)
	return c, nil
}
