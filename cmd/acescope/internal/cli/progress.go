package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"acescope/theme"
	"acescope/tui/text"
)

// SoFar is how far something long is.
type SoFar struct {
	Done, Total int64 // total 0 where nobody knows
	Since       time.Time
	What        string // is said behind the numbers
}

// ProgressBar draws progress in the last line of a terminal. A nil one draws nothing.
type ProgressBar struct {
	out    io.Writer
	width  func() int
	glyphs theme.Glyphs
	drawn  time.Time // zero while the line is empty
	last   time.Time
}

// progressEvery bounds how often a bar is drawn.
const progressEvery = 100 * time.Millisecond

// NewProgressBar is nil where standard error is no terminal that can take a line back.
func NewProgressBar(out io.Writer) *ProgressBar {
	if !term.IsTerminal(os.Stderr.Fd()) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	width := func() int {
		if w, _, err := term.GetSize(os.Stderr.Fd()); err == nil && w > 0 {
			return w
		}
		return 80
	}
	return &ProgressBar{out: out, width: width, glyphs: theme.GlyphsFor(os.Getenv)}
}

// Ticks is when to draw although nothing new has come.
func (b *ProgressBar) Ticks() *time.Ticker {
	if b == nil {
		return time.NewTicker(time.Hour)
	}
	return time.NewTicker(5 * progressEvery)
}

// Draw draws, unless it did a moment ago.
func (b *ProgressBar) Draw(how func() SoFar) {
	if b == nil || time.Since(b.last) < progressEvery {
		return
	}
	b.Clear()
	b.last = time.Now()
	b.drawn = b.last
	fmt.Fprint(b.out, text.Cut(how().line(b.last, b.glyphs), b.width()-1, b.glyphs.Ellipsis))
}

// Clear takes the bar away, so that a line can be written.
func (b *ProgressBar) Clear() {
	if b != nil && !b.drawn.IsZero() {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.drawn = time.Time{}
	}
}

// barCells is the length of the bar itself.
const barCells = 16

// line says how far it is, how fast, and how long the rest will take at that rate.
func (p SoFar) line(now time.Time, g theme.Glyphs) string {
	spent := now.Sub(p.Since)
	rate := float64(p.Done) / max(spent.Seconds(), 0.001)
	per := fmt.Sprintf("%.0f/s", rate)
	if rate < 10 {
		per = fmt.Sprintf("%.1f/s", rate)
	}
	if p.Total == 0 {
		return fmt.Sprintf("%s  %s  %s  %s", text.Count(p.Done), per, roughly(spent), p.What)
	}
	done := min(p.Done, p.Total) // there may be more than when they were counted
	full := int(done * barCells / p.Total)
	left := "?"
	if done > 0 {
		left = roughly(time.Duration(float64(spent) / float64(done) * float64(p.Total-done)))
	}
	return fmt.Sprintf("%s%s %s/%s %d%%  %s  ETA %s  %s", strings.Repeat(g.Full, full), strings.Repeat(g.Empty, barCells-full),
		text.Count(p.Done), text.Count(p.Total), done*100/p.Total, per, left, p.What)
}

// roughly is a duration to the second.
func roughly(d time.Duration) string {
	if d < time.Minute {
		return text.Span(d)
	}
	return text.Took(d.Round(time.Second))
}
