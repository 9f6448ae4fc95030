package transcripts

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"acescope/engine/agents/transcript"
	"acescope/engine/agents/transcript/copies"
)

// sessions builds the sessions from all transcripts, the newest first.
func (x *Index) sessions() (list []*Session) {
	parts := map[string][]*file{}
	for _, f := range x.files {
		_, key := f.owner()
		parts[key] = append(parts[key], f)
	}
	for _, files := range parts {
		list = append(list, newSession(files))
	}
	slices.SortFunc(list, func(a, b *Session) int {
		return cmp.Or(b.Last().Compare(a.Last()), strings.Compare(a.Path, b.Path))
	})
	return list
}

// newSession builds a session from its transcripts. If its own is gone, the subagents remain.
func newSession(files []*file) *Session {
	slices.SortFunc(files, func(a, b *file) int {
		if c := a.summary.Started.Compare(b.summary.Started); c != 0 {
			return c
		}
		return byAge(b, a)
	})
	s := &Session{Agent: files[0].format.Agent(), Read: true, Project: filepath.Base(files[0].Project)}
	for _, f := range files {
		s.Size += max(f.Size, f.offset)
		s.Read = s.Read && (f.done || f.offset > 0)
		if s.Err == "" {
			s.Err = f.err
		}
		if agent := f.agent(); agent != "" {
			s.ID, _ = f.owner()
			s.Agents = append(s.Agents, Agent{ID: agent, Path: f.Path, Size: f.Size, ModTime: f.ModTime,
				Summary: f.summary, Inherits: f.inherits()})
			continue
		}
		if s.Path != "" && s.Summary.Messages > f.summary.Messages {
			continue // resuming a session of Gemini leaves another, empty transcript
		}
		s.ID, _ = f.owner()
		s.Path, s.ModTime, s.Summary, s.Inherits = f.Path, f.ModTime, f.summary, f.inherits()
		s.WorkDir = cmp.Or(s.WorkDir, f.WorkDir)
		if s.ForkedFrom = f.summary.Origin; s.ForkedFrom != "" {
			s.Shared = f.summary.Repeated
		}
		if f.copied != nil {
			s.ForkedFrom, s.Shared = f.copied.Parent, f.copied.Shared
		}
	}
	if s.Path == "" {
		a := s.Agents[0]
		s.Path, s.ModTime = a.Path, a.ModTime
		s.Summary = transcript.Summary{SessionID: s.ID, WorkDir: a.Summary.WorkDir,
			Started: a.Summary.Started,
			Last:    a.Summary.Last, Model: a.Summary.Model, Branch: a.Summary.Branch,
			Version: a.Summary.Version,
			Prompt:  a.Summary.Prompt}
	}
	if len(s.Agents) > 0 {
		s.linkAgents()
	}
	s.Machine = copies.MachineOf(s.Path)
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

// copiedPart is the part that a transcript copied from another one when its session was forked.
type copiedPart struct {
	Family   string `json:"family"`          // the paths that it was compared with
	Grown    bool   `json:"grown,omitempty"` // each of the others lacks a line of it, so no copy is under way
	Parent   string `json:"parent,omitempty"`
	Shared   int    `json:"shared,omitempty"`
	Inherits Usage  `json:"inherits"`
	lines    int    // its number of lines at that time
}

// inherits returns the usage that the transcript has copied from another one.
func (f *file) inherits() Usage {
	if f.copied == nil {
		return Usage{}
	}
	return f.copied.Inherits
}

// relateAll finds out which transcripts were copied from which: those that begin with the same
// line. It reads these again only if they have changed.
func (x *Index) relateAll(ctx context.Context) {
	families := map[string][]*file{}
	for _, f := range x.files {
		if f.done && copies.MachineOf(f.Path) == "" {
			families[f.summary.First] = append(families[f.summary.First], f)
		}
	}
	for first, list := range families {
		slices.SortFunc(list, func(a, b *file) int { return byAge(b, a) })
		compared := min(len(list), transcript.MaxCompared)
		if first == "" || len(list) == 1 {
			compared = 0
		}
		for _, f := range list[compared:] {
			if f.copied != nil { // the others of its family are gone
				f.copied, x.changed, x.stale = nil, true, true
			}
		}
		if compared > 0 && ctx.Err() == nil {
			x.relate(ctx, list[:compared])
		}
	}
}

// relate compares transcripts, the oldest file first.
func (x *Index) relate(ctx context.Context, list []*file) {
	family := ""
	for _, f := range list {
		family += f.Path + "\n"
	}
	// A transcript whose lines all exist elsewhere may be a copy under way. A transcript that was read from
	// its start may be another one than before.
	unsettled := func(f *file) bool {
		k := f.copied
		return k == nil || k.Family != family || !k.Grown && k.lines != f.summary.Lines
	}
	if !slices.ContainsFunc(list, unsettled) {
		return
	}
	all := make([]*transcript.LineSet, 0, len(list))
	for _, f := range list {
		k, err := transcript.ReadLineSet(ctx, f.Path)
		if err != nil {
			x.related = false
			return // it is gone or changing; the next round tries again
		}
		all = append(all, k)
	}
	for i, f := range list {
		others := slices.Delete(slices.Clone(all), i, i+1)
		k := &copiedPart{Family: family, Grown: all[i].Diverged(others), lines: f.summary.Lines}
		if parent, shared := all[i].Parent(others, i); parent != nil {
			copied, err := all[i].Inherited(ctx, parent, x.o.Prices)
			if err != nil {
				x.related = false
				return
			}
			if session, agent, _ := transcript.SessionOf(parent.Path); agent == "" {
				k.Parent = session
			}
			k.Shared = shared
			k.Inherits = Usage{copied.Totals, copied.Models, copied.Days}
		}
		f.copied = k
	}
	x.changed, x.stale = true, true
}
