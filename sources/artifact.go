package sources

import (
	"context"
	"fmt"
	"slices"

	"acescope/engine/ace"
)

// Bounds of the artifacts that are open: how many, and how many bytes of each.
const (
	MaxArtifacts  = 8
	ArtifactLimit = 8 << 20
)

// PartArtifacts is the artifacts that somebody opened.
const PartArtifacts Part = "artifacts"

// Artifact is one that was opened: its content, or why there is none.
type Artifact struct {
	Ref  ace.Ref
	Data []byte // not to be changed
	Err  string // in one line
}

// Artifacts are the opened ones, the newest last, at most MaxArtifacts.
type Artifacts struct{ List []Artifact }

// Find is the opened artifact, nil where it was not opened, or is still being read.
func (a *Artifacts) Find(sha256 string) *Artifact {
	if a == nil {
		return nil
	}
	for i := range a.List {
		if a.List[i].Ref.SHA256 == sha256 {
			return &a.List[i]
		}
	}
	return nil
}

// OpenArtifact reads an artifact into the snapshot. One that could not be read is tried
// again.
func (s *Store) OpenArtifact(ref ace.Ref) {
	s.mu.Lock()
	s.artifacts = append(s.artifacts, ref)
	s.artifacts = s.artifacts[max(0, len(s.artifacts)-MaxArtifacts):]
	s.mu.Unlock()
	s.again(PartArtifacts)
}

// readArtifacts reads what was asked for.
func (s *Store) readArtifacts(ctx context.Context, d Deps) {
	for ctx.Err() == nil {
		s.mu.Lock()
		if len(s.artifacts) == 0 {
			s.mu.Unlock()
			return
		}
		ref := s.artifacts[0]
		s.artifacts = slices.Clone(s.artifacts[1:])
		s.mu.Unlock()
		a := ReadArtifact(d, ref)
		s.update(func(snap *Snapshot) {
			next := &Artifacts{}
			if snap.Artifacts != nil {
				for _, old := range snap.Artifacts.List {
					if old.Ref.SHA256 != ref.SHA256 {
						next.List = append(next.List, old)
					}
				}
			}
			next.List = append(next.List, a)
			next.List = next.List[max(0, len(next.List)-MaxArtifacts):]
			snap.Artifacts = next
		})
	}
}

// ReadArtifact reads one artifact of at most [ArtifactLimit] bytes.
func ReadArtifact(d Deps, ref ace.Ref) Artifact {
	a := Artifact{Ref: ref}
	switch {
	case d.Artifact == nil:
		a.Err = "there is no artifact store here: it lies where the worker runs"
	case ref.Size > ArtifactLimit:
		a.Err = fmt.Sprintf("it has %d bytes, more than the %d that are shown here", ref.Size, ArtifactLimit)
	default:
		data, err := d.Artifact(ref, ArtifactLimit)
		if a.Data = data; err != nil {
			a.Data, a.Err = nil, plainError(err)
		}
	}
	return a
}
