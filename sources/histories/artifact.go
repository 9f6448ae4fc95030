package histories

import (
	"fmt"

	"acescope/engine/ace"
	"acescope/sources/cluster"
)

// Bounds of the artifacts that are open: how many, and how many bytes of each.
const (
	MaxArtifacts  = 8
	ArtifactLimit = 8 << 20
)

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

// ReadArtifact reads one artifact of at most [ArtifactLimit] bytes.
func ReadArtifact(d cluster.Deps, ref ace.Ref) Artifact {
	a := Artifact{Ref: ref}
	switch {
	case d.Artifact == nil:
		a.Err = "there is no artifact store here: it lies where the worker runs"
	case ref.Size > ArtifactLimit:
		a.Err = fmt.Sprintf("it has %d bytes, more than the %d that are shown here", ref.Size, ArtifactLimit)
	default:
		data, err := d.Artifact(ref, ArtifactLimit)
		if a.Data = data; err != nil {
			a.Data, a.Err = nil, cluster.PlainError(err)
		}
	}
	return a
}
