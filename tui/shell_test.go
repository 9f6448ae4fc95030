package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"acescope/theme"
	"acescope/tui/text"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// able is a view that implements all optional interfaces.
type able struct {
	pane
	lines  int
	copies string
	kept   map[string]string
	given  string
}

func (a *able) Copy() (string, string)      { return "its line", a.copies }
func (a *able) Copies() []Copy              { return []Copy{{"i", "its ID", a.copies}, {"a", "answer", ""}} }
func (a *able) Wheel(lines int)             { a.lines += lines }
func (a *able) Keep() map[string]string     { return a.kept }
func (a *able) Restore(m map[string]string) { a.kept = m }
func (a *able) Commands() []Command {
	return []Command{{Name: "grep", Aliases: []string{"find"}, Args: "REGEX", Help: "look for something",
		Complete: func(prefix string) []string {
			return slices.DeleteFunc([]string{"error", "errors?", "warning"},
				func(s string) bool { return !strings.HasPrefix(s, prefix) })
		},
		Do: func(_ Shell, args string) tea.Cmd { a.given = args; return nil }}}
}

func names() []string {
	return []string{"runs", "run", "timeline", "playbook", "experiments", "logs", "triage", "health"}
}

// eight returns the options of a console with eight screens.
func eight(change func(*Options)) (Options, *able, *[]string) {
	first, did := &able{pane: pane{name: "Runs"}, copies: "q-1"}, &[]string{}
	first.bindings = []Binding{
		{Action: "runs.down", Keys: []string{"j", "down"}, Help: "down",
			Do: func(Shell) tea.Cmd { *did = append(*did, "down"); return nil }},
		{Action: "runs.cancel", Keys: []string{"x"}, Help: "cancel the run", Short: "cancel", Mutates: true,
			Do: func(Shell) tea.Cmd { *did = append(*did, "cancel"); return nil }},
	}
	run := &pane{name: "Run", bindings: first.bindings[:1]}
	o := Options{Source: newSource(), Now: func() time.Time { return noon }, Themes: theme.Builtin().Names(),
		Theme: func(name string, dark bool) (theme.Styles, error) {
			th, err := theme.Builtin().Pick(name, dark)
			return th.Styles(theme.Unicode()), err
		}}
	for i, n := range names() {
		s := Screen{Name: n, Keys: []string{fmt.Sprint(i + 1)}, Help: "the screen of " + n,
			Views: []View{&pane{name: n}}}
		switch i {
		case 0:
			s.Views = []View{first, run}
		case 1:
			s.Views = []View{run}
		}
		o.Screens = append(o.Screens, s)
	}
	if change != nil {
		change(&o)
	}
	return o, first, did
}

func sized(t *testing.T, o Options, w, h int) *Model {
	t.Helper()
	m := model(t, o)
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	return m
}

func keyFor(name string) tea.KeyPressMsg {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp,
		"down": tea.KeyDown, "space": tea.KeySpace}
	switch {
	case name == "shift+tab":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case strings.HasPrefix(name, "ctrl+"):
		return tea.KeyPressMsg{Code: rune(name[5]), Mod: tea.ModCtrl}
	case codes[name] != 0:
		return tea.KeyPressMsg{Code: codes[name]}
	}
	return rune1([]rune(name)[0])
}

// give presses keys; a string that is not a key's name is typed.
func give(m *Model, keys ...string) (cmd tea.Cmd) {
	for _, k := range keys {
		if msg := keyFor(k); msg.Text == "" || len([]rune(k)) == 1 {
			cmd = press(m, msg)
			continue
		}
		for _, r := range k {
			cmd = press(m, rune1(r))
		}
	}
	return cmd
}

// exact returns the screen without colors, which must have exactly the terminal's size.
func exact(t *testing.T, m *Model) string {
	t.Helper()
	out := m.View().Content
	lines := strings.Split(out, "\n")
	if len(lines) != m.canvas.height {
		t.Errorf("%d lines, not %d", len(lines), m.canvas.height)
	}
	for i, l := range lines {
		if text.Width(l) != m.canvas.width {
			t.Errorf("line %d is %d wide, not %d: %q", i, text.Width(l), m.canvas.width, ansi.Strip(l))
		}
	}
	return ansi.Strip(out)
}

func wants(t *testing.T, m *Model, want ...string) {
	t.Helper()
	out := exact(t, m)
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("no %q in\n%s", w, out)
		}
	}
}

