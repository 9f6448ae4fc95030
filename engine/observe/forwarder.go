package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"acescope/engine/ace"
	"acescope/engine/observe/spool"
)

// Rhythm and bounds of a forwarder.
const (
	lookEvery    = time.Second // where the file system tells nothing of changes
	saveEvery    = 200 * time.Millisecond
	maxUnderWay  = 5000     // records
	maxInTransit = 64 << 20 // bytes of them
)

// Artifacts keeps payloads that are too large for a history.
type Artifacts interface {
	PutBytes(ctx context.Context, content []byte, mediaType string) (ace.Ref, error)
}

// Forwarder takes what stands in a spool to the runs it belongs to. Of all forwarders of
// one spool, in whatever process, one works and the others wait for it to end.
type Forwarder struct {
	Dir       string
	To        *Temporal
	Artifacts Artifacts // nil: large payloads are cut
	Redact    Redact
	Log       *slog.Logger

	position position
	reader   reader
	agents   agents
	underWay []*passage // in the order in which they were read
	bytes    int
	arrived  chan struct{} // one slot
	extras   map[string]bool
	saved    time.Time
	changed  bool
}

// passage is a record on its way.
type passage struct {
	at      spot
	bytes   int
	left    atomic.Int32 // events that are not delivered
	tells   bool
	session string // of an agent, "" for none
	after   *session
}

// lockFile is locked by the forwarder that works.
const lockFile = "lock"

// Run forwards until ctx ends. The error tells that the spool cannot be used.
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
		if !sleep(ctx, lookEvery) {
			return nil
		}
	}
	if err := f.begin(ctx); err != nil {
		return err
	}
	defer f.reader.close()
	return f.follow(ctx)
}

func (f *Forwarder) begin(ctx context.Context) (err error) {
	if f.position, err = readPosition(f.Dir); err != nil {
		return err
	}
	f.arrived, f.extras = make(chan struct{}, 1), map[string]bool{}
	f.agents = newAgents(f.position.Sessions, func(data []byte) json.RawMessage { return f.payload(ctx, data) })
	f.reader = reader{dir: f.Dir, record: f.record, broken: func(at spot) { f.pass(&passage{at: at}, nil) }}
	return f.reader.begin(f.position)
}

func (f *Forwarder) follow(ctx context.Context) error {
	news, stop := watch(f.Dir)
	defer stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := f.read(); err != nil {
			f.Log.Warn("the spool cannot be read", "error", err)
		}
		f.settle(false)
		select {
		case <-ctx.Done():
			f.settle(true)
			return nil
		case <-news:
		case <-f.arrived:
		case <-tick.C:
			f.settle(true)
		}
	}
}

// read takes up what is new, as long as not too much is under way.
func (f *Forwarder) read() error {
	f.reader.extras(f.extra)
	for len(f.underWay) < maxUnderWay && f.bytes < maxInTransit {
		more, err := f.reader.next()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// record sends what a record says on its way.
func (f *Forwarder) record(at spot, rec spool.Record) {
	p := &passage{at: at, bytes: len(rec.Payload)}
	told, id := f.told(rec)
	if id != "" {
		p.session, p.after = id, f.agents.copyOf(id)
	}
	f.pass(p, told)
}

// told is what a record says, and the agent's session that it is about.
func (f *Forwarder) told(rec spool.Record) (told []Told, session string) {
	switch rec.Kind {
	case spool.Hook, spool.HookCut:
		rec.Payload = f.Redact.apply(rec.Payload)
		return f.agents.hook(rec)
	case spool.Event:
		var t Told
		if json.Unmarshal(rec.Payload, &t) == nil && t.TaskID != "" && t.Start != "" {
			t.Event.Args, t.Event.Result = f.fit(t.Event.Args), f.fitStep(t.Event)
			return []Told{t}, ""
		}
	}
	return nil, ""
}

func (f *Forwarder) fit(data json.RawMessage) json.RawMessage {
	if len(data) <= ace.InlineBytes {
		return data
	}
	return f.agents.payload(data)
}

// fitStep leaves the result of a step as it is: it is no payload but a part of the run.
func (f *Forwarder) fitStep(e ace.ToolEvent) json.RawMessage {
	if e.Kind == ace.KindStep || e.Kind == ace.KindFinish {
		return e.Result
	}
	return f.fit(e.Result)
}

// pass sends events on their way and keeps their record in mind until they have arrived.
func (f *Forwarder) pass(p *passage, told []Told) {
	p.tells = len(told) > 0
	p.left.Store(int32(len(told)))
	f.underWay, f.bytes = append(f.underWay, p), f.bytes+p.bytes
	for _, t := range told {
		f.To.deliver(t, func() { f.arrive(p) })
	}
}

func (f *Forwarder) arrive(p *passage) {
	if p.left.Add(-1) == 0 {
		select {
		case f.arrived <- struct{}{}:
		default:
		}
	}
}

// extra sends a record on its way that stands in a file of its own.
func (f *Forwarder) extra(path string, rec spool.Record) {
	if f.extras[path] {
		return
	}
	f.extras[path] = true
	told, _ := f.told(rec)
	left := &atomic.Int32{}
	left.Store(int32(len(told)))
	for _, t := range told {
		f.To.deliver(t, func() {
			if left.Add(-1) == 0 {
				_ = os.Remove(path)
			}
		})
	}
	if len(told) == 0 {
		_ = os.Remove(path)
	}
}

// settle notes up to where all has arrived, and writes it down now and then, or now.
func (f *Forwarder) settle(now bool) {
	for len(f.underWay) > 0 && f.underWay[0].left.Load() <= 0 {
		p := f.underWay[0]
		f.underWay = f.underWay[1:]
		f.bytes -= p.bytes
		f.position.Offsets[p.at.file] = p.at.end
		if p.session != "" && p.after != nil {
			f.position.Sessions[p.session] = p.after
		}
		if p.tells {
			f.position.Forwarded++
		} else {
			f.position.Passed++
		}
		f.position.At, f.changed = time.Now().UTC(), true
	}
	for _, number := range f.reader.remove(f.position.Offsets) {
		delete(f.position.Offsets, number)
		f.changed = true
	}
	if why := f.To.Failure(); why != f.position.Failure || f.reader.active != f.position.Active {
		f.position.Failure, f.position.Active, f.changed = why, f.reader.active, true
	}
	if !f.changed || !now && time.Since(f.saved) < saveEvery {
		return
	}
	if err := f.position.save(f.Dir); err != nil {
		f.Log.Warn("how far the spool was forwarded cannot be written", "error", err)
		return
	}
	f.saved, f.changed = time.Now(), false
}

// payload is a reference to what is too large for a history, or its beginning where it
// cannot be kept.
func (f *Forwarder) payload(ctx context.Context, data []byte) json.RawMessage {
	if f.Artifacts != nil {
		if ref, err := f.Artifacts.PutBytes(ctx, data, "application/json"); err == nil {
			return toJSON(ref)
		}
	}
	return ace.Preview(data)
}

// watch tells when something changes in a directory; never, where that cannot be told.
func watch(dir string) (<-chan struct{}, func()) {
	news := make(chan struct{}, 1)
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return news, func() {}
	}
	if err := w.Add(dir); err != nil {
		_ = w.Close()
		return news, func() {}
	}
	go func() {
		for e := range w.Events {
			if name := filepath.Base(e.Name); name != spool.Active && filepath.Ext(name) != "" {
				continue
			}
			select {
			case news <- struct{}{}:
			default:
			}
		}
	}()
	go func() {
		for range w.Errors { // what was missed is looked for every second
		}
	}()
	return news, func() { _ = w.Close() }
}
