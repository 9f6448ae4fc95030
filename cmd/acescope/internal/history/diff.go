package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/learning"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/store/artifact"
	"acescope/engine/temporal/compare"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	runspkg "acescope/sources/runs"
	diffpkg "acescope/views/diff"
)

// diffFlags are how two things are compared, and what is written of it.
type diffFlags struct {
	allFields bool
	only      string
	stat      bool
}

const diffHelp = `Puts two runs side by side, aligned by what their steps are (the activity, the tool, the child, and what it was given), and
says where they first differ, what changed in each payload by JSON path, and how their figures differ. A and B are
  a task or a workflow id        the newest run, with those that it was continued as
  ID@RUN                         that run alone, by its run id
  FILE, FILE#2                   an exported history, the second one of a file; - is standard input
  two experiments                compared task by task, as experiment compare does, with both runs of each task
  playbook:REF playbook:REF      two playbooks, as playbook diff compares them
A name of a file that is there is that file; ace/TASK is the task in any case.

Left out by default is what differs between any two runs: ids, times, durations, attempts, workers, what side effects
gave (docs/reference/json.md lists it); --all-fields compares that too. Exits 0 where they are the same, 4 where they differ, 3
where one is not there.`

func DiffCommand(a *cli.App) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two runs step by step, two experiments task by task, or two playbooks; exits 4 where they differ",
		Long:  diffHelp,
		Example: "acescope diff plain-e1-0004 tuned-e1-0004\n" +
			"acescope diff before.json after.json --only changed\n" +
			"acescope diff plain tuned --json | jq -r 'select(.type == \"flip\") | .diff'",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return diffRuns(a, cmd.Context(), args[0], args[1], f) },
	}
	cmd.Flags().BoolVar(&f.allFields, "all-fields", false, "compare also what differs between any two runs: ids, times, durations, attempts")
	cmd.Flags().StringVar(&f.only, "only", "", "write only steps that are changed, or whose input or result is: changed, input, result")
	cmd.Flags().BoolVar(&f.stat, "stat", false, "write no steps, only what it comes to")
	return cmd
}

func (f diffFlags) check() error {
	switch diffpkg.DiffOnly(f.only) {
	case diffpkg.DiffEvery, diffpkg.DiffOnlyChanged, diffpkg.DiffOnlyInput, diffpkg.DiffOnlyResult:
	default:
		return cli.UsageError("--only %q: give changed, input or result", f.only)
	}
	if f.stat && f.only != "" {
		return cli.UsageError("--stat writes no steps: leave --only out")
	}
	return nil
}

// playbookPrefix makes a name one of a playbook.
const playbookPrefix = "playbook:"

func diffRuns(a *cli.App, ctx context.Context, one, other string, f diffFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	first, isBook := strings.CutPrefix(one, playbookPrefix)
	second, isBook2 := strings.CutPrefix(other, playbookPrefix)
	switch {
	case isBook != isBook2:
		return cli.UsageError("a playbook can be compared with a playbook only: write %s before both", playbookPrefix)
	case isBook && (f.allFields || f.only != "" || f.stat):
		return cli.UsageError("--all-fields, --only and --stat are for runs")
	case isBook:
		return learning.BookDiff(a, first, second)
	case one == "-" && other == "-":
		return cli.UsageError("standard input can be one side only")
	}
	d := &differ{App: a}
	defer d.close()
	var sides [2]*diffSide
	for i, name := range []string{one, other} {
		var err error
		if sides[i], err = d.find(ctx, name); err != nil {
			return err
		}
	}
	if sides[0].experiment && sides[1].experiment {
		return d.experiments(ctx, sides, f)
	}
	for _, s := range sides {
		if err := d.read(ctx, s); err != nil {
			return err
		}
	}
	return putDiff(a, compare.Of(sides[0].side, sides[1].side, compare.Options{AllFields: f.allFields}), sides, f)
}

// differ finds and reads what is compared. It connects when something on the server is
// asked for.
type differ struct {
	*cli.App
	engine *engine.Engine
	done   func()
	stdin  []historyfile.History
}

func (d *differ) close() {
	if d.done != nil {
		d.done()
	}
}

func (d *differ) connect(ctx context.Context) (err error) {
	if d.engine == nil {
		d.engine, d.done, err = d.OpenReadOnly(ctx)
	}
	return err
}

// diffSide is one of the two.
type diffSide struct {
	name       string
	file       string // "" for a run on the server
	number     int    // of the history in the file, 1-based
	workflowID string
	runID      string // "" for the newest and those before it
	experiment bool
	side       compare.Side
}

