package logs

import (
	"strconv"
	"time"

	"acescope/sources/logfile"
	"acescope/sources/logs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// fileList lists the followed files.
type fileList struct {
	*shared
	console.Pane
	table *widget.Table
}

func newFileList(l *shared) *fileList {
	table := widget.NewTable(widget.Heading{Title: "FILE"}, widget.Heading{Title: "SIZE", Width: 7, Right: true},
		widget.Heading{Title: "LINES/S", Width: 7, Right: true, Drop: 1}, widget.Heading{Title: "STATE", Width: 13})
	return &fileList{shared: l, Pane: console.NewPane("Files"), table: table}
}

func (v *fileList) Footer() string { return v.table.Position() }
func (v *fileList) Refresh() {
	if v.now != nil {
		v.table.SetRows(len(v.now.Files))
	}
}

func (v *fileList) Bindings() []tui.Binding {
	only := console.Key("logfiles.only", "show only the lines of this file, or of all", "only this", v.only, "F", "enter")
	return append(append(widget.Motions("logfiles", v.table), only), v.bindings("logfiles")...)
}

func (v *fileList) only() {
	if v.now == nil || v.table.Cursor >= len(v.now.Files) {
		return
	}
	if path := v.now.Files[v.table.Cursor].Path; v.Want.file != path {
		v.Want.file = path
	} else {
		v.Want.file = ""
	}
}

// Copy returns the path of the file under the cursor.
func (v *fileList) Copy() (what, content string) {
	if v.now == nil || v.table.Cursor >= len(v.now.Files) {
		return "", ""
	}
	return "path", v.now.Files[v.table.Cursor].Path
}

func (v *fileList) Draw(now time.Time, focused bool) []string {
	s := v.now
	if s == nil || len(s.Files) == 0 {
		return v.Message(nil, "no log files", "o follows other files")
	}
	v.table.SetRows(len(s.Files))
	v.table.SetSize(v.Width, v.Height)
	return v.table.Draw(v.Styles, focused, func(i int) []widget.Cell { return v.row(s, s.Files[i], now) })
}

func (v *fileList) row(s *logs.Logs, f logs.File, now time.Time) []widget.Cell {
	g := v.Styles.Glyphs
	name, speed, ink := nameIn(s, f.Path), g.Dash, v.Styles.Text
	if f.Path == v.Want.file {
		name = g.Pointer + " " + name
	}
	if !f.RatedAt.IsZero() && now.Sub(f.RatedAt) < 5*time.Second {
		speed = text.Count(int64(f.PerSecond + 0.5))
	}
	said := string(f.State)
	switch f.State {
	case logfile.Unreadable:
		ink, said = v.Styles.Error, g.Failed+" "+said
	case logfile.Waiting, logfile.Removed, logfile.Same:
		ink = v.Styles.Muted
	case logfile.Truncated:
		ink = v.Styles.Warning
	}
	if f.Truncated > 0 && f.State == logfile.Following {
		said = "truncated " + strconv.Itoa(f.Truncated) + "x"
	}
	return []widget.Cell{{name, ink}, {sizeCell(f.Size), v.Styles.Text}, {speed, v.Styles.Muted}, {said, ink}}
}

// sizeCell formats a number of bytes in at most seven cells.
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
