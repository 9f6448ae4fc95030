package tui

import (
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// pacer stops the drawing of a Bubble Tea program while there is nothing to draw. The program's renderer
// looks for a new frame at a fixed rate for as long as it runs, and each look wakes the process: 20 a
// second take 0.2 % of a core, as much as everything else in an idle console. The program has no option for
// that, so the pacer uses its ticker; a program without a ticker keeps its rate. A nil pacer does nothing.
type pacer struct {
	program *tea.Program
	frame   time.Duration // between two looks
	ticker  *time.Ticker  // of the program, nil before its first message
	timer   *time.Timer   // calls turn

	mu     sync.Mutex
	until  time.Time // when the ticker stops
	rushed bool      // the ticker is to slow down to the frame rate
	on     bool
}

// Times for which the ticker runs on: after anything that may write to the terminal, and at the start, when
// the terminal is asked what it can do.
const (
	paceAfterUse = time.Second
	paceAtStart  = 5 * time.Second
)

// Pace stops the drawing of the model's program while nothing changes. Call it before the program runs.
func (m *Model) Pace(program *tea.Program) {
	m.canvas.pacer = &pacer{program: program, frame: m.opts.Frame}
}

// find finds the ticker. It must be called in the goroutine of the program, after its start.
func (p *pacer) find() bool {
	if p.ticker != nil {
		return true
	}
	field := reflect.ValueOf(p.program).Elem().FieldByName("ticker")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*time.Ticker]() || field.IsNil() {
		return false
	}
	p.ticker = (*time.Ticker)(field.UnsafePointer())
	p.on = true
	p.until = time.Now().Add(paceAtStart)
	p.timer = time.AfterFunc(paceAtStart, p.turn)
	return true
}

// changed draws one frame.
func (p *pacer) changed() {
	if p != nil {
		p.run(p.frame, p.frame+p.frame/2)
	}
}

// used makes the program draw soon, and for a while. The first frame comes as soon as it does on average at
// the frame rate.
func (p *pacer) used() {
	if p != nil {
		p.run(p.frame/2, paceAfterUse)
	}
}

func (p *pacer) run(first, lasting time.Duration) {
	if !p.find() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	until := time.Now().Add(lasting)
	if p.until.Before(until) {
		p.until = until
	}
	if p.on {
		return
	}
	p.on = true
	p.ticker.Reset(first)
	wait := lasting
	if p.rushed = first < p.frame; p.rushed {
		wait = first + first/2
	}
	p.timer.Reset(wait)
}

// turn slows the ticker down, or stops it.
func (p *pacer) turn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rushed {
		p.rushed = false
		p.ticker.Reset(p.frame)
	}
	left := time.Until(p.until)
	if left > 0 {
		p.timer.Reset(left)
		return
	}
	p.on = false
	p.ticker.Stop()
}
