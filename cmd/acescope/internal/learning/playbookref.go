package learning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/learning/playbook"
	"acescope/sources/runs"
)

// refHelp explains how commands name a playbook.
const refHelp = "Name a playbook by its branch (the newest version), BRANCH@N (version N; 0 is the start), at least six\n" +
	"digits of a version's hash, or a file in any known format (- is standard input). @N is version N of the branch\n" +
	"that changed last."

// playbookRef is a playbook that an argument names: a version of a branch, a version without a branch, or a file.
type playbookRef struct {
	name   string
	book   *playbook.Playbook
	hash   string
	branch string // "" for a file and for a version without a branch
	seq    int
	file   bool
	report playbook.Report // for a file
}

// openStore opens the playbooks for reading: those of the data directory, which needs no server, or those of a cluster.
func openStore(a *cli.App, ctx context.Context) (*playbook.Store, error) {
	if a.Cluster() != nil {
		e, _, err := a.Connect(ctx, engine.Options{LookOnly: true}) // until the process ends
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
		return nil, cli.NotFound("no playbooks in %s; run an experiment or select another directory with --data-dir", dir)
	}
	return playbook.OpenStoreReadOnly(path), nil
}

// findRef finds the playbook that an argument names; "" is the branch that changed last. A branch or version is
// preferred to a file of the same name, which ./ selects.
func findRef(a *cli.App, ctx context.Context, name string) (*playbookRef, *playbook.Store, error) {
	if name == "-" || strings.ContainsAny(name, `/\`) && isFile(name) {
		r, err := fileRef(ctx, name)
		return r, nil, err
	}
	store, err := openStore(a, ctx)
	var r *playbookRef
	if err == nil {
		r, err = storedRef(ctx, store, name)
	}
	if err == nil || cli.ExitCode(err) != cli.ExitNotFound || !isFile(name) {
		return r, store, err
	}
	r, err = fileRef(ctx, name)
	return r, store, err
}

// isFile reports whether name is a readable file.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
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
	branch, number, numbered := strings.Cut(name, "@")
	if branch == "" {
		newest, err := newestBranch(s)
		if err != nil {
			return nil, err
		}
		branch = newest
	}
	d, err := s.Branch(branch)
	switch {
	case err == nil:
		return branchRef(ctx, s, d, number, numbered)
	case !errors.Is(err, playbook.ErrNoBranch):
		return nil, err
	case numbered:
		return nil, noSuch(s, branch)
	}
	hash, err := s.Resolve(name)
	switch {
	case errors.Is(err, playbook.ErrAmbiguous):
		return nil, cli.UsageError("%w", err)
	case errors.Is(err, playbook.ErrNotFound):
		return nil, noSuch(s, name)
	case err != nil:
		return nil, err
	}
	book, err := s.Get(ctx, hash)
	if err != nil {
		return nil, err
	}
	r := &playbookRef{name: name, book: book, hash: hash}
	r.branch, r.seq, err = s.Place(hash)
	return r, err
}

func branchRef(
	ctx context.Context, s *playbook.Store, d playbook.Branch, number string, numbered bool,
) (r *playbookRef, err error) {
	r = &playbookRef{branch: d.Name, seq: d.Versions}
	if numbered {
		if r.seq, err = strconv.Atoi(strings.TrimPrefix(number, "v")); err != nil {
			return nil, cli.UsageError("%s@%s: after @, give a version number from 0 to %d", d.Name, number, d.Versions)
		}
	}
	r.name = fmt.Sprintf("%s@%d", d.Name, r.seq)
	r.hash, err = s.At(d.Name, r.seq)
	if errors.Is(err, playbook.ErrNotFound) {
		return nil, cli.NotFound("%w", err)
	}
	if err != nil {
		return nil, err
	}
	r.book, err = s.Get(ctx, r.hash)
	return r, err
}

// newestBranch returns the readable branch that changed last.
func newestBranch(s *playbook.Store) (string, error) {
	list, err := s.Branches()
	switch {
	case len(list) > 0:
		return slices.MaxFunc(list, func(a, b playbook.Branch) int { return a.At.Compare(b.At) }).Name, nil
	case err != nil:
		return "", err
	}
	return "", cli.NotFound("no playbook branch yet; run an experiment")
}

// noSuch returns the error for an unknown name, with similar names.
func noSuch(s *playbook.Store, name string) error {
	list, _ := s.Branches() // similar names among the readable branches are enough
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	if near := runs.Near(name, names); len(near) > 0 {
		return cli.NotFound("no branch, version or file %q; near: %s", name, strings.Join(near, ", "))
	}
	return cli.NotFound(`no branch, version or file %q; run "acescope playbook branches"`, name)
}

// history returns the history of a version, nil for a version without a branch.
func (r *playbookRef) history(ctx context.Context, s *playbook.Store, watch ...string) (*playbook.History, error) {
	if r.branch == "" || s == nil {
		return nil, nil
	}
	h := playbook.NewHistory(r.branch, watch...)
	return h, s.Read(ctx, h, r.seq)
}

// reportFiles writes to standard error which bullets of playbook files were skipped or renumbered.
func reportFiles(a *cli.App, refs ...*playbookRef) {
	for _, r := range refs {
		if r.report.Skipped+r.report.Renamed == 0 {
			continue
		}
		fmt.Fprintf(a.Err, "acescope: %s: %d bullets read, %d skipped, %d renumbered",
			cli.SafeText(r.name), r.report.Bullets, r.report.Skipped, r.report.Renamed)
		if len(r.report.Warnings) > 0 {
			fmt.Fprintf(a.Err, "; first warning: %s", cli.SafeText(r.report.Warnings[0]))
		}
		fmt.Fprintln(a.Err)
	}
}
