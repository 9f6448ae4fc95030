package ablation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

// maxArtifact bounds an artifact with items or trials, in bytes.
const maxArtifact = 16 << 20

// TrialsMediaType is the media type of [ace.AblationRound.Trials].
const TrialsMediaType = "application/vnd.acescope.trials+json"

// ErrNoItems means that the workers of an evaluation kept no items.
var ErrNoItems = errors.New("the evaluation of the whole playbook kept no items")

// Get reads an artifact of at most limit bytes.
type Get func(ctx context.Context, ref ace.Ref, limit int64) ([]byte, error)

// Items reads the items of evaluations or trials, in the order of the data set.
func (get Get) Items(ctx context.Context, refs []ace.Ref) (items []ace.EvalItem, err error) {
	for _, ref := range refs {
		data, err := get(ctx, ref, maxArtifact)
		if err != nil {
			return nil, err
		}
		list, err := ace.ParseItems(data)
		if err != nil {
			return nil, fmt.Errorf("artifact %s: %w", ref.SHA256, err)
		}
		items = append(items, list...)
	}
	slices.SortFunc(items, func(a, b ace.EvalItem) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Trial, b.Trial))
	})
	return items, nil
}

// Trials reads the trials of a round.
func (get Get) Trials(ctx context.Context, ref ace.Ref) (trials []ace.Trial, err error) {
	data, err := get(ctx, ref, maxArtifact)
	if err == nil {
		err = json.Unmarshal(data, &trials)
	}
	if err != nil {
		return nil, fmt.Errorf("trials %s: %w", ref.SHA256, err)
	}
	return trials, nil
}

// Load reads the answers of an ablation so far: of the whole playbook, and of each round. It returns
// [ErrNoItems] without the former.
func (get Get) Load(
	ctx context.Context, book *playbook.Playbook, in ace.Ablation, p *ace.AblationProgress,
) (*Base, [][]Result, error) {
	if p == nil || len(p.Evaluated) == 0 {
		return nil, nil, ErrNoItems
	}
	items, err := get.Items(ctx, p.Evaluated)
	if err != nil {
		return nil, nil, err
	}
	base := NewBase(book, items, in)
	var rounds [][]Result
	for _, r := range p.Rounds {
		trials, err := get.Trials(ctx, r.Trials)
		if err != nil {
			return nil, nil, err
		}
		answers, err := get.Items(ctx, r.Items)
		if err != nil {
			return nil, nil, err
		}
		results, err := base.results(trials, answers)
		if err != nil {
			return nil, nil, err
		}
		rounds = append(rounds, results)
	}
	return base, rounds, nil
}
