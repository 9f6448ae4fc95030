package codec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// Bounds of a request to the server, in payloads and in bytes of their data, and of how
// many requests are made at a time. Servers and proxies often take no more than 1 MB, and
// data grows by a third on the way.
const (
	MaxBatch      = 500
	MaxBatchBytes = 512 << 10
	parallel      = 4
)

// maxSplits bounds the further requests that are made, in one decoding, to find out which
// payloads of a batch cannot be decoded; maxKinds is up to how many kinds of payload are
// tried one by one.
const (
	maxSplits = 64
	maxKinds  = 8
)

// one is a payload with its digest.
type one struct {
	d digest
	p *commonpb.Payload
}

// outcome is what became of a payload: decoded, or why not.
type outcome struct {
	p      *commonpb.Payload
	reason string
}

// Encoded tells whether a payload looks as if a codec had been at it: its encoding is none
// of Temporal's own, or it says JSON and is none.
func Encoded(p *commonpb.Payload) bool {
	switch encoding := string(p.GetMetadata()[converter.MetadataEncoding]); encoding {
	case converter.MetadataEncodingNil, converter.MetadataEncodingBinary, converter.MetadataEncodingProto:
		return false
	case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
		return !json.Valid(p.GetData())
	}
	return true
}

// decode decodes what it can. Every payload of the list has an outcome. With patient the
// server is asked though it failed a moment ago.
func (s *Server) decode(ctx context.Context, list []one, patient bool) map[digest]outcome {
	d := &decoding{s: s, ctx: ctx, out: make(map[digest]outcome, len(list)), splits: maxSplits}
	if rest := d.known(list, patient); len(rest) > 0 {
		d.all(rest)
	}
	d.conclude()
	return d.out
}

// decoding is one call of decode.
type decoding struct {
	s   *Server
	ctx context.Context

	mu     sync.Mutex
	out    map[digest]outcome
	splits int
	asked  bool
	good   int    // payloads that the server decoded
	bad    string // why some could not be, the first reason
	dead   string // why the server is not asked any more
}

// known takes what is known without asking, and is the rest.
func (d *decoding) known(list []one, patient bool) (rest []one) {
	s := d.s
	s.mu.Lock()
	away := ""
	if !patient && s.now().Before(s.status.Next) {
		away = s.status.Reason
	}
	why := func(key digest) string {
		if f, ok := s.failed[key]; ok && !patient && s.now().Before(f.until) {
			return f.reason
		}
		return ""
	}
	reasons := make([]string, len(list))
	for i, o := range list {
		if reasons[i] = why(o.d); reasons[i] == "" {
			reasons[i] = why(kindOf(o.p))
		}
	}
	s.mu.Unlock()
	for i, o := range list {
		switch p := s.decoded.get(o.d); {
		case p != nil:
			d.out[o.d] = outcome{p: p}
		case reasons[i] != "":
			d.out[o.d] = outcome{reason: reasons[i]}
		case away != "":
			d.out[o.d] = outcome{reason: away}
		default:
			rest = append(rest, o)
		}
	}
	return rest
}

// all asks for payloads in as few requests as the bounds allow, some at a time.
func (d *decoding) all(list []one) {
	d.asked = true
	var wg sync.WaitGroup
	free := make(chan struct{}, parallel)
	for len(list) > 0 {
		n := batchLen(list)
		batch := list[:n]
		list = list[n:]
		free <- struct{}{}
		wg.Go(func() {
			d.try(batch)
			<-free
		})
	}
	wg.Wait()
}

// batchLen is how many of the payloads go into one request.
func batchLen(list []one) int {
	bytes := 0
	for i, o := range list[:min(len(list), MaxBatch)] {
		if bytes += len(o.p.GetData()); bytes > MaxBatchBytes && i > 0 {
			return i
		}
	}
	return min(len(list), MaxBatch)
}

// try asks for a batch, and, where the server refuses it, for parts of it.
func (d *decoding) try(batch []one) {
	err := d.ask(batch)
	switch {
	case err == nil:
	case !blames(err):
		d.die(err, batch)
	case len(batch) == 1:
		d.refused(batch, d.s.plain(err), false)
	default:
		d.apart(batch, err)
	}
}

// ask sends a batch and takes what comes back.
func (d *decoding) ask(batch []one) error {
	d.mu.Lock()
	dead := d.dead
	d.mu.Unlock()
	if dead != "" {
		d.give(batch, dead)
		return nil
	}
	list := make([]*commonpb.Payload, len(batch))
	for i, o := range batch {
		list[i] = o.p
	}
	got, err := d.s.call(d.ctx, "decode", list)
	if err != nil {
		return err
	}
	var same []one
	d.mu.Lock()
	for i, p := range got {
		if untouched(p, batch[i].p) {
			same = append(same, batch[i])
			continue
		}
		d.good++
		d.out[batch[i].d] = outcome{p: p}
	}
	d.mu.Unlock()
	for i, p := range got {
		if !untouched(p, batch[i].p) {
			d.s.decoded.put(batch[i].d, p)
		}
	}
	if len(same) > 0 {
		d.refused(same, "it gives the payload back as it is", false)
	}
	return nil
}

