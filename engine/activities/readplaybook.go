package activities

import (
	"context"
	"encoding/json"
	"fmt"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

// PlaybookContent is the result of [ace.ActivityReadPlaybook]. If the bullets are larger than
// [ace.MaxStepResult] as JSON, Ref refers to them and Bullets is nil.
type PlaybookContent struct {
	PlaybookHash string            `json:"playbook_hash"`
	Count        int               `json:"count"`
	Bullets      []playbook.Bullet `json:"bullets,omitzero"`
	Ref          *ace.Ref          `json:"ref,omitempty"`
}

// readPlaybook returns the content of a version, for workers of other programs.
func (b *branches) readPlaybook(ctx context.Context, in ace.ReadPlaybookInput) (PlaybookContent, error) {
	defer heartbeat(ctx)()
	book, err := b.playbook(ctx, in.PlaybookHash)
	if err != nil {
		return PlaybookContent{}, err
	}
	r := PlaybookContent{PlaybookHash: in.PlaybookHash, Count: len(book.Bullets), Bullets: book.Bullets}
	if r.Bullets == nil {
		r.Bullets = []playbook.Bullet{}
	}
	content, err := json.Marshal(r.Bullets)
	if err != nil {
		return PlaybookContent{}, fmt.Errorf("encode playbook %s: %w", in.PlaybookHash, err)
	}
	if len(content) <= ace.MaxStepResult {
		return r, nil
	}
	ref, err := b.artifacts.PutBytes(ctx, content, "application/json")
	r.Bullets, r.Ref = nil, &ref
	return r, err
}
