package runs

import (
	"fmt"
	"strings"
	"testing"

	"acescope/engine/ace"
)

func TestDivide(t *testing.T) {
	for query, want := range map[string]string{
		`ExitStatus="wrong"`:                         `ExitStatus="wrong" 0`,
		`Verdict = "correct"`:                        `ExitStatus="success" 1`,
		`Verdict="wrong"`:                            `ExitStatus="wrong" 1`,
		`verdict IN ("wrong", 'unlabeled')`:          `ExitStatus IN ("wrong", "success") 1`,
		`Verdict NOT IN ("wrong","correct") AND a=1`: `a=1 1`,
		`((Verdict="correct" AND (a OR b))) AND c=1`: `((ExitStatus="success" AND (a OR b))) AND c=1 1`,
		`Verdict!="correct"`:                         ` 1`,
		`Text="a AND b" AND c=1 AND CostUSD >= 0.5`:  `c=1 2`,
		`(Text!="x") AND Since="today"`:              `Since="today" 1`,
		`Text IN ("x")`:                              `error`,
		`CostUSD > "x"`:                              `error`,
		`Tokens > 10 AND StartedBy != "me"`:          ` 2`,
		`StartedBy > "me"`:                           `error`,
		`Verdict = "red"`:                            `Verdict = "red" 0`,
		`TaskId = "Verdict = x" OR a`:                `TaskId = "Verdict = x" OR a 0`,
		`MyVerdict = "correct"`:                      `MyVerdict = "correct" 0`,
		`Verdict="correct" OR a=1`:                   `error`,
		`c=1 AND (a=1 OR Verdict="correct")`:         `error`,
	} {
		s, err := divide(query)
		got := fmt.Sprint(s.server, " ", len(s.keep))
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// TestStartedBy selects runs by who started them.
func TestStartedBy(t *testing.T) {
	t.Setenv("USER", "anna")
	me := ace.User()
	for by, want := range map[string]string{
		me: "mine by:anna by!=ben", "anna": "mine by:anna by!=ben", "Anna@elsewhere": "by:anna by!=ben",
		"ben@lab": "by:ben by:ben@lab", "": "by!=ben",
	} {
		var found []string
		for _, typed := range []string{"mine", "by:anna", "by:ben", "by:ben@lab", "by!=ben"} {
			s, err := divide(mustFilter(typed))
			if err != nil {
				t.Fatal(err)
			}
			if s.keeps(&Run{By: by}) {
				found = append(found, typed)
			}
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("a run that %q started is found by %s, want %s", by, got, want)
		}
	}
}

func mustFilter(typed string) string {
	query, err := Filter(typed)
	if err != nil {
		panic(err)
	}
	return query
}

// unlabeledEvery returns runs of which each n-th is unlabeled, so that the server lists it as success.
func unlabeledEvery(n, total int) []Run {
	runs := simRuns(total)
	for i := 0; i < total; i += n {
		runs[i].Status, runs[i].Verdict = ace.Completed, ace.Unlabeled
	}
	return runs
}

// TestVerdictSelectsOnlyItself checks that a list by verdict has no run of another verdict that the
// server cannot tell apart, with a limit that counts selected runs.
func TestVerdictSelectsOnlyItself(t *testing.T) {
	s := newSim(unlabeledEvery(700, 5000)...)
	for _, c := range []struct {
		query       string
		limit, want int
	}{{mustFilter("unlabeled"), 0, 8}, {mustFilter("unlabeled"), 3, 3},
		{mustFilter("verdict!=unlabeled"), 0, 4992}, {"", 3, 3}} {
		n := 0
		err := ListNewest(t.Context(), s, c.query, c.limit, func(r Run) error {
			if n++; c.query == mustFilter("unlabeled") && r.Verdict != ace.Unlabeled {
				t.Fatalf("%s finds %+v", c.query, r)
			}
			return nil
		})
		if err != nil || n != c.want {
			t.Errorf("%s, limit %d: %d runs, want %d, %v", c.query, c.limit, n, c.want, err)
		}
	}
	if n, err := Count(t.Context(), s, mustFilter("correct")); n != -1 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
}

// TestVerdictInConsole checks that the console reads on until a selected list fills a screen or ends, and
// counts the runs only when it has read all.
func TestVerdictInConsole(t *testing.T) {
	w := watch(t, newSim(unlabeledEvery(1000, 12_000)...))
	w.SetQuery(mustFilter("unlabeled"))
	l := w.until("all are found", func(l RunList) bool {
		return len(l.Rows) == 12 && !l.More && l.Total >= 0
	})
	if l.Total != 12 || l.Counts.Status[ace.Completed] != 12 || len(l.Counts.Status) != 1 {
		t.Errorf("%d runs, %+v", l.Total, l.Counts)
	}
	w.SetQuery(mustFilter("correct"))
	l = w.until("the first page", func(l RunList) bool { return len(l.Rows) >= glance && l.More })
	if l.Total >= 0 {
		t.Errorf("%d runs are counted, %d read", l.Total, len(l.Rows))
	}
	for _, r := range l.Rows {
		if r.Verdict != ace.Correct {
			t.Fatalf("finds %+v", r)
		}
	}
	w.SetQuery("")
	w.until("all runs", func(l RunList) bool { return l.Total == 12_000 })
}
