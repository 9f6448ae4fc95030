package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
	"acescope/engine/temporal/fork"
	"acescope/engine/temporal/searchattr"
)

// ErrGone means that an artifact or a playbook was deleted.
var ErrGone = errors.New("no longer stored")

// Forked identifies a started fork.
type Forked struct {
	TaskID, WorkflowID, RunID string
	Branch                    string // of its delta, "" if the delta is only recorded
}

// forkTries bounds the attempts to find a free ID.
const forkTries = 1000

// inlineOnCluster is the maximum size of a reused result in the input of a fork on a cluster, whose
// workers may not have access to this machine's store, in bytes. All results must fit into one
// payload.
const inlineOnCluster = 256 << 10

// ForkNeed is an artifact or a playbook that a fork reads.
type ForkNeed struct {
	What string `json:"what"` // "the prompt (artifact …)"
	Here bool   `json:"here"` // in this process's data directory
}

// Forks are the actions on forks of task runs. They are methods of [Engine].
type Forks struct{ e *Engine }

// ForkNeeds lists the artifacts and the playbook that a fork reads.
func (a Forks) ForkNeeds(ctx context.Context, p *fork.Plan) ([]ForkNeed, error) {
	var needs []ForkNeed
	for what, ref := range forkRefs(p) {
		here, err := a.e.Artifacts.Has(ctx, *ref)
		if err != nil && !errors.Is(err, artifact.ErrNotFound) {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		needs = append(needs, ForkNeed{fmt.Sprintf("%s (artifact %s)", what, ref.SHA256), here})
	}
	if hash := p.Input.PlaybookHash; hash != "" {
		_, err := a.e.Books.Get(ctx, hash)
		if err != nil && !errors.Is(err, playbook.ErrNotFound) {
			return nil, fmt.Errorf("the playbook %s: %w", hash, err)
		}
		needs = append(needs, ForkNeed{"the playbook " + hash, err == nil})
	}
	slices.SortFunc(needs, func(a, b ForkNeed) int { return strings.Compare(a.What, b.What) })
	return needs, nil
}

// forkRefs returns the artifacts that a fork reads, by name.
func forkRefs(p *fork.Plan) map[string]*ace.Ref {
	refs := map[string]*ace.Ref{}
	if ref := p.Input.PromptRef; ref != nil {
		refs["the prompt"] = ref
	}
	for _, s := range p.Rerun {
		if s.Prompt != nil {
			refs[fmt.Sprintf("the %s prompt %s", s.Phase, s.Prompt)] = &s.Prompt.Ref
		}
	}
	for i, raw := range p.Input.Fork.InlineResults(ace.PhaseSkills) {
		name := "the calls of the skills session"
		if i > 0 {
			name += fmt.Sprintf(" of answer %d", i+1)
		}
		var session ace.SkillSessionResult
		if json.Unmarshal(raw, &session) == nil && session.Log != nil {
			refs[name] = session.Log
		}
	}
	return refs
}

// CheckFork returns an [ErrGone] that names the missing needs of a fork. It never fails on a
// cluster, whose workers have their own stores; there, show the list of [Forks.ForkNeeds].
func (a Forks) CheckFork(ctx context.Context, p *fork.Plan) error {
	if a.e.Mode() == Cluster {
		return nil
	}
	needs, err := a.ForkNeeds(ctx, p)
	if err != nil {
		return err
	}
	var gone []string
	for _, n := range needs {
		if !n.Here {
			gone = append(gone, n.What)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return fmt.Errorf("%s cannot be forked at event %d: %w on this machine: %s",
		p.Name(), p.Event, ErrGone, strings.Join(gone, ", "))
}

// StartFork starts a fork under the next free number of its original, which does not change.
func (a Forks) StartFork(ctx context.Context, p *fork.Plan) (Forked, error) {
	if err := a.CheckFork(ctx, p); err != nil {
		return Forked{}, err
	}
	in, err := a.storeResults(ctx, p.Input)
	if err != nil {
		return Forked{}, err
	}
	in.By = ace.User()
	root, _ := ace.ForkRoot(p.WorkflowID)
	first := a.lastFork(ctx, root) + 1
	for n := first; n < first+forkTries; n++ {
		id := ace.ForkID(root, n)
		in.TaskID = ace.TaskIDOf(id)
		if p.OwnBranch {
			in.Branch = ace.ForkBranch(in.TaskID)
		}
		o := client.StartWorkflowOptions{ID: id, TypedSearchAttributes: searchattr.Task(in),
			Memo: map[string]any{ace.MemoFork: in.Fork.Forked, ace.MemoBy: in.By}}
		runID, err := a.e.start(ctx, id, o, ace.TaskWorkflow, in)
		if errors.Is(err, ErrExists) {
			continue
		}
		if err != nil {
			return Forked{}, err
		}
		return Forked{TaskID: in.TaskID, WorkflowID: id, RunID: runID, Branch: in.Branch}, nil
	}
	return Forked{}, fmt.Errorf("the IDs %s to %s are all in use",
		ace.ForkID(root, first), ace.ForkID(root, first+forkTries-1))
}

// storeResults returns a copy of the input whose large results are stored as artifacts.
func (a Forks) storeResults(ctx context.Context, in ace.TaskInput) (ace.TaskInput, error) {
	limit := ace.InlineBytes
	if a.e.Mode() == Cluster {
		limit = inlineOnCluster
	}
	store := func(steps map[ace.Phase]ace.ReusedStep) (map[ace.Phase]ace.ReusedStep, error) {
		stored := map[ace.Phase]ace.ReusedStep{}
		for step, reused := range steps {
			if len(reused.Result) > limit {
				ref, err := a.e.Artifacts.PutBytes(ctx, reused.Result, "application/json")
				if err != nil {
					return nil, fmt.Errorf("store the result of %s: %w", step, err)
				}
				reused = ace.ReusedStep{Ref: &ref}
			}
			stored[step] = reused
		}
		return stored, nil
	}
	f := *in.Fork
	f.Passes = slices.Clone(f.Passes)
	var err error
	if f.Steps, err = store(f.Steps); err != nil {
		return in, err
	}
	for i := range f.Passes {
		if f.Passes[i], err = store(f.Passes[i]); err != nil {
			return in, err
		}
	}
	in.Fork = &f
	return in, nil
}

// lastFork returns the highest number of the listed forks, or 0. The list may be incomplete;
// StartFork skips numbers in use.
func (a Forks) lastFork(ctx context.Context, root string) int {
	last := 0
	var token []byte
	for {
		r, err := a.e.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: "WorkflowId STARTS_WITH " + strconv.Quote(ace.ForkPrefix(root)), PageSize: 1000,
			NextPageToken: token})
		if err != nil {
			return last
		}
		for _, info := range r.GetExecutions() {
			if of, n := ace.ForkRoot(info.GetExecution().GetWorkflowId()); of == root {
				last = max(last, n)
			}
		}
		if token = r.GetNextPageToken(); len(token) == 0 {
			return last
		}
	}
}
