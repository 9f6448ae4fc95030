package history

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// verifyJob reads the histories of one source.
type verifyJob func(context.Context) []cli.RunHistory

// until reads until ctx ends: nothing else can end the reading of a pipe that nobody writes to.
func (read verifyJob) until(ctx context.Context) []cli.RunHistory {
	done := make(chan []cli.RunHistory, 1)
	go func() { done <- read(ctx) }()
	select {
	case list := <-done:
		return list
	case <-ctx.Done():
		return nil
	}
}

// verifyPlan is what is to be verified, without the runs that a server must list.
type verifyPlan struct {
	files []string
	named []string // runs of the server
	query string   // of more runs
	lists bool     // whether there are any: the query of all may be empty
}

func (p verifyPlan) needsServer() bool { return p.lists || len(p.named) > 0 }

// plan sorts what was given. Files that were named twice, by themselves and by their
// directory, come once.
func (v *verifying) plan() (verifyPlan, error) {
	p := verifyPlan{query: verifyQuery(v.f.all, v.f.queries), lists: v.f.all || len(v.f.queries) > 0}
	seen := map[string]bool{}
	once := func(kind, name string) bool {
		had := seen[kind+name]
		seen[kind+name] = true
		return !had
	}
	for _, arg := range v.args {
		if !cli.IsHistoryFile(arg) {
			if once("run ", arg) {
				p.named = append(p.named, arg)
			}
			continue
		}
		files, err := cli.FilesIn(arg)
		if err != nil {
			return p, err
		}
		for _, file := range files {
			if once("file ", filepath.Clean(file)) {
				p.files = append(p.files, file)
			}
		}
	}
	if len(p.named) > 0 && (p.lists || len(p.named) > 1) {
		v.taken = map[string]bool{}
	}
	return p, nil
}

// verifyQuery is the runs that match one of the queries; with all, only those whose type is
// known here.
func verifyQuery(all bool, queries []string) string {
	var parts []string
	for _, q := range queries {
		if strings.TrimSpace(q) == "" {
			parts = nil // one that matches everything
			break
		}
		parts = append(parts, "("+q+")")
	}
	query := strings.Join(parts, " OR ")
	if len(parts) == 1 {
		query = queries[0]
	}
	if !all {
		return query
	}
	return runs.And(query, fmt.Sprintf("WorkflowType IN (%q, %q)", ace.TaskWorkflow, ace.ExperimentWorkflow))
}

// count is how many sources there are, 0 where the server cannot tell.
func (v *verifying) count(ctx context.Context, p verifyPlan) int64 {
	n := int64(len(p.files) + len(p.named))
	if !p.lists {
		return n
	}
	listed, err := runs.Count(ctx, v.engine.Client, p.query)
	if err != nil {
		return 0 // listing them will say what is wrong
	}
	return n + listed
}

// list gives the sources one by one, until add refuses.
func (v *verifying) list(ctx context.Context, p verifyPlan, add func(verifyJob) bool) error {
	for _, file := range p.files {
		if !add(func(ctx context.Context) []cli.RunHistory { return v.app.ReadHistories(ctx, file) }) {
			return ctx.Err()
		}
	}
	for _, id := range p.named {
		if !add(func(ctx context.Context) []cli.RunHistory { return v.named(ctx, id) }) {
			return ctx.Err()
		}
	}
	if !p.lists {
		return nil
	}
	return runs.List(ctx, v.engine.Client, p.query, 0, func(r runs.Run) error {
		if !add(func(ctx context.Context) []cli.RunHistory { return v.of(ctx, r.WorkflowID, r.RunID) }) {
			return ctx.Err()
		}
		return nil
	})
}

// named reads the run that an id names, with --chain its whole chain, but for what was read
// already.
func (v *verifying) named(ctx context.Context, id string) (list []cli.RunHistory) {
	fail := func(err error) []cli.RunHistory { return []cli.RunHistory{{Source: id, Number: 1, ReadErr: err}} }
	if !v.f.chain {
		h, err := v.app.ReadRun(ctx, v.engine, id, "")
		if err != nil {
			return fail(err)
		}
		if !v.take(cli.RunIDOf(h.Events)) {
			return nil
		}
		return []cli.RunHistory{h}
	}
	chain, err := v.app.ReadChain(ctx, v.engine, id, "")
	if err != nil {
		return fail(err)
	}
	for _, h := range chain {
		if v.take(cli.RunIDOf(h.Events)) {
			list = append(list, h)
		}
	}
	return list
}

// of reads a run, unless it was read already.
func (v *verifying) of(ctx context.Context, workflowID, runID string) []cli.RunHistory {
	if !v.take(runID) {
		return nil
	}
	h := cli.RunHistory{Source: workflowID, Number: 1}
	h.Events, h.ReadErr = cluster.ReadHistory(ctx, v.engine.Client, v.engine.Namespace(), workflowID, runID)
	return []cli.RunHistory{h}
}

// take tells whether a run is new.
func (v *verifying) take(runID string) bool {
	if v.taken == nil {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	had := v.taken[runID]
	v.taken[runID] = true
	return !had
}

// canWrite tells before the work whether its report can be written after it. What the file
// holds stays until then.
func canWrite(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
