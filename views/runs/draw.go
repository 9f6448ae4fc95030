package runs

import (
	"time"

	"acescope/tui/widget"
)

func (v *Runs) Draw(now time.Time, focused bool) []string {
	if !v.panel.open() {
		return v.drawList(v.Width, v.Height, now, focused)
	}
	if !v.panelBeside() {
		return v.panel.draw(v.Width, v.Height, focused)
	}
	left := v.panel.draw(panelWidth, v.Height, focused)
	right := v.drawList(v.table.width, v.Height, now, false)
	side := v.Styles.Border.Paint(v.Styles.Glyphs.Plain.Side)
	for i := range left {
		left[i] += side + right[i]
	}
	return left
}

func (v *Runs) drawList(width, height int, now time.Time, focused bool) []string {
	lines := make([]string, 0, height)
	if v.sectionLines() > 0 {
		lines = append(lines, v.sections.draw(width, v.Styles))
	}
	lines = append(lines, v.notices.problem()...)
	if v.Count() == 0 {
		lines = append(lines, widget.Center(v.notices.empty(), width, height-len(lines), v.Styles)...)
		return widget.Fill(lines, width, height)
	}
	lines = append(lines, v.heading)
	end := min(v.top+v.Page(), v.Count())
	for i := v.top; i < end; i++ {
		lines = append(lines, v.row(*v.At(i), i == v.Cursor, focused, now))
	}
	if v.summaryLines() > 0 {
		lines = append(widget.Fill(lines, width, height-1), recentLine(v.listing.Runs.Recent, width,
			v.Styles))
	}
	return widget.Fill(lines, width, height)
}
