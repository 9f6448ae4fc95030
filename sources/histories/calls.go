package histories

import (
	"bytes"
	"encoding/json"
	"slices"

	"acescope/engine/ace"
)

// MaxCallBytes bounds the payloads of a run's calls that are kept whole; of calls beyond
// it the previews are kept. A history as a whole can hold no more than some 50 MB.
const MaxCallBytes = 64 << 20

// callChunk is how many calls of a [CallList] are replaced together.
const callChunk = 256

// ToolCall is one tool call with its payloads as the history has them. UseEvent,
// ResultEvent and SessionEvent are the events that told of the call, of its end, and of both at the end of the
// session; 0 where none did. A ToolCall is never changed, only replaced.
type ToolCall struct {
	ace.Call
	UseEvent     int64 `json:"use_event_id,omitempty"`
	ResultEvent  int64 `json:"result_event_id,omitempty"`
	SessionEvent int64 `json:"session_event_id,omitempty"`
	Cut          bool  `json:"cut,omitempty"` // the history has more of its payloads than is kept here
}

// Event is the history event to show for the call: that of its end where there is one.
func (c *ToolCall) Event() int64 {
	for _, id := range []int64{c.ResultEvent, c.SessionEvent, c.UseEvent} {
		if id != 0 {
			return id
		}
	}
	return 0
}

// CallList is tool calls in the order in which the history first tells of them. It is
// immutable; a longer one shares its parts.
type CallList struct {
	chunks [][]*ToolCall
	n      int
	cut    int
}

// Calls makes a list.
func Calls(all ...*ToolCall) CallList {
	var l CallList
	for chunk := range slices.Chunk(all, callChunk) {
		l.chunks = append(l.chunks, chunk)
	}
	l.n = len(all)
	return l
}

// Len is how many calls there are; At is the i-th, from 0.
func (l CallList) Len() int { return l.n }

// At is the i-th call.
func (l CallList) At(i int) *ToolCall { return l.chunks[i/callChunk][i%callChunk] }

// Cut is of how many calls no more than previews are kept.
func (l CallList) Cut() int { return l.cut }

// All calls fn for each call in order until it returns false.
func (l CallList) All(fn func(int, *ToolCall) bool) {
	for i := range l.n {
		if !fn(i, l.At(i)) {
			return
		}
	}
}

// Find is the call with that id, nil where there is none.
func (l CallList) Find(id string) *ToolCall {
	for i := range l.n {
		if c := l.At(i); c.ID == id {
			return c
		}
	}
	return nil
}

// callFolder keeps the calls of a run. What it publishes it no longer writes to: chunks
// that are in a published list are copied before one of their calls is replaced.
type callFolder struct {
	list  CallList
	own   []bool // by chunk: no published list has it
	index map[string]int
	bytes int64
	log   *ace.Ref
}

// payloads are what one fact says of a call, whole.
type payloads struct {
	args, result     []json.RawMessage
	use, end, settle bool
}

// apply takes over what a fact has told of the calls that it touched.
func (f *callFolder) apply(event int64, fact ace.Fact, touched []ace.Call) {
	if len(touched) == 0 {
		return
	}
	told := map[string]*payloads{}
	of := func(id string) *payloads {
		if told[id] == nil {
			told[id] = &payloads{}
		}
		return told[id]
	}
	for _, e := range fact.Events {
		p := of(e.Call())
		p.use = p.use || e.Kind == ace.KindToolUse
		p.end = p.end || e.Kind != ace.KindToolUse
		p.args, p.result = append(p.args, e.Args), append(p.result, e.Result)
	}
	cut := false
	if r, ok := fact.Result.(*ace.SkillSessionResult); ok {
		if cut = r.Log != nil; cut {
			f.log = r.Log
		}
		for _, inv := range r.Invocations {
			p := of(inv.ID)
			p.settle = true
			p.args, p.result = append(p.args, inv.Args), append(p.result, inv.Result)
		}
	}
	for _, c := range touched {
		f.put(event, c, of(c.ID), cut)
	}
}

func (f *callFolder) put(event int64, now ace.Call, p *payloads, logged bool) {
	if f.index == nil {
		f.index = map[string]int{}
	}
	at, known := f.index[now.ID]
	next := &ToolCall{Call: now}
	var before ToolCall
	if known {
		before = *f.list.At(at)
		next.UseEvent, next.ResultEvent, next.SessionEvent = before.UseEvent, before.ResultEvent, before.SessionEvent
	}
	if p.use && next.UseEvent == 0 {
		next.UseEvent = event
	}
	if p.end && !now.Pending && next.ResultEvent == 0 {
		next.ResultEvent = event
	}
	if p.settle && next.SessionEvent == 0 {
		next.SessionEvent = event
	}
	f.bytes -= before.size()
	next.Args = f.whole(now.Args, append(p.args, before.Args), before.Args, logged)
	next.Result = f.whole(now.Result, append(p.result, before.Result), before.Result, logged)
	if f.bytes+next.size() > MaxCallBytes {
		next.Args, next.Result, next.Cut = now.Args, now.Result, true
	}
	f.bytes += next.size()
	switch {
	case next.Cut && !before.Cut:
		f.list.cut++
	case before.Cut && !next.Cut:
		f.list.cut--
	}
	f.store(at, known, next)
}

func (c *ToolCall) size() int64 { return int64(len(c.Args) + len(c.Result)) }

// whole is the payload that the fold's preview is of. Where the session's result holds
// previews itself, what signals told before stays if it is longer.
func (f *callFolder) whole(preview json.RawMessage, candidates []json.RawMessage, before json.RawMessage, logged bool) json.RawMessage {
	if logged && len(before) > len(preview) {
		return before
	}
	for _, c := range candidates {
		if len(c) >= len(preview) && bytes.Equal(ace.Preview(c), preview) {
			return c
		}
	}
	return preview
}

func (f *callFolder) store(at int, known bool, c *ToolCall) {
	l := &f.list
	if !known {
		f.index[c.ID] = l.n
		if l.n%callChunk == 0 {
			l.chunks = append(l.chunks, make([]*ToolCall, 0, callChunk))
			f.own = append(f.own, true)
		}
		last := len(l.chunks) - 1
		l.chunks[last] = append(l.chunks[last], c) // behind the end of what was published
		l.n++
		return
	}
	chunk := at / callChunk
	if !f.own[chunk] {
		room := make([]*ToolCall, len(l.chunks[chunk]), callChunk)
		copy(room, l.chunks[chunk])
		l.chunks[chunk], f.own[chunk] = room, true
	}
	l.chunks[chunk][at%callChunk] = c
}

// publish is the list as it is now.
func (f *callFolder) publish() CallList {
	clear(f.own)
	l := f.list
	l.chunks = slices.Clone(l.chunks)
	return l
}
