package runs

import (
	"errors"
	"slices"
	"time"

	"acescope/engine/ace"
)

// Bounds of describing open runs.
const (
	describeWithin  = 200 // described open runs
	describeAtMost  = 24  // per reading
	describeTimeout = time.Second
)

// RetryState is the progress of describing open runs.
type RetryState struct {
	Open     int // open runs to describe
	LookedAt int // described at least once
	Retrying int // retrying when last described
}

// retries holds what open runs retry, which visibility does not list. It belongs to the list reader.
type retries struct {
	known map[string]described // by run id
	open  int
}

type described struct {
	at time.Time
	Retry
}

func (t *retries) state() RetryState {
	s := RetryState{Open: t.open, LookedAt: len(t.known)}
	for _, k := range t.known {
		if k.Retried != "" {
			s.Retrying++
		}
	}
	return s
}

// next returns the runs to describe and removes closed runs.
func (t *retries) next(rows []Run) []Run {
	var open []Run
	known := map[string]described{}
	for _, row := range rows {
		if !row.Open() || len(open) >= describeWithin {
			break
		}
		open = append(open, row)
		if k, ok := t.known[row.RunID]; ok {
			known[row.RunID] = k
		}
	}
	t.known, t.open = known, len(open)
	slices.SortStableFunc(open, func(a, b Run) int { return known[a.RunID].at.Compare(known[b.RunID].at) })
	again, others := []Run{}, []Run{}
	for _, row := range open {
		if known[row.RunID].Retried != "" && len(again) < describeAtMost/2 {
			again = append(again, row)
		} else {
			others = append(others, row)
		}
	}
	return append(again, others[:min(len(others), describeAtMost-len(again))]...)
}

// describeAll bounds the open runs that [ListRetrying] describes.
const describeAll = 10_000

var errEnough = errors.New("enough")

// maxAsked bounds the queried open runs.
const maxAsked = 10

// progress is the answer of an open run's worker.
type progress struct {
	summary *ace.Summary
	phase   ace.Phase // or the stage of an experiment
}
