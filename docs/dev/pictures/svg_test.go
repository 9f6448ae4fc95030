package main

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/hinshun/vt10x"
)

// A picture is well-formed. Lines are joined, text keeps its column and style, and a character of another
// font stands alone.
func TestSVG(t *testing.T) {
	screen := vt10x.New(vt10x.WithSize(12, 3))
	const drawn = "┏━━━━━━━━━━┓\r\n┃\x1b[1;38;2;1;2;3ma<b\x1b[m  ✓ ⡇█ ┃\r\n┗━━━━━━━━━━┛"
	if _, err := screen.Write([]byte(drawn)); err != nil {
		t.Fatal(err)
	}
	got := string(svg(screen, &dark, "a & b"))
	if err := xml.Unmarshal([]byte(got), new(struct{})); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"<title>a &amp; b</title>",
		".s1{fill:#010203;font-weight:bold}",
		`<text class="s1" x="16.43" y="38" textLength="25.29">a&lt;b</text>`,
		`<text class="s0" x="58.58" y="38">✓</text>`,
		"h94v2h-94z", // the whole of a horizontal line
		"v36h-2z",    // the whole of a vertical line
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "v2h-2z"); n != 4 {
		t.Errorf("%d dots of a braille character, want 4:\n%s", n, got)
	}
}
