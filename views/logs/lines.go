package logs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/logfile"
	"acescope/sources/logs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// Lines shows the lines of the followed files. It follows the end until the user moves up; then it stays on
// its line, even when older lines are dropped.
type Lines struct {
	*shared
	console.Pane
	picker      picker
	Picked      []int64 // numbers of the selected lines
	Away        bool    // the cursor is not at the end
	Cursor, top int64   // numbers of lines
	session     int64
	raw, wrap   bool
	left        int // cells scrolled to the left
	search      *regexp.Regexp
}

func newLines(l *shared) *Lines { return &Lines{shared: l, Pane: console.NewPane("Logs")} }

func (v *Lines) SetShown(shown bool) {
	v.nav.Following = v.nav.Following && !shown
	v.feed.Look(shown)
}

func (v *Lines) Keep() map[string]string {
	yes := map[bool]string{true: "yes"}
	return map[string]string{"paths": strings.Join(v.paths, "\n"), "level": v.Want.Level.String(),
		"raw": yes[v.raw], "wrap": yes[v.wrap], "mention": yes[v.Want.mention]}
}

func (v *Lines) Restore(kept map[string]string) {
	v.raw, v.wrap = kept["raw"] == "yes", kept["wrap"] == "yes"
	v.Want.Level, v.Want.mention = logfile.SeverityOf(kept["level"]), kept["mention"] == "yes"
	if kept["paths"] != "" {
		v.choose(strings.Split(kept["paths"], "\n"))
	}
}

func (v *Lines) Refresh() { v.refresh() }

func (v *Lines) Title() string {
	title := "Logs"
	if s := v.shown(); s != nil && s.Description != "" {
		title += " " + text.Safe(s.Description, " ")
	}
	return title
}

func (v *Lines) Footer() string {
	s := v.shown()
	if s == nil {
		return ""
	}
	state := "following"
	switch below := v.below(); {
	case v.frozen != nil:
		state = "paused, " + ace.Number(v.unseen()) + " new, p resumes"
	case v.Away:
		state = ace.Number(below) + " below, G follows"
	}
	return v.Join(state, ace.Count(len(v.Picked), "line"), ace.Number(s.Dropped)+" dropped",
		v.selectionText(), console.SearchText(v.search))
}

func (v *Lines) below() int { return max(len(v.Picked)-1-v.at(), 0) }

func (v *Lines) Bindings() []tui.Binding {
	jump := func(by int, is func(logs.Entry) bool, none string) func(tui.Shell) {
		return func(s tui.Shell) { v.jump(s, by, is, none) }
	}
	own := []tui.Binding{
		console.Key("logs.search", "search with a regular expression; empty ends the search", "search",
			v.askSearch, "/"),
		console.Key("logs.next_match", "next match", widget.If(v.search != nil, "next match", ""),
			jump(1, v.hit, "no further match"), "ctrl+n"),
		console.Key("logs.previous_match", "previous match", "", jump(-1, v.hit, "no earlier match"),
			"ctrl+p"),
		console.Key("logs.next_error", "next error", "", jump(1, IsError, "no further error"), "e"),
		console.Key("logs.previous_error", "previous error", "", jump(-1, IsError, "no earlier error"), "E"),
		console.Key("logs.level", "lowest level to show: warn, error, info, debug, all", "level", v.nextLevel,
			"L"),
		console.Key("logs.filter", "show only the lines of this file, or of all", "this file", v.onlyFile,
			"F"),
		console.Key("logs.all", "show only lines that mention the selected run, or all", "", v.onlyRun, "a"),
		console.Key("logs.mode", "show raw lines, or their fields", "raw", func() { v.raw = !v.raw }, "m"),
		console.Key("logs.wrap", "wrap long lines, or cut them", "wrap",
			func() { v.wrap, v.left = !v.wrap, 0 }, "Z"),
		console.Key("logs.right", "scroll right", "", func() { v.left += max(v.Width/3, 1) }, "l", "right"),
		console.Key("logs.left", "scroll left", "", func() { v.left = max(v.left-max(v.Width/3, 1), 0) }, "h",
			"left"),
	}
	return slices.Concat(widget.Motions("logs", v), own, v.bindings("logs"))
}

// at returns the position of the cursor among the selected lines.
func (v *Lines) at() int {
	if !v.Away {
		return len(v.Picked) - 1
	}
	i, _ := slices.BinarySearch(v.Picked, v.Cursor)
	return min(i, len(v.Picked)-1)
}

func (v *Lines) Page() int { return max(v.Height-v.headRows(), 1) }

func (v *Lines) Scroll(by int) {
	v.pickLines()
	if len(v.Picked) > 0 {
		v.goTo(widget.Clamp(v.at()+by, 0, len(v.Picked)-1))
	}
}

func (v *Lines) goTo(i int) {
	v.Cursor = v.Picked[i]
	v.Away = i < len(v.Picked)-1
}

// pickLines selects the lines to show.
func (v *Lines) pickLines() {
	s := v.shown()
	if s == nil {
		v.Picked = nil
		return
	}
	if s.Session != v.session {
		v.session, v.Away = s.Session, false
		v.picker = picker{}
	}
	v.Picked = v.picker.pick(v.Want, s)
}

func (v *Lines) Entry(number int64) logs.Entry {
	s := v.shown()
	return s.Lines[number-s.First]
}

func (v *Lines) askSearch(s tui.Shell) {
	console.AskPattern(s, v.search, func(typed string) tea.Cmd { return v.Find(s, typed) })
}

