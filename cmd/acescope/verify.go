package main

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

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/worker"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/replay"
	"acescope/sources"
)

type verifyFlags struct {
	all      bool
	query    string
	strict   bool
	junit    string
	parallel int
	chain    bool
}

func (a *app) verifyCommand(name string) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   name + " TASK|FILE|DIR|- …",
		Short: "Verify that today's workflow code still decides as histories say",
		Long: "Replays histories with the workflow code of this program through Temporal's own replayer, and names the first place in\n" +
			"which it decides otherwise. Nothing is run again and nothing is changed. Exit code 4 says that a run diverges, 3 that\n" +
			"there is no such run or file, 1 that some could not be verified.",
		Example: "acescope replay verify finance-1-e1-0042\nacescope replay verify histories/ bug.json.gz --junit report.xml\n" +
			"acescope replay verify -q 'ExperimentId=\"finance-1\"' --json | jq 'select(.outcome == \"diverged\")'\n" +
			"temporal workflow show -w ace/q-1 -o json | acescope replay verify -",
		RunE: func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), args, f) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.all, "all", false, "every run of the server whose workflow type is known here")
	fl.StringVarP(&f.query, "query", "q", "", "the runs that match this visibility query")
	fl.BoolVar(&f.strict, "strict", false, "decisions that Temporal lets pass count too: another input, another length of a timer")
	fl.StringVar(&f.junit, "junit", "", "write a JUnit report to this file, for a CI system")
	fl.IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "how many histories are verified at a time")
	fl.BoolVar(&f.chain, "chain", false, "of runs that are named, the runs that they continue and are continued as too")
	cmd.MarkFlagsMutuallyExclusive("all", "query")
	return cmd
}

// verdictLine is what verifying one history found.
type verdictLine struct {
	Type   string `json:"type"` // verdict
	Source string `json:"source"`
	Number int    `json:"history"` // in the source, from 1
	replay.Verdict
	Chain  *chainLine `json:"chain,omitempty"` // of a run that was named
	TookMS float64    `json:"took_ms"`

	missing bool
}

// verifyEnd sums up what was verified.
type verifyEnd struct {
	Type       string  `json:"type"` // verify_summary
	Histories  int     `json:"histories"`
	Same       int     `json:"same"`
	Diverged   int     `json:"diverged"`
	Drifted    int     `json:"drifted"`
	Unverified int     `json:"unverified"`
	Events     int     `json:"events"`
	TookMS     float64 `json:"took_ms"`
	EventsPerS float64 `json:"events_per_second"`

	missing int
}

// verifyJob reads the histories of one source.
type verifyJob struct {
	read func(context.Context) []oneHistory
}

// verifyGC is how much the heap may grow between collections, in percent.
const verifyGC = 400

// maxAhead bounds the sources that are listed and not yet verified.
const maxAhead = 256

func (a *app) verify(ctx context.Context, args []string, f verifyFlags) error {
	if f.parallel < 1 {
		return usage("--parallel %d: give a number above 0", f.parallel)
	}
	if len(args) == 0 && !f.all && f.query == "" {
		return usage("name runs or files to verify, or give --all or --query")
	}
	v := &verifying{app: a, args: args, f: f, out: newLines(a.out), began: time.Now(),
		verifier: &replay.Verifier{Register: flow.Register, Build: buildVersion(), Strict: f.strict}}
	return v.run(ctx)
}

// verifying is one run of the command.
type verifying struct {
	app      *app
	args     []string
	f        verifyFlags
	verifier *replay.Verifier
	out      *lines
	began    time.Time
	end      verifyEnd
	report   []verdictLine // for JUnit
	drawn    time.Time
	engine   *engine.Engine
}

