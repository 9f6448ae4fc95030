package learning

import (
	"cmp"
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
	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
)

func PlaybookCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "playbook",
		Short: "Show, compare and check playbooks",
		Long: "Show, compare and check the playbooks of the data directory, or playbook files.\n\n" +
			refHelp,
	}, branchesCommand(a), logCommand(a), showCommand(a), exportCommand(a), syncCommand(a), diffCommand(a),
		blameCommand(a),
		healthCommand(a), runs.AblateCommand(a), runs.EffectsCommand(a), runs.PruneCommand(a))
}

func branchesCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:        "branches",
		SuggestFor: []string{"list"},
		Short:      "List the branches of playbook versions, one for each experiment",
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := openStore(a, cmd.Context())
			if err != nil {
				return err
			}
			branches, readErr := store.Branches() // with an error, the readable branches
			header := "BRANCH\tVERSIONS\tHEAD\tCHANGED"
			err = cli.WriteRows(a, slices.Values(branches), header, func(b playbook.Branch) []any {
				return []any{b.Name, b.Versions, fmt.Sprintf("%.12s", b.Head),
					b.At.Local().Format(time.DateTime)}
			})
			return cmp.Or(readErr, err)
		},
	}
}

func logCommand(a *cli.App) *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use:   "log [BRANCH]",
		Short: "List the versions of a branch, newest first: the task, its changes and their reason",
		Example: "acescope playbook log finance-1 --limit 20\n" +
			"acescope playbook log --json | jq -r 'select(.removed > 0) | [.seq, .task_id, .rationale] | @tsv'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return playbookLog(a, cmd.Context(), cli.Arg(args, 0), limit)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "maximum number of versions (default all)")
	return cmd
}

func playbookLog(a *cli.App, ctx context.Context, name string, limit int) error {
	if limit < 0 {
		return cli.UsageError("--limit %d: must be above 0", limit)
	}
	store, err := openStore(a, ctx)
	if err != nil {
		return err
	}
	ref, err := storedRef(ctx, store, name)
	if err != nil {
		return err
	}
	if ref.branch == "" {
		return cli.NotFound("%s is not a version of a branch", name)
	}
	oldest := 1
	if limit > 0 {
		oldest = max(ref.seq-limit+1, 1)
	}
	page, err := store.Page(ref.branch, oldest, ref.seq)
	if err != nil {
		return err
	}
	slices.Reverse(page)
	header := "VERSION\tHASH\tTIME\tTASK\tΔ\tTAGS\tBULLETS\tWHY"
	return cli.WriteRows(a, slices.Values(page), header, func(v playbook.Version) []any {
		return []any{
			v.Seq, fmt.Sprintf("%.12s", v.Hash), v.At.Local().Format(time.DateTime), v.TaskID,
			changeCounts(v), v.Tagged, v.Bullets, brief(v.Rationale, 100),
		}
	})
}

// changeCounts shows the accepted operations other than tags: "+2 ~1 -0", and "&1" for a MERGE.
func changeCounts(v playbook.Version) string {
	s := fmt.Sprintf("+%d ~%d -%d", v.Added, v.Updated, v.Removed)
	if v.Merged > 0 {
		s += fmt.Sprintf(" &%d", v.Merged)
	}
	return s
}

// brief returns at most n characters of a text as one line.
func brief(s string, n int) string {
	runes := []rune(cli.OneLine(fmt.Errorf("%.2000s", s)))
	if len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return string(runes)
}

func showCommand(a *cli.App) *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:   "show [VERSION|BRANCH|FILE]",
		Short: "Write a playbook",
		Long:  "Write a playbook.\n\n" + refHelp,
		Example: "acescope playbook show finance-1 > best.txt\n" +
			"acescope playbook show finance-1@40 --format skillbook\n" +
			"acescope playbook show other.json --format text",
		RunE: func(cmd *cobra.Command, args []string) error {
			return playbookShow(a, cmd.Context(), cli.Arg(args, 0), format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "",
		"text (ace-agent/ace, the default), skillbook (kayba JSON) or json (canonical: its SHA-256 is the version)")
	return cmd
}

type PlaybookLine struct {
	Name    string            `json:"name" jsonschema:"how the argument was understood"`
	Hash    string            `json:"hash"`
	Branch  string            `json:"branch,omitempty"`
	Seq     *int              `json:"seq,omitempty"`
	Report  *playbook.Report  `json:"report,omitempty" jsonschema:"of a file: what was read"`
	NextID  int               `json:"next_id" jsonschema:"number of the next new bullet"`
	Bullets []playbook.Bullet `json:"bullets" jsonschema:"bullets"`
	// Sections lists all sections if one has no bullet.
	Sections []string `json:"sections,omitempty"`
}

