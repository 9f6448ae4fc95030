package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// Progress is the progress of a long operation.
type Progress struct {
	Done, Total int64 // Total is 0 if unknown
	Since       time.Time
	Note        string // shown after the numbers
}

// ProgressBar draws progress in the last line of a terminal. A nil ProgressBar draws nothing.
type ProgressBar struct {
	out    *Output
	width  func() int
	glyphs theme.Glyphs
	last   time.Time // when the bar was drawn last
}

// progressInterval is the minimum time between two draws.
const progressInterval = 100 * time.Millisecond

// NewProgressBar returns nil if out is not a terminal that can erase a line.
func NewProgressBar(out io.Writer) *ProgressBar {
	o, _ := out.(*Output)
	if _, _, ok := Terminal(out); !ok || os.Getenv("TERM") == "dumb" {
		return nil
	}
	width := func() int {
		w, _, _ := Terminal(o)
		return cmp.Or(w, 80)
	}
	return &ProgressBar{out: o, width: width, glyphs: theme.GlyphsFor(os.Getenv)}
}

// Ticks returns a ticker for drawing while nothing changes.
func (b *ProgressBar) Ticks() *time.Ticker {
	if b == nil {
		return time.NewTicker(time.Hour)
	}
	return time.NewTicker(5 * progressInterval)
}

// Draw draws the progress, at most once per progressInterval.
func (b *ProgressBar) Draw(progress func() Progress) {
	if b == nil || time.Since(b.last) < progressInterval {
		return
	}
	b.last = time.Now()
	b.out.drawLast(text.Cut(progress().line(b.last, b.glyphs), b.width()-1, b.glyphs.Ellipsis))
}

// Clear erases the bar, so that a line can be written to another output. A line on the bar's own output
// erases it.
func (b *ProgressBar) Clear() {
	if b != nil {
		b.out.drawLast("")
	}
}

// barCells is the width of the bar.
const barCells = 16

// line returns the progress, the rate and, at that rate, the remaining time.
func (p Progress) line(now time.Time, g theme.Glyphs) string {
	spent := now.Sub(p.Since)
	rate := float64(p.Done) / max(spent.Seconds(), 0.001)
	per := fmt.Sprintf("%.0f/s", rate)
	if rate < 10 {
		per = fmt.Sprintf("%.1f/s", rate)
	}
	if p.Total == 0 {
		return fmt.Sprintf("%s  %s  %s  %s", ace.Number(p.Done), per, roughly(spent), p.Note)
	}
	done := min(p.Done, p.Total) // Total may be outdated
	full := int(done * barCells / p.Total)
	left := "?"
	if done > 0 {
		left = roughly(time.Duration(float64(spent) / float64(done) * float64(p.Total-done)))
	}
	bar := strings.Repeat(g.Full, full) + strings.Repeat(g.Empty, barCells-full)
	return fmt.Sprintf("%s %s/%s %d%%  %s  ETA %s  %s",
		bar, ace.Number(p.Done), ace.Number(p.Total), done*100/p.Total, per, left, p.Note)
}

// roughly returns a duration to the second.
func roughly(d time.Duration) string {
	if d < time.Minute {
		return text.Span(d)
	}
	return text.Duration(d.Round(time.Second))
}
