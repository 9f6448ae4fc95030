// Package tui is the shell of the console: the root model and the parts that it routes to.
// It may import theme. It knows no concrete view and does no I/O.
//
// Parts: keymap decides which binding a key runs, panes navigates and lays out, palette runs
// typed commands, prompt is a line to type in, dialogs are boxes over the screen, header and
// statusLine draw the lines around the panes, messages keeps errors, and saver writes the
// state that outlives the process.
//
// Data: the root has exactly one command waiting on [Source.Changed]. When that
// fires, the command sleeps for the rest of the frame, takes the newest status and delivers
// it. So at most one change per frame reaches [Model.Update], and the newest is never lost;
// changes in between are skipped on purpose. Every view then takes the newest values of its feeds.
//
// Keys: a [Binding] holds keys, help and handler in one value; help and hints are generated
// from the bindings that dispatch. An open prompt or dialog takes every key but ctrl+c; then
// come the focused view's bindings, then the global ones. Handlers run inside Update and
// reach the root through [Shell], so a key typed right after another one finds the dialog
// that the first one opened.
//
// Views: beyond [View], the shell finds what a view can do by small interfaces: [Updater],
// [ShownSetter], [Copier], [Commander], [Wheeler], [Keeper].
//
// Bounds: 100 errors besides those of the status, 50 lines of history for each of 16
// prompts, and [MaxKept] and [MaxKeptBytes] for a view's state. [Options.Save] gets the state
// at most every 3 s. In read-only mode, bindings and commands that mutate neither run nor show.
//
// Drawing: every [View] returns exactly as many lines as it was given, each exactly as wide.
// The drawn frame is kept until something changes, since Bubble Tea calls View after every
// message. Text from outside is made safe where it is drawn (package tui/text).
package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
	"acescope/tui/text"
)

// Options are the parts and settings of a console.
type Options struct {
	Context context.Context // ends the waiting command; nil for the background
	Source  Source
	Screens []Screen  // the first is shown first
	Global  []Binding // keys that work in every view, besides the shell's own
	Styles  theme.Styles
	// Theme, if set, returns the styles of a theme by name; [theme.Auto] is the one that fits
	// the terminal's background, which may become known later. It is called in Update, so it
	// must have the themes at hand.
	Theme     func(name string, dark bool) (theme.Styles, error)
	ThemeName string   // the theme of Styles; "" for [theme.Auto]
	Themes    []string // that can be chosen
	// Clipboard writes to the system clipboard. It runs in a command; if it is nil or fails,
	// the terminal copies (OSC 52).
	Clipboard  func(text string) error
	CancelWork func(id int64) // nil if long operations cannot be canceled
	ReadOnly   bool           // bindings and commands that change something are disabled
	Mouse      bool           // use the mouse from the start
	State      State          // of an earlier console; see [Model.State]
	// Save writes the state. It runs in a command, every few seconds at most and only after a
	// change; nil if nothing is kept.
	Save  func(State) error
	Frame time.Duration    // 0 for DefaultFrame
	Count *Frames          // counts frames; may be nil
	Now   func() time.Time // nil for time.Now
}

// Model is the root model. It implements [tea.Model] and [Shell].
type Model struct {
	opts     Options
	styles   theme.Styles
	themes   themes
	keys     keymap
	panes    panes
	palette  palette
	prompt   *prompt           // nil if none is open
	form     *form             // nil if none is open
	kept     map[string]Values // of closed forms, by name
	history  promptHistory
	dialogs  dialogs
	messages messages
	saver    saver
	mail     *mailbox
	pacer    *pacer // nil if the program draws at a fixed rate
	status   *Status

	width, height int
	mouseOn       bool
	clicked       lastClick
	frame         string
	cursor        *tea.Cursor
	dirty         bool // the frame must be drawn again
	used          bool // the user pressed a key or the mouse
	elsewhere     bool // a [Starter] named the screen
}

type tickMsg struct{}

