package learning

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	"acescope/engine/learning/ablation"
	"acescope/engine/learning/playbook"
	"acescope/sources/cluster"
)

// ExportLine is an exported playbook. Bullets, Tokens and Omitted describe the export, Hash the version.
type ExportLine struct {
	Name    string `json:"name" jsonschema:"playbook as it was named"`
	Hash    string `json:"hash"`
	Bullets int    `json:"bullets" jsonschema:"written bullets"`
	File    string `json:"file,omitempty"`
	To      string `json:"to,omitempty"`
	Tokens  int    `json:"tokens" jsonschema:"estimated tokens of the written bullets, at four bytes each"`
	Omitted int    `json:"omitted,omitempty"`

	Losses []playbook.Loss `json:"losses,omitempty"`
}

// exportTargets are the values of --to, the first of which is the default.
var exportTargets = playbook.ExportForms()

type exportFlags struct {
	to        string
	budget    int
	ablation  string
	minEffect float64 // in percentage points
}

func exportCommand(a *cli.App) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export VERSION|BRANCH|FILE [PATH]",
		Short: "Write a playbook to a file at once, and print its hash; without a file, only print its hash",
		Long: "Write a playbook to a file, which is replaced at once. Without a file, only print the hash of the\n" +
			"version. --to selects the form:\n\n" +
			"  json       canonical JSON; its SHA-256 is the version\n" +
			"  ace        text of ace-agent/ace, with all its sections\n" +
			"  text       the same, with the playbook's own sections only\n" +
			"  skillbook  JSON of kayba-ai/agentic-context-engine\n" +
			"  skill      a skill for coding agents: PATH is its folder, which gets a SKILL.md\n" +
			"  claude-md  a block in a CLAUDE.md, or in the CLAUDE.md of a directory PATH\n" +
			"  agents-md  a block in an AGENTS.md, or in the AGENTS.md of a directory PATH\n\n" +
			"The next export replaces the block and leaves the rest of the file alone.\n\n" + refHelp,
		Example: "acescope playbook export finance-1 playbook.json\n" +
			"acescope playbook export finance-1@40 --json | jq -r .hash\n" +
			"acescope playbook export finance-1 .claude/skills/finance --to skill\n" +
			"acescope playbook export finance-1 AGENTS.md --to agents-md --budget 2000",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			r, _, err := findRef(a, cmd.Context(), args[0])
			if err != nil {
				return err
			}
			reportFiles(a, r)
			return r.export(a, cmd.Context(), cli.Arg(args, 1), f)
		},
	}
	cmd.Flags().StringVar(&f.to, "to", exportTargets[0], "form: "+strings.Join(exportTargets, ", "))
	cmd.Flags().IntVar(&f.budget, "budget", 0,
		"write only the most helpful bullets, of at most so many tokens (estimated as four bytes each; default all)")
	cmd.Flags().Float64Var(&f.minEffect, "min-effect", 0,
		"with --ablation, write only bullets whose measured effect is at least so many percentage points")
	cmd.Flags().StringVar(&f.ablation, "ablation", "",
		"leave out the bullets that this ablation of the version does not show to have --min-effect")
	return cmd
}

func (f *exportFlags) check(cmd *cobra.Command) error {
	switch {
	case !slices.Contains(exportTargets, f.to):
		return cli.UsageError("--to %s: must be one of %s", f.to, strings.Join(exportTargets, ", "))
	case cmd.Flags().Changed("min-effect") && f.ablation == "":
		return cli.UsageError(
			"--min-effect: name the experiment of \"acescope playbook ablate\" with --ablation")
	case cmd.Flags().Changed("budget") && f.budget < 1:
		return cli.UsageError("--budget %d: must be above 0", f.budget)
	}
	return nil
}

// ExportPlaybook writes a version of the store to a file in a form. It returns the output of the command,
// with the absolute path, followed by one line per warning.
func ExportPlaybook(a *cli.App, ctx context.Context, s *playbook.Store, name, path,
	to string) (lines []string, err error) {
	r, err := storedRef(ctx, s, name)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	var out, warnings bytes.Buffer
	quiet := a.Quiet(&warnings)
	quiet.Out = &out
	if err := r.export(quiet, ctx, path, exportFlags{to: to}); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(out.String()+warnings.String()), "\n"), nil
}

