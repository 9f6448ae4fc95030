package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/errgroup"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replayer"
	"acescope/engine/workflows"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	sourceruns "acescope/sources/runs"
)

type verifyFlags struct {
	all        bool
	queries    []string
	strict     bool
	requireAll bool
	junit      string
	parallel   int
	chain      bool
	verbose    bool
	replayers  []string
}

func VerifyCommand(a *cli.App, name string) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   name + " [TASK|FILE|DIR|-]...",
		Short: "Verify that the current workflow code makes the decisions of recorded histories",
		Long: "Replays histories with the workflow code of this program through Temporal's own replayer and reports the\n" +
			"first decision that differs. It runs and changes nothing. Runs, files, directories, --all and --query can\n" +
			"be combined; each run is verified once. With --all or --query, deterministic histories are only counted. A\n" +
			"history that another program decided is verified by the replayer that --replayer or [[replayers]] in\n" +
			"config.toml names for it, and is unverified without one. The exit code is 4 if a history is nondeterministic,\n" +
			"3 if no run or file is found, and 1 if a history cannot be read or none can be verified, with --require-all\n" +
			"if any is unverified.",
		Example: "acescope replay verify finance-1-e1-0042\n" +
			"acescope replay verify histories/ bug.json.gz --junit report.xml\n" +
			"acescope replay verify -q 'wrong today' --json | " +
			"jq 'select(.outcome == \"nondeterministic\")'\n" +
			"acescope replay verify -q 'WorkflowType=\"Order\"' --replayer 'python3 replay.py shop.workflows'\n" +
			"acescope replay verify --all -q 'ExecutionStatus=\"Running\"' exported/ --junit report.xml\n" +
			"temporal workflow show -w ace/q-1 -o json | acescope replay verify -",
		RunE: func(cmd *cobra.Command, args []string) error { return verify(a, cmd.Context(), args, f) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.all, "all", false, "every run on the server; with --query every run that matches")
	fl.StringArrayVarP(&f.queries, "query", "q", nil, "the runs that match, repeatable: "+cli.FilterHelp)
	fl.BoolVar(&f.strict, "strict", false,
		"also report differences that Temporal accepts: another input, another duration of a timer")
	fl.BoolVar(&f.requireAll, "require-all", false, "fail if a history is unverified")
	fl.StringVar(&f.junit, "junit", "", "write a JUnit report to this file, for a CI system")
	fl.BoolVarP(&f.verbose, "verbose", "v", false,
		"with --all or --query, also write a line for each deterministic history")
	fl.IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0),
		"number of histories to verify at the same time")
	fl.StringArrayVar(&f.replayers, "replayer", nil, "verify histories of other workers with this program, before "+
		"those of config.toml, repeatable: '[sdk=NAME] [task_queue=NAME] [workflow_type=NAME] COMMAND'")
	fl.BoolVar(&f.chain, "chain", false,
		"for named runs, also the runs that they continue and that continue them")
	return cmd
}

type VerdictLine struct {
	Source string `json:"source"`
	Number int    `json:"history"` // 1-based, in the source
	replay.Verdict
	Chain      *cli.ChainLine `json:"chain,omitempty"` // of a named run
	DurationMS float64        `json:"duration_ms" jsonschema:"duration"`

	readErr error // why there is no history
}

// VerifyEnd sums up the verdicts.
type VerifyEnd struct {
	Histories        int             `json:"histories" jsonschema:"histories"`
	Deterministic    int             `json:"deterministic" jsonschema:"the code makes the same decisions"`
	Nondeterministic int             `json:"nondeterministic" jsonschema:"it does not"`
	Drifted          int             `json:"drifted"`
	Unverified       int             `json:"unverified" jsonschema:"no verdict"`
	Reasons          []*VerifyReason `json:"unverified_reasons,omitempty"` // the first hundred
	Events           int             `json:"events"`
	DurationMS       float64         `json:"duration_ms" jsonschema:"duration"`
	EventsPerS       float64         `json:"events_per_second" jsonschema:"speed"`
	Incomplete       bool            `json:"incomplete,omitempty"` // interrupted or failed

	missing, unread int
}

