package problems

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// variable is how a value is drawn and written. Values are low + k*step up to high;
// a percentage is drawn in percent.
type variable struct {
	low, high, step float64
	unit            unit
}

type unit int

const (
	number unit = iota
	money
	percent
	years
	months
	days
)

func (v variable) draw(r *rand.Rand) float64 {
	steps := int(math.Round((v.high - v.low) / v.step))
	x := v.low + float64(r.IntN(steps+1))*v.step
	return math.Round(x*1e4) / 1e4
}

// write gives a value its unit; large sums of money are sometimes written in words.
func (v variable) write(x float64, r *rand.Rand) string {
	switch v.unit {
	case money:
		if x >= 1e6 && r.IntN(2) == 0 {
			return "$" + plain(x/1e6) + " million"
		}
		return "$" + group(x)
	case percent:
		return plain(x) + "%"
	case years:
		return plural(x, "year")
	case months:
		return plural(x, "month")
	case days:
		return plural(x, "day")
	}
	return group(x)
}

func plural(x float64, unit string) string {
	if x == 1 {
		return "1 " + unit
	}
	return plain(x) + " " + unit + "s"
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// group writes a number with commas between thousands; cents have two digits.
func group(x float64) string {
	whole, cents, found := strings.Cut(plain(x), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if !found {
		return whole
	}
	if len(cents) == 1 {
		cents += "0"
	}
	return whole + "." + cents
}

// Constructors, named for what they write.
func cash(low, high, step float64) variable  { return variable{low, high, step, money} }
func rate(low, high, step float64) variable  { return variable{low, high, step, percent} }
func count(low, high, step float64) variable { return variable{low, high, step, number} }
func inYears(low, high float64) variable     { return variable{low, high, 1, years} }
func inMonths(low, high float64) variable    { return variable{low, high, 1, months} }
func inDays(low, high float64) variable      { return variable{low, high, 5, days} }
