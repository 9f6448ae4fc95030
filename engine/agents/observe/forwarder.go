package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
)

// Timing and bounds of a forwarder.
const (
	pollInterval  = time.Second // for changes that the file system does not report
	maxRound      = 5000        // records that are delivered at a time
	maxRoundBytes = 64 << 20    // of their payloads
)

// Artifacts stores payloads that are too large for a history.
type Artifacts interface {
	PutBytes(ctx context.Context, content []byte, mediaType string) (ace.Ref, error)
}

// Forwarder delivers the records of a spool to their runs: all that have arrived, and when these are
// delivered, the next ones. Of all forwarders of a spool, in any process, one works and the others
// wait.
type Forwarder struct {
	Dir       string
	To        *Temporal
	Artifacts Artifacts // nil: large payloads are cut
	Redact    Redact
	Log       *slog.Logger

	position position
	reader   reader
	decoder  hookDecoder
}

// lockFile is locked by the working forwarder.
const lockFile = "lock"

// Run forwards until ctx ends. It returns an error if the spool cannot be used.
func (f *Forwarder) Run(ctx context.Context) error {
	if f.Log == nil {
		f.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return fmt.Errorf("the spool: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(f.Dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the spool: %w", err)
	}
	defer lock.Close()
	for !spool.Lock(lock) {
		if !sleep(ctx, pollInterval) {
			return nil
		}
	}
	if f.position, err = readPosition(f.Dir); err != nil {
		return err
	}
	store := func(data []byte) json.RawMessage { return f.store(ctx, data) }
	f.decoder = hookDecoder{sessions: f.position.Sessions, store: store}
	f.reader = reader{dir: f.Dir}
	if err := f.reader.open(f.position); err != nil {
		return err
	}
	defer f.reader.close()
	f.follow(ctx)
	return nil
}

func (f *Forwarder) follow(ctx context.Context) {
	changes, stop := watch(f.Dir)
	defer stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		more, err := f.forward(ctx)
		if err != nil && ctx.Err() == nil {
			f.Log.Warn("the spool cannot be forwarded", "error", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-tick.C:
		}
	}
}

// forward delivers the records that have arrived, and then saves the position. It returns false if
// no record has arrived.
func (f *Forwarder) forward(ctx context.Context) (more bool, err error) {
	var list []Observation
	p := &f.position
	active, records := p.Active, 0
	for size := 0; records < maxRound && size < maxRoundBytes; records++ {
		var e entry
		if e, more, err = f.reader.next(); !more || err != nil {
			break
		}
		size += len(e.record.Payload)
		observations := f.decode(e.record)
		list = append(list, observations...)
		p.Offsets[e.file] = e.end
		if len(observations) > 0 {
			p.Forwarded++
		} else {
			p.Ignored++
		}
	}
	if undelivered := f.deliver(ctx, list); undelivered != nil {
		return false, undelivered
	}
	removed := f.reader.removeDelivered(p.Offsets)
	for _, number := range removed {
		delete(p.Offsets, number)
	}
	p.Active = f.reader.active
	if records == 0 && len(removed) == 0 && p.Active == active && p.Failure == "" {
		return false, err
	}
	if p.Failure = ""; records > 0 {
		p.At = time.Now().UTC()
	}
	return records > 0, errors.Join(err, p.save(f.Dir))
}

// deliver delivers observations and returns when all are delivered, or with an error when ctx ends.
// Meanwhile it saves why deliveries fail.
func (f *Forwarder) deliver(ctx context.Context, list []Observation) error {
	delivered := make(chan struct{}, len(list))
	for _, o := range list {
		f.To.deliver(o, func() { delivered <- struct{}{} })
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for done := 0; done < len(list); {
		select {
		case <-delivered:
			done++
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			saved, err := readPosition(f.Dir)
			if failure := f.To.Failure(); err == nil && failure != saved.Failure {
				saved.Failure = failure
				err = saved.save(f.Dir)
			}
			if err != nil {
				f.Log.Warn("the position in the spool cannot be saved", "error", err)
			}
		}
	}
	return nil
}

// decode returns the observations of a record.
func (f *Forwarder) decode(rec spool.Record) []Observation {
	switch rec.Kind {
	case spool.Hook, spool.HookTruncated:
		rec.Payload = f.Redact.apply(rec.Payload)
		return f.decoder.decode(rec)
	case spool.Event:
		var o Observation
		if json.Unmarshal(rec.Payload, &o) != nil || o.TaskID == "" || o.Start == "" {
			return nil
		}
		o.Event.Args = f.shorten(o.Event.Args)
		if o.Event.Kind != ace.KindStep && o.Event.Kind != ace.KindFinish { // their results are part of the run
			o.Event.Result = f.shorten(o.Event.Result)
		}
		return []Observation{o}
	}
	return nil
}

// shorten stores a payload that is too large for a history and returns its reference.
func (f *Forwarder) shorten(data json.RawMessage) json.RawMessage {
	if len(data) <= ace.InlineBytes {
		return data
	}
	return f.decoder.store(data)
}

// store stores a payload and returns its reference, or its beginning if it cannot be stored.
func (f *Forwarder) store(ctx context.Context, data []byte) json.RawMessage {
	if f.Artifacts != nil {
		if ref, err := f.Artifacts.PutBytes(ctx, data, "application/json"); err == nil {
			return mustJSON(ref)
		}
	}
	return ace.Preview(data)
}

// watch reports changes in a directory. If watching is not possible, it reports none.
func watch(dir string) (<-chan struct{}, func()) {
	changes := make(chan struct{}, 1)
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return changes, func() {}
	}
	if err := w.Add(dir); err != nil {
		_ = w.Close()
		return changes, func() {}
	}
	go func() {
		for e := range w.Events {
			if name := filepath.Base(e.Name); name == spool.Active || filepath.Ext(name) == "" {
				select {
				case changes <- struct{}{}:
				default:
				}
			}
		}
	}()
	go func() {
		for range w.Errors { // polling finds missed changes
		}
	}()
	return changes, func() { _ = w.Close() }
}
