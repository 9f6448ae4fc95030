package ace

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"slices"
)

// Bounds of a [Carried].
const (
	carriedNewest = 2 * RecentCalls
	carriedOpen   = 200
	carriedBytes  = 1500 << 10
)

// Carried is what an observed run knows when it is continued under another run id: all
// that its answers need, exactly, and in detail the newest calls and those of which more
// is to come. Of the others there are counts and durations. It stays below 1.5 MB, since a
// payload may have 2.
type Carried struct {
	Said       []ToolEvent             `json:"said,omitempty"`
	Seen       []byte                  `json:"seen,omitempty"` // events: 64-bit hashes of their ids
	Past       []byte                  `json:"past,omitempty"` // calls that are not kept in detail: the same
	Calls      []carriedCall           `json:"calls,omitempty"`
	Skills     map[string]carriedSkill `json:"skills,omitempty"` // of the calls that are not kept in detail
	Other      map[EventKind]int       `json:"other,omitempty"`
	Known      int                     `json:"known,omitempty"`
	Dropped    int                     `json:"dropped,omitempty"`
	Unreadable int                     `json:"unreadable,omitempty"`
}

type carriedCall struct {
	Told    Invocation  `json:"told"`
	Marks   marks       `json:"marks"`
	Settled mark        `json:"settled,omitzero"`
	Now     *Invocation `json:"now,omitempty"` // as the session's result has it
}

type carriedSkill struct {
	Calls     int         `json:"calls"`
	OK        int         `json:"ok,omitempty"`
	Failed    int         `json:"failed,omitempty"`
	Denied    int         `json:"denied,omitempty"`
	Pending   int         `json:"pending,omitempty"`
	Durations []byte      `json:"durations,omitempty"` // IEEE 754, milliseconds
	Newest    *Invocation `json:"newest,omitempty"`    // its time, id and error
	Error     *Invocation `json:"error,omitempty"`
}

// past is what is known of calls and events of before the run was continued. It is never
// written to, so that copies share it.
type past struct {
	seen, calls hashes
}

type hashes map[uint64]struct{}

