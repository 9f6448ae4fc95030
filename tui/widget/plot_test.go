package widget

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"acescope/theme"
	"acescope/tui/text"
)

// wave is a curve of n points.
func wave(name string, n int, of func(i int) float64) PlotCurve {
	c := PlotCurve{Name: name, Series: len(name)}
	for i := range n {
		c.X, c.Y = append(c.X, float64(i+1)), append(c.Y, of(i))
	}
	return c
}

func somePlots() map[string]Plot {
	counts := Axis{Format: CountTick, Whole: true, Zero: true, Unit: "tasks"}
	learning := func(at float64) func(i int) float64 {
		return func(i int) float64 { return at * (1 - math.Exp(-float64(i)/80)) }
	}
	gap := func(i int) float64 {
		if i < 30 || i > 60 && i < 90 {
			return math.NaN()
		}
		return float64(i)
	}
	return map[string]Plot{
		"two": {Title: "Accuracy", X: counts, Y: Axis{Format: PercentTick, Most: 1, MinLen: 0.1},
			Curves: []PlotCurve{wave("a", 300, learning(0.8)), wave("bb", 200, learning(0.6))}, Legend: true},
		"gap": {Title: "Cost", X: counts, Y: Axis{Format: DollarTick, Zero: true},
			Curves: []PlotCurve{wave("a", 120, gap)}, Legend: true},
		"flat": {Title: "Accuracy", X: counts, Y: Axis{Format: PercentTick, Most: 1, MinLen: 0.1},
			Curves: []PlotCurve{wave("a", 50, func(int) float64 { return 0 })}},
		"one": {Title: "Playbook", X: counts, Y: Axis{Format: CountTick, Whole: true},
			Curves: []PlotCurve{wave("a", 1, func(int) float64 { return 12 })}},
		"none": {Title: "Playbook", X: counts, Y: Axis{Format: CountTick, Whole: true},
			Curves: []PlotCurve{wave("a", 0, nil)}, Empty: "no task has ended yet"},
		"large": {Title: "Operations", X: counts, Y: Axis{Format: CountTick, Whole: true, Zero: true},
			Curves: []PlotCurve{wave("a", 40_000, func(i int) float64 { return float64(3 * i) })}},
		"tiny": {Title: "Cost", X: Axis{Format: TimeTick, Time: true},
			Y: Axis{Format: DollarTick, Zero: true}, Curves: []PlotCurve{wave("a", 900, func(i int) float64 {
				return 1e-4 * float64(i%7)
			})}},
		"many": {Title: "Accuracy", X: counts, Y: Axis{Format: PercentTick, Most: 1, MinLen: 0.1},
			Curves: manyCurves(8, learning), Legend: true},
	}
}

func manyCurves(n int, of func(float64) func(int) float64) (out []PlotCurve) {
	for i := range n {
		c := wave(fmt.Sprintf("experiment-%d", i), 200, of(float64(i+2)/10))
		c.Series, c.Dashed = i, i%2 == 1
		out = append(out, c)
	}
	return out
}

func TestPlots(t *testing.T) {
	s := theme.New(true, true)
	for name, p := range somePlots() {
		for _, size := range [][2]int{{30, 6}, {76, 16}, {190, 40}} {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				golden.RequireEqual(t, ansi.Strip(strings.Join(p.Draw(size[0], size[1], s), "\n")+"\n"))
			})
		}
	}
}

func TestPlotsFitEverySize(t *testing.T) {
	t.Parallel()
	for _, s := range []theme.Styles{theme.New(true, false), theme.NoColor().Styles(theme.ASCII())} {
		for name, p := range somePlots() {
			for w := 1; w <= 190; w += 3 {
				for _, h := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 40} {
					lines := p.Draw(w, h, s)
					if len(lines) != h {
						t.Fatalf("%s at %dx%d has %d lines", name, w, h, len(lines))
					}
					for _, l := range lines {
						if text.Width(l) != w {
							t.Fatalf("%s at %dx%d has a line of %d: %q", name, w, h, text.Width(l),
								ansi.Strip(l))
						}
					}
				}
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis     Axis
		interval interval
		n        int
		want     string
	}{
		{Axis{Format: PercentTick, Most: 1, MinLen: 0.1}, interval{0.12, 0.97}, 4, "0% 50% 100%"},
		{Axis{Format: PercentTick, Most: 1, MinLen: 0.1}, interval{0, 0}, 4, "0% 2% 4% 6%"},
		{Axis{Format: CountTick, Whole: true}, interval{3, 3}, 4, "3 4"},
		{Axis{Format: CountTick, Whole: true}, interval{0, 12_000}, 4, "0 5k 10k 15k"},
		{Axis{Format: DollarTick, Zero: true}, interval{0.0011, 0.0024}, 4, "$0.000 $0.001 $0.002 $0.003"},
		{Axis{Format: TimeTick, Time: true}, interval{0, 100}, 4, "0s 30s 1m 1m30s 2m"},
		{Axis{Format: TimeTick, Time: true}, interval{0, 9000}, 4, "0s 1h 2h 3h"},
	} {
		sc := c.axis.scale(c.interval, c.n)
		var got []string
		for _, v := range sc.ticks() {
			got = append(got, c.axis.Format(v, sc.step))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v in %d ticks: %s, want %s", c.interval, c.n, strings.Join(got, " "), c.want)
		}
	}
}
