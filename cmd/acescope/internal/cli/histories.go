package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/store/artifact"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/historyfile"
	"acescope/engine/temporal/replayer"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// OpenRun connects for reading and finds a run by name. runID selects another run of the same workflow.
func OpenRun(
	a *App, ctx context.Context, name, runID string,
) (e *engine.Engine, exec *commonpb.WorkflowExecution, err error) {
	if err := checkRunID(runID); err != nil {
		return nil, nil, err
	}
	e, err = a.OpenReadOnly(ctx)
	if err != nil {
		return nil, nil, err
	}
	run, err := runs.Resolve(ctx, e.Client, name)
	if err != nil {
		return nil, nil, err
	}
	exec = run.GetWorkflowExecutionInfo().GetExecution()
	exec.RunId = cmp.Or(runID, exec.GetRunId())
	return e, exec, nil
}

// checkRunID returns a usage error for a value of --run that cannot be a run ID.
func checkRunID(runID string) error {
	if _, valid := runs.SplitName("task@" + runID); runID != "" && valid == "" {
		return UsageError("--run %q is not a run ID; \"acescope list --json\" has them as run_id", runID)
	}
	return nil
}

// RunHistory is a history and its source.
type RunHistory struct {
	Source string // a file, "-", or a workflow id
	Number int    // of the history in the source, from 1
	historyfile.History
	ReadErr error      // why the source, or the rest of it after this history, could not be read
	Chain   *ChainLine // nil for a run that is not part of a chain
	// Stored returns the events as they were recorded; nil if they are Events.
	Stored replayer.Stored
}

// Types returns the type names of the events that could not be read, by position from 0.
func (h RunHistory) Types() map[int]string {
	names := map[int]string{}
	for _, u := range h.Unread {
		names[u.Index] = u.Type
	}
	return names
}

// RunIDOf returns the run id of a history.
func RunIDOf(events []*historypb.HistoryEvent) string { return history.OriginOf(events).RunID }

// ChainLine is the position of a run in its chain.
type ChainLine struct {
	Number int      `json:"number"` // from 1, the oldest run that the server still has
	RunIDs []string `json:"run_ids" jsonschema:"runs, oldest first"`
	Before string   `json:"before,omitempty"` // why earlier runs are missing
	After  string   `json:"after,omitempty"`  // why later runs are missing
}

// chainLineOf returns nil for a run that neither continues another run nor is continued.
func chainLineOf(l cluster.ChainPosition) *ChainLine {
	if len(l.RunIDs) < 2 && l.Before == "" && l.After == "" {
		return nil
	}
	return &ChainLine{Number: l.At + 1, RunIDs: l.RunIDs, Before: l.Before, After: l.After}
}

// String returns "run 2 of 3 of its chain" and why runs of the chain are missing.
func (c *ChainLine) String() string {
	text := fmt.Sprintf("run %d of %d of its chain", c.Number, len(c.RunIDs))
	for _, missing := range []string{c.Before, c.After} {
		if missing != "" {
			text += "; " + missing
		}
	}
	return text
}

// ReadChain reads the histories of all runs in the chain of a run, the oldest first. If runs of the chain are
// missing, ReadErr of the last history says so.
func ReadChain(ctx context.Context, e *engine.Engine, id, runID string) ([]RunHistory, error) {
	run, err := runs.Resolve(ctx, e.Client, id)
	if err != nil {
		return nil, err
	}
	workflowID := run.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId()
	chain, err := cluster.ReadChain(ctx, e.Client, e.Namespace(), workflowID, runID, false, nil)
	if err != nil {
		return nil, err
	}
	var list []RunHistory
	for i, events := range chain.Runs {
		position := cluster.ChainPosition{RunIDs: chain.RunIDs, At: i, Before: chain.Before,
			After: chain.Partial}
		list = append(list, RunHistory{
			Source: workflowID, Number: i + 1, History: historyfile.History{Events: events},
			Chain: chainLineOf(position),
		})
	}
	if gone := chain.Incomplete(); gone != "" {
		list[len(list)-1].ReadErr = errors.New("the chain is incomplete: " + gone)
	}
	return list, nil
}

// ReadRun reads the history of a run from the server, by default of the newest run of id.
func ReadRun(ctx context.Context, e *engine.Engine, id, runID string) (RunHistory, error) {
	if err := checkRunID(runID); err != nil {
		return RunHistory{}, err
	}
	run, err := runs.Resolve(ctx, e.Client, id)
	if err != nil {
		return RunHistory{}, err
	}
	exec := run.GetWorkflowExecutionInfo().GetExecution()
	workflowID := exec.GetWorkflowId()
	runID = cmp.Or(runID, exec.GetRunId())
	events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), workflowID, runID)
	if err != nil {
		return RunHistory{}, err
	}
	exec.RunId = runID
	line, err := ChainOf(ctx, e, exec)
	return RunHistory{Source: workflowID, Number: 1, History: historyfile.History{Events: events},
		Chain: line}, err
}

// ChainOf returns the position of a run in its chain, or nil for a run that neither continues another run nor
// is continued.
func ChainOf(ctx context.Context, e *engine.Engine, exec *commonpb.WorkflowExecution) (*ChainLine, error) {
	p, err := cluster.ReadChainPosition(ctx, e.Client, e.Namespace(), exec.GetWorkflowId(), exec.GetRunId())
	return chainLineOf(p), err
}

