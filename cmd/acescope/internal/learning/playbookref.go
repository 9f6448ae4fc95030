package learning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/learning/playbook"
)

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
