package transcripts

import (
	"context"
	"hash/fnv"
	"io"
	"slices"
	"strconv"

	"acescope/engine/transcript"
)

// build makes the sessions anew whose transcripts have changed.
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

// session makes one of its transcripts. Where that of the session itself is gone, the
// subagents stand alone.
func (x *Index) session(list []*entry) *Session {
	slices.SortFunc(list, func(a, b *entry) int { return compareStart(a, b) })
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
			s.Agents = append(s.Agents, Agent{ID: e.agent, Path: e.path, Size: e.size, ModTime: e.modTime, Summary: e.summary})
			continue
		}
		s.ID, s.Path, s.ModTime, s.Summary = e.session, e.path, e.modTime, e.summary
		if k, ok := x.kin[e.path]; ok {
			s.ForkedFrom, s.Shared, s.Inherits = k.parent, k.shared, k.inherits
		}
	}
	if s.Path == "" {
		a := s.Agents[0]
		s.Path, s.ModTime = a.Path, a.ModTime
		s.Summary = transcript.Summary{SessionID: s.ID, WorkDir: a.Summary.WorkDir, Started: a.Summary.Started, Last: a.Summary.Last,
			Model: a.Summary.Model, Branch: a.Summary.Branch, Version: a.Summary.Version, Prompt: a.Summary.Prompt}
	}
	s.adopt()
	return s
}

func compareStart(a, b *entry) int {
	if c := a.summary.Started.Compare(b.summary.Started); c != 0 {
		return c
	}
	return byAge(b, a)
}

// adopt says which call of whom each subagent comes from.
func (s *Session) adopt() {
	calls := map[string]transcript.AgentCall{}
	parents := map[string]string{}
	note := func(of string, list []transcript.AgentCall) {
		for _, c := range list {
			if c.AgentID != "" {
				calls[c.AgentID], parents[c.AgentID] = c, of
			}
		}
	}
	note("", s.Summary.Agents)
	for _, a := range s.Agents {
		note(a.ID, a.Summary.Agents)
	}
	for i := range s.Agents {
		a := &s.Agents[i]
		if c, ok := calls[a.ID]; ok && parents[a.ID] != a.ID {
			a.Parent, a.Type, a.Description = parents[a.ID], c.Type, c.Description
		}
	}
}

// kinship is what a transcript has from another.
type kinship struct {
	family   string // all that it was compared with
	grown    bool   // it has gone on alone, so that what it has from others is settled
	copied   int    // lines that it had then
	parent   string
	shared   int
	inherits transcript.Totals
}

// family finds out which sessions were forked from which: those whose transcripts begin
// with the same line. It reads them again, but only when they are others than before.
func (x *Index) family(ctx context.Context) {
	families := map[string][]*entry{}
	for _, e := range x.entries {
		if e.done && e.agent == "" && e.summary.First != "" {
			families[e.summary.First] = append(families[e.summary.First], e)
		}
	}
	for _, list := range families {
		if len(list) > 1 && ctx.Err() == nil {
			slices.SortFunc(list, byAge)
			slices.Reverse(list)
			x.relate(ctx, list[:min(len(list), transcript.MaxFamily)])
		}
	}
}

// relate compares transcripts, the oldest file first.
func (x *Index) relate(ctx context.Context, list []*entry) {
	hash := fnv.New64a()
	for _, e := range list {
		io.WriteString(hash, e.path+"\x00") // a hash takes all
	}
	family := strconv.FormatUint(hash.Sum64(), 16)
	if !slices.ContainsFunc(list, func(e *entry) bool { return !x.settled(e, family) }) {
		return
	}
	all := make([]*transcript.Kin, 0, len(list))
	for _, e := range list {
		k, err := transcript.ReadKin(ctx, e.path, &x.buf)
		if err != nil {
			return // it is gone or changing: the next round looks again
		}
		all = append(all, k)
	}
	for i, e := range list {
		k := kinship{family: family, grown: true, copied: e.summary.Lines}
		others := slices.Delete(slices.Clone(all), i, i+1)
		if parent, shared := all[i].Parent(others, i); parent != nil {
			own, err := all[i].Own(ctx, parent, x.o.Prices, &x.buf)
			if err != nil {
				return
			}
			k.parent, _, _ = transcript.SessionOf(parent.Path)
			k.shared, k.inherits, k.grown = shared, minus(e.summary.Totals, own.Totals), own.Messages > 0
		}
		x.kin[e.path] = k
		x.touch(e)
	}
	x.stale = true
}

// settled tells whether nothing new can be found out about a transcript: a fork that has not
// gone on yet may still be being copied.
func (x *Index) settled(e *entry, family string) bool {
	k, ok := x.kin[e.path]
	return ok && k.family == family && (k.grown || k.copied == e.summary.Lines)
}

func minus(t, u transcript.Totals) transcript.Totals {
	return transcript.Totals{Tokens: t.Tokens.Sub(u.Tokens), Priced: t.Priced - u.Priced, Unpriced: t.Unpriced - u.Unpriced, CostUSD: t.CostUSD - u.CostUSD,
		Calls: t.Calls - u.Calls, Failed: t.Failed - u.Failed, Denied: t.Denied - u.Denied}
}

// newestFirst is all sessions in order.
func (x *Index) newestFirst() []*Session {
	list := make([]*Session, 0, len(x.built))
	for _, s := range x.built {
		list = append(list, s)
	}
	sortNewest(list)
	return list
}
