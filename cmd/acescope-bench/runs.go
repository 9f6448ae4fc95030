package main

import (
	"context"
	"fmt"
)

// How the runs of blueprints are compared: with a fixed task queue over so many runners, so
// many at a time.
const (
	runHosts  = 8
	runSlots  = 4 // of each
	runAtOnce = 16
)

// runsMark is what the child of the section says of one attempt.
type runsMark struct {
	// In milliseconds: to the first byte, and to the result, of runs and of bare activities.
	First, BareFirst series
	End, BareEnd     series
	// In seconds, of all runs, and in milliseconds of CPU a run.
	Matched, Fixed       float64
	MatchedCPU, FixedCPU float64
}

// runs compares what a run of a blueprint costs with a bare activity that starts the same
// program, and with runs whose task queue is fixed.
func (b *bench) runs(ctx context.Context) error {
	first := row{section: "runs", what: "no-op program, start to its first byte, median, against a bare activity", unit: "ms"}
	slow := row{section: "runs", what: "the same, p95", unit: "ms"}
	end := row{section: "runs", what: "the same to its result, median", unit: "ms"}
	what := fmt.Sprintf("%d runs over %d runners, %d at a time, matched against a fixed task queue", b.size.programs, runHosts, runAtOnce)
	matched := row{section: "runs", what: what, unit: "s", target: atMost(1.2)}
	cpu := row{section: "runs", what: "the same, of the serving process", unit: "ms CPU a run"}
	for n := range b.size.runs {
		dir, remove, err := b.fresh("runs")
		if err != nil {
			return err
		}
		s := spec{Kind: kindRuns, Dir: dir, Tasks: b.size.programs, Events: b.size.events, Profile: b.profile, Name: fmt.Sprint("runs-", n)}
		if n%2 == 1 {
			s.Variant = bare // the peer first
		}
		err = ask(ctx, s, func(m runsMark) error {
			b.progress("  %d of %d: first byte after %.1f against %.1f ms; all after %.1f against %.1f s, %.1f against %.1f ms CPU a run", n+1, b.size.runs,
				m.First.median(), m.BareFirst.median(), m.Matched, m.Fixed, m.MatchedCPU, m.FixedCPU)
			first.ours, first.peer = append(first.ours, m.First.median()), append(first.peer, m.BareFirst.median())
			slow.ours, slow.peer = append(slow.ours, m.First.percentile(95)), append(slow.peer, m.BareFirst.percentile(95))
			end.ours, end.peer = append(end.ours, m.End.median()), append(end.peer, m.BareEnd.median())
			matched.ours, matched.peer = append(matched.ours, m.Matched), append(matched.peer, m.Fixed)
			cpu.ours, cpu.peer = append(cpu.ours, m.MatchedCPU), append(cpu.peer, m.FixedCPU)
			return nil
		})
		remove()
		if err != nil {
			return err
		}
	}
	b.report.add(first, slow, end, matched, cpu)
	return nil
}
