package console

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/tui"
	"acescope/tui/text"
)

// SavedFilter is a query that has a name. The default one applies at the start.
type SavedFilter struct {
	Name    string
	Query   string // as it is typed: short words or the query language
	Default bool
}

// FilterSaver keeps filters beyond the process. It does IO and is called inside commands.
type FilterSaver interface {
	// SaveFilter keeps a query under a name, in place of one that had it before.
	SaveFilter(ctx context.Context, name, query string) error
}

// StartFilter applies the default filter.
func (c *Console) StartFilter() {
	for _, f := range c.Filters {
		if f.Default {
			c.Controls.SetQuery(Filter(f.Query))
			return
		}
	}
}

// FilterSaved is the message that a filter was kept.
type FilterSaved struct{ name, query string }

// SaveFilter asks for a name and keeps the query in force under it.
func (c *Console) SaveFilter(s tui.Shell) tea.Cmd {
	query := c.Runs.Query
	switch {
	case c.Saver == nil:
		s.Note("filters cannot be saved here")
		return nil
	case query == "":
		s.Note("there is no query to save: / sets one")
		return nil
	}
	s.Ask(tui.Prompt{Label: "save as", Hint: "a name for " + text.Safe(query, " "),
		Preview: func(name string) string { return strings.TrimSpace(name) + ": " + query },
		Done: func(name string) tea.Cmd {
			if name = strings.TrimSpace(name); name == "" {
				return nil
			}
			return c.doSaveFilter(name, query)
		}})
	return nil
}

func (c *Console) doSaveFilter(name, query string) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(c.Context, ActionTimeout)
		defer stop()
		if err := c.Saver.SaveFilter(ctx, name, query); err != nil {
			return tui.Failed(err)
		}
		return FilterSaved{name, query}
	}
}

// FilterWasSaved takes a new filter into the list.
func (c *Console) FilterWasSaved(m FilterSaved) tea.Cmd {
	fresh := []SavedFilter{}
	found := false
	for _, f := range c.Filters {
		if f.Name == m.name {
			f.Query, found = m.query, true
		}
		fresh = append(fresh, f)
	}
	if !found {
		fresh = append(fresh, SavedFilter{Name: m.name, Query: m.query})
	}
	c.Filters = fresh
	return func() tea.Msg { return tui.Noted("saved as " + m.name + ": ctrl+o lists the saved filters") }
}
