package console

import (
	"acescope/engine/ace"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui/text"
)

// Reading returns how far transcripts are read, "" once all of them are.
func Reading(t *sessions.Transcripts, g theme.Glyphs) string {
	if t == nil || t.Progress.Scanned.IsZero() {
		return "looking for transcripts" + g.Ellipsis
	}
	p := t.Progress
	if p.Done >= p.Files {
		return ""
	}
	line := "reading " + ace.Number(p.Done) + " of " + ace.Number(p.Files)
	if p.Rate() > 0 {
		line += ", " + Bytes(int64(p.Rate())) + "/s"
	}
	return line
}

// Searched returns the lines that say where transcripts were searched for.
func Searched(dirs []string) []string {
	if len(dirs) == 0 {
		return []string{transcripts.NoHome}
	}
	lines := []string{"searched for transcripts in"}
	for _, dir := range dirs {
		lines = append(lines, text.Safe(dir, " "))
	}
	return lines
}
