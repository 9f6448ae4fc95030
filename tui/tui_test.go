package tui

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/hinshun/vt10x"

	"acescope/theme"
	"acescope/tui/text"
)

// pane is a view that records its calls.
type pane struct {
	name          string
	width, height int
	source        *source // nil for none
	seq           uint64
	bindings      []Binding
	msgs          []tea.Msg
	styles        theme.Styles
}

func (p *pane) Name() string               { return p.name }
func (p *pane) Title() string              { return p.name }
func (p *pane) Footer() string             { return "" }
func (p *pane) Bindings() []Binding        { return p.bindings }
func (p *pane) Update(msg tea.Msg) tea.Cmd { p.msgs = append(p.msgs, msg); return nil }
func (p *pane) SetStyles(s theme.Styles)   { p.styles = s }
func (p *pane) SetSize(w, h int)           { p.width, p.height = w, h }
func (p *pane) SetShown(bool)              {}
func (p *pane) Refresh() {
	if p.source != nil {
		p.seq = p.source.current()
	}
}
func (p *pane) Draw(_ time.Time, focused bool) []string {
	lines := make([]string, p.height)
	for i := range lines {
		lines[i] = text.Fit(fmt.Sprintf("%s seq=%d focused=%v", p.name, p.seq, focused), p.width, "")
	}
	return lines
}

type source struct {
	mu      sync.Mutex
	seq     uint64
	changed chan struct{}
	taken   int
}

func newSource() *source { return &source{changed: make(chan struct{}, 1)} }

func (s *source) Status() *Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken++
	return &Status{Seq: s.seq, Connection: Connection{State: "ready", Ready: true, Live: true}}
}

func (s *source) current() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

func (s *source) Used() {}

func (s *source) Changed() <-chan struct{} { return s.changed }

func (s *source) bump() {
	s.mu.Lock()
	s.seq++
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func model(t *testing.T, o Options) *Model {
	t.Helper()
	if o.Styles.Theme == "" {
		o.Styles = theme.New(true, true)
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mapped returns a model with a valid key map.
func mapped(t *testing.T, o Options, keys map[string][]string) *Model {
	t.Helper()
	m := model(t, o)
	if wrong := m.SetKeys(keys); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return m
}

func press(m *Model, k tea.KeyPressMsg) tea.Cmd {
	_, cmd := m.Update(k)
	return cmd
}

func rune1(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Text: string(r)} }

// TestMailboxDeliversNewest checks that many changes give one status, the newest, and that
// the command waits again after it.
func TestMailboxDeliversNewest(t *testing.T) {
	src := newSource()
	left := &pane{name: "left", source: src}
	m := model(t, Options{Source: src, Screens: []Screen{{Name: "one", Views: []View{left}}},
		Frame: time.Nanosecond})
	wait := m.mail.wait()
	for round := range uint64(3) {
		for range 1000 {
			src.bump()
		}
		msg, ok := wait().(changedMsg)
		if !ok || msg.status.Seq != 1000*(round+1) {
			t.Fatalf("round %d: got %#v", round, msg)
		}
		if _, wait = m.Update(msg); wait == nil {
			t.Fatal("no command waits for the next change")
		}
		if left.seq != 1000*(round+1) {
			t.Fatalf("the view has %d", left.seq)
		}
		if len(src.changed) != 0 {
			t.Fatal("a change is left over")
		}
	}
}

// TestMailboxPaces checks that at most one status is taken per frame.
func TestMailboxPaces(t *testing.T) {
	src := newSource()
	const frame = 20 * time.Millisecond
	m := model(t, Options{Source: src, Screens: []Screen{{Name: "one", Views: []View{&pane{name: "left"}}}},
		Frame: frame})
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				src.bump()
			}
		}
	}()
	wait := m.mail.wait()
	wait()
	begin := time.Now()
	const n = 5
	for range n {
		_, wait = m.Update(m.mail.wait()())
	}
	if elapsed := time.Since(begin); elapsed < (n-1)*frame {
		t.Errorf("%d changes came in %v, frames of %v", n, elapsed, frame)
	}
	close(stop)
	<-done
}

func TestMailboxEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := model(t, Options{Context: ctx, Source: newSource(),
		Screens: []Screen{{Name: "one", Views: []View{&pane{name: "left"}}}}})
	cancel()
	if msg := m.mail.wait()(); msg != nil {
		t.Errorf("got %#v", msg)
	}
}

func TestFocusAndLayout(t *testing.T) {
	left, right := &pane{name: "left"}, &pane{name: "right"}
	m := model(t, Options{Source: newSource(), Screens: []Screen{{Name: "one", Views: []View{left, right}}}})
	tab := tea.KeyPressMsg{Code: tea.KeyTab}
	for _, c := range []struct {
		width int
		keys  []tea.KeyPressMsg
		want  []string
		not   []string
	}{
		{80, nil, []string{"left seq=0 focused=true"}, []string{"right seq"}},
		{80, []tea.KeyPressMsg{tab}, []string{"right seq=0 focused=true", "[left]"}, []string{"left seq"}},
		{120, nil, []string{"left seq=0 focused=false", "right seq=0 focused=true"}, nil},
		{120, []tea.KeyPressMsg{tab}, []string{"left seq=0 focused=true", "right seq=0 focused=false"}, nil},
		{120, []tea.KeyPressMsg{{Code: tea.KeyEnter}}, []string{"right seq=0 focused=true"}, nil},
		{120, []tea.KeyPressMsg{{Code: tea.KeyEscape}}, []string{"left seq=0 focused=true"}, nil},
		{30, nil, []string{"too small"}, []string{"left"}},
	} {
		m.Update(tea.WindowSizeMsg{Width: c.width, Height: 20})
		for _, k := range c.keys {
			press(m, k)
		}
		out := ansi.Strip(m.View().Content)
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("%d wide, %v: no %q in\n%s", c.width, c.keys, w, out)
			}
		}
		for _, w := range c.not {
			if strings.Contains(out, w) {
				t.Errorf("%d wide, %v: %q in\n%s", c.width, c.keys, w, out)
			}
		}
	}
}

func TestKeysCanBeMapped(t *testing.T) {
	var did []string
	v := &pane{name: "left", bindings: []Binding{{Action: "left.go", Keys: []string{"a"}, Help: "go there",
		Short: "go",
		Do:    func(Shell) tea.Cmd { did = append(did, "go"); return nil }}}}
	m := mapped(t, Options{Source: newSource(), Screens: []Screen{{Name: "one", Views: []View{v}}}},
		map[string][]string{"left.go": {"b"}, "shell.quit": {"Q"}})
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 20})
	press(m, rune1('a'))
	press(m, rune1('b'))
	if len(did) != 1 {
		t.Errorf("dispatched %v", did)
	}
	if press(m, rune1('q')) != nil || press(m, rune1('Q')) == nil {
		t.Error("quit is not on the mapped key")
	}
	press(m, rune1('?'))
	if out := ansi.Strip(m.View().Content); !strings.Contains(out, "b    go there") {
		t.Errorf("the help does not show the mapped key:\n%s", out)
	}
}

// TestInvalidKeyMaps checks that invalid lines are reported and left out, and others apply.
func TestInvalidKeyMaps(t *testing.T) {
	do := func(Shell) tea.Cmd { return nil }
	v := &pane{name: "left", bindings: []Binding{{Action: "left.go", Keys: []string{"a"}, Do: do},
		{Action: "left.stay", Keys: []string{"s"}, Do: do}}}
	for keys, want := range map[string]string{
		"left.gone=b":    "left.gone: unknown action",
		"shell.help=q":   `shell.help: "q" is bound to both shell.quit and shell.help`,
		"left.go=ctrl+c": "left.go: ctrl+c always quits", "left.go=ctl+x": `"ctl+x" is not a key`,
		"left.go=s": "left.stay and left.go", "left.go=q": "", "left.go=f5": "",
		"left.go=": `"" is not a key`,
	} {
		action, key, _ := strings.Cut(keys, "=")
		m := model(t, Options{Source: newSource(), Screens: []Screen{{Name: "one", Views: []View{v}}}})
		wrong := m.SetKeys(map[string][]string{action: {key}, "shell.zoom": {"Z"}})
		if want == "" && len(wrong) > 0 || want != "" &&
			(len(wrong) != 1 || !strings.Contains(wrong[0].Error(), want)) {
			t.Errorf("%s: mistakes are %v, want one with %q", keys, wrong, want)
		}
		if got := m.keys.keysFor("shell.zoom"); len(got) != 1 || got[0] != "Z" {
			t.Errorf("%s: the valid line gives %v", keys, got)
		}
	}
}

