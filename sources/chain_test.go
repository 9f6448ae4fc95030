package sources

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/engine/temporal/compare"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/historytest"
)

// newChain returns a client with a chain of n runs, r1 to rn, each with two activities, and their histories.
func newChain(n int) (*historytest.Client, []*historytest.Builder) {
	c := historytest.NewClient()
	var all []*historytest.Builder
	for i := 1; i <= n; i++ {
		before := ""
		if i > 1 {
			before = fmt.Sprint("r", i-1)
		}
		b := historytest.New("Hops", i).Of("w", fmt.Sprint("r", i), before, "r1")
		b.Activity(time.Millisecond, time.Millisecond, "one", i, i)
		b.Task(time.Millisecond)
		b.Activity(time.Millisecond, time.Millisecond, "two", i, i)
		b.Task(time.Millisecond)
		if i < n {
			b.ContinueAs(time.Millisecond, fmt.Sprint("r", i+1))
		} else {
			b.Close(time.Millisecond, "done")
		}
		all = append(all, b)
	}
	for i, b := range all {
		c.Put(fmt.Sprint("r", i+1), b.Events...)
	}
	return c, all
}

// checkChain checks the chain of a run and its position in it.
func checkChain(t *testing.T, c *historytest.Client, runID, runs, before, after string) cluster.Chain {
	t.Helper()
	chain, err := cluster.ReadChain(t.Context(), c, "", "w", runID, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	line, err := cluster.ReadChainPosition(t.Context(), c, "", "w", runID)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []struct {
		ids           []string
		before, after string
	}{{chain.RunIDs, chain.Before, chain.Partial}, {line.RunIDs, line.Before, line.After}} {
		if strings.Join(got.ids, " ") != runs || !says(got.before, before) || !says(got.after, after) {
			t.Errorf("from %s: %v, before %q, after %q", runID, got.ids, got.before, got.after)
		}
	}
	if line.RunIDs[line.At] != runID {
		t.Errorf("%s stands at %d of %v", runID, line.At, line.RunIDs)
	}
	for i, id := range chain.RunIDs {
		if got := history.OriginOf(chain.Runs[i]).RunID; got != id {
			t.Errorf("the history of %s is that of %s", id, got)
		}
	}
	return chain
}

func says(text, want string) bool {
	return (text == "") == (want == "") && strings.Contains(text, want)
}

// Every run of a chain leads to all of its runs.
func TestChain(t *testing.T) {
	c, _ := newChain(3)
	for _, id := range []string{"r1", "r2", "r3"} {
		checkChain(t, c, id, "r1 r2 r3", "", "")
	}
	read := 0
	alone, err := cluster.ReadChain(t.Context(), c, "", "w", "r2", true, func(n int) { read = n })
	if err != nil || !slices.Equal(alone.RunIDs, []string{"r2"}) || read != len(alone.Runs[0]) || read == 0 {
		t.Errorf("alone: %v, %d read, %v", alone.RunIDs, read, err)
	}
	if _, err := cluster.ReadChain(t.Context(), c, "", "w", "r9", false, nil); !cluster.NotFound(err) {
		t.Errorf("no such run: %v", err)
	}
}

// A run that was reset replaces its original.
func TestChainWithAReset(t *testing.T) {
	c, all := newChain(3)
	reset := historytest.Reset(all[1], 6, "r2", "x2")
	reset.ContinueAs(time.Millisecond, "x3")
	c.Put("x2", reset.Events...)
	c.Put("x3", historytest.New("Hops", 9).Of("w", "x3", "x2", "r1").Close(time.Millisecond,
		"done").Events...)
	for _, id := range []string{"x2", "x3"} {
		checkChain(t, c, id, "r1 x2 x3", "", "")
	}
	checkChain(t, c, "r3", "r1 r2 r3", "", "")

	again := historytest.Reset(reset, 9, "x2", "y2").Close(time.Millisecond, "done")
	c.Put("y2", again.Events...)
	chain := checkChain(t, c, "y2", "r1 y2", "", "")
	if o := history.OriginOf(chain.Runs[1]); *o.Reset != (history.ResetFrom{RunID: "x2", Event: 9}) ||
		o.Prev != "r1" || o.How != history.ByReset {
		t.Errorf("%+v", o)
	}
	// The first run of a chain was reset: it has no previous run.
	first := historytest.Reset(all[0], 6, "r1", "x1").Close(time.Millisecond, "done")
	c.Put("x1", first.Events...)
	checkChain(t, c, "x1", "x1", "", "")
}

// A deleted run ends the chain and is named.
func TestChainWithoutARun(t *testing.T) {
	_, all := newChain(4)
	c := historytest.NewClient()
	for i, b := range all {
		if i != 1 {
			c.Put(fmt.Sprint("r", i+1), b.Events...)
		}
	}
	checkChain(t, c, "r1", "r1", "", "the next run, r2, no longer exists")
	checkChain(t, c, "r3", "r3 r4", "the previous run, r2, no longer exists", "")
	checkChain(t, c, "r4", "r3 r4", "the previous run, r2, no longer exists", "")
	c, all = historytest.NewClient(), all[1:]
	for i, b := range all {
		c.Put(fmt.Sprint("r", i+2), b.Events...)
	}
	checkChain(t, c, "r4", "r2 r3 r4", "the previous run, r1, no longer exists", "")
}

// Histories that name one another in a circle end the reading.
func TestChainInACircle(t *testing.T) {
	c := historytest.NewClient()
	c.Put("a", historytest.New("W", 1).Of("w", "a", "b", "z").ContinueAs(time.Millisecond, "b").Events...)
	c.Put("b", historytest.New("W", 1).Of("w", "b", "a", "z").ContinueAs(time.Millisecond, "a").Events...)
	checkChain(t, c, "a", "b a", "", "")
}

// A failing server is not a deleted run.
func TestChainWithAFailingServer(t *testing.T) {
	c, _ := newChain(2)
	away := errors.New("away")
	for _, call := range []string{"describe", "forward"} {
		c.Fail(func(of string) error {
			if of == call {
				return away
			}
			return nil
		})
		if _, err := cluster.ReadChain(t.Context(), c, "", "w", "r2", false, nil); !errors.Is(err, away) {
			t.Errorf("%s: %v", call, err)
		}
		if _, err := cluster.ReadChainPosition(t.Context(), c, "", "w", "r2"); !errors.Is(err, away) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// A chain whose first run is deleted is compared from the oldest run that exists.
func TestDiffWithoutTheFirstRun(t *testing.T) {
	whole, all := newChain(2)
	a, err := cluster.ReadChain(t.Context(), whole, "", "w", "r2", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := historytest.NewClient()
	c.Put("r2", all[1].Events...)
	b, err := cluster.ReadChain(t.Context(), c, "", "w", "r2", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := compare.Of(histories.DiffSide(t.Context(), a, nil), histories.DiffSide(t.Context(), b, nil),
		compare.Options{})
	if d.A.Runs != 2 || d.B.Runs != 1 || d.Counts[compare.NotReached] != 2 || d.Counts[compare.OnlyA] != 0 {
		t.Errorf("%v, %+v", d.Counts, d.First)
	}
	if notes := strings.Join(d.Notes, " "); !strings.Contains(notes,
		"before the first run of B are missing: the previous run, r1") {
		t.Errorf("%q", notes)
	}
}