// VerifyReason is a reason for which histories are unverified.
type VerifyReason struct {
	Reason    string `json:"reason" jsonschema:"why histories are unverified"`
	Histories int    `json:"histories" jsonschema:"number of them"`
	Example   string `json:"example" jsonschema:"workflow or source of one of them"`

	text   string // its line
	advice string // see [replay.Verdict]
}

// maxReasons bounds the reasons of a summary. Further reasons are on the lines of their histories.
const maxReasons = 100

func verify(a *cli.App, ctx context.Context, args []string, f verifyFlags) error {
	if f.parallel < 1 {
		return cli.UsageError("--parallel %d: must be at least 1", f.parallel)
	}
	if len(args) == 0 && !f.all && len(f.queries) == 0 {
		return cli.UsageError("nothing to verify: name runs or files, or use --all or --query")
	}
	for i, typed := range f.queries {
		query, err := cli.FilterOf(typed)
		if err != nil {
			return err
		}
		f.queries[i] = query
	}
	if f.junit != "" { // fails before the work rather than after it, and keeps the content
		file, err := os.OpenFile(f.junit, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	var replayers []replayer.Replayer
	for _, value := range f.replayers {
		r, err := cli.ParseReplayer(value)
		if err != nil {
			return err
		}
		replayers = append(replayers, r)
	}
	v := &verification{
		app: a, verifyFlags: f, out: cli.NewLines(a), start: time.Now(), bar: cli.NewProgressBar(a.Err),
	}
	v.verifier = NewVerifier(ctx, a, f.strict, replayers)
	defer v.verifier.Close()
	return v.run(ctx, args)
}

// NewVerifier returns a verifier with the workflows of this program, the given replayers, and after them those
// of the configuration. The caller must close it.
func NewVerifier(
	ctx context.Context, a *cli.App, strict bool, replayers []replayer.Replayer,
) *replayer.Verifier {
	own := &replay.Verifier{Register: workflows.Register, Build: cli.BuildVersion(), Queue: a.Settings.TaskQueue,
		Strict: strict}
	return replayer.New(ctx, own, append(replayers, a.Replayers()...))
}

// verification is one run of the command.
type verification struct {
	verifyFlags
	app      *cli.App
	verifier *replayer.Verifier
	engine   *engine.Engine
	start    time.Time
	total    int64 // sources, 0 if unknown

	files, named []string // from the arguments
	seen         sync.Map // run IDs of the server

	mu     sync.Mutex // guards the fields below
	out    *cli.Lines
	bar    *cli.ProgressBar
	end    VerifyEnd
	done   int64         // sources
	report []VerdictLine // for JUnit
}

// lists reports whether runs are listed by a query, which may be empty.
func (v *verification) lists() bool { return v.all || len(v.queries) > 0 }

func (v *verification) run(ctx context.Context, args []string) error {
	// Without a checksum, the SDK reads this whole program to compute one before the first replay. No
	// worker of this process writes events that contain the checksum.
	worker.SetBinaryChecksum(cli.BuildVersion())
	if err := v.sortArgs(args); err != nil {
		return err
	}
	if v.lists() || len(v.named) > 0 {
		e, err := v.app.OpenReadOnly(ctx)
		if err != nil {
			return err
		}
		v.engine = e
	}
	if v.bar != nil {
		v.total = v.count(ctx)
	}
	return v.finish(v.verifyAll(ctx))
}

// sortArgs sets the files and the named runs, each once.
func (v *verification) sortArgs(args []string) error {
	seen := map[string]bool{}
	for _, arg := range args {
		if !cli.IsHistoryFile(arg) {
			v.named = append(v.named, arg)
			continue
		}
		files, err := cli.FilesIn(arg)
		if err != nil {
			return err
		}
		for _, file := range files {
			if file = filepath.Clean(file); !seen[file] {
				seen[file] = true
				v.files = append(v.files, file)
			}
		}
	}
	return nil
}

// query matches the runs of one of the queries.
func (v *verification) query() string {
	query := strings.Join(v.queries, ") OR (")
	if len(v.queries) > 1 {
		query = "(" + query + ")"
	}
	if slices.ContainsFunc(v.queries, func(q string) bool { return strings.TrimSpace(q) == "" }) {
		query = "" // the query matches all runs
	}
	return query
}

// count returns the number of sources, or 0 if the server cannot count the runs.
func (v *verification) count(ctx context.Context) int64 {
	n := int64(len(v.files) + len(v.named))
	if !v.lists() {
		return n
	}
	listed, err := sourceruns.Count(ctx, v.engine.Client, sourceruns.OfAnyType(v.query()))
	if err != nil || listed < 0 {
		return 0 // listing the runs returns the error
	}
	return n + listed
}

// source verifies the histories of a file or of a run.
type source func(context.Context) []VerdictLine

// reader reads the histories of a file or of a run.
type reader func(context.Context) []cli.RunHistory

// until reads until ctx ends: reading a pipe without a writer never ends by itself.
func (read reader) until(ctx context.Context) []cli.RunHistory {
	done := make(chan []cli.RunHistory, 1)
	go func() { done <- read(ctx) }()
	select {
	case list := <-done:
		return list
	case <-ctx.Done():
		return nil
	}
}

// sources calls add for each source until it returns an error.
func (v *verification) sources(ctx context.Context, add func(source) error) error {
	addReader := func(read reader) error {
		return add(func(ctx context.Context) []VerdictLine { return v.verdicts(ctx, read) })
	}
	for _, file := range v.files {
		read := func(ctx context.Context) []cli.RunHistory { return cli.ReadHistories(v.app, ctx, file) }
		if err := addReader(read); err != nil {
			return err
		}
	}
	for _, id := range v.named {
		read := func(ctx context.Context) []cli.RunHistory { return v.readNamed(ctx, id) }
		if err := addReader(read); err != nil {
			return err
		}
	}
	if !v.lists() {
		return nil
	}
	query := sourceruns.OfAnyType(v.query())
	err := sourceruns.List(ctx, v.engine.Client, query, 0, func(r sourceruns.Run) error {
		return add(func(ctx context.Context) []VerdictLine { return v.verifyListed(ctx, r) })
	})
	return cli.QueryError(v.query(), err)
}

// readNamed reads the run with an ID, or with --chain its chain, without runs that are verified already.
func (v *verification) readNamed(ctx context.Context, id string) []cli.RunHistory {
	var list []cli.RunHistory
	var err error
	if v.chain {
		list, err = cli.ReadChain(ctx, v.engine, id, "")
	} else {
		list = make([]cli.RunHistory, 1)
		list[0], err = cli.ReadRun(ctx, v.engine, id, "")
	}
	if err != nil {
		return []cli.RunHistory{{Source: id, Number: 1, ReadErr: err}}
	}
	for i, h := range list {
		if v.engine.Codec != nil && len(h.Events) > 0 {
			workflowID := h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
			list[i].Stored = histories.Stored(v.engine.Client, v.engine.Namespace(), workflowID,
				cli.RunIDOf(h.Events))
		}
	}
	return slices.DeleteFunc(list, func(h cli.RunHistory) bool { return v.known(cli.RunIDOf(h.Events)) })
}

// verifyListed verifies a listed run unless it is verified already.
func (v *verification) verifyListed(ctx context.Context, r sourceruns.Run) []VerdictLine {
	if v.known(r.RunID) {
		return nil
	}
	start := time.Now()
	verdict, err := histories.VerifyRun(ctx, v.engine.Client, v.engine.Namespace(), v.verifier, r)
	if ctx.Err() != nil {
		return nil
	}
	return []VerdictLine{{Source: r.WorkflowID, Number: 1, Verdict: verdict, readErr: err,
		DurationMS: cluster.Millis(time.Since(start))}}
}

// known reports whether a run is verified already, and remembers it.
func (v *verification) known(runID string) bool {
	_, known := v.seen.LoadOrStore(runID, true)
	return known
}

// verifyAll verifies all sources and writes the verdicts as they arrive. It returns the error that ended it
// early.
func (v *verification) verifyAll(ctx context.Context) error {
	var drawing sync.WaitGroup
	stop := make(chan struct{})
	drawing.Go(func() { v.drawUntil(stop) })
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(v.parallel)
	listErr := v.sources(working, func(verify source) error {
		group.Go(func() error { return v.put(verify(working)) })
		return working.Err()
	})
	writeErr := group.Wait()
	close(stop)
	drawing.Wait()
	return cmp.Or(ctx.Err(), writeErr, listErr)
}

// drawUntil draws the progress until stop is closed.
func (v *verification) drawUntil(stop <-chan struct{}) {
	tick := v.bar.Ticks()
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			v.mu.Lock()
			v.bar.Draw(v.progress)
			v.mu.Unlock()
		case <-stop:
			v.bar.Clear()
			return
		}
	}
}

