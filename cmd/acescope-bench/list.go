package main

import (
	"context"
	"errors"
	"fmt"
)

// list compares acescope list with temporal workflow list on one serving process.
func (b *bench) list(ctx context.Context) (err error) {
	dir, err := b.ensureFilled(ctx, b.size.list)
	if err != nil {
		return err
	}
	s, err := b.serve(ctx, dir, "list-server")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := b.compareLists(ctx, s, dir); err != nil {
		return err
	}
	if err := b.listMemory(ctx, dir); err != nil {
		return err
	}
	return b.firstLine(ctx, s)
}

// listAttempts is how often each list is read: it takes seconds, so more often.
func (b *bench) listAttempts() int { return 2*b.size.runs + 1 }

func (b *bench) compareLists(ctx context.Context, s *server, dir string) error {
	last := row{section: "list", what: fmt.Sprintf("%d runs, start to last line", b.size.list), unit: "ms", faster: true, target: atLeast(1.3)}
	first := row{section: "list", what: "start to first line", unit: "ms", faster: true}
	cpu := row{section: "list", what: "user and system CPU", unit: "ms", faster: true}
	peak := row{section: "list", what: "peak resident", unit: "MB", faster: true}
	for range b.listAttempts() {
		a, err := b.listOurs(ctx, dir, "")
		if err != nil {
			return err
		}
		p, err := attemptOf(ctx, s.env, b.temporal, "workflow", "list", "-o", "jsonl")
		if err != nil {
			return err
		}
		if a.lines < b.size.list || p.lines < b.size.list {
			return fmt.Errorf("%d and %d lines for %d runs", a.lines, p.lines, b.size.list)
		}
		b.progress("  %.0f against %.0f ms to the last line, %.0f against %.0f ms to the end", millis(a.last.Sub(a.started)),
			millis(p.last.Sub(p.started)), millis(a.total), millis(p.total))
		for _, x := range []struct {
			*row
			of func(attempt) float64
		}{
			{&last, func(x attempt) float64 { return millis(x.last.Sub(x.started)) }},
			{&first, func(x attempt) float64 { return millis(x.first.Sub(x.started)) }},
			{&cpu, func(x attempt) float64 { return millis(x.cpu) }},
			{&peak, func(x attempt) float64 { return x.peakMB }},
		} {
			x.ours, x.peer = append(x.ours, x.of(a)), append(x.peer, x.of(p))
		}
	}
	b.report.add(last, first, cpu, peak)
	return nil
}

func (b *bench) listOurs(ctx context.Context, dir, query string) (attempt, error) {
	args := []string{"list", "--json", "--data-dir", dir}
	if query != "" {
		args = append(args, "-q", query)
	}
	return attemptOf(ctx, nil, b.acescope, args...)
}

// listMemory compares the peak for all runs with that for a tenth of them. A tenth more
// is allowed: the collector lets garbage stand until it is worth its time.
func (b *bench) listMemory(ctx context.Context, dir string) error {
	part := min(group, b.size.list)
	r := row{section: "list", what: fmt.Sprintf("peak resident, %d runs against %d", b.size.list, part), unit: "MB", target: atMost(1.1)}
	for range b.listAttempts() {
		all, err := b.listOurs(ctx, dir, "")
		if err != nil {
			return err
		}
		few, err := b.listOurs(ctx, dir, fmt.Sprintf("ExperimentId = %q", experimentOf(0)))
		if err != nil {
			return err
		}
		if few.lines != part {
			return fmt.Errorf("%d lines for %d runs", few.lines, part)
		}
		r.ours, r.peer = append(r.ours, all.peakMB), append(r.peer, few.peakMB)
	}
	b.report.add(r)
	return nil
}

// firstLine measures from the server's first answer with runs in it, as it passes a
// relay, to the first line that is printed.
func (b *bench) firstLine(ctx context.Context, s *server) error {
	r := row{section: "list", what: "server's answer to first line", unit: "ms", target: below(100)}
	for range b.listAttempts() {
		relay, err := newRelay(ctx, s.address())
		if err != nil {
			return err
		}
		env := append(s.env[:len(s.env):len(s.env)], "TEMPORAL_ADDRESS="+relay.address())
		a, err := attemptOf(ctx, env, b.acescope, "list", "--json", "--address", relay.address(), "--namespace", "ace-dev")
		answered := relay.close()
		if err != nil {
			return err
		}
		if answered.IsZero() || a.lines < b.size.list {
			return fmt.Errorf("the relay saw no answer, or %d lines were printed", a.lines)
		}
		r.ours = append(r.ours, millis(a.first.Sub(answered)))
	}
	b.report.add(r)
	return nil
}
