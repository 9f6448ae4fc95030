package theme

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"charm.land/lipgloss/v2"
)

// TestContrast checks that text is legible: WCAG requires a contrast of 4.5, and 7 at its
// highest level. Borders need 1.5.
func TestContrast(t *testing.T) {
	for _, name := range Builtin().Names() {
		th, _ := Builtin().Get(name)
		if name == "no-color" {
			continue
		}
		least := 4.5
		if name == "high-contrast" {
			least = 7
		}
		for field, fg := range colorsOf(th) {
			on, want := map[string]Color{"SelectFG": th.Colors.SelectBG, "BarFG": th.Colors.BarBG}[field],
				least
			switch {
			case strings.HasSuffix(field, "BG") || fg.code == "":
				continue
			case field == "Border":
				want = 1.5
			}
			if on.code == "" {
				on = th.Background
			}
			if got := contrast(fg, on); got < want {
				t.Errorf("%s: %s %s on %s has a contrast of %.2f, want %.1f", name, field, fg, on, got, want)
			}
			if strings.Contains("Running Success Wrong Failed Canceled Timeout Warning Muted Accent", field) {
				if got := contrast(fg, th.Colors.BarBG); got < least-1 {
					t.Errorf("%s: %s %s in the header has a contrast of %.2f, want %.1f", name, field, fg,
						got, least-1)
				}
			}
		}
	}
}

// colorsOf returns a theme's colors by field.
func colorsOf(th Theme) map[string]Color {
	all := map[string]Color{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Colors]()) {
		if !f.Anonymous {
			all[f.Name] = reflect.ValueOf(th.Colors).FieldByIndex(f.Index).Interface().(Color)
		}
	}
	return all
}

// TestSeriesDiffer checks that the colors of neighboring curves are distinguishable.
func TestSeriesDiffer(t *testing.T) {
	for _, name := range Builtin().Names() {
		th, _ := Builtin().Get(name)
		if name == "no-color" {
			continue
		}
		c := th.Colors
		all := []Color{c.Series1, c.Series2, c.Series3, c.Series4, c.Series5, c.Series6}
		for i, a := range all {
			for j, b := range all[:i] {
				r1, g1, b1 := rgb(a)
				r2, g2, b2 := rgb(b)
				if math.Hypot(math.Hypot(r1-r2, g1-g2), b1-b2)*255 < 50 {
					t.Errorf("%s: series_%d %s and series_%d %s are too alike", name, j+1, b, i+1, a)
				}
			}
		}
		s := th.Styles(Unicode())
		if s.Series(0) == s.Series(5) || s.Series(0) != s.Series(6) {
			t.Errorf("%s: the inks of the curves are %v, %v, %v", name, s.Series(0), s.Series(5), s.Series(6))
		}
	}
	if ink := NoColor().Styles(ASCII()).Series(3); ink.Paint("x") != "x" {
		t.Errorf("without colors a curve is painted %q", ink.Paint("x"))
	}
}

