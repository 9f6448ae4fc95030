package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// rect is a filled rectangle in pixels.
type rect struct{ x, y, width, height float64 }

// ink is the color of rectangles, as attributes of SVG.
type ink struct{ fill, opacity string }

// art draws lines, bars and braille characters as rectangles: as text they leave gaps in some browsers.
type art struct {
	inks  []ink // in the order of their first use
	rects map[ink][]rect
}

func (a *art) add(i ink, r rect) {
	if a.rects == nil {
		a.rects = map[ink][]rect{}
	}
	if a.rects[i] == nil {
		a.inks = append(a.inks, i)
	}
	a.rects[i] = append(a.rects[i], r)
}

// write writes one path for each ink.
func (a *art) write(out *strings.Builder) {
	for _, i := range a.inks {
		fmt.Fprintf(out, `<path fill="%s"%s d="`, i.fill, i.opacity)
		for _, r := range merge(a.rects[i]) {
			fmt.Fprintf(out, "M%s %sh%sv%sh-%sz", number(r.x), number(r.y), number(r.width), number(r.height),
				number(r.width))
		}
		out.WriteString("\"/>\n")
	}
}

// rounding is the gap between two rectangles that touch.
const rounding = 0.01

// merge joins rectangles that touch in a row, then in a column.
func merge(all []rect) []rect {
	slices.SortFunc(all, func(a, b rect) int {
		return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.height, b.height), cmp.Compare(a.x, b.x))
	})
	all = join(all, func(a *rect, b rect) bool {
		fits := a.y == b.y && a.height == b.height && b.x < a.x+a.width+rounding
		if fits {
			a.width = max(a.width, b.x+b.width-a.x)
		}
		return fits
	})
	slices.SortFunc(all, func(a, b rect) int {
		return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.width, b.width), cmp.Compare(a.y, b.y))
	})
	return join(all, func(a *rect, b rect) bool {
		fits := a.x == b.x && a.width == b.width && b.y < a.y+a.height+rounding
		if fits {
			a.height = max(a.height, b.y+b.height-a.y)
		}
		return fits
	})
}

// join removes the rectangles that extend absorbs into the one before.
func join(all []rect, extend func(a *rect, b rect) bool) (out []rect) {
	for _, r := range all {
		if len(out) == 0 || !extend(&out[len(out)-1], r) {
			out = append(out, r)
		}
	}
	return out
}

// draw adds a character that fills or crosses its cell. It returns false for any other.
func (a *art) draw(char rune, fill string, x, y float64) bool {
	solid := ink{fill: fill}
	switch {
	case char >= '▁' && char <= '█':
		height := (cellHeight - 1) * float64(char-'▁'+1) / 8 // a gap separates the bars of two rows
		a.add(solid, rect{x, y + cellHeight - height, cellWidth, height})
	case char >= '▉' && char <= '▏':
		a.add(solid, rect{x, y, cellWidth * float64('▏'-char+1) / 8, cellHeight})
	case char >= '░' && char <= '▓':
		shade := fmt.Sprintf(` fill-opacity=".%d"`, 25*(char-'░'+1))
		a.add(ink{fill, shade}, rect{x, y, cellWidth, cellHeight})
	case char >= '⠀' && char <= '⣿':
		a.dots(solid, char-'⠀', x, y)
	default:
		arms, ok := boxes[char]
		if ok {
			a.cross(solid, arms, x, y)
		}
		return ok
	}
	return true
}

// brailleDots are the column and the row of the dot of each bit.
var brailleDots = [8][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}}

// dots draws a braille character.
func (a *art) dots(i ink, bits rune, x, y float64) {
	const size = 2
	for n, at := range brailleDots {
		if bits&(1<<n) == 0 {
			continue
		}
		a.add(i, rect{x + cellWidth*(0.25+0.5*float64(at[0])) - size/2,
			y + cellHeight*(0.125+0.25*float64(at[1])) - size/2,
			size, size})
	}
}

// boxes are the lines that meet in a character, as their widths in pixels: up, right, down, left.
var boxes = map[rune][4]float64{
	'─': {0, 1, 0, 1}, '│': {1, 0, 1, 0}, '┌': {0, 1, 1, 0}, '┐': {0, 0, 1, 1}, '└': {1, 1, 0, 0},
	'┘': {1, 0, 0, 1},
	'├': {1, 1, 1, 0}, '┤': {1, 0, 1, 1}, '┬': {0, 1, 1, 1}, '┴': {1, 1, 0, 1}, '┼': {1, 1, 1, 1},
	'━': {0, 2, 0, 2}, '┃': {2, 0, 2, 0}, '┏': {0, 2, 2, 0}, '┓': {0, 0, 2, 2}, '┗': {2, 2, 0, 0},
	'┛': {2, 0, 0, 2},
}

// cross draws lines from the sides of a cell across its middle.
func (a *art) cross(i ink, arms [4]float64, x, y float64) {
	up, right, down, left := arms[0], arms[1], arms[2], arms[3]
	middleX := float64(int(x + cellWidth/2))
	middleY := float64(int(y + cellHeight/2))
	half := max(up, right, down, left) / 2
	for _, r := range []rect{
		{middleX - up/2, y, up, middleY + half - y},
		{middleX - down/2, middleY - half, down, y + cellHeight - middleY + half},
		{x, middleY - left/2, middleX + half - x, left},
		{middleX - half, middleY - right/2, x + cellWidth - middleX + half, right},
	} {
		if min(r.width, r.height) > 0 {
			a.add(i, r)
		}
	}
}