// New makes the root model. It fails without a source or a view, or if a key has two actions.
func New(o Options) (*Model, error) {
	empty := func(s Screen) bool { return len(s.Views) == 0 }
	if o.Source == nil || len(o.Screens) == 0 || slices.ContainsFunc(o.Screens, empty) {
		return nil, errors.New("console: a source and at least one screen with a view are required")
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
	m := &Model{opts: o, history: promptHistory{}, kept: map[string]Values{}, mouseOn: o.Mouse, dirty: true,
		themes:   themes{load: o.Theme, names: o.Themes, name: o.ThemeName, dark: true},
		keys:     keymap{readOnly: o.ReadOnly},
		panes:    newPanes(o.Screens),
		messages: messages{now: o.Now},
		saver:    saver{write: o.Save},
		mail:     &mailbox{ctx: o.Context, source: o.Source, frame: o.Frame},
	}
	m.keys.global = slices.Concat(m.shellBindings(), m.screenBindings(), o.Global)
	if clashes := m.keys.clashes(m.keys.lists(m.panes.all)); len(clashes) > 0 {
		return nil, clashes[0]
	}
	m.palette = palette{panes: &m.panes, keys: &m.keys, shell: m.shellCommands(), do: m.do,
		past: func() []string { return m.history[paletteLabel] }}
	m.setStyles(o.Styles)
	m.restore(o.State)
	m.apply(o.Source.Status())
	setShown(m.panes.views(), nil, true)
	return m, nil
}

// Init starts the waiting command and the clock.
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
	switch msg.(type) {
	case changedMsg, tickMsg: // [Model.View] draws what they change
	default:
		m.pacer.used()
	}
	switch msg := msg.(type) {
	case changedMsg:
		m.apply(msg.status)
		return m, m.mail.wait()
	case tickMsg:
		m.status = m.opts.Source.Status() // the list may have been read again without a change
		m.layout()
		return m, tea.Batch(tick(), m.saver.due(m.opts.Now(), m.State))
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.layout()
	case tea.BackgroundColorMsg:
		m.setDark(msg.IsDark())
	case tea.KeyPressMsg:
		m.use()
		cmd := m.key(msg)
		m.layout()
		return m, cmd
	case tea.MouseMsg:
		m.use()
		cmd := m.mouse(msg)
		m.layout()
		return m, cmd
	case tea.PasteMsg:
		if m.prompt != nil {
			cmd := m.prompt.update(msg)
			m.layout()
			return m, cmd
		}
		if m.form != nil {
			return m, m.form.input(msg)
		}
	case openFormMsg:
		return m, m.Fill(msg.form)
	case formMsg:
		return m, m.formResult(msg)
	case thenMsg:
		return m, msg.do(m)
	case execMsg:
		return m, tea.ExecProcess(msg.command, msg.done)
	case noticeMsg:
		m.messages.show(msg)
	case questionMsg:
		m.Confirm(msg.Question)
	case promptMsg:
		m.Ask(msg.Prompt)
		m.layout()
	case settledMsg:
		if m.dialogs.settle(msg.of) {
			return m.Update(msg.msg)
		}
	case copiedMsg:
		return m, m.copied(msg)
	default:
		return m, m.updateViews(msg)
	}
	return m, nil
}

// use records that the user does something.
func (m *Model) use() {
	m.used = true
	m.opts.Source.Used()
}

func (m *Model) updateViews(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	for _, v := range m.panes.all {
		if u, ok := v.(Updater); ok {
			cmds = append(cmds, u.Update(msg))
		}
	}
	return tea.Batch(cmds...)
}

func (m *Model) apply(s *Status) {
	if s == nil {
		return
	}
	m.status = s
	m.opts.Count.received(s)
	for _, v := range m.panes.all {
		v.Refresh()
	}
	m.chooseStart()
	m.layout() // the banner may have appeared or gone
}

// chooseStart shows the screen to begin with, until the user presses a key.
func (m *Model) chooseStart() {
	if m.used {
		return
	}
	name := ""
	for _, v := range m.panes.screens[0].Views {
		if starter, ok := v.(Starter); ok {
			name = cmp.Or(name, starter.StartOn())
		}
	}
	switch {
	case name != "" && m.panes.at.screen == 0:
		m.elsewhere = m.panes.open(name)
	case name == "" && m.elsewhere:
		m.panes.back()
		m.elsewhere = false
	}
}

func (m *Model) setDark(dark bool) {
	m.themes.dark = dark
	if m.themes.load == nil {
		return
	}
	if s, err := m.themes.load(m.themes.name, dark); err == nil {
		m.setStyles(s)
	}
}

func (m *Model) setStyles(s theme.Styles) {
	m.styles, m.keys.glyphs = s, s.Glyphs
	for _, v := range m.panes.all {
		v.SetStyles(s)
	}
}

// SetKeys replaces the keys of actions by name; an empty list leaves an action without keys.
// It leaves out and returns invalid lines: unknown actions, invalid keys, and keys that would
// run two actions of one view or two global actions. A view's key may hide a global one.
func (m *Model) SetKeys(keys map[string][]string) []KeyMistake { return m.keys.set(keys, m.panes.all) }

// Keys lists every action with its keys: the global ones, then those of each view, in the
// order of the screens.
func (m *Model) Keys() []KeyGroup { return m.keys.groups(m.panes.all) }

// Warn shows problems from before the console opened: the first for a while, all of them in
// the log of errors.
func (m *Model) Warn(warnings ...string) { m.messages.warn(warnings) }

// Ask implements [Shell].
func (m *Model) Ask(p Prompt) { m.prompt = newPrompt(p, m.history[p.Label], m.styles, m.width) }

