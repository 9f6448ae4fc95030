package learning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/learning/playbook"
	"acescope/sources/runs"
)

// refHelp says how a playbook is named on the command line.
const refHelp = "A playbook is named by a branch (its newest version), BRANCH@N (its version N; 0 is its start), six or more digits\n" +
	"of a version's hash, or a file in any known format (- is standard input). @N is a version of the branch that changed last."

// bookRef is a playbook that an argument names: a version of a branch, a version that is no
// branch's, or a file.
type bookRef struct {
	name   string
	book   *playbook.Playbook
	hash   string
	branch string // "" for a file and for a version that belongs to none
	seq    int
	file   bool
	report playbook.Report // of a file
}

// bookStore opens the playbooks of the data directory, with or without a server.
func bookStore(a *cli.App) (*playbook.Store, error) {
	dir, err := a.DataDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "playbooks")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, cli.NotFound("there are no playbooks in %s: an experiment makes some, --data-dir names another place", dir)
	}
	return playbook.OpenStoreReadOnly(path), nil
}

// ref finds the playbook that an argument names; "" is the branch that changed last. A
// branch or version comes before a file of the same name, which ./ tells from it.
func ref(a *cli.App, name string) (*bookRef, *playbook.Store, error) {
	if name == "-" || strings.ContainsAny(name, `/\`) && isFile(name) {
		r, err := fileRef(name)
		return r, nil, err
	}
	store, err := bookStore(a)
	var r *bookRef
	if err == nil {
		r, err = storedRef(store, name)
	}
	if err == nil || cli.ExitCode(err) != cli.ExitNotFound || !isFile(name) {
		return r, store, err
	}
	r, err = fileRef(name)
	return r, store, err
}

// isFile tells whether there is something to read under a name.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// fileRef reads a playbook file; what it says about it goes to standard error.
func fileRef(name string) (*bookRef, error) {
	in := os.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	book, report, err := playbook.Parse(in)
	if errors.Is(err, playbook.ErrNotPlaybook) {
		return nil, cli.UsageError("%s: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &bookRef{name: name, book: book, hash: book.Hash(), file: true, report: report}, nil
}

// storedRef finds a version in the store.
func storedRef(s *playbook.Store, name string) (*bookRef, error) {
	branch, number, numbered := strings.Cut(name, "@")
	if branch == "" {
		newest, err := newestBranch(s)
		if err != nil {
			return nil, err
		}
		branch = newest
	}
	if _, err := s.Branch(branch); err == nil {
		return branchRef(s, branch, number, numbered)
	} else if !errors.Is(err, playbook.ErrNoBranch) {
		return nil, err
	}
	if numbered {
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
	book, err := s.Get(hash)
	if err != nil {
		return nil, err
	}
	r := &bookRef{name: name, book: book, hash: hash}
	r.branch, r.seq, err = s.Place(hash)
	return r, err
}

func branchRef(s *playbook.Store, branch, number string, numbered bool) (*bookRef, error) {
	d, err := s.Branch(branch)
	if err != nil {
		return nil, err
	}
	r := &bookRef{name: branch, branch: branch, seq: d.Versions}
	if numbered {
		if r.seq, err = strconv.Atoi(strings.TrimPrefix(number, "v")); err != nil {
			return nil, cli.UsageError("%s@%s: after the @ stands the number of a version, 0 to %d", branch, number, d.Versions)
		}
	}
	if r.hash, err = s.At(branch, r.seq); err != nil {
		if errors.Is(err, playbook.ErrNotFound) {
			return nil, &cli.ExitError{Code: cli.ExitNotFound, Err: err}
		}
		return nil, err
	}
	r.name = fmt.Sprintf("%s@%d", branch, r.seq)
	r.book, err = s.Get(r.hash)
	return r, err
}

// newestBranch is the branch that changed last.
func newestBranch(s *playbook.Store) (string, error) {
	list, err := s.Branches()
	var newest playbook.Branch
	for _, d := range list {
		if newest.Name == "" || d.At.After(newest.At) {
			newest = d
		}
	}
	if newest.Name == "" && err == nil {
		return "", cli.NotFound("there is no playbook branch yet: an experiment makes one")
	}
	if newest.Name == "" {
		return "", err
	}
	return newest.Name, nil
}

// noSuch says that nothing has a name, and what has one like it.
func noSuch(s *playbook.Store, name string) error {
	list, _ := s.Branches() // those that can be read will do
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	if near := runs.Near(name, names); len(near) > 0 {
		return cli.NotFound("no branch, version or file is called %q; near: %s", name, strings.Join(near, ", "))
	}
	return cli.NotFound("no branch, version or file is called %q; acescope playbook branches shows what there is", name)
}

// history is the past of a version; nil for one that is no branch's.
func (r *bookRef) history(ctx context.Context, s *playbook.Store, watch ...string) (*playbook.History, error) {
	if r.branch == "" || s == nil {
		return nil, nil
	}
	h := playbook.NewHistory(r.branch, watch...)
	return h, s.Read(ctx, h, r.seq)
}

// tell writes what a file's reader had to say to standard error.
func tell(a *cli.App, refs ...*bookRef) {
	for _, r := range refs {
		if r.report.Skipped+r.report.Renamed == 0 {
			continue
		}
		fmt.Fprintf(a.Err, "acescope: %s: %d bullets read, %d left out, %d numbered anew", cli.SafeText(r.name), r.report.Bullets, r.report.Skipped, r.report.Renamed)
		if len(r.report.Warnings) > 0 {
			fmt.Fprintf(a.Err, "; the first: %s", cli.SafeText(r.report.Warnings[0]))
		}
		fmt.Fprintln(a.Err)
	}
}
