package admin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/theme"
)

// checkLine is one finding of the doctor.
type checkLine struct {
	Type string `json:"type"` // check
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

func DoctorCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what is installed, where data lies, who hosts, and what is wrong",
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
	report := func(name string, ok bool, format string, args ...any) {
		c := checkLine{"check", name, ok, fmt.Sprintf(format, args...)}
		if !ok {
			wrong++
		}
		if a.JSON {
			_ = out.Write(c)
			return
		}
		mark := "ok   "
		if !ok {
			mark = "WRONG"
		}
		fmt.Fprintf(a.Out, "%s  %-12s %s\n", mark, c.Name, cli.SafeText(c.Text))
	}
	v := versions()
	report("version", true, "acescope %s, Temporal server %s, SDK %s, %s", v.Version, v.Server, v.SDK, v.Go)
	checkTerminal(a, report)
	checkPrograms(a, ctx, report)
	checkEngine(a, ctx, report)
	if wrong > 0 {
		return fmt.Errorf("%d of the checks found something wrong", wrong)
	}
	return nil
}

type reporter func(name string, ok bool, format string, args ...any)

func checkTerminal(a *cli.App, report reporter) {
	if !term.IsTerminal(os.Stdout.Fd()) {
		report("terminal", true, "standard output is no terminal: the console cannot open here, the other commands can")
		return
	}
	w, h, err := term.GetSize(os.Stdout.Fd())
	if err != nil {
		report("terminal", false, "its size cannot be read: %v", err)
		return
	}
	report("terminal", w >= 40 && h >= 10, "%d×%d (%s), UTF-8 %t, NO_COLOR %t", w, h, os.Getenv("TERM"),
		theme.HasUTF8(os.Getenv), theme.WantsNoColor(os.Getenv))
}

// checkPrograms looks for what acescope can work with but does not need.
func checkPrograms(a *cli.App, ctx context.Context, report reporter) {
	if path, err := exec.LookPath("temporal"); err == nil {
		report("temporal", true, "%s", path)
	} else {
		report("temporal", true, "not installed (optional)")
	}
	for _, in := range cli.Installed(ctx, a.AgentRunner()) {
		report(string(in.CLI), in.OK(), "%s", in)
	}
}

func checkEngine(a *cli.App, ctx context.Context, report reporter) {
	dir, err := a.DataDir()
	if err != nil {
		report("data", false, "%v", err)
		return
	}
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		report("data", false, "%s: %s", dir, cli.OneLine(err))
		return
	}
	defer done()
	report("data", true, "%s", dir)
	checkHost(a, e, report)
	checkCodec(ctx, e, report)
	missing, err := runs.MissingAttributes(ctx, e.Client, e.Namespace())
	switch {
	case err != nil:
		report("attributes", false, "%s", cli.OneLine(err))
	case len(missing) > 0:
		report("attributes", false, "namespace %s lacks the search attributes %v; add them with: %s",
			e.Namespace(), missing, ace.SearchAttributesCommand(e.Namespace(), missing))
	default:
		report("attributes", true, "all %d search attributes are there", len(ace.SearchAttributes()))
	}
	checkRuns(a, ctx, e, report)
	checkExecution(a, ctx, e, report)
	for _, p := range e.Providers {
		report("provider", true, "%s: %s", p.Name(), cli.AboutProvider(p))
	}
	for _, d := range a.StepBlueprints(ctx) {
		report("provider", true, "%s: %s", ace.BlueprintProvider(d.Name), cli.AboutBlueprint(d))
	}
}

func checkHost(a *cli.App, e *engine.Engine, report reporter) {
	if e.Node() == nil {
		report("server", true, "remote cluster %s, namespace %s", e.Address(), e.Namespace())
		return
	}
	if e.Mode() == engine.Embedded {
		report("server", true, "no other process hosts; this one started the server and it answers")
		return
	}
	ep := e.Node().Endpoint()
	report("server", true, "hosted by process %d (acescope %s) at %s since %s", ep.PID, ep.Version, ep.Address, ep.Started.Local().Format(time.DateTime))
}

// checkCodec asks the codec server that is used, if one is.
func checkCodec(ctx context.Context, e *engine.Engine, report reporter) {
	if e.Codec == nil {
		return
	}
	if err := e.Codec.Check(ctx); err != nil {
		report("codec", false, "%s", cli.OneLine(err))
		return
	}
	report("codec", true, "%s decodes", e.Codec.Name())
}

func checkRuns(a *cli.App, ctx context.Context, e *engine.Engine, report reporter) {
	total, err := runs.Count(ctx, e.Client, "")
	if err != nil {
		report("runs", false, "%s", cli.OneLine(err))
		return
	}
	open, err := runs.Count(ctx, e.Client, `ExecutionStatus = "Running"`)
	report("runs", err == nil, "%d recorded, %d open", total, open)
}
