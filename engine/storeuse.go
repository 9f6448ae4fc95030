package engine

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agents/transcript/copies"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
	"acescope/engine/store/garbage"
)

// StoreUse describes the store of a namespace, or of a data directory.
type StoreUse struct {
	URL       string        `json:"url"`
	Shared    bool          `json:"shared"` // by the machines of a cluster
	Namespace string        `json:"namespace"`
	Branches  int           `json:"branches"` // of playbooks
	Artifacts garbage.Count `json:"artifacts"`
	Playbooks garbage.Count `json:"playbooks"` // versions and branches
	Logs      garbage.Count `json:"logs"`      // of runs, and transcripts of sessions
}

// UseOfStore counts the objects in the store.
func UseOfStore(ctx context.Context, e *Engine) (StoreUse, error) {
	b, release, err := e.openBucket(ctx)
	if err != nil {
		return StoreUse{}, err
	}
	defer release()
	u := StoreUse{URL: b.String(), Shared: e.shared != nil, Namespace: e.namespace}
	if err := e.Books.Sync(ctx); err != nil {
		return u, err
	}
	branches, err := e.Books.Branches()
	if err != nil {
		return u, err
	}
	u.Branches = len(branches)
	counts := map[string]*garbage.Count{"artifacts": &u.Artifacts, "playbooks": &u.Playbooks,
		"branches":      &u.Playbooks,
		ace.RunLogsRoot: &u.Logs, copies.Prefix: &u.Logs}
	for kind, count := range counts {
		for object, err := range b.List(ctx, kind+"/") {
			if err != nil {
				return u, err
			}
			if !strings.HasSuffix(object.Key, clustersFile) {
				count.Add(object)
			}
		}
	}
	return u, nil
}

// openBucket returns the shared store, or the data directory as a store.
func (e *Engine) openBucket(ctx context.Context) (b bucket.Bucket, release func(), err error) {
	if e.shared != nil {
		return e.shared, func() {}, nil
	}
	dir := url.URL{Scheme: "file", Path: filepath.ToSlash(e.dir)}
	if b, err = bucket.Open(ctx, dir.String(), nil); err != nil {
		return nil, nil, err
	}
	return b, func() { _ = b.Close() }, nil
}

// SharedStore returns the address of the store that the machines of the cluster share, for display, or "".
func (e *Engine) SharedStore() string {
	if e.shared == nil {
		return ""
	}
	return e.shared.String()
}

// LogMirror returns a function that copies the logs of a run from other machines to this one, or nil without
// a shared store; see [artifact.Logs.Mirror].
func LogMirror(e *Engine) func(ctx context.Context, workflowID, runID string) error {
	if e.shared == nil {
		return nil
	}
	return artifact.NewLogs(e.dir, e.Artifacts).Mirror
}

// TranscriptMirror returns a function that copies the transcripts of sessions from other machines to this
// one, or nil without a shared store; see [copies.Mirror].
func TranscriptMirror(e *Engine) func(ctx context.Context) error {
	if e.shared == nil {
		return nil
	}
	return func(ctx context.Context) error {
		return copies.Mirror(ctx, artifact.NewLogs(e.dir, e.Artifacts), e.dir)
	}
}
