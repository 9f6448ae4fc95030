package experiments

import (
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
)

// A canceled task of an experiment without a workflow is closed: the experiment does not run on because of it.
func TestTasksOnlyCanceled(t *testing.T) {
	at := time.Unix(1000, 0)
	list := func(statuses ...ace.Status) (list []runs.Run) {
		for i, s := range statuses {
			list = append(list, runs.Run{RunID: string(rune('a' + i)), Status: s, Verdict: ace.Correct, Start: at,
				Close: at.Add(time.Minute)})
		}
		return list
	}
	cases := map[ace.Status][]runs.Run{
		ace.Completed: list(ace.Completed, ace.Canceled, ace.Completed),
		ace.Failed:    list(ace.Canceled, ace.Failed),
		ace.Canceled:  list(ace.Canceled, ace.Canceled),
	}
	for want, tasks := range cases {
		s := taskSeries("x", tasks, nil)
		done := 0
		for _, task := range tasks {
			if task.Status != ace.Canceled {
				done++
			}
		}
		if p := &s.Progress; s.Status != want || p.Done() != done || p.Canceled() != len(tasks)-done ||
			s.Totals().Tasks != done || s.Close.IsZero() {
			t.Errorf("%s: %s, %+v", want, s.Status, p.Epochs)
		}
	}
}
