package tui

import (
	"reflect"
	"time"

	tea "charm.land/bubbletea/v2"
)

// canvas is the terminal's size and the drawn frame, which is kept until something changes: Bubble Tea asks
// for a frame after every message.
type canvas struct {
	width, height int
	content       string
	cursor        *tea.Cursor
	dirty         bool    // the frame must be drawn again
	count         *Frames // may be nil
	pacer         *pacer  // nil if the program draws at a fixed rate
}

// touched marks the frame as outdated by a message.
func (c *canvas) touched(msg tea.Msg) {
	c.dirty = true
	switch msg.(type) {
	case changedMsg, tickMsg: // [canvas.draw] sees whether they change anything
	default:
		c.pacer.used()
	}
}

// draw draws the frame again if it is outdated.
func (c *canvas) draw(frame func() (content string, cursor *tea.Cursor)) {
	if !c.dirty {
		return
	}
	start := time.Now()
	content, cursor := frame()
	if content != c.content || !reflect.DeepEqual(cursor, c.cursor) {
		c.pacer.changed()
	}
	c.content, c.cursor = content, cursor
	c.count.drawn(time.Since(start))
	c.dirty = false
}

// tooSmall reports whether panes have no room.
func (c *canvas) tooSmall() bool { return c.width < MinWidth || c.height < MinHeight }
