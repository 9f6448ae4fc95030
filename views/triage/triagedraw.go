package triage

import (
	"time"

	"acescope/sources/triage"
	"acescope/tui/text"
	"acescope/tui/widget"
)

func (v *triageList) Draw(now time.Time, focused bool) []string {
	if v.data == nil {
		return widget.Centre([]string{"looking for failures" + v.styles.Glyphs.Ellipsis}, v.width, v.height, v.styles)
	}
	v.arrange()
	head := v.head(now)
	v.list.SetSize(v.width, max(v.height-len(head), 0))
	if v.list.Empty() {
		return widget.Fill(append(head, widget.Centre(v.nothing(), v.width, v.height-len(head), v.styles)...), v.width, v.height)
	}
	return widget.Fill(append(head, v.list.Draw(v.styles, focused, func(at widget.SectionRow, width int, plain bool) string {
		return v.row(at, width, plain, now)
	})...), v.width, v.height)
}

func (v *triageList) nothing() []string {
	switch {
	case v.data.Err != "":
		return nil
	case v.data.Scan.Running:
		return []string{"scanning" + v.styles.Glyphs.Ellipsis}
	case v.data.Since > 0:
		return []string{"no run ended in the last " + spanWord(v.data.Since), "t looks further back"}
	case v.data.Query != "":
		return []string{"no run matches", text.Safe(v.data.Query, " ")}
	}
	return []string{"no runs yet: nothing to find fault with"}
}

// head says what was looked at, how far a scan has come, and why it failed.
func (v *triageList) head(now time.Time) []string {
	s, t := v.styles, v.data
	l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
	ended := widget.HowMany(t.Ended, "ended run")
	if t.More {
		ended = "the newest " + ended
	}
	if t.Since > 0 {
		ended += " in the last " + spanWord(t.Since) + " (t)"
	}
	l.Add(s.Text, " "+ended+", "+text.Count(int64(t.Open))+" open")
	if t.MoreOpen {
		l.Add(s.Warning, " of more")
	}
	dot := " " + s.Glyphs.Dot + " "
	switch {
	case t.Scan.Running:
		l.Add(s.Accent, dot+v.progress(t.Scan))
	case t.Scan.Stopped:
		l.Add(s.Warning, dot+"stopped: c scans again")
	default:
		l.Add(s.Muted, dot+"scanned "+text.Span(now.Sub(t.At))+" ago in "+text.Took(t.Scan.Took))
	}
	if t.More || t.Window != triage.TriageWindow {
		l.Add(s.Muted, dot+"window "+text.Count(int64(t.Window))+" (+ -)")
	}
	lines := []string{l.String(s.Text)}
	if t.Err != "" {
		bad := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
		lines = append(lines, bad.Add(s.Error, " "+s.Glyphs.Failed+" "+text.Safe(t.Err, " ")).String(s.Text))
	}
	return lines
}

func (v *triageList) progress(scan triage.Scan) string {
	say := v.styles.Glyphs.Refresh + " " + scan.Stage
	if scan.Total > 0 {
		say += " " + text.Count(int64(scan.Done)) + "/" + text.Count(int64(scan.Total))
	}
	return say + " (c stops)"
}
