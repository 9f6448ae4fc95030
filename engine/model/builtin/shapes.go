package builtin

import (
	"sync"

	"acescope/engine/model/builtin/calc"
)

// commonShapes are the calculations that a search tries when a prompt states no formula
// that explains its label: the everyday shapes of finance arithmetic, written here once.
// The letters say what an operand may be: r s i a rate, t n a period or a count, k times
// per year, any other letter an amount, a number or a percentage.
var commonShapes = sync.OnceValue(func() []shape {
	var shapes []shape
	for _, source := range shapeSources {
		e, err := calc.Parse(source)
		if err != nil {
			panic("builtin: common shape " + source + ": " + err.Error())
		}
		s := shape{expr: e, source: fromList}
		for _, n := range e.Names() {
			s.operands = append(s.operands, operand{classes: letterClasses(n)})
		}
		shapes = append(shapes, s)
	}
	return shapes
})

func letterClasses(letter string) []class {
	switch letter {
	case "r", "s", "i":
		return []class{classPercent, classNumber}
	case "t", "n":
		return []class{classPeriod, classNumber}
	case "k":
		return []class{classFrequency, classNumber}
	}
	return []class{classMoney, classNumber, classPercent}
}

const (
	normalUp   = "N((ln(a / b) + (r + s^2 / 2) * t) / (s * sqrt(t)))"
	normalDown = "N((ln(a / b) + (r - s^2 / 2) * t) / (s * sqrt(t)))"
)

var shapeSources = []string{
	// one operand
	"72 / a", "1 / a", "exp(r) - 1", "(1 + r)^12 - 1", "(1 + r)^4 - 1",
	// two operands
	"a / b", "a - b", "a * b", "a + b", "(a - b) / b", "(a - b) / a", "(a + b) / 2", "a / b * 365", "a / b * 360",
	"a * (1 + r)", "a * (1 - r)", "a / (1 + r)", "a / (1 - r)", "a / r", "a * t", "a / t", "r * t", "365 / a", "a * r",
	"(1 + r / k)^k - 1", "(1 + r)^t - 1", "(1 + r)^k - 1", "(1 + r) / (1 + s) - 1", "r / (1 - s)", "r * (1 - s)",
	"1 / (1 + r)^t", "a / (a + b)", "a / (b - a)", "a * (1 + r) / r", "sqrt(a * b)", "1 - a / b", "a * 12 / b", "a / (b * 12)", "a * 12",
	// three operands
	"(a - b) / c", "(a + b) / c", "a / (b + c)", "a / (b - c)", "a - b - c", "a + b - c", "a + b + c", "a * b * c", "a * b / c",
	"a * b - c", "a * b + c", "a * t - c", "a * t + c", "a * b * (1 - r)", "a * b * (1 + r)", "a - b * c", "a / b - c", "a / b + c", "a / (b * c)", "(a - b) * c", "(a + b) * c", "(a + b + c) / 3",
	"a / ((b + c) / 2)", "a + b * (c - a)", "a / b * t", "(a - b) / t", "a / t - b", "a * r * t", "a * (1 + r * t)", "a / (1 + r * t)",
	"a * (1 + r)^t", "a / (1 + r)^t", "a * (1 - r)^t", "a * exp(r * t)", "a * exp(-r * t)", "(a / b)^(1 / t) - 1", "ln(a / b) / r",
	"a * (1 - (1 + r)^(-t)) / r", "a * (1 - (1 + r)^(-t)) / r * (1 + r)", "a * ((1 + r)^t - 1) / r", "a * r / (1 - (1 + r)^(-t))",
	"a * (1 + r) / (s - r)", "a * (1 + r) / (1 + s)", "(a - b + c) / b", "(a - b - c) / a", "(a - b - c) / b", "a * r * (1 - s)", "a * (1 - r) * (1 - s)",
	"(a - b) / (a - c)", "a / (b - c) - 1", "a * (1 + r)^t - a", "a * r * t / 360", "a * r * t / 365", "(a - b) / b * 365 / t", "(a - b) / b * 360 / t",
	"(a - b) / a * 360 / t", "(a - b) / a * 365 / t", "sqrt(2 * a * b / c)", "a / (1 + r) + b / (1 + r)^2", "(a - b) / (c * b)", "a * (r - s)", "a * (b - c)",
	// four operands
	"a - (b + c * (d - b))", "a + b * c + d", "(a - b) / (c - d)", "(a + b) / (c + d)", "(a - b - c) / d", "(a + b - c) / d", "(a + b + c) / d", "a * (b - c) - d",
	"a + b + c + d", "a + b + c - d", "a + b - c - d", "a - b - c - d", "a * b - c * d", "a * b + c * d", "a * b + c - d", "(a * b + c * d) / (a + c)", "a * b * c * d",
	"(a - b) / ((c + d) / 2)", "(a - b) / b / ((c - d) / d)", "(a + b) / c * 365 / t", "(a + b) / c * 360 / t", "a * (1 + r / k)^(k * t)",
	"a * (1 + r / k)^(k * t) - a", "a / (1 + r) + b / (1 + r)^2 + c / (1 + r)^3", "a * (1 - (1 + r)^(-t)) / r + b / (1 + r)^t",
	"a * (1 - (1 + r)^(-t)) / r - b", "a / (b - c) / d", "(a - b) / (c * d)", "a / b + c / d", "a * r / k / (1 - (1 + r / k)^(-k * t))",
	"(a - b) * (1 - r) + c", "(a + (b - c) / t) / ((b + c) / 2)", "(a * b - c) / d", "(a - b) * c - d", "a * (b - c) / d", "a + b - c + d",
	// five operands
	"a + b + c + d - f", "a - b + c / (1 + r)^t", "(a - b + c) * (1 + r)^t", "a + b - c / (1 + r)^t", "a / (1 + r) + b / (1 + r)^2 + c / (1 + r)^3 - d",
	"a / (1 + r) + b / (1 + r)^2 + c / (1 + r)^3 + d / (1 + r)^4", "a / (a + b) * r + b / (a + b) * s * (1 - i)", "(a + b) / c * 365 / d",
	"a * " + normalUp + " - b * exp(-r * t) * " + normalDown, "a + b * (c - a) + d * f", "(a - b) / (c + d + f)",
}
