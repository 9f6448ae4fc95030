package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// lingerMS is how long a session lasts after its calls in the second comparison: long
// enough that acescope's recorder sends the events, as it does for real sessions. A
// session that ends sooner leaves them to its result.
const lingerMS = 60

// bareSteps are the activities of the bare task; acescope's has five.
const bareSteps = 4

// tasks compares the throughput of acescope's tasks with a bare worker's.
func (b *bench) tasks(ctx context.Context) error {
	for _, kind := range []struct {
		what     string
		lingerMS int
		target   *target
	}{
		{"20 tool events, short sessions", 0, atLeast(1.8)},
		{fmt.Sprintf("20 tool events, sessions of %d ms", lingerMS), lingerMS, atLeast(1.8)},
	} {
		if err := b.compareTasks(ctx, kind.what, kind.lingerMS, kind.target); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) compareTasks(ctx context.Context, what string, lingerMS int, t *target) error {
	rate := row{section: "tasks", what: what, unit: "tasks/s", target: t}
	cpu := row{section: "tasks", what: what, unit: "ms CPU a task", faster: true}
	for n := range b.size.runs {
		m, err := b.loadOnce(ctx, spec{Variant: ours, LingerMS: lingerMS, Name: fmt.Sprintf("tasks-ours-%d", lingerMS)})
		if err != nil {
			return err
		}
		p, err := b.loadOnce(ctx, spec{Variant: bare, LingerMS: lingerMS, Steps: bareSteps, Name: fmt.Sprintf("tasks-bare-%d", lingerMS)})
		if err != nil {
			return err
		}
		b.progress("  %s, %d of %d: %.1f against %.1f tasks/s, %.1f against %.1f ms CPU a task", what, n+1, b.size.runs,
			m.perSecond(), p.perSecond(), m.cpuMS(), p.cpuMS())
		rate.ours, rate.peer = append(rate.ours, m.perSecond()), append(rate.peer, p.perSecond())
		cpu.ours, cpu.peer = append(cpu.ours, m.cpuMS()), append(cpu.peer, p.cpuMS())
	}
	b.report.add(rate, cpu)
	return nil
}

// loadOnce runs the tasks of one attempt in a data directory of their own.
func (b *bench) loadOnce(ctx context.Context, s spec) (m mark, err error) {
	dir, remove, err := b.fresh("tasks")
	if err != nil {
		return m, err
	}
	defer remove()
	s.Kind, s.Dir, s.Profile = kindLoad, dir, b.profile
	if s.Tasks == 0 {
		s.Tasks = b.size.tasks
	}
	s.Every = s.Tasks
	err = ask(ctx, s, func(got mark) error { m = got; return nil })
	return m, err
}

// growth runs many tasks on one data directory, which list and idle use afterwards.
func (b *bench) growth(ctx context.Context) error {
	marks, err := b.fill(ctx, b.size.growth)
	if err != nil {
		return err
	}
	first, last := marks[0], marks[len(marks)-1]
	// The machine may be busier at the end of the long run than at its start. What an
	// empty directory does at the end tells one from the other.
	fresh, err := b.loadOnce(ctx, spec{Variant: ours, Tasks: last.Tasks, Name: "growth-fresh"})
	if err != nil {
		return err
	}
	b.report.add(
		row{section: "growth", what: fmt.Sprintf("last %d of %d tasks against the first", last.Tasks, last.Done), unit: "tasks/s",
			ours: series{last.perSecond()}, peer: series{first.perSecond()}, target: atLeast(0.8)},
		row{section: "growth", what: "the same", unit: "ms CPU a task", ours: series{last.cpuMS()}, peer: series{first.cpuMS()}},
		row{section: "growth", what: "last tasks against an empty directory right after", unit: "tasks/s",
			ours: series{last.perSecond()}, peer: series{fresh.perSecond()}},
		row{section: "growth", what: "the same", unit: "ms CPU a task", ours: series{last.cpuMS()}, peer: series{fresh.cpuMS()}},
		row{section: "growth", what: "peak resident", unit: "MB", ours: series{last.PeakMB}, peer: series{first.PeakMB}})
	return nil
}

// fill makes a data directory with so many closed runs and keeps it.
func (b *bench) fill(ctx context.Context, count int) (marks []mark, err error) {
	dir := b.filled(count)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	tmp, remove, err := b.fresh("filling")
	if err != nil {
		return nil, err
	}
	defer remove()
	s := spec{Kind: kindLoad, Variant: ours, Dir: tmp, Tasks: count, Every: max(count/10, 1), Profile: b.profile, Name: "growth"}
	err = ask(ctx, s, func(m mark) error {
		marks = append(marks, m)
		b.progress("  %6d tasks: %5.1f tasks/s, %5.1f ms CPU a task, peak %4.0f MB", m.Done, m.perSecond(), m.cpuMS(), m.PeakMB)
		return nil
	})
	if err == nil && len(marks) == 0 {
		err = fmt.Errorf("no task was run")
	}
	if err != nil {
		return nil, err
	}
	return marks, os.Rename(tmp, dir)
}

func (b *bench) filled(count int) string { return filepath.Join(b.dir, fmt.Sprintf("runs-%d", count)) }

// ensureFilled is the directory with so many closed runs, made where it is missing. The
// runs of an older acescope's flow are still runs to list.
func (b *bench) ensureFilled(ctx context.Context, count int) (string, error) {
	dir := b.filled(count)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	b.progress("  making %d closed runs in %s, once", count, dir)
	_, err := b.fill(ctx, count)
	return dir, err
}
