package runner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"acescope/engine/tasks/runner"
)

// crowd returns a table with waiting runs of different requirements, and busy runners.
func crowd(runs, requirements, runners int) *runner.Table {
	t := runner.NewTable()
	for i := range runners {
		t.Apply(registered(fmt.Sprintf("lnch_%012x", i*7919), 1,
			offer(fmt.Sprint("host-", i), 2, fmt.Sprint("tag", i%requirements), "linux")), noon)
	}
	for i := range 2 * runners {
		t.Apply(crowded("busy", i, i%runners, requirements), noon)
	}
	t.Match(noon)
	for i := range runs {
		t.Apply(crowded("run", i, i, requirements), noon)
	}
	t.Match(noon)
	return t
}

func crowded(kind string, i, tag, requirements int) runner.Notice {
	id := fmt.Sprintf("%s_%012x", kind, uint64(i+1)*0x9e3779b97f4a7c15>>16)
	return runner.Notice{Kind: runner.Enqueue, Run: id, Request: &runner.Request{RunID: id, Name: "crawler",
		Try: 1,
		Execution: fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", i*2654435761, i&0xffff, i&0xfff, i*7&0xfff,
			uint64(i+3)*0x9e3779b97f4a7c15>>16),
		Parent: fmt.Sprintf("ses_%012x", uint64(i/10+1)*0xc2b2ae3d27d4eb4f>>16),
		Requirements: runner.Requirements{ExecutorType: runner.Deterministic,
			Tags: []string{fmt.Sprint("tag", tag%requirements)}},
		Deadline: noon.Add(5*time.Minute + time.Duration(i)*time.Millisecond)}}
}

// BenchmarkDecide measures the end of a run, whose runner gets another one, and a new request,
// while 10,000 runs wait and 200 runners are busy.
func BenchmarkDecide(b *testing.B) {
	for _, requirements := range []int{1, 20, 200, 10_000} {
		b.Run(fmt.Sprintf("requirements-%d", requirements), func(b *testing.B) {
			t := crowd(10_000, requirements, 200)
			var freed []runner.Notice
			for _, r := range t.View(runner.ViewOptions{}, 1).Runners {
				for _, run := range r.Runs {
					freed = append(freed, runner.Notice{Kind: runner.Withdraw, Run: run})
				}
			}
			next := 10_000
			var micros []float64
			decide := func(n runner.Notice) {
				began := time.Now()
				t.Apply(n, noon)
				matched := t.Match(noon)
				micros = append(micros, float64(time.Since(began).Nanoseconds())/1000)
				for _, a := range matched {
					freed = append(freed, runner.Notice{Kind: runner.Withdraw, Run: a.RunID})
				}
			}
			for b.Loop() {
				decide(freed[0])
				freed = freed[1:]
				decide(crowded("run", next, next, min(requirements, 200)))
				next++
			}
			slices.Sort(micros)
			b.ReportMetric(micros[len(micros)/2], "p50-µs")
			b.ReportMetric(micros[len(micros)*99/100], "p99-µs")
		})
	}
}

// BenchmarkRegister measures the registration of a runner while 10,000 runs wait.
func BenchmarkRegister(b *testing.B) {
	for _, requirements := range []int{20, 10_000} {
		b.Run(fmt.Sprintf("requirements-%d", requirements), func(b *testing.B) {
			t := crowd(10_000, requirements, 200)
			epoch := int64(1)
			for b.Loop() {
				epoch++
				t.Apply(registered("newcomer", epoch, offer("nowhere", 1)), noon)
				t.Match(noon)
			}
		})
	}
}

// BenchmarkCarry measures the carrying of 20,000 waiting runs.
func BenchmarkCarry(b *testing.B) {
	t := crowd(runner.MaxPending, 200, 200)
	size := 0
	for b.Loop() {
		data, err := t.Carry(1, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := runner.Restore(data); err != nil {
			b.Fatal(err)
		}
		size = len(data)
	}
	b.ReportMetric(float64(size)/(1<<20), "MB")
}
