package history

import (
	"errors"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
)

// FailureOf reads a failure as it stands in a history.
func FailureOf(f *failurepb.Failure) ace.Failure {
	return FailureFrom(temporal.GetDefaultFailureConverter().FailureToError(f))
}

// FailureFrom reads an error as a workflow receives it from an activity. The wrapping
// that the SDK adds on one side only is taken off, so that both sides agree.
func FailureFrom(err error) ace.Failure {
	var activity *temporal.ActivityError
	if errors.As(err, &activity) {
		err = errors.Unwrap(activity)
	}
	var child *temporal.ChildWorkflowExecutionError
	if errors.As(err, &child) {
		err = errors.Unwrap(child)
	}
	var canceled *temporal.CanceledError
	var timeout *temporal.TimeoutError
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		return ace.Failure{Kind: ace.Failed, Message: "unknown failure"}
	case errors.As(err, &timeout):
		return ace.Failure{Kind: ace.Timeout, Type: timeout.TimeoutType().String(), Message: timeoutText(timeout)}
	case errors.As(err, &app):
		return ace.Failure{Kind: ace.Failed, Type: app.Type(), Message: app.Message()}
	case errors.As(err, &canceled):
		return cancelled()
	}
	return ace.Failure{Kind: ace.Failed, Message: err.Error()}
}

func timeoutText(t *temporal.TimeoutError) string {
	text := t.Message()
	if cause := errors.Unwrap(t); cause != nil {
		text += "; last failure: " + FailureFrom(cause).Message
	}
	return text
}

func cancelled() ace.Failure { return ace.Failure{Kind: ace.Cancelled, Message: "cancelled"} }
