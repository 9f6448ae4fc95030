package playbooks

import (
	"context"

	"acescope/engine/learning/playbook"
)

// Bullets returns the bullets of a version by ID, with the merges that wrote them if the version is on a
// branch. It returns nil if the version cannot be read.
func Bullets(ctx context.Context, store *playbook.Store, hash string) map[string]*playbook.BulletHistory {
	if store == nil || hash == "" {
		return nil
	}
	book, err := store.Get(ctx, hash)
	if err != nil {
		return nil
	}
	byID := map[string]*playbook.BulletHistory{}
	for _, b := range book.Bullets {
		byID[b.ID] = &playbook.BulletHistory{Bullet: b}
	}
	branch, seq, err := store.Place(hash)
	if err != nil {
		return byID // without their authors
	}
	h := playbook.NewHistory(branch)
	if err := store.Read(ctx, h, seq); err != nil {
		return byID
	}
	for _, b := range h.Blame(book) {
		byID[b.Bullet.ID] = &b
	}
	return byID
}
