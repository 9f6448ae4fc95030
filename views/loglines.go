package views

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/sources/logfile"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// logLines is the lines of the followed files. It stays at the end until somebody moves
// up; then it stays on its line, even when older ones fall out.
type logLines struct {
	*logs
	styles        theme.Styles
	width, height int
	picker        logPicker
	picked        []int64 // of what was drawn last
	away          bool    // not at the end
	cursor, top   int64   // numbers of lines
	session       int64
	raw, wrap     bool
	left          int // cells that are scrolled away
	search        *regexp.Regexp
}

func newLogLines(l *logs) *logLines { return &logLines{logs: l} }

func (v *logLines) Name() string             { return "Logs" }
func (v *logLines) Update(tea.Msg) tea.Cmd   { return nil }
func (v *logLines) SetStyles(s theme.Styles) { v.styles = s }

func (v *logLines) SetSize(width, height int) { v.width, v.height = width, height }

// SetShown reads log files only while the lines are looked at.
func (v *logLines) SetShown(shown bool) {
	v.following = v.following && !shown
	v.Controls.Look(sources.PartLogs, shown)
}

// Keep gives what is followed and how lines are shown.
func (v *logLines) Keep() map[string]string {
	yes := map[bool]string{true: "yes"}
	return map[string]string{"paths": strings.Join(v.paths, "\n"), "level": v.want.level.String(), "raw": yes[v.raw], "wrap": yes[v.wrap], "mention": yes[v.want.mention]}
}

// Restore takes up what Keep gave.
func (v *logLines) Restore(kept map[string]string) {
	v.raw, v.wrap = kept["raw"] == "yes", kept["wrap"] == "yes"
	v.want.level, v.want.mention = logfile.SeverityOf(kept["level"]), kept["mention"] == "yes"
	if kept["paths"] != "" {
		v.choose(strings.Split(kept["paths"], "\n"))
	}
}

func (v *logLines) SetSnapshot(s *sources.Snapshot) { v.set(s) }

func (v *logLines) Title() string {
	title := "Logs"
	if s := v.shown(); s != nil && s.Why != "" {
		title += " " + text.Safe(s.Why, " ")
	}
	return title
}

// Footer is whether it follows, what is left out, and how much was dropped.
func (v *logLines) Footer() string {
	s := v.shown()
	if s == nil {
		return ""
	}
	dot := " " + v.styles.Glyphs.Dot + " "
	state := "following"
	switch below := v.below(); {
	case v.frozen != nil:
		state = "held, " + text.Count(v.unseen()) + " new, P goes on"
	case v.away:
		state = text.Count(int64(below)) + " below, G follows"
	}
	parts := []string{state, text.Count(int64(len(v.picked))) + " lines", text.Count(s.Dropped) + " dropped"}
	if c := v.choice(); c != "" {
		parts = append(parts, c)
	}
	if v.search != nil {
		parts = append(parts, "/"+text.Safe(v.search.String(), " "))
	}
	return strings.Join(parts, dot)
}

func (v *logLines) below() int { return max(len(v.picked)-1-v.at(), 0) }

func (v *logLines) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: "logs." + name, Keys: keys, Help: help, Short: short, Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	own := []tui.Binding{
		b("search", "search with a regular expression; empty ends it", "search", v.askSearch, "/"),
		b("next", "next match", "", func(s tui.Shell) { v.jump(s, 1, v.hit, "no further match") }, "n"),
		b("previous", "previous match", "", func(s tui.Shell) { v.jump(s, -1, v.hit, "no match before") }, "N"),
		b("next_error", "next error", "", func(s tui.Shell) { v.jump(s, 1, bad, "no further error") }, "e"),
		b("previous_error", "previous error", "", func(s tui.Shell) { v.jump(s, -1, bad, "no error before") }, "E"),
		b("level", "only lines this bad: warn, error, info, debug, all", "level", v.nextLevel, "L"),
		b("file", "only the lines of this file, or of all again", "this file", func(tui.Shell) { v.onlyFile() }, "F"),
		b("mention", "only lines that mention the selected run, or all", "", v.onlyRun, "i"),
		b("raw", "lines as they are, or with their fields set out", "raw", func(tui.Shell) { v.raw = !v.raw }, "r"),
		b("wrap", "wrap long lines, or cut them", "wrap", func(tui.Shell) { v.wrap, v.left = !v.wrap, 0 }, "w"),
		b("right", "right", "", func(tui.Shell) { v.left += max(v.width/3, 1) }, "l", "right"),
		b("left", "left", "", func(tui.Shell) { v.left = max(v.left-max(v.width/3, 1), 0) }, "h", "left"),
	}
	return slices.Concat(motions("logs", v), own, v.bindings("logs"))
}

