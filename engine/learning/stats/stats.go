// Package stats computes intervals and tests for the accuracy and the cost of experiments. All functions are
// pure: equal arguments give equal results. It imports the standard library and gonum; sources, views and
// tui/widget may import it.
//
// Intervals have the confidence level [Level]; tests call a difference significant below [Alpha]. Tests
// assume that items are independent of each other.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Level of every interval, and the settings of tests and of [DetectablePaired].
const (
	Level = 0.95
	Alpha = 1 - Level
	Power = 0.80
)

// Interval is a confidence interval. Both limits are NaN if it is unknown.
type Interval struct{ Low, High float64 }

var unknown = Interval{math.NaN(), math.NaN()}

// Known reports whether the interval has limits.
func (i Interval) Known() bool { return !math.IsNaN(i.Low) && !math.IsNaN(i.High) }

// Contains reports whether x is in the interval.
func (i Interval) Contains(x float64) bool { return i.Low <= x && x <= i.High }

// z is the quantile of the standard normal distribution for intervals and two-sided tests.
var z = mathext.NormalQuantile(1 - Alpha/2)

// Share returns k/n, NaN if n is 0.
func Share(k, n int) float64 {
	if n == 0 {
		return math.NaN()
	}
	return float64(k) / float64(n)
}

// Wilson returns the Wilson score interval of the proportion k/n, without continuity correction; 0 <= k <= n.
// It is unknown if n is 0. E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209-212.
func Wilson(k, n int) Interval {
	if n <= 0 {
		return unknown
	}
	i := WilsonShare(Share(k, n), float64(n))
	if k == 0 {
		i.Low = 0 // without the rounding error
	}
	if k == n {
		i.High = 1
	}
	return i
}

// WilsonShare returns the Wilson interval of a share p of items that are worth m independent ones; m need not
// be whole. Items in clusters that resemble each other are worth as many as there are clusters, or more.
func WilsonShare(p, m float64) Interval {
	center := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Interval{(center - half) / (1 + z*z/m), (center + half) / (1 + z*z/m)}
}

