package codec

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
)

// Bounds of a request in payloads and bytes of their data. Servers and proxies often accept
// no more than 1 MB, and data grows by a third in transit.
const (
	MaxBatch      = 500
	MaxBatchBytes = 512 << 10
)

const (
	parallelRequests = 4
	maxSplits        = 64 // further requests per decoding to isolate payloads that fail
	maxKinds         = 8  // kinds of payloads in a batch that are tried separately
)

type item struct {
	d digest
	p *commonpb.Payload
}

type outcome struct {
	p      *commonpb.Payload
	reason string
}

// decode returns an outcome for every payload of the list. With force it also asks a paused
// server and retries payloads that failed recently.
func (s *Server) decode(ctx context.Context, list []item, force bool) map[digest]outcome {
	d := &decoding{s: s, ctx: ctx, out: make(map[digest]outcome, len(list)), splits: maxSplits}
	if rest := d.lookUp(list, force); len(rest) > 0 {
		d.request(rest)
	}
	d.finish()
	return d.out
}

type decoding struct {
	s   *Server
	ctx context.Context

	mu       sync.Mutex
	out      map[digest]outcome
	splits   int    // further requests allowed
	asked    bool   // a request was made
	rejected string // first reason why a payload could not be decoded
	down     string // why the server is no longer asked
}

// lookUp sets the known outcomes, and returns the payloads to request.
func (d *decoding) lookUp(list []item, force bool) (rest []item) {
	for _, it := range list {
		if p, ok := d.s.decoded.Get(it.d); ok {
			d.out[it.d] = outcome{p: p}
		} else {
			rest = append(rest, it)
		}
	}
	if force {
		return rest
	}
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	paused := ""
	if s.now().Before(s.status.Next) {
		paused = s.status.Reason
	}
	unknown := rest[:0]
	for _, it := range rest {
		reason := cmp.Or(s.failureOf(it.d), s.failureOf(kindOf(it.p)), paused)
		if reason == "" {
			unknown = append(unknown, it)
			continue
		}
		d.out[it.d] = outcome{reason: reason}
	}
	return unknown
}

// failureOf returns why a payload or kind failed recently, or "". The caller holds s.mu.
func (s *Server) failureOf(key digest) string {
	if f, ok := s.failed[key]; ok && s.now().Before(f.until) {
		return f.reason
	}
	return ""
}

