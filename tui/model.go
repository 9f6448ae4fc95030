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
	// Restyle, where it is set, gives other styles once the terminal has told whether
	// its background is dark.
	Restyle func(dark bool) theme.Styles
	// Keys replaces the keys of actions by name. See [Model.Actions].
	Keys  map[string][]string
	Frame time.Duration    // 0 for DefaultFrame
	Now   func() time.Time // nil for time.Now
}

// Model is the root model. It implements [tea.Model].
type Model struct {
	screens []Screen
	global  []Binding
	keys    map[string][]string
	styles  theme.Styles
	restyle func(bool) theme.Styles
	now     func() time.Time
	mail    *mailbox

	snap          *sources.Snapshot
	width, height int
	at            place
	seen          []int   // by screen: the pane that had the focus last
	trail         []place // where esc leads, newest last
	prompt        *prompt
	question      *Question
	help          *help
	notice        notice

	frame  string
	cursor *tea.Cursor
	dirty  bool
}

type notice struct {
	noticeMsg
	at time.Time
}

type tickMsg struct{}

// New makes the root model. It fails if the views or the key map make no sense: no
// store, no view, an action that does not exist or a key with two meanings.
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
	m := &Model{screens: o.Screens, seen: make([]int, len(o.Screens)), keys: o.Keys, styles: o.Styles, restyle: o.Restyle, now: o.Now,
		mail: &mailbox{ctx: o.Context, store: o.Store, frame: o.Frame}, dirty: true}
	m.global = slices.Concat(m.shellBindings(), m.screenBindings(), o.Global)
	if err := m.checkKeys(); err != nil {
		return nil, err
	}
	m.everyView(func(v View) { v.SetStyles(m.styles) })
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
	if m.restyle != nil {
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
		return m, tick()
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.layout()
	case tea.BackgroundColorMsg:
		m.setDark(msg.IsDark())
	case tea.KeyPressMsg:
		cmd := m.key(msg)
		m.layout()
		return m, cmd
	case tea.PasteMsg:
		if m.prompt != nil {
			return m, m.prompt.update(msg)
		}
	case noticeMsg:
		m.notice = notice{msg, m.now()}
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
	m.everyView(func(v View) { v.SetSnapshot(s) })
	m.layout() // a banner may have come or gone
}

func (m *Model) setDark(dark bool) {
	if m.restyle == nil {
		return
	}
	m.styles = m.restyle(dark)
	m.everyView(func(v View) { v.SetStyles(m.styles) })
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
func (m *Model) Ask(p Prompt) { m.prompt = newPrompt(p, m.styles, m.width) }

// Confirm implements [Shell].
func (m *Model) Confirm(q Question) { m.question = &q }

// Note implements [Shell].
func (m *Model) Note(text string) { m.notice = notice{noticeMsg{text: text}, m.now()} }

// View is the frame, drawn again only if something changed since the last time.
func (m *Model) View() tea.View {
	if m.dirty {
		m.frame, m.cursor = m.draw()
		m.dirty = false
	}
	v := tea.NewView(m.frame)
	v.AltScreen = true
	v.WindowTitle = "acescope"
	v.Cursor = m.cursor
	return v
}
