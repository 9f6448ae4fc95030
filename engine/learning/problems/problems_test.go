package problems

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestDeterministic(t *testing.T) {
	long := Finance(7, 200)
	if len(long) != 200 || !reflect.DeepEqual(long, Finance(7, 200)) {
		t.Fatal("the same seed gave other problems")
	}
	if !reflect.DeepEqual(long[:50], Finance(7, 50)) {
		t.Error("a shorter set is not the beginning of the longer one")
	}
	if reflect.DeepEqual(long, Finance(8, 200)) {
		t.Error("another seed gave the same problems")
	}
	if got := Finance(7, -3); len(got) != 0 {
		t.Errorf("a negative number gave %d problems", len(got))
	}
}

var (
	shape = regexp.MustCompile(`^Use formula [^.]+ to answer the question\. Reply .*Question: .+ Answer:$`)
	label = regexp.MustCompile(`^-?\d+\.\d\d?$`)
)

func TestProblemsAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Finance(1, 3000) {
		if !shape.MatchString(p.Context) || strings.ContainsAny(p.Context, "{}") &&
			!strings.Contains(p.Context, "e^{rt}") {
			t.Errorf("context: %s", p.Context)
		}
		v, err := strconv.ParseFloat(p.Target, 64)
		if err != nil || !label.MatchString(p.Target) || math.Abs(v) < smallest || math.Abs(v) > largest {
			t.Errorf("target %q of %s", p.Target, p.Context)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(p.Context, "Use formula "), " to answer")
		seen[name] = true
	}
	if len(seen) != len(formulas()) || len(formulas()) < 40 {
		t.Errorf("%d of %d formulas seen", len(seen), len(formulas()))
	}
}

func TestFormulasAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, f := range formulas() {
		if names[f.Name] {
			t.Errorf("%s comes twice", f.Name)
		}
		names[f.Name] = true
		if (f.Stated == "") == (f.Hint == "") || (f.Stated == "") != (f.Symbols == "") {
			t.Errorf("%s must state its formula with its symbols, or have a hint", f.Name)
		}
		if len(f.Questions) < 2 {
			t.Errorf("%s has %d questions", f.Name, len(f.Questions))
		}
		for _, ask := range f.Questions {
			for i := range f.Values {
				if strings.Count(ask, "{"+letter(i)+"}") != 1 {
					t.Errorf("%s: value %d must come once in %q", f.Name, i, ask)
				}
			}
		}
	}
}

// TestDrawsAreReasonable checks that no formula runs out of attempts: its values satisfy its
// condition and its label is large enough.
func TestDrawsAreReasonable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range formulas() {
		for range 200 {
			v, answer := f.drawValues(r)
			if _, ok := f.solve(v); !ok {
				t.Errorf("%s with %v gives %v", f.Name, v, answer)
				break
			}
		}
	}
}

func TestKnownAnswers(t *testing.T) {
	byName := map[string]formula{}
	for _, f := range formulas() {
		byName[f.Name] = f
	}
	for _, c := range []struct {
		name   string
		values []float64
		want   string
	}{
		{"Return on Equity", []float64{50, 200}, "25.0"},
		{"Break-Even Quantity", []float64{1000, 30, 20}, "100.0"},
		{"Compound Annual Growth Rate", []float64{100, 121, 2}, "10.0"},
		{"Effective Yearly Rate", []float64{12, 12}, "12.68"},
		{"Monthly Mortgage Payment", []float64{200_000, 6, 30}, "1199.1"},
		{"Interest on a 360-Day Year", []float64{10_000, 6, 90}, "150.0"},
		{"Price Sensitivity of Demand", []float64{100, 90, 10, 11}, "-1.0"},
		{"Annuity Present Worth", []float64{1000, 10, 2}, "1735.54"},
	} {
		f, ok := byName[c.name]
		if !ok {
			t.Errorf("there is no formula %s", c.name)
			continue
		}
		values := map[string]float64{}
		for i, v := range c.values {
			values[letter(i)] = v
		}
		answer, err := f.Answer.EvalNamed(values)
		if got := target(answer); err != nil || got != c.want {
			t.Errorf("%s of %v = %s, %v; want %s", c.name, c.values, got, err, c.want)
		}
	}
}

func TestFormatsValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for want, got := range map[string]string{
		"$1,250":    variable{Unit: "money"}.write(1250, r),
		"$0.50":     variable{Unit: "money"}.write(0.5, r),
		"$12.25":    variable{Unit: "money"}.write(12.25, r),
		"7.5%":      variable{Unit: "percent"}.write(7.5, r),
		"1 year":    variable{Unit: "year"}.write(1, r),
		"9 months":  variable{Unit: "month"}.write(9, r),
		"90 days":   variable{Unit: "day"}.write(90, r),
		"2,000,000": variable{Unit: "number"}.write(2e6, r),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWriteJSONL(t *testing.T) {
	var b bytes.Buffer
	want := []Problem{{"a < b & \"c\" ×\n", "1.0"}, {"d", "2.5"}}
	if err := WriteJSONL(&b, want); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %s", len(lines), b.String())
	}
	for i, line := range lines {
		var got Problem
		if err := json.Unmarshal([]byte(line), &got); err != nil || got != want[i] {
			t.Errorf("line %d: %s: %v", i+1, line, err)
		}
	}
	full := errors.New("full")
	if err := WriteJSONL(broken{full}, want); !errors.Is(err, full) {
		t.Errorf("writing to a full disk: %v", err)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }
