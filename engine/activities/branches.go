package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"

	"acescope/engine/ace"
	"acescope/engine/learning/dataset"
	"acescope/engine/learning/playbook"
)

// branches are the activities that read and write branches of playbooks, and read data sets.
type branches struct {
	*inputs
	cluster func(context.Context) (string, error) // see [Activities.Cluster]
}

// persist merges the delta into its branch. A retry after a crash, and a task that its experiment started
// again, find the merged delta by its ID. Without a branch, the delta is only recorded.
func (b *branches) persist(ctx context.Context, in ace.PersistInput) (ace.PersistResult, error) {
	defer heartbeat(ctx)()
	watch := startStopwatch(ctx)
	if in.Branch == "" {
		book, err := b.playbook(ctx, in.Task.PlaybookHash)
		if err != nil {
			return ace.PersistResult{}, err
		}
		ops := append([]ace.Operation{}, in.Operations...)
		for i := range ops {
			ops[i].Outcome, ops[i].Reason = ace.OutcomeIgnored, "the run has no playbook branch"
		}
		return ace.PersistResult{PlaybookBefore: in.Task.PlaybookHash, PlaybookAfter: in.Task.PlaybookHash,
			Operations: ops, Bullets: len(book.Bullets), Time: watch.stop(ctx, in.Task.PaceMS)}, nil
	}
	m, err := patiently(ctx, func() (playbook.Version, error) {
		if err := b.ensureBranch(ctx, in.Branch, in.Task.PlaybookHash); err != nil {
			return playbook.Version{}, err
		}
		return b.books.Merge(ctx, playbook.Version{
			Source: playbook.Source{Branch: in.Branch, TaskID: in.Task.TaskID, WorkflowID: in.Task.WorkflowID,
				RunID: in.Task.RunID, Rationale: in.Rationale,
				At: activity.GetInfo(ctx).StartedTime},
			DeltaID:    cmp.Or(in.Task.DeltaID, in.Task.WorkflowID+"/"+in.Task.RunID),
			Operations: in.Operations, Tokens: in.PlaybookTokens,
		})
	})
	if err != nil {
		return ace.PersistResult{}, stored(err)
	}
	return ace.PersistResult{PlaybookBefore: m.Parent, PlaybookAfter: m.Hash, Operations: m.Operations,
		Bullets: m.Bullets, Seq: m.Seq, Time: watch.stop(ctx, in.Task.PaceMS)}, nil
}

// ensureBranch creates a branch unless this machine knows it.
func (b *branches) ensureBranch(ctx context.Context, name, hash string) error {
	_, err := b.books.Branch(name)
	if errors.Is(err, playbook.ErrNoBranch) {
		_, err = b.books.Start(ctx, name, hash)
	}
	return err
}

// maxResult bounds a reused step result, in bytes: the server's limit of a payload.
const maxResult = 2 << 20

// loadStep reads a step result that a fork reuses.
func (b *branches) loadStep(ctx context.Context, in ace.LoadStepInput) (json.RawMessage, error) {
	defer heartbeat(ctx)()
	data, err := patiently(ctx, func() ([]byte, error) { return b.artifacts.Get(ctx, in.Ref, maxResult) })
	if err != nil {
		err = stored(fmt.Errorf("reused result of %s: %w", in.Phase, err))
	}
	return data, err
}

func (b *branches) loadTasks(ctx context.Context, in ace.LoadTasksInput) ([]ace.Task, error) {
	defer heartbeat(ctx)()
	tasks, err := patiently(ctx, func() ([]ace.Task, error) {
		return dataset.Load(ctx, b.artifacts, in.Dataset, in.From, in.Count)
	})
	return tasks, stored(err)
}

// head returns the latest version of a branch, which it creates if necessary.
func (b *branches) head(ctx context.Context, in ace.HeadInput) (ace.HeadResult, error) {
	defer heartbeat(ctx)()
	hash, err := patiently(ctx, func() (string, error) {
		if err := b.own(ctx, in.Branch); err != nil {
			return "", err
		}
		return b.books.Start(ctx, in.Branch, in.Initial)
	})
	if err != nil {
		return ace.HeadResult{}, stored(err)
	}
	book, err := b.playbook(ctx, hash)
	if err != nil {
		return ace.HeadResult{}, err
	}
	return ace.HeadResult{PlaybookHash: hash, Bullets: len(book.Bullets), Branch: in.Branch}, nil
}

// own reserves the branch of an experiment, because servers that share a data directory do not know each
// other's experiments.
func (b *branches) own(ctx context.Context, branch string) error {
	server := "the server of the data directory"
	if b.cluster != nil {
		id, err := b.cluster(ctx)
		if err != nil {
			return err
		}
		server = "namespace " + activity.GetInfo(ctx).Namespace + " of cluster " + id
	}
	err := b.books.Own(ctx, branch, server)
	if errors.Is(err, playbook.ErrOwner) {
		return permanent(err)
	}
	return err
}
