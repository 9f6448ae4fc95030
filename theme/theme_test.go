package theme

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

func TestNoColorThemeHasNoColor(t *testing.T) {
	v := reflect.ValueOf(New(true, true))
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Type != reflect.TypeFor[Ink]() {
			continue
		}
		ink := v.FieldByIndex(f.Index).Interface().(Ink)
		seq, _, _ := strings.Cut(strings.TrimPrefix(ink.Paint("x"), "\x1b["), "m")
		for _, p := range strings.Split(seq, ";") {
			if p != "x" && p != "1" && p != "2" && p != "4" && p != "7" {
				t.Errorf("%s paints with %q", f.Name, ink.Paint("x"))
			}
		}
	}
}

// TestStatusesDifferWithoutColor checks that each status has its own glyph and word.
func TestStatusesDifferWithoutColor(t *testing.T) {
	for _, g := range []Glyphs{Unicode(), ASCII()} {
		s := NoColor().Styles(g)
		seen := map[string]string{}
		for _, word := range Statuses() {
			m := s.Status(word)
			if other, dup := seen[m.Glyph]; dup {
				t.Errorf("%s and %s share %q", word, other, m.Glyph)
			}
			if m.Word != strings.ReplaceAll(word, "_", " ") || m.Glyph == s.Glyphs.Unknown {
				t.Errorf("%s is marked %q %q", word, m.Glyph, m.Word)
			}
			seen[m.Glyph] = word
		}
		if _, dup := seen[s.Retry().Glyph]; dup {
			t.Error("a retry looks like a status")
		}
	}
}

func TestGlyphs(t *testing.T) {
	check := func(set string, g any, ascii bool) {
		v := reflect.ValueOf(g)
		for _, f := range reflect.VisibleFields(v.Type()) {
			name := set + "." + f.Name
			s, ok := v.FieldByIndex(f.Index).Interface().(string)
			if !ok {
				continue
			}
			if ascii && (len(s) != utf8.RuneCountInString(s)) {
				t.Errorf("%s is %q, which is not ASCII", name, s)
			}
			if n := utf8.RuneCountInString(s); name == "unicode.Levels" && ansi.StringWidth(s) == n &&
				ansi.StringWidthWc(s) == n {
				continue // a row of glyphs, each one cell wide
			}
			if !ascii && (ansi.StringWidth(s) != 1 || ansi.StringWidthWc(s) != 1) {
				t.Errorf("%s is %q, %d or %d cells wide", name, s, ansi.StringWidth(s), ansi.StringWidthWc(s))
			}
		}
	}
	check("unicode", Unicode(), false)
	check("unicode.plain", Unicode().Plain, false)
	check("unicode.heavy", Unicode().Heavy, false)
	check("ascii", ASCII(), true)
	check("ascii.plain", ASCII().Plain, true)
	check("ascii.heavy", ASCII().Heavy, true)
}

func TestEnvironment(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	if !WantsNoColor(env("NO_COLOR", "1")) || !WantsNoColor(env("TERM", "dumb")) ||
		WantsNoColor(env("TERM", "xterm")) {
		t.Error("NO_COLOR is misread")
	}
	for _, c := range []struct {
		env  func(string) string
		want bool
	}{
		{env(), false}, {env("LANG", "de_DE.UTF-8"), true}, {env("LANG", "C"), false},
		{env("LC_ALL", "C", "LANG", "en_US.UTF-8"), false},
		{env("LC_CTYPE", "C.utf8", "LANG", "C"), true},
	} {
		if got := HasUTF8(c.env); got != c.want {
			t.Errorf("HasUTF8 is %v, want %v", got, c.want)
		}
	}
}

func TestInk(t *testing.T) {
	if got := (Ink{}).Paint("x"); got != "x" {
		t.Errorf("no ink paints %q", got)
	}
	if got := NewInk("#ff0000", "", Bold).Paint("x"); got != "\x1b[1;38;2;255;0;0mx\x1b[m" {
		t.Errorf("red ink paints %q", got)
	}
	if got := NewInk("", "", 0).Over(NewInk("1", "236",
		Bold)).Paint("x"); got != "\x1b[1;31;48;5;236mx\x1b[m" {
		t.Errorf("plain over red paints %q", got)
	}
}

func TestFromEnvChoosesGlyphs(t *testing.T) {
	for locale, want := range map[string]string{"C": ASCII().Success, "en_GB.UTF-8": Unicode().Success} {
		s := FromEnv(true, func(name string) string {
			return map[string]string{"LC_ALL": locale, "TERM": "xterm"}[name]
		})
		if s.Glyphs.Success != want {
			t.Errorf("%s: %q, want %q", locale, s.Glyphs.Success, want)
		}
	}
}
