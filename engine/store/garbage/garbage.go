// Package garbage deletes the objects of a store to which no history and no playbook branch refers. It
// imports engine/ace and engine/store/bucket, and starts no goroutine.
package garbage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/store/bucket"
)

// Prefixes of the objects that can be deleted: those named by a digest, the logs of runs in
// logs/runs/<workflow>/<run>/, and the transcripts of sessions in transcripts/<workflow>/.
const (
	artifactsPrefix   = "artifacts/"
	booksPrefix       = "playbooks/"
	logsPrefix        = "logs/runs/"
	transcriptsPrefix = "transcripts/"
)

// maxFollowed is the maximum size of an object that is searched for references to other objects, in bytes.
const maxFollowed = 4 << 20

// Roots are the objects to which histories and branches refer.
type Roots struct {
	digests map[string]bool
	logs    map[string]bool // log directories of runs, and transcript directories of workflows
}

// NewRoots returns empty roots.
func NewRoots() *Roots { return &Roots{map[string]bool{}, map[string]bool{}} }

// Add adds the digests in a text: 64 hexadecimal digits.
func (r *Roots) Add(text []byte) { r.add(text) }

// AddLogs adds the log directory of a run, and with it the transcripts of its workflow.
func (r *Roots) AddLogs(dir string) {
	r.logs[dir] = true
	r.logs[transcriptsPrefix+path.Base(path.Dir(dir))] = true
}

func (r *Roots) add(text []byte) (added []string) {
	const size = 64
	for start := 0; start < len(text); {
		end := start
		for end < len(text) && isHex(text[end]) {
			end++
		}
		if end-start == size && !r.digests[string(text[start:end])] {
			digest := string(text[start:end])
			r.digests[digest] = true
			added = append(added, digest)
		}
		start = end + 1
	}
	return added
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

// Options say which objects are deleted.
type Options struct {
	// OlderThan is the minimum age of deleted objects, by the clock of the store. It must be much longer than
	// the difference between the clocks of machines, because a directory has the times of the machines that
	// write.
	OlderThan time.Duration
	DryRun    bool
	// Deleted is called for each deleted object, or with DryRun for each object to delete; may be nil.
	Deleted func(bucket.Object)
}

// Report counts objects.
type Report struct {
	Kept    Count `json:"kept"`    // needed
	Recent  Count `json:"recent"`  // not needed, but kept for their age
	Deleted Count `json:"deleted"` // deleted, or to delete in a dry run
}

// Count is a number of objects and their bytes.
type Count struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// Add counts an object.
func (c *Count) Add(o bucket.Object) {
	c.Objects++
	c.Bytes += o.Size
}

// Collect deletes objects to which neither the roots nor needed objects refer.
func Collect(ctx context.Context, b bucket.Bucket, roots *Roots, o Options) (Report, error) {
	objects := map[string][]bucket.Object{} // by digest
	for _, prefix := range []string{artifactsPrefix, booksPrefix} {
		for object, err := range b.List(ctx, prefix) {
			if err != nil {
				return Report{}, err
			}
			digest := strings.TrimSuffix(path.Base(object.Key), ".json")
			if len(digest) == 64 && strings.Trim(digest, "0123456789abcdef") == "" {
				objects[digest] = append(objects[digest], object)
			}
		}
	}
	if err := roots.follow(ctx, b, objects); err != nil {
		return Report{}, err
	}
	now, err := bucket.Now(ctx, b)
	if err != nil {
		return Report{}, err
	}
	c := collection{Options: o, bucket: b, before: now.Add(-o.OlderThan)}
	for digest, list := range objects {
		for _, object := range list {
			if err := c.visit(ctx, object, roots.digests[digest]); err != nil {
				return c.report, err
			}
		}
	}
	for prefix, depth := range map[string]int{logsPrefix: 4, transcriptsPrefix: 2} {
		for object, err := range b.List(ctx, prefix) {
			if err == nil {
				err = c.visit(ctx, object, roots.logs[firstParts(object.Key, depth)])
			}
			if err != nil {
				return c.report, err
			}
		}
	}
	return c.report, nil
}

// follow adds the objects to which needed objects refer.
func (r *Roots) follow(ctx context.Context, b bucket.Bucket, objects map[string][]bucket.Object) error {
	var next []string
	for digest := range objects {
		if r.digests[digest] {
			next = append(next, digest)
		}
	}
	for len(next) > 0 {
		digest := next[len(next)-1]
		next = next[:len(next)-1]
		for _, object := range objects[digest] {
			if object.Size > maxFollowed {
				continue
			}
			content, err := bucket.Get(ctx, b, object.Key, maxFollowed)
			if err != nil && !errors.Is(err, bucket.ErrNotFound) {
				return err
			}
			next = append(next, r.add(content)...)
		}
	}
	return nil
}

// firstParts returns the directory of a key that has n parts.
func firstParts(key string, n int) string {
	parts := strings.SplitN(key, "/", n+1)
	return strings.Join(parts[:min(len(parts), n)], "/")
}

type collection struct {
	Options
	bucket bucket.Bucket
	before time.Time // only objects written before
	report Report
}

func (c *collection) visit(ctx context.Context, o bucket.Object, needed bool) error {
	switch {
	case needed:
		c.report.Kept.Add(o)
		return nil
	case !o.Written.Before(c.before):
		c.report.Recent.Add(o)
		return nil
	}
	if !c.DryRun {
		if err := c.bucket.Delete(ctx, o.Key); err != nil && !errors.Is(err, bucket.ErrNotFound) {
			return fmt.Errorf("stopped after %s: %w",
				ace.Count(c.report.Deleted.Objects, "deleted object"), err)
		}
	}
	c.report.Deleted.Add(o)
	if c.Deleted != nil {
		c.Deleted(o)
	}
	return nil
}
