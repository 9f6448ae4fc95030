package histories

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/tidwall/gjson"

	"acescope/engine/ace"
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

// ReadArtifact reads one artifact of at most [ArtifactLimit] bytes.
func ReadArtifact(d cluster.Deps, ref ace.Ref) Artifact {
	a := Artifact{Ref: ref}
	switch {
	case d.Artifact == nil:
		a.Err = "no artifact store on this machine; artifacts are stored where the worker runs"
	case ref.Size > ArtifactLimit:
		a.Err = fmt.Sprintf("%d bytes, more than the limit of %d", ref.Size, ArtifactLimit)
	default:
		data, err := d.Artifact(ref, ArtifactLimit)
		if a.Data = data; err != nil {
			a.Data, a.Err = nil, cluster.PlainError(err)
		}
	}
	return a
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
		a := ReadArtifact(f.link.Deps, ref)
		list = slices.DeleteFunc(slices.Clone(list), func(old Artifact) bool { return old.Ref.SHA256 == ref.SHA256 })
		list = append(list, a)
		list = list[max(0, len(list)-MaxArtifacts):]
		publish(&Artifacts{List: list})
	}
}

// maxRefBytes bounds the JSON that is searched for references.
const maxRefBytes = 64 << 10

// RefsIn lists the artifacts that a JSON value refers to: at most eight, at most four levels deep.
func RefsIn(raw []byte) []ace.Ref {
	if len(raw) > maxRefBytes || !bytes.Contains(raw, []byte(`"sha256"`)) {
		return nil
	}
	var refs []ace.Ref
	var walk func(value gjson.Result, depth int)
	walk = func(value gjson.Result, depth int) {
		var r ace.Ref
		switch {
		case depth > 4 || len(refs) == 8 || !value.IsObject() && !value.IsArray():
		case isHash.MatchString(value.Get("sha256").String()) && json.Unmarshal([]byte(value.Raw), &r) == nil:
			refs = append(refs, r)
		default:
			value.ForEach(func(_, inner gjson.Result) bool {
				walk(inner, depth+1)
				return true
			})
		}
	}
	walk(gjson.ParseBytes(raw), 0)
	return refs
}

var isHash = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// Refs lists all artifacts that a run refers to.
func Refs(d *Detail) []ace.Ref {
	var refs []ace.Ref
	if d.Input.PromptRef != nil {
		refs = append(refs, *d.Input.PromptRef)
	}
	if d.CallLog != nil {
		refs = append(refs, *d.CallLog)
	}
	if d.Phase.Failure != nil {
		refs = append(refs, refsInMessage(d.Phase.Failure.Message)...)
	}
	d.Calls.All(func(_ int, c *ToolCall) bool {
		refs = append(append(refs, RefsIn(c.Args)...), RefsIn(c.Result)...)
		return true
	})
	return refs
}

// artifactInMessage matches an artifact in the message of a failure.
var artifactInMessage = regexp.MustCompile(`artifact ([0-9a-f]{64}), (\d{1,15}) bytes`)

// refsInMessage lists the artifacts that the message of a failure names.
func refsInMessage(message string) (refs []ace.Ref) {
	for _, m := range artifactInMessage.FindAllStringSubmatch(message, 8) {
		size, _ := strconv.ParseInt(m[2], 10, 64) // at most fifteen digits
		refs = append(refs, ace.Ref{SHA256: m[1], Size: size, MediaType: "text/plain; charset=utf-8"})
	}
	return refs
}
