package runs

import (
	"errors"
	"slices"
	"time"
)

// Bounds of looking for runs that are being retried.
const (
	describeWithin  = 200 // the first open runs that are looked at over time
	describeAtMost  = 24  // at each reading
	DescribeTimeout = time.Second
)

// RetryState says how far the looking for retries has come.
type RetryState struct {
	Open     int // open runs that are looked at in turn
	LookedAt int // of these, at least once
	Retrying int // of these, being retried when they were last looked at
}

// Retries is what is known of open runs' pending activities, which visibility does not
// tell. It belongs to the list reader.
type Retries struct {
	Known map[string]Trying // by run id
	Open  int
}

type Trying struct {
	At        time.Time
	Attempt   int32 // above 1 where it is being retried
	LastError string
}

func (t *Retries) State() RetryState {
	s := RetryState{Open: t.Open, LookedAt: len(t.Known)}
	for _, k := range t.Known {
		if k.Attempt > 1 {
			s.Retrying++
		}
	}
	return s
}

// Next picks whom to look at, and forgets runs that are no longer open.
func (t *Retries) Next(rows []Run) []Run {
	var open []Run
	known := map[string]Trying{}
	for _, row := range rows {
		if !row.Open() || len(open) >= describeWithin {
			break
		}
		open = append(open, row)
		if k, ok := t.Known[row.RunID]; ok {
			known[row.RunID] = k
		}
	}
	t.Known, t.Open = known, len(open)
	slices.SortStableFunc(open, func(a, b Run) int { return known[a.RunID].At.Compare(known[b.RunID].At) })
	again, others := []Run{}, []Run{}
	for _, row := range open {
		if known[row.RunID].Attempt > 1 && len(again) < describeAtMost/2 {
			again = append(again, row)
		} else {
			others = append(others, row)
		}
	}
	return append(again, others[:min(len(others), describeAtMost-len(again))]...)
}

// DescribeAll bounds the open runs that [ListRetrying] looks at.
const DescribeAll = 10_000

var ErrEnough = errors.New("enough")