// verdicts reads and verifies histories. It drops the verdict of an interrupted replay.
func (v *verification) verdicts(ctx context.Context, read reader) []VerdictLine {
	var list []VerdictLine
	for _, h := range read.until(ctx) {
		line := VerdictLine{Source: h.Source, Number: h.Number, Chain: h.Chain}
		if len(h.Events) == 0 && h.ReadErr == nil {
			h.ReadErr = errors.New("the history has no events")
		}
		if len(h.Events) > 0 {
			start := time.Now()
			line.Verdict = v.verdict(ctx, h)
			line.DurationMS = cluster.Millis(time.Since(start))
		}
		if ctx.Err() != nil {
			return list
		}
		if len(h.Events) > 0 {
			list = append(list, line)
			h.Number++ // the error is about the history after it
		}
		if h.ReadErr != nil {
			list = append(list, VerdictLine{
				Source: h.Source, Number: h.Number, readErr: h.ReadErr,
				Verdict: replay.Verdict{Outcome: replay.Unverified, Why: cli.OneLine(h.ReadErr)},
			})
		}
	}
	return list
}

// verdict verifies one history. A history with events that this program cannot read is unverified.
func (v *verification) verdict(ctx context.Context, h cli.RunHistory) replay.Verdict {
	if len(h.Unread) == 0 {
		return v.verifier.Verify(ctx, h.Events, h.Stored)
	}
	u := h.Unread[0]
	verdict := replay.Describe(h.Events[:1]) // for the IDs
	verdict.Outcome, verdict.Events, verdict.Divergence = replay.Unverified, len(h.Events), nil
	verdict.Why = fmt.Sprintf("event %d, of type %s, at byte %d cannot be read: %s",
		u.Index+1, u.Type, u.Offset, strings.Join(strings.Fields(u.Reason), " "))
	return verdict
}

