package theme

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Color is "#rrggbb", an index "0" to "255" of the terminal's palette, or "" for the
// terminal's own. It is a struct, and so plain strings do not become colours unchecked:
// a TOML decoder writes into anything that is a string without asking it.
type Color struct{ code string }

func (c Color) String() string { return c.code }

// UnmarshalText takes a colour from a file and refuses what is none.
func (c *Color) UnmarshalText(b []byte) error {
	s := Color{string(b)}
	if _, ok := s.rgb(); s.code != "" && !ok {
		return fmt.Errorf(`%.40q is no colour: write "#rrggbb", a number from "0" to "255", or "" for the terminal's own`, string(b))
	}
	*c = s
	return nil
}

type rgb struct{ r, g, b uint8 }

// rgb is the colour as most terminals show it; the first sixteen are those of xterm.
func (c Color) rgb() (rgb, bool) {
	if hex, ok := strings.CutPrefix(c.code, "#"); ok {
		n, err := strconv.ParseUint(hex, 16, 32)
		return rgb{uint8(n >> 16), uint8(n >> 8), uint8(n)}, err == nil && len(hex) == 6
	}
	if len(c.code) > 3 {
		return rgb{}, false
	}
	n, err := strconv.ParseUint(c.code, 10, 8)
	if err != nil {
		return rgb{}, false
	}
	return indexed(int(n)), true
}

func indexed(n int) rgb {
	switch {
	case n < 16:
		return [16]rgb{{0, 0, 0}, {205, 0, 0}, {0, 205, 0}, {205, 205, 0}, {0, 0, 238}, {205, 0, 205}, {0, 205, 205}, {229, 229, 229},
			{127, 127, 127}, {255, 0, 0}, {0, 255, 0}, {255, 255, 0}, {92, 92, 255}, {255, 0, 255}, {0, 255, 255}, {255, 255, 255}}[n]
	case n >= 232:
		v := uint8(8 + 10*(n-232))
		return rgb{v, v, v}
	}
	level := func(i int) uint8 {
		if i == 0 {
			return 0
		}
		return uint8(55 + 40*i)
	}
	n -= 16
	return rgb{level(n / 36), level(n / 6 % 6), level(n % 6)}
}

// Contrast is the contrast ratio of two colours, 1 to 21, as WCAG 2 defines it. It is 0
// where one of them is the terminal's own.
func Contrast(a, b Color) float64 {
	x, okA := a.rgb()
	y, okB := b.rgb()
	if !okA || !okB {
		return 0
	}
	high, low := luminance(x), luminance(y)
	if high < low {
		high, low = low, high
	}
	return (high + 0.05) / (low + 0.05)
}

func luminance(c rgb) float64 {
	linear := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.r) + 0.7152*linear(c.g) + 0.0722*linear(c.b)
}
