package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	"acescope/sources/system"
	"acescope/theme"
)

// Sections of the checks that the health screen does not have.
const (
	sectionInstallation system.Section = "installation"
	sectionExecution    system.Section = "execution"
)

// HealthLine is the health of the server, the workers and this process.
type HealthLine struct {
	OK bool `json:"ok" jsonschema:"whether no check failed"`
	*system.System
}

func DoctorCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation, the server, the workers and their task queues, and the runners",
		Long: "Check the installation, the data directory, the server, the workers and their task queues, and the runners,\n" +
			"and advise what to do. The exit code is 0 if every check passes, 1 if one fails, and 5 if the server cannot\n" +
			"be reached.",
		Example: "acescope doctor\nacescope doctor --json | jq 'select(.type == \"check\" and .state != \"ok\")'",
		RunE:    func(cmd *cobra.Command, _ []string) error { return doctor(a, cmd.Context()) },
	}
}

const doctorTimeout = 30 * time.Second

func doctor(a *cli.App, ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	x := &examination{app: a, section: sectionInstallation}
	v := versions()
	x.report("version", cluster.OK, "acescope %s, Temporal server %s, SDK %s, %s", v.Version, v.Server, v.SDK,
		v.Go)
	x.checkTerminal()
	x.checkPrograms(ctx)
	health, unreachable := x.checkEngine(ctx)
	failed := system.CountErrors(x.checks)
	if err := x.write(health, failed == 0); err != nil {
		return err
	}
	if unreachable == nil && failed > 0 {
		return fmt.Errorf("%s failed", ace.Count(failed, "check"))
	}
	return unreachable
}

// examination collects the checks.
type examination struct {
	app     *cli.App
	section system.Section // of the next checks
	checks  []system.Check
}

func (x *examination) report(name string, state cluster.Severity, format string, args ...any) {
	x.checks = append(x.checks, system.Check{Section: x.section, Name: name, State: state,
		Text: fmt.Sprintf(format, args...)})
}

// marks are the severities as text.
var marks = map[cluster.Severity]string{
	cluster.OK: "ok", cluster.Info: "info", cluster.Warning: "WARNING", cluster.Error: "ERROR",
}

// write writes the checks and, with --json, also the health data behind them.
func (x *examination) write(health *system.System, ok bool) error {
	if x.app.JSON {
		out := cli.NewLines(x.app)
		for _, c := range x.checks {
			out.Put(c)
		}
		return out.Write(HealthLine{ok, health})
	}
	w := cli.NewTable(x.app.Out)
	w.Wrap = true
	fmt.Fprintln(w, "STATE\tSECTION\tCHECK\tFINDING")
	for _, c := range x.checks {
		result := c.Text
		if !c.At.IsZero() {
			result += ", since " + c.At.Local().Format(time.DateTime)
		}
		if c.Advice != "" {
			result += "; " + c.Advice
		}
		w.Row(marks[c.State], c.Section, c.Name, result)
	}
	return w.Flush()
}

func (x *examination) checkTerminal() {
	w, h, ok := cli.Terminal(x.app.Out)
	if !ok {
		x.report("terminal", cluster.OK,
			"standard output is not a terminal; the console needs one, the other commands do not")
		return
	}
	x.report("terminal", cluster.ErrorUnless(w >= 40 && h >= 10), "%d×%d (%s), UTF-8 %t, NO_COLOR %t", w, h,
		os.Getenv("TERM"), theme.HasUTF8(os.Getenv), theme.WantsNoColor(os.Getenv))
}

// checkPrograms looks for optional programs and those that the configuration names.
func (x *examination) checkPrograms(ctx context.Context) {
	if path, err := exec.LookPath("temporal"); err == nil {
		x.report("temporal", cluster.OK, "%s", path)
	} else {
		x.report("temporal", cluster.Info, "not installed (optional)")
	}
	for _, g := range x.app.GraderLines() {
		x.report("grader", cluster.ErrorUnless(g.OK), "%s: %s", g.Name, g.Text)
	}
	x.section = system.SectionAgents
	for _, in := range cli.Installed(ctx, x.app.AgentRunner()) {
		c := cli.AgentCheck(in)
		x.report(c.Name, c.State, "%s", c.Text)
	}
}

