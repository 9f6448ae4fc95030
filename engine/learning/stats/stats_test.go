package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The reference values were computed with SciPy 1.17.1 and statsmodels 0.15.0 on Python 3; each test names
// the expression.

// near compares with the number of digits that the reference values have.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 1e-9 {
		t.Errorf("%s = %.12g, want %.12g", what, got, want)
	}
}

// scipy.stats.binomtest(k, n).proportion_ci(0.95, "wilson")
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 0, math.NaN(), math.NaN()},
		{0, 1, 0, 0.7934506856},
		{1, 1, 0.2065493144, 1},
		{0, 20, 0, 0.1611251581},
		{10, 20, 0.2992980082, 0.7007019918},
		{20, 20, 0.8388748419, 1},
		{12, 40, 0.1807484523, 0.4543001882},
		{650, 1000, 0.6199146825, 0.6789372899},
		{99999, 100000, 0.9999433529, 0.9999982348},
	} {
		i := Wilson(c.k, c.n)
		near(t, "low", i.Low, c.low)
		near(t, "high", i.High, c.high)
		if i.Known() != (c.n > 0) || c.k == 0 && i.Low > 0 || c.k == c.n && i.High < 1 {
			t.Errorf("%d of %d: %v", c.k, c.n, i)
		}
	}
}

// statsmodels.stats.proportion.confint_proportions_2indep(k2, n2, k1, n1, method="newcomb", compare="diff").
// The first row is an example of Newcombe's paper, table II: 0.0524 to 0.3339.
func TestNewcombe(t *testing.T) {
	for _, c := range []struct {
		k1, n1, k2, n2 int
		low, high      float64
	}{
		{48, 80, 56, 70, 0.0524314724, 0.3338726540},
		{3, 10, 9, 10, 0.1705227239, 0.8090179735},
		{0, 10, 0, 10, -0.2775327999, 0.2775327999},
		{0, 20, 10, 10, 0.6790860371, 1},
		{51, 120, 42, 100, -0.1333096121, 0.1245267412},
		{0, 0, 1, 2, math.NaN(), math.NaN()},
		{1, 2, 0, 0, math.NaN(), math.NaN()},
	} {
		i := Newcombe(c.k1, c.n1, c.k2, c.n2)
		near(t, "low", i.Low, c.low)
		near(t, "high", i.High, c.high)
	}
}

// Published limits, with their digits. The tests of the R package ratesci compare the first three rows with
// moverpairci(x, contrast = "RD", type = "wilson", corc = TRUE), those of the R package contingencytables the
// next two with Newcombe_square_and_add_CI_paired_2x2. Both return the first proportion minus the second.
func TestNewcombePaired(t *testing.T) {
	for _, c := range []struct {
		both, fixed, broken, neither int
		low, high, scale             float64
	}{
		{20, 2, 12, 16, -0.3292, -0.0562, 1e4}, // Newcombe's paper
		// Fagerland, Lydersen and Laake, Statistics in Medicine 33 (2014) 2850-2875
		{1, 7, 1, 12, 0.026, 0.507, 1e3},
		{8, 1, 3, 2, -0.4136, 0.1574, 1e4},   // Tang and others, 2010
		{59, 16, 6, 80, 0.0046, 0.1186, 1e4}, // complete responses of Cavo and others, 2012
		{1, 0, 0, 1, -0.5734, 0.5734, 1e4},
		// A negative correlation, which is not corrected. The paper's formulas in Python, with the Wilson
		// intervals of statsmodels.stats.proportion.proportion_confint(k, n, method="wilson").
		{36, 12, 2, 0, 0.0569295840, 0.3404276030, 1e10},
		{0, 0, 0, 0, math.NaN(), math.NaN(), 1},
	} {
		i := NewcombePaired(c.both, c.fixed, c.broken, c.neither)
		near(t, "low", math.Round(i.Low*c.scale)/c.scale, c.low)
		near(t, "high", math.Round(i.High*c.scale)/c.scale, c.high)
		opposite := NewcombePaired(c.both, c.broken, c.fixed, c.neither)
		near(t, "low of the opposite", opposite.Low, -i.High)
	}
}

// The interval covers the true difference about as often as its level says, also if few items change.
func TestNewcombePairedCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ n, both, fixed, broken int }{ // of 100
		{40, 60, 10, 5}, {40, 30, 30, 10}, {150, 70, 2, 2}, {150, 80, 10, 1},
	} {
		covered := 0
		const trials = 4000
		for range trials {
			var counts [4]int
			for range c.n {
				x := random.IntN(100)
				switch {
				case x < c.both:
					counts[0]++
				case x < c.both+c.fixed:
					counts[1]++
				case x < c.both+c.fixed+c.broken:
					counts[2]++
				default:
					counts[3]++
				}
			}
			if NewcombePaired(counts[0], counts[1], counts[2],
				counts[3]).Contains(float64(c.fixed-c.broken) / 100) {
				covered++
			}
		}
		if share := Share(covered, trials); share < 0.93 {
			t.Errorf("%+v: covered %.3f", c, share)
		}
	}
}

