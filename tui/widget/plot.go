package widget

import (
	"math"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// Plot draws curves over one x axis at any size. Curves differ by mark and line, and also by color.
type Plot struct {
	Title  string // name and unit of y
	X, Y   Axis
	Curves []PlotCurve
	Legend bool
	Empty  string // shown if no curve has points
}

// PlotCurve is one curve. NaN in y is a gap. Series decides its color and its mark.
type PlotCurve struct {
	Name   string
	Series int
	X, Y   []float64
	Dashed bool
}

// NewPlot returns a plot without curves over tasks, or over seconds with byTime. The unit of y is "rate",
// "USD", "total" for a count that begins at 0, or "" for another count.
func NewPlot(title, unit string, byTime bool) Plot {
	p := Plot{
		Title: title,
		X:     Axis{Format: CountTick, Whole: true, Zero: true, Unit: "tasks"},
		Y:     Axis{Format: CountTick, Whole: true, Zero: unit == "total"},
	}
	if byTime {
		p.X = Axis{Format: TimeTick, Time: true, Zero: true}
	}
	switch unit {
	case "rate":
		p.Y = Axis{Format: PercentTick, Most: 1, MinLen: 0.1}
	case "USD":
		p.Y = Axis{Format: DollarTick, Zero: true}
	}
	return p
}

// plotArea is where a plot is drawn: its scales and its cells. Each cell is wide×high
// dots: one if the terminal shows only ASCII.
type plotArea struct {
	s          theme.Styles
	ascii      bool
	cols, rows int
	wide, high int
	x, y       scale
	cells      []plotCell
	tops       [][]int // by curve and column of cells: the row of its line, -1 for none
}

type plotCell struct {
	dots  uint8 // of a braille pattern
	owner int   // 1-based curve, 0 for an empty cell
	mark  bool
}

// Draw returns exactly height lines of width cells.
func (p Plot) Draw(width, height int, s theme.Styles) []string {
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	lines := []string{l.Add(s.Strong, p.Title).String(s.Text)}
	legend := p.legendLines(width, max(height/4, 1), s)
	space := height - 1 - len(legend)
	if body := p.body(width, space, s); body != nil {
		lines = append(lines, body...)
	} else {
		lines = append(lines, Center([]string{p.Empty}, width, max(space, 0), s)...)
	}
	return Fill(append(lines, legend...), width, height)
}

// Minimum width and height for curves, and the minimum height for an axis line.
const (
	leastPlotCols = 8
	leastPlotRows = 2
	axisLineFrom  = 7
)

// body returns the curves with their axes, nil if there is nothing to draw or no room.
func (p Plot) body(width, height int, s theme.Styles) []string {
	a := &plotArea{s: s, ascii: s.Glyphs.Full[0] < 0x80, wide: 2, high: 4, rows: height - 1}
	if a.ascii {
		a.wide, a.high = 1, 1
	}
	if height >= axisLineFrom {
		a.rows--
	}
	xs, ys, ok := p.ranges()
	if !ok || a.rows < leastPlotRows {
		return nil
	}
	a.y = p.Y.scale(ys, max(min(a.rows/3, 8), 1))
	labels, labelWidth := a.yLabels(p.Y)
	if a.cols = width - labelWidth - 1; a.cols < leastPlotCols {
		return nil
	}
	a.x = scale{low: xs.low, high: xs.high, step: p.X.step(xs, max(a.cols/12, 2))}
	a.cells = make([]plotCell, a.cols*a.rows)
	for i, c := range p.Curves {
		a.tops = append(a.tops, slices.Repeat([]int{-1}, a.cols))
		a.curve(i, c)
	}
	for i := range p.Curves {
		a.marks(i)
	}
	lines := make([]string, 0, height)
	for row := range a.rows {
		lines = append(lines, a.line(row, labels[row], labelWidth, p.Curves))
	}
	return append(lines, a.xAxis(p.X, labelWidth, height-a.rows)...)
}

// ranges returns the ranges of x and y of all points; ok is false without points.
func (p Plot) ranges() (x, y interval, ok bool) {
	x, y = newSpan(), newSpan()
	for _, c := range p.Curves {
		for i := range c.Y {
			if !math.IsNaN(c.Y[i]) {
				x.add(c.X[i])
				y.add(c.Y[i])
			}
		}
	}
	if p.X.Zero {
		x.add(0)
	}
	return x.wider(), y, y.low <= y.high
}

// yLabels returns the labels by row, and the width of the widest label.
func (a *plotArea) yLabels(of Axis) (map[int]string, int) {
	labels, width := map[int]string{}, 0
	for _, v := range a.y.ticks() {
		row := a.rowOf(a.dotY(v))
		if labels[row] == "" {
			labels[row] = of.Format(v, a.y.step)
			width = max(width, text.Width(labels[row]))
		}
	}
	return labels, width
}

func (a *plotArea) dotX(v float64) int { return a.x.at(v, a.cols*a.wide) }
func (a *plotArea) dotY(v float64) int { return a.y.at(v, a.rows*a.high) }

// rowOf returns the row of cells, counted from the top, of a dot counted from the bottom.
func (a *plotArea) rowOf(dot int) int { return (a.rows*a.high - 1 - dot) / a.high }

// curve draws the line. Points that fall into one column of dots are drawn as their mean.
func (a *plotArea) curve(i int, c PlotCurve) {
	col, n, sum := -1, 0, 0.0
	lastX, lastY, joined := 0, 0, false
	flush := func() {
		if n == 0 {
			return
		}
		y := a.dotY(sum / float64(n))
		a.tops[i][col/a.wide] = a.rowOf(y)
		if joined {
			a.segment(i, c.Dashed, lastX, lastY, col, y)
		} else {
			a.dot(i, c.Dashed, col, y)
		}
		lastX, lastY, joined, n, sum = col, y, true, 0, 0
	}
	for k, v := range c.Y {
		if math.IsNaN(v) {
			flush()
			joined = false
			continue
		}
		if x := a.dotX(c.X[k]); x != col {
			flush()
			col = x
		}
		n, sum = n+1, sum+v
	}
	flush()
}

// segment joins two points (Bresenham).
func (a *plotArea) segment(i int, dashed bool, x, y, toX, toY int) {
	dx, dy := abs(toX-x), -abs(toY-y)
	sx, sy := sign(toX-x), sign(toY-y)
	for err := dx + dy; ; {
		a.dot(i, dashed, x, y)
		if x == toX && y == toY {
			return
		}
		twice := 2 * err
		if twice >= dy {
			err, x = err+dy, x+sx
		}
		if twice <= dx {
			err, y = err+dx, y+sy
		}
	}
}

func abs(n int) int { return max(n, -n) }

func sign(n int) int { return Clamp(n, -1, 1) }

// brailleBits are the dots of a braille pattern by row from the top and by column.
var brailleBits = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// dot draws one dot. A dashed line leaves out every other cell.
func (a *plotArea) dot(i int, dashed bool, x, y int) {
	if dashed && x/a.wide%2 == 1 {
		return
	}
	row := a.rowOf(y)
	cell := &a.cells[row*a.cols+x/a.wide]
	cell.owner = i + 1
	if !a.ascii {
		cell.dots |= brailleBits[a.rows*a.high-1-y-row*a.high][x%a.wide]
	}
}

// marks puts the curve's mark at the end of its line and at intervals on it, in other columns
// than the marks of the other curves.
func (a *plotArea) marks(i int) {
	every := max(a.cols/4, 10)
	next, last := every*(i+1)/(len(a.tops)+1), -1
	for col, row := range a.tops[i] {
		if row < 0 {
			continue
		}
		last = col
		if col >= next && !a.ascii {
			a.mark(i, col, row)
			next = col + every
		}
	}
	if last >= 0 {
		a.mark(i, last, a.tops[i][last])
	}
}

// mark puts the curve's mark into a cell, unless the cell has the mark of another curve.
func (a *plotArea) mark(i, col, row int) {
	if cell := &a.cells[row*a.cols+col]; !cell.mark {
		cell.owner, cell.mark = i+1, true
	}
}

func (a *plotArea) line(row int, label string, labelWidth int, curves []PlotCurve) string {
	var b strings.Builder
	side := If(label != "" && !a.ascii, "┤", a.s.Glyphs.Plain.Side)
	b.WriteString(a.s.Muted.Paint(text.FitLeft(label, labelWidth, "") + side))
	for at := 0; at < a.cols; {
		owner := a.cells[row*a.cols+at].owner
		var run strings.Builder
		for ; at < a.cols && a.cells[row*a.cols+at].owner == owner; at++ {
			run.WriteString(a.glyph(a.cells[row*a.cols+at], curves))
		}
		if owner == 0 {
			b.WriteString(run.String())
		} else {
			b.WriteString(a.s.Series(curves[owner-1].Series).Paint(run.String()))
		}
	}
	return b.String()
}

func (a *plotArea) glyph(c plotCell, curves []PlotCurve) string {
	switch {
	case c.owner == 0:
		return " "
	case c.mark || a.ascii:
		return SeriesMark(curves[c.owner-1].Series, a.s.Glyphs)
	}
	return string(rune(0x2800 + int(c.dots)))
}

// xAxis returns the labels below the curves and, if there is room for two lines, a line with
// ticks above the labels.
func (a *plotArea) xAxis(of Axis, labelWidth, lines int) []string {
	tick, corner, rule := "┬", a.s.Glyphs.Plain.BottomLeft, a.s.Glyphs.Plain.Bottom
	if a.ascii {
		tick = "+"
	}
	line := make([]string, a.cols)
	for i := range line {
		line[i] = rule
	}
	below := text.Spaces(labelWidth + 1)
	unit := of.Unit
	for _, v := range a.x.ticks() {
		col := a.dotX(v) / a.wide
		label := of.Format(v, a.x.step)
		if unit != "" {
			label, unit = label+" "+unit, ""
		}
		used := text.Width(below)
		start := labelWidth + 1 + col - text.Width(label)/2
		start = If(col == 0, used, min(start, labelWidth+1+a.cols-text.Width(label)))
		if start < used || used > labelWidth+1 && start == used {
			continue
		}
		below += text.Spaces(start-used) + label
		line[col] = tick
	}
	width := labelWidth + 1 + a.cols
	out := []string{a.s.Muted.Paint(text.Spaces(labelWidth) + corner + strings.Join(line, ""))}
	if lines < 2 {
		out = nil
	}
	return append(out, a.s.Muted.Paint(text.Fit(below, width, "")))
}

// maxCurveName bounds the name of a curve in the legend, in cells.
const maxCurveName = 33

// legendLines names the curves, in at most most lines.
func (p Plot) legendLines(width, most int, s theme.Styles) []string {
	if !p.Legend {
		return nil
	}
	var lines []*text.Line
	for i, c := range p.Curves {
		sample := s.Glyphs.LinkTodo + s.Glyphs.LinkTodo + s.Glyphs.LinkTodo
		if c.Dashed {
			sample = s.Glyphs.LinkTodo + " " + s.Glyphs.LinkTodo
		}
		name := text.Cut(text.Safe(c.Name, " "), maxCurveName, s.Glyphs.Ellipsis)
		sample = SeriesMark(c.Series, s.Glyphs) + sample
		need := text.Width(sample) + 1 + text.Width(name) + 2
		if len(lines) == 0 || lines[len(lines)-1].Rest() < need {
			if len(lines) == most {
				lines[most-1].Add(s.Muted, "+"+ace.Number(len(p.Curves)-i)+" more")
				break
			}
			lines = append(lines, &text.Line{Max: width, Tail: s.Glyphs.Ellipsis})
		}
		lines[len(lines)-1].Add(s.Series(c.Series), sample).Add(s.Text, " "+name+"  ")
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.String(s.Text)
	}
	return out
}

// SeriesMark returns the mark of the i-th series, which distinguishes it on a plot without color.
func SeriesMark(i int, g theme.Glyphs) string {
	marks := []string{"●", "◆", "▲", "■", "○", "◇", "△", "□"}
	if g.Full[0] < 0x80 {
		marks = []string{"*", "o", "+", "x", "#", "@", "%", "&"}
	}
	return marks[i%len(marks)]
}
