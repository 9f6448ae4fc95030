package console

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// Listing is the list of runs as other screens need it: the rows, the marked runs, and the filters that
// choose them.
type Listing struct {
	Runs    runs.RunList // newest
	Counted *runs.Facets // newest, or nil
	Marks   marks
	// ShowsMarks is true on screens that list marked runs. Actions that change runs apply to the marked runs
	// only there.
	ShowsMarks bool
	Filters    []runs.SavedFilter

	context  context.Context
	controls Controls
	saver    FilterSaver // nil if filters cannot be saved
}

// AskFilter opens the prompt for a filter.
func (l *Listing) AskFilter(s tui.Shell) {
	s.Ask(tui.Prompt{
		Label: "/", Value: l.Runs.Query,
		Hint:     `wrong today   "profit margin"   exp=finance-7   cost>0.5   or a query: ExitStatus="failed" OR Phase="skills"`,
		Preview:  explainFilter,
		Check:    checkFilter,
		Complete: l.complete,
		Done: func(typed string) tea.Cmd {
			l.ApplyFilter(s, typed)
			return nil
		},
	})
}

// explainFilter returns the query that typed words stand for, or the error.
func explainFilter(typed string) string {
	query, err := runs.Filter(typed)
	if err != nil {
		return err.Error()
	}
	return query
}

// complete completes a filter.
func (l *Listing) complete(line string, cursor int) (from int, options []string) {
	return runs.Completion(line, cursor, func(attribute string) []string {
		return runs.KnownValuesOf(attribute, l.Counted, l.Runs.Rows)
	})
}

func checkFilter(typed string) error {
	_, err := runs.Filter(typed)
	return err
}

// ApplyFilter lists the runs of a filter and returns true, or says why the filter is not understood.
func (l *Listing) ApplyFilter(s tui.Shell, typed string) (ok bool) {
	query, err := runs.Filter(typed)
	if err != nil {
		s.Note(err.Error())
		return false
	}
	// A change that is made before the list is read changes this query.
	l.Runs.Loading = l.Runs.Loading || l.Runs.Query != query
	l.Runs.Query = query
	l.controls.SetQuery(query)
	return true
}

// Unfilter lists all runs again, and reports whether a filter was set.
func (l *Listing) Unfilter() bool {
	if l.Runs.Query == "" {
		return false
	}
	l.controls.SetQuery("")
	return true
}

// Pause stops refreshing, or resumes it.
func (l *Listing) Pause(s tui.Shell) {
	paused := !l.Runs.Paused
	l.controls.SetPaused(paused)
	if paused {
		s.Note("refreshing paused; press p to resume")
	} else {
		s.Note("refreshing again")
	}
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
			if query, err := runs.Filter(f.Query); err == nil {
				l.controls.SetQuery(query)
			}
			return
		}
	}
}

// FilterSaved is the message that a filter was saved.
type FilterSaved struct{ name, query string }

// SaveFilter asks for a name and saves the current query under it.
func (l *Listing) SaveFilter(s tui.Shell) {
	query := l.Runs.Query
	switch {
	case l.saver == nil:
		s.Note("filters cannot be saved here")
		return
	case query == "":
		s.Note("no filter to save; press / to set one")
		return
	}
	s.Ask(tui.Prompt{Label: "save as", Hint: "a name for " + text.Safe(query, " "),
		Preview: func(name string) string { return strings.TrimSpace(name) + ": " + query },
		Done: func(name string) tea.Cmd {
			if name = strings.TrimSpace(name); name == "" {
				return nil
			}
			return l.doSaveFilter(name, query)
		}})
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
	i := slices.IndexFunc(l.Filters, func(f runs.SavedFilter) bool { return f.Name == m.name })
	if i < 0 {
		l.Filters = append(l.Filters, runs.SavedFilter{Name: m.name, Query: m.query})
	} else {
		l.Filters[i].Query = m.query
	}
	return func() tea.Msg { return tui.Noted("saved as " + m.name + "; ctrl+o lists the saved filters") }
}

// marks are the marked runs, in the order of marking.
type marks struct {
	Runs []runs.Run
	Of   map[runs.ID]bool
}

// Toggle marks or unmarks a run. It reports false if [MaxMarks] runs are marked.
func (m *marks) Toggle(r runs.Run) bool {
	k := r.ID()
	if m.Of[k] {
		delete(m.Of, k)
		m.Runs = slices.DeleteFunc(m.Runs, func(o runs.Run) bool { return o.ID() == k })
		return true
	}
	if len(m.Runs) >= MaxMarks {
		return false
	}
	if m.Of == nil {
		m.Of = map[runs.ID]bool{}
	}
	m.Of[k] = true
	m.Runs = append(m.Runs, r)
	return true
}

// ToggleMark marks or unmarks a run. It notes if [MaxMarks] runs are marked, and returns false.
func (l *Listing) ToggleMark(s tui.Shell, r runs.Run) bool {
	if !l.Marks.Toggle(r) {
		s.Note("at most " + ace.Number(MaxMarks) + " runs can be marked")
		return false
	}
	return true
}

// Mark adds runs to the marked runs, up to [MaxMarks].
func (l *Listing) Mark(s tui.Shell, list []runs.Run) {
	left := 0
	for _, r := range list {
		if !l.Marks.Of[r.ID()] && !l.Marks.Toggle(r) {
			left++
		}
	}
	summary := ace.Count(len(l.Marks.Runs), "marked run")
	summary += widget.If(left > 0, ", the most that can be marked", "")
	s.Note(summary + "; u unmarks all")
}

func (m *marks) Clear() { *m = marks{} }

// refresh replaces the marked runs by their newest rows in a list.
func (m *marks) refresh(rows []runs.Run) {
	if len(m.Runs) == 0 {
		return
	}
	now := map[runs.ID]int{}
	for i := range rows {
		if k := rows[i].ID(); m.Of[k] {
			now[k] = i
		}
	}
	for i := range m.Runs {
		if at, ok := now[m.Runs[i].ID()]; ok {
			m.Runs[i] = rows[at]
		}
	}
}

// Marked returns the marked runs as they are listed now.
func (l *Listing) Marked() []runs.Run {
	l.Marks.refresh(l.Runs.Rows)
	return slices.Clone(l.Marks.Runs)
}

// MaxMarks is the largest number of marked runs.
const MaxMarks = 10_000

// shownMarks is the number of marked runs that a question names.
const shownMarks = 8
