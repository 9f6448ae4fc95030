package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	"acescope/sources/system"
	"acescope/theme"
)

// checkLine is the result of one check.
type checkLine struct {
	Type string `json:"type"` // check
	cluster.ToolCheck
}

// DoctorCommand returns the command doctor.
func DoctorCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation, the data directory, the server and the runners",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return doctor(a, cmd.Context()) },
	}
}

const doctorTimeout = 30 * time.Second

func doctor(a *cli.App, ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	out := cli.NewLines(a.Out)
	wrong := 0
	report := func(name string, state cluster.Severity, format string, args ...any) {
		c := checkLine{"check", cluster.ToolCheck{Name: name, State: state, Text: fmt.Sprintf(format, args...)}}
		if state == cluster.Error {
			wrong++
		}
		if a.JSON {
			_ = out.Write(c)
			return
		}
		fmt.Fprintf(a.Out, "%-7s  %-12s %s\n", marks[state], c.Name, cli.SafeText(c.Text))
	}
	v := versions()
	report("version", cluster.OK, "acescope %s, Temporal server %s, SDK %s, %s", v.Version, v.Server, v.SDK, v.Go)
	checkTerminal(a, report)
	checkPrograms(a, ctx, report)
	checkEngine(a, ctx, report)
	if wrong > 0 {
		return checksFailed(wrong)
	}
	return nil
}

// checksFailed returns the error of n failed checks.
func checksFailed(n int) error { return fmt.Errorf("%s failed", cli.Numbered(int64(n), "check")) }

// reporter reports the result of a check.
type reporter func(name string, state cluster.Severity, format string, args ...any)

func checkTerminal(a *cli.App, report reporter) {
	if !cli.IsTerminal(os.Stdout) {
		report("terminal", cluster.OK,
			"standard output is not a terminal; the console needs one, the other commands do not")
		return
	}
	w, h, err := term.GetSize(os.Stdout.Fd())
	if err != nil {
		report("terminal", cluster.Error, "cannot read its size: %v", err)
		return
	}
	report("terminal", cluster.ErrorUnless(w >= 40 && h >= 10),
		"%d×%d (%s), UTF-8 %t, NO_COLOR %t", w, h, os.Getenv("TERM"),
		theme.HasUTF8(os.Getenv), theme.WantsNoColor(os.Getenv))
}

// checkPrograms looks for optional programs and those that the configuration names.
func checkPrograms(a *cli.App, ctx context.Context, report reporter) {
	if path, err := exec.LookPath("temporal"); err == nil {
		report("temporal", cluster.OK, "%s", path)
	} else {
		report("temporal", cluster.Info, "not installed (optional)")
	}
	for _, in := range cli.Installed(ctx, a.AgentRunner()) {
		c := cli.AgentCheck(in)
		report(c.Name, c.State, "%s", c.Text)
	}
	for _, g := range a.GraderLines() {
		report("grader", cluster.ErrorUnless(g.OK), "%s: %s", g.Name, g.Text)
	}
}

func checkEngine(a *cli.App, ctx context.Context, report reporter) {
	dir, err := a.DataDir()
	if err != nil {
		report("data", cluster.Error, "%v", err)
		return
	}
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		report("data", cluster.Error, "%s: %s", dir, cli.OneLine(cli.Advise(a, err)))
		return
	}
	defer done()
	deps := healthDeps(a, e)
	deps.Agents = nil // checked before
	health := system.Read(ctx, deps, cluster.Connection{Mode: string(e.Mode()), Address: e.Address()})
	checkHost(e, dir, health.Server.Version, report)
	checkCodec(ctx, e, report)
	for _, c := range health.Checks() {
		served := c.Section == system.SectionWorkers && e.Mode() != engine.Embedded
		names := []string{"data", "attributes", "runs", "clock", system.SpoolCheck}
		if served || slices.Contains(names, c.Name) {
			report(c.Name, c.State, "%s", strings.TrimRight(c.Text+"; "+c.Advice, "; "))
		}
	}
	checkExecution(a, ctx, e, health.OpenRuns, report)
	for _, c := range cli.ProviderChecks(ctx, a) {
		report("provider", c.State, "%s: %s", c.Name, c.Text)
	}
}