// put counts and writes the verdicts of a source.
func (v *verification) put(list []VerdictLine) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done++
	v.bar.Clear()
	for _, l := range list {
		summed := v.end.add(l)
		if v.junit != "" {
			v.report = append(v.report, l)
		}
		if v.app.JSON || !summed && (v.verbose || !v.lists() || l.Outcome != replay.Deterministic) {
			v.out.Line(l, "%s", l.text())
		}
		if d := l.Divergence; d != nil && !v.app.JSON {
			v.out.Printf("%12s%s", "", d.Sentence)
			v.out.Printf("%12s%s", "", d.Advice)
		}
	}
	err := v.out.Flush()
	v.bar.Draw(v.progress)
	return err
}

// add counts a verdict. It reports whether the reasons of the summary contain the history.
func (e *VerifyEnd) add(l VerdictLine) (summed bool) {
	e.Histories++
	e.Events += l.Events
	switch l.Outcome {
	case replay.Deterministic:
		e.Deterministic++
	case replay.Nondeterministic:
		e.Nondeterministic++
	case replay.Drifted:
		e.Drifted++
	default:
		e.Unverified++
		summed = e.addReason(l)
	}
	if l.readErr != nil {
		e.unread++
	}
	if cli.ExitCode(l.readErr) == cli.ExitNotFound {
		e.missing++
	}
	return summed
}

