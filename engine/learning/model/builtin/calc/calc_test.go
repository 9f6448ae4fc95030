package calc

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func mustParse(t testing.TB, src string) *Expr {
	t.Helper()
	e, err := Parse(src)
	if err != nil {
		t.Fatalf("Parse(%q): %v", src, err)
	}
	return e
}

func TestEval(t *testing.T) {
	values := map[string]float64{"a": 6, "b": 3, "r": 0.05, "n_1": 2}
	for src, want := range map[string]float64{
		"a / b * 100":          200,
		"a - b - 1":            2,
		"2^3^2":                512,
		"-2^2":                 -4,
		"(-2)^2":               4,
		"a^-1":                 1.0 / 6,
		"--a":                  6,
		"1.5e":                 0, // rejected below
		"exp(ln(a))":           6,
		"sqrt(a * 6)":          6,
		"min(a, b, 1)":         1,
		"max(a, b)":            6,
		"sum(a, b, r)":         9.05,
		"abs(b - a)":           3,
		"N(0)":                 0.5,
		"N(1.96)":              0.9750021048517795,
		"a * (1 + r)^n_1":      6.615,
		" ( ( a ) ) ":          6,
		"a*(1-(1+r)^(-b))/r":   6 * (1 - math.Pow(1.05, -3)) / 0.05,
		"a / (b * n_1) + 1000": 1001,
	} {
		e, err := Parse(src)
		if src == "1.5e" {
			if err == nil {
				t.Errorf("Parse(%q) was not refused", src)
			}
			continue
		}
		if err != nil {
			t.Errorf("Parse(%q): %v", src, err)
			continue
		}
		got, err := e.EvalNamed(values)
		if err != nil || math.Abs(got-want) > 1e-12*math.Max(1, math.Abs(want)) {
			t.Errorf("%s = %v, %v; want %v", src, got, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, src := range []string{"", "a +", "(a", "a)", "a b", "2a", "exp", "ln(a, b)", "min()", "1.2.3",
		"a $ b", ".",
		strings.Repeat("(", 200) + "a" + strings.Repeat(")", 200), strings.Repeat("-", 100) + "a",
		"a" + strings.Repeat("+a", 300), strings.Repeat("a", MaxLength+1)} {
		if e, err := Parse(src); err == nil {
			t.Errorf("Parse(%.40q) = %s, want an error", src, e)
		}
	}
}

func TestEvalNotFinite(t *testing.T) {
	for src, values := range map[string][]float64{"a / b": {1, 0}, "ln(a)": {-1}, "a^b": {10, 400},
		"sqrt(a)": {-4}} {
		if v, err := mustParse(t, src).Eval(values); !errors.Is(err, ErrNotFinite) {
			t.Errorf("%s with %v = %v, %v; want ErrNotFinite", src, values, v, err)
		}
	}
	if _, err := mustParse(t, "a + b").Eval([]float64{1}); err == nil {
		t.Error("one value for two names was accepted")
	}
	if _, err := mustParse(t, "a + b").EvalNamed(map[string]float64{"a": 1}); err == nil {
		t.Error("a missing value was accepted")
	}
}

func TestStringParentheses(t *testing.T) {
	for src, want := range map[string]string{
		"((a)/(b))*100":       "a / b * 100",
		"a-(b-c)":             "a - (b - c)",
		"a/(b/c)":             "a / (b / c)",
		"(a+b)*c":             "(a + b) * c",
		"(a^b)^c":             "(a^b)^c",
		"a^b^c":               "a^(b^c)",
		"-(a+b)":              "-(a + b)",
		"a*(1+r)^(-t)":        "a * (1 + r)^(-t)",
		"exp( -( r*t ) )":     "exp(-(r * t))",
		"min( a,(b),c+1 ) *2": "min(a, b, c + 1) * 2",
	} {
		if got := mustParse(t, src).String(); got != want {
			t.Errorf("%s prints as %s, want %s", src, got, want)
		}
	}
}

func TestShape(t *testing.T) {
	one, two := mustParse(t, "income / equity * 100"), mustParse(t, "x / y * 100")
	if one.Shape() != two.Shape() {
		t.Errorf("%s and %s differ", one.Shape(), two.Shape())
	}
	if same := mustParse(t, "x / x * 100"); same.Shape() == one.Shape() {
		t.Errorf("%s equals %s", same, one)
	}
}

func TestSolve(t *testing.T) {
	values := map[string]float64{"C": 10, "P": 4, "S": 100, "X": 98.7, "r": 0.03, "t": 0.5, "y": 0}
	for _, c := range []struct{ left, right, unknown string }{
		{"y", "C - P", "P"}, {"y", "X / (1 + r)^t", "r"}, {"y", "X / (1 + r)^t", "t"},
		{"y", "X * exp(-(r * t))", "t"},
		{"y", "C / (S - X)", "X"}, {"y", "ln(S / X)", "X"}, {"y", "sqrt(C * P)", "C"}, {"y", "-(S + C)", "C"},
		{"y", "C * P / S", "P"},
	} {
		right := mustParse(t, c.right)
		y, err := right.EvalNamed(values)
		if err != nil {
			t.Fatal(err)
		}
		solved, err := Solve(mustParse(t, c.left), right, c.unknown)
		if err != nil {
			t.Errorf("%s = %s for %s: %v", c.left, c.right, c.unknown, err)
			continue
		}
		with := map[string]float64{}
		for k, v := range values {
			with[k] = v
		}
		with["y"] = y
		delete(with, c.unknown)
		got, err := solved.EvalNamed(with)
		if err != nil || math.Abs(got-values[c.unknown]) > 1e-9*math.Abs(values[c.unknown]) {
			t.Errorf("%s = %s gives %s = %s = %v, %v; want %v", c.left, c.right, c.unknown, solved, got, err,
				values[c.unknown])
		}
	}
}

func TestSolveErrors(t *testing.T) {
	for _, c := range []struct{ right, unknown string }{{"(1 + r / n)^n", "n"}, {"a / b", "z"}, {"N(a)", "a"},
		{"max(a, b)", "b"}} {
		if e, err := Solve(mustParse(t, "y"), mustParse(t, c.right), c.unknown); err == nil {
			t.Errorf("y = %s for %s gives %s, want an error", c.right, c.unknown, e)
		}
	}
}

func TestScaleAndLetter(t *testing.T) {
	e, err := mustParse(t, "p + q").Scale(100)
	if err != nil || e.String() != "(p + q) * 100" {
		t.Errorf("scaled: %v, %v", e, err)
	}
	if letter(0) != "a" || letter(25) != "z" || letter(26) != "x26" {
		t.Errorf("letters: %s %s %s", letter(0), letter(25), letter(26))
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a / b * 100", "-a^-b", "min(a, 2, N(x_1))", "((1+r/k)^(k*t))", "1..2",
		"sqrt(", "a-(b-c)-(-d)", "72/r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := Parse(src)
		if err != nil {
			return
		}
		values := make([]float64, len(e.Names()))
		for i := range values {
			values[i] = float64(i) + 1.5
		}
		want, wantErr := e.Eval(values)
		text := e.String()
		if len(text) > MaxLength {
			return
		}
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("%q prints as %q, which does not parse: %v", src, text, err)
		}
		if again.String() != text {
			t.Fatalf("%q prints as %q and then as %q", src, text, again)
		}
		got, gotErr := again.Eval(values)
		if (wantErr == nil) != (gotErr == nil) || wantErr == nil && got != want {
			t.Fatalf("%q is %v, %v but %q is %v, %v", src, want, wantErr, text, got, gotErr)
		}
	})
}
