// Package theme holds colours, styles and glyphs by meaning. It is a leaf: it imports
// nothing of the project, and it knows no screen.
//
// A [Theme] is plain data, colours by meaning, as a TOML file holds it. The built-in
// ones are files too, in the folder files; [Load] adds those of a user and names the
// file and line of every mistake. [Theme.Styles] turns a theme into [Styles], which is
// what drawing code is handed. No meaning is carried by colour alone: every status has a
// glyph and a word, selection and focus also change attributes or characters, and a
// theme without any colour works.
package theme

import (
	"strings"
)

// Theme is a set of colours by meaning.
type Theme struct {
	Name string `toml:"name"` // of letters, digits, "-" and "_"; a file may leave it to its own name
	// Base is the theme whose colours stand where a file says nothing, "" for none.
	Base string `toml:"base"`
	// Background is what the terminal's own background is assumed to be. It is not
	// painted: tests measure contrast against it.
	Background Color  `toml:"background"`
	Colors     Colors `toml:"colors"`
}

// Colors names a theme's colours by what they mean.
type Colors struct {
	Text     Color `toml:"text"`
	Muted    Color `toml:"muted"`  // secondary text: labels, times
	Accent   Color `toml:"accent"` // what can be acted on: keys, the focused title
	Border   Color `toml:"border"`
	Focus    Color `toml:"focus"` // the border of the focused pane
	SelectFG Color `toml:"select_fg"`
	SelectBG Color `toml:"select_bg"`
	BarFG    Color `toml:"bar_fg"` // header
	BarBG    Color `toml:"bar_bg"`

	Running   Color `toml:"running"`
	Success   Color `toml:"success"`
	Wrong     Color `toml:"wrong"`
	Failed    Color `toml:"failed"`
	Cancelled Color `toml:"cancelled"`
	Timeout   Color `toml:"timeout"`
	Retrying  Color `toml:"retrying"`

	Added   Color `toml:"added"`
	Updated Color `toml:"updated"`
	Removed Color `toml:"removed"`
	Tagged  Color `toml:"tagged"`

	Warning Color `toml:"warning"`
	Error   Color `toml:"error"`

	// Series are of the curves of a plot, one beside the other.
	Series1 Color `toml:"series_1"`
	Series2 Color `toml:"series_2"`
	Series3 Color `toml:"series_3"`
	Series4 Color `toml:"series_4"`
	Series5 Color `toml:"series_5"`
	Series6 Color `toml:"series_6"`
}

// Dark is the theme for dark backgrounds.
func Dark() Theme { return builtin("dark") }

// Light is the theme for light backgrounds.
func Light() Theme { return builtin("light") }

// NoColor is the theme without colours: only bold, faint, underlined and reversed text.
func NoColor() Theme { return builtin("no-color") }

// New is the built-in theme for a dark or light background, or the one without
// colours, as styles with Unicode glyphs.
func New(dark, noColor bool) Styles { return Usual(dark, noColor).Styles(Unicode()) }

// FromEnv is [New] with what the environment says of colours and characters.
func FromEnv(dark bool, getenv func(string) string) Styles {
	return Usual(dark, WantsNoColor(getenv)).Styles(GlyphsFor(getenv))
}

// Usual is the built-in theme where nobody chose one.
func Usual(dark, noColor bool) Theme {
	switch {
	case noColor:
		return NoColor()
	case dark:
		return Dark()
	}
	return Light()
}

// GlyphsFor is the set of characters that the environment's locale can show.
func GlyphsFor(getenv func(string) string) Glyphs {
	if HasUTF8(getenv) {
		return Unicode()
	}
	return ASCII()
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
