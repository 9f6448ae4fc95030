package learning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/series"
)

// PlaybookImportLine says what was imported, or with --dry-run would be. Added counts the new versions of the
// branch besides version 0.
type PlaybookImportLine struct {
	Kind     series.Kind     `json:"kind" jsonschema:"what the path was recognized as"`
	Branch   string          `json:"branch" jsonschema:"branch"`
	New      bool            `json:"new" jsonschema:"whether the branch is new"`
	DryRun   bool            `json:"dry_run,omitempty" jsonschema:"nothing was changed"`
	Order    string          `json:"order,omitempty" jsonschema:"what the order of the snapshots follows"`
	Versions int             `json:"versions" jsonschema:"versions after version 0"`
	Added    int             `json:"added" jsonschema:"versions that the branch lacked"`
	Totals   playbook.Totals `json:"totals" jsonschema:"operations of all versions"`
	Scores   int             `json:"scores" jsonschema:"evaluations"`
	Cited    int             `json:"cited" jsonschema:"citations of bullets by tasks"`
	Named    map[string]int  `json:"named,omitempty"`
	Files    []series.File   `json:"files"`
	Losses   []playbook.Loss `json:"losses"`
}

type importFlags struct {
	branch string
	order  series.Order
	dryRun bool
}

func ImportCommand(a *cli.App) *cobra.Command {
	var f importFlags
	orders := series.Orders()
	cmd := &cobra.Command{
		Use:   "import PATH...",
		Short: "Import run folders, series of snapshots and playbooks of other programs as a branch",
		Long: "Import what other programs learned as a branch of playbook versions, for \"acescope playbook log\", blame,\n" +
			"diff and health. PATH is one of:\n\n" +
			"  a run folder of ace-agent/ace, with its snapshots, operations, citations, results and configuration\n" +
			"  a directory of snapshots of one playbook, or several files: each is a version\n" +
			"  a playbook: ACE text, AppWorld text, skillbook or canonical JSON, or a block in an AGENTS.md or SKILL.md\n\n" +
			"Each version has exactly the bullets of its file. The operations between two versions are computed. What is\n" +
			"not read is named, with a count. Importing the same again adds nothing; importing a series that has grown\n" +
			"adds its new versions.",
		Example: "acescope import results/ace_run_20260102_030405_finer_offline\n" +
			"acescope import snapshots/step*.txt --branch appworld --dry-run\n" +
			"acescope playbook show finer@best",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(orders, f.order) {
				return cli.UsageError("--order %q: must be one of %s", f.order, cli.Join(orders))
			}
			return importSeries(a, cmd.Context(), args, f)
		},
	}
	cmd.Flags().StringVar(&f.branch, "branch", "",
		"name of the branch (default: the name of the folder or files)")
	cmd.Flags().StringVar((*string)(&f.order), "order", string(orders[0]), "order of snapshots: "+cli.Join(orders)+
		"; auto is by the numbers in the names if they tell it, otherwise by time")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be imported and change nothing")
	return cmd
}

func importSeries(a *cli.App, ctx context.Context, paths []string, f importFlags) error {
	r, err := series.Read(paths, f.order)
	switch {
	case errors.Is(err, series.ErrInput):
		return cli.UsageError("%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return cli.NotFound("%w", err)
	case err != nil:
		return err
	}
	if f.branch != "" {
		r.Branch = f.branch
	}
	line := importLine(r, f.dryRun)
	store, err := importStore(a, ctx, f.dryRun)
	if err != nil {
		return err
	}
	if f.dryRun {
		line.Added, line.New, err = store.Missing(ctx, &r.Series)
	} else {
		line.Added, line.New, err = store.Append(ctx, &r.Series)
	}
	if errors.Is(err, playbook.ErrDiffers) {
		return cli.UsageError("branch %q exists and has other versions; choose another branch with --branch",
			r.Branch)
	}
	if err != nil {
		return fmt.Errorf("import %s: %w", strings.Join(paths, " "), err)
	}
	return printImport(a, r, line)
}

// importStore opens the playbooks of the data directory, which needs no server, or those of a cluster.
func importStore(a *cli.App, ctx context.Context, readOnly bool) (*playbook.Store, error) {
	if a.Cluster() != nil {
		e, err := a.Connect(ctx, engine.Options{LookOnly: readOnly})
		if err != nil {
			return nil, err
		}
		return e.Books, nil
	}
	if readOnly {
		dir, err := a.DataDir()
		return playbook.OpenStoreReadOnly(filepath.Join(dir, "playbooks")), err
	}
	dir, err := a.OpenDataDir()
	if err != nil {
		return nil, err
	}
	return playbook.OpenStore(filepath.Join(dir, "playbooks"))
}

func importLine(r *series.Result, dryRun bool) PlaybookImportLine {
	line := PlaybookImportLine{
		Kind: r.Kind, Branch: r.Branch, DryRun: dryRun, Order: r.Order, Versions: len(r.Steps),
		Totals: r.Summary(), Scores: len(r.Origin.Scores), Files: r.Files,
		Losses: append([]playbook.Loss{}, r.Losses...),
	}
	for i, s := range r.Steps {
		line.Scores += len(s.Scores)
		for _, c := range s.Cited {
			line.Cited += c.Tasks
		}
		for _, name := range s.Names {
			if line.Named == nil {
				line.Named = map[string]int{}
			}
			line.Named[name] = i + 1
		}
	}
	return line
}

func printImport(a *cli.App, r *series.Result, line PlaybookImportLine) error {
	for _, file := range r.Files {
		runs.ReportParsed(a, file.Name, file.Report)
	}
	runs.ReportLosses(a, "not imported", r.Losses)
	if a.JSON {
		return cli.NewLines(a).Write(line)
	}
	what := string(r.Kind)
	if r.Kind == series.Single {
		what += " (" + string(r.Files[0].Report.Format) + ")"
	}
	if r.Order != "" {
		what += ", in the order of " + strings.TrimPrefix(r.Order, "the order of ")
	}
	out := cli.NewLines(a)
	out.Printf("read        %s: %s", what, ace.Count(len(r.Files), "playbook"))
	if t := line.Totals; line.Versions > 0 {
		out.Printf("operations  +%d ~%d -%d, %d TAG, %d logged without effect", t.Added, t.Updated, t.Removed,
			t.Tagged, t.Refused)
	}
	if r.Kind == series.RunFolder {
		out.Printf("results     %s, %s", ace.Count(line.Scores, "evaluation"),
			ace.Count(line.Cited, "citation"))
	}
	verb := "imported"
	if line.DryRun {
		verb = "would import"
	}
	state := "nothing new, the branch has all of it"
	switch {
	case line.New:
		state = verb + " a new branch with versions 0 to " + fmt.Sprint(line.Versions)
	case line.Added > 0:
		state = verb + " " + ace.Count(line.Added, "version")
	}
	for _, name := range []string{"best", "final"} {
		if n, ok := line.Named[name]; ok {
			state += fmt.Sprintf(", %s is %d", name, n)
		}
	}
	out.Printf("branch      %s: %s", line.Branch, state)
	return out.Flush()
}
