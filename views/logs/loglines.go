package logs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/logfile"
	"acescope/sources/logs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// LogLines is the lines of the followed files. It stays at the end until somebody moves
// up; then it stays on its line, even when older ones fall out.
type LogLines struct {
	*logScreen
	styles        theme.Styles
	width, height int
	picker        logPicker
	Picked        []int64 // of what was drawn last
	Away          bool    // not at the end
	Cursor, top   int64   // numbers of lines
	session       int64
	raw, wrap     bool
	left          int // cells that are scrolled away
	search        *regexp.Regexp
}

func newLogLines(l *logScreen) *LogLines { return &LogLines{logScreen: l} }

func (v *LogLines) Name() string             { return "Logs" }
func (v *LogLines) Update(tea.Msg) tea.Cmd   { return nil }
func (v *LogLines) SetStyles(s theme.Styles) { v.styles = s }

func (v *LogLines) SetSize(width, height int) { v.width, v.height = width, height }

// SetShown reads log files only while the lines are looked at.
func (v *LogLines) SetShown(shown bool) {
	v.nav.Following = v.nav.Following && !shown
	v.feed.Look(shown)
}

// Keep gives what is followed and how lines are shown.
func (v *LogLines) Keep() map[string]string {
	yes := map[bool]string{true: "yes"}
	return map[string]string{"paths": strings.Join(v.paths, "\n"), "level": v.Want.Level.String(), "raw": yes[v.raw], "wrap": yes[v.wrap], "mention": yes[v.Want.mention]}
}

// Restore takes up what Keep gave.
func (v *LogLines) Restore(kept map[string]string) {
	v.raw, v.wrap = kept["raw"] == "yes", kept["wrap"] == "yes"
	v.Want.Level, v.Want.mention = logfile.SeverityOf(kept["level"]), kept["mention"] == "yes"
	if kept["paths"] != "" {
		v.choose(strings.Split(kept["paths"], "\n"))
	}
}

func (v *LogLines) Refresh() { v.takeLogs() }

func (v *LogLines) Title() string {
	title := "Logs"
	if s := v.shown(); s != nil && s.Why != "" {
		title += " " + text.Safe(s.Why, " ")
	}
	return title
}

// Footer is whether it follows, what is left out, and how much was dropped.
func (v *LogLines) Footer() string {
	s := v.shown()
	if s == nil {
		return ""
	}
	dot := " " + v.styles.Glyphs.Dot + " "
	state := "following"
	switch below := v.below(); {
	case v.frozen != nil:
		state = "held, " + text.Count(v.unseen()) + " new, P goes on"
	case v.Away:
		state = text.Count(int64(below)) + " below, G follows"
	}
	parts := []string{state, text.Count(int64(len(v.Picked))) + " lines", text.Count(s.Dropped) + " dropped"}
	if c := v.choice(); c != "" {
		parts = append(parts, c)
	}
	if v.search != nil {
		parts = append(parts, "/"+text.Safe(v.search.String(), " "))
	}
	return strings.Join(parts, dot)
}

func (v *LogLines) below() int { return max(len(v.Picked)-1-v.at(), 0) }

func (v *LogLines) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: "logs." + name, Keys: keys, Help: help, Short: short, Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	own := []tui.Binding{
		b("search", "search with a regular expression; empty ends it", "search", v.askSearch, "/"),
		b("next", "next match", "", func(s tui.Shell) { v.jump(s, 1, v.hit, "no further match") }, "n"),
		b("previous", "previous match", "", func(s tui.Shell) { v.jump(s, -1, v.hit, "no match before") }, "N"),
		b("next_error", "next error", "", func(s tui.Shell) { v.jump(s, 1, Bad, "no further error") }, "e"),
		b("previous_error", "previous error", "", func(s tui.Shell) { v.jump(s, -1, Bad, "no error before") }, "E"),
		b("level", "only lines this bad: warn, error, info, debug, all", "level", v.nextLevel, "L"),
		b("file", "only the lines of this file, or of all again", "this file", func(tui.Shell) { v.onlyFile() }, "F"),
		b("mention", "only lines that mention the selected run, or all", "", v.onlyRun, "i"),
		b("raw", "lines as they are, or with their fields set out", "raw", func(tui.Shell) { v.raw = !v.raw }, "r"),
		b("wrap", "wrap long lines, or cut them", "wrap", func(tui.Shell) { v.wrap, v.left = !v.wrap, 0 }, "w"),
		b("right", "right", "", func(tui.Shell) { v.left += max(v.width/3, 1) }, "l", "right"),
		b("left", "left", "", func(tui.Shell) { v.left = max(v.left-max(v.width/3, 1), 0) }, "h", "left"),
	}
	return slices.Concat(widget.Motions("logs", v), own, v.bindings("logs"))
}

