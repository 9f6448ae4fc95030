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
	"acescope/engine/artifact"
	"acescope/engine/flow"
	"acescope/engine/fork"
	"acescope/engine/playbook"
)

// ErrGone means that a fork would need what is no longer kept.
var ErrGone = errors.New("no longer kept")

// Forked is a fork that was started.
type Forked struct {
	TaskID, WorkflowID, RunID string
	Branch                    string // that its delta is merged into, "" where it is only recorded
}

// forkTries bounds how many ids are tried that others take meanwhile.
const forkTries = 1000

// inlineOnCluster is the size up to which results travel within a fork's input where the
// workers may not share this machine's store, in bytes. All of them together must fit
// into one payload.
const inlineOnCluster = 256 << 10

// ForkNeed is something kept outside of histories that a fork reads.
type ForkNeed struct {
	What string // "the prompt (artifact …)"
	Here bool   // it is kept in this process's data directory
}

// ForkNeeds lists what a fork reads that is kept outside of histories.
func (e *Engine) ForkNeeds(p *fork.Plan) ([]ForkNeed, error) {
	var needs []ForkNeed
	for what, ref := range forkRefs(p) {
		here, err := e.Artifacts.Has(*ref)
		if err != nil && !errors.Is(err, artifact.ErrNotFound) {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		needs = append(needs, ForkNeed{fmt.Sprintf("%s (artifact %s)", what, ref.SHA256), here})
	}
	if hash := p.Input.PlaybookHash; hash != "" {
		_, err := e.Books.Get(hash)
		if err != nil && !errors.Is(err, playbook.ErrNotFound) {
			return nil, fmt.Errorf("the playbook %s: %w", hash, err)
		}
		needs = append(needs, ForkNeed{"the playbook " + hash, err == nil})
	}
	slices.SortFunc(needs, func(a, b ForkNeed) int { return strings.Compare(a.What, b.What) })
	return needs, nil
}

// forkRefs are the artifacts that a fork reads.
func forkRefs(p *fork.Plan) map[string]*ace.Ref {
	refs := map[string]*ace.Ref{}
	if ref := p.Input.PromptRef; ref != nil {
		refs["the prompt"] = ref
	}
	if raw := p.Input.Fork.Inline(ace.PhaseSkills); raw != nil {
		var session ace.SkillSessionResult
		if json.Unmarshal(raw, &session) == nil && session.Log != nil {
			refs["the calls of the skills session"] = session.Log
		}
	}
	return refs
}

// CheckFork tells what a fork needs that is not kept here: an [ErrGone] that names it. On
// a cluster the workers have stores of their own, which cannot be looked at from here; so
// nothing is refused there, and whoever asks says what [Engine.ForkNeeds] lists.
func (e *Engine) CheckFork(p *fork.Plan) error {
	if e.Mode() == Cluster {
		return nil
	}
	needs, err := e.ForkNeeds(p)
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
	return fmt.Errorf("%s cannot be forked at event %d: it needs what is %w here: %s", p.Name(), p.Event, ErrGone, strings.Join(gone, ", "))
}

// StartFork starts a fork under the next free number of its original. What the original
// did is not touched.
func (e *Engine) StartFork(ctx context.Context, p *fork.Plan) (Forked, error) {
	if err := e.CheckFork(p); err != nil {
		return Forked{}, err
	}
	in, err := e.store(ctx, p.Input)
	if err != nil {
		return Forked{}, err
	}
	root, _ := ace.ForkRoot(p.WorkflowID)
	first := e.lastFork(ctx, root) + 1
	for n := first; n < first+forkTries; n++ {
		id := ace.ForkID(root, n)
		in.TaskID = ace.TaskIDOf(id)
		if p.OwnBranch {
			in.Branch = ace.ForkBranch(in.TaskID)
		}
		runID, err := e.start(ctx, id, client.StartWorkflowOptions{ID: id, TypedSearchAttributes: flow.TaskAttributes(in),
			Memo: map[string]any{ace.MemoFork: in.Fork.Forked}}, ace.TaskWorkflow, in)
		if errors.Is(err, ErrExists) {
			continue
		}
		if err != nil {
			return Forked{}, err
		}
		return Forked{TaskID: in.TaskID, WorkflowID: id, RunID: runID, Branch: in.Branch}, nil
	}
	return Forked{}, fmt.Errorf("the ids %s to %s are all taken", ace.ForkID(root, first), ace.ForkID(root, first+forkTries-1))
}

// store puts results that are too large for an input into artifacts. The plan's input
// stays as it is.
func (e *Engine) store(ctx context.Context, in ace.TaskInput) (ace.TaskInput, error) {
	limit := ace.InlineBytes
	if e.Mode() == Cluster {
		limit = inlineOnCluster
	}
	f := *in.Fork
	f.Steps = map[ace.Phase]ace.TakenStep{}
	for step, taken := range in.Fork.Steps {
		if len(taken.Result) > limit {
			ref, err := e.Artifacts.PutBytes(ctx, taken.Result, "application/json")
			if err != nil {
				return in, fmt.Errorf("the result of %s: %w", step, err)
			}
			taken = ace.TakenStep{Ref: &ref}
		}
		f.Steps[step] = taken
	}
	in.Fork = &f
	return in, nil
}

// lastFork is the highest number among the forks that are listed, 0 where there is none
// or the list cannot be read; a number that is taken all the same is passed over.
func (e *Engine) lastFork(ctx context.Context, root string) int {
	last := 0
	var token []byte
	for {
		r, err := e.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: "WorkflowId STARTS_WITH " + strconv.Quote(ace.ForkPrefix(root)), PageSize: 1000, NextPageToken: token})
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
