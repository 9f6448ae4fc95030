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
	carriedLatest = 2 * RecentCalls
	carriedOpen   = 200
	carriedBytes  = 1500 << 10
)

// Carried is the state that an observed run carries over when it continues as new: everything
// that its query answers need. It holds the latest and the unfinished calls in detail, and the
// counts and durations of the other calls. It stays below 1.5 MB; the payload limit is 2 MB.
type Carried struct {
	Reports    []ToolEvent             `json:"said,omitempty"`
	Seen       []byte                  `json:"seen,omitempty"` // 64-bit hashes of event IDs
	Past       []byte                  `json:"past,omitempty"` // 64-bit hashes of IDs of calls without details
	Calls      []carriedCall           `json:"calls,omitempty"`
	Skills     map[string]carriedSkill `json:"skills,omitempty"` // of the calls without details
	Other      map[EventKind]int       `json:"other,omitempty"`
	Known      int                     `json:"known,omitempty"`
	Dropped    int                     `json:"dropped,omitempty"`
	Unreadable int                     `json:"unreadable,omitempty"`
}

type carriedCall struct {
	Reported Invocation  `json:"told"`
	Marks    marks       `json:"marks"`
	Settled  mark        `json:"settled,omitzero"`
	Now      *Invocation `json:"now,omitempty"` // as the session's result holds it
}

type carriedSkill struct {
	Calls     int         `json:"calls"`
	OK        int         `json:"ok,omitempty"`
	Failed    int         `json:"failed,omitempty"`
	Denied    int         `json:"denied,omitempty"`
	Pending   int         `json:"pending,omitempty"`
	Durations []byte      `json:"durations,omitempty"` // IEEE 754, milliseconds
	Latest    *Invocation `json:"newest,omitempty"`    // only its time, ID and error
	Error     *Invocation `json:"error,omitempty"`
}

// past identifies events and calls from before the run was continued. Copies share it, so it is
// never modified.
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

func (h hashes) add(text string) { h[hashOf(text)] = struct{}{} }

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// clone returns a copy that is not nil.
func (h hashes) clone() hashes {
	c := make(hashes, len(h))
	maps.Copy(c, h)
	return c
}

func (h hashes) pack() []byte {
	data := make([]byte, 0, 8*len(h))
	for _, n := range slices.Sorted(maps.Keys(h)) {
		data = binary.LittleEndian.AppendUint64(data, n)
	}
	return data
}

func unpackHashes(data []byte) hashes {
	h := make(hashes, len(data)/8)
	for n := range unpack(data) {
		h[n] = struct{}{}
	}
	return h
}

// unpack iterates over packed 64-bit integers.
func unpack(data []byte) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for rest := data; len(rest) >= 8; rest = rest[8:] {
			if !yield(binary.LittleEndian.Uint64(rest)) {
				return
			}
		}
	}
}

// Carry returns the state that the run carries over when it continues as new.
func (s *State) Carry() *Carried {
	for latest, open := carriedLatest, carriedOpen; ; latest, open = latest/2, open/2 {
		c := s.calls.carry(latest, open)
		if s.observed != nil {
			c.Reports = slices.Clone(s.observed.reports)
		}
		if data, err := json.Marshal(c); err == nil && len(data) <= carriedBytes || latest+open == 0 {
			return c
		}
	}
}

func (l *ledger) carry(latest, open int) *Carried {
	c := &Carried{Other: maps.Clone(l.other), Known: l.known, Dropped: l.dropped, Unreadable: l.unreadable}
	seen := l.past.seen.clone()
	for _, id := range l.seen.list() {
		seen.add(id)
	}
	c.Seen = seen.pack()
	skills := make(map[string]*tally, len(l.skills))
	for name, t := range l.skills {
		own := t.clone()
		own.latest = t.past.latest
		own.error = t.past.error
		skills[name] = own
	}
	calls := l.past.calls.clone()
	detailed := l.detailed(latest, open)
	for i, number := range l.order {
		e := l.calls.get(number)
		t := skills[e.now.Name]
		if !detailed[i] {
			t.see(e)
			calls.add(e.now.ID)
			continue
		}
		t.subtract(e.now)
		call := carriedCall{Reported: e.reported, Marks: e.marks, Settled: e.settled}
		if e.known {
			call.Now = &e.now.Invocation
		}
		c.Calls = append(c.Calls, call)
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

// detailed selects the calls, by their index in order, that are carried over in detail: the
// latest, and before these a number of unfinished ones.
func (l *ledger) detailed(latest, open int) []bool {
	keep := make([]bool, len(l.order))
	for i := len(l.order) - 1; i >= 0; i-- {
		switch {
		case len(l.order)-i <= latest:
			keep[i] = true
		case open > 0 && l.calls.get(l.order[i]).unfinished():
			keep[i] = true
			open--
		}
	}
	return keep
}

// unfinished reports whether more events of the call are expected.
func (c *entry) unfinished() bool {
	return !c.known && c.now.Accepted && !(c.marks.Used && c.marks.Ended)
}

func (t *tally) carried() carriedSkill {
	t.sortDurations()
	s := carriedSkill{Calls: t.calls, OK: t.ok, Failed: t.failed, Denied: t.denied, Pending: t.pending}
	for _, d := range t.durations {
		s.Durations = binary.LittleEndian.AppendUint64(s.Durations, math.Float64bits(d))
	}
	s.Latest = t.latest.brief()
	s.Error = t.error.brief()
	return s
}

// brief returns the fields of a call that a tally needs.
func (c *entry) brief() *Invocation {
	if c == nil {
		return nil
	}
	return &Invocation{ID: c.now.ID, Name: c.now.Name, At: c.now.At, Error: c.now.Error}
}

// restore initializes the ledger with the carried state.
func (l *ledger) restore(c *Carried) {
	l.past = past{seen: unpackHashes(c.Seen), calls: unpackHashes(c.Past)}
	l.other = maps.Clone(c.Other)
	l.known = c.Known
	l.dropped = c.Dropped
	l.unreadable = c.Unreadable
	l.skills = map[string]*tally{}
	l.touched = map[int32]struct{}{}
	for name, s := range c.Skills {
		l.skills[name] = s.tally()
	}
	for _, call := range c.Calls {
		e := &entry{number: -1, reported: call.Reported, marks: call.Marks, settled: call.Settled}
		e.ended = e.marks.ended(e.reported.Accepted)
		e.now = Call{e.reported, !e.ended}
		if call.Now != nil {
			e.known = true
			e.now = Call{Invocation: *call.Now}
		}
		l.put(e)
	}
	l.begin()
}

func (s carriedSkill) tally() *tally {
	t := &tally{calls: s.Calls, ok: s.OK, failed: s.Failed, denied: s.Denied, pending: s.Pending}
	for bits := range unpack(s.Durations) {
		t.durations = append(t.durations, math.Float64frombits(bits))
	}
	t.past.latest = pastEntry(s.Latest)
	t.past.error = pastEntry(s.Error)
	t.latest = t.past.latest
	t.error = t.past.error
	return t
}

func pastEntry(inv *Invocation) *entry {
	if inv == nil {
		return nil
	}
	return &entry{number: -1, now: Call{Invocation: *inv}}
}
