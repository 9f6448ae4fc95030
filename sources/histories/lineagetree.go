package histories

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	runspkg "acescope/sources/runs"
)

// Bounds of a lineage: the runs of its root's workflow id, those of forks, and the calls that read their
// outcomes or resets.
const (
	maxLineage         = 1000
	maxLineageOutcomes = 200
)

// LineageTree is a run with all its forks, and their forks. It is immutable.
type LineageTree struct {
	Root string // workflow id of the original run
	// Nodes holds the runs, each after its original, siblings in the order of their starts.
	Nodes   []LineageNode
	Dropped int       // oldest runs beyond maxLineage
	Unread  int       // runs whose outcome or reset is not read
	Err     string    // why the last reading failed
	Updated time.Time // time of the last reading
}

// LineageNode is a run in the tree. Depth is 0 for the root's runs and for forks whose original is deleted.
type LineageNode struct {
	Run   runspkg.Run
	Depth int
	// Last and More draw the lines of the tree. Last reports whether it is the last fork of its original;
	// More, by depth, whether its ancestor there has a later sibling.
	Last bool
	More []bool
	// Original is the index of the run that it was forked or reset from, or -1.
	Original  int
	Number    int      // in the order of starts, from 0; does not change when runs are added
	RunNumber int      // among the runs of its workflow id, from 1; 0 for a single run
	Outcome   *Outcome // nil if the run has no outcome or it cannot be read
	Effect    Effect
}

// Outcome is the final answer of a run.
type Outcome struct {
	Answer  string
	Correct *bool // nil without a label
}

// Effect compares the outcome of a fork with that of its original.
type Effect string

// Effects. A failed run is worse than a wrong answer, which is worse than a correct one.
const (
	EffectUnknown Effect = "" // one of the two has no outcome, or there is no original
	EffectBetter  Effect = "better"
	EffectWorse   Effect = "worse"
	EffectSame    Effect = "same"  // the same answer, or both failed
	EffectOther   Effect = "other" // another answer, equally correct or wrong
)

// Forks reports whether the lineage has a fork or a reset.
func (t *LineageTree) Forks() bool {
	return t != nil && slices.ContainsFunc(t.Nodes, func(n LineageNode) bool {
		return n.Original >= 0 || n.Run.Fork != nil
	})
}

// Count returns the number of forked runs.
func (t *LineageTree) Count() int {
	n := 0
	for i := range t.Nodes {
		if t.Nodes[i].Run.Fork != nil {
			n++
		}
	}
	return n
}

// Find returns the index of a run in the tree, or -1.
func (t *LineageTree) Find(runID string) int {
	if t == nil {
		return -1
	}
	return slices.IndexFunc(t.Nodes, func(n LineageNode) bool { return n.Run.RunID == runID })
}

// ReadLineage reads the lineage of a workflow from the list of runs: a fork's id begins with its root's, and
// its memo names its original. It does not read again what before has; before may be nil.
func ReadLineage(ctx context.Context, c client.Client, namespace, workflowID string,
	before *LineageTree) (*LineageTree, error) {
	root, _ := ace.ForkRoot(workflowID)
	t := &LineageTree{Root: root}
	var runs []runspkg.Run
	for _, query := range []string{"WorkflowId = " + strconv.Quote(root), "WorkflowId STARTS_WITH " +
		strconv.Quote(ace.ForkPrefix(root))} {
		listed := 0
		err := runspkg.List(ctx, c, query, maxLineage, func(r runspkg.Run) error {
			listed++
			if of, _ := ace.ForkRoot(r.WorkflowID); of == root { // otherwise the id only looks like a fork's
				runs = append(runs, r)
			}
			return nil
		})
		if err == nil && listed == maxLineage {
			var n int64
			n, err = runspkg.Count(ctx, c, query)
			t.Dropped += max(int(n)-listed, 0)
		}
		if err != nil {
			return nil, err
		}
	}
	unread, err := readResets(ctx, c, runs, before)
	if err != nil {
		return nil, err
	}
	t.Nodes = lineageOf(runs)
	if err := t.outcomes(ctx, c, namespace, before); err != nil {
		return nil, err
	}
	t.Unread = max(t.Unread, unread)
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Original >= 0 {
			n.Effect = effectOf(&t.Nodes[n.Original], n)
		}
	}
	return t, nil
}

