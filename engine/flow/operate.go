package flow

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/temporal/operation"
)

// operate executes an operation with parameters for acescope's handlers. A local one runs on the machine of
// the run's directory.
func (s *scope) operate(step *Step, kind operation.Type, p Parameters, local bool) (any, error) {
	op := operation.Operation{Type: kind, Step: step.ID, Parameters: p}
	if local {
		op.Options.TaskQueue = s.x.input.Queue
	}
	if step.Cache {
		op.Options.Cache = operation.Yes
	}
	return s.execute(step, op)
}

func (s *scope) execute(step *Step, op operation.Operation) (any, error) {
	if l := s.x.flow.Limits.Operations; l > 0 && s.x.state.Operations >= l {
		return nil, step.errorf(TypeLimit, "the flow has executed %d operations, its limit", l)
	}
	if s.name != "" {
		op.Options.Summary = step.ID + ": " + s.name
	}
	op.Options.Timeout = step.Timeout
	op.Options.Retry.MaximumAttempts = int32(step.Attempts)
	future := s.runner.Execute(s.ctx, op)
	if err := s.x.note(s.ctx, s.pathOf(step),
		Fact{Operation: future.ID(), Reused: future.Reused()}); err != nil {
		return nil, err
	}
	r, err := future.Result(s.ctx)
	if err != nil {
		if temporal.IsCanceledError(err) {
			return nil, err
		}
		f := operation.FailureOf(err)
		if late, ok := errors.AsType[*temporal.TimeoutError](err); ok &&
			late.TimeoutType() == enumspb.TIMEOUT_TYPE_START_TO_CLOSE {
			f.Message = "it took longer than its timeout"
			if step.Timeout > 0 {
				f.Message += " of " + step.Timeout.String()
			}
		}
		return nil, step.errorf(f.Type, "%s", f.Message)
	}
	if r.Ref != nil {
		return nil, step.errorf(operation.TypeBadResult,
			"the result of %d KB is too large to be recorded; return a reference to an artifact", r.Ref.Size>>10)
	}
	value, err := decodeJSON(r.Value)
	if err != nil {
		return nil, step.errorf(operation.TypeBadResult, "%v", err)
	}
	return value, s.spend(step, r.Value, future.Reused())
}

// spend adds the usage of an operation, and fails the step if the flow costs more than its limit.
func (s *scope) spend(step *Step, result json.RawMessage, reused bool) error {
	var r struct {
		Usage    *ace.Usage `json:"usage"`
		Provider string     `json:"provider"`
		Model    string     `json:"model"`
		Session  string     `json:"session_id"` // of an agent or of a blueprint's run
	}
	if json.Unmarshal(result, &r) != nil || r.Usage == nil || *r.Usage == (ace.Usage{}) || reused {
		return nil
	}
	f := Fact{Usage: r.Usage, Metered: r.Session == "" && !ace.IsAgent(r.Provider)}
	if f.Metered {
		f.Model = r.Model
	}
	if err := s.x.note(s.ctx, s.pathOf(step), f); err != nil {
		return err
	}
	if l := s.x.flow.Limits.CostUSD; l > 0 && s.x.state.Usage.CostUSD > l {
		return step.errorf(TypeLimit, "the flow has cost $%.2f, and its limit is $%.2f",
			s.x.state.Usage.CostUSD, l)
	}
	return nil
}

// directory returns the directory of the run, and the path within it of the directory of a program, or "".
// The worker checks symbolic links.
func (s *scope) directory(step *Step, within *Template) (dir, inside string, err error) {
	if inside, err = s.optional(within); err != nil {
		return "", "", err
	}
	if s.x.input.Dir == "" {
		return "", "", step.errorf(TypeValue, "the run has no directory; start it with --dir")
	}
	if !isLocal(inside) {
		return "", "", step.errorf(TypeUnsafe, "the path %q leaves the directory of the run", shorten(inside))
	}
	return s.x.input.Dir, inside, nil
}

// isLocal reports whether a slash-separated path stays in its directory, on any system.
func isLocal(name string) bool {
	return !strings.HasPrefix(name, "/") && !strings.ContainsAny(name, "\\:\x00") &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

// detailed is a kind that describes the result of a step in a few words.
type detailed interface {
	detail(fields map[string]any) string
}

func preview(v any) string {
	s, err := jsonText(v)
	if err != nil || v == nil {
		return ""
	}
	return ace.Cut(s, 200)
}

// numbersOf converts a decoded random value to the numbers of expressions.
func numbersOf(v any) any {
	if data, err := json.Marshal(v); err == nil {
		if out, err := decodeJSON(data); err == nil {
			return out
		}
	}
	return v
}
