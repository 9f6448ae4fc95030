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
		m, p, err := b.duel(ctx, spec{Variant: ours, LingerMS: lingerMS, Name: fmt.Sprintf("tasks-ours-%d", lingerMS)},
			spec{Variant: bare, LingerMS: lingerMS, Steps: bareSteps, Name: fmt.Sprintf("tasks-bare-%d", lingerMS)})
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

// duel runs the tasks of one attempt of two kinds in turns, on data directories of
// their own.
func (b *bench) duel(ctx context.Context, one, other spec) (m, p mark, err error) {
	var players [2]*player
	for i, s := range []spec{one, other} {
		dir, remove, err := b.fresh("tasks")
		if err != nil {
			return m, p, err
		}
		defer remove()
		s.Dir, s.Profile, s.Tasks, s.Every = dir, b.profile, b.size.tasks, turn
		if players[i], err = play(ctx, s); err != nil {
			if i > 0 {
				err = players[0].end(err)
			}
			return m, p, err
		}
	}
	err = alternate(players[0], players[1], b.size.tasks/turn)
	return players[0].sum, players[1].sum, err
}

// growth runs many tasks on one data directory, which list and idle use afterwards. The
// last thousand take turns with the first thousand of an empty directory, so that what
// else the machine does is no part of the answer.
func (b *bench) growth(ctx context.Context) error {
	marks, last, fresh, err := b.fill(ctx, b.size.growth)
	if err != nil {
		return err
	}
	first, what := marks[0], fmt.Sprintf("last %d of %d tasks against an empty directory, in turns", last.Tasks, last.Done)
	b.report.add(
		row{section: "growth", what: what, unit: "tasks/s", ours: series{last.perSecond()}, peer: series{fresh.perSecond()}, target: atLeast(0.8)},
		row{section: "growth", what: "the same", unit: "ms CPU a task", ours: series{last.cpuMS()}, peer: series{fresh.cpuMS()}, faster: true},
		row{section: "growth", what: "the last against the first, minutes apart", unit: "tasks/s", ours: series{last.perSecond()}, peer: series{first.perSecond()}},
		row{section: "growth", what: "the same", unit: "ms CPU a task", ours: series{last.cpuMS()}, peer: series{first.cpuMS()}, faster: true},
		row{section: "growth", what: "peak resident, at the end against a tenth", unit: "MB", ours: series{last.PeakMB}, peer: series{first.PeakMB}})
	return nil
}

// fill makes a data directory with so many closed runs and keeps it. Marks are of each
// tenth but the last, which takes turns with an empty directory.
func (b *bench) fill(ctx context.Context, count int) (marks []mark, last, fresh mark, err error) {
	dir, tenth := b.filled(count), count/10
	if err := os.RemoveAll(dir); err != nil {
		return nil, last, fresh, err
	}
	tmp, remove, err := b.fresh("filling")
	if err != nil {
		return nil, last, fresh, err
	}
	defer remove()
	empty, removeEmpty, err := b.fresh("empty")
	if err != nil {
		return nil, last, fresh, err
	}
	defer removeEmpty()
	full, err := play(ctx, spec{Variant: ours, Dir: tmp, Tasks: count, Every: turn, Alone: count - tenth, Profile: b.profile, Name: "growth"})
	if err != nil {
		return nil, last, fresh, err
	}
	if marks, err = b.alone(full, count-tenth, tenth); err != nil {
		return nil, last, fresh, full.end(err)
	}
	other, err := play(ctx, spec{Variant: ours, Dir: empty, Tasks: tenth, Every: turn, Profile: b.profile, Name: "growth-empty"})
	if err != nil {
		return nil, last, fresh, full.end(err)
	}
	if err := alternate(full, other, tenth/turn); err != nil {
		return nil, last, fresh, err
	}
	return marks, full.sum, other.sum, os.Rename(tmp, dir)
}

// alone reads the marks of a child that takes no turns yet, and joins them to tenths.
func (b *bench) alone(p *player, count, tenth int) (marks []mark, err error) {
	var sum mark
	for sum.Done < count {
		m, err := p.next()
		if err != nil {
			return nil, err
		}
		if sum = sum.add(m); sum.Done%tenth == 0 {
			b.progress("  %6d tasks: %5.1f tasks/s, %5.1f ms CPU a task, peak %4.0f MB", sum.Done, sum.perSecond(), sum.cpuMS(), sum.PeakMB)
			marks = append(marks, sum)
			sum = mark{Done: sum.Done}
		}
	}
	return marks, nil
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
	_, _, _, err := b.fill(ctx, count)
	return dir, err
}
