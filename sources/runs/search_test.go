package runs

import (
	"fmt"
	"testing"
	"time"

	"acescope/engine/ace"
)

// searchRuns returns n closed tasks whose subject, answer and cause have words.
func searchRuns(n int) []Run {
	runs := simRuns(n)
	for i := range runs {
		s := runs[i].Summary
		s.Subject = fmt.Sprintf(
			"Use formula Net Profit Margin %d to answer the question. Reply with the answer as a plain "+
				"number and no text. Question: what is the margin of company %d?", i%97, i)
		s.Answer, s.Expected = fmt.Sprint(i%1000, ".5"), fmt.Sprint(i%1000)
		s.Cause = "The recipe is missing, so the answer is only a guess."
		if i%500 == 0 {
			s.Cause = "The loan was taken for the Gross revenue."
		}
		s.Usage.CostUSD = float64(i%10) / 100
	}
	return runs
}

// TestSearch checks that a search finds the runs of a long list by subject, answer, reason and cost,
// publishes while it reads, counts only what it has read completely, and answers the next search without
// reading again.
func TestSearch(t *testing.T) {
	s := newSim(searchRuns(10_000)...)
	w := watch(t, s)
	w.SetQuery(mustFilter("LOAN"))
	l := w.until("all are found", func(l RunList) bool {
		return len(l.Rows) == 20 && !l.More && l.Total >= 0
	})
	if l.Total != 20 || l.Searched != 10_000 || l.Bounded {
		t.Errorf("%d of %d searched runs, bounded %v", l.Total, l.Searched, l.Bounded)
	}
	s.mu.Lock()
	before := s.rows
	s.mu.Unlock()
	for _, next := range []struct {
		typed string
		want  int
	}{{`"company 77?"`, 1}, {"text:t-00999", 10}, {"loan text!=gross", 0}, {"cost>=0.09", 1000},
		{"guess", 9980}, {"loan exp=e0", 7},
		{"loan exp!=e0,e1", 7}, {"wrong guess", 2500}, {"failed loan", 0}, {"closed loan 1d", 0},
		{"loan until:today", 20}} {
		w.SetQuery(mustFilter(next.typed))
		w.until(next.typed, func(l RunList) bool {
			return !l.Loading && l.Searched == 10_000 && len(l.Rows) == next.want
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if read := s.rows - before; read > PageSize {
		t.Errorf("%d rows are read again", read)
	}
	if n, err := Count(t.Context(), s, mustFilter("loan")); n != -1 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

// TestSearchIsBounded checks that a search of too many runs ends and says so.
func TestSearchIsBounded(t *testing.T) {
	w := watch(t, newSim(searchRuns(maxSearched+2*PageSize)...))
	w.SetQuery(mustFilter("loan"))
	l := w.until("the search ends", func(l RunList) bool { return !l.More && l.Bounded })
	if l.Searched < maxSearched || l.Total >= 0 {
		t.Errorf("%d runs are searched, %d counted", l.Searched, l.Total)
	}
}

// BenchmarkSearch measures from a new text to its results, among 10,000 runs that were read before, and the
// first search, which reads them from a server without latency.
func BenchmarkSearch(b *testing.B) {
	rows := searchRuns(10_000)
	found := func(l RunList) bool { return !l.Loading && l.Searched == 10_000 && len(l.Rows) == 20 }
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			w := watch(b, newSim(rows...))
			b.StartTimer()
			w.Runs.SetQuery(TextCondition + `="loan"`)
			w.until("found", found)
		}
	})
	b.Run("next", func(b *testing.B) {
		w := watch(b, newSim(rows...))
		w.Runs.SetQuery(TextCondition + `="loan"`)
		w.until("found", found)
		var longest time.Duration
		i := 0
		for b.Loop() {
			at := time.Now()
			w.Runs.SetQuery(fmt.Sprintf("%s=%q AND %s!=%q", TextCondition, "loan", TextCondition,
				fmt.Sprint("x", i)))
			w.until("found", found)
			longest = max(longest, time.Since(at))
			i++
		}
		b.ReportMetric(float64(longest)/float64(time.Millisecond), "longest-ms")
	})
}

// BenchmarkMentions measures the search itself.
func BenchmarkMentions(b *testing.B) {
	rows := searchRuns(10_000)
	s, _ := divide(TextCondition + `="loan"`)
	for b.Loop() {
		n := 0
		for i := range rows {
			if s.keeps(&rows[i]) {
				n++
			}
		}
		if n != 20 || rows[0].Status != ace.Completed {
			b.Fatal(n)
		}
	}
}