func playbookShow(a *cli.App, ctx context.Context, name, format string) error {
	switch {
	case a.JSON && format != "":
		return cli.UsageError("--json and --format exclude each other")
	case !slices.Contains([]string{"", "text", "skillbook", "json"}, format):
		return cli.UsageError("--format %s: must be text, skillbook or json", format)
	}
	r, _, err := findRef(a, ctx, name)
	if err != nil {
		return err
	}
	reportFiles(a, r)
	switch {
	case a.JSON:
		line := PlaybookLine{
			Name: r.name, Hash: r.hash, NextID: r.book.NextID,
			Bullets: append([]playbook.Bullet{}, r.book.Bullets...), Sections: r.book.Sections,
		}
		if r.branch != "" {
			line.Branch, line.Seq = r.branch, &r.seq
		}
		if r.file {
			line.Report = &r.report
		}
		return cli.NewLines(a).Write(line)
	case format == "skillbook":
		return playbook.WriteSkillbook(cli.Exact(a.Out), r.book)
	case format == "json":
		_, err := cli.Exact(a.Out).Write(r.book.Canonical())
		return err
	}
	runs.ReportLosses(a, r.name+": not written", r.book.Losses(playbook.FormatText))
	return playbook.WriteText(cli.Exact(a.Out), r.book)
}

func diffCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "diff BRANCH|VERSION|FILE BRANCH|VERSION|FILE",
		Short: "Compare two playbooks; exits 4 if they differ",
		Long: "Compare two playbooks, bullet by bullet and word by word. Exits 0 if they are equal.\n\n" +
			refHelp,
		Example: "acescope playbook diff finance-1@0 finance-1\n" +
			"acescope playbook diff before.txt after.json --json | jq 'select(.type == \"removed\")'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return DiffPlaybooks(a, cmd.Context(), args[0], args[1])
		},
	}
}

// DiffLine is a bullet that only one of the playbooks has.
type DiffLine struct {
	Type   string          `json:"type"` // added or removed
	Bullet playbook.Bullet `json:"bullet" jsonschema:"bullet"`
}

type DiffEnd struct {
	A         string `json:"a"`
	B         string `json:"b"`
	HashA     string `json:"hash_a"`
	HashB     string `json:"hash_b"`
	Added     int    `json:"added" jsonschema:"bullets only in B"`
	Removed   int    `json:"removed" jsonschema:"bullets only in A"`
	Changed   int    `json:"changed" jsonschema:"bullets that differ"`
	Unchanged int    `json:"unchanged" jsonschema:"bullets that are equal"`
}

func (e DiffEnd) String() string {
	return fmt.Sprintf("%d added, %d removed, %d changed, %d unchanged", e.Added, e.Removed, e.Changed,
		e.Unchanged)
}

// DiffPlaybooks compares two playbooks. A difference is an error with exit code 4.
func DiffPlaybooks(a *cli.App, ctx context.Context, nameA, nameB string) error {
	from, _, err := findRef(a, ctx, nameA)
	if err != nil {
		return err
	}
	to, _, err := findRef(a, ctx, nameB)
	if err != nil {
		return err
	}
	reportFiles(a, from, to)
	d := playbook.Diff(from.book, to.book)
	end := DiffEnd{from.name, to.name, from.hash, to.hash,
		len(d.Added), len(d.Removed), len(d.Changed), d.Same}
	out := cli.NewLines(a)
	for _, b := range d.Removed {
		out.Line(DiffLine{"removed", b}, "- [%s] %s", b.ID, b.Content)
	}
	for _, c := range d.Changed {
		var what []string
		if c.From != "" {
			what = append(what, "was "+c.From)
		}
		if c.Moved {
			what = append(what, "moved from "+c.Before.Section+" to "+c.After.Section)
		}
		if c.Extra {
			what = append(what, "other extra fields")
		}
		if c.Counts {
			what = append(what, fmt.Sprintf("helpful %d→%d harmful %d→%d neutral %d→%d", c.Before.Helpful,
				c.After.Helpful, c.Before.Harmful, c.After.Harmful, c.Before.Neutral, c.After.Neutral))
		}
		out.Line(c, "~ [%s] %s", c.ID, strings.Join(what, ", "))
		if c.Content && !a.JSON {
			out.Printf("    %s", wordDiff(c.Words))
		}
	}
	for _, b := range d.Added {
		out.Line(DiffLine{"added", b}, "+ [%s] %s", b.ID, b.Content)
	}
	out.Line(end, "%s", end)
	if err := out.Flush(); err != nil || d.Empty() {
		return err
	}
	return cli.Diverged("%s and %s differ: %v", from.name, to.name, end)
}

