package learning

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/cluster"
)

const syncEvery = time.Second

// SyncLine is a file with a block that is current.
type SyncLine struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Branch  string `json:"branch"`
	Hash    string `json:"hash"`
	Bullets int    `json:"bullets"`
	Omitted int    `json:"omitted,omitempty"`
	Changed bool   `json:"changed"`

	Losses []playbook.Loss `json:"losses,omitempty"`
}

type syncFlags struct {
	branch, to   string
	budget       int
	force, watch bool
}

// neutralized is the beginning of a warning about text that an agent might act on.
const neutralized = ": neutralized"

// agentTargets are the values of --to for files of agents.
var agentTargets = []string{"skill", "claude-md", "agents-md"}

func syncCommand(a *cli.App) *cobra.Command {
	var f syncFlags
	cmd := &cobra.Command{
		Use:   "sync DIR|FILE",
		Short: "Keep the playbook in a CLAUDE.md, AGENTS.md or skill current with a branch",
		Long: "Replace the block that \"acescope playbook export\" wrote into a file, if the branch has changed, and\n" +
			"leave the rest of the file alone. The block says which branch and budget it is of, so the flags are\n" +
			"needed only the first time. In a directory, sync finds CLAUDE.md, AGENTS.md, SKILL.md and\n" +
			".claude/skills/*/SKILL.md. A block that was edited by hand is not replaced without --force.",
		Example: "acescope playbook sync . --branch finance-1 --to agents-md --budget 2000\n" +
			"acescope playbook sync .\n" +
			"acescope playbook sync AGENTS.md --watch",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.to != "" && !slices.Contains(agentTargets, f.to):
				return cli.UsageError("--to %s: must be one of %s", f.to, strings.Join(agentTargets, ", "))
			case f.budget < 0:
				return cli.UsageError("--budget %d: must be 0 or more", f.budget)
			case !cmd.Flags().Changed("budget"):
				f.budget = -1
			}
			return syncPlaybook(a, cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.branch, "branch", "", "branch to follow (default: that of the block)")
	cmd.Flags().StringVar(&f.to, "to", "", "form of a new block: "+strings.Join(agentTargets, ", "))
	cmd.Flags().IntVar(&f.budget, "budget", 0, "tokens for the bullets, 0 for all (default: as in the block)")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace a block that was edited by hand")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "follow the branch until interrupted")
	return cmd
}

func syncPlaybook(a *cli.App, ctx context.Context, path string, f syncFlags) error {
	store, err := openStore(a, ctx)
	if err != nil {
		return err
	}
	files, err := blockFiles(path)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if files, err = newBlockFile(path, f); err != nil {
			return err
		}
	}
	for first := true; ; first = false {
		for _, file := range files {
			line, err := syncFile(ctx, store, file, f)
			if err != nil {
				return err
			}
			if first || line.Changed {
				if err := reportSync(a, line); err != nil {
					return err
				}
			}
		}
		if !f.watch {
			return nil
		}
		f.force = false // for the first time only
		if cluster.Sleep(ctx, syncEvery) != nil {
			return nil
		}
		if err := store.Sync(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// blockFiles returns the files with a block at a path: a file, or those in a directory.
func blockFiles(path string) (files []string, err error) {
	candidates := []string{path}
	if cli.IsDir(path) {
		// the pattern is valid
		skills, _ := filepath.Glob(filepath.Join(path, ".claude", "skills", "*", "SKILL.md"))
		candidates = append(skills, filepath.Join(path, "CLAUDE.md"), filepath.Join(path, "AGENTS.md"),
			filepath.Join(path, "SKILL.md"))
	}
	for _, file := range candidates {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		_, _, ok, err := playbook.ReadMark(data)
		if err != nil {
			return nil, cli.UsageError("%s: %w; remove the marks", file, err)
		}
		if ok {
			files = append(files, file)
		}
	}
	return files, nil
}

// newBlockFile returns the file that gets its first block.
func newBlockFile(path string, f syncFlags) ([]string, error) {
	switch {
	case f.branch == "":
		return nil, cli.UsageError("%s has no block of a playbook; name its branch with --branch", path)
	case f.to == "" && cli.IsDir(path):
		return nil, cli.UsageError("%s has no block of a playbook; select a form with --to", path)
	}
	return []string{exportPath(path, f.to)}, nil
}

// syncFile writes the newest version of the branch into the block of a file, if it differs.
func syncFile(ctx context.Context, store *playbook.Store, file string, f syncFlags) (line SyncLine,
	err error) {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return line, err
	}
	mark, asWritten, exists, err := playbook.ReadMark(old)
	switch {
	case err != nil:
		return line, cli.UsageError("%s: %w; remove the marks", file, err)
	case exists && !asWritten && !f.force:
		return line, cli.UsageError(
			"%s: its block was edited by hand, or by an earlier version of acescope; "+
				"move your text out of the block, then replace it with --force", file)
	}
	if f.branch != "" {
		mark.Branch = f.branch
	}
	if f.budget >= 0 {
		mark.Budget = f.budget
	}
	if mark.Branch == "" {
		return line, cli.UsageError("%s: its block does not name a branch; name one with --branch", file)
	}
	branch, err := store.Branch(mark.Branch)
	if errors.Is(err, playbook.ErrNoBranch) {
		return line, cli.NotFound(`%s: no branch %q; run "acescope playbook branches"`, file, mark.Branch)
	}
	if err != nil {
		return line, err
	}
	r, err := storedRef(ctx, store, branch.Name)
	if err != nil {
		return line, err
	}
	book := r.book
	if mark.Budget > 0 {
		book = book.Within(mark.Budget)
	}
	line = SyncLine{file, r.name, r.branch, r.hash, len(book.Bullets),
		len(r.book.Bullets) - len(book.Bullets), false, book.Neutralized()}
	var data []byte
	if skill := f.to == "skill" || filepath.Base(file) == "SKILL.md"; !exists && skill {
		data, _, err = exported(book, r.mark(mark.Budget), file, "skill")
	} else {
		data, err = playbook.WriteBlock(old, book, r.mark(mark.Budget))
	}
	if err != nil || bytes.Equal(data, old) {
		return line, err
	}
	line.Changed = true
	return line, cli.UpdateFile(file, data)
}

func reportSync(a *cli.App, line SyncLine) error {
	runs.ReportLosses(a, line.Name+neutralized, line.Losses)
	state := "is current with"
	if line.Changed {
		state = "now has"
	}
	omitted := ""
	if line.Omitted > 0 {
		omitted = ace.Count(line.Omitted, "bullet") + " omitted, "
	}
	return cli.Report(a, line, "%s %s %s: %s, %sversion %.12s", line.File, state, line.Name,
		ace.Count(line.Bullets, "bullet"), omitted, line.Hash)
}