// request requests payloads in as few requests as the bounds allow, some in parallel.
func (d *decoding) request(list []item) {
	d.asked = true
	var group errgroup.Group
	group.SetLimit(parallelRequests)
	for len(list) > 0 {
		n := batchLen(list)
		batch := list[:n]
		list = list[n:]
		group.Go(func() error {
			d.try(batch)
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
}

func batchLen(list []item) int {
	bytes := 0
	for i, it := range list[:min(len(list), MaxBatch)] {
		bytes += len(it.p.GetData())
		if bytes > MaxBatchBytes && i > 0 {
			return i
		}
	}
	return min(len(list), MaxBatch)
}

// try requests a batch, or parts of it if the server rejects it.
func (d *decoding) try(batch []item) {
	err := d.ask(batch)
	if err == nil {
		return
	}
	if !rejectsPayloads(err) {
		d.abandon(err, batch)
		return
	}
	parts, oneKind := d.split(batch, err)
	switch {
	case oneKind && len(batch) > 3 && d.takeSplits(2) && d.fails(batch[:1]) && d.fails(batch[len(batch)-1:]):
		d.reject(batch, d.s.explain(err), true)
	case len(batch) == 1 || !d.takeSplits(len(parts)):
		d.reject(batch, d.s.explain(err), false)
	default:
		for _, part := range parts {
			d.try(part)
		}
	}
}

func (d *decoding) ask(batch []item) error {
	d.mu.Lock()
	down := d.down
	d.mu.Unlock()
	if down != "" {
		d.fail(batch, down)
		return nil
	}
	list := make([]*commonpb.Payload, len(batch))
	for i, it := range batch {
		list[i] = it.p
	}
	got, err := d.s.call(d.ctx, "decode", list)
	if err != nil {
		return err
	}
	var unchanged []item
	for i, p := range got {
		if bytes.Equal(p.GetData(), list[i].GetData()) && proto.Equal(p, list[i]) {
			unchanged = append(unchanged, batch[i])
			continue
		}
		d.s.decoded.Put(batch[i].d, p)
		d.mu.Lock()
		d.out[batch[i].d] = outcome{p: p}
		d.mu.Unlock()
	}
	if len(unchanged) > 0 {
		d.reject(unchanged, "the server returned the payload unchanged", false)
	}
	return nil
}

// split divides a rejected batch. Payloads of one kind, such as those with the same key, usually
// fail together.
func (d *decoding) split(batch []item, err error) (parts [][]item, oneKind bool) {
	r, ok := errors.AsType[*httpError](err)
	if tooLarge := ok && r.code == http.StatusRequestEntityTooLarge; !tooLarge {
		kinds := groupByKind(batch)
		if n := len(kinds); n > 1 && n <= maxKinds {
			return kinds, false
		}
		oneKind = len(kinds) == 1
	}
	return [][]item{batch[:len(batch)/2], batch[len(batch)/2:]}, oneKind
}

func (d *decoding) fails(batch []item) bool {
	err := d.ask(batch)
	return err != nil && rejectsPayloads(err)
}

func (d *decoding) takeSplits(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.splits < n {
		return false
	}
	d.splits -= n
	return true
}

func (d *decoding) fail(batch []item, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, it := range batch {
		if d.out[it.d].p == nil {
			d.out[it.d] = outcome{reason: reason}
		}
	}
}

// reject fails payloads that the server cannot decode and remembers them, or with wholeKind
// their kind, to not retry them for a while.
func (d *decoding) reject(batch []item, reason string, wholeKind bool) {
	d.fail(batch, reason)
	d.mu.Lock()
	d.rejected = cmp.Or(d.rejected, reason)
	d.mu.Unlock()
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	f := failure{reason, s.now().Add(payloadBackoff)}
	if wholeKind {
		s.remember(kindOf(batch[0].p), f)
		return
	}
	for _, it := range batch {
		s.remember(it.d, f)
	}
}

func (s *Server) remember(key digest, f failure) {
	if len(s.failed) >= maxFailed {
		s.failed = map[digest]failure{}
	}
	s.failed[key] = f
}

// abandon stops asking the server in this decoding, and pauses it.
func (d *decoding) abandon(err error, batch []item) {
	reason := d.s.explain(err)
	d.mu.Lock()
	first := d.down == ""
	d.down = reason
	d.mu.Unlock()
	d.fail(batch, reason)
	if first {
		d.s.mu.Lock()
		d.s.sample = batch[0].p
		d.s.mu.Unlock()
		d.s.setDown(d.ctx, err)
	}
}

func (d *decoding) finish() {
	failed := int64(0)
	for _, o := range d.out {
		if o.reason != "" {
			failed++
		}
	}
	s := d.s
	s.mu.Lock()
	s.status.Failed += failed
	status := s.status
	s.mu.Unlock()
	if !d.asked || d.down != "" {
		return
	}
	s.setUp()
	switch {
	case d.rejected != "" && (!status.OK || status.Reason == ""):
		s.setStatus(true, d.rejected)
	case d.rejected == "" && !status.OK, status.Since.IsZero():
		s.setStatus(true, "")
	}
}

// kindOf identifies the metadata of a payload. Payloads of one kind usually need the same key.
func kindOf(p *commonpb.Payload) digest {
	return digestOf(&commonpb.Payload{Metadata: p.GetMetadata(), Data: []byte("kind")})
}

// groupByKind groups a batch by kind, in the order of first appearance.
func groupByKind(batch []item) [][]item {
	var kinds [][]item
	index := map[digest]int{}
	for _, it := range batch {
		k := kindOf(it.p)
		i, ok := index[k]
		if !ok {
			i = len(kinds)
			index[k] = i
			kinds = append(kinds, nil)
		}
		kinds[i] = append(kinds[i], it)
	}
	return kinds
}
