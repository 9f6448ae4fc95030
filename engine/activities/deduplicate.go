package activities

import (
	"cmp"
	"context"

	"acescope/engine/ace"
	"acescope/engine/internal/lru"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

// maxVectors bounds the cached embeddings of texts, in bytes: enough for 2,700 texts and 1,536 dimensions.
const maxVectors = 32 << 20

// curate asks the provider of a step, and removes near-duplicates from its proposal if the input asks for it.
func (p *phases) curate(ctx context.Context, s step, in ace.CuratorInput) (r ace.CuratorResult,
	err error) {
	if in.Deduplicate == nil {
		return s.provider.Curate(ctx, in, s.book)
	}
	book := cmp.Or(s.book, &playbook.Playbook{})
	d := &deduplicator{inputs: p.inputs, vectors: p.vectors, Deduplication: *in.Deduplicate, task: s.task}
	defer func() { r.Usage = sum(d.used, r.Usage) }()
	if d.Provider != "" { // fail before the curator is paid if there are no embeddings
		if _, err = d.embed(ctx, book); err != nil {
			return r, err
		}
	}
	in.Task.Budget = d.task.Budget
	if r, err = s.provider.Curate(ctx, in, s.book); err != nil {
		return r, err
	}
	if r.Usage != nil {
		d.task.Budget = d.task.Budget.Less(*r.Usage)
	}
	return r, d.apply(ctx, book, &r)
}

// deduplicator removes near-duplicates from the proposal of a curator.
type deduplicator struct {
	*inputs
	vectors *lru.Cache[[3]string, []float64]
	ace.Deduplication
	task ace.TaskContext // with the budget that is left
	used *ace.Usage      // nil without a request
}

func (d *deduplicator) apply(ctx context.Context, book *playbook.Playbook, r *ace.CuratorResult) error {
	kept, repeated, err := playbook.Deduplicate(book, r.Accepted, d.Measure(),
		func(p *playbook.Playbook) ([]playbook.Near, error) {
			if d.Provider == "" {
				return playbook.NearDuplicates(p, d.Similarity), nil
			}
			vectors, err := d.embed(ctx, p)
			return playbook.NearVectors(p, vectors, d.Similarity), err
		})
	if err != nil {
		return err
	}
	r.Accepted = kept
	r.Rejected = append(r.Rejected, repeated...)
	return nil
}

// embed returns the embeddings of the bullets. It requests those that are not cached.
func (d *deduplicator) embed(ctx context.Context, p *playbook.Playbook) ([][]float64, error) {
	vectors := make([][]float64, len(p.Bullets))
	var texts []string
	var missing []int
	for i, b := range p.Bullets {
		if v, ok := d.vectors.Get(d.key(b.Content)); ok {
			vectors[i] = v
		} else {
			texts = append(texts, b.Content)
			missing = append(missing, i)
		}
	}
	if missing == nil {
		return vectors, nil
	}
	provider, err := d.provider(d.Provider)
	if err != nil {
		return nil, err
	}
	e, ok := provider.(model.Embedder)
	if !ok {
		return nil, model.Errorf(model.BadRequest, "%s has no embeddings", d.Provider)
	}
	at := d.task
	at.Model = d.Model
	asked, used, err := e.Embed(ctx, at, texts)
	if used != nil {
		d.used = sum(d.used, used)
		d.task.Budget = d.task.Budget.Less(*used)
	}
	if err != nil {
		return nil, err
	}
	for i, at := range missing {
		vectors[at] = asked[i]
		d.vectors.Put(d.key(texts[i]), asked[i])
	}
	return vectors, nil
}

func (d *deduplicator) key(text string) [3]string { return [3]string{d.Provider, d.Model, text} }
