package histories

import (
	"context"
	"slices"
	"sync"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// ArtifactFeed reads the artifacts that the user opens, at most [MaxArtifacts] at a time.
type ArtifactFeed struct {
	*feed.Feed[struct{}, *Artifacts]
	link *cluster.Link

	mu   sync.Mutex
	next []ace.Ref // to read, oldest first
}

// NewArtifactFeed returns a feed that has opened nothing.
func NewArtifactFeed(link *cluster.Link) *ArtifactFeed {
	f := &ArtifactFeed{link: link}
	f.Feed = feed.New(link.Wake, f.read)
	f.Want(struct{}{})
	return f
}

// Open reads an artifact. One that could not be read before is read again.
func (f *ArtifactFeed) Open(ref ace.Ref) {
	f.mu.Lock()
	f.next = append(f.next, ref)
	f.next = f.next[max(0, len(f.next)-MaxArtifacts):]
	f.mu.Unlock()
	f.Again()
}

func (f *ArtifactFeed) read(ctx context.Context, _ struct{}, publish func(*Artifacts)) {
	var list []Artifact
	if last := f.Value(); last != nil {
		list = last.List
	}
	for ctx.Err() == nil {
		f.mu.Lock()
		if len(f.next) == 0 {
			f.mu.Unlock()
			return
		}
		ref := f.next[0]
		f.next = slices.Clone(f.next[1:])
		f.mu.Unlock()
		a := ReadArtifact(f.link.Deps, ref)
		list = slices.DeleteFunc(slices.Clone(list), func(old Artifact) bool { return old.Ref.SHA256 == ref.SHA256 })
		list = append(list, a)
		list = list[max(0, len(list)-MaxArtifacts):]
		publish(&Artifacts{List: list})
	}
}
