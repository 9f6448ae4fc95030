// Package theme holds colors, styles and glyphs by meaning. It is a leaf: it imports
// nothing of the project and knows no screen.
//
// A [Theme] is plain data: colors by meaning, as a TOML file holds them. The built-in
// themes are files too, in the directory files; [Load] adds those of a user and reports
// the file and line of every mistake. [Theme.Styles] turns a theme into [Styles], which
// drawing code uses. No meaning is carried by color alone: every status has a glyph and
// a word, selection and focus also change attributes or characters, and a theme without
// colors works.
package theme

import (
	"fmt"
	"regexp"
	"strings"
)

// Theme is a set of colors by meaning.
type Theme struct {
	Name string `toml:"name"` // letters, digits, "-" and "_"; defaults to the file's name
	// Base is the theme that supplies the colors that a file leaves out, or "".
	Base string `toml:"base"`
	// Background is the assumed background of the terminal. It is not painted; tests
	// measure contrast against it.
	Background Color  `toml:"background"`
	Colors     Colors `toml:"colors"`
}

// Colors names a theme's colors by what they mean.
type Colors struct {
	TextColors
	PaneColors
	StatusColors
	ChangeColors
	SeriesColors
}

// TextColors are for text in panes and messages.
type TextColors struct {
	Text    Color `toml:"text"`
	Muted   Color `toml:"muted"`  // secondary text: labels, times
	Accent  Color `toml:"accent"` // what can be acted on: keys, the focused title
	Warning Color `toml:"warning"`
	Error   Color `toml:"error"`
}

// PaneColors are for the parts of a screen.
type PaneColors struct {
	Border   Color `toml:"border"`
	Focus    Color `toml:"focus"` // the border of the focused pane
	SelectFG Color `toml:"select_fg"`
	SelectBG Color `toml:"select_bg"`
	BarFG    Color `toml:"bar_fg"` // header
	BarBG    Color `toml:"bar_bg"`
}

// StatusColors are for the statuses of runs.
type StatusColors struct {
	Running  Color `toml:"running"`
	Success  Color `toml:"success"`
	Wrong    Color `toml:"wrong"`
	Failed   Color `toml:"failed"`
	Canceled Color `toml:"canceled"`
	Timeout  Color `toml:"timeout"`
	Retrying Color `toml:"retrying"`
}

// ChangeColors are for operations on a playbook and for differences.
type ChangeColors struct {
	Added   Color `toml:"added"`
	Updated Color `toml:"updated"`
	Removed Color `toml:"removed"`
	Tagged  Color `toml:"tagged"`
}

// SeriesColors are for the curves of a plot.
type SeriesColors struct {
	Series1 Color `toml:"series_1"`
	Series2 Color `toml:"series_2"`
	Series3 Color `toml:"series_3"`
	Series4 Color `toml:"series_4"`
	Series5 Color `toml:"series_5"`
	Series6 Color `toml:"series_6"`
}

// Color is "#rrggbb", an index "0" to "255" of the terminal's palette, or "" for the
// terminal's default. It is a struct because a TOML decoder writes strings without
// calling UnmarshalText.
type Color struct{ code string }

func (c Color) String() string { return c.code }

var colorPattern = regexp.MustCompile(`^(#[0-9a-fA-F]{6}|[01]?[0-9]?[0-9]|2[0-4][0-9]|25[0-5])?$`)

// UnmarshalText accepts a valid color only.
func (c *Color) UnmarshalText(b []byte) error {
	if !colorPattern.Match(b) {
		return fmt.Errorf(`%.40q is not a color: write "#rrggbb", a number from "0" to "255",`+
			` or "" for the terminal's default`, b)
	}
	c.code = string(b)
	return nil
}

// Dark returns the theme for dark backgrounds.
func Dark() Theme { return builtin("dark") }

// Light returns the theme for light backgrounds.
func Light() Theme { return builtin("light") }

// NoColor returns the theme without colors: only bold, faint, underlined and reversed text.
func NoColor() Theme { return builtin("no-color") }

// Default returns the built-in theme for a background, or the one without colors.
func Default(dark, noColor bool) Theme {
	switch {
	case noColor:
		return NoColor()
	case dark:
		return Dark()
	}
	return Light()
}

// New returns the styles of the [Default] theme with Unicode glyphs.
func New(dark, noColor bool) Styles { return Default(dark, noColor).Styles(Unicode()) }

// FromEnv returns the styles of the [Default] theme with the colors and glyphs that the
// environment asks for.
func FromEnv(dark bool, getenv func(string) string) Styles {
	return Default(dark, WantsNoColor(getenv)).Styles(GlyphsFor(getenv))
}

// GlyphsFor returns the glyphs that the environment's locale can show.
func GlyphsFor(getenv func(string) string) Glyphs {
	if HasUTF8(getenv) {
		return Unicode()
	}
	return ASCII()
}

// WantsNoColor reports whether the environment asks for no colors: NO_COLOR is set
// (https://no-color.org), or $TERM is dumb.
func WantsNoColor(getenv func(string) string) bool {
	return getenv("NO_COLOR") != "" || getenv("TERM") == "dumb"
}

// HasUTF8 reports whether the environment's locale uses UTF-8. As POSIX defines, LC_ALL
// wins over LC_CTYPE, which wins over LANG.
func HasUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
