// Package tui is the shell of the console: the root model and the parts that it routes to.
// It may import theme. It knows no concrete view and does no I/O.
//
// Parts: keymap decides which binding a key runs, panes navigates and lays out, palette runs
// typed commands, help lists keys and runs them, prompts is a line to type in, forms a page of
// fields, dialogs are boxes over the screen, mouse and clipboard handle the mouse and copying, header
// and statusLine draw the lines around the panes, messages keeps notices and errors, canvas the drawn
// frame, and saver writes the state that outlives the process. [Model] only routes between them.
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
	"context"
	"errors"
	"fmt"
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

// Model is the root model: it routes messages to the parts and draws them. It implements [tea.Model] and
// [Shell].
type Model struct {
	opts      Options
	styles    theme.Styles
	themes    themes
	keys      keymap
	panes     panes
	palette   palette
	prompts   prompts
	forms     forms
	dialogs   dialogs
	mouse     mouse
	clipboard clipboard
	messages  messages
	saver     saver
	mail      *mailbox
	canvas    canvas
	status    *Status
	used      bool // the user pressed a key or the mouse
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
	m := &Model{opts: o,
		themes:   themes{load: o.Theme, names: o.Themes, name: o.ThemeName, dark: true},
		keys:     keymap{readOnly: o.ReadOnly},
		panes:    newPanes(o.Screens),
		prompts:  prompts{history: newHistory(o.State.History)},
		messages: messages{now: o.Now},
		saver:    saver{write: o.Save},
		mail:     &mailbox{ctx: o.Context, source: o.Source, frame: o.Frame},
		canvas:   canvas{dirty: true, count: o.Count},
	}
	m.clipboard = clipboard{write: o.Clipboard, messages: &m.messages}
	m.forms = forms{kept: map[string]Values{}, context: o.Context, messages: &m.messages,
		clipboard: &m.clipboard}
	m.mouse = mouse{panes: &m.panes, keys: &m.keys, do: m.do, now: o.Now, on: o.Mouse}
	m.keys.global = slices.Concat(m.shellBindings(), m.panes.bindings(), o.Global)
	if clashes := m.keys.clashes(m.keys.lists(m.panes.all)); len(clashes) > 0 {
		return nil, clashes[0]
	}
	m.palette = palette{panes: &m.panes, keys: &m.keys, shell: m.shellCommands(), do: m.do,
		past: func() []string { return m.prompts.history[paletteLabel] }}
	m.setStyles(o.Styles)
	m.panes.restore(o.State)
	m.apply(o.Source.Status())
	setShown(m.panes.views(), nil, true)
	return m, nil
}

// Init starts the waiting command and the clock.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.mail.wait(), m.tick()}
	if m.opts.Theme != nil {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

// Intervals at which times on the screen are drawn again.
const (
	clockInterval = time.Second
	quietInterval = 5 * time.Second // while nothing changes; the newest time is older then
)

func (m *Model) tick() tea.Cmd {
	interval := clockInterval
	if m.status != nil && m.status.Quiet {
		interval = quietInterval
	}
	return tea.Tick(interval, func(time.Time) tea.Msg { return tickMsg{} })
}

func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.canvas.touched(msg)
	cmd := m.route(msg)
	m.layout()
	return m, cmd
}

// route passes a message to the part that handles it.
func (m *Model) route(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case changedMsg:
		m.apply(msg.status)
		return m.mail.wait()
	case tickMsg:
		m.status = m.opts.Source.Status() // the list may have been read again without a change
		return tea.Batch(m.tick(), m.saver.due(m.opts.Now(), m.State))
	case tea.WindowSizeMsg:
		m.canvas.width, m.canvas.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.setDark(msg.IsDark())
	case tea.KeyPressMsg:
		m.use()
		m.messages.nextKey()
		return m.key(msg)
	case tea.MouseMsg:
		m.use()
		return m.mouseInput(msg)
	case tea.PasteMsg:
		return m.paste(msg)
	case formMsg:
		return m.forms.result(m, msg)
	case thenMsg:
		return msg.do(m)
	case execMsg:
		return tea.ExecProcess(msg.command, msg.done)
	case noticeMsg:
		m.messages.show(msg)
	case settledMsg:
		if m.dialogs.settle(msg.of) {
			return m.route(msg.msg)
		}
	case copiedMsg:
		return m.clipboard.copied(msg)
	default:
		return m.panes.all.update(msg)
	}
	return nil
}

