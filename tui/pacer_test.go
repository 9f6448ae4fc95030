package tui

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// TestPacerStopsDrawing checks that a program looks for new frames only around a change, and that it draws
// each change within a frame. It fails if Bubble Tea no longer has the ticker that the pacer needs.
func TestPacerStopsDrawing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frame = 50 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		src := newSource()
		view := &pane{name: "left", source: src}
		screens := []Screen{{Name: "one", Views: []View{view}}}
		m := model(t, Options{Context: ctx, Source: src, Screens: screens, Frame: frame})
		out := &terminalOutput{}
		p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(out), tea.WithFPS(20),
			tea.WithWindowSize(80, 24), tea.WithoutSignalHandler(),
			tea.WithEnvironment([]string{"TERM=xterm-256color"}))
		m.Pace(p)
		ended := make(chan error, 1)
		go func() {
			_, err := p.Run()
			ended <- err
		}()
		time.Sleep(paceAtStart + frame)
		synctest.Wait()
		if m.canvas.pacer.ticker == nil || m.canvas.pacer.running() {
			t.Fatal("the program has no ticker, or it runs on")
		}
		for range 3 {
			time.Sleep(time.Minute)
			out.Reset()
			src.bump()
			time.Sleep(2 * frame)
			synctest.Wait()
			if out.Len() == 0 {
				t.Error("a change was not drawn")
			}
			time.Sleep(frame)
			if m.canvas.pacer.running() {
				t.Error("the ticker runs on after a change")
			}
		}
		out.Reset()
		p.Send(rune1('?'))
		time.Sleep(frame/2 + time.Millisecond)
		synctest.Wait()
		if !strings.Contains(out.String(), "Help") {
			t.Errorf("a key was not drawn soon: %q", out.String())
		}
		p.Quit()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		cancel()
		time.Sleep(time.Second) // until the last tick of the clock
	})
}

func (p *pacer) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on
}

// terminalOutput is what a program has written.
type terminalOutput struct {
	mu sync.Mutex
	bytes.Buffer
}

func (o *terminalOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.Write(b)
}