// checkEngine checks the server and what needs it. It returns the health, and the error of a server that does
// not answer.
func (x *examination) checkEngine(ctx context.Context) (*system.System, error) {
	a := x.app
	x.section = system.SectionServer
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		health := unread(a, err)
		dir, _ := a.DataDir()
		if cli.ExitCode(err) == cli.ExitUnreachable {
			checks := health.Checks()
			if a.Cluster() != nil {
				checks[0].Advice = "check that the cluster runs and that the address is right"
			}
			x.checks = append(x.checks, checks...)
			return health, err
		}
		x.report("data", cluster.Error, "%s: %s", dir, cli.OneLine(cli.Advise(a, err)))
		return health, nil
	}
	deps := healthDeps(a, e)
	deps.Agents = nil // checked before
	health := system.Read(ctx, deps, cluster.Connection{Mode: string(e.Mode()), Address: e.Address()})
	if e.Node() == nil {
		x.report("data", cluster.OK, "%s", deps.DataDir)
	}
	x.checkLinks(deps.DataDir)
	if err := e.Withheld(); err != nil && !a.Settings.ReadOnly {
		x.report("trust", cluster.Warning, "%s", cli.OneLine(err))
	}
	for _, c := range health.Checks() {
		if c.Section != system.SectionCalls { // the calls of this command itself, which the health has
			x.checks = append(x.checks, hostOf(c, e))
		}
	}
	x.checkCodec(ctx, e)
	x.section = sectionExecution
	x.checkExecution(ctx, e, health)
	for _, c := range cli.ProviderChecks(ctx, a) {
		x.report("provider", c.State, "%s: %s", c.Name, c.Text)
	}
	if health.Err != "" {
		err = &cli.ExitError{Code: cli.ExitUnreachable, Err: errors.New(health.Err)}
	}
	return health, err
}

// checkLinks reports the links in a data directory that lead out of it.
func (x *examination) checkLinks(dir string) {
	root, _ := filepath.EvalSymlinks(dir) // a missing directory has no links
	for _, sub := range []string{".", "logs"} {
		entries, _ := os.ReadDir(filepath.Join(dir, sub))
		for _, entry := range entries {
			path := filepath.Join(dir, sub, entry.Name())
			target, err := filepath.EvalSymlinks(path)
			rel, relErr := filepath.Rel(root, target)
			if entry.Type() == os.ModeSymlink && (err != nil || relErr != nil || !filepath.IsLocal(rel)) {
				x.report("data link", cluster.Warning,
					"%s is a link out of the data directory, to %s; replace it by "+
						"a directory unless you made it", path, cmp.Or(target, "a missing file"))
			}
		}
	}
}

// hostOf returns a check. That of the host also says if this process is the host, or if the host has another
// version of acescope.
func hostOf(c system.Check, e *engine.Engine) system.Check {
	switch {
	case c.Name != "host":
	case e.Mode() == engine.Embedded:
		c.Text, c.At = "no other process is the host; this process started the server and it answers",
			time.Time{}
	case e.Node().Endpoint().Version != cli.BuildVersion():
		c.State = cluster.Warning
		c.Advice = "this is acescope " + cli.BuildVersion() + "; restart the host to use one version"
	}
	return c
}

// unread returns the health if the server could not be opened.
func unread(a *cli.App, err error) *system.System {
	s := system.New(string(engine.Embedded), "", ace.DefaultNamespace)
	s.At, s.Err = time.Now().UTC(), cli.OneLine(err)
	if c := a.Cluster(); c != nil {
		s.Mode, s.Address = string(engine.Cluster), c.Address
		s.Space = cmp.Or(c.Namespace, s.Space)
	} else if dir, dirErr := a.DataDir(); dirErr == nil {
		s.Host.DataDir = dir
	}
	s.Process = system.ThisProcess()
	return s
}

func (x *examination) checkCodec(ctx context.Context, e *engine.Engine) {
	if e.Codec == nil {
		return
	}
	if err := e.Codec.Check(ctx); err != nil {
		x.report("codec", cluster.Error, "%s", cli.OneLine(err))
		return
	}
	x.report("codec", cluster.OK, "%s decodes", e.Codec.Name())
}

// checkExecution checks which runners and blueprints there are for blueprint runs.
func (x *examination) checkExecution(ctx context.Context, e *engine.Engine, health *system.System) {
	a := x.app
	if a.Cluster() == nil {
		types := strings.Join(e.ExecutorTypes(), ", ")
		if a.Settings.NoRunner {
			x.report("local runner", cluster.Info,
				"disabled by no_runner; blueprint runs wait for \"acescope runner start\"; "+
					"this machine has executors for %s", types)
		} else {
			x.report("local runner", cluster.OK,
				"a process with workers for this data directory executes blueprint runs; its executors: %s",
				types)
		}
	}
	x.checkRunners(ctx, e, health)
	x.checkBlueprints(ctx)
}