func troubled(s *Status) *Status {
	for i := range 40 {
		s.Errors = append(s.Errors, Error{At: noon.Add(time.Duration(i-60) * time.Minute),
			Text: fmt.Sprintf("reading run ace/q-%04d: the server did not answer within 3s, and this line is long enough to be broken at eighty cells \x1b[31m", i)})
	}
	return s
}

func TestShellScreens(t *testing.T) {
	for name, c := range map[string]struct {
		keys   []string
		status func(*Status) *Status
	}{
		"palette":       {[]string{":"}, nil},
		"palette-typed": {[]string{":", "e"}, nil},
		"palette-args":  {[]string{":", "theme ", "tab", "tab"}, nil},
		"errors":        {[]string{"!", "j"}, troubled},
		"zoom":          {[]string{"tab", "z"}, nil},
		"resize":        {[]string{">", ">", ">", "7"}, nil},
		"keys":          {[]string{":", "keys", "enter"}, nil},
		"copy":          {[]string{"y"}, nil},
		"help":          {[]string{"?"}, nil},
		"help-searched": {[]string{"?", "screen"}, nil},
		"work": {nil, func(s *Status) *Status {
			s.Work = []Work{{ID: 1, Label: "other", Since: noon},
				{ID: 2, Label: "reading the history of ace/q-0182", Done: 21_000, Total: 50_000, Since: noon}}
			return s
		}},
	} {
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				o, _, _ := eight(func(o *Options) { o.CancelWork = func(int64) {} })
				m := sized(t, o, size[0], size[1])
				status := &Status{Connection: Connection{Names: []string{"ace-dev", "embedded"},
					State: "ready", Ready: true, Live: true},
					Interval: 2 * time.Second, Loaded: noon.Add(-time.Second)}
				if c.status != nil {
					status = c.status(status)
				}
				m.apply(status)
				give(m, c.keys...)
				golden.RequireEqual(t, exact(t, m))
			})
		}
	}
}

// TestShellAtEverySize checks the size of the frame with every dialog open.
func TestShellAtEverySize(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{nil, {":"}, {":", "t", "tab"}, {":", "theme ", "tab"}, {"!"}, {"?"},
		{":", "keys", "enter"}, {"z"}, {">", "8"}} {
		o, _, _ := eight(nil)
		m := model(t, o)
		m.apply(troubled(&Status{Work: []Work{{Label: "wide 計算 \x1b[2J", Done: 5}}}))
		m.Update(tea.WindowSizeMsg{Width: 200, Height: 50})
		give(m, keys...)
		for w := 40; w <= 220; w += 9 {
			for _, h := range []int{10, 11, 17, 24, 50} {
				m.Update(tea.WindowSizeMsg{Width: w, Height: h})
				exact(t, m)
			}
		}
		if t.Failed() {
			t.Fatalf("after %v", keys)
		}
	}
}

func TestTabs(t *testing.T) {
	o, _, _ := eight(nil)
	m := sized(t, o, 80, 24)
	wants(t, m, "▸1 runs 2 run 3 timeline 4 playbook 5 experiments 6 logs 7 triage 8 health")
	give(m, "4")
	wants(t, m, " 1 runs 2 run 3 timeline▸4 playbook")
	m.Update(tea.WindowSizeMsg{Width: 40, Height: 10})
	wants(t, m, " 1 runs 2 run 3▸4 playbook 5 6 7 8")
}

func TestZoomAndResize(t *testing.T) {
	o, first, _ := eight(nil)
	m := sized(t, o, 200, 50)
	run := o.Screens[0].Views[1].(*pane)
	if first.width != 200*defaultShare/100-2 || run.width != 200-200*defaultShare/100-2 {
		t.Fatalf("panes are %d and %d wide", first.width, run.width)
	}
	give(m, "z")
	if first.width != 198 {
		t.Errorf("zoomed it is %d wide", first.width)
	}
	wants(t, m, "(zoomed)", "[Run]")
	give(m, "tab")
	wants(t, m, "Run (zoomed)", "[Runs]")
	give(m, "z", "<")
	if want := 200*(defaultShare-shareStep)/100 - 2; first.width != want {
		t.Errorf("narrower it is %d wide, want %d", first.width, want)
	}
	for range 40 {
		give(m, "<")
	}
	give(m, ">")
	if want := 200*(minShare+shareStep)/100 - 2; first.width != want {
		t.Errorf("at the end it is %d wide, want %d", first.width, want)
	}
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 30})
	for range 40 {
		give(m, ">")
	}
	if first.width != 120-minPane-2 || run.width != minPane-2 {
		t.Errorf("panes are %d and %d wide", first.width, run.width)
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	give(m, "z")
	wants(t, m, "has room for one pane")
}