// Find goes to the last match at or before the cursor, or else to the next one.
func (v *Lines) Find(s tui.Shell, typed string) tea.Cmd {
	if typed == "" {
		v.search = nil
		return nil
	}
	re, err := regexp.Compile(typed)
	if err != nil {
		return console.Failed("search", err)
	}
	v.search = re
	v.pickLines()
	if len(v.Picked) > 0 && v.hit(v.Entry(v.Picked[v.at()])) {
		v.goTo(v.at())
	} else if !v.seek(-1, v.hit) && !v.seek(1, v.hit) {
		s.Note("no line matches")
	}
	return nil
}

func (v *Lines) hit(e logs.Entry) bool {
	return v.search != nil && v.search.MatchString(e.Text)
}

// IsError reports whether a line is an error or a note about a file.
func IsError(e logs.Entry) bool {
	return e.Note != "" || logfile.LevelOf([]byte(e.Text)) == logfile.Error
}

func (v *Lines) jump(s tui.Shell, step int, is func(logs.Entry) bool, none string) {
	v.pickLines()
	if !v.seek(step, is) {
		s.Note(none)
	}
}

// seek moves the cursor to the next line that satisfies the function is. It returns false if no line does.
func (v *Lines) seek(step int, is func(logs.Entry) bool) bool {
	for i := v.at() + step; i >= 0 && i < len(v.Picked); i += step {
		if is(v.Entry(v.Picked[i])) {
			v.goTo(i)
			v.Away = true
			return true
		}
	}
	return false
}

func (v *Lines) nextLevel(s tui.Shell) {
	next := map[logfile.Severity]logfile.Severity{logfile.Unknown: logfile.Warn, logfile.Warn: logfile.Error,
		logfile.Error: logfile.Info, logfile.Info: logfile.Debug, logfile.Debug: logfile.Unknown}
	if v.Want.Level = next[v.Want.Level]; v.Want.Level == logfile.Unknown {
		s.Note("showing lines of all levels")
		return
	}
	s.Note("showing level " + v.Want.Level.String() + " and above")
}

func (v *Lines) onlyFile() {
	v.pickLines()
	switch {
	case v.Want.file != "":
		v.Want.file = ""
	case len(v.Picked) > 0:
		v.Want.file = v.Entry(v.Picked[v.at()]).File
	}
}

func (v *Lines) onlyRun(s tui.Shell) {
	if l := v.shown(); l == nil || len(l.Mention) == 0 {
		s.Note("no run is selected")
		return
	}
	v.Want.mention = !v.Want.mention
}

func (v *Lines) Copy() (what, content string) {
	v.pickLines()
	if len(v.Picked) == 0 {
		return "", ""
	}
	return "line", v.Entry(v.Picked[v.at()]).Text
}

func (v *Lines) Draw(_ time.Time, focused bool) []string {
	s := v.shown()
	if s == nil {
		return v.Message(nil, "reading log files"+v.Styles.Glyphs.Ellipsis)
	}
	v.pickLines()
	lines := v.head(s)
	if len(v.Picked) == 0 && len(v.open(s)) == 0 {
		return v.Message(lines, v.empty(s)...)
	}
	p := &painter{s: v.Styles, width: v.Width, loc: v.location, raw: v.raw, wrap: v.wrap, left: v.left,
		search: v.search}
	if len(s.Files) > 1 && v.Want.file == "" {
		p.tag = func(path string) string { return text.Safe(filepath.Base(path), " ") }
	}
	return widget.Fill(append(lines, v.window(p, s, v.Height-len(lines), focused)...), v.Width, v.Height)
}

// open returns the selected lines that do not end in a newline yet. They are drawn last.
func (v *Lines) open(s *logs.Logs) (open []logs.Entry) {
	for _, e := range s.Open {
		if v.Want.Level == logfile.Unknown && (v.Want.file == "" || v.Want.file == e.File) &&
			(!v.Want.mention || logs.Mentions([]byte(e.Text), s.Mention)) {
			open = append(open, e)
		}
	}
	return open
}

// window draws the lines that fit: the last ones while following, otherwise those around the cursor.
func (v *Lines) window(p *painter, s *logs.Logs, height int, focused bool) []string {
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
	for i := at; i >= top; i-- { // from below, so that the cursor is visible
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
	for ; top > 0 && len(rows) < height; top-- { // the end is visible: fill from above
		rows = append(p.rows(v.Entry(v.Picked[top-1]), false, false), rows...)
		v.top = v.Picked[top-1]
		if len(rows) > height {
			return rows[len(rows)-height:]
		}
	}
	return rows[:min(len(rows), height)]
}

// headRows returns the number of lines above the log lines.
func (v *Lines) headRows() int {
	if s := v.shown(); s != nil {
		return len(v.head(s))
	}
	return 0
}

// head shows up to three errors.
func (v *Lines) head(s *logs.Logs) (lines []string) {
	if s.Err != "" {
		lines = append(lines, v.Problem(v.Styles.Error, s.Err))
	}
	if s.Problem != "" {
		lines = append(lines, v.Problem(v.Styles.Warning, s.Problem))
	}
	for _, f := range s.Files {
		if f.State == logfile.Unreadable && len(lines) < 3 {
			lines = append(lines, v.Problem(v.Styles.Error, nameIn(s, f.Path)+": "+f.Err))
		}
	}
	return lines[:min(len(lines), max(v.Height-1, 0))]
}

func (v *Lines) empty(s *logs.Logs) []string {
	switch {
	case len(s.Lines) > 0 && v.selectionText() != "":
		return []string{"no line matches", v.selectionText(), "L, F and a change the selection"}
	case len(s.Lines) > 0:
		return []string{"cleared; no new lines yet"}
	case len(s.Files) == 0 && s.Err == "":
		return []string{"no log files yet", "press o to choose other files"}
	}
	return []string{"no lines yet", "press o to choose other files"}
}
