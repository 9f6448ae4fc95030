package evaluations

import (
	"context"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/ablation"
	"acescope/engine/learning/playbook"
	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// interval is the time between two reads of an open experiment.
const interval = 2 * time.Second

// Evaluated holds the evaluations of an experiment, and the effects of bullets if it is an ablation. Books
// are the playbook versions by hash, as far as they are readable.
type Evaluated struct {
	WorkflowID string
	Grid       *Grid // nil if it cannot be read
	Effects    []ablation.Effect
	Labeled    int // labeled items that the effects are measured on
	Books      map[string]*playbook.Playbook
	Err        string
}

// NewFeed returns a feed of the evaluations of the experiment with the wanted workflow ID. It reads the items
// of a version once.
func NewFeed(link *cluster.Link) *feed.Feed[string, *Evaluated] {
	return feed.New(link.Wake, func(ctx context.Context, workflowID string, publish func(*Evaluated)) {
		r := reader{link: link, workflowID: workflowID}
		for workflowID != "" && (r.grid == nil || r.grid.Status == ace.Running) {
			e := r.read(ctx)
			if ctx.Err() != nil {
				return
			}
			if e != nil {
				publish(e)
			}
			for cluster.Sleep(ctx, interval) == nil && link.Paused() {
			}
		}
	})
}

type reader struct {
	link       *cluster.Link
	workflowID string
	grid       *Grid // the newest
}

// read returns nil if nothing has changed.
func (r *reader) read(ctx context.Context) *Evaluated {
	out := &Evaluated{WorkflowID: r.workflowID}
	chain, err := r.link.ReadChain(ctx, r.workflowID, "", false, nil)
	var g *Grid
	if err == nil {
		g, err = newGrid(chain.Runs)
	}
	if err == nil {
		if r.grid != nil && g.answers() == r.grid.answers() && g.Status == ace.Running {
			return nil
		}
		err = g.load(ctx, r.link.Artifact, r.grid)
	}
	if err == nil && g.Input.Ablation != nil && len(g.Versions) > 0 && r.link.Playbooks != nil {
		out.Effects, out.Labeled, err = g.Effects(ctx, r.link.Playbooks, r.link.Artifact)
		ablation.Order(out.Effects)
	}
	if err != nil {
		out.Err = cluster.PlainError(err)
		out.Grid = r.grid
		return out
	}
	r.grid = g
	out.Grid = g
	out.Books = r.books(ctx)
	return out
}

// books returns the readable playbooks of the versions.
func (r *reader) books(ctx context.Context) map[string]*playbook.Playbook {
	books := map[string]*playbook.Playbook{}
	for _, v := range r.grid.Versions {
		if r.link.Playbooks == nil || v.Playbook == "" {
			continue
		}
		if book, err := r.link.Playbooks.Get(ctx, v.Playbook); err == nil {
			books[v.Playbook] = book
		}
	}
	return books
}
