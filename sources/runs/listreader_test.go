package runs

import (
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
)

// A long list is complete and in the server's order, however its runs are spread over time.
func TestListOfManyRuns(t *testing.T) {
	even := simRuns(8000)
	gaps := simRuns(6000)
	for i := range gaps {
		gaps[i].Close = gaps[i].Close.Add(-time.Duration(i/1500) * 3000 * time.Hour)
	}
	sameTime := simRuns(9000)
	for i := range sameTime[500:] {
		sameTime[500+i].Close = sameTime[500].Close
	}
	burst := simRuns(12_000)
	for i := range burst[3000:11_000] {
		burst[3000+i].Close = burst[3000].Close.Add(-time.Duration(i) * time.Millisecond)
	}
	open := append(simRuns(3000), manyOpen(2500)...)
	for name, runs := range map[string][]Run{"even": even, "gaps": gaps, "same time": sameTime,
		"burst": burst,
		"open":  open, "few": simRuns(60), "none": nil} {
		t.Run(name, func(t *testing.T) {
			s := newSim(runs...)
			var got []string
			err := List(t.Context(), s, "", 0, func(r Run) error {
				got = append(got, r.RunID)
				return nil
			})
			var want []string
			for _, r := range s.runs {
				want = append(want, r.RunID)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, %d of %d runs, or not in order", err, len(got), len(want))
			}
			t.Logf("%d runs: %d calls for %d rows", len(want), s.lists, s.rows)
		})
	}
}

// TestListOfLongRuns checks the order of a list in which few or many runs have a long, a negative or no
// duration.
func TestListOfLongRuns(t *testing.T) {
	for name, every := range map[string]int{"few": 97, "many": 3} {
		t.Run(name, func(t *testing.T) {
			runs := simRuns(9000)
			undated := map[string]bool{}
			for i := 0; i < len(runs); i += every {
				switch i % 4 {
				case 0:
					runs[i].Start = runs[i].Close.Add(-time.Duration(i) * time.Hour)
				case 1:
					runs[i].Start = runs[i].Close.Add(time.Minute)
				case 2:
					undated[runs[i].RunID] = true
				default:
					runs[i].Start = runs[i].Close.Add(-time.Minute)
				}
			}
			runs = append(runs, manyOpen(20)...)
			for i := range 10 { // that closed last, after all others
				old := simRun(20_000 + i)
				old.Start = old.Close.Add(-1000 * time.Hour)
				runs = append(runs, old)
			}
			s := newSim(runs...)
			s.undated = undated
			var got, want []string
			err := List(t.Context(), s, "", 0, func(r Run) error {
				got = append(got, r.RunID)
				return nil
			})
			for _, r := range s.runs {
				want = append(want, r.RunID)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, %d of %d runs, or not in order", err, len(got), len(want))
			}
			if s.longs != 1 {
				t.Errorf("%d lists of long runs, want 1", s.longs)
			}
			if most := len(want) + 2*PageSize; s.rows > most {
				t.Errorf("%d rows, want at most %d", s.rows, most)
			}
		})
	}
}

func manyOpen(n int) (runs []Run) {
	for i := range n {
		runs = append(runs, simOpen(10_000+i))
	}
	return runs
}

// A list with a small limit reads only its rows.
func TestListWithLimit(t *testing.T) {
	for _, limit := range []int{20, 1200} {
		s, got := newSim(simRuns(5000)...), 0
		err := List(t.Context(), s, "", limit, func(Run) error {
			got++
			return nil
		})
		if err != nil || got != limit || s.rows != limit {
			t.Errorf("limit %d: %v, %d runs, %d rows", limit, err, got, s.rows)
		}
	}
}

// An error in the middle of a long list ends it.
func TestListEndsWithAnError(t *testing.T) {
	s, got := newSim(simRuns(9000)...), 0
	err := List(t.Context(), s, "", 0, func(Run) error {
		if got++; got == 2000 {
			s.mu.Lock()
			s.pageErr = serviceerror.NewUnavailable("away")
			s.mu.Unlock()
		}
		return nil
	})
	if err == nil || err.Error() != "away" || got < 2000 || got >= 9000 {
		t.Errorf("%v after %d runs", err, got)
	}
}
