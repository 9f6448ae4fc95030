package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/sources/runs"
)

// PlaybookVersion is a stored version of a playbook. Name is BRANCH@N or the digits of the hash by which it
// was found. Branch is "" if no branch has it.
type PlaybookVersion struct {
	Name, Hash, Branch string
	Seq                int
}

// FindPlaybook returns the version that a name designates: a branch (its newest version), BRANCH@N, @N (of
// the branch that changed last) or at least six digits of a hash.
func FindPlaybook(s *playbook.Store, name string) (v PlaybookVersion, err error) {
	branch, number, numbered := strings.Cut(name, "@")
	if branch == "" {
		if branch, err = newestBranch(s); err != nil {
			return v, err
		}
	}
	d, err := s.Branch(branch)
	switch {
	case err == nil:
		return versionOf(s, d, number, numbered)
	case !errors.Is(err, playbook.ErrNoBranch):
		return v, err
	case numbered:
		return v, noSuch(s, branch)
	}
	v.Name = name
	v.Hash, err = s.Resolve(name)
	switch {
	case errors.Is(err, playbook.ErrAmbiguous):
		return v, cli.UsageError("%w", err)
	case errors.Is(err, playbook.ErrNotFound):
		return v, noSuch(s, name)
	case err != nil:
		return v, err
	}
	v.Branch, v.Seq, err = s.Place(v.Hash)
	return v, err
}

// versionOf returns a version of a branch, the newest unless it is numbered.
func versionOf(s *playbook.Store, d playbook.Branch, number string, numbered bool) (v PlaybookVersion,
	err error) {
	v = PlaybookVersion{Branch: d.Name, Seq: d.Versions}
	named := -1
	if numbered && d.Origin != nil {
		if named, err = s.Named(d.Name, number); err != nil {
			return v, err
		}
	}
	if named >= 0 {
		v.Seq = named
	} else if numbered {
		if v.Seq, err = strconv.Atoi(strings.TrimPrefix(number, "v")); err != nil {
			return v, cli.UsageError("%s@%s: after @, give a version number from 0 to %d", d.Name, number,
				d.Versions)
		}
	}
	v.Name = fmt.Sprintf("%s@%d", d.Name, v.Seq)
	v.Hash, err = s.At(d.Name, v.Seq)
	if errors.Is(err, playbook.ErrNotFound) {
		return v, cli.NotFound("%w", err)
	}
	return v, err
}

// newestBranch returns the readable branch that changed last, see [playbooks.Newest].
func newestBranch(s *playbook.Store) (string, error) {
	list, err := s.Branches()
	switch {
	case len(list) > 0:
		return playbooks.Newest(list).Name, nil
	case err != nil:
		return "", err
	}
	return "", cli.NotFound("no playbook branch yet; run an experiment")
}

var errNoPlaybook = ace.NotFound{Kind: "playbook", Hint: `run "acescope playbook branches", or name a file`}

// noSuch returns the error for an unknown name, with similar names.
func noSuch(s *playbook.Store, name string) error {
	list, _ := s.Branches() // similar names among the readable branches are enough
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	return errNoPlaybook.Near(name, runs.Near(name, names))
}

// IsPlaybookPath reports whether a name designates a playbook file even if a branch has that name: standard
// input or the path of a file.
func IsPlaybookPath(name string) bool {
	return name == "-" || strings.ContainsAny(name, `/\`) && IsFile(name)
}

// IsFile reports whether name is a readable file.
func IsFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// PlaybookHash returns the hash of the playbook that --playbook names: a branch, a version or a file, which
// is stored; "" for the empty playbook. A branch or version is preferred to a file of the same name, which ./
// selects.
func PlaybookHash(ctx context.Context, e *engine.Engine, name string) (hash string, r playbook.Report,
	err error) {
	if name == "" {
		return "", r, nil
	}
	if !IsPlaybookPath(name) {
		if err := e.Books.Sync(ctx); err != nil {
			return "", r, err
		}
		v, err := FindPlaybook(e.Books, name)
		if err == nil {
			return v.Hash, r, nil
		}
		if cli.ExitCode(err) != cli.ExitNotFound || !IsFile(name) {
			return "", r, fmt.Errorf("--playbook: %w", err)
		}
	}
	file, err := cli.OpenFile(ctx, name)
	if err != nil {
		return "", r, fmt.Errorf("--playbook: %w", err)
	}
	defer file.Close()
	book, r, err := playbook.Parse(file)
	if err != nil {
		return "", r, cli.UsageError("--playbook %s: %w", name, err)
	}
	hash, err = e.Books.Put(ctx, book)
	return hash, r, err
}

// ReportParsed writes to standard error which bullets of a playbook file were skipped or renumbered, and a
// line for each field of which something was not read.
func ReportParsed(a *cli.App, name string, r playbook.Report) {
	ReportLosses(a, name+": not read", r.Losses)
	if r.Skipped+r.Renamed == 0 {
		return
	}
	first := ""
	if len(r.Warnings) > 0 {
		first = "; first warning: " + r.Warnings[0]
	}
	cli.Warn(a, "%s: %s read, %d skipped, %d renumbered%s", name, ace.Count(r.Bullets, "bullet"),
		r.Skipped, r.Renamed, first)
}

// ReportLosses writes a line to standard error for each field that was lost.
func ReportLosses(a *cli.App, what string, losses []playbook.Loss) {
	for _, l := range losses {
		cli.Warn(a, "%s: %s", what, l)
	}
}