// Confirm implements [Shell].
func (m *Model) Confirm(q Question) { m.dialogs[questionDialog] = newQuestion(q) }

// Wait implements [Shell].
func (m *Model) Wait(w *Waiting) { m.dialogs[waitingDialog] = newWaiting(w, m.opts.Now()) }

// Open implements [Shell]. An unknown name is a mistake in the program; it is reported.
func (m *Model) Open(screen string) {
	if !m.panes.open(screen) {
		m.fail(fmt.Errorf("screen %q not found", screen))
	}
	m.layout()
}

// Focus implements [Shell]. If there are fewer panes, the last one gets the focus.
func (m *Model) Focus(pane int) {
	m.panes.focus(pane)
	m.layout()
}

// Note implements [Shell].
func (m *Model) Note(text string) { m.messages.show(noticeMsg{text: text}) }

func (m *Model) fail(err error) { m.messages.show(noticeMsg{text: err.Error(), bad: true}) }

func (m *Model) tooSmall() bool { return m.width < MinWidth || m.height < MinHeight }

// layout gives the panes the area between header and status line.
func (m *Model) layout() {
	m.panes.stale = m.status.stale()
	if m.width == 0 || m.tooSmall() {
		return
	}
	top := 1
	if len(m.panes.screens) > 1 {
		top++
	}
	if m.status.banner() != "" {
		top++
	}
	height := m.height - top - 1
	if m.prompt != nil {
		m.prompt.resize(m.width)
		height -= m.prompt.height()
	}
	m.panes.setArea(top, m.width, height)
}

// View returns the frame, drawn again only if something changed since the last time.
func (m *Model) View() tea.View {
	if m.dirty {
		start := time.Now()
		frame, cursor := m.draw()
		if frame != m.frame || !reflect.DeepEqual(cursor, m.cursor) {
			m.pacer.changed()
		}
		m.frame, m.cursor = frame, cursor
		m.opts.Count.drawn(time.Since(start))
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

// draw draws the whole frame, or nothing before the terminal has reported its size.
func (m *Model) draw() (string, *tea.Cursor) {
	if m.width <= 0 || m.height <= 0 {
		return "", nil
	}
	if m.tooSmall() {
		return text.Cut(fmt.Sprintf("terminal too small: needs %dx%d", MinWidth, MinHeight), m.width, ""), nil
	}
	now := m.opts.Now()
	head := header{m.styles, m.width, now, m.status, m.opts.ReadOnly}
	lines := []string{head.draw()}
	if len(m.panes.screens) > 1 {
		lines = append(lines, m.panes.drawTabs(&m.keys, m.styles))
	}
	if problem := m.status.banner(); problem != "" {
		lines = append(lines, head.drawBanner(problem))
	}
	lines = append(lines, m.panes.draw(m.styles, now)...)
	var cursor *tea.Cursor
	if m.prompt != nil {
		if list := m.prompt.drawList(m.styles, m.width, m.panes.height); list != nil {
			putOver(lines, list, 0, len(lines)-len(list), m.width)
		}
		if cursor = m.prompt.input.Cursor(); cursor != nil {
			cursor.Position.Y += len(lines)
		}
		lines = append(lines, m.prompt.draw(m.styles, m.width)...)
	}
	status := statusLine{m.styles, m.width, now, m.status, m.panes.screen().Name, &m.keys, &m.messages}
	lines = append(lines, status.draw(m.hints()))
	if m.form != nil {
		cursor = m.drawForm(lines)
	}
	if d := m.dialogs.top(); d != nil {
		cursor = nil
		title, body := d.visible(m.styles, m.width, m.height, now)
		overlay(lines, box(m.styles, m.width, title, body), m.width)
	}
	return strings.Join(lines, "\n"), cursor
}

// hints lists the keys for the status line, the most specific first. The last one, the help,
// stays when others have no room.
func (m *Model) hints() (list []hint, last hint) {
	if m.prompt != nil {
		return m.prompt.hints(&m.keys), hint{}
	}
	if d := m.dialogs.top(); d != nil {
		return d.hints, hint{}
	}
	if m.form != nil {
		return m.form.hints(), hint{}
	}
	var shell []hint
	here := m.panes.screen().Name
	for _, b := range m.keys.active(m.panes.focused().Bindings()) {
		if b.Short == "" || len(b.Keys) == 0 || b.Hints != nil && !slices.Contains(b.Hints, here) {
			continue
		}
		h := hint{m.keys.name(b.Keys[0]), b.Short}
		switch {
		case b.Action == "shell.help":
			last = h
		case b.Action == "shell.open" && (m.panes.at.focus > 0 || len(m.panes.views()) == 1): // no pane to open
		case strings.HasPrefix(b.Action, "shell."):
			shell = append(shell, h)
		default:
			list = append(list, h)
		}
	}
	return append(list, shell...), last
}
