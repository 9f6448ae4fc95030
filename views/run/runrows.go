package run

import (
	"cmp"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/widget"
	"acescope/views/console"
)

// part is a section of a run's screen.
type part uint8

const (
	partTrouble part = iota
	partPending
	partProgress
	partFailedTasks
	PartPhases
	partCourse
	partResult
	partLog
	partLineage
	partSkills
	partDelta
	partTask
	partReflection
	PartCalls
	PartAbout
	parts
)

// ItemKind is what a row is about.
type ItemKind uint8

const (
	itemNone ItemKind = iota
	ItemSection
	ItemFailure
	itemCause
	itemReading
	itemMissing
	ItemSealed
	itemPending
	itemProgress
	itemFailedTask
	ItemPhase
	itemActivity
	ItemSkill
	itemSpent
	ItemOperation
	itemTag
	itemPrompt
	ItemAnswer
	itemExpected
	ItemPlan
	itemTrajectory
	itemBullets
	itemInsights
	itemRationale
	itemFollowUp
	ItemLineage // n-th by its start
	itemCallLog
	ItemCall
	itemField
	ItemLink
	itemCourse
	itemResult
	itemLog // n-th since the log began
)

// Item is what a row is about: the n-th of its kind. Lists only grow while a run is
// watched, so that an item stays the same from snapshot to snapshot.
type Item struct {
	Kind ItemKind
	Part part
	N    int32
}

// runRow is one line of the list: an item, or a further line of one that is unfolded.
type runRow struct {
	Item
	more string // the further line
	Sub  bool   // it is one
}

// rowsOf lists the rows of a run. A folded section has its heading only; extra gives the
// further lines of an item that is unfolded.
func rowsOf(d *histories.Detail, into []runRow, folded map[part]bool, extra func(Item) []string) []runRow {
	b := rowBuilder{rows: into[:0], folded: folded, extra: extra}
	b.section(partTrouble, func() {
		b.one(ItemFailure, d.Phase.Failure != nil)
		b.many(itemCause, len(causes(d)))
		b.one(itemReading, d.Err != "")
		b.one(itemMissing, len(d.Missing) > 0)
		b.many(ItemSealed, len(d.Sealed))
	})
	b.section(partPending, func() { b.many(itemPending, len(d.Pending)) })
	if d.Experiment != nil {
		b.section(partProgress, func() { b.many(itemProgress, len(d.Experiment.Epochs)+len(d.Experiment.Eval)+1) })
		b.section(partFailedTasks, func() { b.many(itemFailedTask, len(d.FailedTasks)) })
	}
	b.section(PartPhases, func() {
		b.many(ItemPhase, len(d.Phase.Steps))
		for i, a := range d.Activities {
			if a.Phase == "" || len(d.Phase.Steps) == 0 {
				b.add(Item{itemActivity, PartPhases, int32(i)})
			}
		}
	})
	if d.Course != nil {
		b.section(partCourse, func() { b.known(itemCourse, runners.CourseFields(d.Course)) })
		b.section(partResult, func() { b.known(itemResult, runners.ResultFields(d.Course)) })
		b.section(partLog, func() {
			for i := max(len(d.Log)-shownLog, 0); i < len(d.Log); i++ {
				b.add(Item{itemLog, partLog, int32(d.LogDropped + i)})
			}
		})
	}
	b.section(partLineage, func() {
		for _, n := range nodesOf(d) {
			b.add(Item{ItemLineage, partLineage, int32(n.Number)})
		}
	})
	b.section(partSkills, func() {
		b.many(ItemSkill, len(d.Skills.Skills))
		b.one(itemSpent, len(d.Skills.Skills) > 0 && spentOn(d, ace.PhaseSkills) != nil)
	})
	b.section(partDelta, func() { b.many(ItemOperation, len(d.Delta.Operations)) })
	b.section(partTask, func() {
		b.one(itemPrompt, d.Input.Prompt != "" || d.Input.PromptRef != nil)
		b.one(ItemAnswer, d.Phase.Answer != "")
		b.one(itemExpected, d.Input.Label != nil)
		b.one(ItemPlan, d.Plan != "")
		b.one(itemTrajectory, d.TrajectoryID != "")
		b.one(itemBullets, len(d.BulletIDs) > 0)
	})
	b.section(partReflection, func() {
		b.one(itemInsights, d.Delta.Insights != "")
		b.many(itemTag, len(d.Delta.BulletTags))
		b.one(itemRationale, d.Delta.Rationale != "")
		b.many(itemFollowUp, len(d.Delta.FollowUpActions))
	})
	b.section(PartCalls, func() {
		b.one(itemCallLog, d.CallLog != nil)
		b.many(ItemCall, d.Calls.Len())
	})
	b.section(PartAbout, func() {
		b.many(ItemLink, len(linksOf(d)))
		b.many(itemField, len(fieldsOf(d)))
	})
	return b.rows
}