func (h hashes) has(text string) bool {
	if len(h) == 0 {
		return false
	}
	_, ok := h[hashOf(text)]
	return ok
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

func (h hashes) pack() []byte {
	data := make([]byte, 0, 8*len(h))
	for _, n := range slices.Sorted(maps.Keys(h)) {
		data = binary.LittleEndian.AppendUint64(data, n)
	}
	return data
}

func unpack(data []byte) hashes {
	h := make(hashes, len(data)/8)
	for ; len(data) >= 8; data = data[8:] {
		h[binary.LittleEndian.Uint64(data)] = struct{}{}
	}
	return h
}

// Carry is what the run goes on with when it is continued.
func (s *State) Carry() *Carried {
	for newest, open := carriedNewest, carriedOpen; ; newest, open = newest/2, open/2 {
		c := s.calls.carry(newest, open)
		if s.observed != nil {
			c.Said = slices.Clone(s.observed.said)
		}
		if data, err := json.Marshal(c); err == nil && len(data) <= carriedBytes || newest+open == 0 {
			return c
		}
	}
}

func (l *ledger) carry(newest, open int) *Carried {
	c := &Carried{Other: maps.Clone(l.other), Known: l.known, Dropped: l.dropped, Unreadable: l.bad}
	seen := maps.Clone(l.past.seen)
	if seen == nil {
		seen = hashes{}
	}
	for _, id := range l.seen.list() {
		seen[hashOf(id)] = struct{}{}
	}
	c.Seen = seen.pack()
	calls := maps.Clone(l.past.calls)
	if calls == nil {
		calls = hashes{}
	}
	skills := map[string]*tally{}
	for name, t := range l.skills {
		own := t.clone()
		own.newest, own.error = t.past.newest, t.past.error
		skills[name] = own
	}
	detailed := l.detailed(newest, open)
	for i, number := range l.order {
		e := l.calls.get(number)
		t := skills[e.now.Name]
		if detailed[i] {
			t.calls--
			*t.slot(e.now)--
			if timed(e.now) {
				t.gone = append(t.gone, e.now.DurationMS)
			}
			c.Calls = append(c.Calls, carriedOf(e))
			continue
		}
		t.see(e)
		calls[hashOf(e.now.ID)] = struct{}{}
	}
	c.Past = calls.pack()
	for name, t := range skills {
		if t.calls > 0 {
			if c.Skills == nil {
				c.Skills = map[string]carriedSkill{}
			}
			c.Skills[name] = t.carried()
		}
	}
	return c
}

// detailed says which calls, by their place in order, are carried in detail.
func (l *ledger) detailed(newest, open int) []bool {
	keep := make([]bool, len(l.order))
	for i := len(l.order) - 1; i >= 0; i-- {
		switch {
		case len(l.order)-i <= newest:
			keep[i] = true
		case open > 0 && l.calls.get(l.order[i]).unfinished():
			keep[i] = true
			open--
		}
	}
	return keep
}

// unfinished tells whether more of the call is likely to come.
func (c *entry) unfinished() bool {
	return !c.known && c.now.Accepted && !(c.marks.Used && c.marks.Ended)
}

func carriedOf(e *entry) carriedCall {
	c := carriedCall{Told: e.told, Marks: e.marks, Settled: e.settled}
	if e.known {
		c.Now = &e.now.Invocation
	}
	return c
}

func (t *tally) carried() carriedSkill {
	t.settle()
	s := carriedSkill{Calls: t.calls, OK: t.ok, Failed: t.failed, Denied: t.denied, Pending: t.pending}
	for _, d := range t.durations {
		s.Durations = binary.LittleEndian.AppendUint64(s.Durations, math.Float64bits(d))
	}
	s.Newest, s.Error = t.newest.brief(), t.error.brief()
	return s
}

// brief is what a tally needs of its newest call: when it was, its id and its error.
func (c *entry) brief() *Invocation {
	if c == nil {
		return nil
	}
	return &Invocation{ID: c.now.ID, Name: c.now.Name, At: c.now.At, Error: c.now.Error}
}

// restore takes over what was carried.
func (l *ledger) restore(c *Carried) {
	l.past = past{seen: unpack(c.Seen), calls: unpack(c.Past)}
	l.other, l.known, l.dropped, l.bad = maps.Clone(c.Other), c.Known, c.Dropped, c.Unreadable
	l.skills, l.touched = map[string]*tally{}, map[int32]struct{}{}
	for name, s := range c.Skills {
		l.skills[name] = s.tally()
	}
	for _, call := range c.Calls {
		e := &entry{number: -1, told: call.Told, marks: call.Marks, settled: call.Settled}
		e.ended = e.marks.over(e.told.Accepted)
		e.now = Call{e.told, !e.ended}
		if call.Now != nil {
			e.known, e.now = true, Call{Invocation: *call.Now}
		}
		l.put(e)
	}
	l.begin()
}

func (s carriedSkill) tally() *tally {
	t := &tally{calls: s.Calls, ok: s.OK, failed: s.Failed, denied: s.Denied, pending: s.Pending}
	for data := s.Durations; len(data) >= 8; data = data[8:] {
		t.durations = append(t.durations, math.Float64frombits(binary.LittleEndian.Uint64(data)))
	}
	t.past.newest, t.past.error = pastEntry(s.Newest), pastEntry(s.Error)
	t.newest, t.error = t.past.newest, t.past.error
	return t
}

func pastEntry(inv *Invocation) *entry {
	if inv == nil {
		return nil
	}
	return &entry{number: -1, now: Call{Invocation: *inv}}
}

// total is how many calls are known, in detail or not.
func (l *ledger) total() int { return len(l.order) + len(l.past.calls) }
