package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"acescope/engine/ace"
	"acescope/sources/histories"
)

// Rhythm of the tailed session's calls. A call is two events, so one comes every 25 ms
// or so: more often than the recorder's batches are sent.
const (
	callTakes = 15 * time.Millisecond
	callPause = 35 * time.Millisecond
	// leadIn is how long the session waits for the tail to be there.
	leadIn = 2 * time.Second
)

// session hosts and runs one task whose skills session makes calls for some seconds.
func session(ctx context.Context, s spec) error {
	r, err := openOurs(ctx, s.Dir, &noop{calls: s.Events / 2, each: callTakes, pause: callPause, before: leadIn})
	if err != nil {
		return err
	}
	in := taskInput(0)
	runID, err := r.e.StartTask(ctx, in)
	if err == nil {
		err = tell(struct{ TaskID string }{in.TaskID})
	}
	if err == nil {
		err = r.e.Client.GetWorkflow(ctx, ace.WorkflowID(in.TaskID), runID).Get(ctx, nil)
	}
	return errors.Join(err, r.close())
}

// tail measures from a tool event's time to its line at another process.
func (b *bench) tail(ctx context.Context) error {
	var all series
	for range b.size.runs {
		dir, remove, err := b.fresh("tail")
		if err != nil {
			return err
		}
		got, err := b.tailOnce(ctx, dir)
		remove()
		if err != nil {
			return err
		}
		if len(got) < b.size.events*9/10 {
			return fmt.Errorf("%d of %d events were seen", len(got), b.size.events)
		}
		all = append(all, got...)
	}
	what := fmt.Sprintf("tool event to its line, %d events", len(all))
	b.report.add(row{section: "tail", what: what + ", median", unit: "ms", ours: series{all.median()}},
		row{section: "tail", what: what + ", p99", unit: "ms", ours: series{all.percentile(99)}})
	return nil
}

func (b *bench) tailOnce(ctx context.Context, dir string) (got series, err error) {
	seen := latencies{started: map[string]bool{}}
	s := spec{Kind: kindSession, Dir: dir, Events: b.size.events}
	var tailing error
	err = ask(ctx, s, func(line struct{ TaskID string }) error {
		tailing = b.follow(ctx, dir, line.TaskID, &seen)
		return nil
	})
	return seen.ms, errors.Join(err, tailing)
}

func (b *bench) follow(ctx context.Context, dir, task string, seen *latencies) error {
	cmd := exec.CommandContext(ctx, b.acescope, "tail", task, "--json", "--data-dir", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	scanner := bufio.NewScanner(out)
	scanner.Buffer(make([]byte, 1<<16), lineLimit)
	for scanner.Scan() {
		now := time.Now()
		var c histories.Change
		if err = json.Unmarshal(scanner.Bytes(), &c); err != nil {
			break
		}
		seen.note(c, now)
	}
	return errors.Join(err, scanner.Err(), cmd.Wait())
}

// latencies are in milliseconds, one for each tool event. A call whose two events came
// together has one line, which counts for both.
type latencies struct {
	started map[string]bool
	ms      series
}

func (l *latencies) note(c histories.Change, now time.Time) {
	if c.Type != histories.ChangeSkill || c.Skill == nil {
		return
	}
	if !l.started[c.Skill.ID] {
		l.started[c.Skill.ID] = true
		l.ms = append(l.ms, millis(now.Sub(c.Skill.At)))
	}
	if c.State != histories.SkillStarted {
		ended := c.Skill.At.Add(time.Duration(c.Skill.DurationMS * float64(time.Millisecond)))
		l.ms = append(l.ms, millis(now.Sub(ended)))
	}
}
