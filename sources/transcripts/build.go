package transcripts

import (
	"context"
	"hash/fnv"
	"io"
	"slices"
	"strconv"

	"acescope/engine/agents/transcript"
)

// build builds the sessions again whose transcripts have changed.
func (x *Index) build() {
	if len(x.changed) == 0 {
		return
	}
	parts := map[string][]*entry{}
	for _, e := range x.entries {
		if _, key := e.owner(); x.changed[key] {
			parts[key] = append(parts[key], e)
		}
	}
	for key := range x.changed {
		if list := parts[key]; len(list) > 0 {
			x.built[key] = x.session(list)
		} else {
			delete(x.built, key)
		}
	}
	clear(x.changed)
}

// session builds a session from its transcripts. If its own is gone, the subagents remain.
func (x *Index) session(list []*entry) *Session {
	slices.SortFunc(list, func(a, b *entry) int {
		if c := a.summary.Started.Compare(b.summary.Started); c != 0 {
			return c
		}
		return byAge(b, a)
	})
	s := &Session{Read: true}
	for _, e := range list {
		s.Size += e.size
		s.Read = s.Read && (e.done || e.offset > 0)
		if e.err != "" && s.Err == "" {
			s.Err = e.err
		}
		s.Project = e.project
		if e.agent != "" {
			s.ID, _ = e.owner()
			s.Agents = append(s.Agents, Agent{ID: e.agent, Path: e.path, Size: e.size, ModTime: e.modTime,
				Summary: e.summary})
			continue
		}
		s.ID, s.Path, s.ModTime, s.Summary = e.session, e.path, e.modTime, e.summary
		if k, ok := x.kin[e.path]; ok {
			s.ForkedFrom, s.Shared, s.Inherits = k.Parent, k.Shared, k.Inherits
		}
	}
	if s.Path == "" {
		a := s.Agents[0]
		s.Path, s.ModTime = a.Path, a.ModTime
		s.Summary = transcript.Summary{SessionID: s.ID, WorkDir: a.Summary.WorkDir, Started: a.Summary.Started,
			Last: a.Summary.Last, Model: a.Summary.Model, Branch: a.Summary.Branch, Version: a.Summary.Version,
			Prompt: a.Summary.Prompt}
	}
	s.linkAgents()
	return s
}

// linkAgents sets the call that started each subagent, and its caller.
func (s *Session) linkAgents() {
	calls := map[string]transcript.AgentCall{}
	callers := map[string]string{}
	add := func(caller string, list []transcript.AgentCall) {
		for _, c := range list {
			if c.AgentID != "" {
				calls[c.AgentID], callers[c.AgentID] = c, caller
			}
		}
	}
	add("", s.Summary.Agents)
	for _, a := range s.Agents {
		add(a.ID, a.Summary.Agents)
	}
	for i := range s.Agents {
		a := &s.Agents[i]
		if c, ok := calls[a.ID]; ok && callers[a.ID] != a.ID {
			a.Parent, a.Type, a.Description = callers[a.ID], c.Type, c.Description
		}
	}
}

// kinship is what a transcript has copied from another one when its session was forked.
type kinship struct {
	Family   string            `json:"family"`          // hash of the paths that it was compared with
	Grown    bool              `json:"grown,omitempty"` // it has lines of its own, so the copy is complete
	Parent   string            `json:"parent,omitempty"`
	Shared   int               `json:"shared,omitempty"`
	Inherits transcript.Totals `json:"inherits"`
	lines    int               // its number of lines at that time
}

// relateAll finds out which sessions were forked from which: those whose transcripts begin
// with the same line. It reads these again only if they have changed.
func (x *Index) relateAll(ctx context.Context) {
	families := map[string][]*entry{}
	for _, e := range x.entries {
		if e.done && e.agent == "" && e.summary.First != "" {
			families[e.summary.First] = append(families[e.summary.First], e)
		}
	}
	for _, list := range families {
		if len(list) > 1 && ctx.Err() == nil {
			slices.SortFunc(list, func(a, b *entry) int { return byAge(b, a) })
			x.relate(ctx, list[:min(len(list), transcript.MaxCompared)])
		}
	}
}

// relate compares transcripts, the oldest file first.
func (x *Index) relate(ctx context.Context, list []*entry) {
	hash := fnv.New64a()
	for _, e := range list {
		io.WriteString(hash, e.path+"\x00") // never fails
	}
	family := strconv.FormatUint(hash.Sum64(), 16)
	if !slices.ContainsFunc(list, func(e *entry) bool { return !x.settled(e, family) }) {
		return
	}
	all := make([]*transcript.LineSet, 0, len(list))
	for _, e := range list {
		k, err := transcript.ReadLineSet(ctx, e.path)
		if err != nil {
			return // it is gone or changing; the next round tries again
		}
		all = append(all, k)
	}
	for i, e := range list {
		k := kinship{Family: family, Grown: true, lines: e.summary.Lines}
		others := slices.Delete(slices.Clone(all), i, i+1)
		if parent, shared := all[i].Parent(others, i); parent != nil {
			own, err := all[i].Own(ctx, parent, x.o.Prices)
			if err != nil {
				return
			}
			k.Parent, _, _ = transcript.SessionOf(parent.Path)
			k.Shared, k.Grown = shared, own.Messages > 0
			k.Inherits = minus(e.summary.Totals, own.Totals)
		}
		x.kin[e.path] = k
		x.touch(e)
	}
	x.stale = true
}

// settled reports whether a transcript's kinship is final: a fork without lines of its own may
// still be being copied.
func (x *Index) settled(e *entry, family string) bool {
	k, ok := x.kin[e.path]
	return ok && k.Family == family && (k.Grown || k.lines == e.summary.Lines)
}