const dispatcherTimeout = 5 * time.Second

// checkRunners counts the registered runners. Without another process with workers, no runner is alive.
func (x *examination) checkRunners(ctx context.Context, e *engine.Engine, health *system.System) {
	if e.Mode() == engine.Embedded {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dispatcherTimeout)
	defer cancel()
	view, err := e.Runners(ctx, runner.ViewOptions{})
	count := map[runner.Status]int{}
	for _, r := range view.Runners {
		count[r.Status]++
	}
	switch {
	case errors.Is(err, engine.ErrEncoded):
		x.report("runners", cluster.Info, "unknown: %v", err)
	case err != nil && health.Starting():
		x.report("runners", cluster.Info, "the dispatcher does not answer yet; the host has just started")
	case err != nil && health.OpenRuns == 0 && e.Mode() == engine.Cluster:
		x.report("runners", cluster.Info, "unknown: no worker answers for the dispatcher, and no run is open")
	case err != nil:
		x.report("runners", cluster.Error,
			"the dispatcher does not answer: %s; see the log of the serving process", cli.OneLine(err))
	case len(view.Runners) == 0:
		x.report("runners", cluster.Info, "no runner is registered; start one with \"acescope runner start\"")
	default:
		x.report("runners", cluster.OK, "%d online, %d stale, %d draining; %s waiting for a runner",
			count[runner.Online], count[runner.Stale], count[runner.Draining], ace.Count(view.Waiting, "run"))
	}
}

// checkBlueprints reports the directories of blueprints, and each blueprint that cannot be used.
func (x *examination) checkBlueprints(ctx context.Context) {
	l, err := x.app.Library()
	var entries []blueprint.Entry
	if err == nil {
		entries, err = l.Entries(ctx)
	}
	if err != nil {
		x.report("blueprints", cluster.Error, "%s", cli.OneLine(err))
		return
	}
	existing := slices.DeleteFunc(slices.Clone(l.Dirs), func(dir string) bool { return !cli.IsDir(dir) })
	good := 0
	for _, entry := range entries {
		d := entry.Info()
		switch {
		case entry.Shadowed != "":
		case d.Error != "":
			x.report("blueprint", cluster.Error, "%s cannot be used: %s", d.Name, d.Error)
		default:
			good++
		}
	}
	if len(existing) == 0 {
		x.report("blueprints", cluster.Info,
			"no directory of blueprints (%s); create a blueprint with \"acescope agent new NAME\"",
			strings.Join(l.Dirs, ", "))
		return
	}
	x.report("blueprints", cluster.OK, "%d usable, in %s", good, strings.Join(existing, ", "))
}

// healthDeps returns what the readers of the health need.
func healthDeps(a *cli.App, e *engine.Engine) cluster.Deps {
	dir, _ := a.DataDir()        // the connection exists, so there is a data directory
	cache, _ := cli.TraceCache() // without a state directory, nothing is kept
	return cluster.Deps{
		Client: e.Client, Namespace: e.Namespace(), TaskQueue: e.TaskQueue, Playbooks: e.Books,
		Prompts: e.Prompts, DataDir: dir, Mirror: engine.LogMirror(e),
		Transcripts: engine.TranscriptMirror(e), Spool: spool.Dir(os.Getenv), Artifact: e.Artifacts.Get,
		TraceCache: cache, Version: cli.BuildVersion(),
		Meter: a.Meter, Host: host(e, dir), Agents: a.AgentChecks(),
		Store: func(ctx context.Context) (string, error) { return engine.CheckStore(ctx, e) },
	}
}

// host returns a function that describes the host of the server, which changes at a takeover.
func host(e *engine.Engine, dir string) func() cluster.Host {
	return func() cluster.Host {
		h := cluster.Host{Worker: e.Serves()}
		n := e.Node()
		if n == nil {
			return h
		}
		ep := n.Endpoint()
		h.PID, h.Version, h.Started, h.DataDir, h.Lost = ep.PID, ep.Version, ep.Started, dir, ep.Lost(dir)
		h.Clock = ep.Clock.Warning()
		free, err := e.Free()
		if err != nil {
			h.FreeErr = err.Error()
		}
		h.Free = free
		return h
	}
}
