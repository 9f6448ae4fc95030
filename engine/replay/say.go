package replay

import "fmt"

// say puts a divergence into a plain sentence, and says what to do about it.
func (d *Divergence) say() (sentence, advice string) {
	where := fmt.Sprintf("at event %d (%s)", d.EventID, d.EventType)
	guard := "guard the change with workflow.GetVersion (docs/versioning.md), or let runs that began before it end on the old code"
	switch d.Kind {
	case KindMissing:
		return fmt.Sprintf("%s the history has %s, which the code no longer does", where, d.Expected), guard
	case KindAdded:
		return fmt.Sprintf("%s the code does %s, which the history does not have", where, d.Actual), guard
	case KindChanged:
		return fmt.Sprintf("%s the history has %s, the code does the same with another %s (%s)", where, d.Expected, d.what(), d.Actual.Detail),
			"Temporal lets this pass: open runs go on, but decide otherwise than those that have closed"
	case KindVersion:
		return fmt.Sprintf("%s the history was written with version %s of the change %q, the code supports %s", where, d.Expected.detail(), d.Actual.Name, d.Actual.Detail),
			"keep the branch of that version in the code until no run that began with it is open"
	case KindPanic:
		return fmt.Sprintf("%s the code ends in a panic", where), "the message of the replayer says where; a workflow must not panic on what it has accepted before"
	case KindStuck:
		return fmt.Sprintf("%s the code does not come to a decision: it loops without an end, or waits for something outside of the workflow", where),
			"let it wait with workflow.Await, workflow.Sleep or a workflow.Channel only; a worker would fail the workflow task after a second"
	case KindResult:
		if d.Actual == nil {
			return fmt.Sprintf("%s the run ended with another result than the code gives", where), guard
		}
		return fmt.Sprintf("%s the run ended with %s, the code ends with %s", where, d.Expected, d.Actual), guard
	}
	expected, actual := d.Expected, d.Actual
	if expected != nil && actual != nil && expected.Detail == actual.Detail { // it is not what differs
		a, b := *expected, *actual
		a.Detail, b.Detail = "", ""
		expected, actual = &a, &b
	}
	return fmt.Sprintf("%s the history has %s, the code does %s", where, expected, actual), guard
}

func (c *Command) detail() string {
	if c == nil || c.Detail == "" || c.Detail == "-1" {
		return "before the change"
	}
	return c.Detail
}

func (d *Divergence) what() string {
	switch d.Expected.Kind {
	case kindTimer:
		return "length"
	case kindComplete:
		return "result"
	}
	return "input"
}
