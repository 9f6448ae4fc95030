package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/views"
	"acescope/views/console"
)

// probePatience bounds each wait for the console.
const probePatience = 2 * time.Minute

// probe is the console on a real store, in a terminal that nobody sees. It knows which
// snapshot each frame was drawn of.
type probe struct {
	inner *tui.Model
	store *handedOut
	keys  io.Writer
	out   *byteCount
	ended chan error
	quit  func()

	mu      sync.Mutex
	applied *sources.Snapshot // that the model was given last
	drawn   *sources.Snapshot // that the last frame is of
	at      time.Time         // when it was drawn
	handled int               // keys
	begun   time.Time
	isKey   bool
	work    series // ms from each key to its frame
	again   chan struct{}
}

// handedOut remembers the snapshot that it handed out last.
type handedOut struct {
	*sources.Store
	last atomic.Pointer[sources.Snapshot]
}

func (h *handedOut) Snapshot() *sources.Snapshot {
	s := h.Store.Snapshot()
	h.last.Store(s)
	return s
}

// openProbe runs a console of the size that frames are measured at until ctx ends.
func openProbe(ctx context.Context, store *sources.Store) (*probe, error) {
	p := &probe{store: &handedOut{Store: store}, out: &byteCount{}, ended: make(chan error, 1), again: make(chan struct{}, 1)}
	screens, global := views.Screens(console.Options{Context: ctx, Controls: store})
	var err error
	p.inner, err = tui.New(tui.Options{Context: ctx, Store: p.store, Screens: screens, Global: global, Styles: theme.New(true, false)})
	if err != nil {
		return nil, err
	}
	in, keys := io.Pipe()
	p.keys = keys
	program := tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(p.out), tea.WithWindowSize(frameWidth, frameHeight),
		tea.WithoutSignals(), tea.WithEnvironment([]string{"TERM=xterm-256color", "COLORTERM=truecolor"}))
	p.quit = program.Quit
	go func() { _, err := program.Run(); p.ended <- err }()
	return p, nil
}

func (p *probe) close() error {
	p.quit()
	return <-p.ended
}

func (p *probe) Init() tea.Cmd { return p.inner.Init() }

func (p *probe) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	begun := time.Now()
	_, isKey := msg.(tea.KeyPressMsg)
	var applied *sources.Snapshot
	if !isKey {
		applied = p.store.last.Load()
	}
	_, cmd := p.inner.Update(msg)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.isKey = begun, isKey
	if applied != nil {
		p.applied = applied
	}
	return p, cmd
}

func (p *probe) View() tea.View {
	v := p.inner.View()
	p.mu.Lock()
	p.drawn, p.at = p.applied, time.Now()
	if p.isKey {
		p.work = append(p.work, millis(p.at.Sub(p.begun)))
		p.handled++
		p.isKey = false
	}
	p.mu.Unlock()
	select {
	case p.again <- struct{}{}:
	default:
	}
	return v
}

// until waits for a frame of a snapshot that is as wanted, and says when it was drawn.
func (p *probe) until(ctx context.Context, what string, ok func(*sources.Snapshot) bool) (time.Time, error) {
	return p.wait(ctx, what, func() bool { return p.drawn != nil && ok(p.drawn) })
}

func (p *probe) wait(ctx context.Context, what string, ok func() bool) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	for {
		p.mu.Lock()
		done, at := ok(), p.at
		p.mu.Unlock()
		if done {
			return at, nil
		}
		select {
		case <-p.again:
		case err := <-p.ended:
			p.ended <- err
			return at, errors.Join(fmt.Errorf("the console ended before %s", what), err)
		case <-ctx.Done():
			return at, fmt.Errorf("never: %s", what)
		}
	}
}

// press types keys and says when it did.
func (p *probe) press(keys string) (time.Time, error) {
	at := time.Now()
	_, err := fmt.Fprint(p.keys, keys)
	return at, err
}

// steps types a key so often, each once the one before is drawn, and says what each cost.
func (p *probe) steps(ctx context.Context, key string, count int) (series, error) {
	p.mu.Lock()
	from := len(p.work)
	p.mu.Unlock()
	for n := range count {
		if _, err := p.press(key); err != nil {
			return nil, err
		}
		if _, err := p.wait(ctx, "a key is handled", func() bool { return len(p.work) > from+n }); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(series(nil), p.work[from:from+count]...), nil
}

// heapMB is what the heap holds after a collection.
func heapMB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// ownMB is the resident size of this process now, its peak where the system does not tell.
func ownMB() float64 {
	data, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 2 {
		return ownPeakMB()
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return ownPeakMB()
	}
	return float64(pages) * float64(os.Getpagesize()) / (1 << 20)
}