type rowBuilder struct {
	rows   []runRow
	folded map[part]bool
	extra  func(Item) []string
	at     part
}

// section adds a heading and what fill adds below it; none where that is nothing.
func (b *rowBuilder) section(p part, fill func()) {
	start := len(b.rows)
	b.at = p
	b.rows = append(b.rows, runRow{Item: Item{ItemSection, p, 0}})
	fill()
	switch {
	case len(b.rows) == start+1:
		b.rows = b.rows[:start]
	case b.folded[p]:
		b.rows = b.rows[:start+1]
	}
}

func (b *rowBuilder) one(kind ItemKind, there bool) {
	if there {
		b.add(Item{kind, b.at, 0})
	}
}

func (b *rowBuilder) many(kind ItemKind, n int) {
	for i := range n {
		b.add(Item{kind, b.at, int32(i)})
	}
}

func (b *rowBuilder) add(it Item) {
	b.rows = append(b.rows, runRow{Item: it})
	if b.extra == nil {
		return
	}
	for _, l := range b.extra(it) {
		b.rows = append(b.rows, runRow{Item: it, more: l, Sub: true})
	}
}

// causes is the chain behind the failure, without its first link where that says no more
// than the failure itself.
func causes(d *histories.Detail) []histories.Cause {
	chain := d.Causes
	if a := failedActivity(d); len(chain) == 0 && a != nil {
		chain = a.Causes
	}
	f := d.Phase.Failure
	if len(chain) == 1 && f != nil && chain[0].Message == f.Message && chain[0].Retry == "" {
		return nil
	}
	return chain
}

// failedActivity is the last activity that failed, nil where none did.
func failedActivity(d *histories.Detail) *histories.Activity {
	for i := len(d.Activities) - 1; i >= 0; i-- {
		if d.Activities[i].Failure != nil {
			return &d.Activities[i]
		}
	}
	return nil
}

// activityOf is the newest activity of a phase, nil where there is none yet.
func activityOf(d *histories.Detail, p ace.Phase) *histories.Activity {
	for i := len(d.Activities) - 1; i >= 0; i-- {
		if d.Activities[i].Phase == p {
			return &d.Activities[i]
		}
	}
	return nil
}

// pendingOf is the pending activity of a phase, nil where none is known.
func pendingOf(d *histories.Detail, p ace.Phase) *histories.PendingActivity {
	for i := range d.Pending {
		if step, ok := ace.StepOf(d.Pending[i].Type); ok && step == p {
			return &d.Pending[i]
		}
	}
	return nil
}

// spentOn is what a step cost, nil where it does not say.
func spentOn(d *histories.Detail, p ace.Phase) *ace.Usage {
	for _, st := range d.Phase.Steps {
		if st.Phase == p {
			return st.Usage
		}
	}
	return nil
}

// link is another run that one can go to.
type link struct {
	what string
	run  runs.Run
}

