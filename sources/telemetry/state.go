package telemetry

import (
	"context"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/sources/system"
)

// watchEvery is the interval of reading the task queues and the number of open runs.
const watchEvery = 10 * time.Second

// watch reads the state of the server until ctx ends.
func (m *Metrics) watch(ctx context.Context, d cluster.Deps) {
	for ctx.Err() == nil {
		m.readState(ctx, d)
		_ = cluster.Sleep(ctx, watchEvery) // the loop ends with ctx
	}
}

func (m *Metrics) readState(ctx context.Context, d cluster.Deps) {
	counting, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	open, err := runs.Count(counting, d.Client, `ExecutionStatus = "Running"`)
	cancel()
	if err != nil {
		m.reachable.Set(0)
		return
	}
	m.reachable.Set(1)
	m.openRuns.Set(float64(open))
	queues := system.Queues(ctx, d)
	m.backlog.Reset() // queues without open runs are no longer described
	m.oldest.Reset()
	m.pollers.Reset()
	for _, q := range queues {
		if q.Err != "" {
			continue
		}
		name := m.labels.bound("task_queue", q.Name)
		m.backlog.WithLabelValues(name, q.Kind).Set(float64(q.Backlog))
		m.oldest.WithLabelValues(name, q.Kind).Set(q.OldestMS / 1000)
		m.pollers.WithLabelValues(name, q.Kind).Set(float64(len(q.Pollers)))
	}
}