// readResets finds which run of a workflow id was reset from which. The server names the newest reset of each
// run. It asks nothing if the workflow id has one run, or if all runs are known. It returns the number of
// runs beyond maxLineageOutcomes.
func readResets(ctx context.Context, c client.Client, runs []runspkg.Run, before *LineageTree) (unread int,
	err error) {
	under := map[string][]*runspkg.Run{}
	for i := range runs {
		r := &runs[i]
		if had := before.Find(r.RunID); had >= 0 {
			r.ResetFrom = before.Nodes[had].Run.ResetFrom
		}
		under[r.WorkflowID] = append(under[r.WorkflowID], r)
	}
	asked := 0
	for _, list := range under {
		unknown := slices.ContainsFunc(list, func(r *runspkg.Run) bool { return before.Find(r.RunID) < 0 })
		for _, r := range list {
			if len(list) == 1 || !unknown {
				break
			}
			if asked++; asked > maxLineageOutcomes {
				unread++
				continue
			}
			d, err := c.DescribeWorkflowExecution(ctx, r.WorkflowID, r.RunID)
			if cluster.NotFound(err) {
				continue
			}
			if err != nil {
				return 0, err
			}
			as := d.GetWorkflowExtendedInfo().GetResetRunId()
			if i := slices.IndexFunc(list, func(o *runspkg.Run) bool { return o.RunID == as }); as != "" &&
				i >= 0 {
				list[i].ResetFrom = r.RunID
			}
		}
	}
	return unread, nil
}

// outcomes reads the answers of the runs, of a chain the newest first. A run whose history is deleted has no
// outcome.
func (t *LineageTree) outcomes(ctx context.Context, c client.Client, namespace string,
	before *LineageTree) error {
	read := 0
	for i := range slices.Backward(t.Nodes) {
		n := &t.Nodes[i]
		if n.Run.Status != ace.Completed {
			continue
		}
		if had := before.Find(n.Run.RunID); had >= 0 && before.Nodes[had].Outcome != nil {
			n.Outcome = before.Nodes[had].Outcome
			continue
		}
		if read++; read > maxLineageOutcomes {
			t.Unread++
			continue
		}
		outcome, err := readOutcome(ctx, cluster.Pages{C: c, Namespace: namespace,
			WorkflowID: n.Run.WorkflowID, RunID: n.Run.RunID}, n.Run.Type)
		switch {
		case err == nil:
			n.Outcome = outcome
		case !cluster.NotFound(err):
			return err
		}
	}
	return nil
}