// linksOf lists the runs before and after, and the parent.
func linksOf(d *histories.Detail) []link {
	var links []link
	add := func(what, workflowID, runID string) {
		if runID != "" {
			links = append(links, link{what, runs.Run{WorkflowID: workflowID, RunID: runID, TaskID: ace.TaskIDOf(workflowID)}})
		}
	}
	l := d.Lineage
	how := l.How
	if how == "" {
		how = "continued"
	}
	if r := l.Reset; r != nil {
		add("reset at event "+strconv.FormatInt(r.Event, 10)+" from", d.WorkflowID, r.RunID)
		how = "continued"
	}
	add("before, "+how, d.WorkflowID, l.Prev)
	if l.First != l.Prev && l.First != d.RunID {
		add("first of its chain", d.WorkflowID, l.First)
	}
	add("was reset as", d.WorkflowID, l.ResetAs)
	add("goes on as", d.WorkflowID, l.Next)
	add("parent", l.Parent, l.ParentRun)
	links = append(links, courseLinks(d)...)
	if f := l.Fork; f != nil {
		add("forked at event "+strconv.FormatInt(f.Event, 10)+" from", f.WorkflowID, f.RunID)
	}
	return links
}

// fieldsOf lists what the run is, name and value.
func fieldsOf(d *histories.Detail) [][2]string {
	in := d.Input
	var fields [][2]string
	for _, f := range [][2]string{
		{"workflow", d.WorkflowID}, {"run", d.RunID}, {"type", d.Type}, {"experiment", in.ExperimentID},
		{"dataset", in.DatasetID}, {"provider", in.Provider}, {"steps", runners.Servers(in)}, {"model", in.Model}, {"adapter", string(in.Adapter)},
		{"playbook", in.PlaybookHash}, {"branch", in.Branch}, {"allowed", strings.Join(in.SkillsConfig.AllowedTools, ", ")},
		{"permission", in.SkillsConfig.PermissionMode},
	} {
		if f[1] != "" {
			fields = append(fields, f)
		}
	}
	if said := d.Skew.String(); said != "" {
		fields = append(fields, [2]string{"clock", said})
	}
	if f := d.Lineage.Fork; f != nil {
		for _, c := range ForkChanges(f) {
			fields = append(fields, [2]string{"changed", c})
		}
	}
	return fields
}

// ForkChanges lists what was changed for a fork, a text for each field, by name.
func ForkChanges(f *ace.Forked) []string { return forkChanges(f, theme.Unicode()) }

func forkChanges(f *ace.Forked, g theme.Glyphs) []string {
	var out []string
	for _, name := range console.ChangedNames(f) {
		c := f.Changed[name]
		out = append(out, name+": "+cmp.Or(c.From, "none")+" "+g.Arrow+" "+cmp.Or(c.To, "none"))
	}
	return out
}

// maxNodes bounds the runs of a lineage on the run's screen; the lineage has a screen of
// its own.
const maxNodes = 12

// nodesOf lists the runs of the lineage that the run's screen shows, in the order of the
// tree: those around the run.
func nodesOf(d *histories.Detail) []histories.LineageNode {
	if !d.Forks.Forks() {
		return nil
	}
	all := d.Forks.Nodes
	from := widget.Clamp(d.Forks.Find(d.RunID)-maxNodes/2, 0, max(len(all)-maxNodes, 0))
	return all[from:min(from+maxNodes, len(all))]
}

