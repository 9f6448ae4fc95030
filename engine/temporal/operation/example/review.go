// Package example contains workflows with engine/temporal/operation that the documentation
// shows and the tests run. It may import engine/temporal/operation and Temporal's workflow packages.
//
// Order, bounds and loss are those of engine/temporal/operation.
package example

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/operation"
)

// Register registers the workflows.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(Review, workflow.RegisterOptions{Name: "Review"})
	r.RegisterWorkflowWithOptions(Watch, workflow.RegisterOptions{Name: "Watch"})
	r.RegisterWorkflowWithOptions(RefundGuarded, workflow.RegisterOptions{Name: RefundWorkflow})
}

// Question is the input of a review.
type Question struct {
	Text   string   `json:"text"`
	Facts  []string `json:"facts"`  // each is checked
	Rounds int      `json:"rounds"` // drafts at most
}

// Draft is a draft of an answer.
type Draft struct {
	Text  string  `json:"text"`
	Score float64 `json:"score"`
}

// Answer is the result of a review.
type Answer struct {
	Text    string    `json:"text"`
	Rounds  int       `json:"rounds"`
	Wrong   []string  `json:"wrong,omitempty"` // facts that did not hold
	Receipt string    `json:"receipt"`
	At      time.Time `json:"at"`
}

// Review lets an agent draft an answer until it is good enough, checks its facts in
// parallel, and publishes it.
func Review(ctx workflow.Context, q Question) (Answer, error) {
	r := operation.New(ctx, operation.Annotated())
	var best Draft
	rounds := 0
	for rounds < q.Rounds && best.Score < 0.8 {
		rounds++
		// The second draft has the id op.draft.-.2, in every replay.
		if err := r.Do(ctx, operation.Operation{
			Type: operation.AgentResponse, Step: "draft", Variable: "draft",
			Parameters: map[string]any{"question": q.Text, "before": best.Text},
			Options:    operation.Options{Cache: operation.Yes},
		}, &best); err != nil {
			return Answer{}, err
		}
	}

	answer := Answer{Text: best.Text, Rounds: rounds}
	checks := make([]operation.Operation, len(q.Facts))
	for i, fact := range q.Facts {
		checks[i] = operation.Operation{Type: operation.ExternalCall, Step: "check", Parameters: fact}
	}
	outcomes, err := r.Branch("facts").Batch(ctx, checks,
		operation.BatchOptions{Window: 4, OnFailed: operation.CollectAll})
	if err != nil {
		return Answer{}, err
	}
	for i, o := range outcomes {
		var holds bool
		if o.Err != nil || o.Decode(&holds) != nil || !holds {
			answer.Wrong = append(answer.Wrong, q.Facts[i])
		}
	}
	if err := r.Set("wrong", len(answer.Wrong)); err != nil {
		return Answer{}, err
	}

	title := operation.Random(ctx, r, "title", func(r *rand.Rand) int { return 100 + r.IntN(900) })
	answer.At = r.Now(ctx)
	err = r.Do(ctx, operation.Operation{
		Type: operation.Action, Step: "publish", Variable: "receipt",
		Parameters: Page{Title: fmt.Sprintf("Answer %d", title), Text: answer.Text},
	}, &answer.Receipt)
	r.Flush(ctx)
	return answer, err
}

// Page is a published page.
type Page struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// Outbox publishes pages, once per key with the same receipt.
type Outbox interface {
	Publish(ctx context.Context, key string, p Page) (receipt string, err error)
}

// Handlers serve the operations of the workflows here.
func Handlers(out Outbox) (*operation.Handlers, error) {
	h := &operation.Handlers{}
	if err := h.Handle(operation.AgentResponse, "draft", "v1", operation.Typed(draft)); err != nil {
		return nil, err
	}
	if err := h.Handle(operation.ExternalCall, "check", "v1",
		operation.Typed(func(_ context.Context, fact string) (bool, error) {
			return !strings.Contains(fact, "flat"), nil
		})); err != nil {
		return nil, err
	}
	if err := h.Handle(operation.Action, "publish", "v1",
		operation.Typed(func(ctx context.Context, p Page) (string, error) {
			return out.Publish(ctx, operation.CallOf(ctx).Key, p)
		})); err != nil {
		return nil, err
	}
	return h, h.Handle(operation.Action, "", "v1",
		operation.Typed(func(context.Context, any) (string, error) {
			return "done", nil
		}))
}

// draft replaces a model.
func draft(_ context.Context, in struct{ Question, Before string }) (Draft, error) {
	if in.Question == "" {
		return Draft{}, operation.AgentFailure(fmt.Errorf("no question"))
	}
	if in.Before == "" {
		return Draft{Text: "Well.", Score: 0.4}, nil
	}
	return Draft{Text: in.Before + " " + in.Question + " Yes.", Score: 0.9}, nil
}