func TestPalette(t *testing.T) {
	o, first, did := eight(nil)
	m := sized(t, o, 100, 30)
	give(m, ":", "play", "enter")
	if m.panes.screen().Name != "playbook" {
		t.Errorf("an unambiguous prefix opened %s", m.panes.screen().Name)
	}
	give(m, ":", "find  some thing ", "enter")
	if first.given != "some thing" {
		t.Errorf("the command of a view that is not shown got %q", first.given)
	}
	give(m, ":", "grep err", "tab", "tab", "enter")
	if first.given != "errors?" {
		t.Errorf("the completed argument is %q", first.given)
	}
	give(m, ":", "1", "esc", "1", ":", "runs.down", "enter")
	if len(*did) != 1 {
		t.Errorf("the action ran %d times", len(*did))
	}
	for line, want := range map[string]string{"r": "is ambiguous: runs, run",
		"nonsense": `command "nonsense" not found`, "help me": "takes no argument",
		"theme neon": `theme "neon" not found`, "theme": "needs a name"} {
		give(m, ":", line, "enter")
		wants(t, m, want)
		if m.prompts.open == nil || m.prompts.open.input.Value() != line {
			t.Fatalf("after %q the prompt is closed or has lost the text", line)
		}
		give(m, "esc")
	}
	give(m, ":", "theme ember", "enter")
	if m.styles.Theme != "ember" || first.styles.Theme != "ember" {
		t.Errorf("the theme is %q, the view's %q", m.styles.Theme, first.styles.Theme)
	}
	m.setDark(false)
	if m.styles.Theme != "ember" {
		t.Error("the background changed the chosen theme")
	}
	if cmd := give(m, ":", "q", "enter"); cmd == nil {
		t.Error(":q does not quit")
	}
}

// TestCompletionAndHistory checks completion in both directions and the recall of sent lines.
func TestCompletionAndHistory(t *testing.T) {
	o, _, _ := eight(nil)
	m := sized(t, o, 100, 30)
	line := func() string { return m.prompts.open.input.Value() }
	give(m, ":", "theme e")
	for _, c := range []struct{ key, want string }{{"tab", "theme ember"}} {
		if give(m, c.key); line() != c.want {
			t.Errorf("after %s: %q, want %q", c.key, line(), c.want)
		}
	}
	give(m, "ctrl+u", "ru")
	for _, c := range []struct{ key, want string }{{"tab", "runs"}, {"tab", "run"}, {"shift+tab", "runs"},
		{"up", "runs.down"}, {"down", "runs"}} {
		if give(m, c.key); c.key != "up" && c.key != "down" && line() != c.want {
			t.Errorf("after %s: %q, want %q", c.key, line(), c.want)
		}
	}
	give(m, "esc", ":", "logs", "enter", ":", "health", "enter", ":", "logs", "enter", ":")
	for _, c := range []struct{ key, want string }{{"up", "logs"}, {"up", "health"}, {"up", "health"},
		{"down", "logs"}, {"down", ""}} {
		if give(m, c.key); line() != c.want {
			t.Errorf("after %s: %q, want %q", c.key, line(), c.want)
		}
	}
}

// TestPromptCompletes checks that offsets are in bytes, with non-ASCII text.
func TestPromptCompletes(t *testing.T) {
	o, _, _ := eight(nil)
	m := sized(t, o, 100, 30)
	sent := ""
	m.Ask(Prompt{Label: "/", Value: "größe=", Complete: func(line string, cursor int) (int, []string) {
		if cursor != len(line) {
			t.Errorf("cursor %d in %q of %d bytes", cursor, line, len(line))
		}
		return strings.LastIndex(line, "=") + 1, []string{"groß", "klein"}
	}, Done: func(s string) tea.Cmd { sent = s; return nil }})
	m.layout()
	wants(t, m, "2 matches", "klein")
	give(m, "tab", "tab", "enter")
	if sent != "größe=klein" {
		t.Errorf("sent %q", sent)
	}
}

func TestCopy(t *testing.T) {
	for name, c := range map[string]struct {
		native func(string) error
		text   string
		want   string
		cmd    bool
	}{
		"native":   {func(string) error { return nil }, "q-1", "copied its line to the clipboard", false},
		"terminal": {nil, "q-1", "through the terminal (OSC 52)", true},
		"failing": {func(string) error { return errors.New("no display") }, "q-1",
			"through the terminal (OSC 52)", true},
		"large":   {nil, strings.Repeat("x", maxTerminalCopy+1), "more than terminals accept", false},
		"nothing": {nil, "", "nothing to copy here", false},
	} {
		o, first, _ := eight(func(o *Options) { o.Clipboard = c.native })
		first.copies = c.text
		m := sized(t, o, 120, 24)
		if cmd := give(m, "y", "y"); cmd != nil {
			_, next := m.Update(cmd())
			if (next != nil) != c.cmd {
				t.Errorf("%s: the terminal is asked: %v", name, next != nil)
			}
		}
		wants(t, m, c.want)
	}
}

