package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// RunArgument lets the command of a screen select the run that the screen shows.
func (c *Console) RunArgument(screen string) *tui.Argument {
	return &tui.Argument{Name: "ID", Help: "ID selects another run", Candidates: c.Listing.runCandidates,
		Check: oneWord,
		Do: func(s tui.Shell, name string) tea.Cmd {
			open := func(s tui.Shell, r runs.Run) {
				c.Navigation.GoFrom(r)
				s.Open(screen)
				s.Focus(0)
			}
			r := c.Listing.RunNamed(name)
			if r.RunID == "" {
				return c.find(s, name, open)
			}
			open(s, r)
			return nil
		}}
}

// find looks up a run that is not listed, and opens it. The user can stop the lookup.
func (c *Console) find(s tui.Shell, name string, open func(tui.Shell, runs.Run)) tea.Cmd {
	ctx, stop := context.WithTimeout(c.Pipeline.Context, ActionTimeout)
	w := &tui.Waiting{Title: "Find run", Lines: []string{text.Safe(name, " ")}, Leave: stop}
	s.Wait(w)
	return func() tea.Msg {
		defer stop()
		r, err := c.Controls.FindRun(ctx, name)
		if err != nil {
			return tui.Settled(w, tui.Failed(err))
		}
		return tui.Settled(w, tui.Then(func(s tui.Shell) tea.Cmd { open(s, r); return nil }))
	}
}

// QueryArgument lets a command filter the list of runs.
func (c *Console) QueryArgument() *tui.Argument {
	return &tui.Argument{Name: "FILTER", Help: "FILTER filters it, as in wrong exp=finance-7",
		Complete: c.Listing.completeQuery, Check: checkFilter,
		Do: func(s tui.Shell, typed string) tea.Cmd {
			c.Listing.ApplyFilter(s, typed)
			s.Open("runs")
			s.Focus(0)
			return nil
		}}
}

func (l *Listing) completeQuery(typed string) []string {
	from, options := l.complete(typed, len(typed))
	return WithHead(typed[:from], options)
}

// PairArgument lets a command compare two runs.
func (c *Console) PairArgument() *tui.Argument {
	return &tui.Argument{Name: "A B", Help: "A and B are their IDs", Candidates: c.Listing.runCandidates,
		Check: func(args string) error {
			if n := len(strings.Fields(args)); n != 2 {
				return fmt.Errorf("give the IDs of two runs; got %d", n)
			}
			return nil
		},
		Do: func(s tui.Shell, args string) tea.Cmd {
			pair := strings.Fields(args)
			c.Comparer.Compare(s, c.Listing.RunNamed(pair[0]), c.Listing.RunNamed(pair[1]))
			return nil
		}}
}

func (l *Listing) Commands() []tui.Command {
	return []tui.Command{{Name: "flow", Aliases: []string{"flows"}, Args: "[NAME]",
		Help: "list the runs of flows, or those whose ID begins with NAME", Candidates: l.flowCandidates,
		Do: func(s tui.Shell, name string) tea.Cmd {
			filter := "type=flow"
			filter += widget.If(name != "", " id="+name+"*", "")
			l.ApplyFilter(s, filter)
			s.Open("runs")
			s.Focus(0)
			return nil
		}}}
}

func (l *Listing) flowCandidates() (list []tui.Candidate) {
	seen := map[string]bool{}
	for _, r := range l.Runs.Rows {
		if r.Flow != "" && !seen[r.Flow] {
			seen[r.Flow] = true
			list = append(list, tui.Candidate{Value: r.Flow})
		}
	}
	return list
}

func (l *Listing) runCandidates() []tui.Candidate {
	list := make([]tui.Candidate, len(l.Runs.Rows))
	for i, r := range l.Runs.Rows {
		list[i] = tui.Candidate{Value: shortID(r), Help: helpOf(r)}
	}
	return list
}

// shortID returns the shortest ID that [Listing.RunNamed] finds a run by.
func shortID(r runs.Run) string { return cmp.Or(r.TaskID, r.WorkflowID) }

func helpOf(r runs.Run) string {
	words := []string{cmp.Or(string(r.Verdict), string(r.Status))}
	if r.Experiment != "" && !strings.Contains(r.TaskID, r.Experiment) {
		words = append(words, r.Experiment)
	}
	return strings.Join(words, "  ")
}

// RunNamed returns the loaded run with a workflow, task or run ID. For an unknown workflow ID it returns a
// run with no other field.
func (l *Listing) RunNamed(name string) runs.Run {
	for _, r := range l.Runs.Rows {
		if name == r.WorkflowID || name == r.TaskID || name == r.RunID {
			return r
		}
	}
	return runs.Run{WorkflowID: name, TaskID: ace.TaskIDOf(name)}
}

func oneWord(args string) error {
	if n := len(strings.Fields(args)); n != 1 {
		return fmt.Errorf("give one ID; got %d", n)
	}
	return nil
}

// NumberOf parses a positive number that the user typed.
func NumberOf(typed string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(typed), 10, 64)
	if err != nil || n < 1 {
		return 0, errors.New("not a number: " + strconv.Quote(typed))
	}
	return n, nil
}
