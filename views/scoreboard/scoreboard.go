// Package scoreboard shows the forks of a batch beside their originals: which answers a change fixed and
// which it broke.
package scoreboard

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/sources/scoreboard"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Feed reads the forks of a batch.
type Feed interface {
	console.Feed[*scoreboard.Scoreboard]
	Want(batch string) bool
}

type list struct {
	nav      *console.Navigation
	comparer *console.Comparer
	listing  *console.Listing
	feed     Feed
	console.List[scoreboard.Row]
	data *scoreboard.Scoreboard // newest, nil before the first
}

// taskColumn is the column of the task, whose names differ at their ends.
const taskColumn = 1

func Screen(c *console.Console, feed Feed) tui.Screen {
	v := &list{nav: c.Navigation, comparer: c.Comparer, listing: c.Listing, feed: feed,
		List: console.NewList[scoreboard.Row]("Scoreboard",
			widget.Heading{Title: "OUTCOME", Width: 11},
			widget.Heading{Title: "TASK", Minimum: 14},
			widget.Heading{Title: "ORIGINAL", Width: 12},
			widget.Heading{Title: "FORK", Width: 12},
			widget.Heading{Title: "COST", Width: 8, Right: true},
			widget.Heading{Title: "SUFFIX", Width: 6})}
	return tui.Screen{Name: "scoreboard",
		Help: "forks of several runs beside their originals: fixed, broken, unchanged",
		Argument: &tui.Argument{Name: "BATCH", Help: "BATCH selects the forks", Candidates: v.candidates,
			Do: v.show}, Aside: true, Views: []tui.View{v}}
}

func (v *list) Title() string {
	return widget.If(v.nav.Batch == "", "Scoreboard", "Scoreboard "+text.Safe(v.nav.Batch, " "))
}

func (v *list) Bindings() []tui.Binding {
	return append(widget.Motions("scoreboard", v),
		console.Key("scoreboard.open", "compare the fork with its original, step by step", "diff", v.compare,
			"enter"),
		console.Key("scoreboard.related", "open the fork", "open fork", v.openFork, "O"))
}

// candidates lists the batches of loaded runs, newest first.
func (v *list) candidates() (list []tui.Candidate) {
	for _, r := range v.listing.Runs.Rows {
		c := tui.Candidate{Value: r.Experiment}
		if r.Fork != nil && strings.HasPrefix(r.Experiment, ace.BatchPrefix) && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

func (v *list) show(s tui.Shell, batch string) tea.Cmd {
	v.nav.Batch = batch
	s.Open("scoreboard")
	v.want()
	return nil
}

func (v *list) SetShown(shown bool) {
	v.feed.Look(shown)
	if shown {
		v.want()
	}
}

func (v *list) want() {
	if v.nav.Batch != "" {
		v.feed.Want(v.nav.Batch)
	}
}

// Refresh takes the newest rows. The cursor stays on its fork.
func (v *list) Refresh() {
	next := v.feed.Value()
	if next == v.data {
		return
	}
	v.data = next
	if next == nil {
		v.Set(nil, nil)
		return
	}
	v.Refill(next.Rows, func(a, b scoreboard.Row) bool { return a.Fork.ID() == b.Fork.ID() })
}

func (v *list) compare(s tui.Shell) {
	if r, ok := v.Current(); ok {
		v.comparer.Compare(s, r.Original, r.Fork)
	}
}

func (v *list) openFork(s tui.Shell) tea.Cmd {
	if r, ok := v.Current(); ok {
		return v.nav.OpenRun(s, r.Fork)
	}
	return nil
}

func (v *list) Copy() (what, content string) {
	if v.nav.Batch == "" {
		return "", ""
	}
	return "command", v.nav.Command("lineage", v.nav.Batch)
}

func (v *list) Draw(_ time.Time, focused bool) []string {
	d := v.data
	switch {
	case v.nav.Batch == "":
		return v.Message(nil, "no forks to compare yet",
			"in the list of runs, ctrl+a marks the runs of the filter, f forks the marked runs")
	case d == nil:
		return v.Message(nil, "reading"+v.Styles.Glyphs.Ellipsis)
	}
	return v.DrawRows(v.head(d), focused, v.cells)
}

// head returns the totals, how to read them, and why the newest read failed.
func (v *list) head(d *scoreboard.Scoreboard) []string {
	s := v.Styles
	lines := []string{v.Text(s.Strong, " "+d.Text())}
	if change := d.Change(); change != "" {
		lines = append(lines, v.Text(s.Text, " changed: "+s.Glyphs.Replace(text.Safe(change, " "))))
	}
	if note := d.Caution(); note != "" {
		for _, line := range text.Wrap(note, v.Width-2) {
			lines = append(lines, v.Text(s.Muted, " "+line))
		}
	}
	if d.Err != "" {
		lines = append(lines, v.Problem(s.Error, d.Err))
	}
	return lines
}

func (v *list) cells(r scoreboard.Row) []widget.Cell {
	s := v.Styles
	cost := s.Glyphs.Dash
	if sum := r.Fork.Summary; sum != nil {
		cost = sum.Usage.Cost()
	}
	outcome, original, fork := v.outcome(r.Outcome), v.result(r.Original), v.result(r.Fork)
	return []widget.Cell{{Text: outcome.Glyph + " " + outcome.Word, Ink: outcome.Ink},
		{Text: text.Middle(console.NameOf(r.Original), v.Table.Widths[taskColumn], s.Glyphs.Ellipsis),
			Ink: s.Text},
		{Text: original.Glyph + " " + original.Word, Ink: original.Ink},
		{Text: fork.Glyph + " " + fork.Word, Ink: fork.Ink}, {Text: cost, Ink: s.Text},
		{Text: number(r.Fork), Ink: s.Muted}}
}

// number is the part of a fork's name that its original does not have: ~f3.
func number(fork runs.Run) string {
	name := console.NameOf(fork)
	original, _ := ace.ForkRoot(name)
	return strings.TrimPrefix(name, original)
}

func (v *list) outcome(o scoreboard.Outcome) theme.Mark {
	s := v.Styles
	switch o {
	case scoreboard.Fixed:
		return theme.Mark{Glyph: s.Glyphs.Success, Word: string(o), Ink: s.Success}
	case scoreboard.Broken:
		return theme.Mark{Glyph: s.Glyphs.Wrong, Word: string(o), Ink: s.Wrong}
	case scoreboard.Failed:
		return s.Status("failed")
	case scoreboard.Running:
		return s.Status("running")
	case scoreboard.Unchanged:
		return theme.Mark{Glyph: s.Glyphs.Dash, Word: string(o), Ink: s.Muted}
	}
	return theme.Mark{Glyph: s.Glyphs.Unknown, Word: string(o), Ink: s.Warning}
}

// result returns the verdict of a run, or its status without one.
func (v *list) result(r runs.Run) theme.Mark {
	if r.Verdict != "" && r.Status == ace.Completed {
		return v.Styles.Verdict(string(r.Verdict))
	}
	return v.Styles.Status(string(r.Status))
}
