package console

import "acescope/sources/histories"

// GoOn follows the selected run to the one that it goes on as, where it was open when it was
// selected: whoever opens one that has ended wants to see that one.
func (c *Console) GoOn(d *histories.Detail) {
	r := &c.Selected.Run
	if d == nil || d.ContinuedAs == "" || !c.Live() || d.WorkflowID != r.WorkflowID || d.RunID != r.RunID {
		return
	}
	r.RunID, r.Start = d.ContinuedAs, d.Close
	c.Elsewhere = true // until the list has it
	c.Controls.Select(r.WorkflowID, r.RunID)
}

// Live tells whether the selected run was open as it was selected. Of one that another names
// no more than the ids are known.
func (c *Console) Live() bool {
	return c.Selected.Ok && c.Selected.Run.Open() && !c.Selected.Run.Start.IsZero()
}
