//go:build bench

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"acescope/engine/agents/observe/spool"
	"acescope/sources/histories"
)

// sessionChild serves and runs one task whose skills session makes calls for some seconds.
func sessionChild(ctx context.Context, s spec) {
	// A call is two events, so an event comes about every 25 ms: more often than the recorder sends
	// them. The session waits two seconds for acescope tail.
	p := &noop{calls: s.Calls, before: 2 * time.Second, each: 15 * time.Millisecond,
		pause: 35 * time.Millisecond}
	r := openOurs(ctx, s, p)
	defer r.close()
	wait := must(r.start(ctx, 0))
	answer(taskInput(0).TaskID)
	check(wait(ctx))
}

// tail measures from the time of a tool event to its line of acescope tail.
func tail(b *bench) {
	var all samples
	for range b.size.runs {
		dir := b.tempDir()
		session := b.child(spec{Kind: "session", Dir: dir, Calls: b.size.events / 2})
		var task string
		session.read(&task)
		latencies := b.tailTask(dir, task)
		session.wait()
		if len(latencies) < b.size.events*9/10 {
			fail("acescope tail wrote %d of %d events", len(latencies), b.size.events)
		}
		all = append(all, latencies...)
	}
	what := fmt.Sprintf("tool event to its line, %d events", len(all))
	b.report.add(figure{what: what + ", median", unit: "ms", ours: samples{all.median()}},
		figure{what: what + ", p99", unit: "ms", ours: samples{all.percentile(99)}})
}

// tailTask follows a task to its end and returns the milliseconds from each tool event to its line.
// A call whose two events came together has one line, which counts for both.
func (b *bench) tailTask(dir, task string) (latencies samples) {
	p := b.start(nil, b.acescope, "tail", task, "--json", "--data-dir", dir)
	started := map[string]bool{}
	for p.out.More() {
		var c histories.Change
		p.read(&c)
		now := time.Now()
		if c.Type != histories.ChangeSkill || c.Skill == nil {
			continue
		}
		if !started[c.Skill.ID] {
			started[c.Skill.ID] = true
			latencies = append(latencies, millis(now.Sub(c.Skill.At)))
		}
		if c.State != histories.SkillStarted {
			ended := c.Skill.At.Add(time.Duration(c.Skill.DurationMS * float64(time.Millisecond)))
			latencies = append(latencies, millis(now.Sub(ended)))
		}
	}
	p.wait()
	return latencies
}

const (
	hookAttempts = 200
	hooksAtOnce  = 50
	hookEvents   = 200 // until the screen
)

// hook measures acescope-hook, and the time from the hook to the screen.
func hook(b *bench) {
	dir := b.tempDir()
	program := filepath.Join(filepath.Dir(b.acescope), "acescope-hook")
	if !exists(program) {
		fail(`%s not found; run "make build"`, program)
	}
	// call returns the milliseconds of the whole process, whose input has the usual size.
	call := func(out *os.File, env []string, program string) (float64, error) {
		cmd := command(b.ctx, env, program)
		cmd.Stdout, cmd.Stdin = out, strings.NewReader(`{"session_id":"bench","transcript_path":`+
			`"/home/u/.claude/projects/-home-u-p/bench.jsonl","cwd":"/home/u/p","permission_mode":"default",`+
			`"hook_event_name":"PreToolUse","prompt":"go","tool_name":"Bash","tool_use_id":"call-1",`+
			`"tool_input":{"command":"go test ./...","description":"Run the tests"}}`)
		began := time.Now()
		err := cmd.Run()
		return millis(time.Since(began)), err
	}
	plain := must(os.OpenFile(filepath.Join(dir, "plain"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))
	defer plain.Close()
	var ours, peer samples
	for range hookAttempts {
		ours = append(ours, must(call(nil, []string{spool.Env + "=" + filepath.Join(dir, "alone")}, program)))
		peer = append(peer, must(call(plain, nil, "/bin/cat")))
	}
	const what = "whole process of a hook, median, against /bin/cat >> file"
	ours, peer = samples{ours.median()}, samples{peer.median()}
	b.report.add(figure{what: what, unit: "ms", target: "≤ 3×", ours: ours, peer: peer},
		figure{what: what, unit: "ms", target: "≤ 5", ours: ours})

	crowd := filepath.Join(dir, "crowd")
	var wg sync.WaitGroup
	errs := make([]error, hooksAtOnce)
	for n := range hooksAtOnce {
		wg.Go(func() { _, errs[n] = call(nil, []string{spool.Env + "=" + crowd}, program) })
	}
	wg.Wait()
	check(errors.Join(errs...))
	lost := hooksAtOnce
	for line := range bytes.Lines(must(os.ReadFile(filepath.Join(crowd, spool.Active)))) {
		if _, ok := spool.Parse(bytes.TrimSuffix(line, []byte("\n"))); ok {
			lost--
		}
	}
	b.report.add(figure{what: fmt.Sprintf("lost of %d hooks at once", hooksAtOnce), unit: "records",
		target: "≤ 0", ours: samples{float64(lost)}})

	place := spool.Env + "=" + filepath.Join(dir, "screen")
	data := b.tempDir()
	s := b.serve(data, place)
	env := append(s.env, place, "ACESCOPE_BENCH_DATA="+data, "ACESCOPE_BENCH_HOOK="+program)
	b.goBench(goBenchmark{pkg: "views", ours: "HookToScreen", count: hookEvents, env: env}, []metric{
		{fmt.Sprintf("exit of a hook to the drawn frame, %d events, median", hookEvents), "ms", "≤ 150",
			"p50-ms"},
		{fmt.Sprintf("exit of a hook to the drawn frame, %d events, p99", hookEvents), "ms", "", "p99-ms"},
	})
}
