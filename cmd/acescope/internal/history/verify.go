package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/worker"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/temporal/replay"
	"acescope/engine/workflows"
	"acescope/tui/text"
)

type verifyFlags struct {
	all      bool
	queries  []string
	strict   bool
	junit    string
	parallel int
	chain    bool
}

func VerifyCommand(a *cli.App, name string) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   name + " [TASK|FILE|DIR|-] …",
		Short: "Verify that today's workflow code still decides as histories say",
		Long: "Replays histories with the workflow code of this program through Temporal's own replayer, and names the first place in\n" +
			"which it decides otherwise. Nothing is run again and nothing is changed. Runs, files, directories, --all and --query can be\n" +
			"given together: each run is verified once. --all with --query is the runs that match and whose workflow type is known here.\n" +
			"Exit code 4 says that a run diverges, 3 that there is no such run or file, 1 that some could not be verified.",
		Example: "acescope replay verify finance-1-e1-0042\nacescope replay verify histories/ bug.json.gz --junit report.xml\n" +
			"acescope replay verify -q 'ExperimentId=\"finance-1\"' --json | jq 'select(.outcome == \"diverged\")'\n" +
			"acescope replay verify --all -q 'ExecutionStatus=\"Running\"' exported/ --junit report.xml\n" +
			"temporal workflow show -w ace/q-1 -o json | acescope replay verify -",
		RunE: func(cmd *cobra.Command, args []string) error { return verify(a, cmd.Context(), args, f) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.all, "all", false, "every run of the server whose workflow type is known here")
	fl.StringArrayVarP(&f.queries, "query", "q", nil, "the runs that match this visibility query, or one of several; with --all only those")
	fl.BoolVar(&f.strict, "strict", false, "decisions that Temporal lets pass count too: another input, another length of a timer")
	fl.StringVar(&f.junit, "junit", "", "write a JUnit report to this file, for a CI system")
	fl.IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "how many histories are verified at a time")
	fl.BoolVar(&f.chain, "chain", false, "of runs that are named, the runs that they continue and are continued as too")
	return cmd
}

// VerdictLine is what verifying one history found.
type VerdictLine struct {
	Type   string `json:"type"` // verdict
	Source string `json:"source"`
	Number int    `json:"history"` // in the source, from 1
	replay.Verdict
	Chain  *cli.ChainLine `json:"chain,omitempty"` // of a run that was named
	TookMS float64        `json:"took_ms"`

	missing bool
}

// VerifyEnd sums up what was verified.
type VerifyEnd struct {
	Type       string  `json:"type"` // verify_summary
	Histories  int     `json:"histories"`
	Same       int     `json:"same"`
	Diverged   int     `json:"diverged"`
	Drifted    int     `json:"drifted"`
	Unverified int     `json:"unverified"`
	Events     int     `json:"events"`
	TookMS     float64 `json:"took_ms"`
	EventsPerS float64 `json:"events_per_second"`
	Incomplete bool    `json:"incomplete,omitempty"` // it was interrupted, or broke off

	missing int
}

// verifyGC is how much the heap may grow between collections, in percent.
const verifyGC = 400

// maxAhead bounds the sources that are listed and not yet verified.
const maxAhead = 256

func verify(a *cli.App, ctx context.Context, args []string, f verifyFlags) error {
	if f.parallel < 1 {
		return cli.UsageError("--parallel %d: give a number above 0", f.parallel)
	}
	if len(args) == 0 && !f.all && len(f.queries) == 0 {
		return cli.UsageError("name runs or files to verify, or give --all or --query")
	}
	if f.junit != "" {
		if err := canWrite(f.junit); err != nil {
			return err
		}
	}
	v := &verifying{app: a, args: args, f: f, out: cli.NewLines(a.Out), began: time.Now(), bar: cli.NewProgressBar(a.Err),
		verifier: &replay.Verifier{Register: workflows.Register, Build: cli.BuildVersion(), Strict: f.strict}}
	return v.run(ctx)
}

// verifying is one run of the command.
type verifying struct {
	app      *cli.App
	args     []string
	f        verifyFlags
	verifier *replay.Verifier
	out      *cli.Lines
	began    time.Time
	end      VerifyEnd
	done     int64         // sources
	total    int64         // sources, 0 while it is not known
	report   []VerdictLine // for JUnit
	bar      *cli.ProgressBar
	engine   *engine.Engine

	mu    sync.Mutex
	taken map[string]bool // run ids, where a run may be named and listed too
}

