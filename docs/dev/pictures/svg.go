package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hinshun/vt10x"
)

// Size of a cell in pixels: the width of a character of most monospaced fonts at fontSize.
const (
	fontSize   = 14
	cellWidth  = 8.43
	cellHeight = 17
	baseline   = 13
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
	edge       string
	ansi       [16]string
}

var (
	dark = palette{"#d4d4d8", "#16161e", "#3b3b48", [16]string{"#16161e", "#f7768e", "#9ece6a", "#e0af68",
		"#7aa2f7",
		"#bb9af7", "#7dcfff", "#c0caf5", "#565f89", "#f7768e", "#9ece6a", "#e0af68", "#7aa2f7", "#bb9af7",
		"#7dcfff",
		"#ffffff"}}
	// vt10x takes #000000 for color 0, and in bold for color 8.
	light = palette{"#27272a", "#fcfcfa", "#d4d4d8", [16]string{"#000000", "#b4232f", "#2f6f2f", "#8a5a00",
		"#1f4fa8",
		"#7a3e9d", "#0f6f80", "#71717a", "#000000", "#b4232f", "#2f6f2f", "#8a5a00", "#1f4fa8", "#7a3e9d",
		"#0f6f80",
		"#09090b"}}
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

// drawing collects the parts of a picture.
type drawing struct {
	palette     *palette
	backgrounds art
	lines       art
	texts       strings.Builder
	styles      []string // declarations in CSS; the class of a style is its index
}

// svg draws the screen of a terminal.
func svg(screen vt10x.View, p *palette, title string) []byte {
	columns, rows := screen.Size()
	d := &drawing{palette: p}
	for y := range rows {
		for x := 0; x < columns; {
			x = d.span(screen, x, y)
		}
	}
	var out strings.Builder
	width := int(float64(columns)*cellWidth) + 2*margin
	height := rows*cellHeight + 2*margin
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&out, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&out, `<style>text{font:%dpx "DejaVu Sans Mono",Menlo,ui-monospace,"SF Mono",Consolas,monospace;`+
		"white-space:pre}", fontSize)
	for class, style := range d.styles {
		fmt.Fprintf(&out, ".s%d{%s}", class, style)
	}
	out.WriteString("</style>\n")
	fmt.Fprintf(&out, `<rect x=".5" y=".5" width="%d" height="%d" rx="6" fill="%s" stroke="%s"/>`+"\n",
		width-1, height-1, p.background, p.edge)
	d.backgrounds.write(&out)
	d.lines.write(&out)
	out.WriteString(d.texts.String())
	out.WriteString("</svg>\n")
	return []byte(out.String())
}

// span draws the cells from x on that have one style and returns the column after them.
func (d *drawing) span(screen vt10x.View, x, y int) int {
	const modes = underline | bold | italic
	columns, _ := screen.Size()
	first := screen.Cell(x, y)
	fill := d.palette.color(first.FG)
	words := words{class: d.class(fill, first.Mode), y: y}
	for ; x < columns; x++ {
		cell := screen.Cell(x, y)
		if cell.FG != first.FG || cell.BG != first.BG || cell.Mode&modes != first.Mode&modes {
			break
		}
		left := margin + float64(x)*cellWidth
		top := margin + float64(y)*cellHeight
		if cell.BG != vt10x.DefaultBG {
			d.backgrounds.add(ink{fill: d.palette.color(cell.BG)}, rect{left, top, cellWidth, cellHeight})
		}
		char := max(cell.Char, ' ')
		if d.lines.draw(char, fill, left, top) {
			char = ' '
		}
		words.add(&d.texts, x, char)
	}
	words.end(&d.texts)
	return x
}

// class returns the class of a style.
func (d *drawing) class(fill string, mode int16) int {
	style := "fill:" + fill
	if mode&bold != 0 {
		style += ";font-weight:bold"
	}
	if mode&italic != 0 {
		style += ";font-style:italic"
	}
	if mode&underline != 0 {
		style += ";text-decoration:underline"
	}
	if i := slices.Index(d.styles, style); i >= 0 {
		return i
	}
	d.styles = append(d.styles, style)
	return len(d.styles) - 1
}

// words writes text of one style. A new element begins after two spaces, and at every character that may come
// from another font and be wider than a cell.
type words struct {
	class int
	x, y  int
	text  []rune
}

func (w *words) add(out *strings.Builder, x int, char rune) {
	foreign := char > '~'
	if foreign || char == ' ' && (len(w.text) == 0 || w.text[len(w.text)-1] == ' ') {
		w.end(out)
	}
	if char == ' ' && len(w.text) == 0 {
		return
	}
	if len(w.text) == 0 {
		w.x = x
	}
	w.text = append(w.text, char)
	if foreign {
		w.end(out)
	}
}

// end writes the element.
func (w *words) end(out *strings.Builder) {
	text := strings.TrimRight(string(w.text), " ")
	w.text = w.text[:0]
	if text == "" {
		return
	}
	length := ""
	if n := utf8.RuneCountInString(text); n > 1 {
		length = fmt.Sprintf(` textLength="%s"`, number(float64(n)*cellWidth))
	}
	fmt.Fprintf(out, `<text class="s%d" x="%s" y="%d"%s>%s</text>`+"\n", w.class,
		number(margin+float64(w.x)*cellWidth), margin+w.y*cellHeight+baseline, length,
		html.EscapeString(text))
}

// number returns a coordinate with at most two decimals.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// write stores a picture under its name, as a whole or not at all.
func write(dir, name string, data []byte) error {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".tmp", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
