package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
)

// State is what of a console outlives the process, for one source of data.
type State struct {
	Screen  string                       `json:"screen,omitempty"`
	Panes   map[string]int               `json:"panes,omitempty"`   // by screen: which has the focus
	Zoomed  []string                     `json:"zoomed,omitempty"`  // screens
	Shares  map[string]int               `json:"shares,omitempty"`  // by screen: the first pane's part in percent
	History map[string][]string          `json:"history,omitempty"` // by the label of a prompt, oldest first
	Views   map[string]map[string]string `json:"views,omitempty"`   // by view: what it keeps
}

// Bounds of what one view keeps: entries, and bytes of an entry. What goes beyond them
// is not kept.
const (
	MaxKept      = 64
	MaxKeptBytes = 4096
)

// keepEvery is the shortest time between two savings.
const keepEvery = 3 * time.Second

// keeping is what was saved last, and when.
type keeping struct {
	at   time.Time
	last string
}

// State is what is worth keeping now.
func (m *Model) State() State {
	s := State{Screen: m.screens[m.at.screen].Name, Panes: map[string]int{}, Shares: map[string]int{}, History: map[string][]string{},
		Views: map[string]map[string]string{}}
	for i, sc := range m.screens {
		if m.seen[i] > 0 {
			s.Panes[sc.Name] = m.seen[i]
		}
		if m.zoomed[i] {
			s.Zoomed = append(s.Zoomed, sc.Name)
		}
		if m.shares[i] > 0 {
			s.Shares[sc.Name] = m.shares[i]
		}
	}
	for label, past := range m.history {
		s.History[label] = past
	}
	m.everyView(func(v View) {
		if k, ok := v.(Keeper); ok {
			if kept := bounded(k.Keep()); len(kept) > 0 {
				s.Views[v.Name()] = kept
			}
		}
	})
	return s
}

// bounded is what is small enough to be kept.
func bounded(kept map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range kept {
		if len(out) < MaxKept && len(k)+len(v) <= MaxKeptBytes {
			out[k] = v
		}
	}
	return out
}

// restore takes what an earlier console left, as far as it still makes sense.
func (m *Model) restore(s State) {
	for i, sc := range m.screens {
		m.seen[i] = min(max(s.Panes[sc.Name], 0), len(sc.Views)-1)
		m.zoomed[i] = slices.Contains(s.Zoomed, sc.Name) && len(sc.Views) > 1
		if share := s.Shares[sc.Name]; share >= minShare && share <= maxShare {
			m.shares[i] = share
		}
	}
	for label, past := range s.History {
		for _, line := range past {
			m.sent(label, line)
		}
	}
	m.everyView(func(v View) {
		if k, ok := v.(Keeper); ok && len(s.Views[v.Name()]) > 0 {
			k.Restore(bounded(s.Views[v.Name()]))
		}
	})
	if i := m.screenNamed(s.Screen); i >= 0 {
		m.at = place{i, m.seen[i]}
	}
}

// keep saves the state if it changed and was not saved a moment ago.
func (m *Model) keep() tea.Cmd {
	now := m.now()
	if m.opts.Save == nil || now.Sub(m.keeping.at) < keepEvery {
		return nil
	}
	state := m.State()
	raw, err := json.Marshal(state)
	if err != nil || string(raw) == m.keeping.last {
		return nil
	}
	m.keeping = keeping{now, string(raw)}
	save := m.opts.Save
	return func() tea.Msg {
		if err := save(state); err != nil {
			return Failed(fmt.Errorf("what you see is not kept: %w", err))
		}
		return nil
	}
}