// export writes the playbook to a file, or prints its hash.
func (r *playbookRef) export(a *cli.App, ctx context.Context, path string, f exportFlags) (err error) {
	book := r.book
	if f.ablation != "" {
		if book, err = withEffect(a, ctx, r, f); err != nil {
			return err
		}
	}
	if f.budget > 0 {
		book = book.Within(f.budget)
	}
	line := ExportLine{
		Name: r.name, Hash: r.hash, Bullets: len(book.Bullets), Tokens: book.Tokens(),
		Omitted: len(r.book.Bullets) - len(book.Bullets), Losses: r.report.Losses,
	}
	if path == "" {
		return cli.Report(a, line, "%s", line.Hash)
	}
	line.File, line.To = exportPath(path, f.to), f.to
	data, losses, err := exported(book, r.mark(f.budget), line.File, f.to)
	if err != nil {
		return err
	}
	what := ": not written"
	if slices.Contains(agentTargets, f.to) {
		what = neutralized
	}
	runs.ReportLosses(a, r.name+what, losses)
	line.Losses = slices.Concat(line.Losses, losses)
	if err := cli.UpdateFile(line.File, data); err != nil {
		return fmt.Errorf("write the playbook: %w", err)
	}
	omitted := ""
	if line.Omitted > 0 {
		omitted = fmt.Sprintf(", %d omitted", line.Omitted)
	}
	return cli.Report(a, line, "%s: %s%s, version %.12s", line.File, ace.Count(line.Bullets, "bullet"),
		omitted, line.Hash)
}

// withEffect returns the bullets that an ablation of the version measured and that have the least effect. A
// bullet that was never cited or not measured is left out.
func withEffect(a *cli.App, ctx context.Context, r *playbookRef, f exportFlags) (*playbook.Playbook, error) {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	g, err := runs.ReadEvaluations(ctx, e, f.ablation)
	switch {
	case err != nil:
		return nil, err
	case g.Input.Ablation == nil:
		return nil, cli.UsageError(
			"--ablation %s: it is no ablation; start one with \"acescope playbook ablate\"",
			f.ablation)
	case g.Input.PlaybookHash != r.hash:
		return nil, cli.UsageError("--ablation %s: it measured version %.12s, not %s, which is %.12s",
			f.ablation, g.Input.PlaybookHash, r.name, r.hash)
	}
	effects, _, err := g.Effects(ctx, e.Books, e.Artifacts.Get)
	if err != nil {
		return nil, err
	}
	book := *r.book
	book.Bullets = slices.DeleteFunc(slices.Clone(book.Bullets), func(b playbook.Bullet) bool {
		return !slices.ContainsFunc(effects, func(x ablation.Effect) bool {
			return x.Kind == ace.TrialBullet && x.Name == b.ID && x.Difference != nil &&
				100**x.Difference >= f.minEffect
		})
	})
	return &book, nil
}

func (r *playbookRef) mark(budget int) playbook.Mark {
	return playbook.Mark{Name: r.name, Branch: r.branch, Budget: budget}
}

func exportPath(path, to string) string {
	switch isDir := cli.IsDir(path); {
	case to == "skill" && filepath.Base(path) != "SKILL.md":
		return filepath.Join(path, "SKILL.md")
	case to == "claude-md" && isDir:
		return filepath.Join(path, "CLAUDE.md")
	case to == "agents-md" && isDir:
		return filepath.Join(path, "AGENTS.md")
	}
	return path
}

// exported returns the new content of a file, and the parts of the playbook that the form cannot contain.
func exported(
	book *playbook.Playbook, m playbook.Mark, file, to string,
) (data []byte, losses []playbook.Loss, err error) {
	var out bytes.Buffer
	switch to {
	case "json":
		return book.Canonical(), nil, nil
	case "skillbook":
		err = playbook.WriteSkillbook(&out, book)
		return out.Bytes(), nil, err
	case "ace":
		err = playbook.WriteText(&out, book.WithReferenceSections())
		return out.Bytes(), book.Losses(playbook.FormatText), err
	case "text":
		err = playbook.WriteText(&out, book)
		return out.Bytes(), book.Losses(playbook.FormatText), err
	}
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if to == "skill" {
		folder, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			return nil, nil, err
		}
		data, err = playbook.WriteSkill(old, book, m, filepath.Base(folder))
		if errors.Is(err, playbook.ErrNotOurs) {
			err = cli.UsageError("%s: %w; remove it or select another folder", file, err)
		}
		return data, book.Neutralized(), err
	}
	data, err = playbook.WriteBlock(old, book, m)
	if errors.Is(err, playbook.ErrBlock) {
		err = cli.UsageError("%s: %w; remove the marks", file, err)
	}
	return data, book.Neutralized(), err
}

const syncEvery = time.Second

// SyncLine is a file with a block that is current.
type SyncLine struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Branch  string `json:"branch" jsonschema:"branch"`
	Hash    string `json:"hash" jsonschema:"hash of the version"`
	Bullets int    `json:"bullets" jsonschema:"bullets in the block"`
	Omitted int    `json:"omitted,omitempty" jsonschema:"bullets beyond the budget"`
	Changed bool   `json:"changed" jsonschema:"whether the file was written"`

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