func TestKeysCanBeSwapped(t *testing.T) {
	m := model(t, Options{Source: newSource(),
		Screens: []Screen{{Name: "one", Views: []View{&pane{name: "left"}}}}})
	if wrong := m.SetKeys(map[string][]string{"shell.help": {"q"}, "shell.quit": {"?"}}); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// TestHelpListsActiveBindings checks that the help lists every active binding.
func TestHelpListsActiveBindings(t *testing.T) {
	m := model(t, Options{Source: newSource(),
		Screens: []Screen{{Name: "one", Views: []View{&pane{name: "left"}, &pane{name: "right"}}}}})
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 40})
	press(m, rune1('?'))
	listed := ansi.Strip(m.View().Content)
	press(m, rune1('?'))
	for _, b := range m.keys.active(m.panes.focused().Bindings()) {
		if !strings.Contains(listed, b.Help) {
			t.Errorf("%s is not in the help", b.Action)
		}
	}
}

func TestUnknownMessagesReachEveryView(t *testing.T) {
	type own struct{}
	left, right := &pane{name: "left"}, &pane{name: "right"}
	m := model(t, Options{Source: newSource(), Screens: []Screen{{Name: "one", Views: []View{left, right}}}})
	m.Update(own{})
	if len(left.msgs) != 1 || len(right.msgs) != 1 {
		t.Errorf("left got %v, right got %v", left.msgs, right.msgs)
	}
}

func TestBackgroundRestyles(t *testing.T) {
	v := &pane{name: "left"}
	m := model(t, Options{Source: newSource(), Screens: []Screen{{Name: "one", Views: []View{v}}},
		Theme: func(_ string, dark bool) (theme.Styles, error) { return theme.New(dark, false), nil }})
	m.setDark(false)
	if v.styles.Theme != "light" {
		t.Errorf("the view's theme is %q", v.styles.Theme)
	}
}

// TestProgramOnATerminal runs the program on an emulated terminal: it draws without data,
// shows new data, handles keys and quits.
func TestProgramOnATerminal(t *testing.T) {
	src := newSource()
	m := model(t, Options{Context: t.Context(), Source: src,
		Screens: []Screen{{Name: "one", Views: []View{&pane{name: "left", source: src},
			&pane{name: "right", source: src}}}}})
	vt := vt10x.New(vt10x.WithSize(80, 24))
	in, keys := io.Pipe()
	defer keys.Close()
	p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(vt), tea.WithWindowSize(80, 24),
		tea.WithContext(t.Context()),
		tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithoutSignalHandler())
	ended := make(chan error, 1)
	go func() {
		_, err := p.Run()
		ended <- err
	}()
	await := func(want string) {
		t.Helper()
		deadline := time.After(time.Minute)
		for !strings.Contains(vt.String(), want) {
			select {
			case <-deadline:
				t.Fatalf("the terminal does not show %q:\n%s", want, vt.String())
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	await("left seq=0 focused=true")
	src.bump()
	await("left seq=1")
	keys.Write([]byte("\t"))
	await("right seq=1 focused=true")
	keys.Write([]byte("?"))
	await("esc close") // the emulator garbles boxes as wide as the screen
	keys.Write([]byte("?q"))
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestViewKeyHidesGlobalKey checks precedence, also in the help.
func TestViewKeyHidesGlobalKey(t *testing.T) {
	went := false
	v := &pane{name: "left", bindings: []Binding{{Action: "left.go", Keys: []string{"q"}, Help: "go there",
		Do: func(Shell) tea.Cmd { went = true; return nil }}}}
	m := model(t, Options{Source: newSource(), Screens: []Screen{{Name: "one", Views: []View{v}}}})
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 40})
	if cmd := press(m, rune1('q')); cmd != nil || !went {
		t.Error("the global key won")
	}
	press(m, rune1('?'))
	if out := ansi.Strip(m.View().Content); !strings.Contains(out, "q    go there") ||
		strings.Contains(out, "quit;") {
		t.Errorf("the help shows a key that does not work:\n%s", out)
	}
}
