package main

import (
	"context"
	"fmt"
)

// The dispatcher under load: so many runners, one slot each.
const dispatchRunners = 200

// Limits of a workflow's history, as Temporal's server has them.
const (
	limitEvents = 51_200
	limitMB     = 50
)

// dispatchMark is what the child of the section says of one attempt.
type dispatchMark struct {
	P50, P99    float64 // microseconds of a decision
	StartOver   float64 // milliseconds to carry what is known and to read it again
	CarriedMB   float64
	Claims      int     // on the server
	Seconds     float64 // that they took
	Continued   int
	MostEvents  float64 // of one run of the dispatcher
	MostMB      float64
	EventsClaim float64 // of all its runs, for each claim
}

// dispatch measures how the dispatcher decides while many runs wait and all runners are busy:
// what one decision takes, and what it leaves on a real server.
func (b *bench) dispatch(ctx context.Context) error {
	about := func(what string) string {
		return fmt.Sprintf("%d runs that wait, %d runners: %s", b.size.pending, dispatchRunners, what)
	}
	p50 := row{section: "dispatch", what: about("a decision, median"), unit: "µs"}
	p99 := row{section: "dispatch", what: "the same, p99", unit: "µs"}
	over := row{section: "dispatch", what: "to carry what is known into the next run, and read it", unit: "ms"}
	carried := row{section: "dispatch", what: "what is carried (limit 2)", unit: "MB", target: below(2)}
	rate := row{section: "dispatch", what: about("runs given to runners, on the server"), unit: "runs/s"}
	events := row{section: "dispatch", what: "longest run of the dispatcher", unit: "events", target: below(limitEvents)}
	size := row{section: "dispatch", what: "the same", unit: "MB", target: below(limitMB)}
	each := row{section: "dispatch", what: "of all its runs, for each claim", unit: "events"}
	next := row{section: "dispatch", what: "continued as new", unit: "times", target: above(1)}
	for n := range b.size.runs {
		dir, remove, err := b.fresh("dispatch")
		if err != nil {
			return err
		}
		s := spec{Kind: kindDispatch, Dir: dir, Tasks: b.size.pending, Events: b.size.pending / 5, Profile: b.profile, Name: fmt.Sprint("dispatch-", n)}
		err = ask(ctx, s, func(m dispatchMark) error {
			b.progress("  %d of %d: a decision %.1f µs, p99 %.1f µs; %d claims in %.1f s; %.0f events", n+1, b.size.runs, m.P50, m.P99, m.Claims, m.Seconds, m.MostEvents)
			p50.ours, p99.ours = append(p50.ours, m.P50), append(p99.ours, m.P99)
			over.ours, carried.ours = append(over.ours, m.StartOver), append(carried.ours, m.CarriedMB)
			rate.ours = append(rate.ours, float64(m.Claims)/m.Seconds)
			events.ours, size.ours = append(events.ours, m.MostEvents), append(size.ours, m.MostMB)
			each.ours, next.ours = append(each.ours, m.EventsClaim), append(next.ours, float64(m.Continued))
			return nil
		})
		remove()
		if err != nil {
			return err
		}
	}
	b.report.add(p50, p99, over, carried, rate, events, size, each, next)
	return nil
}
