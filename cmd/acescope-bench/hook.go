package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
	"acescope/sources"
	"acescope/sources/cluster"
)

const (
	hookAttempts = 200
	hooksAtOnce  = 50
	hookEvents   = 200 // until the screen
	hookTask     = "claude-bench"
	hookPatience = 10 * time.Second
)

// hookInput is what a hook is given, of usual size.
func hookInput(event string, n int) []byte {
	return fmt.Appendf(nil, `{"session_id":"bench","transcript_path":"/home/u/.claude/projects/-home-u-p/bench.jsonl","cwd":"/home/u/p",`+
		`"permission_mode":"default","hook_event_name":%q,"prompt":"go","tool_name":"Bash","tool_input":{"command":"go test ./...","description":"Run the tests"},"tool_use_id":"call-%d"}`, event, n)
}

// hook measures the hook itself, and the way from it to the screen.
func (b *bench) hook(ctx context.Context) error {
	dir, remove, err := b.fresh("hook")
	if err != nil {
		return err
	}
	defer remove()
	program := filepath.Join(filepath.Dir(b.acescope), "acescope-hook")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%w: run make build", err)
	}
	place := filepath.Join(dir, "spool")
	if err := b.hookAlone(ctx, program, place, filepath.Join(dir, "plain")); err != nil {
		return err
	}
	if err := b.hookCrowd(ctx, program, filepath.Join(dir, "crowd")); err != nil {
		return err
	}
	return b.hookToScreen(ctx, program, filepath.Join(dir, "screen"), filepath.Join(dir, "data"))
}

// call runs a hook and says how long its process took.
func call(ctx context.Context, program, place string, in []byte) (float64, error) {
	cmd := exec.CommandContext(ctx, program)
	cmd.Env, cmd.Stdin = append(os.Environ(), spool.Env+"="+place), bytes.NewReader(in)
	begun := time.Now()
	err := cmd.Run()
	return millis(time.Since(begun)), err
}

// hookAlone measures the whole process beside /bin/cat >> file.
func (b *bench) hookAlone(ctx context.Context, program, place, plain string) error {
	f, err := os.OpenFile(plain, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	var ours, cat series
	for n := range hookAttempts {
		took, err := call(ctx, program, place, hookInput("PreToolUse", n))
		if err != nil {
			return err
		}
		ours = append(ours, took)
		peer := exec.CommandContext(ctx, "/bin/cat")
		peer.Stdin, peer.Stdout = bytes.NewReader(hookInput("PreToolUse", n)), f
		begun := time.Now()
		if err := peer.Run(); err != nil {
			return err
		}
		cat = append(cat, millis(time.Since(begun)))
	}
	b.report.add(row{section: "hook", what: "a hook's whole process, median; /bin/cat >> file", unit: "ms", ours: series{ours.median()}, peer: series{cat.median()}, target: atMost(3)},
		row{section: "hook", what: "the same", unit: "ms", ours: series{ours.median()}, target: below(5)})
	return nil
}

// hookCrowd counts what many hooks at once leave.
func (b *bench) hookCrowd(ctx context.Context, program, place string) error {
	var wg sync.WaitGroup
	errs := make([]error, hooksAtOnce)
	for n := range hooksAtOnce {
		wg.Go(func() { _, errs[n] = call(ctx, program, place, hookInput("PreToolUse", n)) })
	}
	wg.Wait()
	data, err := os.ReadFile(filepath.Join(place, spool.Active))
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	whole := 0
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if _, ok := spool.Parse(line); ok {
			whole++
		}
	}
	b.report.add(row{section: "hook", what: fmt.Sprintf("lost of %d hooks at once", hooksAtOnce), ours: series{float64(hooksAtOnce - whole)}, target: below(0)})
	return nil
}

// hookToScreen measures from the hook's exit to the snapshot that a console would draw,
// with the server in another process.
func (b *bench) hookToScreen(ctx context.Context, program, place, data string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serve := exec.CommandContext(ctx, b.acescope, "serve", "--json", "--data-dir", data)
	serve.Env, serve.Stderr = append(os.Environ(), spool.Env+"="+place), os.Stderr
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	out, err := serve.StdoutPipe()
	if err != nil {
		return err
	}
	if err := serve.Start(); err != nil {
		return err
	}
	defer func() { cancel(); _ = serve.Wait() }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("the server did not start: %w", err)
	}
	e, err := engine.Open(ctx, engine.Options{DataDir: data, Version: "bench", LookOnly: true})
	if err != nil {
		return err
	}
	defer e.Close(context.Background())
	store, stop := runStore(ctx, cluster.Deps{Client: e.Client, Namespace: e.Namespace(), DataDir: data})
	defer stop()
	if _, err := call(ctx, program, place, hookInput("UserPromptSubmit", 0)); err != nil {
		return err
	}
	if err := b.runIsThere(ctx, e); err != nil {
		return err
	}
	store.Select(ace.WorkflowID(hookTask), "")
	var took series
	for n := range hookEvents {
		if _, err := call(ctx, program, place, hookInput("PreToolUse", n)); err != nil {
			return err
		}
		left := time.Now()
		if err := shown(ctx, store, n+1); err != nil {
			return err
		}
		took = append(took, millis(time.Since(left)))
	}
	what := fmt.Sprintf("from a hook's exit to the snapshot, %d events", len(took))
	b.report.add(row{section: "hook", what: what + ", median", unit: "ms", ours: series{took.median()}, target: below(150)},
		row{section: "hook", what: what + ", p99", unit: "ms", ours: series{took.percentile(99)}})
	return nil
}

// runIsThere waits until the session's run has begun.
func (b *bench) runIsThere(ctx context.Context, e *engine.Engine) error {
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	for {
		_, err := e.Client.DescribeWorkflowExecution(ctx, ace.WorkflowID(hookTask), "")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no run began: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// shown waits until the snapshot has so many calls.
func shown(ctx context.Context, store *sources.Store, calls int) error {
	late := time.NewTimer(hookPatience)
	defer late.Stop()
	for {
		if d := store.Snapshot().Detail; d != nil && d.Skills.Total >= calls {
			return nil
		}
		select {
		case <-store.Changed():
		case <-late.C:
			data, _ := json.Marshal(store.Snapshot().Detail)
			return fmt.Errorf("call %d never came: %.300s", calls, data)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
