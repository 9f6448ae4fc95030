package views

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/sources/logfile"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// logFiles is the list of the files that are followed.
type logFiles struct {
	*logs
	styles        theme.Styles
	width, height int
	table         *table
}

func newLogFiles(l *logs) *logFiles {
	return &logFiles{logs: l, table: newTable(heading{title: "FILE"}, heading{title: "SIZE", width: 7, right: true},
		heading{title: "LINES/S", width: 7, right: true, drop: 1}, heading{title: "STATE", width: 13})}
}

func (v *logFiles) Name() string              { return "Files" }
func (v *logFiles) Title() string             { return "Files" }
func (v *logFiles) Footer() string            { return v.table.position() }
func (v *logFiles) Update(tea.Msg) tea.Cmd    { return nil }
func (v *logFiles) SetShown(bool)             {}
func (v *logFiles) SetStyles(s theme.Styles)  { v.styles = s }
func (v *logFiles) SetSize(width, height int) { v.width, v.height = width, height }
func (v *logFiles) SetSnapshot(*sources.Snapshot) {
	if v.now != nil {
		v.table.setRows(len(v.now.Files))
	}
}
func (v *logFiles) scroll(by int) { v.table.scroll(by) }
func (v *logFiles) page() int     { return v.table.page() }

func (v *logFiles) Bindings() []tui.Binding {
	return append(append(motions("logfiles", v), tui.Binding{
		Action: "logfiles.only", Keys: []string{"F", "enter"}, Help: "only the lines of this file, or of all again", Short: "only this",
		Do: func(tui.Shell) tea.Cmd { v.only(); return nil },
	}), v.bindings("logfiles")...)
}

func (v *logFiles) only() {
	if v.now == nil || v.table.cursor >= len(v.now.Files) {
		return
	}
	if path := v.now.Files[v.table.cursor].Path; v.want.file != path {
		v.want.file = path
	} else {
		v.want.file = ""
	}
}

// Copy gives the path of the file under the cursor.
func (v *logFiles) Copy() (what, content string) {
	if v.now == nil || v.table.cursor >= len(v.now.Files) {
		return "", ""
	}
	return "path", v.now.Files[v.table.cursor].Path
}

func (v *logFiles) Draw(now time.Time, focused bool) []string {
	s := v.now
	if s == nil || len(s.Files) == 0 {
		return centre([]string{"no log files", "o to follow others"}, v.width, v.height, v.styles)
	}
	v.table.setRows(len(s.Files))
	v.table.setSize(v.width, v.height)
	return v.table.draw(v.styles, focused, func(i int) []cell { return v.row(s, s.Files[i], now) })
}

func (v *logFiles) row(s *sources.Logs, f sources.LogFile, now time.Time) []cell {
	g := v.styles.Glyphs
	name, speed, ink := nameIn(s, f.Path), g.Dash, v.styles.Text
	if f.Path == v.want.file {
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
	return []cell{{name, ink}, {sizeCell(f.Size), v.styles.Text}, {speed, v.styles.Muted}, {said, ink}}
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