// readOutcome reads the answer of a task, the outputs of a flow as JSON, or the result of another workflow: a
// text, or JSON. It returns nil if the result cannot be read. The last event is that of the run itself, also
// if another run continues it.
func readOutcome(ctx context.Context, p cluster.Pages, workflowType string) (*Outcome, error) {
	events, _, err := p.Backward(ctx, 1, nil)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	last, _ := history.Outcome(events[len(events)-1])
	data, ok := history.Values(last)
	if !ok {
		return nil, nil
	}
	var result struct {
		ace.TaskResult
		Outputs json.RawMessage `json:"outputs"`
	}
	err = json.Unmarshal(data, &result)
	switch {
	case workflowType == flow.Workflow:
		return &Outcome{Answer: string(result.Outputs)}, nil
	case err == nil && (workflowType == ace.TaskWorkflow || result.Answer != ""):
		return &Outcome{Answer: result.Answer, Correct: result.Correct}, nil
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	return &Outcome{Answer: text}, nil
}

func effectOf(of, n *LineageNode) Effect {
	was, is := grade(of), grade(n)
	labeled := was != gradeUnlabeled && is != gradeUnlabeled || was == gradeFailed || is == gradeFailed
	switch {
	case was == 0 || is == 0:
		return EffectUnknown
	case labeled && is > was:
		return EffectBetter
	case labeled && is < was:
		return EffectWorse
	case is == gradeFailed || of.Outcome.Answer == n.Outcome.Answer:
		return EffectSame
	}
	return EffectOther
}

// Grades of a run, worst first; 0 without an outcome.
const (
	gradeFailed = 1 + iota
	gradeWrong
	gradeUnlabeled
	gradeCorrect
)

func grade(n *LineageNode) int {
	switch {
	case n.Run.Status.Bad() && n.Run.Status != ace.Canceled:
		return gradeFailed
	case n.Outcome == nil:
		return 0
	case n.Outcome.Correct == nil:
		return gradeUnlabeled
	case *n.Outcome.Correct:
		return gradeCorrect
	}
	return gradeWrong
}

// lineageOf arranges runs as a tree.
func lineageOf(runs []runspkg.Run) []LineageNode {
	slices.SortStableFunc(runs, func(a, b runspkg.Run) int { return a.Start.Compare(b.Start) })
	// A run that moves in the list while it is read may be in two pages.
	seen := map[string]bool{}
	runs = slices.DeleteFunc(runs, func(r runspkg.Run) bool {
		known := seen[r.RunID]
		seen[r.RunID] = true
		return known
	})
	number, runNumber, under := map[string]int{}, map[string]int{}, map[string]int{}
	for i, r := range runs {
		under[r.WorkflowID]++
		number[r.RunID], runNumber[r.RunID] = i, under[r.WorkflowID]
	}
	slices.SortStableFunc(runs, func(a, b runspkg.Run) int {
		_, i := ace.ForkRoot(a.WorkflowID)
		_, j := ace.ForkRoot(b.WorkflowID)
		return i - j
	})
	children := map[string][]runspkg.Run{}
	origin := origins(runs)
	for _, r := range runs {
		children[origin[r.RunID]] = append(children[origin[r.RunID]], r)
	}
	var nodes []LineageNode
	var walk func(from string, original, depth int, more []bool)
	walk = func(from string, original, depth int, more []bool) {
		list := children[from]
		delete(children, from) // each run once
		for i, r := range list {
			last := i == len(list)-1
			n := LineageNode{
				Run: r, Depth: depth, Last: last, More: slices.Clone(more), Original: original,
				Number: number[r.RunID],
			}
			if under[r.WorkflowID] > 1 {
				n.RunNumber = runNumber[r.RunID]
			}
			nodes = append(nodes, n)
			walk(r.RunID, len(nodes)-1, depth+1, append(slices.Clone(more), !last))
		}
	}
	walk("", -1, 0, nil)
	return nodes
}

// origins returns the run id of each run's original, by run id: "" without an original or if it is deleted.
func origins(runs []runspkg.Run) map[string]string {
	here := map[string]bool{}
	newest := map[string]string{} // run id by workflow id
	for _, r := range runs {
		here[r.RunID], newest[r.WorkflowID] = true, r.RunID
	}
	from := map[string]string{}
	for _, r := range runs {
		of := ""
		switch f := r.Fork; {
		case r.ResetFrom != "": // also of a fork that was reset later
			if here[r.ResetFrom] {
				of = r.ResetFrom
			}
		case f != nil:
			if of = f.RunID; !here[of] {
				of = newest[f.WorkflowID] // the original run is deleted, but not its workflow
			}
		}
		from[r.RunID] = of
	}
	for _, r := range runs { // runs that are each other's originals have none
		at := from[r.RunID]
		for n := 0; at != "" && at != r.RunID && n < len(runs); n++ {
			at = from[at]
		}
		if at == r.RunID {
			delete(from, at)
		}
	}
	return from
}

// LineageFeed reads the lineage of a workflow repeatedly while it is shown, because other processes may fork
// it.
type LineageFeed struct {
	*feed.Feed[string, *LineageTree]
	link *cluster.Link
}

// NewLineageFeed returns a feed of the lineage of a workflow id.
func NewLineageFeed(link *cluster.Link) *LineageFeed {
	f := &LineageFeed{link: link}
	f.Feed = feed.New(link.Wake, f.read)
	return f
}

func (f *LineageFeed) read(ctx context.Context, workflowID string, publish func(*LineageTree)) {
	if workflowID == "" {
		return
	}
	root, _ := ace.ForkRoot(workflowID)
	last := f.Value()
	if last != nil && last.Root != root {
		last = nil
	}
	for {
		t := f.readOnce(ctx, workflowID, last)
		if ctx.Err() != nil {
			return
		}
		publish(t)
		last = t
		if cluster.Sleep(ctx, t.interval()) != nil {
			return
		}
	}
}

// readOnce returns the last tree with an error if reading fails.
func (f *LineageFeed) readOnce(ctx context.Context, workflowID string, last *LineageTree) *LineageTree {
	ctx, stop := context.WithTimeout(ctx, cluster.CallTimeout)
	defer stop()
	t, err := ReadLineage(ctx, f.link.Client, f.link.Namespace, workflowID, last)
	if err != nil {
		root, _ := ace.ForkRoot(workflowID)
		t = &LineageTree{Root: root}
		if last != nil {
			*t = *last
		}
		t.Err = cluster.PlainError(err)
		return t
	}
	t.Updated = f.link.Now()
	return t
}

// Time between two readings of a lineage: with and without an open run.
const (
	lineageEvery  = cluster.DefaultInterval
	lineageSeldom = 5 * cluster.DefaultInterval
)

func (t *LineageTree) interval() time.Duration {
	for i := range t.Nodes {
		if t.Nodes[i].Run.Open() {
			return lineageEvery
		}
	}
	return lineageSeldom
}