func TestErrorLog(t *testing.T) {
	o, _, _ := eight(nil)
	m := sized(t, o, 120, 24)
	m.Warn("config.toml:3: theme \"neon\" not found", "config.toml:4: another")
	wants(t, m, "2 warnings (:errors): config.toml:3")
	m.Update(Failed(errors.New("cancel ace/q-1: not connected\x1b[2J")))
	m.Update(Noted("good news"))
	give(m, "!")
	wants(t, m, "12:00:00  cancel ace/q-1: not connected", "config.toml:3", "config.toml:4")
	if out := exact(t, m); strings.Contains(out, "good news  ") && strings.Contains(out, "12:00:00  good") {
		t.Error("a notice is in the log of errors")
	}
	for i := range 3 * maxErrors {
		m.Update(Failed(fmt.Errorf("error %d", i)))
	}
	give(m, "g")
	if len(m.messages.errors) != maxErrors {
		t.Errorf("%d errors are kept", len(m.messages.errors))
	}
	wants(t, m, "12:00:00  error")
	give(m, "G")
	wants(t, m, "Older errors were dropped")
	give(m, "esc")
	if m.dialogs.top() != nil {
		t.Error("esc does not close it")
	}
}

func TestReadOnly(t *testing.T) {
	o, _, did := eight(func(o *Options) { o.ReadOnly = true })
	m := sized(t, o, 100, 30)
	give(m, "x")
	wants(t, m, `read-only mode disables "cancel"`, " read-only ")
	give(m, "j")
	if out := exact(t, m); strings.Contains(out, "read-only mode disables") {
		t.Errorf("the note stays after the next key:\n%s", out)
	}
	*did = nil
	give(m, ":", "runs.cancel", "enter")
	wants(t, m, "read-only mode disables :runs.cancel")
	give(m, "esc", "?")
	if len(*did) != 0 {
		t.Error("a run was canceled")
	}
	if out := exact(t, m); strings.Contains(out, "cancel the run") {
		t.Errorf("the help offers it:\n%s", out)
	}
}

func TestMouse(t *testing.T) {
	o, first, did := eight(nil)
	m := sized(t, o, 200, 50)
	if m.View().MouseMode != tea.MouseModeNone {
		t.Error("the mouse is on by default")
	}
	give(m, "M")
	if m.View().MouseMode == tea.MouseModeNone {
		t.Error("the mouse is off")
	}
	left := func(x, y int) { m.Update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft}) }
	wheel := func(x, y int, b tea.MouseButton) { m.Update(tea.MouseWheelMsg{X: x, Y: y, Button: b}) }
	left(150, 10)
	if m.panes.at.focus != 1 {
		t.Error("a click does not focus")
	}
	wheel(10, 10, tea.MouseWheelDown)
	wheel(10, 10, tea.MouseWheelUp)
	wheel(10, 10, tea.MouseWheelDown)
	if first.lines != wheelLines || m.panes.at.focus != 1 {
		t.Errorf("the wheel scrolled %d lines, focus %d", first.lines, m.panes.at.focus)
	}
	wheel(150, 10, tea.MouseWheelDown)
	if len(*did) != wheelLines {
		t.Errorf("the wheel pressed down %d times", len(*did))
	}
	left(5, 7)
	if m.panes.at.focus != 0 {
		t.Errorf("focus %d", m.panes.at.focus)
	}
	tabs := m.panes.tabs(&m.keys)
	left(tabs[5].from, 1)
	if m.panes.screen().Name != "logs" {
		t.Errorf("the tab opened %s", m.panes.screen().Name)
	}
	give(m, "esc")
	if m.panes.screen().Name != "runs" {
		t.Errorf("esc led to %s after a click on a tab", m.panes.screen().Name)
	}
	m.Open("runs")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	left(2+len(" Runs ")+2, 2)
	if m.panes.at.focus != 1 {
		t.Error("a click on a hidden pane's name does not focus it")
	}
	for x := range 90 {
		for y := range 30 {
			left(x, y)
		}
	}
}