// scipy.stats.binomtest(b, b + c, 0.5).pvalue
func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		fixed, broken int
		p             float64
	}{
		{0, 0, 1}, {0, 1, 1}, {5, 0, 0.0625}, {6, 0, 0.03125}, {4, 2, 0.6875}, {2, 9, 0.0654296875},
		{15, 21, 0.405032246141}, {40, 60, 0.056887933641}, {400, 600, 2.72846415607e-10}, {3000, 3001, 1},
	} {
		near(t, "p", McNemar(c.fixed, c.broken), c.p)
		near(t, "p of the opposite", McNemar(c.broken, c.fixed), c.p)
	}
	if p := McNemar(400, 600); math.Abs(p/2.72846415607e-10-1) > 1e-9 {
		t.Errorf("a small p = %g", p)
	}
}

// The last digits: scipy.optimize.brentq(f, 1e-9, 1, xtol=1e-14), where f(d) is m/4*(1+(1+2/(m*d))**.5)**2 -
// n with s = max(0.25, d), m = (za*s**.5 + zb*(s-d*d)**.5)**2/d**2, and za, zb = scipy.stats.norm.ppf(.975),
// scipy.stats.norm.ppf(.8). TestDetectablePairedPower shows that the formulas are right.
func TestDetectablePaired(t *testing.T) {
	for n, want := range map[int]float64{
		0: math.NaN(), 5: math.NaN(), 6: 0.9405772561, 10: 0.6871837379, 20: 0.3907987079, 60: 0.1853061696,
		100: 0.1433136312, 1000: 0.0447435630, 10000: 0.0140562629,
	} {
		near(t, "difference", DetectablePaired(n, DiscordantShare), want)
	}
	// The tests of the R package MESS: power_mcnemar_test(paid=0.05, psi=45/5, power=.8)$n is 22, which the
	// continuity correction raises to 24.4.
	if a, b := DetectablePaired(24, 0.5), DetectablePaired(25, 0.5); a <= 0.4 || b >= 0.4 {
		t.Errorf("24 items show %.3f, 25 items %.3f; a difference of 0.4 needs 24.4", a, b)
	}
}

// The McNemar test shows the smallest detectable difference with about the probability Power, as the binomial
// distributions of the changed verdicts say.
func TestDetectablePairedPower(t *testing.T) {
	// The tests of MESS: power_mcnemar_test(144, paid=0.25, psi=45/25, method="exact",
	// alternative="one.sided", sig.level=0.025)$power is 0.80. By SciPy, with binom.pmf and binom.cdf, the
	// two-sided power has the same digits.
	near(t, "the power of 144 items", math.Round(truePower(144, 0.7, 0.2)*1e7)/1e7, 0.8009198)
	near(t, "the power of 6 items", math.Round(truePower(6, 0.9405772561, 0.9405772561)*1e7)/1e7, 0.6924156)
	for n := 8; n <= 1000; n += 1 + n/20 {
		d := DetectablePaired(n, DiscordantShare)
		if p := truePower(n, max(d, DiscordantShare), d); p < 0.785 || p > 0.865 {
			t.Errorf("%d items show the difference %.3f with probability %.3f", n, d, p)
		}
	}
}

// truePower returns the probability that the McNemar test shows a difference d of two accuracies on n items,
// of which the share discordant has different verdicts.
func truePower(n int, discordant, d float64) (power float64) {
	fixed := (1 + d/discordant) / 2
	for changed := range n + 1 {
		probability := BinomialTail(changed, n, discordant) - BinomialTail(changed+1, n, discordant)
		if probability < 1e-12 {
			continue
		}
		needed := changed + 1
		for needed > (changed+1)/2 && McNemar(needed-1, changed-needed+1) < Alpha {
			needed--
		}
		if needed <= changed {
			power += probability * (BinomialTail(needed, changed, fixed) + BinomialTail(needed, changed,
				1-fixed))
		}
	}
	return power
}

// scipy.stats.t.interval(0.95, n-1, loc=mean, scale=numpy.std(x, ddof=1)/n**.5)
func TestMean(t *testing.T) {
	for _, c := range []struct {
		values          []float64
		mean, low, high float64
	}{
		{nil, math.NaN(), math.NaN(), math.NaN()},
		{[]float64{0.5}, 0.5, math.NaN(), math.NaN()},
		{[]float64{0.7, 0.7, 0.7}, 0.7, 0.7, 0.7},
		{[]float64{0.5, 0.6}, 0.55, -0.0853102368, 1.1853102368},
		{[]float64{0.71, 0.69, 0.73, 0.70, 0.72}, 0.71, 0.6903675684, 0.7296324316},
	} {
		mean, i := Mean(c.values)
		near(t, "mean", mean, c.mean)
		near(t, "low", i.Low, c.low)
		near(t, "high", i.High, c.high)
	}
}

// scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
func TestWelch(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		a, b      []float64
		low, high float64
	}{
		{[]float64{0.4, 0.5, 0.45}, []float64{0.71, 0.69, 0.73, 0.70, 0.72}, 0.1445284298, 0.3754715702},
		{[]float64{1, 2, 3}, []float64{2, 2, 2}, -2.4841377118, 2.4841377118},
		{[]float64{0.5, 0.6}, []float64{0.5, 0.7}, -0.6418522830, 0.7418522830},
		{[]float64{0.7, 0.7, 0.7}, []float64{0.8, 0.8, 0.8}, nan, nan},
		{[]float64{0.5}, []float64{0.5, 0.7}, nan, nan},
		{nil, nil, nan, nan},
	} {
		i := Welch(c.a, c.b)
		near(t, "low", i.Low, c.low)
		near(t, "high", i.High, c.high)
	}
}

// scipy.stats.bootstrap((cost, right), lambda a, b, axis=-1: a.sum(axis=axis) / b.sum(axis=axis),
// paired=True, n_resamples=200000, method="percentile", rng=numpy.random.default_rng(s)) gives 0.1463 to
// 0.2231, 0.2235 and 0.2235 for s = 1, 2, 3. The generators differ, so the values agree only about.
func TestBootstrapRatio(t *testing.T) {
	var cost, correct []float64
	for i := range 200 {
		cost = append(cost, 0.01*float64(1+i*37%11))
		correct = append(correct, 0)
		if i%3 == 0 {
			correct[i] = 1
		}
	}
	i := BootstrapRatio(cost, correct)
	if math.Abs(i.Low-0.1463) > 0.004 || math.Abs(i.High-0.2234) > 0.004 {
		t.Errorf("%v, want about 0.1463 to 0.2234", i)
	}
	if again := BootstrapRatio(cost, correct); again != i {
		t.Errorf("equal data gave %v, then %v", i, again)
	}
	var many, right []float64
	// groups have the same variance as single items: the interval is narrower by the root of 50
	for range 50 {
		many, right = append(many, cost...), append(right, correct...)
	}
	if w := BootstrapRatio(many, right); math.Abs((w.High-w.Low)/(i.High-i.Low)*math.Sqrt(50)-1) > 0.1 {
		t.Errorf("%d items: %v, and 50 times fewer: %v", len(many), w, i)
	}
	if i := BootstrapRatio(nil, nil); i.Known() {
		t.Errorf("no items: %v", i)
	}
	if i := BootstrapRatio([]float64{1, 1}, []float64{0, 0}); i.Known() {
		t.Errorf("nothing below: %v", i)
	}
	if i := BootstrapRatio([]float64{2, 2}, []float64{1, 1}); i != (Interval{2, 2}) {
		t.Errorf("equal items: %v", i)
	}
	if i := BootstrapRatio([]float64{1, 1}, []float64{1, 0}); i.Low != 1 || !math.IsInf(i.High, 1) {
		t.Errorf("one correct of two: %v, want 1 to infinity", i)
	}
}

func TestPercentile(t *testing.T) {
	// numpy.percentile([1, 2, 4, 8], [0, 2.5, 50, 97.5, 100])
	for p, want := range map[float64]float64{0: 1, 0.025: 1.075, 0.5: 3, 0.975: 7.7, 1: 8} {
		near(t, "percentile", percentile([]float64{1, 2, 4, 8}, p), want)
	}
}

// scipy.stats.binom.sf(k-1, n, p)
func TestBinomialTail(t *testing.T) {
	near(t, "0 of 5", BinomialTail(0, 5, 0.2), 1)
	near(t, "6 of 5", BinomialTail(6, 5, 0.2), 0)
	near(t, "4 of 4", BinomialTail(4, 4, 0.2), 0.0016)
	near(t, "5 of 6", BinomialTail(5, 6, 0.2), 0.0016)
	near(t, "8 of 10", BinomialTail(8, 10, 0.2), 0.0000779264)
}

// statsmodels.stats.proportion.proportion_confint(p*m, m, method="wilson")
func TestWilsonShare(t *testing.T) {
	for _, c := range []struct{ p, m, low, high float64 }{
		{0.5, 20, 0.2992980082, 0.7007019918},
		{0.3, 12.5, 0.1199113253, 0.5741184395},
		{0.95, 7.25, 0.5922986933, 0.9959918198},
		{0, 9.5, 0, 0.2879339413},
	} {
		i := WilsonShare(c.p, c.m)
		near(t, "low", i.Low, c.low)
		near(t, "high", i.High, c.high)
	}
}