// at is where the cursor is among the picked lines; the end while it follows.
func (v *LogLines) at() int {
	if !v.Away {
		return len(v.Picked) - 1
	}
	i, _ := slices.BinarySearch(v.Picked, v.Cursor)
	return min(i, len(v.Picked)-1)
}

func (v *LogLines) Page() int { return max(v.height-v.headRows(), 1) }

func (v *LogLines) Scroll(by int) {
	v.refresh()
	if len(v.Picked) > 0 {
		v.goTo(widget.Clamp(v.at()+by, 0, len(v.Picked)-1))
	}
}

func (v *LogLines) goTo(i int) {
	v.Cursor = v.Picked[i]
	v.Away = i < len(v.Picked)-1
}

// refresh picks the wanted lines of what is shown now.
func (v *LogLines) refresh() {
	s := v.shown()
	if s == nil {
		v.Picked = nil
		return
	}
	if s.Session != v.session {
		v.session, v.Away = s.Session, false
		v.picker = logPicker{}
	}
	v.Picked = v.picker.pick(v.Want, s)
}

func (v *LogLines) Entry(number int64) logs.LogEntry {
	s := v.shown()
	return s.Lines[number-s.First]
}

func (v *LogLines) askSearch(s tui.Shell) {
	value := ""
	if v.search != nil {
		value = v.search.String()
	}
	s.Ask(tui.Prompt{Label: "/", Value: value, Hint: "a regular expression; (?i) in front ignores case",
		Preview: func(typed string) string {
			if _, err := regexp.Compile(typed); err != nil {
				return err.Error()
			}
			return ""
		},
		Done: func(typed string) tea.Cmd { return v.Find(s, typed) }})
}

// Find goes to the last match at or before the cursor, as the newest lines matter most,
// else to the next one.
func (v *LogLines) Find(s tui.Shell, typed string) tea.Cmd {
	if typed == "" {
		v.search = nil
		return nil
	}
	re, err := regexp.Compile(typed)
	if err != nil {
		return func() tea.Msg { return tui.Failed(err) }
	}
	v.search = re
	v.refresh()
	if len(v.Picked) > 0 && v.hit(v.Entry(v.Picked[v.at()])) {
		v.goTo(v.at())
	} else if !v.seek(-1, v.hit) && !v.seek(1, v.hit) {
		s.Note("no line matches")
	}
	return nil
}

func (v *LogLines) hit(e logs.LogEntry) bool {
	return v.search != nil && v.search.MatchString(e.Text)
}

// Bad tells whether a line is an error or says that something happened to a file.
func Bad(e logs.LogEntry) bool {
	return e.Note != "" || logfile.LevelOf([]byte(e.Text)) == logfile.Error
}

func (v *LogLines) jump(s tui.Shell, step int, is func(logs.LogEntry) bool, none string) {
	v.refresh()
	if !v.seek(step, is) {
		s.Note(none)
	}
}

// seek moves the cursor to the next line that is so, and tells whether there is one.
func (v *LogLines) seek(step int, is func(logs.LogEntry) bool) bool {
	for i := v.at() + step; i >= 0 && i < len(v.Picked); i += step {
		if is(v.Entry(v.Picked[i])) {
			v.goTo(i)
			v.Away = true
			return true
		}
	}
	return false
}

func (v *LogLines) nextLevel(s tui.Shell) {
	next := map[logfile.Severity]logfile.Severity{logfile.Unknown: logfile.Warn, logfile.Warn: logfile.Error,
		logfile.Error: logfile.Info, logfile.Info: logfile.Debug, logfile.Debug: logfile.Unknown}
	if v.Want.Level = next[v.Want.Level]; v.Want.Level == logfile.Unknown {
		s.Note("lines of every level")
		return
	}
	s.Note("lines of level " + v.Want.Level.String() + " and worse")
}

func (v *LogLines) onlyFile() {
	v.refresh()
	switch {
	case v.Want.file != "":
		v.Want.file = ""
	case len(v.Picked) > 0:
		v.Want.file = v.Entry(v.Picked[v.at()]).File
	}
}

func (v *LogLines) onlyRun(s tui.Shell) {
	if l := v.shown(); l == nil || len(l.Mention) == 0 {
		s.Note("no run is selected")
		return
	}
	v.Want.mention = !v.Want.mention
}

// Copy gives the line under the cursor as it stands in its file.
func (v *LogLines) Copy() (what, content string) {
	v.refresh()
	if len(v.Picked) == 0 {
		return "", ""
	}
	return "line", v.Entry(v.Picked[v.at()]).Text
}

