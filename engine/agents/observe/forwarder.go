package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/spool"
	"acescope/engine/agents/price"
	"acescope/engine/internal/sleep"
)

// Timing and bounds of a forwarder.
const (
	pollInterval     = 2 * time.Second // for changes that the file system does not report
	saveInterval     = 200 * time.Millisecond
	maxInFlight      = 5000     // records
	maxInFlightBytes = 64 << 20 // of records
)

// Artifacts stores payloads that are too large for a history.
type Artifacts interface {
	PutBytes(ctx context.Context, content []byte, mediaType string) (ace.Ref, error)
}

// Forwarder delivers the records of a spool to their runs. One forwarder of a spool works at a time; the
// others, in any process, wait.
type Forwarder struct {
	Dir       string
	To        *Temporal
	Artifacts Artifacts // nil: large payloads are cut
	Redact    Redact
	Prices    *price.Prices // nil: list prices
	Log       *slog.Logger

	position  position
	reader    reader
	decoder   hookDecoder
	inFlight  []*transfer // in the order of the records
	bytes     int
	delivered chan struct{} // has one slot
	saved     time.Time
	changed   bool
}

// transfer is a record that is being delivered.
type transfer struct {
	end     location
	bytes   int
	pending atomic.Int32 // events that are not delivered yet
	ignored bool         // the record has no events
	session string       // of an agent, or ""
	after   *hookSession // the state of that session after the record
}

// lockFile is locked by the working forwarder.
const lockFile = "lock"

// Run forwards until ctx ends. It returns an error if the spool cannot be used.
func (f *Forwarder) Run(ctx context.Context) error {
	f.Log = cmp.Or(f.Log, slog.New(slog.DiscardHandler))
	if err := spool.Open(f.Dir); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(f.Dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock the spool: %w", err)
	}
	defer lock.Close()
	for !spool.Lock(lock) {
		if sleep.For(ctx, pollInterval) != nil {
			return nil
		}
	}
	if f.position, err = readPosition(f.Dir); err != nil {
		return err
	}
	f.delivered = make(chan struct{}, 1)
	store := func(data []byte) json.RawMessage {
		if f.Artifacts != nil {
			if ref, err := f.Artifacts.PutBytes(ctx, data, "application/json"); err == nil {
				return mustJSON(ref)
			}
		}
		return ace.Preview(data)
	}
	f.decoder = newHookDecoder(f.position.Sessions, store, f.Redact, f.Prices)
	f.reader = reader{dir: f.Dir, record: f.record, malformed: func(end location) {
		f.send(&transfer{end: end}, nil)
	}}
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
	for {
		if err := errors.Join(spool.Adopt(f.Dir), f.read()); err != nil {
			f.Log.Warn("the spool cannot be read", "error", err)
		}
		f.update(false)
		select {
		case <-ctx.Done():
			f.update(true)
			return
		case <-changes:
		case <-f.delivered:
		case <-tick.C:
			f.update(true)
			if err := f.reader.rotateDelivered(f.position.Offsets); err != nil {
				f.Log.Warn("delivered records cannot be removed from the spool", "error", err)
			}
		}
	}
}

// read reads new records while not too many are in flight.
func (f *Forwarder) read() error {
	for len(f.inFlight) < maxInFlight && f.bytes < maxInFlightBytes {
		more, err := f.reader.next()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (f *Forwarder) record(end location, rec spool.Record) {
	t := &transfer{end: end, bytes: len(rec.Payload)}
	observations, id := f.decode(rec)
	if id != "" {
		t.session = id
		if s := f.decoder.sessions[id]; s != nil {
			t.after = s.clone()
		}
	}
	f.send(t, observations)
}

// decode returns the observations of a record and the id of the agent's session.
func (f *Forwarder) decode(rec spool.Record) (list []Observation, session string) {
	rec.Payload = f.Redact.apply(rec.Payload)
	switch rec.Kind {
	case spool.Hook, spool.HookTruncated:
		return f.decoder.decode(rec)
	case spool.Event:
		var o Observation
		if json.Unmarshal(rec.Payload, &o) != nil || o.TaskID == "" || o.Start == "" {
			return nil, ""
		}
		o.Refused = ""
		return []Observation{o}, ""
	}
	return nil, ""
}

// send sends observations and tracks their record until they are delivered.
func (f *Forwarder) send(t *transfer, observations []Observation) {
	t.ignored = len(observations) == 0
	t.pending.Store(int32(len(observations)))
	f.inFlight = append(f.inFlight, t)
	f.bytes += t.bytes
	for _, o := range observations {
		f.To.deliver(fit(o, f.decoder.store), func(refused error) {
			if refused != nil {
				f.quarantine(o, refused)
			}
			t.pending.Add(-1)
			notify(f.delivered)
		})
	}
}

// quarantine keeps an observation that the server refused, with the reason.
func (f *Forwarder) quarantine(o Observation, reason error) {
	o.Refused = ace.Cut(reason.Error(), maxText)
	err := spool.AppendQuarantine(f.Dir, spool.Event, mustJSON(o))
	f.Log.Warn("an event was refused and is in quarantine", "task", o.TaskID, "reason", reason, "error", err)
}

// update advances the position over the delivered records. It saves the position at most every
// saveInterval, or at once if save is set.
func (f *Forwarder) update(save bool) {
	for len(f.inFlight) > 0 && f.inFlight[0].pending.Load() == 0 {
		t := f.inFlight[0]
		f.inFlight = f.inFlight[1:]
		f.bytes -= t.bytes
		f.position.Offsets[t.end.file] = t.end.offset
		if t.session != "" && t.after != nil {
			f.position.Sessions[t.session] = t.after
		}
		if t.ignored {
			f.position.Ignored++
		} else {
			f.position.Forwarded++
		}
		f.position.At = time.Now().UTC()
		f.changed = true
	}
	for _, number := range f.reader.removeDelivered(f.position.Offsets) {
		delete(f.position.Offsets, number)
		f.changed = true
	}
	if failure := f.To.Failure(); failure != f.position.Failure || f.reader.active != f.position.Active {
		f.position.Failure, f.position.Active = failure, f.reader.active
		f.changed = true
	}
	if !f.changed || !save && time.Since(f.saved) < saveInterval {
		return
	}
	if err := f.position.save(f.Dir); err != nil {
		f.Log.Warn("the position in the spool cannot be saved", "error", err)
		return
	}
	f.saved = time.Now()
	f.changed = false
}

// notify sends to a channel with one slot unless the slot is taken.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
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
	var readers sync.WaitGroup
	readers.Go(func() {
		for e := range w.Events {
			if filepath.Ext(e.Name) == "" {
				notify(changes)
			}
		}
	})
	readers.Go(func() {
		for range w.Errors { // polling finds missed changes
		}
	})
	return changes, func() {
		_ = w.Close()
		readers.Wait()
	}
}
