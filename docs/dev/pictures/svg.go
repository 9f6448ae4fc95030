package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"

	"github.com/hinshun/vt10x"
)

// Size of a cell in pixels. The lines of boxes touch at this height in the usual monospaced fonts.
const (
	cellWidth  = 8.4
	cellHeight = 16.5
	margin     = 8
)

// Modes of a glyph, which vt10x does not export.
const (
	underline = 1 << 1
	bold      = 1 << 2
	italic    = 1 << 4
)

// palette holds the colors of a picture: those of a terminal with this background.
type palette struct {
	text       string
	background string
	ansi       [16]string
}

var (
	dark = palette{"#d4d4d8", "#16161e", [16]string{"#16161e", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7",
		"#7dcfff", "#c0caf5", "#565f89", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7", "#7dcfff", "#ffffff"}}
	light = palette{"#27272a", "#fcfcfa", [16]string{"#27272a", "#b4232f", "#2f6f2f", "#8a5a00", "#1f4fa8", "#7a3e9d",
		"#0f6f80", "#71717a", "#8b8b94", "#b4232f", "#2f6f2f", "#8a5a00", "#1f4fa8", "#7a3e9d", "#0f6f80", "#09090b"}}
)

// color returns the CSS color of a terminal's color.
func (p *palette) color(c vt10x.Color) string {
	switch {
	case c == vt10x.DefaultFG:
		return p.text
	case c == vt10x.DefaultBG:
		return p.background
	case c < 16:
		return p.ansi[c]
	case c < 232:
		steps := [6]int{0, 95, 135, 175, 215, 255}
		n := int(c - 16)
		return fmt.Sprintf("#%02x%02x%02x", steps[n/36], steps[n/6%6], steps[n%6])
	case c < 256:
		gray := 8 + 10*int(c-232)
		return fmt.Sprintf("#%02x%02x%02x", gray, gray, gray)
	}
	return fmt.Sprintf("#%06x", uint32(c))
}

// svg draws the screen of a terminal.
func svg(screen vt10x.View, p *palette, title string) []byte {
	columns, rows := screen.Size()
	width := float64(columns)*cellWidth + 2*margin
	height := float64(rows)*cellHeight + 2*margin
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&out, "<title>%s</title>\n", html.EscapeString(title))
	out.WriteString(`<style>text{font:14px ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;` +
		"white-space:pre}</style>\n")
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", p.background)
	for y := range rows {
		for x := 0; x < columns; {
			x = writeSpan(&out, screen, p, x, y)
		}
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// writeSpan draws the cells from x on that have one style and returns the column after them.
func writeSpan(out *bytes.Buffer, screen vt10x.View, p *palette, x, y int) int {
	columns, _ := screen.Size()
	first := screen.Cell(x, y)
	var text strings.Builder
	end := x
	for ; end < columns; end++ {
		cell := screen.Cell(end, y)
		if cell.FG != first.FG || cell.BG != first.BG || cell.Mode != first.Mode {
			break
		}
		text.WriteRune(max(cell.Char, ' '))
	}
	left := margin + float64(x)*cellWidth
	top := margin + float64(y)*cellHeight
	length := float64(end-x) * cellWidth
	if first.BG != vt10x.DefaultBG {
		fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n",
			left, top, length, cellHeight, p.color(first.BG))
	}
	if strings.TrimSpace(text.String()) != "" {
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" textLength="%.1f" fill="%s"%s>%s</text>`+"\n",
			left, top+12.5, length, p.color(first.FG), style(first.Mode), html.EscapeString(text.String()))
	}
	return end
}

func style(mode int16) string {
	var s string
	if mode&bold != 0 {
		s += ` font-weight="bold"`
	}
	if mode&italic != 0 {
		s += ` font-style="italic"`
	}
	if mode&underline != 0 {
		s += ` text-decoration="underline"`
	}
	return s
}

// write stores a picture under its name, as a whole or not at all.
func write(dir, name string, data []byte) error {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".tmp", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