func (v *verifying) run(ctx context.Context) error {
	// Otherwise the SDK reads this whole program for its checksum before the first replay.
	// No worker runs in this process whose events could carry it.
	worker.SetBinaryChecksum(buildVersion())
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(verifyGC) // what a replay leaves behind is short-lived: fewer collections, more histories a second
	}
	if v.f.all || v.f.query != "" || v.named() {
		e, done, err := v.app.look(ctx)
		if err != nil {
			return err
		}
		defer done()
		v.engine = e
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs, results := make(chan verifyJob), make(chan []verdictLine)
	room := make(chan struct{}, maxAhead)
	var listed error
	go func() {
		defer close(jobs)
		listed = v.list(ctx, func(read func(context.Context) []oneHistory) bool {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return false
			}
			select {
			case jobs <- verifyJob{read: read}:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	var wg sync.WaitGroup
	for range v.f.parallel {
		wg.Go(func() {
			for j := range jobs {
				results <- v.verdicts(ctx, j)
			}
		})
	}
	go func() { wg.Wait(); close(results) }()
	var failed error
	for list := range results {
		<-room
		for _, line := range list {
			if failed == nil {
				if failed = v.put(line); failed != nil {
					cancel()
				}
			}
		}
		v.progress(false)
	}
	v.progress(true)
	if failed == nil && listed == nil {
		listed = ctx.Err()
	}
	if err := errors.Join(failed, listed); err != nil {
		_ = v.out.flush()
		if errors.Is(err, context.Canceled) {
			return errInterrupted
		}
		return err
	}
	return v.close()
}

// named tells whether an argument names a run of the server.
func (v *verifying) named() bool {
	for _, arg := range v.args {
		if !isHistoryFile(arg) {
			return true
		}
	}
	return false
}

// list gives the sources one by one, until add refuses.
func (v *verifying) list(ctx context.Context, add func(func(context.Context) []oneHistory) bool) error {
	for _, arg := range v.args {
		if !isHistoryFile(arg) {
			if !add(func(ctx context.Context) []oneHistory { return v.run1(ctx, arg) }) {
				return ctx.Err()
			}
			continue
		}
		files, err := filesIn(arg)
		if err != nil {
			return err
		}
		for _, file := range files {
			if !add(func(ctx context.Context) []oneHistory { return v.app.readHistories(ctx, file) }) {
				return ctx.Err()
			}
		}
	}
	if !v.f.all && v.f.query == "" {
		return nil
	}
	query := v.f.query
	if v.f.all {
		query = fmt.Sprintf("WorkflowType = %q OR WorkflowType = %q", ace.TaskWorkflow, ace.ExperimentWorkflow)
	}
	return sources.List(ctx, v.engine.Client, query, 0, func(r sources.Run) error {
		if !add(func(ctx context.Context) []oneHistory { return v.of(ctx, r.WorkflowID, r.RunID) }) {
			return ctx.Err()
		}
		return nil
	})
}

func (v *verifying) run1(ctx context.Context, id string) []oneHistory {
	if v.f.chain {
		list, err := v.app.readChain(ctx, v.engine, id, "")
		if err == nil {
			return list
		}
		return []oneHistory{{source: id, number: 1, err: err}}
	}
	h, err := v.app.readRun(ctx, v.engine, id, "")
	if err != nil {
		return []oneHistory{{source: id, number: 1, err: err}}
	}
	return []oneHistory{h}
}

func (v *verifying) of(ctx context.Context, workflowID, runID string) []oneHistory {
	h := oneHistory{source: workflowID, number: 1}
	h.Events, h.err = sources.ReadHistory(ctx, v.engine.Client, v.engine.Namespace(), workflowID, runID)
	return []oneHistory{h}
}

// verdicts verifies the histories of a source.
func (v *verifying) verdicts(ctx context.Context, j verifyJob) []verdictLine {
	var list []verdictLine
	for _, h := range j.read(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		line := verdictLine{Type: "verdict", Source: h.source, Number: h.number, Chain: h.chain}
		if len(h.Events) > 0 {
			begin := time.Now()
			line.Verdict = v.verdict(h)
			line.TookMS = millis(time.Since(begin))
			list = append(list, line)
		}
		if h.err != nil || len(h.Events) == 0 {
			why := "the history has no events"
			if h.err != nil {
				why = oneLine(h.err)
			}
			list = append(list, verdictLine{Type: "verdict", Source: h.source, Number: h.number + min(len(h.Events), 1),
				Verdict: replay.Verdict{Outcome: replay.Unverified, Why: why}, missing: exitCode(h.err) == exitNotFound})
		}
	}
	return list
}

// verdict verifies one history; one with events that this program cannot read cannot be.
func (v *verifying) verdict(h oneHistory) replay.Verdict {
	if len(h.Unread) == 0 {
		return v.verifier.Verify(h.Events)
	}
	u := h.Unread[0]
	out := v.verifier.Verify(h.Events[:1])
	return replay.Verdict{Outcome: replay.Unverified, WorkflowType: out.WorkflowType, WorkflowID: out.WorkflowID, RunID: out.RunID, Events: len(h.Events),
		Why: fmt.Sprintf("event %d, of type %s, at byte %d cannot be read: %s", u.Index+1, u.Type, u.Offset, strings.Join(strings.Fields(u.Reason), " "))}
}

// put counts a verdict and writes it.
func (v *verifying) put(l verdictLine) error {
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
	v.clear()
	if v.app.json {
		return v.out.write(l)
	}
	printVerdict(v.out, l)
	return v.out.flush()
}

func printVerdict(out *lines, l verdictLine) {
	about := l.WorkflowID
	if about == "" {
		about = l.Source
	}
	fmt.Fprintf(out.buf, "%-10s  %s", l.Outcome, safe(about))
	if l.Source != about {
		fmt.Fprintf(out.buf, "  (%s, history %d)", safe(l.Source), l.Number)
	}
	if l.Events > 0 {
		fmt.Fprintf(out.buf, "  %d events", l.Events)
	}
	if l.Chain != nil {
		fmt.Fprintf(out.buf, "  %s", l.Chain)
	}
	if l.Why != "" {
		fmt.Fprintf(out.buf, "  %s", safe(l.Why))
	}
	fmt.Fprintln(out.buf)
	if d := l.Divergence; d != nil {
		fmt.Fprintf(out.buf, "            %s\n            %s\n", safe(d.Sentence), safe(d.Advice))
	}
}

func (v *verifying) close() error {
	e := &v.end
	e.Type, e.TookMS = "verify_summary", millis(time.Since(v.began))
	if e.TookMS > 0 {
		e.EventsPerS = float64(e.Events) / e.TookMS * 1000
	}
	if v.app.json {
		if err := v.out.write(e); err != nil {
			return err
		}
	} else if e.Histories != 1 {
		fmt.Fprintf(v.out.buf, "%d histories, %d events in %.2f s: %d same, %d diverged, %d drifted, %d unverified\n",
			e.Histories, e.Events, e.TookMS/1000, e.Same, e.Diverged, e.Drifted, e.Unverified)
		if err := v.out.flush(); err != nil {
			return err
		}
	}
	if v.f.junit != "" {
		if err := writeJUnit(v.f.junit, v.report, *e); err != nil {
			return err
		}
	}
	return e.verdict()
}

// verdict is the error of the whole: a divergence weighs more than what could not be
// verified.
func (e verifyEnd) verdict() error {
	switch {
	case e.Diverged+e.Drifted > 0:
		return &coded{exitDiverged, fmt.Errorf("%d of %d histories are not what today's code decides", e.Diverged+e.Drifted, e.Histories)}
	case e.missing > 0 && e.missing == e.Histories:
		return &coded{exitNotFound, errors.New("there is no such run or file")}
	case e.Unverified > 0:
		return fmt.Errorf("%d of %d histories could not be verified", e.Unverified, e.Histories)
	}
	return nil
}

// progressEvery bounds how often the progress is drawn.
const progressEvery = 100 * time.Millisecond

// progress draws how far it is on standard error, where that is a terminal.
func (v *verifying) progress(last bool) {
	if !term.IsTerminal(os.Stderr.Fd()) || !last && time.Since(v.drawn) < progressEvery {
		return
	}
	v.clear()
	if last {
		return
	}
	v.drawn = time.Now()
	e := v.end
	fmt.Fprintf(v.app.err, "verified %d  same %d  diverged %d  unverified %d  %.0f events/s", e.Histories, e.Same, e.Diverged+e.Drifted, e.Unverified,
		float64(e.Events)/max(time.Since(v.began).Seconds(), 0.001))
}

// clear takes the progress from the screen, so that a line can be written.
func (v *verifying) clear() {
	if !v.drawn.IsZero() {
		fmt.Fprint(v.app.err, "\r\x1b[K")
		v.drawn = time.Time{}
	}
}
