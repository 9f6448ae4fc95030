package main

import (
	"context"
	"fmt"
	"time"

	"charm.land/bubbles/v2/table"
	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
)

// bubbles is the list alone, in the table that Bubbles has: no detail, no header. It is
// given a row that changed rather than all of them anew, and no more often than the
// console.
type bubbles struct {
	table table.Model
	rows  []table.Row
	ctx   context.Context
	st    *stream
}

type rowsMsg struct{ snap *sources.Snapshot }

var peerColumns = []table.Column{{Title: "TASK", Width: 30}, {Title: "EXPERIMENT", Width: 16}, {Title: "MODEL", Width: 18}, {Title: "PHASE", Width: 9},
	{Title: "SKILLS", Width: 10}, {Title: "COST", Width: 7}, {Title: "TOOK", Width: 6}, {Title: "STATUS", Width: 12}}

func newBubbles(ctx context.Context, st *stream) *bubbles {
	b := &bubbles{ctx: ctx, st: st}
	for _, r := range st.Snapshot().Runs.Rows {
		b.rows = append(b.rows, peerRow(r))
	}
	b.table = table.New(table.WithColumns(peerColumns), table.WithRows(b.rows), table.WithFocused(true),
		table.WithWidth(frameWidth), table.WithHeight(frameHeight-4))
	return b
}

func peerRow(r runs.Run) table.Row {
	return table.Row{r.TaskID, r.Experiment, r.Model, string(r.Phase), fmt.Sprintf("%d/%d", r.Summary.SkillsOK, r.Summary.Skills),
		fmt.Sprintf("$%.3f", r.Summary.Usage.CostUSD), text.Took(r.Age(time.Now())), string(r.Exit)}
}

func (b *bubbles) Init() tea.Cmd { return b.wait }

func (b *bubbles) wait() tea.Msg {
	select {
	case <-b.ctx.Done():
		return nil
	case <-b.st.Changed():
	}
	time.Sleep(tui.DefaultFrame)
	return rowsMsg{b.st.Snapshot()}
}

func (b *bubbles) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case rowsMsg:
		b.rows[0] = peerRow(msg.snap.Runs.Rows[0])
		b.table.SetRows(b.rows)
		return b, b.wait
	case tea.KeyPressMsg:
		b.table, _ = b.table.Update(msg)
	}
	return b, nil
}

func (b *bubbles) View() tea.View {
	v := tea.NewView(b.table.View())
	v.AltScreen = true
	return v
}