// find finds out what a name means.
func (d *differ) find(ctx context.Context, name string) (*diffSide, error) {
	s := &diffSide{name: name, number: 1}
	path := name
	if at := strings.LastIndexByte(name, '#'); at > 0 && !cli.IsHistoryFile(name) {
		n, err := strconv.Atoi(name[at+1:])
		if path = name[:at]; cli.IsHistoryFile(path) {
			if err != nil || n < 1 {
				return nil, cli.UsageError("%s: give the number of a history after #, from 1", name)
			}
			s.number = n
		}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, cli.UsageError("%s is a directory: name a file in it", path)
	}
	if cli.IsHistoryFile(path) {
		s.file = path
		return s, nil
	}
	if err := d.connect(ctx); err != nil {
		return nil, err
	}
	id := name
	if at := strings.LastIndexByte(name, '@'); at > 0 && cli.RunIDPattern.MatchString(name[at+1:]) {
		id, s.runID = name[:at], name[at+1:]
	}
	return s, d.resolve(ctx, s, id)
}

// resolve finds a run on the server.
func (d *differ) resolve(ctx context.Context, s *diffSide, id string) error {
	c := d.engine.Client
	if s.runID == "" {
		r, err := runspkg.Resolve(ctx, c, id)
		if err != nil {
			return err
		}
		info := r.GetWorkflowExecutionInfo()
		s.workflowID, s.experiment = info.GetExecution().GetWorkflowId(), info.GetType().GetName() == ace.ExperimentWorkflow
		return nil
	}
	r, err := cli.ResolveRun(ctx, c, id+"@"+s.runID)
	s.workflowID = r.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId()
	return err
}

// read reads the history, or the histories of the chain.
func (d *differ) read(ctx context.Context, s *diffSide) error {
	if s.file != "" {
		return d.readFile(ctx, s)
	}
	chain, err := cluster.ReadChain(ctx, d.engine.Client, d.engine.Namespace(), s.workflowID, s.runID, s.runID != "", nil)
	s.side = histories.DiffSide(chain, d.engine.Artifacts.Get)
	return err
}

func (d *differ) readFile(ctx context.Context, s *diffSide) error {
	in := os.Stdin
	if s.file != "-" {
		f, err := os.Open(s.file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	list, err := historyfile.Read(in)
	var broken *historyfile.Error
	switch {
	case err != nil && (!errors.As(err, &broken) || len(list) == 0):
		return fmt.Errorf("%s: %w", s.file, err)
	case s.number > len(list) && err == nil:
		return cli.NotFound("%s holds %d histories: there is no number %d", s.file, len(list), s.number)
	case s.number > len(list):
		return fmt.Errorf("%s: history %d cannot be read: %w", s.file, s.number, err)
	}
	s.side.Runs = followed(list[s.number-1:])
	server, err := d.FileCodec()
	if err != nil {
		return err
	}
	for _, events := range s.side.Runs {
		if server != nil {
			server.Events(ctx, events)
		}
	}
	end := s.number + len(s.side.Runs) - 1
	if broken != nil && end == len(list) {
		s.side.Partial = broken.Error()
	}
	unread := 0
	for _, h := range list[s.number-1 : end] {
		unread += len(h.Unread)
	}
	if unread > 0 && s.side.Partial == "" {
		s.side.Partial = fmt.Sprintf("%d of its events cannot be read by this program", unread)
	}
	s.side.Artifact = d.artifacts()
	return nil
}

// artifacts reads those of the data directory, without a server; nil where there are none.
func (d *differ) artifacts() func(ace.Ref) ([]byte, error) {
	dir, err := d.DataDir()
	if err != nil {
		return nil
	}
	path := filepath.Join(dir, "artifacts")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	store, err := artifact.Open(path)
	if err != nil {
		return nil
	}
	return func(ref ace.Ref) ([]byte, error) { return store.Get(ref, histories.ArtifactLimit) }
}

// followed are the first history and those of the file that it was continued as.
func followed(list []historyfile.History) [][]*historypb.HistoryEvent {
	var runs [][]*historypb.HistoryEvent
	next := ""
	for _, h := range list {
		if n := len(h.Events); n == 0 || len(runs) > 0 && (next == "" || cli.RunIDOf(h.Events) != next) {
			break
		}
		runs = append(runs, h.Events)
		next = history.OriginOf(h.Events).Next
	}
	return runs
}
