package main

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

// soFar is how far something long is.
type soFar struct {
	done, total int64 // total 0 where nobody knows
	since       time.Time
	what        string // is said behind the numbers
}

// progressBar draws progress in the last line of a terminal. A nil one draws nothing.
type progressBar struct {
	out    io.Writer
	width  func() int
	glyphs theme.Glyphs
	drawn  time.Time // zero while the line is empty
	last   time.Time
}

// progressEvery bounds how often a bar is drawn.
const progressEvery = 100 * time.Millisecond

// newProgressBar is nil where standard error is no terminal that can take a line back.
func newProgressBar(out io.Writer) *progressBar {
	if !term.IsTerminal(os.Stderr.Fd()) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	width := func() int {
		if w, _, err := term.GetSize(os.Stderr.Fd()); err == nil && w > 0 {
			return w
		}
		return 80
	}
	return &progressBar{out: out, width: width, glyphs: theme.GlyphsFor(os.Getenv)}
}

// ticks is when to draw although nothing new has come.
func (b *progressBar) ticks() *time.Ticker {
	if b == nil {
		return time.NewTicker(time.Hour)
	}
	return time.NewTicker(5 * progressEvery)
}

// draw draws, unless it did a moment ago.
func (b *progressBar) draw(how func() soFar) {
	if b == nil || time.Since(b.last) < progressEvery {
		return
	}
	b.clear()
	b.last = time.Now()
	b.drawn = b.last
	fmt.Fprint(b.out, text.Cut(how().line(b.last, b.glyphs), b.width()-1, b.glyphs.Ellipsis))
}

// clear takes the bar away, so that a line can be written.
func (b *progressBar) clear() {
	if b != nil && !b.drawn.IsZero() {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.drawn = time.Time{}
	}
}

// barCells is the length of the bar itself.
const barCells = 16

// line says how far it is, how fast, and how long the rest will take at that rate.
func (p soFar) line(now time.Time, g theme.Glyphs) string {
	spent := now.Sub(p.since)
	rate := float64(p.done) / max(spent.Seconds(), 0.001)
	per := fmt.Sprintf("%.0f/s", rate)
	if rate < 10 {
		per = fmt.Sprintf("%.1f/s", rate)
	}
	if p.total == 0 {
		return fmt.Sprintf("%s  %s  %s  %s", text.Count(p.done), per, roughly(spent), p.what)
	}
	done := min(p.done, p.total) // there may be more than when they were counted
	full := int(done * barCells / p.total)
	left := "?"
	if done > 0 {
		left = roughly(time.Duration(float64(spent) / float64(done) * float64(p.total-done)))
	}
	return fmt.Sprintf("%s%s %s/%s %d%%  %s  ETA %s  %s", strings.Repeat(g.Full, full), strings.Repeat(g.Empty, barCells-full),
		text.Count(p.done), text.Count(p.total), done*100/p.total, per, left, p.what)
}

// roughly is a duration to the second.
func roughly(d time.Duration) string {
	if d < time.Minute {
		return text.Span(d)
	}
	return text.Took(d.Round(time.Second))
}