// BinomialTail returns the probability that k or more of n independent items have a property that each has
// with probability p.
func BinomialTail(k, n int, p float64) float64 {
	if k <= 0 {
		return 1
	}
	if k > n {
		return 0
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}

// Newcombe returns the interval of the difference k2/n2 - k1/n1 of two independent proportions, from their
// Wilson intervals. It is unknown if n1 or n2 is 0. R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890,
// method 10.
func Newcombe(k1, n1, k2, n2 int) Interval {
	if n1 <= 0 || n2 <= 0 {
		return unknown
	}
	p1, p2 := Share(k1, n1), Share(k2, n2)
	a, b := Wilson(k1, n1), Wilson(k2, n2)
	d := p2 - p1
	return Interval{
		max(d-math.Hypot(p2-b.Low, a.High-p1), -1),
		min(d+math.Hypot(b.High-p2, p1-a.Low), 1),
	}
}

// NewcombePaired returns the interval of the difference of two proportions on the same items, the second
// minus the first: both and neither are successes and failures of both, fixed those of the second only,
// broken those of the first only. It is unknown without items. R. G. Newcombe, Statistics in Medicine 17
// (1998) 2635-2650, method 10.
func NewcombePaired(both, fixed, broken, neither int) Interval {
	n := both + fixed + broken + neither
	if n <= 0 {
		return unknown
	}
	k1, k2 := both+broken, both+fixed
	p1, p2 := Share(k1, n), Share(k2, n)
	a, b := Wilson(k1, n), Wilson(k2, n)
	phi := 0.0
	if margins := float64(k1) * float64(n-k1) * float64(k2) * float64(n-k2); margins > 0 {
		c := float64(both)*float64(neither) - float64(fixed)*float64(broken)
		if c > 0 {
			c = max(c-float64(n)/2, 0)
		}
		phi = c / math.Sqrt(margins)
	}
	half := func(x, y float64) float64 { return math.Sqrt(max(x*x-2*phi*x*y+y*y, 0)) }
	d := p2 - p1
	return Interval{
		max(d-half(p2-b.Low, a.High-p1), -1),
		min(d+half(b.High-p2, p1-a.Low), 1),
	}
}

// McNemar returns the two-sided p-value of the exact McNemar test: the probability that fixed and broken of
// so many changed verdicts differ as much or more if each change is equally likely either way. It is not a
// mid-p value, so it is never too small. It is 1 if no verdict changed. Q. McNemar, Psychometrika 12 (1947)
// 153-157.
func McNemar(fixed, broken int) float64 {
	n, k := fixed+broken, min(fixed, broken)
	if n == 0 || fixed == broken {
		return 1
	}
	// The distribution function of the binomial distribution with p = 1/2 as an incomplete beta function.
	return min(2*mathext.RegIncBeta(float64(n-k), float64(k+1), 0.5), 1)
}

// DiscordantShare is the share of items whose verdict differs between two experiments that [DetectablePaired]
// takes by default.
const DiscordantShare = 0.25

// DetectablePaired returns the smallest difference of two accuracies on the same n items, from 0 to 1, that
// the McNemar test shows with probability [Power]. discordant is the expected share of items with different
// verdicts; if the difference itself is larger, it replaces it. The result is NaN if n items can show no
// difference.
//
// The difference d solves m = (z1 sqrt(s) + z2 sqrt(s - d^2))^2 / d^2 and n = m/4 (1 + sqrt(1 + 2/(m d)))^2
// for the share s, where z1 and z2 are the normal quantiles of 1 - Alpha/2 and of Power. The first formula is
// Miettinen's, in R. J. Connor, Biometrics 43 (1987) 207-211; the second is the continuity correction of one
// sample in Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions (2003), because the test is
// exact. The true power, from the binomial distributions, is 0.79 to 0.86 for n from 8 to 1000, and 0.69 for
// n = 6.
func DetectablePaired(n int, discordant float64) float64 {
	// The exact test is not significant with five or fewer changed verdicts: 2 * 0.5^5 is above Alpha.
	if n < 6 {
		return math.NaN()
	}
	zPower := mathext.NormalQuantile(Power)
	needed := func(d float64) float64 {
		s := max(discordant, d)
		root := z*math.Sqrt(s) + zPower*math.Sqrt(s-d*d)
		m := root * root / (d * d)
		root = 1 + math.Sqrt(1+2/(m*d))
		return m / 4 * root * root
	}
	low, high := 0.0, 1.0 // needed falls from infinity to less than 6
	for range 60 {
		if middle := (low + high) / 2; needed(middle) > float64(n) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// Settings of [BootstrapRatio]. The seed is fixed so that equal data gives equal intervals.
const (
	Resamples     = 2000
	maxDrawn      = 1000
	bootstrapSeed = 1
)

// BootstrapRatio returns the percentile bootstrap interval of sum(above)/sum(below) over items that are drawn
// with replacement: the cost per correct answer, for example. The lists have equal length and no negative
// values. A limit is +Inf if a sample without anything below is among the percentiles. The interval is
// unknown if there is no item or nothing below. B. Efron, Annals of Statistics 7 (1979) 1-26.
//
// More than maxDrawn items are drawn in maxDrawn groups of random items, which bounds the time to about 10
// ms. The sum of the drawn groups varies as much as that of as many single items.
func BootstrapRatio(above, below []float64) Interval {
	if !slices.ContainsFunc(below, func(f float64) bool { return f > 0 }) {
		return unknown
	}
	random := rand.New(rand.NewPCG(bootstrapSeed, bootstrapSeed))
	if len(above) > maxDrawn {
		order := random.Perm(len(above))
		above, below = grouped(above, order), grouped(below, order)
	}
	n := len(above)
	ratios := make([]float64, Resamples)
	for i := range ratios {
		var a, b float64
		for range n {
			at := random.IntN(n)
			a, b = a+above[at], b+below[at]
		}
		ratios[i] = math.Inf(1)
		if b > 0 {
			ratios[i] = a / b
		}
	}
	slices.Sort(ratios)
	return Interval{percentile(ratios, Alpha/2), percentile(ratios, 1-Alpha/2)}
}

// grouped adds up the items in maxDrawn groups, in which order deals them out.
func grouped(items []float64, order []int) []float64 {
	sums := make([]float64, maxDrawn)
	for i, at := range order {
		sums[i%maxDrawn] += items[at]
	}
	return sums
}

// percentile interpolates between the closest ranks of sorted values, like the default of NumPy and R (type
// 7).
func percentile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	below := int(at)
	if below+1 >= len(sorted) || sorted[below] == sorted[below+1] { // also if both are infinite
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

// Mean returns the mean of values, and its interval by Student's t distribution, which is unknown for less
// than two values. The mean is NaN without values.
func Mean(values []float64) (mean float64, i Interval) {
	mean, variance := meanVariance(values)
	if len(values) < 2 {
		return mean, unknown
	}
	n := float64(len(values))
	half := studentT(n-1) * math.Sqrt(variance/n)
	return mean, Interval{mean - half, mean + half}
}

// Welch returns the interval of the difference of the means of two independent samples, b minus a, by Welch's
// t-test. It is unknown if a sample has less than two values or if no sample varies. B. L. Welch, Biometrika
// 34 (1947) 28-35.
func Welch(a, b []float64) Interval {
	if len(a) < 2 || len(b) < 2 {
		return unknown
	}
	meanA, varianceA := meanVariance(a)
	meanB, varianceB := meanVariance(b)
	na, nb := float64(len(a)), float64(len(b))
	ea, eb := varianceA/na, varianceB/nb
	if ea+eb == 0 {
		return unknown
	}
	freedom := (ea + eb) * (ea + eb) / (ea*ea/(na-1) + eb*eb/(nb-1))
	half := studentT(freedom) * math.Sqrt(ea+eb)
	return Interval{meanB - meanA - half, meanB - meanA + half}
}

// meanVariance returns the mean, NaN without values, and the unbiased variance, NaN for less than two values.
func meanVariance(values []float64) (mean, variance float64) {
	n := float64(len(values))
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean = sum / n
	if len(values) < 2 {
		return mean, math.NaN()
	}
	if slices.Min(values) == slices.Max(values) {
		return values[0], 0 // without the rounding error
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, squares / (n - 1)
}

// studentT returns the quantile of 1 - Alpha/2 of Student's t distribution.
func studentT(freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, Alpha)
	return math.Sqrt(freedom * (1 - x) / x)
}