// HistoryOf reads the history that an argument names: of a file, or of a run on the server. FILE#N is the Nth
// history of a file.
func HistoryOf(a *App, ctx context.Context, arg, runID string) (RunHistory, error) {
	path, number, err := SplitHistoryName(arg)
	if err != nil {
		return RunHistory{}, err
	}
	if IsHistoryFile(path) {
		h, err := pick(ReadHistories(a, ctx, path), number, runID)
		if err == nil && len(h.Events) == 0 {
			err = cmp.Or(h.ReadErr, fmt.Errorf("%s: the history has no events", path))
		}
		return h, err
	}
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return RunHistory{}, err
	}
	return ReadRun(ctx, e, arg, runID)
}

// HistoriesOf reads the histories of a file or of a chain. With a run ID it reads only that run's history.
func HistoriesOf(a *App, ctx context.Context, name, runID string) ([]RunHistory, error) {
	if runID != "" {
		h, err := HistoryOf(a, ctx, name, runID)
		return []RunHistory{h}, err
	}
	if IsHistoryFile(name) {
		return ReadHistories(a, ctx, name), nil
	}
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	return ReadChain(ctx, e, name, "")
}

// SplitHistoryName splits FILE#NUMBER. The number is 0 for a name without one. A directory is a usage error.
func SplitHistoryName(name string) (path string, number int, err error) {
	path = name
	_, err = os.Stat(name)
	if at := strings.LastIndexByte(name, '#'); err != nil && at > 0 && IsHistoryFile(name[:at]) {
		path = name[:at]
		if number, err = strconv.Atoi(name[at+1:]); err != nil || number < 1 {
			return path, 0, UsageError("%s: use the 1-based number of a history after #", name)
		}
	}
	if IsDir(path) {
		return path, 0, UsageError("%s is a directory; use a file in it", path)
	}
	return path, number, nil
}

// pick selects a history of a file by its number, by its run id, or as the only one.
func pick(list []RunHistory, number int, runID string) (RunHistory, error) {
	source, i := list[0].Source, max(number-1, 0)
	if runID != "" {
		i = slices.IndexFunc(list, func(h RunHistory) bool { return RunIDOf(h.Events) == runID })
	}
	switch {
	case i < 0:
		return RunHistory{}, NotFound("%s: no history of run %q", source, runID)
	case i >= len(list):
		return RunHistory{}, NotFound("%s holds %s: there is no number %d", source,
			ace.Count(len(list), "history"), number)
	case number == 0 && runID == "" && len(list) > 1:
		return RunHistory{}, UsageError("%s holds %d histories; choose one as %s#1 to %s#%d",
			source, len(list), source, source, len(list))
	}
	return list[i], nil
}

// FileArtifacts returns a reader of the artifacts in the data directory for histories in files, nil without
// such a directory. Artifacts are named by their hash, so a wrong one cannot be read.
func FileArtifacts(a *App) func(context.Context, ace.Ref, int64) ([]byte, error) {
	dir, err := a.DataDir()
	if err != nil {
		return nil
	}
	path := filepath.Join(dir, "artifacts")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return artifact.OpenReadOnly(path).Get
}

// IsHistoryFile reports whether an argument names a file, a directory or standard input instead of a run. An
// argument that looks like a path is a file even if the file does not exist.
func IsHistoryFile(arg string) bool {
	if arg == "-" || strings.HasSuffix(arg, ".json") || strings.HasSuffix(arg, ".gz") ||
		strings.HasPrefix(arg, "./") || filepath.IsAbs(arg) {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil
}

// FilesIn returns the history files of a directory and its subdirectories, by name. Any other path is
// returned as is.
func FilesIn(path string) ([]string, error) {
	if path == "-" || !IsDir(path) {
		return []string{path}, nil
	}
	var files []string
	err := filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(d.Name(), ".gz")
		if d.Type().IsRegular() && (strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")) {
			files = append(files, at)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = NotFound("%s: no history files (.json, .jsonl, also with .gz) in this directory", path)
	}
	return files, err
}

// ReadHistories reads the histories of a file, or of standard input for "-", and decodes their payloads.
// Payloads that cannot be decoded stay encoded. It returns at least one entry; ReadErr of the last says why
// reading stopped early.
func ReadHistories(a *App, ctx context.Context, path string) []RunHistory {
	list := readHistoryFile(ctx, path)
	s, err := a.FileCodec()
	if err != nil {
		return []RunHistory{{Source: path, Number: 1, ReadErr: err}}
	}
	if s != nil {
		for i := range list {
			recorded := list[i].Events
			list[i].Events = make([]*historypb.HistoryEvent, len(recorded))
			for n, e := range recorded {
				list[i].Events[n] = proto.Clone(e).(*historypb.HistoryEvent)
			}
			list[i].Stored = func(context.Context) ([]*historypb.HistoryEvent, error) { return recorded, nil }
			s.Events(ctx, list[i].Events)
		}
	}
	return list
}

func readHistoryFile(ctx context.Context, path string) []RunHistory {
	file, err := OpenFile(ctx, path)
	if err != nil {
		return []RunHistory{{Source: path, Number: 1, ReadErr: err}}
	}
	defer file.Close()
	list, err := historyfile.Read(file)
	if err != nil && path != "-" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	var out []RunHistory
	for i, h := range list {
		out = append(out, RunHistory{Source: path, Number: i + 1, History: h})
	}
	if err == nil {
		return out
	}
	if len(out) == 0 {
		out = []RunHistory{{Source: path, Number: 1}}
	}
	out[len(out)-1].ReadErr = err
	return out
}