func checkHost(e *engine.Engine, dir, version string, report reporter) {
	if e.Node() == nil {
		report("data", cluster.OK, "%s", dir)
		report("server", cluster.OK, "remote cluster %s, Temporal %s, namespace %s", e.Address(),
			cmp.Or(version, "of unknown version"), e.Namespace())
		return
	}
	if e.Mode() == engine.Embedded {
		report("server", cluster.OK, "no other process is the host; this process started the server and it answers")
		return
	}
	ep := e.Node().Endpoint()
	state := cluster.OK
	if ep.Version != cli.BuildVersion() {
		state = cluster.Warning
	}
	report("server", state, "hosted by process %d (acescope %s) at %s since %s", ep.PID, ep.Version, ep.Address,
		ep.Started.Local().Format(time.DateTime))
}

// checkCodec checks the codec server if one is configured.
func checkCodec(ctx context.Context, e *engine.Engine, report reporter) {
	if e.Codec == nil {
		return
	}
	if err := e.Codec.Check(ctx); err != nil {
		report("codec", cluster.Error, "%s", cli.OneLine(err))
		return
	}
	report("codec", cluster.OK, "%s decodes", e.Codec.Name())
}

// checkExecution checks which runners and blueprints there are for blueprint runs.
func checkExecution(a *cli.App, ctx context.Context, e *engine.Engine, openRuns int64, report reporter) {
	if a.Cluster() == nil {
		types := strings.Join(e.ExecutorTypes(), ", ")
		if a.Settings.NoRunner {
			report("local runner", cluster.Info,
				"disabled by no_runner; blueprint runs wait for \"acescope runner start\"; "+
					"this machine has executors for %s", types)
		} else {
			report("local runner", cluster.OK,
				"a process with workers for this data directory executes runs for %s", types)
		}
	}
	checkRunners(ctx, e, openRuns, report)
	checkBlueprints(a, ctx, report)
}

// dispatcherTimeout bounds a query of the dispatcher.
const dispatcherTimeout = 5 * time.Second

// checkRunners counts the registered runners. Without another process with workers, no runner is alive.
func checkRunners(ctx context.Context, e *engine.Engine, openRuns int64, report reporter) {
	if e.Mode() == engine.Embedded {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dispatcherTimeout)
	defer cancel()
	view, err := e.Runners(ctx, runner.ViewOptions{})
	if errors.Is(err, engine.ErrEncoded) {
		report("runners", cluster.Info, "unknown: %v", err)
		return
	}
	if err != nil && openRuns == 0 && e.Mode() == engine.Cluster {
		report("runners", cluster.Info, "unknown: no worker answers for the dispatcher, and no run is open")
		return
	}
	if err != nil {
		report("runners", cluster.Error,
			"the dispatcher does not answer: %s; see the log of the serving process", cli.OneLine(err))
		return
	}
	count := map[runner.Status]int{}
	for _, r := range view.Runners {
		count[r.Status]++
	}
	if len(view.Runners) == 0 {
		report("runners", cluster.Info, "no runner is registered; start one with \"acescope runner start\"")
		return
	}
	report("runners", cluster.OK, "%d online, %d stale, %d draining; %s waiting for a runner", count[runner.Online],
		count[runner.Stale], count[runner.Draining], cli.Numbered(int64(view.Waiting), "run"))
}

// checkBlueprints reports the directories of blueprints, and each blueprint that cannot be used.
func checkBlueprints(a *cli.App, ctx context.Context, report reporter) {
	l, err := a.Library()
	if err != nil {
		report("blueprints", cluster.Error, "%s", cli.OneLine(err))
		return
	}
	entries, err := l.Entries(ctx)
	if err != nil {
		report("blueprints", cluster.Error, "%s", cli.OneLine(err))
		return
	}
	var existing []string
	for _, dir := range l.Dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			existing = append(existing, dir)
		}
	}
	good := 0
	for _, entry := range entries {
		d := entry.Info()
		switch {
		case entry.Shadowed != "":
		case d.Error != "":
			report("blueprint", cluster.Error, "%s cannot be used: %s", d.Name, d.Error)
		default:
			good++
		}
	}
	if len(existing) == 0 {
		report("blueprints", cluster.Info,
			"no directory of blueprints (%s); create a blueprint with \"acescope agent new NAME\"",
			strings.Join(l.Dirs, ", "))
		return
	}
	report("blueprints", cluster.OK, "%d usable, in %s", good, strings.Join(existing, ", "))
}
