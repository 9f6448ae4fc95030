package console

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// controls records the work that actions show, and stops it after a number of steps if that is above 0.
type controls struct {
	labels    []string
	progress  []int64
	stopAfter int64
}

func (c *controls) Connection() cluster.Connection                          { return cluster.Connection{} }
func (c *controls) SetQuery(string)                                         {}
func (c *controls) Select(runs.ID)                                          {}
func (c *controls) FindRun(context.Context, string) (r runs.Run, err error) { return r, err }
func (c *controls) SetPaused(bool)                                          {}
func (c *controls) Refresh()                                                {}
func (c *controls) Compare(histories.DiffAsk)                               {}
func (c *controls) VerifyRun(bool)                                          {}
func (c *controls) VerifyRuns(histories.VerifyRequest)                      {}

func (c *controls) StartWork(ctx context.Context, label string) (context.Context, func(done, total int64),
	func()) {
	c.labels = append(c.labels, label)
	ctx, stop := context.WithCancel(ctx)
	return ctx, func(done, total int64) {
		c.progress = append(c.progress, done, total)
		if done == c.stopAfter {
			stop()
		}
	}, stop
}

// TestActionOnSeveralRuns checks the order, the progress, the first error and the stop of an action on
// several runs.
func TestActionOnSeveralRuns(t *testing.T) {
	list := []runs.Run{{WorkflowID: "a", RunID: "1"}, {WorkflowID: "b", RunID: "2"},
		{WorkflowID: "c", RunID: "3"}}
	act := func(c *controls) (acted []string, result string) {
		p := &Pipeline{Context: t.Context(), controls: c}
		done, err := p.each("cancel", list, func(_ context.Context, of runs.ID) (runs.Prepared, error) {
			if of.WorkflowID == "b" {
				return runs.Prepared{}, errors.New("permission denied")
			}
			return runs.Prepared{Do: func(context.Context) (string, runs.Run, error) {
				acted = append(acted, of.WorkflowID)
				return "", runs.Run{}, nil
			}}, nil
		})
		if err != nil {
			done = err.Error()
		}
		return acted, done
	}
	c := &controls{}
	acted, result := act(c)
	if !slices.Equal(acted, []string{"a", "c"}) || result != "sent to 2 of 3 runs; b: permission denied" {
		t.Errorf("acted on %v: %q", acted, result)
	}
	if !slices.Equal(c.labels, []string{"cancel 3 runs"}) ||
		!slices.Equal(c.progress, []int64{1, 3, 2, 3, 3, 3}) {
		t.Errorf("work %v, progress %v", c.labels, c.progress)
	}
	acted, result = act(&controls{stopAfter: 1})
	if !slices.Equal(acted, []string{"a"}) || !strings.Contains(result, "sent to 1 of 3 runs; stopped") {
		t.Errorf("stopped: acted on %v: %q", acted, result)
	}
}
