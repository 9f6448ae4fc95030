package views

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	bubbles "charm.land/bubbles/v2/table"
	tea "charm.land/bubbletea/v2"

	runspkg "acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	runsview "acescope/views/runs"
)

// moving returns successive snapshots of 10,000 runs: each has new runs on top and progress of the selected
// run.
func moving(n int) []*snapshot {
	rows := many(10_000 + n)
	var out []*snapshot
	for i := range n {
		s := ready(rows[n-i:]...)
		s.Runs.Total = int64(len(s.Runs.Rows))
		s.Detail = detailOf(rows[n])
		s.Detail.Events += int64(i)
		s.Detail.Log = append(s.Detail.Log, runspkg.LogLine{At: noon, Kind: "skill",
			Text: fmt.Sprintf("call %d", i)})
		out = append(out, s)
	}
	return out
}

// BenchmarkFrame200x50 measures from a changed snapshot of 10,000 runs to the finished frame.
func BenchmarkFrame200x50(b *testing.B) {
	snaps := moving(64)
	sc := newScreen(b, snaps[0], theme.New(true, false), 200, 50)
	sc.press("j", "k") // stay on the run whose detail there is
	wait := sc.model.Init()().(tea.BatchMsg)[0]
	msgs := make([]tea.Msg, len(snaps))
	for i, s := range snaps {
		sc.store.set(s)
		msgs[i] = wait()
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		sc.model.Update(msgs[i%len(msgs)])
		sc.model.View()
		i++
	}
}

// BenchmarkKey200x50 measures from a keystroke to the finished frame.
func BenchmarkKey200x50(b *testing.B) {
	sc := newScreen(b, moving(1)[0], theme.New(true, false), 200, 50)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		key := "j"
		if i/200%2 == 1 {
			key = "k"
		}
		sc.model.Update(keyPress(key))
		sc.model.View()
		i++
	}
}

// BenchmarkUnchanged200x50 measures View after a message that changed nothing.
func BenchmarkUnchanged200x50(b *testing.B) {
	sc := newScreen(b, moving(1)[0], theme.New(true, false), 200, 50)
	for b.Loop() {
		sc.model.View()
	}
}

// BenchmarkBubblesTable200x50 measures the same 10,000 runs in a Bubbles table without detail, header and
// frame.
func BenchmarkBubblesTable200x50(b *testing.B) {
	snaps := moving(8)
	s := theme.New(true, false)
	cols := benchColumns(s.Glyphs)
	var heads []bubbles.Column
	for _, c := range cols {
		heads = append(heads, bubbles.Column{Title: c.Title, Width: c.Width})
	}
	t := bubbles.New(bubbles.WithColumns(heads), bubbles.WithHeight(46), bubbles.WithWidth(114),
		bubbles.WithFocused(true))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		t.SetRows(tableRows(snaps[i%len(snaps)].Runs.Rows, cols, noon, s))
		_ = t.View()
		i++
	}
}

// BenchmarkBubblesTableKey200x50 measures a keystroke in a Bubbles table.
func BenchmarkBubblesTableKey200x50(b *testing.B) {
	s := theme.New(true, false)
	cols := benchColumns(s.Glyphs)
	var heads []bubbles.Column
	for _, c := range cols {
		heads = append(heads, bubbles.Column{Title: c.Title, Width: c.Width})
	}
	t := bubbles.New(bubbles.WithColumns(heads), bubbles.WithHeight(46), bubbles.WithWidth(114),
		bubbles.WithFocused(true),
		bubbles.WithRows(tableRows(moving(1)[0].Runs.Rows, cols, noon, s)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		key := "j"
		if i/200%2 == 1 {
			key = "k"
		}
		t, _ = t.Update(keyPress(key))
		_ = t.View()
		i++
	}
}

// benchColumns returns the columns of the list of runs in a table of 114 cells.
func benchColumns(g theme.Glyphs) (cols []runsview.Column) {
	for _, c := range runsview.DefaultColumns(g) {
		if c.Width = cmp.Or(c.Width, 12); c.ID != "type" && c.ID != "skills" && c.ID != "took" {
			cols = append(cols, c)
		}
	}
	return cols
}

func tableRows(runs []runspkg.Run, cols []runsview.Column, now time.Time, s theme.Styles) []bubbles.Row {
	rows := make([]bubbles.Row, len(runs))
	for i, r := range runs {
		row := make(bubbles.Row, len(cols))
		for j, c := range cols {
			row[j] = text.Safe(c.Cell(r, now, s), " ")
		}
		rows[i] = row
	}
	return rows
}
