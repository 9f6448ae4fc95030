// Package garbage deletes the objects of a store to which no history and no playbook branch refers. It
// imports engine/ace and engine/store/bucket, and starts no goroutine.
//
// Writers and collections run at the same time, on any machines. A writer that stores content, or is about to
// refer to an object that was stored before, gives the object the current time with [bucket.Store] or
// [bucket.Renew]. An object stays for [Options.OlderThan] after that, with everything to which its content
// refers; until then, the reference must be in a history, a branch, the heartbeat of a step, a schedule or
// another root.
//
// A collection deletes old objects in batches: it first creates the object "deleting" with their names, then
// reads the time of each again, and deletes it only if it is still old. A writer renews the object first,
// then reads "deleting", waits while that names the object, and then checks that the object exists. So either
// the collection sees the new time, or the writer sees the name or the missing object. A batch ends after 20
// s, and writers wait for 30 s, so neither waits for a process that was killed. What remains: a process that
// is suspended for more than 10 s between reading the time and deleting; a request to delete that the client
// of the store repeats after it has succeeded; and a directory on a network file system that caches
// attributes (mount it with lookupcache=none,noac). A machine trusts for half of [bucket.MinAge] that what it
// stored is still there.
package garbage

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
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
	// OlderThan is the minimum age of deleted objects, by the clock of the store, and at least
	// [bucket.MinAge] while machines use the store. It must be much longer than the difference between the
	// clocks of machines, because a directory has the times of the machines that write.
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

// Collect deletes objects to which neither the roots nor needed objects refer, nor those that are kept for
// their age.
func Collect(ctx context.Context, b bucket.Bucket, roots *Roots, o Options) (Report, error) {
	now, err := bucket.Now(ctx, b)
	if err != nil {
		return Report{}, err
	}
	c := collection{Options: o, bucket: b, before: now.Add(-o.OlderThan)}
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
	if err := c.follow(ctx, roots, objects); err != nil {
		return Report{}, err
	}
	for digest, list := range objects {
		c.visit(list, roots.digests[digest], false)
	}
	for prefix, depth := range map[string]int{logsPrefix: 4, transcriptsPrefix: 2} {
		dirs := map[string][]bucket.Object{}
		for object, err := range b.List(ctx, prefix) {
			if err != nil {
				return Report{}, err
			}
			dir := firstParts(object.Key, depth)
			dirs[dir] = append(dirs[dir], object)
		}
		for dir, list := range dirs { // one recent part keeps the others
			c.visit(list, roots.logs[dir], slices.ContainsFunc(list, c.isRecent))
		}
	}
	err = c.delete(ctx)
	return c.report, err
}

// follow adds the objects to which needed and recent objects refer.
func (c *collection) follow(ctx context.Context, r *Roots, objects map[string][]bucket.Object) error {
	var next []string
	for digest, list := range objects {
		if r.digests[digest] || slices.ContainsFunc(list, c.isRecent) {
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
			content, err := bucket.Get(ctx, c.bucket, object.Key, maxFollowed)
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
	bucket  bucket.Bucket
	before  time.Time // only objects written before
	report  Report
	garbage []bucket.Object
}

func (c *collection) isRecent(o bucket.Object) bool { return !o.Written.Before(c.before) }

// visit decides what to do with objects of one digest or directory.
func (c *collection) visit(list []bucket.Object, needed, recent bool) {
	for _, o := range list {
		switch {
		case needed:
			c.report.Kept.Add(o)
		case recent || c.isRecent(o):
			c.report.Recent.Add(o)
		default:
			c.garbage = append(c.garbage, o)
		}
	}
}

func (c *collection) delete(ctx context.Context) error {
	deleted := func(o bucket.Object) {
		c.report.Deleted.Add(o)
		if c.Deleted != nil {
			c.Deleted(o)
		}
	}
	if c.DryRun {
		for _, o := range c.garbage {
			deleted(o)
		}
		return nil
	}
	slices.SortFunc(c.garbage, func(a, b bucket.Object) int { return strings.Compare(a.Key, b.Key) })
	if err := bucket.DeleteOld(ctx, c.bucket, c.garbage, c.before, deleted, c.report.Recent.Add); err != nil {
		return fmt.Errorf("stopped after %s: %w", ace.Count(c.report.Deleted.Objects, "deleted object"), err)
	}
	return nil
}
