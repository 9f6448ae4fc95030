package example

import (
	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/operation"
)

// RefundWorkflow is the workflow type of the successive versions below.
const RefundWorkflow = "Refund"

// RefundFirst is the workflow as it was released first.
func RefundFirst(ctx workflow.Context, order string) error {
	r := operation.New(ctx)
	if err := r.Do(ctx, step("pay back", order), nil); err != nil {
		return err
	}
	return r.Do(ctx, step("tell", order), nil)
}

// RefundGuarded is the second release: a check comes before the payment, for runs that reach
// this point for the first time. Other runs continue with the old code.
func RefundGuarded(ctx workflow.Context, order string) error {
	r := operation.New(ctx)
	if r.Version(ctx, "fraud-check", workflow.DefaultVersion, 1) >= 1 {
		if err := r.Do(ctx, step("look for fraud", order), nil); err != nil {
			return err
		}
	}
	if err := r.Do(ctx, step("pay back", order), nil); err != nil {
		return err
	}
	return r.Do(ctx, step("tell", order), nil)
}

// RefundFinished is the third release. No run of the first release is open, so the old code
// is removed. The call of Version stays, with the remaining range.
func RefundFinished(ctx workflow.Context, order string) error {
	r := operation.New(ctx)
	r.Version(ctx, "fraud-check", 1, 1)
	for _, name := range []string{"look for fraud", "pay back", "tell"} {
		if err := r.Do(ctx, step(name, order), nil); err != nil {
			return err
		}
	}
	return nil
}

// RefundCareless is a mistake: the check was added without a version.
func RefundCareless(ctx workflow.Context, order string) error {
	r := operation.New(ctx)
	for _, name := range []string{"look for fraud", "pay back", "tell"} {
		if err := r.Do(ctx, step(name, order), nil); err != nil {
			return err
		}
	}
	return nil
}

func step(name, order string) operation.Operation {
	return operation.Operation{Type: operation.Action, Step: name, Parameters: order}
}
