package histories

import (
	"bytes"
	"encoding/json"
	"slices"

	"acescope/engine/ace"
)

// maxCallBytes bounds the complete payloads of a run's calls. Later calls keep only previews.
const maxCallBytes = 64 << 20

// ToolCall is a tool call with its payloads as recorded in the history. UseEvent, ResultEvent and
// SessionEvent are the events that report the call, its end, and both at the end of the session; 0 if there
// is no such event. A ToolCall is never changed, only replaced.
type ToolCall struct {
	ace.Call
	UseEvent     int64 `json:"use_event_id,omitempty"`
	ResultEvent  int64 `json:"result_event_id,omitempty"`
	SessionEvent int64 `json:"session_event_id,omitempty"`
	Cut          bool  `json:"cut,omitempty"` // the history has more of its payloads than is kept here
}

// Event returns the id of an event that reports the call: its end if known, else the end of the session, else
// its start.
func (c *ToolCall) Event() int64 {
	for _, id := range []int64{c.ResultEvent, c.SessionEvent, c.UseEvent} {
		if id != 0 {
			return id
		}
	}
	return 0
}

// CallList holds tool calls in the order in which the history first reports them. It is immutable.
type CallList struct {
	calls []*ToolCall
	cut   int
}

// Calls returns a list of calls.
func Calls(all ...*ToolCall) CallList { return CallList{calls: all} }

// Len returns the number of calls.
func (l CallList) Len() int { return len(l.calls) }

// At returns the call at an index, from 0.
func (l CallList) At(i int) *ToolCall { return l.calls[i] }

// Cut returns the number of calls of which only previews are kept.
func (l CallList) Cut() int { return l.cut }

// All calls fn for each call in order until it returns false.
func (l CallList) All(fn func(int, *ToolCall) bool) {
	for i, c := range l.calls {
		if !fn(i, c) {
			return
		}
	}
}

// Find returns the call with an id, or nil.
func (l CallList) Find(id string) *ToolCall {
	for _, c := range l.calls {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// callFolder collects the calls of a run.
type callFolder struct {
	list   CallList
	shared bool // list is published and must be copied before a call is replaced
	index  map[string]int
	bytes  int64
	log    *ace.Ref
}

// payloads are the complete payloads of one call in one fact.
type payloads struct {
	args, result     []json.RawMessage
	use, end, settle bool
}

// apply adds what a fact reports about the calls that it changed.
func (f *callFolder) apply(event int64, fact ace.Fact, touched []ace.Call) {
	if len(touched) == 0 {
		return
	}
	byID := map[string]*payloads{}
	of := func(id string) *payloads {
		if byID[id] == nil {
			byID[id] = &payloads{}
		}
		return byID[id]
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
		next.UseEvent, next.ResultEvent, next.SessionEvent = before.UseEvent, before.ResultEvent,
			before.SessionEvent
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
	if f.bytes+next.size() > maxCallBytes {
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

// whole returns the payload that belongs to a preview of the fold. If the session's result holds only
// previews, the longer payload of an earlier signal stays.
func (f *callFolder) whole(preview json.RawMessage, candidates []json.RawMessage, before json.RawMessage,
	logged bool) json.RawMessage {
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
		f.index[c.ID] = len(l.calls)
		l.calls = append(l.calls, c) // after the end of the published lists
		return
	}
	if f.shared {
		l.calls, f.shared = slices.Clone(l.calls), false
	}
	l.calls[at] = c
}

// publish returns the current list.
func (f *callFolder) publish() CallList {
	f.shared = true
	return CallList{calls: slices.Clip(f.list.calls), cut: f.list.cut}
}
