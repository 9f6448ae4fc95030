package logs

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/logfile"
	"acescope/sources/logs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// logFiles is the list of the files that are followed.
type logFiles struct {
	*logScreen
	styles        theme.Styles
	width, height int
	table         *widget.Table
}

func newLogFiles(l *logScreen) *logFiles {
	return &logFiles{logScreen: l, table: widget.NewTable(widget.Heading{Title: "FILE"}, widget.Heading{Title: "SIZE", Width: 7, Right: true},
		widget.Heading{Title: "LINES/S", Width: 7, Right: true, Drop: 1}, widget.Heading{Title: "STATE", Width: 13})}
}

func (v *logFiles) Name() string              { return "Files" }
func (v *logFiles) Title() string             { return "Files" }
func (v *logFiles) Footer() string            { return v.table.Position() }
func (v *logFiles) Update(tea.Msg) tea.Cmd    { return nil }
func (v *logFiles) SetStyles(s theme.Styles)  { v.styles = s }
func (v *logFiles) SetSize(width, height int) { v.width, v.height = width, height }
func (v *logFiles) Refresh() {
	if v.now != nil {
		v.table.SetRows(len(v.now.Files))
	}
}
func (v *logFiles) Scroll(by int) { v.table.Scroll(by) }
func (v *logFiles) Page() int     { return v.table.Page() }

func (v *logFiles) Bindings() []tui.Binding {
	return append(append(widget.Motions("logfiles", v), tui.Binding{
		Action: "logfiles.only", Keys: []string{"F", "enter"}, Help: "only the lines of this file, or of all again", Short: "only this",
		Do: func(tui.Shell) tea.Cmd { v.only(); return nil },
	}), v.bindings("logfiles")...)
}

func (v *logFiles) only() {
	if v.now == nil || v.table.Cursor >= len(v.now.Files) {
		return
	}
	if path := v.now.Files[v.table.Cursor].Path; v.Want.file != path {
		v.Want.file = path
	} else {
		v.Want.file = ""
	}
}

// Copy gives the path of the file under the cursor.
func (v *logFiles) Copy() (what, content string) {
	if v.now == nil || v.table.Cursor >= len(v.now.Files) {
		return "", ""
	}
	return "path", v.now.Files[v.table.Cursor].Path
}

func (v *logFiles) Draw(now time.Time, focused bool) []string {
	s := v.now
	if s == nil || len(s.Files) == 0 {
		return widget.Centre([]string{"no log files", "o to follow others"}, v.width, v.height, v.styles)
	}
	v.table.SetRows(len(s.Files))
	v.table.SetSize(v.width, v.height)
	return v.table.Draw(v.styles, focused, func(i int) []widget.Cell { return v.row(s, s.Files[i], now) })
}

func (v *logFiles) row(s *logs.Logs, f logs.LogFile, now time.Time) []widget.Cell {
	g := v.styles.Glyphs
	name, speed, ink := nameIn(s, f.Path), g.Dash, v.styles.Text
	if f.Path == v.Want.file {
		name = g.Pointer + " " + name
	}
	if !f.RatedAt.IsZero() && now.Sub(f.RatedAt) < 5*time.Second {
		speed = text.Count(int64(f.PerSecond + 0.5))
	}
	said := string(f.State)
	switch f.State {
	case logfile.Unreadable:
		ink, said = v.styles.Error, g.Failed+" "+said
	case logfile.Waiting, logfile.Removed, logfile.Same:
		ink = v.styles.Muted
	case logfile.Truncated:
		ink = v.styles.Warning
	}
	if f.Truncated > 0 && f.State == logfile.Following {
		said = "emptied " + strconv.Itoa(f.Truncated) + "x"
	}
	return []widget.Cell{{name, ink}, {sizeCell(f.Size), v.styles.Text}, {speed, v.styles.Muted}, {said, ink}}
}

// sizeCell is a number of bytes in at most seven cells.
func sizeCell(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	f, i := float64(n), 0
	for f >= 1000 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	if i == 0 || f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64) + units[i]
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + units[i]
}
