package views

import "acescope/sources"

// goOn follows the selected run to the one that it goes on as, where it was open when it was
// selected: whoever opens one that has ended wants to see that one.
func (c *console) goOn(d *sources.Detail) {
	r := &c.selected.run
	if d == nil || d.ContinuedAs == "" || !c.live() || d.WorkflowID != r.WorkflowID || d.RunID != r.RunID {
		return
	}
	r.RunID, r.Start = d.ContinuedAs, d.Close
	c.elsewhere = true // until the list has it
	c.Controls.Select(r.WorkflowID, r.RunID)
}

// live tells whether the selected run was open as it was selected. Of one that another names
// no more than the ids are known.
func (c *console) live() bool {
	return c.selected.ok && c.selected.run.Open() && !c.selected.run.Start.IsZero()
}

// heir is where in the list the run is that the selected one goes on as, -1 for nowhere.
func (v *runs) heir() int {
	if !v.live() {
		return -1
	}
	was := &v.selected.run
	for i := range v.count() {
		if r := v.at(i); r.WorkflowID == was.WorkflowID && r.RunID != was.RunID && !r.Start.Before(was.Start) {
			return i
		}
	}
	return -1
}