// eventOf is the history event that a row comes from, 0 where there is none.
func eventOf(d *histories.Detail, it Item) int64 {
	step := func(p ace.Phase) int64 {
		if a := activityOf(d, p); a != nil {
			return a.Event()
		}
		return 0
	}
	switch it.Kind {
	case itemPrompt, itemExpected, itemField, ItemLink:
		return 1
	case itemResult:
		return d.CloseEvent
	case itemLog:
		return logOf(d, it).Event
	case ItemLineage:
		if f := nodeOf(d, it).Run.Fork; f != nil && f.RunID == d.RunID {
			return f.Event
		}
	case ItemFailure, itemCause:
		if d.CloseEvent != 0 {
			return d.CloseEvent
		}
		if a := failedActivity(d); a != nil {
			return a.Event()
		}
	case ItemSealed:
		return d.Sealed[it.N].Event
	case ItemPhase:
		return step(d.Phase.Steps[it.N].Phase)
	case itemActivity:
		return d.Activities[it.N].Event()
	case itemPending:
		for _, a := range d.Activities {
			if a.Name == d.Pending[it.N].Type && a.Closed.IsZero() {
				return a.Event()
			}
		}
	case itemFailedTask:
		return d.FailedTasks[it.N].Event
	case ItemSkill:
		return lastCallOf(d, d.Skills.Skills[it.N].Name)
	case itemSpent, itemCallLog:
		return step(ace.PhaseSkills)
	case ItemOperation:
		if e := step(ace.PhasePersist); e != 0 && d.Delta.PlaybookAfter != "" {
			return e
		}
		return step(ace.PhaseCurator)
	case itemRationale, itemFollowUp:
		return step(ace.PhaseCurator)
	case itemInsights, itemTag:
		return step(ace.PhaseReflector)
	case ItemPlan, itemTrajectory, itemBullets:
		return step(ace.PhaseGenerator)
	case ItemAnswer:
		if e := step(ace.PhaseSkills); e != 0 {
			return e
		}
		return step(ace.PhaseGenerator)
	case ItemCall:
		return d.Calls.At(int(it.N)).Event()
	}
	return 0
}

// lastCallOf is the event of a skill's last call.
func lastCallOf(d *histories.Detail, name string) int64 {
	for i := d.Calls.Len() - 1; i >= 0; i-- {
		if c := d.Calls.At(i); c.Name == name {
			return c.Event()
		}
	}
	return 0
}

// isError tells whether a row is about something that went wrong.
func isError(d *histories.Detail, it Item) bool {
	switch it.Kind {
	case ItemFailure, itemReading, itemFailedTask:
		return true
	case itemCourse, itemResult:
		return courseField(d, it).Bad
	case itemLog:
		return logOf(d, it).Kind == "error"
	case itemPending:
		return d.Pending[it.N].LastError != ""
	case ItemPhase:
		st := d.Phase.Steps[it.N]
		a := activityOf(d, st.Phase)
		return st.Status == ace.StatusFailed || a != nil && (a.LastError != nil || a.Failure != nil)
	case itemActivity:
		return d.Activities[it.N].Failure != nil || d.Activities[it.N].LastError != nil
	case ItemCall:
		c := d.Calls.At(int(it.N))
		return !c.Accepted || !c.OK && !c.Pending
	}
	return false
}

// refsOf lists the artifacts that a row leads to.
func refsOf(d *histories.Detail, it Item) []ace.Ref {
	switch it.Kind {
	case itemPrompt:
		if r := d.Input.PromptRef; r != nil {
			return []ace.Ref{*r}
		}
	case itemCourse, itemResult:
		return courseField(d, it).Refs
	case itemCallLog:
		if d.CallLog != nil {
			return []ace.Ref{*d.CallLog}
		}
	case ItemCall:
		c := d.Calls.At(int(it.N))
		return append(histories.RefsIn(c.Args), histories.RefsIn(c.Result)...)
	}
	return nil
}

// GoesTo is the run that a row leads to.
func GoesTo(d *histories.Detail, it Item) (runs.Run, bool) {
	switch it.Kind {
	case ItemLink:
		return linksOf(d)[it.N].run, true
	case itemCourse:
		return courseGoesTo(d, courseField(d, it).Name)
	case ItemLineage:
		if n := nodeOf(d, it); n.Run.RunID != d.RunID {
			return n.Run, true
		}
	case ItemPhase:
		return runners.ServedBy(d.Phase.Steps[it.N])
	case itemFailedTask:
		if t := d.FailedTasks[it.N]; t.WorkflowID != "" {
			return runs.Run{WorkflowID: t.WorkflowID, RunID: t.RunID, TaskID: t.Result.TaskID}, true
		}
	}
	return runs.Run{}, false
}

// noNode stands for a run that is no longer in the tree.
var noNode = histories.LineageNode{Original: -1}

// nodeOf is the run of the lineage that a row is about.
func nodeOf(d *histories.Detail, it Item) *histories.LineageNode {
	if d.Forks != nil {
		if n := d.Forks.Started(int(it.N)); n != nil {
			return n
		}
	}
	return &noNode
}
