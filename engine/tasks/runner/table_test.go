package runner_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/engine/tasks/runner"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func offer(host string, slots int, tags ...string) runner.Capabilities {
	return runner.Capabilities{Hostname: host, ProjectDir: "/p", ExecutorTypes: []string{runner.Deterministic,
		runner.ClaudeCode}, Tags: tags, Slots: slots}
}

func registered(id string, epoch int64, c runner.Capabilities) runner.Notice {
	return runner.Notice{Kind: runner.Registered, Runner: id, Epoch: epoch,
		Queue:        fmt.Sprintf("runner.%s.%d", id, epoch),
		Registration: &runner.Registration{ID: id, Token: fmt.Sprintf("%s-%d", id, epoch), Capabilities: c}}
}

func asks(run string, d runner.Requirements) runner.Notice {
	return runner.Notice{Kind: runner.Enqueue, Run: run,
		Request: &runner.Request{RunID: run, Execution: "x-" + run, Requirements: d, Try: 1,
			Deadline: noon.Add(5 * time.Minute)}}
}

func tagged(tags ...string) runner.Requirements { return runner.Requirements{Tags: tags} }

func of(all runner.Answers) (got []said) {
	for _, a := range all {
		switch {
		case a.Claimed != nil:
			got = append(got, said{a.RunID, "claimed", a.Claimed.RunnerID, a.Claimed.Number})
		case a.Unmatched != nil:
			got = append(got, said{Run: a.RunID, Kind: a.Unmatched.Reason})
		case a.Lost != nil:
			got = append(got, said{a.RunID, "lost", a.Lost.RunnerID, a.Lost.Claim})
		}
	}
	return got
}

// TestTableAgainstModel checks that the table makes the same decisions as the model for random
// notices, also when it is carried to the next run in between.
func TestTableAgainstModel(t *testing.T) {
	steps := 3000
	if testing.Short() {
		steps = 300
	}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			table, plain := runner.NewTable(), &model{}
			now := noon
			for step := range steps {
				var said []runner.Notice
				for range 1 + r.IntN(3) {
					n := randomNotice(r, now, plain)
					said = append(said, n)
					table.Apply(n, now)
					plain.apply(n)
				}
				if r.IntN(20) == 0 {
					now = now.Add(time.Duration(r.IntN(60)) * time.Second)
				}
				if r.IntN(50) == 0 {
					table = carry(t, table)
				}
				got, want := of(table.Match(now)), plain.match(now)
				if !slices.Equal(got, want) {
					t.Fatalf("step %d, after %+v:\ngot %+v\nwant %+v", step, said, got, want)
				}
				if step%10 == 0 {
					compareViews(t, table, plain)
				}
			}
		})
	}
}

func compareViews(t *testing.T, table *runner.Table, plain *model) {
	t.Helper()
	v := table.View(runner.ViewOptions{Pending: 1000}, 1)
	waiting := 0
	for _, q := range v.Queues {
		waiting += q.Waiting
	}
	if v.Waiting != len(plain.pending) || waiting != v.Waiting || table.HeldCount() != len(plain.held) {
		t.Fatalf("%d wait, %d in queues, %d hold; %d and %d", v.Waiting, waiting, table.HeldCount(),
			len(plain.pending), len(plain.held))
	}
	for i, p := range v.Pending {
		if p.RunID != plain.pending[i].req.RunID {
			t.Fatalf("place %d: %s, %s", i, p.RunID, plain.pending[i].req.RunID)
		}
	}
	for _, r := range v.Runners {
		if m := plain.runner(r.ID); m == nil || r.Busy != plain.busy(m) {
			t.Fatalf("%s is busy %d", r.ID, r.Busy)
		}
	}
}

