package logs

import (
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/sources/logfile"
	"acescope/sources/logs"
	"acescope/tui"
	"acescope/tui/widget"
	"acescope/views/console"
)

type fileList struct {
	*shared
	console.List[logs.File]
}

func newFileList(l *shared) *fileList {
	return &fileList{shared: l, List: console.NewList[logs.File]("Files",
		widget.Heading{Title: "FILE"},
		widget.Heading{Title: "SIZE", Width: 7, Right: true},
		widget.Heading{Title: "LINES/S", Width: 7, Right: true, Drop: 1},
		widget.Heading{Title: "STATE", Width: 13})}
}

func (v *fileList) Refresh() {
	if v.now != nil {
		v.Set(v.now.Files, nil)
	}
}

func (v *fileList) Bindings() []tui.Binding {
	only := console.Key("logfiles.filter", "switch between the lines of this file and of all files",
		"only this", v.only, "F", "enter")
	return append(append(widget.Motions("logfiles", v), only), v.bindings("logfiles")...)
}

func (v *fileList) only() {
	if f, ok := v.Current(); ok && v.Want.file != f.Path {
		v.Want.file = f.Path
	} else if ok {
		v.Want.file = ""
	}
}

func (v *fileList) Copy() (what, content string) {
	f, _ := v.Current()
	return "path", f.Path
}

func (v *fileList) Draw(now time.Time, focused bool) []string {
	if v.Refresh(); len(v.Rows) == 0 {
		return v.Message(nil, "no log files", "press o to choose other files")
	}
	return v.DrawRows(nil, focused, func(f logs.File) []widget.Cell { return v.row(v.now, f, now) })
}

func (v *fileList) row(s *logs.Logs, f logs.File, now time.Time) []widget.Cell {
	g := v.Styles.Glyphs
	name, speed, ink := nameIn(s, f.Path), g.Dash, v.Styles.Text
	if f.Path == v.Want.file {
		name = g.Pointer + " " + name
	}
	if !f.RatedAt.IsZero() && now.Sub(f.RatedAt) < 5*time.Second {
		speed = ace.Number(int64(f.PerSecond + 0.5))
	}
	state := string(f.State)
	switch f.State {
	case logfile.Unreadable:
		ink, state = v.Styles.Error, g.Failed+" "+state
	case logfile.Waiting, logfile.Removed, logfile.Same:
		ink = v.Styles.Muted
	case logfile.Truncated:
		ink = v.Styles.Warning
	}
	if f.Truncated > 0 && f.State == logfile.Following {
		state = "truncated " + strconv.Itoa(f.Truncated) + "x"
	}
	return []widget.Cell{{name, v.Styles.LinkedFile(ink, f.Path)}, {console.Bytes(f.Size), v.Styles.Text},
		{speed, v.Styles.Muted}, {state, ink}}
}
