package admin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/prompts"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
	"acescope/engine/store/garbage"
	"acescope/sources/runs"
	"acescope/sources/system"
)

func StoreCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "store",
		Short: "Show, fill and clean the store of artifacts, playbooks and run logs",
	}, storeShowCommand(a), storeImportCommand(a), storeGCCommand(a))
}

func storeShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show where the store is and what it holds",
		Long: "Shows the store that the machines of a cluster share, which is registered in the namespace, or the data\n" +
			"directory of the embedded server.",
		RunE: func(cmd *cobra.Command, _ []string) error { return storeShow(a, cmd.Context()) },
	}
}

func storeShow(a *cli.App, ctx context.Context) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	u, err := engine.UseOfStore(ctx, e)
	if err != nil {
		return err
	}
	if a.JSON {
		return cli.NewLines(a).Write(u)
	}
	use := "this machine only"
	if u.Shared {
		use = "all machines of namespace " + u.Namespace
	}
	fmt.Fprintf(a.Out, "store      %s\nused by    %s\nbranches   %d\n", cli.SafeText(u.URL),
		cli.SafeText(use), u.Branches)
	for _, part := range []struct {
		name  string
		count garbage.Count
	}{{"artifacts", u.Artifacts}, {"playbooks", u.Playbooks}, {"run logs", u.Logs}} {
		fmt.Fprintf(a.Out, "%-10s %s\n", part.name, countText(part.count))
	}
	return nil
}

func countText(c garbage.Count) string {
	return fmt.Sprintf("%s, %s", ace.Count(c.Objects, "object"), system.Bytes(uint64(c.Bytes)))
}

// ImportLine says what was copied from a data directory.
type ImportLine struct {
	Directory string `json:"directory" jsonschema:"data directory"`
	Artifacts int    `json:"artifacts" jsonschema:"copied artifacts, with those that the store had"`
	Bytes     int64  `json:"bytes" jsonschema:"bytes of these artifacts"`
	Branches  int    `json:"branches"`
	Versions  int    `json:"versions"`  // of the branches that the store lacked
	Playbooks int    `json:"playbooks"` // whole playbooks that the store lacked, also those on no branch
	Prompts   int    `json:"prompts"`   // versions of phase prompts that the store lacked
}

func storeImportCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "import DIR",
		Short: "Copy the artifacts and playbooks of a data directory to the shared store",
		Long: "Copies the artifacts, playbooks, their branches and phase prompts of a data directory to the store that\n" +
			"the machines of a cluster share. The directory stays as it is, with its runs. What the store has is not\n" +
			"copied again, so an interrupted import can be repeated. Damaged objects, and branches that have other\n" +
			"versions in the store, are skipped and named; the exit code is then 1.",
		Example: "acescope store import ~/.local/share/acescope --address temporal.example.com:7233",
		RunE: func(cmd *cobra.Command, args []string) error {
			return storeImport(a, cmd.Context(), args[0])
		},
	}
}