func untouched(a, b *commonpb.Payload) bool {
	return bytes.Equal(a.GetData(), b.GetData()) && proto.Equal(a, b)
}

// apart looks for those payloads of a batch that can be decoded. Payloads of one kind, as
// with one key, mostly fail together.
func (d *decoding) apart(batch []one, err error) {
	var tooLarge *refusal
	large := errors.As(err, &tooLarge) && tooLarge.code == http.StatusRequestEntityTooLarge
	kinds := byKind(batch)
	switch {
	case large || len(kinds) > maxKinds:
		d.halves(batch, err)
	case len(kinds) > 1:
		for _, kind := range kinds {
			if d.split(1) {
				d.try(kind)
			} else {
				d.refused(kind, d.s.plain(err), false)
			}
		}
	case len(batch) > 3 && d.split(2) && d.fails(batch[:1]) && d.fails(batch[len(batch)-1:]):
		d.refused(batch, d.s.plain(err), true)
	default:
		d.halves(batch, err)
	}
}

// fails tries one payload.
func (d *decoding) fails(alone []one) bool {
	err := d.ask(alone)
	return err != nil && blames(err)
}

func (d *decoding) halves(batch []one, err error) {
	if !d.split(2) {
		d.refused(batch, d.s.plain(err), false)
		return
	}
	d.try(batch[:len(batch)/2])
	d.try(batch[len(batch)/2:])
}

// split takes requests out of what is left for splitting batches.
func (d *decoding) split(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.splits < n {
		return false
	}
	d.splits -= n
	return true
}

// give leaves payloads as they are, for a reason.
func (d *decoding) give(batch []one, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range batch {
		if d.out[o.d].p == nil {
			d.out[o.d] = outcome{reason: reason}
		}
	}
}

// refused is give for payloads that the server cannot decode, which are not tried again
// for a while; nor are others of their kind, with kind.
func (d *decoding) refused(batch []one, reason string, kind bool) {
	d.give(batch, reason)
	d.mu.Lock()
	if d.bad == "" {
		d.bad = reason
	}
	d.mu.Unlock()
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	f := failure{reason, s.now().Add(payloadRest)}
	if kind {
		s.remember(kindOf(batch[0].p), f)
		return
	}
	for _, o := range batch {
		s.remember(o.d, f)
	}
}

// remember is called with the lock held.
func (s *Server) remember(key digest, f failure) {
	if len(s.failed) >= maxFailed {
		s.failed = map[digest]failure{}
	}
	s.failed[key] = f
}

// die gives the server up for this decoding, and for a while.
func (d *decoding) die(err error, batch []one) {
	reason := d.s.plain(err)
	d.mu.Lock()
	first := d.dead == ""
	d.dead = reason
	d.mu.Unlock()
	d.give(batch, reason)
	if first {
		d.s.keepSample(batch[0].p)
		d.s.down(d.ctx, err)
	}
}

func (s *Server) keepSample(p *commonpb.Payload) {
	s.mu.Lock()
	s.sample = p
	s.mu.Unlock()
}

// conclude counts, and notes how the server does.
func (d *decoding) conclude() {
	failed := int64(0)
	for _, o := range d.out {
		if o.reason != "" {
			failed++
		}
	}
	d.s.count(func(st *Status) {
		st.Decoded += int64(len(d.out)) - failed
		st.Failed += failed
	})
	if !d.asked || d.dead != "" {
		return
	}
	d.s.up()
	st := d.s.Status()
	switch {
	case d.bad != "" && (!st.OK || st.Reason == ""):
		d.s.settle(true, d.bad)
	case d.bad == "" && !st.OK, st.Since.IsZero():
		d.s.settle(true, "")
	}
}

// kindOf names what payloads have in common that one key opens: their metadata.
func kindOf(p *commonpb.Payload) digest {
	return digestOf(&commonpb.Payload{Metadata: p.GetMetadata(), Data: []byte("kind")})
}

// byKind sorts a batch by kinds, in the order in which they come first.
func byKind(batch []one) [][]one {
	var kinds [][]one
	at := map[digest]int{}
	for _, o := range batch {
		k := kindOf(o.p)
		i, ok := at[k]
		if !ok {
			i, at[k] = len(kinds), len(kinds)
			kinds = append(kinds, nil)
		}
		kinds[i] = append(kinds[i], o)
	}
	return kinds
}
