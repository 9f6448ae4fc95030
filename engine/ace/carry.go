package ace

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
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
	Reports []ToolEvent `json:"said,omitempty"`
	// Seen holds 64-bit hashes of event IDs, and Past hashes of the IDs of calls without details.
	Seen       []byte                  `json:"seen,omitempty"`
	Past       []byte                  `json:"past,omitempty"`
	Calls      []carriedCall           `json:"calls,omitempty"`
	Skills     map[string]carriedSkill `json:"skills,omitempty"` // of the calls without details
	Other      map[EventKind]int       `json:"other,omitempty"`
	Commands   map[string]int          `json:"commands,omitempty"`
	Known      int                     `json:"known,omitempty"`
	Dropped    int                     `json:"dropped,omitempty"`
	Unreadable int                     `json:"unreadable,omitempty"`
}

type carriedCall struct {
	Reported Invocation  `json:"told"`
	Marks    marks       `json:"marks"`
	Settled  mark        `json:"settled,omitzero"`
	Now      *Invocation `json:"now,omitempty"` // from the session's result
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

// past describes events and calls from before the run was continued. Copies share it, so it is
// never modified.
type past struct {
	seen, calls hashes
	skills      map[string]callTimes
}

type hashes map[uint64]struct{}

func (h hashes) has(text string) bool {
	_, ok := h[hashOf(text)]
	return ok
}

func (h hashes) add(text string) { h[hashOf(text)] = struct{}{} }

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

func (h hashes) pack() []byte { return pack(slices.Sorted(maps.Keys(h))) }

func unpackHashes(data []byte) hashes {
	h := make(hashes, len(data)/8)
	for _, n := range unpack[uint64](data) {
		h[n] = struct{}{}
	}
	return h
}

func pack[T uint64 | float64](list []T) []byte {
	data, _ := binary.Append(nil, binary.LittleEndian, list) // fails only for other types
	return data
}

func unpack[T uint64 | float64](data []byte) []T {
	list := make([]T, len(data)/8)
	_, _ = binary.Decode(data, binary.LittleEndian, list) // fails only for other types
	return list
}

// Carry returns the state that the run carries over when it continues as new.
func (s *State) Carry() *Carried {
	for latest, open := carriedLatest, carriedOpen; ; latest, open = latest/2, open/2 {
		c := s.carry(latest, open)
		if s.observed != nil {
			c.Reports = slices.Clone(s.observed.reports)
		}
		if data, err := json.Marshal(c); err == nil && len(data) <= carriedBytes || latest+open == 0 {
			return c
		}
	}
}

func (l *ToolCalls) carry(latest, open int) *Carried {
	c := &Carried{Other: maps.Clone(l.other), Commands: maps.Clone(l.commands),
		Known: l.known, Dropped: l.dropped, Unreadable: l.unreadable}
	seen, calls := hashes{}, hashes{}
	maps.Copy(seen, l.past.seen)
	maps.Copy(calls, l.past.calls)
	for _, id := range l.seen.list() {
		seen.add(id)
	}
	c.Seen = seen.pack()
	skills, times := maps.Clone(l.skills), l.pastTimes()
	list := l.sorted()
	keep := detailed(list, latest, open)
	for i, e := range list {
		if !keep[i] {
			times[e.now.Name].add(&e.now)
			calls.add(e.now.ID)
			continue
		}
		tally(skills, e.now, -1)
		call := carriedCall{Reported: e.reported, Marks: e.marks, Settled: e.settled}
		if e.known {
			call.Now = &e.now.Invocation
		}
		c.Calls = append(c.Calls, call)
	}
	c.Past = calls.pack()
	for name, u := range skills {
		if u.Calls > 0 {
			if c.Skills == nil {
				c.Skills = map[string]carriedSkill{}
			}
			t := times[name]
			slices.Sort(t.durations)
			c.Skills[name] = carriedSkill{Calls: u.Calls, OK: u.OK, Failed: u.Failed, Denied: u.Denied,
				Pending: u.Pending, Durations: pack(t.durations), Latest: brief(t.latest),
				Error: brief(t.error)}
		}
	}
	return c
}

// detailed selects the calls, by their index, that are carried over in detail: the latest, and
// before these a number of unfinished ones.
func detailed(list []*entry, latest, open int) []bool {
	keep := make([]bool, len(list))
	for i, e := range slices.Backward(list) {
		switch {
		case len(list)-i <= latest:
			keep[i] = true
		case open > 0 && e.unfinished():
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

// brief returns the fields of a call that [callTimes] needs.
func brief(c *Invocation) *Invocation {
	if c == nil {
		return nil
	}
	return &Invocation{ID: c.ID, Name: c.Name, At: c.At, Error: c.Error}
}

// restore initializes the calls with the carried state.
func (l *ToolCalls) restore(c *Carried) {
	l.past = past{seen: unpackHashes(c.Seen), calls: unpackHashes(c.Past), skills: map[string]callTimes{}}
	l.other = maps.Clone(c.Other)
	l.commands = maps.Clone(c.Commands)
	l.known = c.Known
	l.dropped = c.Dropped
	l.unreadable = c.Unreadable
	l.skills = map[string]SkillUsage{}
	for name, s := range c.Skills {
		l.skills[name] = SkillUsage{Name: name, Calls: s.Calls, OK: s.OK, Failed: s.Failed, Denied: s.Denied,
			Pending: s.Pending}
		l.past.skills[name] = callTimes{unpack[float64](s.Durations), s.Latest, s.Error}
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
	l.newFact()
}
