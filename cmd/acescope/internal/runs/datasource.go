package runs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/dataset"
	"acescope/engine/learning/problems"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/runs"
)

// Prefixes of the names of data sets that are not files.
const (
	problemSet    = "problems:"   // problems:N or problems:N:SEED, generated problems
	experimentSet = "experiment:" // experiment:ID, the stored data set of an experiment
)

// maxProblems bounds a data set of generated problems.
const maxProblems = 100_000

// source selects a data set of an experiment: the training set or the evaluation set.
type source func(*ace.ExperimentInput) (id string, set *ace.Ref)

func dataSource(in *ace.ExperimentInput) (string, *ace.Ref) {
	return in.DatasetID, new(in.SourceDataset())
}
func evalSource(in *ace.ExperimentInput) (string, *ace.Ref) { return in.EvalID, in.Eval }

// checkDataset returns why a data set cannot be opened. Without a name there is no data set to check.
func checkDataset(ctx context.Context, e *engine.Engine, name string, of source) error {
	if name == "" || e == nil && strings.HasPrefix(name, experimentSet) {
		return nil
	}
	_, file, err := openDataset(ctx, e, name, of)
	if err != nil {
		return err
	}
	_ = file.Close() // nothing was written
	return nil
}

// openDataset opens a data set: a file, standard input, generated problems, or the stored data set of an
// experiment. The ID of the data set is the file name in path, or stdin.
func openDataset(
	ctx context.Context, e *engine.Engine, name string, of source,
) (path string, r io.ReadCloser, err error) {
	if id, ok := strings.CutPrefix(name, experimentSet); ok {
		return openUsed(ctx, e, id, of)
	}
	if spec, ok := strings.CutPrefix(name, problemSet); ok {
		r, err = openProblems(name, spec)
		return strings.ReplaceAll(name, ":", "-"), r, err // it becomes part of workflow IDs
	}
	file, err := cli.OpenFile(ctx, name)
	if err != nil {
		return "", nil, fmt.Errorf("cannot read the data set: %w", err)
	}
	return cli.InputName(name), file, nil
}

func openProblems(name, spec string) (io.ReadCloser, error) {
	count, seedText, _ := strings.Cut(spec, ":")
	n, err := strconv.Atoi(count)
	seed, seedErr := strconv.ParseUint(cmp.Or(seedText, "1"), 10, 64)
	if err != nil || seedErr != nil || n < 1 || n > maxProblems {
		return nil, cli.UsageError("data set %s: use %sN or %sN:SEED, with N from 1 to %d", name, problemSet,
			problemSet, maxProblems)
	}
	var b bytes.Buffer
	if err := problems.WriteJSONL(&b, problems.Finance(seed, n)); err != nil {
		return nil, err
	}
	return io.NopCloser(&b), nil
}

// openUsed opens the stored data set of an experiment.
func openUsed(ctx context.Context, e *engine.Engine, id string, of source) (string, io.ReadCloser, error) {
	in, err := inputOf(ctx, e, id)
	if err != nil {
		return "", nil, err
	}
	name, set := of(in)
	if set == nil || set.SHA256 == "" {
		return "", nil, cli.UsageError("experiment %s has no evaluation set", id)
	}
	file, err := e.Artifacts.Open(ctx, *set)
	if err != nil {
		return "", nil, fmt.Errorf("the data set of experiment %s: %w", id, err)
	}
	return name + ".jsonl", withGrader(file, in.Grader), nil
}

// withGrader puts the header before the lines of a data set that selects a grader, if there is one.
func withGrader(file io.ReadCloser, grader string) io.ReadCloser {
	if grader == "" {
		return file
	}
	header, _ := json.Marshal(map[string]string{"grader": grader}) // never fails
	lines := io.MultiReader(bytes.NewReader(append(header, '\n')), file)
	return struct {
		io.Reader
		io.Closer
	}{lines, file}
}

// inputOf reads the input of an experiment from the first event of its history.
func inputOf(ctx context.Context, e *engine.Engine, id string) (*ace.ExperimentInput, error) {
	events := e.Client.GetWorkflowHistory(ctx, ace.ExperimentWorkflowID(id), "", false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var decoder history.ExperimentDecoder
	event, err := events.Next()
	if err != nil {
		if cluster.NotFound(err) {
			return nil, experiments.ErrNotFound.Of(id)
		}
		return nil, fmt.Errorf("experiment %s: %w", id, err)
	}
	fact, ok, err := decoder.Fact(event)
	if err != nil || !ok || fact.Input == nil {
		return nil, fmt.Errorf("the input of experiment %s cannot be read: %w", id, err)
	}
	return fact.Input, nil
}

// maxChoices bounds the experiments that completion lists.
const maxChoices = 100

// experimentIDs lists the IDs of the newest experiments. It leaves out what it cannot read.
func experimentIDs(ctx context.Context, e *engine.Engine) (list []string) {
	_ = runs.ListNewest(ctx, e.Client, "WorkflowType="+runs.Quote(ace.ExperimentWorkflow), maxChoices,
		func(r runs.Run) error {
			list = append(list, r.Experiment)
			return nil
		})
	return list
}

// ingest stores the tasks of a data set.
func ingest(a *cli.App, ctx context.Context, e *engine.Engine, name string, of source,
	limit int) (dataset.Set, error) {
	path, file, err := openDataset(ctx, e, name, of)
	if err != nil {
		return dataset.Set{}, err
	}
	defer file.Close()
	set, err := dataset.Ingest(ctx, path, file, e.Artifacts, limit)
	for _, l := range set.Lost {
		cli.Warn(a, "data set %s: tasks do not hold the field %q of %s", set.ID, l.Field,
			ace.Count(l.Lines, "line"))
	}
	return set, err
}
