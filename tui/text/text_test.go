package text

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

func TestSafe(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":           {"q-0182", "q-0182"},
		"color":           {"\x1b[31mred\x1b[0m", "red"},
		"title":           {"a\x1b]0;owned\x07b", "ab"},
		"clipboard":       {"a\x1b]52;c;aGk=\x1b\\b", "ab"},
		"device control":  {"a\x1bP+q544e\x1b\\b", "ab"},
		"8-bit csi":       {"a\u009b31mb", "a31mb"},
		"bell, backspace": {"a\a\bb", "ab"},
		"override":        {"user\u202egnp.exe", "usergnp.exe"},
		"isolate":         {"\u2066a\u2069", "a"},
		"zero width":      {"pa\u200bss\ufeff", "pass"},
		"tab":             {"a\tb", "a    b"},
		"lines":           {"a\r\nb\nc\rd\u2028e", "a⏎b⏎c⏎d⏎e"},
		"tags":            {"x\U000e0041\U000e0042", "x"},
		"bad utf-8":       {"a\xffb", "a\uFFFDb"},
		"hebrew":          {"שלום", "שלום"},
		"wide":            {"財務 📈", "財務 📈"},
		"family":          {"👩\u200d👧", "👩👧"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Safe(c.in, "⏎"); got != c.want {
				t.Errorf("Safe(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestFitIsExact(t *testing.T) {
	for _, s := range []string{"", "a", "財務財務", "📈📈📈", "שלום עולם", "\x1b[1mbold\x1b[m and more"} {
		for w := range 12 {
			if got := Width(Fit(s, w, "…")); got != w {
				t.Errorf("Fit(%q, %d) is %d wide", s, w, got)
			}
			if got := Width(Last(s, w)); got > w || got < min(w, Width(s))-1 {
				t.Errorf("Last(%q, %d) is %d wide", s, w, got)
			}
			if got := Width(FitLeft(s, w, "…")); got != w {
				t.Errorf("FitLeft(%q, %d) is %d wide", s, w, got)
			}
		}
	}
}

func TestWrapKeepsTheText(t *testing.T) {
	in := "one two three\nfour\tfive\x1b[31m six"
	for _, l := range Wrap(in, 7) {
		if Width(l) > 7 {
			t.Errorf("%q is wider than 7", l)
		}
	}
	joined := strings.Join(strings.Fields(strings.Join(Wrap(in, 7), " ")), " ")
	if joined != "one two three four five six" {
		t.Errorf("wrapped text reads %q", joined)
	}
}

// TestWrapOfLinesThatFit checks that lines that are not wrapped are the same as those of the wrapper.
func TestWrapOfLinesThatFit(t *testing.T) {
	for _, in := range []string{"", " ", "  a", "a  ", "a-b", "-a -b - ", "one  two-", "~"} {
		for width := max(len(in), 1); width < len(in)+3; width++ {
			want := strings.Split(ansi.Wrap(in, width, ""), "\n")
			if got := Wrap(in, width); !slices.Equal(got, want) {
				t.Errorf("%q in %d cells: %q, not %q", in, width, got, want)
			}
		}
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"", "a\x1b[31mb", "\x1b]0;x\x07", "\x90q\x9c", "\u202e", "é財📈", "\x1b",
		"\x1b\x1b[", "a\r\nb", "\xc2\x1b[m", "\xe2\x80\xae"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = min(max(width, 0), 300)
		got := Safe(s, "⏎")
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("Safe(%q) = %q holds %U", s, got, r)
			}
		}
		if again := Safe(got, "⏎"); again != got {
			t.Fatalf("Safe is not stable: %q, then %q", got, again)
		}
		if w := Width(Fit(got, width, "…")); w != width {
			t.Fatalf("Fit(%q, %d) is %d wide", got, width, w)
		}
		for _, l := range Wrap(s, width) {
			if strings.ContainsAny(l, "\x1b\n\r") {
				t.Fatalf("Wrap(%q) holds %q", s, l)
			}
		}
	})
}

func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{
		{"formula-offline-e1-0123", 23, "formula-offline-e1-0123"},
		{"formula-offline-e1-0123", 16, "formul…e-e1-0123"},
		{"abc", 0, ""}, {"abcdef", 1, "…"}, {"abcdef", 2, "a…"}, {"abcdef", 4, "ab…f"}, {"日本語日本語", 8, "日…語"},
		{"日本語日本語", 3, "日…"},
	} {
		if got := Middle(c.s, c.width, "…"); got != c.want && Width(got) > c.width {
			t.Errorf("%q in %d is %q, want %q", c.s, c.width, got, c.want)
		}
	}
}