// wordDiff marks removed words as [-…-] and added words as {+…+}, in one line.
func wordDiff(list []playbook.Hunk) string {
	var b strings.Builder
	for _, h := range list {
		switch h.Kind {
		case playbook.HunkAdded:
			b.WriteString("{+" + cli.SafeText(h.Text) + "+}")
		case playbook.HunkRemoved:
			b.WriteString("[-" + cli.SafeText(h.Text) + "-]")
		default:
			b.WriteString(cli.SafeText(h.Text))
		}
	}
	return b.String()
}

func healthCommand(a *cli.App) *cobra.Command {
	accuracy := false
	cmd := &cobra.Command{
		Use:   "health [VERSION|BRANCH|FILE]",
		Short: "Check a playbook and advise what to change",
		Long: "Look for near-duplicates, harmful bullets, unused bullets, growth without edits, collapses, erosion,\n" +
			"rejected operations and, with --accuracy, votes that rise while accuracy does not, tasks without a\n" +
			"correct answer, and a gap between the tasks and the held-out items; of an imported run folder, these\n" +
			"are in its files. Each finding states how often a healthy playbook has it by chance.\n\n" +
			refHelp,
		Example: "acescope playbook health finance-1 --accuracy\n" +
			"acescope playbook health best.txt --json | jq 'select(.severity == \"error\")'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return playbookHealth(a, cmd.Context(), cli.Arg(args, 0), accuracy)
		},
	}
	cmd.Flags().BoolVar(&accuracy, "accuracy", false,
		"also check the verdicts on tasks and the evaluations (needs the server)")
	return cmd
}

// HealthEnd ends the output of playbook health: it says what was checked.
type HealthEnd struct {
	Name      string                     `json:"name"`
	Hash      string                     `json:"hash"`
	Branch    string                     `json:"branch,omitempty"`
	Seq       *int                       `json:"seq,omitempty"`
	Bullets   int                        `json:"bullets" jsonschema:"bullets"`
	Findings  int                        `json:"findings" jsonschema:"findings"`
	Dropped   int                        `json:"dropped,omitempty" jsonschema:"findings of a kind beyond 200"`
	Judged    int                        `json:"judged"`
	Checked   []playbook.FindingKind     `json:"checked" jsonschema:"kinds that were checked"`
	Unchecked []playbook.UncheckedReason `json:"unchecked"`

	FalseAlarms map[playbook.FindingKind]float64 `json:"false_alarms"`

	Totals *playbook.Totals `json:"totals,omitempty" jsonschema:"counts over all versions"`
}

func playbookHealth(a *cli.App, ctx context.Context, name string, accuracy bool) error {
	ref, store, err := findRef(a, ctx, name)
	if err != nil {
		return err
	}
	reportFiles(a, ref)
	h, err := ref.history(ctx, store)
	if err != nil {
		return err
	}
	var known playbook.Evidence
	if accuracy {
		if known, err = readEvidence(a, ctx, ref); err != nil {
			return err
		}
	}
	health := playbook.Check(ref.book, h, known)
	end := HealthEnd{
		Name: ref.name, Hash: ref.hash, Bullets: health.Bullets,
		Findings: len(health.Findings) + health.Dropped, Dropped: health.Dropped, Judged: len(known.Outcomes),
		Checked: health.Checked, Unchecked: health.Unchecked, FalseAlarms: health.FalseAlarms,
	}
	if h != nil {
		totals := h.Totals()
		end.Branch, end.Seq, end.Totals = ref.branch, &ref.seq, &totals
	}
	out := cli.NewLines(a)
	for _, f := range health.Findings {
		out.Line(f, "%-7s %-20s %s", f.Severity, f.Kind, f.Text)
		if !a.JSON {
			out.Printf("%29s%s %s", "", f.Advice, f.Chance())
		}
	}
	for _, u := range health.Unchecked {
		if !a.JSON {
			out.Printf("%-7s %-20s %s", "-", u.Kind, u.Why)
		}
	}
	out.Line(end, "%s: %s, %s", ref.name, ace.Count(end.Bullets, "bullet"),
		ace.Count(end.Findings, "finding"))
	return out.Flush()
}