func carry(t *testing.T, table *runner.Table) *runner.Table {
	t.Helper()
	data, err := table.Carry(7, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := table.Carry(7, nil)
	if err != nil || string(data) != string(again) {
		t.Fatalf("two calls of Carry differ: %v", err)
	}
	next, runs, err := runner.Restore(data)
	if err != nil || runs != 7 {
		t.Fatalf("run %d: %v", runs, err)
	}
	before, after := table.View(runner.ViewOptions{Pending: 1000}, 7),
		next.View(runner.ViewOptions{Pending: 1000}, 7)
	if !reflect.DeepEqual(before, after) {
		t.Fatalf("%+v\nbecame\n%+v", before, after)
	}
	return next
}

var modelTags = []string{"a", "b", "c"}

func randomTags(r *rand.Rand) (tags []string) {
	for _, t := range modelTags {
		if r.IntN(3) == 0 {
			tags = append(tags, t)
		}
	}
	return tags
}

func randomNotice(r *rand.Rand, now time.Time, m *model) runner.Notice {
	id := fmt.Sprintf("runner.r%d.%d", r.IntN(8), 1+r.IntN(3))
	run := fmt.Sprintf("run%d", r.IntN(60))
	epoch := int64(1 + r.IntN(2))
	if known := m.runner(id); known != nil {
		epoch = max(1, known.epoch+int64(r.IntN(4)-1)/2)
	}
	switch r.IntN(12) {
	case 0:
		return registered(id, epoch, offer([]string{"h1", "h2"}[r.IntN(2)], 1+r.IntN(3), randomTags(r)...))
	case 1:
		return runner.Notice{Kind: []runner.NoticeKind{runner.WentStale, runner.Recovered, runner.Recovered,
			runner.DrainStarted, runner.Left, runner.Removed}[r.IntN(6)], Runner: id, Epoch: epoch}
	case 2:
		return runner.Notice{Kind: runner.Withdraw, Run: run}
	case 3, 4, 5, 6:
		if len(m.held) > 0 {
			h := m.held[r.IntN(len(m.held))]
			return runner.Notice{Kind: runner.Release, Run: h.req.RunID, Claim: h.claim - int64(r.IntN(8)/7)}
		}
	}
	d := runner.Requirements{Tags: randomTags(r), ExecutorType: []string{"", runner.Deterministic,
		runner.ClaudeCode, runner.Codex}[r.IntN(4)]}
	if r.IntN(4) == 0 {
		d.Hostname = []string{"h1", "h2", "h3"}[r.IntN(3)]
	}
	n := asks(run, d)
	n.Request.Deadline = now.Add(time.Duration(r.IntN(300)) * time.Second)
	n.Request.Try = 1 + r.IntN(2)
	n.Request.Execution = fmt.Sprint("x", r.IntN(5)/4)
	if r.IntN(5) == 0 {
		n.Request.Avoid = []string{fmt.Sprintf("runner.r%d.%d", r.IntN(8), 1+r.IntN(3))}
	}
	return n
}

// TestFIFO checks which run gets a free slot.
func TestFIFO(t *testing.T) {
	table := runner.NewTable()
	for _, n := range []runner.Notice{
		asks("gpu-1", tagged("gpu")), asks("any-1", runner.Requirements{}), asks("gpu-2", tagged("gpu")),
		asks("any-2", runner.Requirements{}),
		registered("plain", 1, offer("h", 1)),
	} {
		table.Apply(n, noon)
	}
	step := func(want string, notices ...runner.Notice) {
		t.Helper()
		for _, n := range notices {
			table.Apply(n, noon)
		}
		var got []string
		for _, s := range of(table.Match(noon)) {
			got = append(got, s.Run+"→"+s.Runner)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	step("any-1→plain")
	step("") // nothing changes without notices
	step("gpu-1→wide gpu-2→wide", registered("wide", 1, offer("h", 2, "gpu")))
	step("any-2→plain", runner.Notice{Kind: runner.Release, Run: "any-1", Claim: 1})
	step("", asks("late", runner.Requirements{}))
	step("late→wide", runner.Notice{Kind: runner.Withdraw, Run: "gpu-2"})
}

// TestRepeatedNotices checks that a repeated notice counts once, and that a repeated request
// gets the same answer again.
func TestRepeatedNotices(t *testing.T) {
	once, twice := runner.NewTable(), runner.NewTable()
	notices := []runner.Notice{
		registered("r", 1, offer("h", 1)), asks("a", runner.Requirements{}), asks("b", runner.Requirements{}),
		{Kind: runner.Release, Run: "a", Claim: 1}, {Kind: runner.WentStale, Runner: "r", Epoch: 1},
		asks("c", runner.Requirements{}),
		{Kind: runner.Recovered, Runner: "r", Epoch: 1}, {Kind: runner.Withdraw, Run: "b"},
	}
	var first, second []said
	for _, n := range notices {
		once.Apply(n, noon)
		first = append(first, of(once.Match(noon))...)
		for range 2 {
			twice.Apply(n, noon)
			second = append(second, of(twice.Match(noon))...)
		}
	}
	if !slices.Equal(first, slices.Compact(second)) || !reflect.DeepEqual(once.View(runner.ViewOptions{}, 1),
		twice.View(runner.ViewOptions{}, 1)) {
		t.Errorf("%+v\n%+v", first, second)
	}
}

// TestRepeatedRequest checks that a repeated request gets the same answer, also from the next
// run of the dispatcher, or another runner if the first runner's process has ended.
func TestRepeatedRequest(t *testing.T) {
	table := runner.NewTable()
	table.Apply(registered("r", 1, offer("h", 1)), noon)
	table.Apply(asks("a", runner.Requirements{}), noon)
	first := table.Match(noon)
	data, err := table.Carry(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if table, _, err = runner.Restore(data); err != nil {
		t.Fatal(err)
	}
	later := noon.Add(time.Second)
	table.Apply(asks("a", runner.Requirements{}), later)
	if again := table.Match(later); !reflect.DeepEqual(again, first) {
		t.Errorf("got %+v, want %+v", again, first)
	}
	table.Apply(registered("r", 2, offer("h", 1)), later)
	table.Apply(asks("a", runner.Requirements{}), later)
	if got := table.Match(later); len(got) != 1 || got[0].Claimed.Number != 2 || got[0].Claimed.Epoch != 2 {
		t.Errorf("%+v", got)
	}
}

// TestDeadline checks the answer to a run that no runner took in time.
func TestDeadline(t *testing.T) {
	busy := runner.NewTable()
	for i := range 3 {
		busy.Apply(registered(fmt.Sprintf("r%d", i), 1, offer("web-1", 1)), noon)
		busy.Apply(asks(fmt.Sprintf("x%d", i), runner.Requirements{}), noon)
	}
	stale := runner.NewTable()
	stale.Apply(registered("r", 1, offer("web-1", 1)), noon)
	stale.Apply(runner.Notice{Kind: runner.WentStale, Runner: "r", Epoch: 1}, noon)
	lacks := runner.NewTable()
	lacks.Apply(registered("lnch_12ab", 1, offer("web-1", 1)), noon)
	lacks.Apply(registered("lnch_00ff", 1, offer("web-2", 1)), noon)
	for _, c := range []struct {
		table *runner.Table
		d     runner.Requirements
		want  string
	}{
		{runner.NewTable(), runner.Requirements{},
			"no runner took it within 5m0s: no runner is registered: start one with acescope runner start"},
		{busy, runner.Requirements{}, "no runner took it within 5m0s: 3 runners could take it, all busy"},
		{stale, runner.Requirements{},
			"no runner took it within 5m0s: nearest is r on web-1, which is stale"},
		{lacks, runner.Requirements{Hostname: "web-1", Tags: []string{"playwright"}},
			"no runner took it within 5m0s: nearest is lnch_12ab on web-1, which lacks tag playwright"},
		{lacks, runner.Requirements{Hostname: "db-server", ExecutorType: "codex", ProjectDir: "/q"},
			"no runner took it within 5m0s: nearest is lnch_00ff on web-2, which lacks hostname db-server (it is web-2), project directory /q (it is /p) and executor codex (it has claude-code, deterministic)"},
	} {
		c.table.Match(noon)
		c.table.Apply(asks("run", c.d), noon)
		c.table.Match(noon)
		if c.table.Deadline() != noon.Add(5*time.Minute) {
			t.Errorf("deadline %s", c.table.Deadline())
		}
		got := c.table.Match(noon.Add(5 * time.Minute))
		if len(got) != 1 || got[0].Unmatched == nil || got[0].Unmatched.Message != c.want ||
			got[0].Unmatched.Reason != "no_runner" {
			t.Errorf("got %+v, want %s", got, c.want)
		}
	}
}

// TestRefuses checks which requests are refused immediately, and why.
func TestRefuses(t *testing.T) {
	table := runner.NewTable()
	for i := range runner.MaxPending {
		table.Apply(asks(fmt.Sprint("run", i), tagged("t")), noon)
	}
	if got := table.Match(noon); len(got) != 0 {
		t.Fatalf("%+v", got[:1])
	}
	for _, c := range []struct {
		d    runner.Requirements
		want string
	}{
		{runner.Requirements{}, "queue_full"},
		{tagged("no good"), "bad_demands"},
		{runner.Requirements{Hostname: "a\nb"}, "bad_demands"},
		{runner.Requirements{ExecutorType: strings.Repeat("x", 101)}, "bad_demands"},
		{tagged(manyTags(runner.MaxTags + 1)...), "bad_demands"},
	} {
		table.Apply(asks("one-more", c.d), noon)
		if got := of(table.Match(noon)); len(got) != 1 || got[0].Kind != c.want {
			t.Errorf("got %+v, want %s", got, c.want)
		}
	}
	table.Apply(runner.Notice{Kind: runner.Withdraw, Run: "run7"}, noon)
	table.Apply(asks("fits", runner.Requirements{}), noon)
	if got := table.Match(noon); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func manyTags(n int) (tags []string) {
	for i := range n {
		tags = append(tags, fmt.Sprint("tag", i))
	}
	return tags
}

// TestBounds checks that many large and different requirements and capabilities are bounded, so
// that the carried table stays small.
func TestBounds(t *testing.T) {
	table := runner.NewTable()
	r := rand.New(rand.NewPCG(1, 1))
	wild := func() (tags []string) {
		for range runner.MaxTags {
			tag := "t"
			for len(tag) < 60 {
				tag += fmt.Sprintf("%x", r.Uint64())
			}
			tags = append(tags, tag[:60])
		}
		return tags
	}
	refused := 0
	for i := range 2000 {
		table.Apply(asks(fmt.Sprint("run", i), tagged(wild()...)), noon)
		table.Apply(registered(fmt.Sprint("r", i), 1, offer("h", 1, wild()...)), noon)
		refused += len(table.Match(noon))
	}
	v := table.View(runner.ViewOptions{}, 1)
	if refused == 0 || v.TurnedAway == 0 || v.Waiting == 0 || len(v.Runners) == 0 {
		t.Fatalf("%d refused, %d turned away", refused, v.TurnedAway)
	}
	data, err := table.Carry(1, nil)
	if err != nil || len(data) > 1_000_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// TestGoneRunnersMakeRoom checks that runners that are gone are replaced by new ones.
func TestGoneRunnersMakeRoom(t *testing.T) {
	table := runner.NewTable()
	for i := range 3 * runner.MaxRunners {
		id := fmt.Sprint("r", i)
		table.Apply(registered(id, 1, offer("h", 1)), noon.Add(time.Duration(i)))
		table.Apply(runner.Notice{Kind: runner.Removed, Runner: id, Epoch: 1}, noon.Add(time.Duration(i)))
	}
	for i := range runner.MaxRunners + 5 {
		table.Apply(registered(fmt.Sprint("s", i), 1, offer("h", 1)), noon)
	}
	v := table.View(runner.ViewOptions{}, 1)
	if len(v.Runners) != runner.MaxRunners || v.TurnedAway != 5 || v.Runners[0].Status != runner.Online {
		t.Errorf("%d runners, %d turned away", len(v.Runners), v.TurnedAway)
	}
}

// TestNewRunnerWorkflow checks that a runner can register after its workflow started again.
func TestNewRunnerWorkflow(t *testing.T) {
	table := runner.NewTable()
	table.Apply(registered("r", 9, offer("h", 1)), noon)
	table.Apply(runner.Notice{Kind: runner.Removed, Runner: "r", Epoch: 9}, noon)
	table.Apply(registered("r", 9, offer("h", 1)), noon) // late
	table.Apply(asks("a", runner.Requirements{}), noon)
	if got := table.Match(noon); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	table.Apply(registered("r", 1, offer("h", 1)), noon)
	if got := of(table.Match(noon)); len(got) != 1 || got[0].Runner != "r" {
		t.Errorf("%+v", got)
	}
}

// TestMerge checks the union of requirements, and that contradictions are refused.
func TestMerge(t *testing.T) {
	a := runner.Requirements{Hostname: "db", Tags: []string{"y", "x"}, ProjectDir: "/a/"}
	got, err := a.Merge(runner.Requirements{Hostname: "db", ExecutorType: "codex", Tags: []string{"z", "x"},
		ProjectDir: "/a"})
	want := runner.Requirements{Hostname: "db", ExecutorType: "codex", ProjectDir: "/a",
		Tags: []string{"x", "y", "z"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = a.Merge(runner.Requirements{Hostname: "web"})
	if err == nil || !strings.Contains(err.Error(), `"db"`) || !strings.Contains(err.Error(), `"web"`) {
		t.Errorf("%v", err)
	}
}

// TestCarriedSize checks the size of a carried table of 20,000 runs with random ids and
// parents.
func TestCarriedSize(t *testing.T) {
	table, r := runner.NewTable(), rand.New(rand.NewPCG(3, 4))
	for i := range runner.MaxPending {
		n := asks(fmt.Sprintf("run_%012x", r.Uint64()>>16), tagged(fmt.Sprint("tag-", i%500)))
		n.Request.Execution = fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.Uint32()>>16,
			r.Uint32()>>20, r.Uint32()>>20, r.Uint64()>>16)
		n.Request.Parent = fmt.Sprintf("ses_%012x", r.Uint64()>>16)
		n.Request.Deadline = noon.Add(time.Duration(r.Int64N(int64(time.Hour))))
		table.Apply(n, noon.Add(time.Duration(r.Int64N(int64(time.Minute)))))
	}
	data, err := table.Carry(1, nil)
	if err != nil || len(data) > 1_500_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	t.Logf("%d bytes", len(data))
}

// TestAvoidsRegistration checks that a run avoids the registration that lost it, but not the
// runner after it has registered again.
func TestAvoidsRegistration(t *testing.T) {
	table := runner.NewTable()
	table.Apply(registered("local", 1, offer("h", 1)), noon)
	again := asks("a", runner.Requirements{})
	again.Request.Avoid = []string{"runner.local.1"}
	table.Apply(again, noon)
	if got := table.Match(noon); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	if q := table.View(runner.ViewOptions{}, 1).Queues; len(q) != 1 ||
		q[0].Nearest != "nearest is local on h, which lacks a new start (it lost the run before)" {
		t.Errorf("%+v", q)
	}
	table.Apply(registered("local", 2, offer("h", 1)), noon)
	if got := of(table.Match(noon)); len(got) != 1 || got[0].Runner != "local" {
		t.Errorf("%+v", got)
	}
}

// TestRecall checks that an empty table restores the assignments of an earlier one, in any
// order of runs and runners.
func TestRecall(t *testing.T) {
	for _, runFirst := range []bool{true, false} {
		table := runner.NewTable()
		table.SetLastClaim(1000)
		holds := asks("has", runner.Requirements{ExecutorType: runner.Deterministic})
		holds.Kind, holds.Held = runner.Holds, &runner.Claim{Number: 1007, RunnerID: "r", Epoch: 3}
		comes := registered("r", 3, offer("h", 1))
		all := runner.Notices{asks("has", runner.Requirements{}), comes, holds, holds,
			asks("waits", runner.Requirements{})}
		if runFirst {
			all = runner.Notices{holds, comes, asks("waits", runner.Requirements{})}
		}
		for _, n := range all {
			table.Apply(n, noon)
		}
		if got := table.Match(noon); len(got) != 0 {
			t.Fatalf("%+v", got)
		}
		v := carry(t, table).View(runner.ViewOptions{}, 1)
		if len(v.Runners) != 1 || v.Runners[0].Busy != 1 || v.Runners[0].Status != runner.Online ||
			v.Waiting != 1 {
			t.Fatalf("%+v", v)
		}
		table.Apply(runner.Notice{Kind: runner.Release, Run: "has", Claim: 1007}, noon)
		if got := table.Match(noon); len(got) != 1 || got[0].RunID != "waits" ||
			got[0].Claimed.Number <= 1007 {
			t.Fatalf("%+v", got)
		}
	}
}
