// Package grade compares answers with labels.
package grade

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
)

// Grader returns the score of an answer from 0 to 1. Only an answer with score 1 is correct. Scores are
// multiples of a millionth, so that sums do not depend on their order. A Grader is safe for concurrent use.
type Grader interface {
	Grade(answer, label string) float64
}

// Names of graders: Exact is the default. Judge is not a [Grader]: a worker asks a model whether the answer
// means the same as the label.
const (
	Exact = "exact"
	Judge = ace.GraderJudge
)

// Names lists the graders as users write them.
const Names = "exact, numeric:TOLERANCE (0.01 or 1%), choice, tags, judge, program:NAME"

// Errors of [New]: no grader has the name, or the grader needs a model or a program, which only workers have.
var (
	ErrUnknown = errors.New("unknown grader")
	ErrOutside = errors.New("only a worker can run this grader")
)

// Check returns an error unless there is a grader with that name.
func Check(name string) error {
	if _, err := New(name); !errors.Is(err, ErrOutside) {
		return err
	}
	return nil
}

// New returns the grader with that name; "" is exact. [Names] lists them:
//
//   - exact: as [model.SameAnswer];
//   - numeric:TOLERANCE: the last number of the answer differs from the label at most by an absolute
//     tolerance, or by a percentage of the label;
//   - choice: the letter that the answer chooses is the label, a single letter from A to Z;
//   - tags: the share of the tags of the label that the answer has, see [tags].
func New(name string) (Grader, error) {
	kind, parameter, hasParameter := strings.Cut(name, ":")
	switch {
	case kind == "numeric" && hasParameter:
		return newNumeric(parameter)
	case kind == "program" && hasParameter:
		if _, ok := ProgramOf(name); !ok {
			return nil, fmt.Errorf(
				"%w %q: the name has lower-case letters, digits, dots, dashes and underscores",
				ErrUnknown, name)
		}
		return nil, fmt.Errorf("%s: %w", name, ErrOutside)
	case hasParameter:
	case kind == "" || kind == Exact:
		return exact{}, nil
	case kind == "choice":
		return choice{}, nil
	case kind == ace.GraderTags:
		return tags{}, nil
	case kind == Judge:
		return nil, fmt.Errorf("%s: %w", name, ErrOutside)
	}
	return nil, fmt.Errorf("%w %q; use one of: %s", ErrUnknown, name, Names)
}

// Verdict grades the answer of a task. It returns the verdict of the input if that has one, because the label
// is hidden or a worker has graded the answer. score is nil without a label, and with the default grader,
// whose scores are only 0 and 1.
func Verdict(in ace.ReflectorInput) (correct *bool, score *float64, err error) {
	if in.Label == nil || in.Correct != nil {
		return in.Correct, in.Score, nil
	}
	g, err := New(in.Grader)
	if err != nil {
		return nil, nil, model.Errorf(model.BadRequest, "%v", err)
	}
	s := g.Grade(in.Answer, *in.Label)
	if cmp.Or(in.Grader, Exact) != Exact {
		score = &s
	}
	return new(s == 1), score, nil
}

func scoreOf(correct bool) float64 {
	if correct {
		return 1
	}
	return 0
}

type exact struct{}

func (exact) Grade(answer, label string) float64 { return scoreOf(model.SameAnswer(answer, label)) }

// numeric compares numbers. A label that is not a number is compared exactly.
type numeric struct {
	tolerance float64
	relative  bool
}

func newNumeric(parameter string) (Grader, error) {
	text, relative := strings.CutSuffix(parameter, "%")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= math.MaxFloat64) {
		return nil, fmt.Errorf(
			"%w: numeric:%s: the tolerance must be a number such as 0.01 or a percentage such as 1%%",
			ErrUnknown, parameter)
	}
	if relative {
		v /= 100
	}
	return numeric{v, relative}, nil
}

func (n numeric) Grade(answer, label string) float64 {
	want, ok := model.ParseNumber(label)
	if !ok {
		return exact{}.Grade(answer, label)
	}
	got, ok := lastNumber(answer)
	if !ok {
		return 0
	}
	most := n.tolerance
	if n.relative {
		most *= math.Abs(want)
	}
	const rounding = 1e-12 // of the difference of decimal fractions, relative to the label
	return scoreOf(math.Abs(got-want) <= most+rounding*math.Abs(want))
}
