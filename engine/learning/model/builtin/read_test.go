package builtin

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"acescope/engine/learning/model"
	"acescope/engine/learning/problems"
)

func TestQuantities(t *testing.T) {
	for question, want := range map[string][]string{
		"net income of $1,200,000 and equity of $6 million": {"1200000 amount", "6000000 amount"},
		"a 32% tax and 4.5 percent, or 3 per cent": {"32 percent", "4.5 percent",
			"3 percent"},
		"beta of 1.5 with -0.1% and -$4,000": {"1.5 number", "-0.1 percent",
			"-4000 amount"},
		"€2.5bn, £5k, 3 billion yen, 20 dollars": {"2500000000 amount", "5000 amount",
			"3000000000 amount", "20 amount"},
		"in 2023 it sold 2,023 units in 9 months": {"2023 number", "9 period/months"},
		"a 5-year note, 45 days, 8 semesters, 2 periods": {"5 period/years", "45 period/days",
			"8 period/half-years", "2 period/periods"},
		"compounded monthly for three years": {"12 times per year side",
			"3 period/years side"},
		"every two months, semi-annually, quarterly, 4 times a year": {"6 times per year side",
			"2 times per year side", "4 times per year side", "4 times per year"},
		"on the 3rd day of Q4 an F-16 cost $0.75.": {"0.75 amount"},
		"every 6 months at .5%": {"2 times per year side",
			"0.5 percent"},
		"nothing here": nil,
	} {
		var got []string
		for _, q := range quantities(question) {
			text := strconv.FormatFloat(q.Value, 'f', -1, 64) + " " + string(q.Class)
			if q.Unit != "" {
				text += "/" + q.Unit
			}
			if q.Side {
				text += " side"
			}
			got = append(got, text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q\n got %q\nwant %q", question, got, want)
		}
	}
}

func TestNearWords(t *testing.T) {
	qs := quantities("The firm has $600,000 in net income and $9,000,000 in shareholders' equity.")
	if len(qs) != 2 {
		t.Fatalf("%d quantities", len(qs))
	}
	for word, owner := range map[string]int{"income": 0, "net": 0, "equity": 1, "shareholder": 1} {
		own, ok := distance(qs[owner], word)
		other, also := distance(qs[1-owner], word)
		if !ok || also && other <= own {
			t.Errorf("%q: %v from its own number, %v from the other", word, own, other)
		}
	}
}

const roeContext = "Use formula Return on Equity (ROE) to answer the question. Formula: ROE = (Net Income / Shareholder's Equity) × 100, " +
	"Explanation: Net Income: Company's total earnings, Shareholder's Equity: Equity held by shareholders. Question: \"Net income is $50 and equity $200. ROE?\". Answer:"

func TestParseProblem(t *testing.T) {
	p := parseProblem(roeContext)
	want := problem{Formula: "Return on Equity (ROE)",
		Expression:  "ROE = (Net Income / Shareholder's Equity) × 100",
		Explanation: "Net Income: Company's total earnings, Shareholder's Equity: Equity held by shareholders.",
		Question:    "Net income is $50 and equity $200. ROE?"}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v\nwant %+v", p, want)
	}
	p = parseProblem("use the formula Rule of 72 to find it. Question: at 6%?")
	if p.Formula != "Rule of 72" || p.Expression != "" || p.Question != "at 6%?" {
		t.Errorf("without a stated formula: %+v", p)
	}
	if p := parseProblem("What is the capital of France?"); p.Formula != "" ||
		p.Question != "What is the capital of France?" {
		t.Errorf("free text: %+v", p)
	}
}

func TestNameCannotForgeRecipe(t *testing.T) {
	p := parseProblem("Use formula X: answer: answer =  = a to answer. Question: 1?")
	if p.Formula == "" || strings.Contains(p.Formula, recipeMark) {
		t.Errorf("formula %q", p.Formula)
	}
}

