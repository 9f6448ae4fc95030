package history

import (
	"context"
	"path/filepath"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
)

// openedWalk is a history with its playbooks and the store of its artifacts. Close ends the connection.
type openedWalk struct {
	*histories.Walk
	cli.RunHistory
	deps cluster.Deps
}

// openWalk reads the history that an argument names, of a file or of a run on the server, with its playbooks.
func openWalk(a *cli.App, ctx context.Context, name, runID string) (w openedWalk, err error) {
	path, _, err := cli.SplitHistoryName(name)
	if err != nil {
		return w, err
	}
	if cli.IsHistoryFile(path) {
		w.deps.Artifact = cli.FileArtifacts(a)
		w.RunHistory, err = cli.HistoryOf(a, ctx, name, runID)
	} else {
		e, err := a.OpenReadOnly(ctx)
		if err != nil {
			return w, err
		}
		w.deps = cluster.Deps{Client: e.Client, Namespace: e.Namespace(), Playbooks: e.Books,
			Artifact: e.Artifacts.Get}
		w.RunHistory, err = cli.ReadRun(ctx, e, name, runID)
	}
	if err != nil {
		return w, err
	}
	w.Walk = histories.NewWalk(w.RunHistory.Events, w.Types(), nil)
	given, before := w.Hashes()
	w.Books = histories.ReadBooks(ctx, w.deps, given, before)
	return w, nil
}

// WalkLine is a page with the events of a run that was written.
type WalkLine ExportLine

func exportWalk(a *cli.App, ctx context.Context, name string, f exportFlags) error {
	w, err := openWalk(a, ctx, name, f.run)
	if err != nil {
		return err
	}
	page, err := w.Page(ctx, w.deps)
	if err != nil {
		return err
	}
	if err := cli.UpdateFile(f.walk, page); err != nil {
		return err
	}
	line := WalkLine{f.walk, w.About.WorkflowID, w.About.RunID, w.Len(), len(page)}
	if err := cli.Report(a, line, "%s  %s, %s", f.walk, ace.Count(line.Events, "event"),
		ace.Count(line.Bytes, "byte")); err != nil {
		return err
	}
	return w.ReadErr
}

// isPage reports whether a file name is that of a page, which a user may expect of -o.
func isPage(file string) bool {
	ext := strings.ToLower(filepath.Ext(file))
	return ext == ".html" || ext == ".htm"
}
