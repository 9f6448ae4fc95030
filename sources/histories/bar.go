package histories

import "time"

// Cell is the content of one cell of a bar. Of several spans in one cell the later kind in this
// list wins.
type Cell uint8

// Cells.
const (
	CellNone   Cell = iota
	CellWait        // scheduled, not started
	CellRetry       // failed attempts and waiting between them
	CellRun         // ran
	CellOpen        // running
	CellFailed      // ran and failed
	CellPoint       // an event without duration
	CellBad         // where it failed
)

// Window is the range of time of the bars, in nanoseconds since 1970.
type Window struct{ From, To int64 }

// Column returns the cell of a time: below 0 before the window, width or above after it.
func (w Window) Column(at int64, width int) int {
	if w.To <= w.From {
		return 0
	}
	x := float64(at-w.From) / float64(w.To-w.From) * float64(width)
	if x < 0 {
		return -1
	}
	if x >= float64(width) {
		if at == w.To {
			return width - 1
		}
		return width
	}
	return int(x)
}

// Draw adds a span to the cells of a bar. A short span takes one cell.
func (w Window) Draw(cells []Cell, s *Span, now time.Time) {
	begin, end := s.Start, max(s.until(now), s.Start)
	if end < w.From || begin > w.To {
		return
	}
	if s.Point {
		kind := CellPoint
		if s.State.Bad() {
			kind = CellBad
		}
		w.put(cells, begin, begin, kind)
		return
	}
	run := s.Run
	if run == 0 || run > end {
		run = end
	}
	waiting := CellWait
	if s.Kind == SpanWait {
		w.put(cells, begin, end, CellWait)
		return
	}
	if s.Attempt > 1 && s.Kind == SpanActivity || s.State == SpanRetrying {
		waiting = CellRetry
	}
	if run > begin || s.Run == 0 {
		w.put(cells, begin, run, waiting)
	}
	if s.Run == 0 {
		return
	}
	kind := CellRun
	switch {
	case s.State.Bad():
		kind = CellFailed
	case s.State.Open():
		kind = CellOpen
	}
	w.put(cells, run, end, kind)
	if s.State.Bad() {
		w.put(cells, end, end, CellBad)
	}
}

func (w Window) put(cells []Cell, from, to int64, kind Cell) {
	if to < w.From || from > w.To {
		return
	}
	a, b := max(w.Column(from, len(cells)), 0), min(w.Column(to, len(cells)), len(cells)-1)
	for i := a; i <= b && i < len(cells); i++ {
		cells[i] = max(cells[i], kind)
	}
}

// Extent returns the range of the spans, until now if a span is open; at least a millisecond.
func Extent(spans []Span, now time.Time) Window {
	if len(spans) == 0 {
		return Window{}
	}
	w := Window{spans[0].Start, spans[0].Start}
	for i := range spans {
		s := &spans[i]
		w.From, w.To = min(w.From, s.Start), max(w.To, s.Start, s.End)
		if s.End == 0 && s.State.Open() {
			w.To = max(w.To, now.UnixNano())
		}
	}
	w.To = max(w.To, w.From+int64(time.Millisecond))
	return w
}

// Ticks returns at most n times within a window at round distances from zero.
func (w Window) Ticks(zero int64, n int) []int64 {
	if w.To <= w.From || n < 1 {
		return nil
	}
	step := roundStep((w.To - w.From) / int64(n))
	first := zero + (w.From-zero)/step*step
	if first < w.From {
		first += step
	}
	var out []int64
	for t := first; t <= w.To && len(out) < n; t += step {
		out = append(out, t)
	}
	return out
}

// roundSteps are the round durations of a second and more, in seconds.
var roundSteps = []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600,
	12 * 3600}

// roundStep returns the smallest round duration that is at least least.
func roundStep(least int64) int64 {
	for unit := int64(time.Microsecond); unit < int64(time.Second); unit *= 10 {
		for _, m := range []int64{1, 2, 5} {
			if m*unit >= least {
				return m * unit
			}
		}
	}
	for _, s := range roundSteps {
		if s*int64(time.Second) >= least {
			return s * int64(time.Second)
		}
	}
	step := int64(24 * time.Hour)
	for step < least {
		step *= 2
	}
	return step
}