func (v *LogLines) Draw(_ time.Time, focused bool) []string {
	s := v.shown()
	if s == nil {
		return widget.Centre([]string{"reading log files" + v.styles.Glyphs.Ellipsis}, v.width, v.height, v.styles)
	}
	v.refresh()
	lines := v.head(s)
	if len(v.Picked) == 0 && len(v.open(s)) == 0 {
		return widget.Fill(append(lines, widget.Centre(v.nothing(s), v.width, max(v.height-len(lines), 0), v.styles)...), v.width, v.height)
	}
	p := &logPainter{s: v.styles, width: v.width, loc: v.location, raw: v.raw, wrap: v.wrap, left: v.left, search: v.search}
	if len(s.Files) > 1 && v.Want.file == "" {
		p.tag = func(path string) string { return text.Safe(filepath.Base(path), " ") }
	}
	return widget.Fill(append(lines, v.window(p, s, v.height-len(lines), focused)...), v.width, v.height)
}

// open is the wanted lines whose end is not there yet; they stand after the last.
func (v *LogLines) open(s *logs.Logs) (open []logs.LogEntry) {
	for _, e := range s.Open {
		if v.Want.Level == logfile.Unknown && (v.Want.file == "" || v.Want.file == e.File) &&
			(!v.Want.mention || logs.Mentions([]byte(e.Text), s.Mention)) {
			open = append(open, e)
		}
	}
	return open
}

// window draws as many lines as fit: up to the end while it follows, else so that the
// cursor's line is whole in sight.
func (v *LogLines) window(p *logPainter, s *logs.Logs, height int, focused bool) []string {
	if !v.Away {
		open := v.open(s)
		var rows []string
		for i := len(open) - 1; i >= 0 && len(rows) < height; i-- {
			rows = append(p.rows(open[i], false, true), rows...)
		}
		at := v.at()
		top := at + 1
		for i := at; i >= 0 && len(rows) < height; i-- {
			rows = append(p.rows(v.Entry(v.Picked[i]), focused && i == at, false), rows...)
			top = i
		}
		if top < len(v.Picked) {
			v.top = v.Picked[top]
		}
		return rows[max(len(rows)-height, 0):]
	}
	at := v.at()
	top, _ := slices.BinarySearch(v.Picked, v.top)
	top = min(top, at)
	used := 0
	for i := at; i >= top; i-- { // from below, so that the cursor is in sight
		used += len(p.rows(v.Entry(v.Picked[i]), false, false))
		if used > height && i < at {
			top = i + 1
			break
		}
	}
	v.top = v.Picked[top]
	var rows []string
	for i := top; i < len(v.Picked) && len(rows) < height; i++ {
		rows = append(rows, p.rows(v.Entry(v.Picked[i]), i == at, false)...)
	}
	for ; top > 0 && len(rows) < height; top-- { // the end is in sight: fill from above
		rows = append(p.rows(v.Entry(v.Picked[top-1]), false, false), rows...)
		v.top = v.Picked[top-1]
		if len(rows) > height {
			return rows[len(rows)-height:]
		}
	}
	return rows[:min(len(rows), height)]
}

// headRows is how many lines stand above the log lines.
func (v *LogLines) headRows() int {
	if s := v.shown(); s != nil {
		return len(v.head(s))
	}
	return 0
}

// head is what is wrong for good.
func (v *LogLines) head(s *logs.Logs) (lines []string) {
	g := v.styles.Glyphs
	say := func(ink theme.Ink, t string) {
		lines = append(lines, ink.Paint(text.Fit(" "+g.Failed+" "+text.Safe(t, " "), v.width, g.Ellipsis)))
	}
	if s.Err != "" {
		say(v.styles.Error, s.Err)
	}
	if s.Trouble != "" {
		say(v.styles.Warning, s.Trouble)
	}
	for _, f := range s.Files {
		if f.State == logfile.Unreadable && len(lines) < 3 {
			say(v.styles.Error, nameIn(s, f.Path)+": "+f.Err)
		}
	}
	return lines[:min(len(lines), max(v.height-1, 0))]
}

func (v *LogLines) nothing(s *logs.Logs) []string {
	switch {
	case len(s.Lines) > 0 && v.choice() != "":
		return []string{"no line is so", v.choice(), "L, f and i choose others"}
	case len(s.Lines) > 0:
		return []string{"cleared; nothing new yet"}
	case len(s.Files) == 0 && s.Err == "":
		return []string{"no log files yet", "o to follow others"}
	}
	return []string{"no lines yet", "o to follow other files"}
}