func (e *VerifyEnd) addReason(l VerdictLine) (summed bool) {
	i := slices.IndexFunc(e.Reasons, func(r *VerifyReason) bool { return r.Reason == l.Why })
	switch {
	case i >= 0:
		e.Reasons[i].Histories++
	case len(e.Reasons) < maxReasons:
		name := cmp.Or(l.WorkflowID, l.Source)
		e.Reasons = append(e.Reasons, &VerifyReason{Reason: l.Why, Histories: 1, Example: name,
			text: l.text(), advice: l.Advice})
	default:
		return false
	}
	return true
}

// String returns the line of the only history, or counts the histories.
func (r *VerifyReason) String() string {
	if r.Histories == 1 {
		return r.text
	}
	return fmt.Sprintf("%-16s  %s, such as %s: %s", replay.Unverified, ace.Count(r.Histories, "history"),
		r.Example, r.Reason)
}

func (l VerdictLine) text() string {
	name := cmp.Or(l.WorkflowID, l.Source)
	s := fmt.Sprintf("%-16s  %s", l.Outcome, name)
	if l.Source != name {
		s += fmt.Sprintf("  (%s, history %d)", l.Source, l.Number)
	}
	if l.Events > 0 {
		s += "  " + ace.Count(l.Events, "event")
	}
	if l.Chain != nil {
		s += "  " + l.Chain.String()
	}
	return s + "  " + l.Why
}

// finish writes the summary and the report, also after an error, and returns the result as an error.
func (v *verification) finish(failure error) error {
	e := &v.end
	if failure == nil && e.Histories == 0 && len(v.queries) > 0 {
		failure = cli.NotFound("no run matches")
	}
	duration := time.Since(v.start)
	e.DurationMS, e.Incomplete = cluster.Millis(duration), failure != nil
	e.EventsPerS = float64(e.Events) / max(duration.Seconds(), 1e-9)
	for _, r := range e.Reasons {
		if v.app.JSON {
			break
		}
		v.out.Printf("%s", r)
		for line := range strings.Lines(r.advice) {
			v.out.Printf("%12s%s", "", strings.TrimSuffix(line, "\n"))
		}
	}
	if v.app.JSON || v.lists() || e.Histories != 1 || e.Incomplete {
		rest := ""
		if e.Incomplete {
			rest = "; the rest was not verified"
		}
		v.out.Line(*e, "%s, %s in %.2f s: %s%s", ace.Count(e.Histories, "history"),
			ace.Count(e.Events, "event"), duration.Seconds(), e.counts(), rest)
	}
	err := v.out.Flush()
	if v.junit != "" {
		err = errors.Join(err, writeJUnit(v.junit, v.report, *e, v.requireAll))
	}
	switch {
	case errors.Is(failure, context.Canceled):
		return cli.ErrInterrupted
	case failure != nil:
		return failure
	case err != nil:
		return err
	case e.Nondeterministic+e.Drifted > 0:
		return cli.Diverged("the current code makes other decisions than %s of %s",
			ace.Number(e.Nondeterministic+e.Drifted), ace.Count(e.Histories, "history"))
	case e.missing > 0 && e.missing == e.Histories:
		return cli.NotFound("no such run or file")
	case e.unread > 0:
		return fmt.Errorf("%s of %s could not be read", ace.Number(e.unread),
			ace.Count(e.Histories, "history"))
	case e.Unverified > 0 && (v.requireAll || e.Unverified == e.Histories):
		return fmt.Errorf("%s of %s could not be verified", ace.Number(e.Unverified),
			ace.Count(e.Histories, "history"))
	}
	return nil
}

func (v *verification) progress() cli.Progress {
	rate := float64(v.end.Events) / max(time.Since(v.start).Seconds(), 0.001)
	note := v.end.counts() + "  " + ace.Number(int64(rate)) + " events/s"
	return cli.Progress{Done: v.done, Total: v.total, Since: v.start, Note: note}
}

func (e VerifyEnd) counts() string {
	return fmt.Sprintf("%s deterministic, %s nondeterministic, %s drifted, %s unverified",
		ace.Number(e.Deterministic), ace.Number(e.Nondeterministic), ace.Number(e.Drifted),
		ace.Number(e.Unverified))
}
