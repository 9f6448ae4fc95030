package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/tasks/runner"
)

// checkExecution says whether runs of agents and programs can be executed: by whom, and which
// blueprints there are.
func checkExecution(a *cli.App, ctx context.Context, e *engine.Engine, report reporter) {
	if a.Cluster() == nil {
		types := strings.Join(e.ExecutorTypes(), ", ")
		if a.Settings.NoRunner {
			report("local runner", true, "left out by no_runner: runs wait for acescope runner start; this machine has executors for %s", types)
		} else {
			report("local runner", true, "whoever serves this data directory executes runs for %s", types)
		}
	}
	checkRunners(a, ctx, e, report)
	checkBlueprints(a, ctx, report)
}

// doctorAsks bounds how long the dispatcher may take to answer.
const doctorAsks = 5 * time.Second

// checkRunners counts the runners that are registered. It asks only where another process
// serves: where nobody does there is no runner that is alive.
func checkRunners(a *cli.App, ctx context.Context, e *engine.Engine, report reporter) {
	if e.Mode() == engine.Embedded {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorAsks)
	defer cancel()
	view, err := e.Runners(ctx, runner.ViewOptions{})
	if errors.Is(err, engine.ErrEncoded) {
		report("runners", true, "not known here: %v", err)
		return
	}
	if err != nil {
		report("runners", false, "%s", cli.OneLine(fmt.Errorf("the dispatcher does not answer: %w; the log of the process that serves says why", err)))
		return
	}
	count := map[runner.Status]int{}
	for _, r := range view.Runners {
		count[r.Status]++
	}
	if len(view.Runners) == 0 {
		report("runners", true, "none is registered: acescope runner start starts one")
		return
	}
	report("runners", true, "%d online, %d stale, %d draining; %d runs wait for one", count[runner.Online], count[runner.Stale], count[runner.Draining], view.Waiting)
}

// checkBlueprints says where blueprints are, and which of them cannot be used.
func checkBlueprints(a *cli.App, ctx context.Context, report reporter) {
	l, err := a.Library()
	if err != nil {
		report("blueprints", false, "%s", cli.OneLine(err))
		return
	}
	entries, err := l.Entries(ctx)
	if err != nil {
		report("blueprints", false, "%s", cli.OneLine(err))
		return
	}
	var there []string
	for _, dir := range l.Dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			there = append(there, dir)
		}
	}
	good := 0
	for _, entry := range entries {
		d := entry.Info()
		switch {
		case entry.Shadowed != "":
		case d.Error != "":
			report("blueprint", false, "%s cannot be used: %s", d.Name, d.Error)
		default:
			good++
		}
	}
	if len(there) == 0 {
		report("blueprints", true, "none: there is none of %s; acescope agent new NAME makes one", strings.Join(l.Dirs, ", "))
		return
	}
	report("blueprints", true, "%d can be used, in %s", good, strings.Join(there, ", "))
}
