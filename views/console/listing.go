package console

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
)

// Listing is the list of runs as other screens need it: the rows, the marked runs, and the filters that choose them.
type Listing struct {
	Runs    runs.RunList // newest
	Counted *runs.Facets // newest, or nil
	Marks   marks        // actions apply to the marked runs, if there are any
	Filters []SavedFilter

	context  context.Context
	controls Controls
	saver    FilterSaver // nil if filters cannot be saved
}

// AskFilter opens the prompt for a filter.
func (l *Listing) AskFilter(s tui.Shell) tea.Cmd {
	s.Ask(tui.Prompt{
		Label: "/", Value: l.Runs.Query,
		Hint:     `wrong   exp=finance-7   phase:skills   or a query: ExitStatus="failed" AND ModelName="m"`,
		Preview:  Filter,
		Complete: l.complete,
		Done: func(typed string) tea.Cmd {
			l.controls.SetQuery(Filter(typed))
			return nil
		},
	})
	return nil
}

// Pause stops refreshing, or resumes it.
func (l *Listing) Pause(s tui.Shell) tea.Cmd {
	paused := !l.Runs.Paused
	l.controls.SetPaused(paused)
	if paused {
		s.Note("refreshing paused; p resumes")
	} else {
		s.Note("resumed")
	}
	return nil
}

// SavedFilter is a query with a name. The default one applies at the start.
type SavedFilter struct {
	Name    string
	Query   string // as it is typed: short words or the query language
	Default bool
}

// FilterSaver saves filters to disk. It does I/O and is called in commands.
type FilterSaver interface {
	// SaveFilter saves a query under a name and replaces an older one of that name.
	SaveFilter(ctx context.Context, name, query string) error
}

// StartFilter applies the default filter.
func (l *Listing) StartFilter() {
	for _, f := range l.Filters {
		if f.Default {
			l.controls.SetQuery(Filter(f.Query))
			return
		}
	}
}

// FilterSaved is the message that a filter was saved.
type FilterSaved struct{ name, query string }

// SaveFilter asks for a name and saves the current query under it.
func (l *Listing) SaveFilter(s tui.Shell) tea.Cmd {
	query := l.Runs.Query
	switch {
	case l.saver == nil:
		s.Note("filters cannot be saved here")
		return nil
	case query == "":
		s.Note("no filter to save; press / to set one")
		return nil
	}
	s.Ask(tui.Prompt{Label: "save as", Hint: "a name for " + text.Safe(query, " "),
		Preview: func(name string) string { return strings.TrimSpace(name) + ": " + query },
		Done: func(name string) tea.Cmd {
			if name = strings.TrimSpace(name); name == "" {
				return nil
			}
			return l.doSaveFilter(name, query)
		}})
	return nil
}

func (l *Listing) doSaveFilter(name, query string) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(l.context, ActionTimeout)
		defer stop()
		if err := l.saver.SaveFilter(ctx, name, query); err != nil {
			return tui.Failed(err)
		}
		return FilterSaved{name, query}
	}
}

// FilterWasSaved adds a saved filter to the list.
func (l *Listing) FilterWasSaved(m FilterSaved) tea.Cmd {
	fresh := []SavedFilter{}
	found := false
	for _, f := range l.Filters {
		if f.Name == m.name {
			f.Query, found = m.query, true
		}
		fresh = append(fresh, f)
	}
	if !found {
		fresh = append(fresh, SavedFilter{Name: m.name, Query: m.query})
	}
	l.Filters = fresh
	return func() tea.Msg { return tui.Noted("saved as " + m.name + "; ctrl+o lists the saved filters") }
}

// marks are the marked runs, in the order of marking.
type marks struct {
	Runs []runs.Run
	Of   map[RowKey]bool
}

// KeyOf returns the key of a run.
func KeyOf(r *runs.Run) RowKey { return RowKey{r.WorkflowID, r.RunID} }

// Toggle marks or unmarks a run. It reports false if [MaxMarks] runs are marked.
func (m *marks) Toggle(r runs.Run) bool {
	k := KeyOf(&r)
	if m.Of[k] {
		delete(m.Of, k)
		m.Runs = slices.DeleteFunc(m.Runs, func(o runs.Run) bool { return KeyOf(&o) == k })
		return true
	}
	if len(m.Runs) >= MaxMarks {
		return false
	}
	if m.Of == nil {
		m.Of = map[RowKey]bool{}
	}
	m.Of[k] = true
	m.Runs = append(m.Runs, r)
	return true
}

func (m *marks) Clear() { *m = marks{} }

// refresh replaces the marked runs by their newest rows in a list.
func (m *marks) refresh(rows []runs.Run) {
	if len(m.Runs) == 0 {
		return
	}
	now := map[RowKey]int{}
	for i := range rows {
		if k := KeyOf(&rows[i]); m.Of[k] {
			now[k] = i
		}
	}
	for i := range m.Runs {
		if at, ok := now[KeyOf(&m.Runs[i])]; ok {
			m.Runs[i] = rows[at]
		}
	}
}

// MaxMarks is the largest number of marked runs.
const MaxMarks = 10_000

// RowKey identifies a run in a list.
type RowKey struct{ WorkflowID, RunID string }

// shownMarks is the number of marked runs that a question names.
const shownMarks = 8