func TestStatedFormula(t *testing.T) {
	blackScholes := problem{Formula: "BS", Expression: "C = S_0N(d_1) - Xe^{-rt}N(d_2)",
		Explanation: "C: price, S_0: asset, X: strike, e: Euler, r: rate, " +
			"t: time, N: normal distribution, d_1 = (ln(S_0 / X) + (r + σ^2 / 2)t) / σ√t, d_2 = d_1 - σ√t, σ: volatility."}
	for _, c := range []struct {
		p      problem
		values map[string]float64
		want   float64
	}{
		{parseProblem(roeContext), map[string]float64{"net_income": 50, "shareholders_equity": 200}, 25},
		{problem{Expression: "V_L = V_U + T_cD",
			Explanation: "V_L: levered, V_U: unlevered, T_c: tax, D: debt."},
			map[string]float64{"V_U": 100, "T_c": 0.3, "D": 50}, 115},
		{problem{Expression: "A = P (1 + r/n)^(nt)", Explanation: "P: sum, r: rate, n: times, t: time"},
			map[string]float64{"P": 100, "r": 0.12, "n": 2, "t": 1}, 112.36},
		{problem{Formula: "P/E", Expression: "P/E = Price / Earnings"},
			map[string]float64{"Price": 30, "Earnings": 2}, 15},
		{problem{Expression: "β = Cov(R_a, R_m) / Var(R_m)", Explanation: "R_a: asset, R_m: market"},
			map[string]float64{"cov_r_a_r_m": 0.02, "var_r_m": 0.04}, 0.5},
		{blackScholes, map[string]float64{"S_0": 100, "X": 100, "r": 0.05, "t": 1, "sigma": 0.2},
			10.450583572185565},
	} {
		shapes := statedShapes(c.p)
		if len(shapes) == 0 || shapes[0].source != fromText {
			t.Errorf("%q: not read", c.p.Expression)
			continue
		}
		got, err := shapes[0].expr.EvalNamed(c.values)
		if err != nil || !model.SameNumber(got, c.want) {
			t.Errorf("%q read as %s = %v, %v; want %v", c.p.Expression, shapes[0].expr, got, err, c.want)
		}
	}
	solved := statedShapes(problem{Expression: "S_1 / S_0 = P_1 / P_0",
		Explanation: "S: exchange rate, P: price level"})
	if len(solved) != 4 {
		t.Errorf("an equation of four operands gives %d solutions", len(solved))
	}
	if s := statedShapes(problem{Expression: "NPV = ∑ (R / ("}); s != nil {
		t.Errorf("an unreadable formula gives %d shapes", len(s))
	}
}

func TestRecipeRoundTrip(t *testing.T) {
	for _, text := range []string{
		`Return on Equity (ROE): answer = a / b * 100 where a = amount near "net", "income" (often 1st); b = amount near "equity" (often 2nd)`,
		`X: answer = r * 2 where r = percent points`,
		`Simple Interest: answer = P * r * t where P = amount near "p"; r = percent (often 3rd); t = years near "t", "time"`,
		`E: answer = (1 + r / n)^n - 1 where r = percent; n = times per year near "compounded" (often 11th)`,
	} {
		r, err := parseRecipe(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if r.String() != text {
			t.Errorf("got  %s\nwant %s", r, text)
		}
	}
}

func TestParseRecipeErrors(t *testing.T) {
	for _, text := range []string{"", "Always check the units.", "X: answer = 5",
		"X: answer = a / b where a = amount", "X: answer = a where b = amount",
		"X: answer = a where a = salt", "X: answer = a where a = amount near income",
		"X: answer = a where a = amount (often 1th)", "X: answer = a where a = amount (often 99th)",
		"X: answer = a $ where a = amount", ": answer = a where a = amount",
		"X: answer = a where a = amount " + strings.Repeat(" ", maxRecipe)} {
		if r, err := parseRecipe(text); err == nil {
			t.Errorf("%q was read as %s", text, r)
		}
	}
}

func TestFoldsHandWrittenCues(t *testing.T) {
	r, err := parseRecipe(`X: answer = a where a = amount near "Assets", "income"`)
	if err != nil || r.String() != `X: answer = a where a = amount near "asset", "income"` {
		t.Errorf("%s, %v", r, err)
	}
}

func TestFormat(t *testing.T) {
	for v, want := range map[float64]string{2: "2.0", 0.2: "0.2", 27432.794: "27432.79", -0.001: "0.0",
		1e9: "1000000000.0"} {
		if got := format(v); got != want {
			t.Errorf("format(%v) = %s, want %s", v, got, want)
		}
	}
}

func FuzzQuantities(f *testing.F) {
	for _, s := range []string{"$1,200,000 and 5%", "every 2 months at -$.5", "1e999 9,99 ￥3 １２",
		"two years semi-annually", "1,000,000,000,000,000,000,000.5 million", "\xff$5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		qs := quantities(s)
		if len(qs) > maxQuantities {
			t.Fatalf("%d quantities", len(qs))
		}
		for i, q := range qs {
			if q.Value != q.Value || len(q.Near) > maxNear || i > 0 && q.first <= qs[i-1].last {
				t.Fatalf("%q gives %+v", s, q)
			}
		}
	})
}

