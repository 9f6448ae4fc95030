package widget

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"acescope/engine/ace"
)

// Axis describes how the values on one axis of a plot are scaled and formatted.
type Axis struct {
	Format func(v, step float64) string
	Whole  bool    // values are counts: no tick between two of them
	Time   bool    // values are seconds
	Zero   bool    // the axis begins at 0
	Most   float64 // ticks lie between 0 and Most; 0 for no bounds
	MinLen float64 // minimum length of the axis
	Unit   string  // shown at the first tick
}

// interval is a range of values.
type interval struct{ low, high float64 }

func newSpan() interval { return interval{math.Inf(1), math.Inf(-1)} }

func (s *interval) add(v float64) { s.low, s.high = min(s.low, v), max(s.high, v) }

// wider returns the interval, made wider if its length is 0.
func (s interval) wider() interval {
	if s.high > s.low {
		return s
	}
	by := max(math.Abs(s.low)/10, 1e-6)
	return interval{s.low - by, s.high + by}
}

// scale maps a range of values onto cells or dots.
type scale struct{ low, high, step float64 }

// scale returns a scale with round ends that contains the interval and has about ticks ticks.
func (a Axis) scale(s interval, ticks int) scale {
	if a.Zero {
		s.add(0)
	}
	if s.low == s.high && a.Whole {
		s.high++
	}
	if missing := a.MinLen - (s.high - s.low); missing > 0 {
		s.low, s.high = s.low-missing/2, s.high+missing/2
	}
	s = s.wider()
	if a.Most > 0 {
		s.low, s.high = max(s.low, 0), min(s.high, a.Most)
	}
	step := a.step(s, ticks)
	out := scale{math.Floor(s.low/step+1e-9) * step, math.Ceil(s.high/step-1e-9) * step, step}
	if a.Most > 0 {
		out.high = min(out.high, a.Most)
	}
	return out
}

// step returns the smallest round distance that gives at most ticks ticks.
func (a Axis) step(s interval, ticks int) float64 {
	raw := (s.high - s.low) / float64(ticks)
	if a.Time {
		for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400,
			28800, 86400} {
			if step >= raw {
				return step
			}
		}
	}
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, times := range []float64{1, 2, 5, 10} {
		if step := times * unit; step >= raw*(1-1e-9) && (!a.Whole || step >= 1) {
			return step
		}
	}
	return max(10*unit, 1)
}

// ticks returns the multiples of the step within the scale.
func (s scale) ticks() []float64 {
	var out []float64
	for k := int64(math.Ceil(s.low/s.step - 1e-9)); float64(k)*s.step <= s.high+s.step*1e-9; k++ {
		out = append(out, float64(k)*s.step)
	}
	return out
}

// at returns the index of the cell, of n, that contains a value. A value outside is in the first or the last
// cell.
func (s scale) at(v float64, n int) int {
	return Clamp(int(math.Round((v-s.low)/(s.high-s.low)*float64(n-1))), 0, n-1)
}

// digits returns the number of decimals that distinguish ticks of a step.
func digits(step float64) int { return Clamp(int(math.Ceil(-math.Log10(step)-1e-9)), 0, 9) }

func PercentTick(v, step float64) string {
	return strconv.FormatFloat(v*100, 'f', digits(step*100), 64) + "%"
}

// CountTick formats a count; thousands are abbreviated if the step allows it.
func CountTick(v, step float64) string {
	if step >= 1000 && v != 0 {
		return strconv.FormatFloat(v/1000, 'f', digits(step/1000), 64) + "k"
	}
	if step < 1 {
		return strconv.FormatFloat(v, 'f', digits(step), 64)
	}
	return ace.Number(int64(math.Round(v)))
}

func DollarTick(v, step float64) string {
	return "$" + strconv.FormatFloat(v, 'f', max(digits(step), 2), 64)
}

func TimeTick(v, step float64) string {
	d := time.Duration(math.Round(v)) * time.Second
	switch {
	case d == 0 || d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour && step < 60 && d%time.Minute != 0:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case step < 3600:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return strconv.Itoa(int(d/time.Hour)) + "h"
}