// contrast is the contrast ratio of two colors, 1 to 21, as WCAG 2 defines it, or 0 if one
// of them is the terminal's default.
func contrast(a, b Color) float64 {
	if a.code == "" || b.code == "" {
		return 0
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(c Color) float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	r, g, b := rgb(c)
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// rgb is a color as terminals show it, each part from 0 to 1.
func rgb(c Color) (r, g, b float64) {
	x, y, z, _ := lipgloss.Color(c.code).RGBA()
	return float64(x) / 0xffff, float64(y) / 0xffff, float64(z) / 0xffff
}

func TestContrastIsWCAG(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{{"#000000", "#ffffff", 21}, {"#ffffff", "#ffffff", 1}, {"16", "231", 21}, {"#777777", "#ffffff", 4.478},
		{"", "#ffffff", 0}} {
		if got := contrast(Color{c.a}, Color{c.b}); got < c.want-0.01 || got > c.want+0.01 {
			t.Errorf("%s on %s is %.3f, want %.3f", c.a, c.b, got, c.want)
		}
	}
}

// TestBuiltins checks that the built-in themes set every color, so that users can copy them.
func TestBuiltins(t *testing.T) {
	names := Builtin().Names()
	if len(names) < 6 {
		t.Fatalf("only %v are built in", names)
	}
	for _, n := range names {
		data, err := files.ReadFile("files/" + n + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range reflect.VisibleFields(reflect.TypeFor[Colors]()) {
			key := f.Tag.Get("toml")
			if !f.Anonymous && n != "no-color" && !strings.Contains(string(data), "\n"+key+" = ") {
				t.Errorf("%s lacks %s", n, key)
			}
		}
	}
	if th, err := Builtin().Pick(Auto, false); err != nil || th.Name != "light" {
		t.Errorf("auto on a light background is %q, %v", th.Name, err)
	}
	if _, err := Builtin().Pick("neon", true); err == nil || !strings.Contains(err.Error(), "ember") {
		t.Errorf("an unknown theme: %v", err)
	}
}

func TestUserThemes(t *testing.T) {
	set, errs := Load(fstest.MapFS{
		"mine.toml":   {Data: []byte("base = \"dark\"\n[colors]\nsuccess = \"#00ff00\"\ntext = \"7\"\n")},
		"child.toml":  {Data: []byte("name = \"kid\"\nbase = \"mine\"\n[colors]\nfailed = \"\"\n")},
		"light.toml":  {Data: []byte("base = \"light\"\n[colors]\nerror = \"1\"\n")},
		"notes.txt":   {Data: []byte("not a theme")},
		"bad.toml":    {Data: []byte("[colors]\nsuccess = \"#00ff00\"\nfailed = \"rot\"\n")},
		"typo.toml":   {Data: []byte("base = \"dark\"\n\n[colors]\nsucess = \"1\"\n")},
		"broken.toml": {Data: []byte("[colors\n")},
		"lost.toml":   {Data: []byte("base = \"nowhere\"\n")},
		"ring.toml":   {Data: []byte("base = \"gnir\"\n")},
		"gnir.toml":   {Data: []byte("base = \"ring\"\n")},
		"auto.toml":   {Data: []byte("")},
		"huge.toml":   {Data: make([]byte, maxFile+1)},
	}, "/home/me/themes")
	mine, _ := set.Get("mine")
	if mine.Colors.Success.code != "#00ff00" || mine.Colors.Text.code != "7" ||
		mine.Colors.Failed != Dark().Colors.Failed || mine.Base != "dark" {
		t.Errorf("mine is %+v", mine)
	}
	kid, _ := set.Get("kid")
	if kid.Colors.Success.code != "#00ff00" || kid.Colors.Failed.code != "" || kid.Name != "kid" {
		t.Errorf("kid is %+v", kid)
	}
	light, _ := set.Get("light")
	if light.Colors.Error.code != "1" || light.Colors.Accent != Light().Colors.Accent ||
		Light().Colors.Error.code == "1" {
		t.Errorf("light is %+v", light)
	}
	text := errors.Join(errs...).Error()
	for _, want := range []string{`bad.toml:3:`, `"rot" is not a color`,
		`typo.toml:4: unknown key "colors.sucess"`, `broken.toml:1:`,
		`lost.toml: base theme "nowhere" not found`,
		`builds on itself`, `auto.toml: the name "auto"`, `huge.toml: not a theme: larger than 64 KB`,
		"/home/me/themes/"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, name := range []string{"bad", "typo", "broken", "lost", "ring", "gnir", "huge", "auto"} {
		if _, ok := set.Get(name); ok {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, errs := Load(fstest.MapFS{}, "x"); len(errs) > 0 {
		t.Errorf("an empty folder: %v", errs)
	}
}

// FuzzParse checks that every file is either rejected with an error or gives a usable theme.
func FuzzParse(f *testing.F) {
	for _, n := range Builtin().Names() {
		data, _ := files.ReadFile("files/" + n + ".toml")
		f.Add(data)
	}
	f.Add([]byte("base = 3\n[colors]\ntext = \"#12\""))
	f.Add([]byte("[colors]\ntext = '300'\n[[colors.muted]]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		th, err := Parse("x.toml", data, Dark())
		if err != nil {
			for _, l := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(l, "x.toml:") {
					t.Errorf("an error does not name the file: %q", l)
				}
			}
			return
		}
		for _, col := range colorsOf(th) {
			if col.code != "" && lipgloss.Color(col.code) == (lipgloss.NoColor{}) {
				t.Errorf("%q was accepted as a color", col)
			}
		}
		th.Styles(ASCII())
	})
}