func FuzzProblem(f *testing.F) {
	f.Add(roeContext)
	f.Add("Use formula X to answer. Formula: A = ((b, Explanation: b: c = d, d = e^{-rt}√σ Question: 5?")
	f.Add("use the formula İ: answer = to Question:")
	f.Fuzz(func(t *testing.T, s string) {
		p := parseProblem(s)
		if strings.ContainsAny(p.Formula, "\n\r") || strings.Contains(p.Formula, recipeMark) {
			t.Fatalf("formula %q", p.Formula)
		}
		for _, sh := range statedShapes(p) {
			if len(sh.operands) != len(sh.expr.Names()) {
				t.Fatalf("%q: %d operands for %s", s, len(sh.operands), sh.expr)
			}
		}
	})
}

func FuzzRecipe(f *testing.F) {
	f.Add(`R (X): answer = a / b where a = amount near "net", "x" (often 1st); b = periods (often 2nd)`)
	f.Add(`X: answer = a: answer = b where a = years near "a where b"; b = percent points`)
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseRecipe(s)
		if err != nil {
			return
		}
		again, err := parseRecipe(r.String())
		if len(r.String()) <= maxRecipe && (err != nil || again.String() != r.String()) {
			t.Fatalf("%q prints as %q, read again as %v, %v", s, r, again, err)
		}
	})
}

func TestStated(t *testing.T) {
	const use = "Use formula Simple Interest to answer the question. "
	const formula = "Formula: I = P * r * t, Explanation: P: Principal amount, r: Annual interest rate, t: Time in years. "
	const question = "Question: At an annual interest rate of 5%, what does a principal of $2,000 earn " +
		"in 18 months? Answer:"
	if got, ok := Stated(use + formula + question); !ok || got != "150.0" {
		t.Errorf("%q, %v", got, ok)
	}
	prompts := []string{"", use + question, "What is 2 + 2?", use + formula +
		"Question: What is 5 %? Answer:"}
	for _, prompt := range prompts {
		if got, ok := Stated(prompt); ok {
			t.Errorf("%q answers %q", got, prompt)
		}
	}
}

// On the project's problems, the stated formulas answer those that state one, and no others.
func TestStatedOnProblems(t *testing.T) {
	stated, correct := 0, 0
	for _, p := range problems.Finance(2, 300) {
		answer, ok := Stated(p.Context)
		if !strings.Contains(p.Context, "Formula:") {
			if ok {
				t.Fatalf("answers without a formula: %s", p.Context)
			}
			continue
		}
		stated++
		if ok && model.SameAnswer(answer, p.Target) {
			correct++
		}
	}
	t.Logf("%d of %d stated formulas are read correctly", correct, stated)
	if stated < 60 || correct < stated*7/10 {
		t.Errorf("%d of %d stated formulas are read correctly", correct, stated)
	}
}
