package sources

import (
	"context"
	"slices"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
)

// OpenArtifact reads an artifact into the snapshot. One that could not be read is tried
// again.
func (s *Store) OpenArtifact(ref ace.Ref) {
	s.mu.Lock()
	s.artifacts = append(s.artifacts, ref)
	s.artifacts = s.artifacts[max(0, len(s.artifacts)-histories.MaxArtifacts):]
	s.mu.Unlock()
	s.again(PartArtifacts)
}

// readArtifacts reads what was asked for.
func (s *Store) readArtifacts(ctx context.Context, d cluster.Deps) {
	for ctx.Err() == nil {
		s.mu.Lock()
		if len(s.artifacts) == 0 {
			s.mu.Unlock()
			return
		}
		ref := s.artifacts[0]
		s.artifacts = slices.Clone(s.artifacts[1:])
		s.mu.Unlock()
		a := histories.ReadArtifact(d, ref)
		s.update(func(snap *Snapshot) {
			next := &histories.Artifacts{}
			if snap.Artifacts != nil {
				for _, old := range snap.Artifacts.List {
					if old.Ref.SHA256 != ref.SHA256 {
						next.List = append(next.List, old)
					}
				}
			}
			next.List = append(next.List, a)
			next.List = next.List[max(0, len(next.List)-histories.MaxArtifacts):]
			snap.Artifacts = next
		})
	}
}