func storeImport(a *cli.App, ctx context.Context, dir string) error {
	books := filepath.Join(dir, "playbooks")
	if !cli.IsDir(books) {
		return cli.UsageError("%s is not a data directory: it has no directory playbooks", dir)
	}
	e, err := a.Open(ctx, false)
	if err != nil {
		return err
	}
	if e.SharedStore() == "" {
		return cli.UsageError("there is no shared store to import to; see \"acescope setup --store\"")
	}
	line := ImportLine{Directory: dir}
	var skipped []string
	// failed returns whether an import cannot go on. Otherwise the error is about objects of the directory.
	failed := func(err error) bool {
		if err != nil {
			skipped = append(skipped, cli.OneLine(err))
		}
		return errors.Is(err, bucket.ErrUnavailable) || ctx.Err() != nil
	}
	err = e.Artifacts.Import(ctx, artifact.OpenReadOnly(filepath.Join(dir, "artifacts")),
		func(n int, bytes int64) { line.Artifacts, line.Bytes = n, bytes })
	if failed(err) {
		return err
	}
	from := playbook.OpenStoreReadOnly(books)
	if line.Playbooks, err = e.Books.ImportBooks(ctx, from); failed(err) {
		return err
	}
	branches, err := from.Branches()
	if failed(err) {
		return err
	}
	for _, b := range branches {
		n, err := e.Books.Import(ctx, from, b.Name)
		line.Versions += n
		if failed(err) {
			return err
		}
		if err == nil {
			line.Branches++
		}
	}
	texts, err := prompts.OpenDirReadOnly(ctx, dir, nil)
	if err == nil {
		line.Prompts, err = e.Prompts.Import(ctx, texts)
	}
	if failed(err) {
		return err
	}
	err = cli.Report(a, line, "copied %s (%s) and %s with %s", ace.Count(line.Artifacts, "artifact"),
		system.Bytes(uint64(line.Bytes)), ace.Count(line.Branches, "branch"),
		ace.Count(line.Versions, "new version"))
	if err != nil || len(skipped) == 0 {
		return err
	}
	return fmt.Errorf("not copied: %s", strings.Join(skipped, "; "))
}

// GarbageLine is an object that nothing refers to.
type GarbageLine struct {
	Key     string `json:"key" jsonschema:"key of the object in the store"`
	Bytes   int64  `json:"bytes" jsonschema:"bytes of the object"`
	Deleted bool   `json:"deleted" jsonschema:"it was deleted; false in a dry run"`
}

type GarbageEnd struct {
	DryRun bool `json:"dry_run" jsonschema:"nothing was deleted"`
	garbage.Report
}

type gcFlags struct {
	olderThan   time.Duration
	dryRun, yes bool
}

func storeGCCommand(a *cli.App) *cobra.Command {
	f := &gcFlags{}
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete what no run and no playbook branch refers to",
		Long: "Reads the histories of all runs and deletes the artifacts, playbooks and run logs in the store that no run and\n" +
			"no playbook branch refers to, if they are old enough. How long runs are kept is a setting of the namespace.\n" +
			"Playbook branches are never deleted.",
		Example: "acescope store gc --dry-run\nacescope store gc --older-than 720h --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.olderThan < bucket.MinAge {
				return cli.UsageError("--older-than %s: must be at least %s", f.olderThan, bucket.MinAge)
			}
			return storeGC(a, cmd.Context(), f)
		},
	}
	cmd.Flags().DurationVar(&f.olderThan, "older-than", 7*24*time.Hour, "only what was written this long ago")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be deleted and delete nothing")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func storeGC(a *cli.App, ctx context.Context, f *gcFlags) error {
	e, err := a.Open(ctx, false)
	if err != nil {
		return err
	}
	if !f.dryRun {
		question := runs.Prepared{Title: "delete from the store what nothing refers to", Yes: "delete"}
		if err := a.Confirm(ctx, question, f.yes); err != nil {
			return err
		}
	}
	out := cli.NewLines(a)
	o := garbage.Options{OlderThan: f.olderThan, DryRun: f.dryRun}
	o.Deleted = func(b bucket.Object) {
		if a.JSON || f.dryRun {
			out.Line(GarbageLine{b.Key, b.Size, !f.dryRun}, "%10s  %s  %s", system.Bytes(uint64(b.Size)),
				b.Written.Local().Format(time.DateOnly), b.Key)
			_ = out.Flush() // the report below returns the error
		}
	}
	r, err := engine.CollectGarbage(ctx, e, o, nil)
	if err != nil {
		return err
	}
	verb := "deleted"
	if f.dryRun {
		verb = "would delete"
	}
	out.Line(GarbageEnd{f.dryRun, r}, "%s %s; kept %s in use and %s that may soon be", verb,
		countText(r.Deleted), countText(r.Kept), countText(r.Recent))
	return out.Flush()
}
