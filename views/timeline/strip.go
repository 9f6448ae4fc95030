package timeline

import (
	"time"

	"acescope/sources/histories"
	"acescope/theme"
)

// Strip draws the phases and calls of a run as bars, with an event marked, for other screens.
type Strip struct {
	bars *barPane
	log  *histories.EventLog // with the spans that are drawn
	of   *histories.EventLog
}

func NewStrip() *Strip { return &Strip{bars: newBarPane(&scope{})} }

// Draw returns the axis and at most lanes lanes around that of the event. Without spans it returns nothing.
func (s *Strip) Draw(
	styles theme.Styles, l *histories.EventLog, event int64, width, lanes int, now time.Time,
) []string {
	if l == nil || len(l.Spans) == 0 {
		return nil
	}
	if l != s.of {
		reduced := *l
		reduced.Spans = histories.Work(l.Spans)
		s.log, s.of = &reduced, l
	}
	p := s.bars
	p.Styles, p.Width, p.lanesShown = styles, width, lanes
	p.marked = 0
	if e := l.Event(event); e != nil {
		p.marked = e.Nanos
		at := spanOf(s.log, event)
		if at < 0 {
			at = innermost(s.log.Spans, e.Nanos)
		}
		p.arrange(s.log)
		p.show(s.log, at)
	}
	return p.drawLanes(s.log, now, false, min(lanes, len(s.log.Spans)))
}

// innermost returns the deepest span that holds a time, or the run.
func innermost(spans []histories.Span, at int64) (best int) {
	for i := range spans {
		if holds(&spans[i], at) && spans[i].Depth >= spans[best].Depth {
			best = i
		}
	}
	return best
}

// holds reports whether a time is within a span.
func holds(s *histories.Span, at int64) bool { return s.Start <= at && (at <= s.End || s.End == 0) }