func (v *verifying) run(ctx context.Context) error {
	// Otherwise the SDK reads this whole program for its checksum before the first replay.
	// No worker runs in this process whose events could carry it.
	worker.SetBinaryChecksum(cli.BuildVersion())
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(verifyGC) // what a replay leaves behind is short-lived: fewer collections, more histories a second
	}
	plan, err := v.plan()
	if err != nil {
		return err
	}
	if plan.needsServer() {
		e, done, err := v.app.OpenReadOnly(ctx)
		if err != nil {
			return err
		}
		defer done()
		v.engine = e
	}
	if v.bar != nil {
		v.total = v.count(ctx, plan)
	}
	return v.close(v.work(ctx, plan))
}

// work verifies all there is, and gives the error that ended it early.
func (v *verifying) work(ctx context.Context, plan verifyPlan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs, results := make(chan verifyJob), make(chan []VerdictLine)
	room := make(chan struct{}, maxAhead)
	var listed error
	go func() {
		defer close(jobs)
		listed = v.list(ctx, plan, func(job verifyJob) bool {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return false
			}
			select {
			case jobs <- job:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	var wg sync.WaitGroup
	for range v.f.parallel {
		wg.Go(func() {
			for read := range jobs {
				results <- v.verdicts(ctx, read)
			}
		})
	}
	go func() { wg.Wait(); close(results) }()
	failed := v.collect(results, room, cancel)
	v.bar.Clear()
	if failed == nil && listed == nil {
		listed = ctx.Err()
	}
	return errors.Join(failed, listed)
}

// collect writes verdicts as they come. It goes on after an error, so that nobody waits
// for it, and writes nothing more.
func (v *verifying) collect(results <-chan []VerdictLine, room <-chan struct{}, cancel func()) (failed error) {
	tick := v.bar.Ticks()
	defer tick.Stop()
	for {
		select {
		case list, more := <-results:
			if !more {
				return failed
			}
			<-room
			v.done++
			for _, line := range list {
				if failed == nil {
					if failed = v.put(line); failed != nil {
						cancel()
					}
				}
			}
		case <-tick.C:
		}
		v.bar.Draw(v.progress)
	}
}

// verdicts verifies the histories of a source.
func (v *verifying) verdicts(ctx context.Context, read verifyJob) []VerdictLine {
	var list []VerdictLine
	for _, h := range read.until(ctx) {
		line := VerdictLine{Type: "verdict", Source: h.Source, Number: h.Number, Chain: h.Chain}
		if len(h.Events) > 0 {
			begin := time.Now()
			line.Verdict = v.verdict(ctx, h)
			line.TookMS = cli.Millis(time.Since(begin))
			if ctx.Err() != nil {
				return list // whatever it says, it was not verified to its end
			}
			list = append(list, line)
		}
		if ctx.Err() != nil {
			return list
		}
		if h.ReadErr != nil || len(h.Events) == 0 {
			why := "the history has no events"
			if h.ReadErr != nil {
				why = cli.OneLine(h.ReadErr)
			}
			list = append(list, VerdictLine{Type: "verdict", Source: h.Source, Number: h.Number + min(len(h.Events), 1),
				Verdict: replay.Verdict{Outcome: replay.Unverified, Why: why}, missing: cli.ExitCode(h.ReadErr) == cli.ExitNotFound})
		}
	}
	return list
}

// verdict verifies one history; one with events that this program cannot read cannot be.
func (v *verifying) verdict(ctx context.Context, h cli.RunHistory) replay.Verdict {
	if len(h.Unread) == 0 {
		return v.verifier.Verify(ctx, h.Events)
	}
	u := h.Unread[0]
	out := v.verifier.Verify(ctx, h.Events[:1])
	return replay.Verdict{Outcome: replay.Unverified, WorkflowType: out.WorkflowType, WorkflowID: out.WorkflowID, RunID: out.RunID, Events: len(h.Events),
		Why: fmt.Sprintf("event %d, of type %s, at byte %d cannot be read: %s", u.Index+1, u.Type, u.Offset, strings.Join(strings.Fields(u.Reason), " "))}
}

// put counts a verdict and writes it.
func (v *verifying) put(l VerdictLine) error {
	e := &v.end
	e.Histories++
	e.Events += l.Events
	switch l.Outcome {
	case replay.Same:
		e.Same++
	case replay.Diverged:
		e.Diverged++
	case replay.Drifted:
		e.Drifted++
	default:
		e.Unverified++
		if l.missing {
			e.missing++
		}
	}
	if v.f.junit != "" {
		v.report = append(v.report, l)
	}
	v.bar.Clear()
	if v.app.JSON {
		return v.out.Write(l)
	}
	printVerdict(v.out, l)
	return v.out.Flush()
}

func printVerdict(out *cli.Lines, l VerdictLine) {
	about := l.WorkflowID
	if about == "" {
		about = l.Source
	}
	fmt.Fprintf(out.Buf, "%-10s  %s", l.Outcome, cli.SafeText(about))
	if l.Source != about {
		fmt.Fprintf(out.Buf, "  (%s, history %d)", cli.SafeText(l.Source), l.Number)
	}
	if l.Events > 0 {
		fmt.Fprintf(out.Buf, "  %d events", l.Events)
	}
	if l.Chain != nil {
		fmt.Fprintf(out.Buf, "  %s", l.Chain)
	}
	if l.Why != "" {
		fmt.Fprintf(out.Buf, "  %s", cli.SafeText(l.Why))
	}
	fmt.Fprintln(out.Buf)
	if d := l.Divergence; d != nil {
		fmt.Fprintf(out.Buf, "            %s\n            %s\n", cli.SafeText(d.Sentence), cli.SafeText(d.Advice))
	}
}

// close sums up, also where the work was broken off: what was verified by then counts.
func (v *verifying) close(broken error) error {
	if broken == nil && v.end.Histories == 0 && len(v.f.queries) > 0 {
		broken = &cli.ExitError{Code: cli.ExitNotFound, Err: errors.New("no run matches")}
	}
	e := &v.end
	e.Type, e.TookMS, e.Incomplete = "verify_summary", cli.Millis(time.Since(v.began)), broken != nil
	if e.TookMS > 0 {
		e.EventsPerS = float64(e.Events) / e.TookMS * 1000
	}
	err := v.sumUp()
	if v.f.junit != "" {
		err = errors.Join(err, writeJUnit(v.f.junit, v.report, *e))
	}
	switch {
	case errors.Is(broken, context.Canceled):
		return cli.ErrInterrupted
	case broken != nil:
		return broken
	case err != nil:
		return err
	}
	return e.verdict()
}

func (v *verifying) sumUp() error {
	e := v.end
	if v.app.JSON {
		return v.out.Write(e)
	}
	if e.Histories == 1 && !e.Incomplete {
		return nil
	}
	fmt.Fprintf(v.out.Buf, "%d histories, %d events in %.2f s: %d same, %d diverged, %d drifted, %d unverified", e.Histories, e.Events, e.TookMS/1000,
		e.Same, e.Diverged, e.Drifted, e.Unverified)
	if e.Incomplete {
		fmt.Fprint(v.out.Buf, "; the rest was not verified")
	}
	fmt.Fprintln(v.out.Buf)
	return v.out.Flush()
}

// verdict is the error of the whole: a divergence weighs more than what could not be
// verified.
func (e VerifyEnd) verdict() error {
	switch {
	case e.Diverged+e.Drifted > 0:
		return &cli.ExitError{Code: cli.ExitDiverged, Err: fmt.Errorf("%d of %d histories are not what today's code decides", e.Diverged+e.Drifted, e.Histories)}
	case e.missing > 0 && e.missing == e.Histories:
		return &cli.ExitError{Code: cli.ExitNotFound, Err: errors.New("there is no such run or file")}
	case e.Unverified > 0:
		return fmt.Errorf("%d of %d histories could not be verified", e.Unverified, e.Histories)
	}
	return nil
}

// progress says how far it is.
func (v *verifying) progress() cli.Progress {
	e := v.end
	p := cli.Progress{Done: v.done, Total: v.total, Since: v.began, Note: fmt.Sprintf("same %d", e.Same)}
	for _, c := range []struct {
		name string
		n    int
	}{{"diverged", e.Diverged}, {"drifted", e.Drifted}, {"unverified", e.Unverified}} {
		if c.n > 0 {
			p.Note += fmt.Sprintf("  %s %d", c.name, c.n)
		}
	}
	p.Note += "  " + text.Count(int64(float64(e.Events)/max(time.Since(v.began).Seconds(), 0.001))) + " events/s"
	return p
}
