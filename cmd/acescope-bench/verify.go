package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	historypb "go.temporal.io/api/history/v1"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/temporal/historyfile"
	"acescope/engine/temporal/replay"
	"acescope/engine/workflows"
)

// verifyHistories is how many histories are verified at once.
const verifyHistories = 1000

// verify measures events a second beside the bare replayer on the same histories, and
// what a second core brings.
func (b *bench) verify(ctx context.Context) error {
	dir, remove, err := b.fresh("verify")
	if err != nil {
		return err
	}
	defer remove()
	histories, err := b.histories(ctx, dir)
	if err != nil {
		return err
	}
	rate := row{section: "verify", what: "events a second, one after another", unit: "1/s", target: atLeast(0.9)}
	perSecond(histories, oursReplays()) // what the first replay of a process sets up counts for neither
	for range b.size.runs {
		rate.ours = append(rate.ours, perSecond(histories, oursReplays()))
		rate.peer = append(rate.peer, perSecond(histories, bareReplays))
	}
	two := row{section: "verify", what: fmt.Sprintf("%d histories, two cores over one", verifyHistories), unit: "events/s", target: atLeast(1.7)}
	for range b.size.runs {
		one, err := b.verifyRate(ctx, dir, 1)
		if err != nil {
			return err
		}
		both, err := b.verifyRate(ctx, dir, 2)
		if err != nil {
			return err
		}
		two.ours, two.peer = append(two.ours, both), append(two.peer, one)
	}
	b.report.add(rate, two)
	return nil
}

// histories runs some tasks and lays their histories out as files, again and again.
func (b *bench) histories(ctx context.Context, dir string) ([]*historypb.History, error) {
	data := filepath.Join(dir, "data")
	tasks, err := exec.CommandContext(ctx, b.acescope, "problems", "--count", "8", "--seed", "1").Output()
	if err != nil {
		return nil, fmt.Errorf("problems: %w", err)
	}
	dataset := filepath.Join(dir, "tasks.jsonl")
	if err := os.WriteFile(dataset, tasks, 0o600); err != nil {
		return nil, err
	}
	if err := exec.CommandContext(ctx, b.acescope, "run", "--dataset", dataset, "--experiment", "v", "--data-dir", data).Run(); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		return nil, err
	}
	var all []*historypb.History
	var texts [][]byte
	for i := range 8 {
		text, err := exec.CommandContext(ctx, b.acescope, "replay", "export", fmt.Sprintf("v-e1-%04d", i+1), "--data-dir", data).Output()
		if err != nil {
			return nil, fmt.Errorf("export: %w", err)
		}
		h, err := historyfile.Read(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		texts, all = append(texts, text), append(all, &historypb.History{Events: h[0].Events})
	}
	for i := range verifyHistories {
		if err := os.WriteFile(filepath.Join(files, fmt.Sprintf("%04d.json", i)), texts[i%len(texts)], 0o600); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// perSecond is how many events a second are replayed.
func perSecond(all []*historypb.History, play func(*historypb.History)) float64 {
	events, begin := 0, time.Now()
	for range 25 {
		for _, h := range all {
			play(h)
			events += len(h.Events)
		}
	}
	return float64(events) / time.Since(begin).Seconds()
}

func oursReplays() func(*historypb.History) {
	v := &replay.Verifier{Register: workflows.Register}
	return func(h *historypb.History) { v.Verify(context.Background(), h.Events) }
}

func bareReplays(h *historypb.History) {
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{})
	if err != nil {
		return
	}
	r.RegisterWorkflowWithOptions(workflows.Task, workflow.RegisterOptions{Name: ace.TaskWorkflow})
	_ = r.ReplayWorkflowHistory(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), h)
}

// verifyRate is the events a second that the command says, on so many cores.
func (b *bench) verifyRate(ctx context.Context, dir string, cores int) (float64, error) {
	cmd := exec.CommandContext(ctx, b.acescope, "replay", "verify", filepath.Join(dir, "files"), "--parallel", fmt.Sprint(cores), "--json")
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", cores))
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("verify: %w", err)
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var end struct {
		Same int     `json:"same"`
		Rate float64 `json:"events_per_second"`
	}
	if err := json.Unmarshal(lines[len(lines)-1], &end); err != nil || end.Same != verifyHistories {
		return 0, fmt.Errorf("%d of %d histories were verified, %w", end.Same, verifyHistories, err)
	}
	return end.Rate, nil
}