// use records that the user does something.
func (m *Model) use() {
	m.used = true
	m.opts.Source.Used()
}

func (m *Model) apply(s *Status) {
	if s == nil {
		return
	}
	m.status = s
	m.canvas.count.received(s)
	m.panes.all.refresh()
	if !m.used {
		m.panes.start()
	}
	m.layout() // the banner may have appeared or gone
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
	m.panes.all.setStyles(s)
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

// The methods of [Shell].

func (m *Model) Ask(p Prompt) {
	m.prompts.open = newPrompt(p, m.prompts.history[p.Label], m.styles, m.canvas.width)
}

func (m *Model) Fill(f Form) tea.Cmd { return m.forms.fill(f, m.styles) }
func (m *Model) Confirm(q Question)  { m.dialogs[questionDialog] = newQuestion(q) }
func (m *Model) Wait(w *Waiting)     { m.dialogs[waitingDialog] = newWaiting(w, m.opts.Now()) }
func (m *Model) Note(text string)    { m.messages.note(text) }

// Open reports an unknown name as an error: it is a mistake in the program.
func (m *Model) Open(screen string) {
	if !m.panes.open(screen) {
		m.messages.fail(fmt.Errorf("screen %q not found", screen))
	}
	m.layout()
}

func (m *Model) OnReturn(restore func()) { m.panes.onReturn(restore) }

func (m *Model) Focus(pane int) {
	m.panes.focus(pane)
	m.layout()
}

// layout gives the panes the area between header and status line.
func (m *Model) layout() {
	m.panes.stale = m.status.stale()
	if m.canvas.width == 0 || m.canvas.tooSmall() {
		return
	}
	top := 1
	if len(m.panes.screens) > 1 {
		top++
	}
	if m.status.banner() != "" {
		top++
	}
	m.panes.setArea(top, m.canvas.width, m.canvas.height-top-1-m.prompts.layout(m.canvas.width))
}

// View returns the frame, drawn again only if something changed since the last time.
func (m *Model) View() tea.View {
	m.canvas.draw(m.draw)
	v := tea.NewView(m.canvas.content)
	v.AltScreen = true
	v.WindowTitle = "acescope"
	v.Cursor = m.canvas.cursor
	if m.mouse.on {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// draw draws the whole frame, or nothing before the terminal has reported its size.
func (m *Model) draw() (string, *tea.Cursor) {
	width, height := m.canvas.width, m.canvas.height
	if width <= 0 || height <= 0 {
		return "", nil
	}
	if m.canvas.tooSmall() {
		return text.Cut(fmt.Sprintf("terminal too small: needs %dx%d", MinWidth, MinHeight), width, ""), nil
	}
	now := m.opts.Now()
	head := header{m.styles, width, now, m.status, m.opts.ReadOnly}
	lines := []string{head.draw()}
	if len(m.panes.screens) > 1 {
		lines = append(lines, m.panes.drawTabs(&m.keys, m.styles))
	}
	if problem := m.status.banner(); problem != "" {
		lines = append(lines, head.drawBanner(problem))
	}
	lines = append(lines, m.panes.draw(m.styles, now)...)
	lines, cursor := m.prompts.drawBelow(lines, m.styles, width, m.panes.height)
	status := statusLine{m.styles, width, now, m.status, m.panes.screen().Name, &m.keys, &m.messages}
	lines = append(lines, status.draw(m.hints()))
	if m.forms.open != nil {
		cursor = m.forms.open.drawOver(lines, width)
	}
	if d := m.dialogs.top(); d != nil {
		cursor = nil
		title, body := d.visible(m.styles, width, height, now)
		overlay(lines, box(m.styles, width, title, body), width)
	}
	return strings.Join(lines, "\n"), cursor
}

func (m *Model) hints() (list []hint, last hint) {
	if o := m.modal(); o != nil {
		return o.hints(&m.keys), hint{}
	}
	return m.panes.hints(&m.keys)
}