// at is where the cursor is among the picked lines; the end while it follows.
func (v *logLines) at() int {
	if !v.away {
		return len(v.picked) - 1
	}
	i, _ := slices.BinarySearch(v.picked, v.cursor)
	return min(i, len(v.picked)-1)
}

func (v *logLines) page() int { return max(v.height-v.headRows(), 1) }

func (v *logLines) scroll(by int) {
	v.refresh()
	if len(v.picked) > 0 {
		v.goTo(clamp(v.at()+by, 0, len(v.picked)-1))
	}
}

func (v *logLines) goTo(i int) {
	v.cursor = v.picked[i]
	v.away = i < len(v.picked)-1
}

// refresh picks the wanted lines of what is shown now.
func (v *logLines) refresh() {
	s := v.shown()
	if s == nil {
		v.picked = nil
		return
	}
	if s.Session != v.session {
		v.session, v.away = s.Session, false
		v.picker = logPicker{}
	}
	v.picked = v.picker.pick(v.want, s)
}

func (v *logLines) entry(number int64) sources.LogEntry {
	s := v.shown()
	return s.Lines[number-s.First]
}

func (v *logLines) askSearch(s tui.Shell) {
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
		Done: func(typed string) tea.Cmd { return v.find(s, typed) }})
}

// find goes to the last match at or before the cursor, as the newest lines matter most,
// else to the next one.
func (v *logLines) find(s tui.Shell, typed string) tea.Cmd {
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
	if len(v.picked) > 0 && v.hit(v.entry(v.picked[v.at()])) {
		v.goTo(v.at())
	} else if !v.seek(-1, v.hit) && !v.seek(1, v.hit) {
		s.Note("no line matches")
	}
	return nil
}

func (v *logLines) hit(e sources.LogEntry) bool {
	return v.search != nil && v.search.MatchString(e.Text)
}

// bad tells whether a line is an error or says that something happened to a file.
func bad(e sources.LogEntry) bool {
	return e.Note != "" || logfile.LevelOf([]byte(e.Text)) == logfile.Error
}

func (v *logLines) jump(s tui.Shell, step int, is func(sources.LogEntry) bool, none string) {
	v.refresh()
	if !v.seek(step, is) {
		s.Note(none)
	}
}

// seek moves the cursor to the next line that is so, and tells whether there is one.
func (v *logLines) seek(step int, is func(sources.LogEntry) bool) bool {
	for i := v.at() + step; i >= 0 && i < len(v.picked); i += step {
		if is(v.entry(v.picked[i])) {
			v.goTo(i)
			v.away = true
			return true
		}
	}
	return false
}

func (v *logLines) nextLevel(s tui.Shell) {
	next := map[logfile.Severity]logfile.Severity{logfile.Unknown: logfile.Warn, logfile.Warn: logfile.Error,
		logfile.Error: logfile.Info, logfile.Info: logfile.Debug, logfile.Debug: logfile.Unknown}
	if v.want.level = next[v.want.level]; v.want.level == logfile.Unknown {
		s.Note("lines of every level")
		return
	}
	s.Note("lines of level " + v.want.level.String() + " and worse")
}

