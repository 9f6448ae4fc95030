package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"acescope/engine/internal/sleep"
)

// MinAge is the minimum age of objects that garbage collection deletes. Only tests change it.
var MinAge = 48 * time.Hour

// Trusted reports whether an object that this machine stored at a time is still stored, without a request.
// The other half of [MinAge] is for the reference, which must be in a history or branch by then.
func Trusted(at time.Time) bool { return time.Since(at).Abs() < MinAge/2 }

// Bounds of a deletion.
const (
	deletingName = "deleting" // of the object that names the objects of a batch
	maxDeleting  = 100        // objects of a batch
	deletingFor  = 20 * time.Second
	// deletingOver is the time after which the process that deletes a batch has given up.
	deletingOver = deletingFor + 10*time.Second
	maxPause     = time.Second
)

// Store creates an object whose key determines its content, or renews it.
func Store(ctx context.Context, b Bucket, key string, content io.ReadSeeker) error {
	write := func(how func(context.Context, string, io.Reader) error) error {
		_, err := content.Seek(0, io.SeekStart)
		if err == nil {
			err = how(ctx, key, content)
		}
		return err
	}
	err := write(b.Create)
	if errors.Is(err, ErrExists) {
		err = Renew(ctx, b, key, func() error { return write(b.Put) })
	}
	return err
}

// Renew gives an object the current time by calling write, which creates the object if it is missing. When
// Renew returns nil, no deletion that has begun deletes the object. write may be called several times.
func Renew(ctx context.Context, b Bucket, key string, write func() error) error {
	for {
		err := write()
		if err == nil {
			_, err = awaitDeletion(ctx, b, markerOf(key), path.Base(key))
		}
		if err != nil {
			return err
		}
		r, err := b.Open(ctx, key)
		if err == nil {
			return r.Close()
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
	}
}

func markerOf(key string) string {
	top, _, _ := strings.Cut(key, "/")
	return top + "/" + deletingName
}

// awaitDeletion waits while the batch that is being deleted has an object of that name, or any object for "".
// It reports whether the process that deletes it was killed.
func awaitDeletion(ctx context.Context, b Bucket, marker, name string) (killed bool, err error) {
	first, begun := "", time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		content, err := Get(ctx, b, marker, 1<<20)
		if errors.Is(err, ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if first != string(content) {
			first, begun = string(content), time.Now()
		}
		if killed = time.Since(begun) > deletingOver; killed ||
			name != "" && !slices.Contains(strings.Fields(first), name) {
			return killed, nil
		}
		if err := sleep.For(ctx, pause); err != nil {
			return false, err
		}
	}
}

// DeleteOld deletes the objects that were not written or renewed since a time. It calls deleted for each of
// them, and renewed for the others. The objects are sorted by key.
func DeleteOld(ctx context.Context, b Bucket, list []Object, before time.Time,
	deleted, renewed func(Object)) error {
	for len(list) > 0 {
		marker := markerOf(list[0].Key)
		n := 1
		for n < min(len(list), maxDeleting) && markerOf(list[n].Key) == marker {
			n++
		}
		n, err := deleteBatch(ctx, b, marker, list[:n], before, deleted, renewed)
		if errors.Is(err, ErrExists) { // another process deletes a batch
			var killed bool
			if killed, err = awaitDeletion(ctx, b, marker, ""); killed {
				err = b.Delete(ctx, marker)
			}
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		list = list[n:]
	}
	return nil
}

// deleteBatch deletes the first objects of a list, as many as it can in deletingFor, and returns their
// number, which is positive.
func deleteBatch(ctx context.Context, b Bucket, marker string, list []Object, before time.Time,
	deleted, renewed func(Object)) (n int, err error) {
	names := rand.Text()
	for _, o := range list {
		names += "\n" + path.Base(o.Key)
	}
	within, cancel := context.WithTimeout(ctx, deletingFor)
	defer cancel()
	if err := b.Create(within, marker, strings.NewReader(names)); err != nil {
		return 0, err
	}
	for n < len(list) && err == nil {
		if err = deleteIfOld(within, b, list[n], before, deleted, renewed); err == nil {
			n++
		}
	}
	if n > 0 && within.Err() != nil {
		err = ctx.Err() // the next batch has the rest
	}
	return n, errors.Join(err, b.Delete(context.WithoutCancel(ctx), marker))
}

func deleteIfOld(ctx context.Context, b Bucket, o Object, before time.Time,
	deleted, renewed func(Object)) error {
	for now, err := range b.List(ctx, o.Key) {
		switch {
		case err != nil:
			return err
		case now.Key != o.Key:
		case ctx.Err() != nil:
			return ctx.Err()
		case !now.Written.Before(before):
			renewed(now)
		default:
			if err := b.Delete(ctx, o.Key); err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			deleted(o)
		}
	}
	return nil
}
