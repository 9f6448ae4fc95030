// Package bucket keeps immutable objects by key in a directory or in an object store (S3, Google Cloud
// Storage, Azure), for processes on several machines. An object is created completely or not at all. If
// several processes create an object with the same key, one succeeds. [Store], [Renew] and [DeleteOld] are
// the two sides of garbage collection; see engine/store/garbage. The package imports engine/store/durable
// and gocloud.dev/blob, starts no goroutine and caches nothing.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/memblob" // mem://, an empty store of one process
	"gocloud.dev/gcerrors"
)

// Errors for [errors.Is].
var (
	ErrExists   = errors.New("the object exists")
	ErrNotFound = errors.New("object not found")
	ErrURL      = errors.New("invalid store URL")
	// ErrUnavailable means that a request to the store failed. It may succeed later, or with other
	// credentials.
	ErrUnavailable = errors.New("the store failed")
	// ErrDenied means that the store does not accept the credentials of this process, or that the process has
	// no credentials. Such an error is an [ErrUnavailable] too.
	ErrDenied = errors.New("the store denies access")
)

// Object describes an object.
type Object struct {
	Key     string
	Size    int64
	Written time.Time // by the clock of the store
}

// Bucket holds objects by key. A key is a slash-separated path of letters, digits and "-_.~%". Methods
// may be called concurrently. Their errors are one of those above.
type Bucket interface {
	// Create creates an object. If the key has one, it returns [ErrExists] and changes nothing.
	Create(ctx context.Context, key string, content io.Reader) error
	// Put creates an object or replaces it. It is for objects whose key determines their content.
	Put(ctx context.Context, key string, content io.Reader) error
	// Open returns the content of an object, or [ErrNotFound].
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// List returns the objects whose keys have a prefix, in no certain order.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Delete deletes an object, or returns [ErrNotFound].
	Delete(ctx context.Context, key string) error
	// String returns the URL without parameters and secrets, for display.
	String() string
	Close() error
}

// Open opens the bucket of a URL: file:///DIR, s3://BUCKET, gs://BUCKET or azblob://CONTAINER, with the
// parameters of gocloud.dev/blob; its parameter prefix selects a part of a bucket. Credentials come from
// the environment, as for the programs of each provider. With the parameter codec=true, the codec encodes the
// content of the objects; otherwise it may be nil. Open does not contact the store; see [Make].
func Open(ctx context.Context, address string, codec Codec) (Bucket, error) {
	return openURL(ctx, address, codec, false)
}

// Make is like [Open], and creates the directory of a file URL.
func Make(ctx context.Context, address string, codec Codec) (Bucket, error) {
	return openURL(ctx, address, codec, true)
}

func openURL(ctx context.Context, address string, codec Codec, create bool) (b Bucket, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, fmt.Errorf(
			"%w: %.200q; expected file:///DIR, s3://BUCKET, gs://BUCKET or azblob://CONTAINER",
			ErrURL, address)
	}
	query := u.Query()
	encodes := query.Get("codec") == "true"
	query.Del("codec")
	u.RawQuery = query.Encode()
	if encodes && codec == nil {
		return nil, fmt.Errorf("%w: %s: its content is encoded, so it needs a codec server", ErrURL,
			u.Redacted())
	}
	if u.Scheme == "file" {
		b, err = openDirectory(u, create)
	} else {
		b, err = openObjects(ctx, u)
	}
	if err == nil && encodes {
		b = encoded{b, codec}
	}
	return b, err
}

func openObjects(ctx context.Context, u *url.URL) (Bucket, error) {
	if err := quietSDK(u); err != nil {
		return nil, err
	}
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrURL, u.Redacted(), err)
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host}
	if prefix := u.Query().Get("prefix"); prefix != "" {
		shown.Path = "/" + prefix
	}
	return &objects{b, shown.String()}, nil
}

// Get reads an object of at most limit bytes.
func Get(ctx context.Context, b Bucket, key string, limit int64) ([]byte, error) {
	r, err := b.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s in %s is larger than %d bytes", key, b, limit)
	}
	return content, err
}

// clockKey is the key of an object that exists for a moment.
const clockKey = "clock"

// Now returns the time by the clock of the store, which may differ from that of this machine.
func Now(ctx context.Context, b Bucket) (now time.Time, err error) {
	if err := b.Put(ctx, clockKey, strings.NewReader("")); err != nil {
		return now, err
	}
	for o, err := range b.List(ctx, clockKey) {
		if err != nil {
			return now, err
		}
		now = o.Written
	}
	if now.IsZero() { // another process has just deleted the object
		return now, fmt.Errorf("read the clock of the store %s: %w: try again", b, ErrUnavailable)
	}
	if err := b.Delete(ctx, clockKey); err != nil && !errors.Is(err, ErrNotFound) {
		return now, err
	}
	return now, nil
}

// objects is a bucket of an object store.
type objects struct {
	bucket *blob.Bucket
	name   string
}

func (o *objects) Create(ctx context.Context, key string, content io.Reader) error {
	return o.write(ctx, key, content, true)
}

func (o *objects) Put(ctx context.Context, key string, content io.Reader) error {
	return o.write(ctx, key, content, false)
}

func (o *objects) write(ctx context.Context, key string, content io.Reader, ifNone bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before Close, it abandons the object
	w, err := o.bucket.NewWriter(ctx, key, &blob.WriterOptions{
		IfNotExist: ifNone, ContentType: "application/octet-stream",
	})
	if err != nil {
		return o.explain("write", key, err)
	}
	if _, err := io.Copy(w, content); err != nil {
		cancel()
		_ = w.Close()
		return o.explain("write", key, err)
	}
	return o.explain("write", key, w.Close())
}

func (o *objects) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := o.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, o.explain("read", key, err)
	}
	return r, nil
}

func (o *objects) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		list := o.bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			object, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Object{}, o.explain("list", prefix, err))
				return
			}
			if checkKey(object.Key) != nil {
				continue // acescope did not write the object
			}
			if !yield(Object{object.Key, object.Size, object.ModTime}, nil) {
				return
			}
		}
	}
}

func (o *objects) Delete(ctx context.Context, key string) error {
	return o.explain("delete", key, o.bucket.Delete(ctx, key))
}

func (o *objects) String() string { return o.name }
func (o *objects) Close() error   { return o.bucket.Close() }

// explain returns the error of an operation on an object, or nil.
func (o *objects) explain(verb, key string, err error) error {
	switch code := gcerrors.Code(err); {
	case err == nil:
		return nil
	case code == gcerrors.FailedPrecondition || isPrecondition(err):
		err = ErrExists
	case code == gcerrors.NotFound && (verb == "read" || verb == "delete"):
		err = ErrNotFound
	default:
		err = failureOf(err)
	}
	return fmt.Errorf("%s %s in the store %s: %w", verb, key, o.name, err)
}

// isPrecondition reports whether S3 refused a conditional write. If the object of the other writer is not
// visible yet, gocloud.dev/blob calls that "not found".
func isPrecondition(err error) bool {
	var api interface{ ErrorCode() string }
	return errors.As(err, &api) && api.ErrorCode() == "PreconditionFailed"
}

// checkKey rejects keys that would leave the directory of a bucket.
func checkKey(key string) error {
	for part := range strings.SplitSeq(key, "/") {
		outside := func(r rune) bool {
			letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			return !letter && !(r >= '0' && r <= '9') && !strings.ContainsRune("-_.~%", r)
		}
		if part == "" || part[0] == '.' || strings.ContainsFunc(part, outside) {
			return fmt.Errorf("invalid key %.200q", key)
		}
	}
	return nil
}
