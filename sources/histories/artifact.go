package histories

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/tidwall/gjson"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// Bounds of opened artifacts: their number, and the bytes of each.
const (
	MaxArtifacts  = 8
	ArtifactLimit = 8 << 20
)

// Artifact is an opened artifact: its content, or the reason why it cannot be read.
type Artifact struct {
	Ref  ace.Ref
	Data []byte // must not be changed
	Err  string // one line
}

// Artifacts holds the opened artifacts, newest last, at most MaxArtifacts.
type Artifacts struct{ List []Artifact }

// Find returns the artifact with a hash, or nil if it is not open or still being read.
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

const noArtifacts = "no artifact store on this machine; artifacts are stored where the worker runs"

// ReadArtifact reads one artifact of at most [ArtifactLimit] bytes.
func ReadArtifact(ctx context.Context, d cluster.Deps, ref ace.Ref) Artifact {
	a := Artifact{Ref: ref}
	switch {
	case d.Artifact == nil:
		a.Err = noArtifacts
	case ref.Size > ArtifactLimit:
		a.Err = fmt.Sprintf("%s, more than the limit of %s", ace.Count(ref.Size, "byte"),
			ace.Number(ArtifactLimit))
	default:
		data, err := readArtifact(ctx, d, ref)
		if a.Data = data; err != nil {
			a.Data, a.Err = nil, cluster.PlainError(err)
		}
	}
	return a
}

// readArtifact returns the content of an artifact, or the text of a record of model calls.
func readArtifact(ctx context.Context, d cluster.Deps, ref ace.Ref) ([]byte, error) {
	if ref.MediaType != ace.CallsMediaType {
		return d.Artifact(ctx, ref, ArtifactLimit)
	}
	list, err := calls.Read(ctx, d.Artifact, ace.CallLog{Ref: ref})
	text := calls.Text(list)
	if len(text) > ArtifactLimit {
		text = ace.Cut(text, ArtifactLimit)
	}
	return []byte(text), err
}

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

// Open reads an artifact, again if it could not be read before.
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
		a := ReadArtifact(ctx, f.link.Deps, ref)
		list = slices.DeleteFunc(slices.Clone(list), func(old Artifact) bool {
			return old.Ref.SHA256 == ref.SHA256
		})
		list = append(list, a)
		list = list[max(0, len(list)-MaxArtifacts):]
		publish(&Artifacts{List: list})
	}
}

// Bounds of the JSON that is searched for references.
const (
	maxRefBytes = 64 << 10
	maxRefDepth = 4
	maxRefs     = 8
)

// RefsIn lists the artifacts that a JSON value refers to, within the bounds above.
func RefsIn(raw []byte) []ace.Ref {
	if len(raw) > maxRefBytes || !bytes.Contains(raw, []byte(`"sha256"`)) {
		return nil
	}
	var refs []ace.Ref
	walkRefs(gjson.ParseBytes(raw), maxRefDepth, func(r ace.Ref) bool {
		refs = append(refs, r)
		return len(refs) < maxRefs
	})
	return refs
}

// walkRefs calls visit for the references in a JSON value until it returns false.
func walkRefs(value gjson.Result, depth int, visit func(ace.Ref) bool) bool {
	var r ace.Ref
	switch {
	case depth < 0 || !value.IsObject() && !value.IsArray():
		return true
	case isHash.MatchString(value.Get("sha256").String()) && json.Unmarshal([]byte(value.Raw), &r) == nil:
		return visit(r)
	}
	more := true
	value.ForEach(func(_, inner gjson.Result) bool {
		more = walkRefs(inner, depth-1, visit)
		return more
	})
	return more
}

var isHash = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// FindRef returns the reference of an event of any workflow to the artifact with a hash. Its size is 0 if the
// event only names the hash, as a failure or the payload of another program may.
func FindRef(e *historypb.HistoryEvent, sha256 string) (ref ace.Ref, found bool) {
	const deep = 100
	visit := func(p protopath.Values) error {
		data, ok := p.Index(-1).Value.Interface().([]byte)
		if text, isText := p.Index(-1).Value.Interface().(string); isText {
			data, ok = []byte(text), true
		}
		if !ok || !bytes.Contains(data, []byte(sha256)) {
			return nil
		}
		ref, found = ace.Ref{SHA256: sha256}, true
		walkRefs(gjson.ParseBytes(data), deep, func(r ace.Ref) bool {
			if r.SHA256 == sha256 {
				ref = r
			}
			return r.SHA256 != sha256
		})
		return protorange.Terminate
	}
	_ = protorange.Range(e.ProtoReflect(), visit) // visit returns no other error
	return ref, found
}