func TestLongWork(t *testing.T) {
	stopped := int64(0)
	o, _, _ := eight(func(o *Options) { o.CancelWork = func(id int64) { stopped = id } })
	m := sized(t, o, 120, 24)
	give(m, "ctrl+x")
	wants(t, m, "no operation is running")
	m.Update(changedMsg{&Status{Work: []Work{{ID: 7, Label: "searching", Done: 1, Total: 4}}}})
	wants(t, m, "searching ██░░░░░░ 25% ^x stop")
	give(m, "ctrl+x")
	if stopped != 7 {
		t.Errorf("stopped %d", stopped)
	}
	m.Update(changedMsg{&Status{}})
	if out := exact(t, m); strings.Contains(out, "25%") {
		t.Error("finished work is shown")
	}
}

// TestStateSurvives checks that the next console restores the state, and ignores invalid parts.
func TestStateSurvives(t *testing.T) {
	var saved []State
	now := noon
	set := func(o *Options) {
		o.Save = func(s State) error { saved = append(saved, s); return nil }
		o.Now = func() time.Time { return now }
	}
	o, first, _ := eight(set)
	m := sized(t, o, 200, 50)
	first.kept = map[string]string{"sort": "cost", "huge": strings.Repeat("x", MaxKeptBytes)}
	give(m, "tab", "z", ":", "runs.down", "enter", ":", "theme ember", "enter", "3", "<")
	give(m, "1", ">")
	give(m, "3")
	tick := func() {
		t.Helper()
		if cmd := m.saver.due(m.opts.Now(), m.State); cmd != nil {
			if msg := cmd(); msg != nil {
				t.Errorf("saving gave %v", msg)
			}
		}
	}
	tick()
	tick()
	now = now.Add(time.Minute)
	tick()
	if len(saved) != 1 {
		t.Fatalf("saved %d times", len(saved))
	}
	o, first, _ = eight(func(o *Options) { set(o); o.State = saved[0] })
	m = sized(t, o, 200, 50)
	if m.panes.screen().Name != "timeline" || first.kept["sort"] != "cost" || first.kept["huge"] != "" {
		t.Errorf("at %v, kept %v", m.panes.at, first.kept)
	}
	give(m, "1")
	wants(t, m, "Run (zoomed)")
	give(m, ":", "up")
	if got := m.prompts.open.input.Value(); got != "theme ember" {
		t.Errorf("the last command is %q", got)
	}
	o.State = State{Screen: "gone", Panes: map[string]int{"runs": 99, "run": -3},
		Zoomed: []string{"run", "x"}, Shares: map[string]int{"runs": 1000}}
	exact(t, sized(t, o, 200, 50))
}

func TestReportsFailedSave(t *testing.T) {
	o, _, _ := eight(func(o *Options) { o.Save = func(State) error { return errors.New("disk full") } })
	m := sized(t, o, 120, 24)
	m.Update(m.saver.due(m.opts.Now(), m.State)())
	wants(t, m, "cannot save the console's state: disk full")
}

// TestResizeBetweenKeys checks that a resize between any two keys leaves a complete frame.
func TestResizeBetweenKeys(t *testing.T) {
	o, _, _ := eight(nil)
	m := sized(t, o, 80, 24)
	sizes := [][2]int{{200, 50}, {40, 10}, {1, 1}, {120, 12}, {39, 9}, {80, 24}}
	for i, k := range []string{":", "t", "tab", "tab", "esc", "?", "j", "esc", "z", "tab", "2", "!", "esc",
		"M", ">", "y", ":", "up"} {
		give(m, k)
		s := sizes[i%len(sizes)]
		m.Update(tea.WindowSizeMsg{Width: s[0], Height: s[1]})
		if m.canvas.tooSmall() {
			m.View()
			continue
		}
		exact(t, m)
	}
}

// TestShellInASCII checks that the shell draws only ASCII in a locale without UTF-8.
func TestShellInASCII(t *testing.T) {
	o, _, _ := eight(func(o *Options) { o.Styles = theme.NoColor().Styles(theme.ASCII()); o.ReadOnly = true })
	m := sized(t, o, 120, 30)
	m.Update(changedMsg{&Status{Work: []Work{{Label: "searching", Done: 3, Total: 9}}}})
	for _, keys := range [][]string{nil, {"z"}, {":", "r", "tab"}, {"esc", "?"}, {"esc", "!"}, {"esc", "y"},
		{"7"}} {
		give(m, keys...)
		for _, r := range exact(t, m) {
			if r > 0x7e {
				t.Fatalf("after %v the screen contains %q:\n%s", keys, r, exact(t, m))
			}
		}
	}
}