// readEvidence reads the verdicts on the tasks of a branch and the evaluations, up to the version of ref,
// from the server and from what was imported.
func readEvidence(a *cli.App, ctx context.Context, ref *playbookRef) (known playbook.Evidence, err error) {
	if ref.branch == "" {
		return known, cli.UsageError("--accuracy: %s belongs to no branch, so it has no tasks", ref.name)
	}
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return known, err
	}
	known, err = playbooks.ReadEvidence(ctx, e.Client, e.Books, ref.branch)
	if err != nil {
		return known, err
	}
	page, err := e.Books.Page(ref.branch, ref.seq, ref.seq+1)
	if err != nil || ref.seq == 0 || len(page) < 2 {
		return known, err
	}
	return playbooks.UpTo(known, ref.hash, page[0].At), nil
}

// refHelp explains how commands name a playbook.
const refHelp = "Name a playbook by its branch (the newest version), BRANCH@N (version N; 0 is the start), at least six\n" +
	"digits of a version's hash, or a file in any known format (- is standard input). @N is version N of the branch\n" +
	"that changed last."

// playbookRef is a playbook that an argument names: a version of a branch, a version without a branch, or a
// file.
type playbookRef struct {
	name   string
	book   *playbook.Playbook
	hash   string
	branch string // "" for a file and for a version without a branch
	seq    int
	file   bool
	report playbook.Report // for a file
}

// openStore opens the playbooks for reading: those of the data directory, which needs no server, or those of
// a cluster.
func openStore(a *cli.App, ctx context.Context) (*playbook.Store, error) {
	if a.Cluster() != nil {
		e, err := a.OpenReadOnly(ctx)
		if err != nil {
			return nil, err
		}
		return e.Books, e.Books.Sync(ctx)
	}
	dir, err := a.DataDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "playbooks")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, cli.NotFound(
			"no playbooks in %s; run an experiment or select another directory with --data-dir", dir)
	}
	return playbook.OpenStoreReadOnly(path), nil
}

// findRef finds the playbook that an argument names; "" is the branch that changed last. A branch or version
// is preferred to a file of the same name, which ./ selects.
func findRef(a *cli.App, ctx context.Context, name string) (*playbookRef, *playbook.Store, error) {
	if runs.IsPlaybookPath(name) {
		r, err := fileRef(ctx, name)
		return r, nil, err
	}
	store, err := openStore(a, ctx)
	var r *playbookRef
	if err == nil {
		r, err = storedRef(ctx, store, name)
	}
	if err == nil || cli.ExitCode(err) != cli.ExitNotFound || !runs.IsFile(name) {
		return r, store, err
	}
	r, err = fileRef(ctx, name)
	return r, store, err
}

// fileRef reads a playbook file, or standard input for "-".
func fileRef(ctx context.Context, name string) (*playbookRef, error) {
	in, err := cli.OpenFile(ctx, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	book, report, err := playbook.Parse(in)
	if errors.Is(err, playbook.ErrNotPlaybook) {
		return nil, cli.UsageError("%s: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &playbookRef{name: name, book: book, hash: book.Hash(), file: true, report: report}, nil
}

// storedRef finds a version in the store by branch, number or hash.
func storedRef(ctx context.Context, s *playbook.Store, name string) (*playbookRef, error) {
	v, err := runs.FindPlaybook(s, name)
	if err != nil {
		return nil, err
	}
	r := &playbookRef{name: v.Name, hash: v.Hash, branch: v.Branch, seq: v.Seq}
	r.book, err = s.Get(ctx, v.Hash)
	return r, err
}

// history returns the history of a version, nil for a version without a branch.
func (r *playbookRef) history(ctx context.Context, s *playbook.Store, watch ...string) (*playbook.History,
	error) {
	if r.branch == "" || s == nil {
		return nil, nil
	}
	h := playbook.NewHistory(r.branch, watch...)
	return h, s.Read(ctx, h, r.seq)
}

// reportFiles writes to standard error what was not read of playbook files.
func reportFiles(a *cli.App, refs ...*playbookRef) {
	for _, r := range refs {
		runs.ReportParsed(a, r.name, r.report)
	}
}
