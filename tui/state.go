package tui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
)

// State is the part of a console that outlives the process, for one source of data.
type State struct {
	Screen string         `json:"screen,omitempty"`
	Panes  map[string]int `json:"panes,omitempty"`  // by screen: the focused pane
	Zoomed []string       `json:"zoomed,omitempty"` // screens
	// by screen: the first pane's share in percent
	Shares  map[string]int               `json:"shares,omitempty"`
	History map[string][]string          `json:"history,omitempty"` // by the label of a prompt, oldest first
	Views   map[string]map[string]string `json:"views,omitempty"`   // by view: see [Keeper]
}

// Bounds of what one view keeps: entries, and bytes of an entry. Entries beyond them are
// dropped.
const (
	MaxKept      = 64
	MaxKeptBytes = 4096
)

// State returns the state that is worth keeping now.
func (m *Model) State() State {
	s := State{Panes: map[string]int{}, Shares: map[string]int{}, History: maps.Clone(m.prompts.history),
		Views: m.panes.all.keep()}
	m.panes.save(&s)
	return s
}

// newHistory returns the lines of an earlier console, as far as they are valid.
func newHistory(past map[string][]string) promptHistory {
	h := promptHistory{}
	for label, lines := range past {
		for _, line := range lines {
			h.add(label, line)
		}
	}
	return h
}

// keep returns what the views keep, by name.
func (list viewList) keep() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, v := range list {
		if k, ok := v.(Keeper); ok {
			if kept := bounded(k.Keep()); len(kept) > 0 {
				out[v.Name()] = kept
			}
		}
	}
	return out
}

func (list viewList) restore(kept map[string]map[string]string) {
	for _, v := range list {
		if k, ok := v.(Keeper); ok && len(kept[v.Name()]) > 0 {
			k.Restore(bounded(kept[v.Name()]))
		}
	}
}

func bounded(kept map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range kept {
		if len(out) < MaxKept && len(k)+len(v) <= MaxKeptBytes {
			out[k] = v
		}
	}
	return out
}

func (p *panes) save(s *State) {
	s.Screen = p.screen().Name
	for i, sc := range p.screens {
		if p.seen[i] > 0 {
			s.Panes[sc.Name] = p.seen[i]
		}
		if p.zoomed[i] {
			s.Zoomed = append(s.Zoomed, sc.Name)
		}
		if p.shares[i] > 0 {
			s.Shares[sc.Name] = p.shares[i]
		}
	}
}

// restore applies the state of an earlier console, as far as it is valid.
func (p *panes) restore(s State) {
	for i, sc := range p.screens {
		p.seen[i] = min(max(s.Panes[sc.Name], 0), len(sc.Views)-1)
		p.zoomed[i] = slices.Contains(s.Zoomed, sc.Name) && len(sc.Views) > 1
		if share := s.Shares[sc.Name]; share >= minShare && share <= maxShare {
			p.shares[i] = share
		}
		if sc.Name == s.Screen {
			p.at = place{i, p.seen[i]}
		}
	}
	p.all.restore(s.Views)
}

// saveInterval is the minimum time between two writes of the state.
const saveInterval = 3 * time.Second

// saver writes the state when it has changed.
type saver struct {
	write func(State) error // nil if nothing is kept
	at    time.Time         // of the last write
	last  string            // what was written
}

// due returns the command that writes the state, or nil if it was just written or has not
// changed.
func (s *saver) due(now time.Time, current func() State) tea.Cmd {
	if s.write == nil || now.Sub(s.at) < saveInterval {
		return nil
	}
	state := current()
	raw, err := json.Marshal(state)
	if err != nil || string(raw) == s.last {
		return nil
	}
	s.at, s.last = now, string(raw)
	return func() tea.Msg {
		if err := s.write(state); err != nil {
			return Failed(fmt.Errorf("cannot save the console's state: %w", err))
		}
		return nil
	}
}