func (v *logLines) onlyFile() {
	v.refresh()
	switch {
	case v.want.file != "":
		v.want.file = ""
	case len(v.picked) > 0:
		v.want.file = v.entry(v.picked[v.at()]).File
	}
}

func (v *logLines) onlyRun(s tui.Shell) {
	if l := v.shown(); l == nil || len(l.Mention) == 0 {
		s.Note("no run is selected")
		return
	}
	v.want.mention = !v.want.mention
}

// Copy gives the line under the cursor as it stands in its file.
func (v *logLines) Copy() (what, content string) {
	v.refresh()
	if len(v.picked) == 0 {
		return "", ""
	}
	return "line", v.entry(v.picked[v.at()]).Text
}

func (v *logLines) Draw(_ time.Time, focused bool) []string {
	s := v.shown()
	if s == nil {
		return centre([]string{"reading log files" + v.styles.Glyphs.Ellipsis}, v.width, v.height, v.styles)
	}
	v.refresh()
	lines := v.head(s)
	if len(v.picked) == 0 && len(v.open(s)) == 0 {
		return fill(append(lines, centre(v.nothing(s), v.width, max(v.height-len(lines), 0), v.styles)...), v.width, v.height)
	}
	p := &logPainter{s: v.styles, width: v.width, loc: v.Location, raw: v.raw, wrap: v.wrap, left: v.left, search: v.search}
	if len(s.Files) > 1 && v.want.file == "" {
		p.tag = func(path string) string { return text.Safe(filepath.Base(path), " ") }
	}
	return fill(append(lines, v.window(p, s, v.height-len(lines), focused)...), v.width, v.height)
}

// open is the wanted lines whose end is not there yet; they stand after the last.
func (v *logLines) open(s *sources.Logs) (open []sources.LogEntry) {
	for _, e := range s.Open {
		if v.want.level == logfile.Unknown && (v.want.file == "" || v.want.file == e.File) &&
			(!v.want.mention || sources.Mentions([]byte(e.Text), s.Mention)) {
			open = append(open, e)
		}
	}
	return open
}

// window draws as many lines as fit: up to the end while it follows, else so that the
// cursor's line is whole in sight.
func (v *logLines) window(p *logPainter, s *sources.Logs, height int, focused bool) []string {
	if !v.away {
		open := v.open(s)
		var rows []string
		for i := len(open) - 1; i >= 0 && len(rows) < height; i-- {
			rows = append(p.rows(open[i], false, true), rows...)
		}
		at := v.at()
		top := at + 1
		for i := at; i >= 0 && len(rows) < height; i-- {
			rows = append(p.rows(v.entry(v.picked[i]), focused && i == at, false), rows...)
			top = i
		}
		if top < len(v.picked) {
			v.top = v.picked[top]
		}
		return rows[max(len(rows)-height, 0):]
	}
	at := v.at()
	top, _ := slices.BinarySearch(v.picked, v.top)
	top = min(top, at)
	used := 0
	for i := at; i >= top; i-- { // from below, so that the cursor is in sight
		used += len(p.rows(v.entry(v.picked[i]), false, false))
		if used > height && i < at {
			top = i + 1
			break
		}
	}
	v.top = v.picked[top]
	var rows []string
	for i := top; i < len(v.picked) && len(rows) < height; i++ {
		rows = append(rows, p.rows(v.entry(v.picked[i]), i == at, false)...)
	}
	for ; top > 0 && len(rows) < height; top-- { // the end is in sight: fill from above
		rows = append(p.rows(v.entry(v.picked[top-1]), false, false), rows...)
		v.top = v.picked[top-1]
		if len(rows) > height {
			return rows[len(rows)-height:]
		}
	}
	return rows[:min(len(rows), height)]
}

// headRows is how many lines stand above the log lines.
func (v *logLines) headRows() int {
	if s := v.shown(); s != nil {
		return len(v.head(s))
	}
	return 0
}

// head is what is wrong for good.
func (v *logLines) head(s *sources.Logs) (lines []string) {
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

func (v *logLines) nothing(s *sources.Logs) []string {
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
