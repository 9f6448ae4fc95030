// Package theme holds colours, styles and glyphs by meaning. It is a leaf: it imports
// nothing of the project, and it knows no screen.
//
// A [Theme] is plain data, colour names by meaning, so that a file can hold one.
// [Theme.Styles] turns it into [Styles], which is what drawing code is handed. No
// meaning is carried by colour alone: every status has a glyph and a word, selection
// and focus also change attributes or characters, and a theme without any colour works.
package theme

import (
	"strings"
)

// Theme is a set of colours by meaning. A colour is "#rrggbb", an index "0" to "255"
// of the terminal's palette, or "" for the terminal's own.
type Theme struct {
	Name   string `json:"name"`
	Colors Colors `json:"colors"`
}

// Colors names a theme's colours by what they mean.
type Colors struct {
	Text     string `json:"text"`
	Muted    string `json:"muted"`  // secondary text: labels, times
	Accent   string `json:"accent"` // what can be acted on: keys, the focused title
	Border   string `json:"border"`
	Focus    string `json:"focus"` // the border of the focused pane
	SelectFG string `json:"select_fg"`
	SelectBG string `json:"select_bg"`
	BarFG    string `json:"bar_fg"` // header
	BarBG    string `json:"bar_bg"`

	Running   string `json:"running"`
	Success   string `json:"success"`
	Wrong     string `json:"wrong"`
	Failed    string `json:"failed"`
	Cancelled string `json:"cancelled"`
	Timeout   string `json:"timeout"`
	Retrying  string `json:"retrying"`

	Added   string `json:"added"`
	Updated string `json:"updated"`
	Removed string `json:"removed"`
	Tagged  string `json:"tagged"`

	Warning string `json:"warning"`
	Error   string `json:"error"`
}

// Dark is the theme for dark backgrounds.
func Dark() Theme {
	return Theme{"dark", Colors{
		Text: "", Muted: "245", Accent: "#7dcfff", Border: "240", Focus: "#7dcfff",
		SelectFG: "#ffffff", SelectBG: "#2f4f74", BarFG: "#e6e6e6", BarBG: "236",
		Running: "#7dcfff", Success: "#8fd16f", Wrong: "#f2a65a", Failed: "#ff6b6b",
		Cancelled: "245", Timeout: "#d79bff", Retrying: "#ffd75f",
		Added: "#8fd16f", Updated: "#ffd75f", Removed: "#ff6b6b", Tagged: "#7dcfff",
		Warning: "#ffd75f", Error: "#ff6b6b",
	}}
}

// Light is the theme for light backgrounds.
func Light() Theme {
	return Theme{"light", Colors{
		Text: "", Muted: "241", Accent: "#005f9e", Border: "250", Focus: "#005f9e",
		SelectFG: "#000000", SelectBG: "#cfe3f7", BarFG: "#202020", BarBG: "254",
		Running: "#005f9e", Success: "#2d7d1f", Wrong: "#a85400", Failed: "#b3001b",
		Cancelled: "241", Timeout: "#7b2fa8", Retrying: "#8a6100",
		Added: "#2d7d1f", Updated: "#8a6100", Removed: "#b3001b", Tagged: "#005f9e",
		Warning: "#8a6100", Error: "#b3001b",
	}}
}

// NoColor is the theme without colours: only bold, faint, underlined and reversed text.
func NoColor() Theme { return Theme{Name: "no-color"} }

// New is the built-in theme for a dark or light background, or the one without
// colours, as styles with Unicode glyphs.
func New(dark, noColor bool) Styles { return builtIn(dark, noColor).Styles(Unicode()) }

// FromEnv is [New] with what the environment says of colours and characters.
func FromEnv(dark bool, getenv func(string) string) Styles {
	g := ASCII()
	if HasUTF8(getenv) {
		g = Unicode()
	}
	return builtIn(dark, WantsNoColor(getenv)).Styles(g)
}

func builtIn(dark, noColor bool) Theme {
	switch {
	case noColor:
		return NoColor()
	case dark:
		return Dark()
	}
	return Light()
}

// WantsNoColor tells whether the environment asks for no colours: NO_COLOR set to
// anything (https://no-color.org), or a terminal that has none.
func WantsNoColor(getenv func(string) string) bool {
	return getenv("NO_COLOR") != "" || getenv("TERM") == "dumb"
}

// HasUTF8 tells whether the environment's locale is a UTF-8 one. LC_ALL wins over
// LC_CTYPE, which wins over LANG, as POSIX has it.
func HasUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
