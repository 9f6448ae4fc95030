package histories

import (
	"acescope/engine/ace"
	"acescope/sources/cluster"
)

// OldBullet is a bullet as it was before a run changed it.
type OldBullet struct {
	Section string `json:"section"`
	Content string `json:"content"`
	Helpful int    `json:"helpful"`
	Harmful int    `json:"harmful"`
	Neutral int    `json:"neutral"`
}

// OldBullets are the bullets that the operations are about, as the version before has
// them; none where that is not here. It reads files.
func OldBullets(d cluster.Deps, delta ace.DeltaAnswer) map[string]OldBullet {
	if d.Books == nil || delta.PlaybookBefore == "" || len(delta.Operations) == 0 {
		return nil
	}
	book, err := d.Books.Get(delta.PlaybookBefore)
	if err != nil {
		return nil // the operations are shown without what was before
	}
	old := map[string]OldBullet{}
	for _, op := range delta.Operations {
		if op.BulletID == "" || op.Type == ace.OpAdd {
			continue
		}
		if b, ok := book.Find(op.BulletID); ok {
			old[op.BulletID] = OldBullet{b.Section, b.Content, b.Helpful, b.Harmful, b.Neutral}
		}
	}
	return old
}
