package tui

import (
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
)

// Options says what the console is made of.
type Options struct {
	Context context.Context // ends the waiting command; nil for the background
	Store   SnapshotSource
	Screens []Screen  // the first is shown first
	Global  []Binding // keys that work in every view, besides the shell's own
	Styles  theme.Styles
	// Theme, where it is set, gives the styles of a theme by name; [theme.Auto] is the
	// one that fits the terminal's background, which may become known later. It is called
	// in Update, so it must have the themes at hand.
	Theme     func(name string, dark bool) (theme.Styles, error)
	ThemeName string   // the one that Styles came from; "" for [theme.Auto]
	Themes    []string // that can be chosen
	// Clipboard writes to the clipboard of the machine. It runs in a command; nil, or an
	// error, leaves it to the terminal (OSC 52).
	Clipboard  func(text string) error
	CancelWork func(id int64) // nil where long work cannot be cancelled
	ReadOnly   bool           // bindings and commands that change something are off
	Mouse      bool           // take the mouse from the start
	State      State          // what an earlier console left; see [Model.State]
	// Save writes the state. It runs in a command, every few seconds at most and only
	// after a change; nil where nothing is kept.
	Save  func(State) error
	Frame time.Duration    // 0 for DefaultFrame
	Count *Frames          // counts what is drawn; nil where nobody asks
	Now   func() time.Time // nil for time.Now
}

// Model is the root model. It implements [tea.Model].
type Model struct {
	opts      Options
	screens   []Screen
	every     []View // of all screens, each once
	global    []Binding
	keys      map[string][]string // see SetKeys
	styles    theme.Styles
	themeName string
	dark      bool // the terminal's background, as far as it is known
	mouseOn   bool
	now       func() time.Time
	mail      *mailbox

	snap          *sources.Snapshot
	width, height int
	at            place
	seen          []int   // by screen: the pane that had the focus last
	trail         []place // where esc leads, newest last
	zoomed        []bool  // by screen
	shares        []int   // by screen: the first pane's part in percent
	prompt        *prompt
	question      *asking
	waiting       waiting
	sheet         *sheet
	notice        notice
	failures      []failure // newest last
	history       map[string][]string
	keeping       keeping

	frame  string
	cursor *tea.Cursor
	dirty  bool
}

type notice struct {
	noticeMsg
	at time.Time
}

type tickMsg struct{}

// New makes the root model. It fails if it makes no sense: no store, no view, or a key
// with two meanings.
func New(o Options) (*Model, error) {
	if o.Store == nil || !whole(o.Screens) {
		return nil, errors.New("console: a store and at least one screen with a view are needed")
	}
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Frame == 0 {
		o.Frame = DefaultFrame
	}
	n := len(o.Screens)
	m := &Model{opts: o, screens: o.Screens, every: viewsOf(o.Screens), styles: o.Styles, themeName: o.ThemeName, dark: true, mouseOn: o.Mouse, now: o.Now,
		seen: make([]int, n), zoomed: make([]bool, n), shares: make([]int, n), history: map[string][]string{},
		mail: &mailbox{ctx: o.Context, store: o.Store, frame: o.Frame}, dirty: true}
	m.global = slices.Concat(m.shellBindings(), m.screenBindings(), o.Global)
	if clashes := m.clashes(); len(clashes) > 0 {
		return nil, clashes[0]
	}
	m.everyView(func(v View) { v.SetStyles(m.styles) })
	m.restore(o.State)
	m.apply(o.Store.Snapshot())
	for _, v := range m.views() {
		v.SetShown(true)
	}
	return m, nil
}

func whole(screens []Screen) bool {
	return len(screens) > 0 && !slices.ContainsFunc(screens, func(s Screen) bool { return len(s.Views) == 0 })
}

// Init starts the one waiting command and the clock for ages.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.mail.wait(), tick()}
	if m.opts.Theme != nil {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update routes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.dirty = true
	switch msg := msg.(type) {
	case snapshotMsg:
		m.apply(msg.snapshot)
		return m, m.mail.wait()
	case tickMsg:
		return m, tea.Batch(tick(), m.keep())
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.layout()
	case tea.BackgroundColorMsg:
		m.setDark(msg.IsDark())
	case tea.KeyPressMsg:
		cmd := m.key(msg)
		m.layout()
		return m, cmd
	case tea.MouseMsg:
		cmd := m.mouse(msg)
		m.layout()
		return m, cmd
	case tea.PasteMsg:
		if m.prompt != nil {
			return m, m.prompt.update(msg)
		}
	case noticeMsg:
		m.say(msg)
	case questionMsg:
		m.Confirm(msg.q)
	case settledMsg:
		return m, m.settled(msg)
	case copiedMsg:
		return m, m.copied(msg)
	default:
		return m, m.toViews(msg)
	}
	return m, nil
}

func (m *Model) apply(s *sources.Snapshot) {
	if s == nil {
		return
	}
	m.snap = s
	m.opts.Count.got(s)
	m.everyView(func(v View) { v.SetSnapshot(s) })
	m.layout() // a banner may have come or gone
}

func (m *Model) setDark(dark bool) {
	m.dark = dark
	if m.opts.Theme == nil {
		return
	}
	if s, err := m.opts.Theme(m.themeName, dark); err == nil {
		m.setStyles(s)
	}
}

func (m *Model) setStyles(s theme.Styles) {
	m.styles = s
	m.everyView(func(v View) { v.SetStyles(s) })
}

func (m *Model) toViews(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	m.everyView(func(v View) {
		if cmd := v.Update(msg); cmd != nil {
			cmds = append(cmds, cmd)
		}
	})
	return tea.Batch(cmds...)
}

// Ask implements [Shell].
func (m *Model) Ask(p Prompt) { m.prompt = newPrompt(p, m.history[p.Label], m.styles, m.width) }

// Note implements [Shell].
func (m *Model) Note(text string) { m.say(noticeMsg{text: text}) }

// View is the frame, drawn again only if something changed since the last time.
func (m *Model) View() tea.View {
	if m.dirty {
		began := time.Now()
		m.frame, m.cursor = m.draw()
		m.opts.Count.drew(time.Since(began))
		m.dirty = false
	}
	v := tea.NewView(m.frame)
	v.AltScreen = true
	v.WindowTitle = "acescope"
	v.Cursor = m.cursor
	if m.mouseOn {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}
