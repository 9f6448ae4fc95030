package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
	"acescope/tui"
	"acescope/views"
	"acescope/views/console"
)

// frames runs a console on runs that are made up, types, and says what it cost.
func frames(ctx context.Context, s spec) error {
	st := newStream(frameRuns)
	timed, err := timedConsole(ctx, s.Variant, st)
	if err != nil {
		return err
	}
	keys, typed := io.Pipe()
	out := &byteCount{}
	p := tea.NewProgram(timed, tea.WithContext(ctx), tea.WithInput(keys), tea.WithOutput(out), tea.WithWindowSize(frameWidth, frameHeight),
		tea.WithoutSignals(), tea.WithFPS(int(time.Second/tui.DefaultFrame)), tea.WithEnvironment([]string{"TERM=xterm-256color", "COLORTERM=truecolor"}))
	ended := make(chan error, 1)
	go func() { _, err := p.Run(); ended <- err }()
	stop, err := profile(s, "frame-"+s.Variant)
	if err != nil {
		return err
	}
	t := frameTimes{Seconds: float64(s.Seconds)}
	cpu, begun := ownCPU(), time.Now()
	live, end := context.WithCancel(ctx)
	go st.run(live)
	t.Sent = typeKeys(live, typed, s.Seconds)
	end()
	t.CPU = 100 * float64(ownCPU()-cpu) / float64(time.Since(begun))
	stop()
	t.Frames, t.Bytes = int(out.writes.Load()), out.bytes.Load()
	p.Quit()
	if err := <-ended; err != nil {
		return err
	}
	t.Events = int(st.events.Load())
	t.Handled = len(timed.keys)
	t.KeyP50, t.KeyP99 = series(timed.keys).percentile(50), series(timed.keys).percentile(99)
	t.DataP50, t.DataP99 = series(timed.data).percentile(50), series(timed.data).percentile(99)
	return tell(t)
}

func timedConsole(ctx context.Context, variant string, st *stream) (*timedModel, error) {
	if variant == bare {
		return &timedModel{inner: newBubbles(ctx, st)}, nil
	}
	screens, global := views.Screens(console.Options{Context: ctx, Controls: st})
	m, err := tui.New(tui.Options{Context: ctx, Store: st, Screens: screens, Global: global, Styles: theme.New(true, false)})
	return &timedModel{inner: m}, err
}

// typeKeys goes down and up again, once each hundredth of a second, and says how many
// keys it typed.
func typeKeys(ctx context.Context, to io.Writer, seconds int) (sent int) {
	tick := time.NewTicker(time.Second / frameKeys)
	defer tick.Stop()
	for sent < frameKeys*seconds {
		select {
		case <-ctx.Done():
			return sent
		case <-tick.C:
		}
		key := "j"
		if sent/200%2 == 1 {
			key = "k"
		}
		if _, err := fmt.Fprint(to, key); err != nil {
			return sent
		}
		sent++
	}
	return sent
}

// timedModel times what each key and each change of the data costs, to the drawn frame.
type timedModel struct {
	inner tea.Model
	keys  []float64 // ms
	data  []float64
	kind  *[]float64 // of the message under way
	begun time.Time
}

func (m *timedModel) Init() tea.Cmd { return m.inner.Init() }

func (m *timedModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.begun = time.Now()
	switch msg.(type) {
	case tea.KeyPressMsg:
		m.kind = &m.keys
	case tea.WindowSizeMsg, tea.ColorProfileMsg, tea.EnvMsg:
		m.kind = nil
	default:
		m.kind = &m.data
	}
	inner, cmd := m.inner.Update(msg)
	m.inner = inner
	return m, cmd
}

func (m *timedModel) View() tea.View {
	v := m.inner.View()
	if m.kind != nil {
		*m.kind = append(*m.kind, float64(time.Since(m.begun))/float64(time.Millisecond))
		m.kind = nil
	}
	return v
}

// byteCount counts what goes to the terminal; the renderer writes once a frame.
type byteCount struct {
	writes atomic.Int64
	bytes  atomic.Int64
}

func (c *byteCount) Write(p []byte) (int, error) {
	c.writes.Add(1)
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}
