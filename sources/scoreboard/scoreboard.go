// Package scoreboard compares the forks of a batch with their originals: which answers a change fixed and
// which it broke. The forks of a batch have the ID of the batch as their experiment.
package scoreboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/sources/experiments"
	"acescope/sources/lineage"
	"acescope/sources/runs"
)

// Outcome says how a fork changed the verdict on an answer.
type Outcome string

// Outcomes.
const (
	Fixed     Outcome = "fixed"     // correct, and the original was not
	Broken    Outcome = "broken"    // not correct, and the original was
	Unchanged Outcome = "unchanged" // both correct, or both not
	Failed    Outcome = "failed"    // the fork has closed without an answer
	Running   Outcome = "running"   // the fork is open
	Unknown   Outcome = "unknown"   // an answer has no verdict, or the original is gone
)

// Outcomes lists the outcomes in the order of a scoreboard.
var Outcomes = []Outcome{Fixed, Broken, Unchanged, Failed, Running, Unknown}

// Row is a fork beside its original. The original has only IDs if it is gone.
type Row struct {
	Original runs.Run
	Fork     runs.Run
	Outcome  Outcome
}

// Scoreboard is the forks of a batch, those that changed first.
type Scoreboard struct {
	Batch  string
	Rows   []Row
	Counts map[Outcome]int
	Usage  ace.Usage // of the forks that have closed
	P      *float64  // of McNemar's test on fixed and broken; nil while a fork is open, and without answers
	Err    string    // why the newest read failed
}

// OutcomeOf compares a fork with its original.
func OutcomeOf(original, fork runs.Run) Outcome {
	graded := func(r runs.Run) bool {
		return r.Verdict == ace.Correct || r.Verdict == ace.Wrong || r.Status.Bad()
	}
	right := func(r runs.Run) bool { return r.Verdict == ace.Correct && !r.Status.Bad() }
	switch {
	case fork.Open():
		return Running
	case fork.Status.Bad():
		return Failed
	case !graded(original), !graded(fork):
		return Unknown
	case right(fork) == right(original):
		return Unchanged
	case right(fork):
		return Fixed
	}
	return Broken
}

// Of counts the rows of a batch.
func Of(batch string, rows []Row) *Scoreboard {
	s := &Scoreboard{Batch: batch, Rows: rows, Counts: map[Outcome]int{}}
	for _, r := range rows {
		s.Counts[r.Outcome]++
		if r.Fork.Summary != nil {
			s.Usage = s.Usage.Add(r.Fork.Summary.Usage)
		}
	}
	if s.Counts[Running] == 0 && s.Counts[Fixed]+s.Counts[Broken]+s.Counts[Unchanged] > 0 {
		s.P = new(stats.McNemar(s.Counts[Fixed], s.Counts[Broken]))
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(slices.Index(Outcomes, a.Outcome)-slices.Index(Outcomes, b.Outcome),
			cmp.Compare(a.Fork.TaskID, b.Fork.TaskID))
	})
	return s
}

// Text returns the totals in one line: "8 fixed, 0 broken, 4 unchanged; p 0.0078; cost $0.12".
func (s *Scoreboard) Text() string {
	var parts []string
	for i, o := range Outcomes {
		if n := s.Counts[o]; n > 0 || i < 3 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	text := strings.Join(parts, ", ")
	if s.P != nil {
		text += "; " + experiments.PText(*s.P)
	}
	return text + "; cost " + s.Usage.Cost()
}

// Change returns what all forks changed: "model: a → b". It is "" if they changed nothing or differ.
func (s *Scoreboard) Change() (change string) {
	for i, r := range s.Rows {
		if r.Fork.Fork == nil {
			return ""
		}
		of := lineage.Changed(r.Fork.Fork)
		if i > 0 && of != change {
			return ""
		}
		change = of
	}
	return change
}

// Caution says how to read the test if no original was correct: reruns fix some answers without any change.
// It is "" otherwise.
func (s *Scoreboard) Caution() string {
	correct := func(r Row) bool { return r.Original.Verdict == ace.Correct }
	if s.Counts[Fixed] == 0 || slices.ContainsFunc(s.Rows, correct) {
		return ""
	}
	return "no original was correct, so no answer could break; if the model varies, reruns alone fix some"
}

// maxAsked bounds the originals that one query asks for.
const maxAsked = 50

// ErrNotFound means that no batch of forks has the ID.
var ErrNotFound = ace.NotFound{Kind: "batch of forks", Hint: `"acescope fork -q" prints the ID`}

// Read reads the forks of a batch and their originals. A batch without forks is [ErrNotFound].
func Read(ctx context.Context, c client.Client, batch string) (*Scoreboard, error) {
	query := fmt.Sprintf("WorkflowType = %q AND %s = %s", ace.TaskWorkflow, ace.AttrExperiment,
		runs.Quote(batch))
	var forks []runs.Run
	err := runs.ListNewest(ctx, c, query, 0, func(r runs.Run) error {
		if r.Fork != nil {
			forks = append(forks, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(forks) == 0 {
		return nil, ErrNotFound.Of(batch)
	}
	originals := map[runs.ID]runs.Run{}
	for some := range slices.Chunk(forks, maxAsked) {
		if err := readOriginals(ctx, c, some, originals); err != nil {
			return nil, err
		}
	}
	var rows []Row
	for _, f := range forks {
		id := runs.ID{WorkflowID: f.Fork.WorkflowID, RunID: f.Fork.RunID}
		original, ok := originals[id]
		if !ok {
			original = runs.Run{WorkflowID: id.WorkflowID, RunID: id.RunID,
				TaskID: ace.TaskIDOf(id.WorkflowID)}
		}
		rows = append(rows, Row{original, f, OutcomeOf(original, f)})
	}
	return Of(batch, rows), nil
}

func readOriginals(ctx context.Context, c client.Client, forks []runs.Run, into map[runs.ID]runs.Run) error {
	var ids []string
	for _, f := range forks {
		ids = append(ids, runs.Quote(f.Fork.WorkflowID))
	}
	return runs.List(ctx, c, "WorkflowId IN ("+strings.Join(ids, ", ")+")", 0, func(r runs.Run) error {
		into[r.ID()] = r
		return nil
	})
}
