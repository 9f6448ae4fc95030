package playbooks

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/experiments"
	"acescope/sources/runs"
)

// Intervals and bounds of the reader of playbooks.
const (
	readEvery       = time.Second
	evidenceEvery   = 15 * time.Second
	syncEvery       = 30 * time.Second // of the branches of other machines that are not shown
	MaxRationale    = 300              // bytes of the rationale of a listed version
	maxSteps        = 500              // runs whose steps are remembered
	maxOutcomes     = 20_000
	evidenceTimeout = 10 * time.Second
)

// reader is the state of the reader between readings. It belongs to one goroutine.
type reader struct {
	head     *playbook.History // of the selected branch up to its newest version
	past     *playbook.History // of the same branch up to an older version
	health   *VersionHealth
	evidence evidence
	steps    map[RunKey]RunSteps
	synced   time.Time // when all branches were synchronized
}

type evidence struct {
	branch string
	at     time.Time
	known  playbook.Evidence
}

// read fills b. It reads the selected branch only if it has changed since the last value for the same ask. If
// the histories of the bullets take a moment, it publishes what it has before.
func (k *reader) read(ctx context.Context, store *playbook.Store, ask Ask, last, b *Playbooks,
	publish func(*Playbooks)) error {
	syncErr := k.sync(ctx, store, cmp.Or(ask.Branch, last.Branch.Name))
	list, partly := store.Branches() // readable branches, and why others are not
	partly = errors.Join(syncErr, partly)
	b.Branches = list
	var err error
	switch {
	case ask.Branch != "":
		b.Branch, err = store.Branch(ask.Branch)
	case len(list) > 0:
		b.Branch = Newest(list)
	}
	if err != nil || b.Branch.Name == "" {
		return errors.Join(err, partly)
	}
	b.Steps = k.steps
	if ask.Health && k.health != nil && k.health.Branch == b.Branch.Name {
		b.Health = k.health
	}
	if last.Branch == b.Branch && complete(last, ask) {
		b.From, b.Versions, b.Version, b.Compared = last.From, last.Versions, last.Version, last.Compared
		return partly
	}
	if b.From, b.Versions, err = Window(store, b.Branch, ask.Around); err != nil {
		return err
	}
	if b.Version, err = versionAt(ctx, store, b.Branch, ask.Seq); err != nil {
		return err
	}
	if b.Health != nil && b.Health.VersionRef != b.Version.VersionRef {
		b.Health = nil
	}
	if ask.Compare {
		b.Compared = compare(ctx, store, ask)
	}
	if ask.Bullets || ask.Health {
		if err := k.blame(ctx, store, b, publish); err != nil {
			return err
		}
	}
	return partly
}

// sync gets what other machines have added: to the shown branch, and from time to time to all of them.
func (k *reader) sync(ctx context.Context, store *playbook.Store, shown string) error {
	if shown != "" && time.Since(k.synced) < syncEvery {
		return store.Sync(ctx, shown)
	}
	k.synced = time.Now()
	return store.Sync(ctx)
}

// complete reports whether a value has everything of an ask that does not come from the server.
func complete(b *Playbooks, ask Ask) bool {
	switch {
	case b.Version == nil:
		return false
	case ask.Compare && b.Compared.Err != "":
		return false
	}
	return b.Version.HasBullets || !ask.Bullets && !ask.Health
}

// Window lists the versions around a number, without their operations, from the number that it returns.
func Window(store *playbook.Store, branch playbook.Branch, around int) (from int, list []playbook.Version,
	err error) {
	total := branch.Versions
	if around < 0 || around > total {
		around = total
	}
	from = max(min(around-VersionWindow/2, total-VersionWindow+1), 1)
	list, err = store.Page(branch.Name, from, from+VersionWindow-1)
	for i := range list {
		list[i].Operations = nil
		r := list[i].Rationale
		list[i].Rationale = strings.ToValidUTF8(r[:min(len(r), MaxRationale)], "")
	}
	return from, list, err
}

// Newest returns the branch that changed last. A branch of a fork is chosen only if no other branch has
// versions, and a branch without versions only if no branch has any. The list must not be empty.
func Newest(list []playbook.Branch) playbook.Branch {
	learns := func(b playbook.Branch) int {
		switch {
		case b.Versions == 0:
			return 0
		case strings.HasPrefix(b.Name, ace.ForkBranch("")):
			return 1
		}
		return 2
	}
	return slices.MaxFunc(list, func(a, b playbook.Branch) int {
		return cmp.Or(cmp.Compare(learns(a), learns(b)), a.At.Compare(b.At))
	})
}

// blame adds to the selected version its bullets with their histories. It extends the kept history up to the
// newest version, or up to an older one.
func (k *reader) blame(ctx context.Context, store *playbook.Store, b *Playbooks,
	publish func(*Playbooks)) error {
	at := *b.Version
	keep := &k.past
	if at.Seq == b.Branch.Versions {
		keep = &k.head
	}
	if *keep == nil || (*keep).Branch != at.Branch || keep == &k.past {
		partial := *b
		publish(&partial) // the history of a long branch takes a moment
		// Wait until the cursor rests, because each row that it passes asks for another version.
		if err := cluster.Sleep(ctx, cluster.CursorRest); err != nil {
			return err
		}
	}
	if *keep == nil || (*keep).Branch != at.Branch {
		*keep = playbook.NewHistory(at.Branch)
	}
	h := *keep
	if err := store.Read(ctx, h, at.Seq); err != nil {
		return err
	}
	book, err := store.Get(ctx, at.Hash)
	if err != nil {
		return err
	}
	at.HasBullets, at.Bullets, at.Totals, at.Sizes = true, h.Blame(book), h.Totals(), h.Sizes()
	b.Version = &at
	return nil
}

// versionAt returns a version of a branch without its bullets, the newest if seq is negative.
func versionAt(ctx context.Context, store *playbook.Store, branch playbook.Branch, seq int) (*VersionDetail,
	error) {
	mark := VersionRef{branch.Name, seq}
	if seq < 0 || seq > branch.Versions {
		mark.Seq = branch.Versions
	}
	hash, err := store.At(mark.Branch, mark.Seq)
	if err != nil {
		return nil, err
	}
	book, err := store.Get(ctx, hash)
	if err != nil {
		return nil, err
	}
	at := &VersionDetail{VersionRef: mark, Hash: hash, Changes: &playbook.Difference{},
		Record: playbook.Version{Source: playbook.Source{Hash: hash}, Bullets: len(book.Bullets)}}
	if mark.Seq == 0 {
		if branch.Versions == 0 {
			at.Record.At = branch.At
		}
		return at, nil
	}
	page, err := store.Page(mark.Branch, mark.Seq, mark.Seq)
	if err != nil || len(page) == 0 {
		return nil, errors.Join(err, playbook.ErrNotFound)
	}
	at.Record = page[0]
	before, err := store.Get(ctx, at.Record.Parent)
	if err != nil {
		return nil, err
	}
	at.Changes = playbook.Diff(before, book)
	return at, nil
}

// compare computes the difference of the wanted pair.
func compare(ctx context.Context, store *playbook.Store, ask Ask) *Pair {
	pair := &Pair{A: ask.A, B: ask.B}
	a, errA := bookOf(ctx, store, ask.A)
	b, errB := bookOf(ctx, store, ask.B)
	if err := cmp.Or(errA, errB); err != nil {
		pair.Err = cluster.PlainError(err)
		return pair
	}
	pair.Diff = playbook.Diff(a, b)
	return pair
}

func bookOf(ctx context.Context, store *playbook.Store, m VersionRef) (*playbook.Playbook, error) {
	hash, err := store.At(m.Branch, m.Seq)
	if err != nil {
		return nil, err
	}
	return store.Get(ctx, hash)
}

// readServer reads from the server: the outcomes for health, and the steps of a run. It reports whether
// anything is new.
func (k *reader) readServer(ctx context.Context, d cluster.Deps, ask Ask, b *Playbooks) bool {
	news := ask.Health && b.Version != nil && k.check(ctx, d, b)
	if key := ask.Run; key.WorkflowID != "" && d.Client != nil {
		if have, known := k.steps[key]; !known || have.Err != "" {
			k.learn(key, StepsOf(ctx, d.Client, key))
			news = true
		}
	}
	b.Steps = k.steps
	return news
}

// learn remembers the steps of a run. It replaces the map, because published values share the old one.
func (k *reader) learn(key RunKey, steps RunSteps) {
	next := map[RunKey]RunSteps{}
	if len(k.steps) < maxSteps {
		maps.Copy(next, k.steps)
	}
	next[key] = steps
	k.steps = next
}

// check computes the findings about the selected version, again if the outcomes have changed.
func (k *reader) check(ctx context.Context, d cluster.Deps, b *Playbooks) bool {
	at := b.Version
	fresh := k.judge(ctx, d, at.Branch)
	if k.health != nil && k.health.VersionRef == at.VersionRef && !fresh {
		return false
	}
	h := k.past
	if at.Seq == b.Branch.Versions {
		h = k.head
	}
	book, err := bookOf(ctx, d.Playbooks, at.VersionRef)
	if err != nil || h == nil || h.Branch != at.Branch || h.Seq != at.Seq {
		return false
	}
	var known playbook.Evidence
	if k.evidence.branch == at.Branch {
		if known = k.evidence.known; at.Seq < b.Branch.Versions {
			known = UpTo(known, at.Record.Hash, at.Record.At)
		}
	}
	k.health = &VersionHealth{VersionRef: at.VersionRef, Health: playbook.Check(book, h, known),
		Judged: len(known.Outcomes)}
	b.Health = k.health
	return true
}

// UpTo returns the outcomes known at a time and the evaluations of a version, without proposed operations,
// which are known only for the newest version.
func UpTo(e playbook.Evidence, hash string, at time.Time) playbook.Evidence {
	return playbook.Evidence{
		Outcomes: slices.DeleteFunc(slices.Clone(e.Outcomes),
			func(o playbook.Outcome) bool { return o.At.After(at) }),
		Evaluations: slices.DeleteFunc(slices.Clone(e.Evaluations),
			func(v playbook.Evaluation) bool { return v.Playbook != hash }),
		Usage:  e.Usage,
		Budget: e.Budget,
	}
}

// judge reads the evidence on a branch from time to time.
func (k *reader) judge(ctx context.Context, d cluster.Deps, branch string) bool {
	if d.Client == nil || k.evidence.branch == branch && time.Since(k.evidence.at) < evidenceEvery {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, evidenceTimeout)
	defer cancel()
	known, err := ReadEvidence(ctx, d.Client, d.Playbooks, branch)
	if err != nil {
		return false
	}
	k.evidence = evidence{branch, time.Now(), known}
	return true
}

// StepsOf finds the history events of a run that changed a playbook.
func StepsOf(ctx context.Context, c client.Client, key RunKey) RunSteps {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	var steps RunSteps
	var decoder history.Decoder
	iter := c.GetWorkflowHistory(ctx, key.WorkflowID, key.RunID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	err := cluster.Drain(iter, func(e *historypb.HistoryEvent) error {
		fact, ok, _ := decoder.Fact(e) // unreadable inputs do not matter here
		if ok && fact.Kind == ace.FactStepCompleted {
			switch fact.Step {
			case ace.PhaseCurator:
				steps.Curator = e.GetEventId()
			case ace.PhasePersist:
				steps.Persist = e.GetEventId()
			}
		}
		return nil
	})
	if err != nil {
		steps.Err = cluster.PlainError(err)
	}
	return steps
}

// ReadEvidence returns the outcomes of an experiment's tasks, correct or wrong, the newest maxOutcomes, its
// evaluations and operations. The experiment's branch has its name. If that was imported, its files have
// evidence too.
func ReadEvidence(ctx context.Context, c client.Client, books *playbook.Store,
	experiment string) (playbook.Evidence,
	error) {
	known, err := books.ImportedEvidence(experiment)
	if err != nil {
		return known, err
	}
	query := ace.AttrExperiment + " = " + strconv.Quote(experiment) + ` AND WorkflowType = "` +
		ace.TaskWorkflow + `"`
	err = runs.List(ctx, c, query, maxOutcomes, func(r runs.Run) error {
		switch {
		case r.Status != ace.Completed:
		// "" is an answer that was correct or not graded; see [ace.ExitStatus.Split]
		case r.Verdict == ace.Correct, r.Verdict == ace.Wrong, r.Verdict == "":
			known.Outcomes = append(known.Outcomes,
				playbook.Outcome{At: r.Close, Correct: r.Verdict != ace.Wrong})
		}
		return nil
	})
	if err != nil {
		return known, err
	}
	p, err := experiments.Find(ctx, c, experiment)
	if p == nil {
		return known, err
	}
	known.Proposals.Tasks, _, _ = experiments.Answers(p)
	known.Proposals.Rejected = p.Rejected
	known.Proposals.Operations = p.Accepted + p.Rejected
	known.Usage = p.Usage
	known.Budget = p.Budget
	for _, e := range p.Eval {
		if e.Incomplete {
			continue
		}
		evaluation := playbook.Evaluation{Playbook: e.Playbook, Correct: e.Correct, Labeled: e.Labeled()}
		known.Evaluations = append(known.Evaluations, evaluation)
	}
	return known, nil
}
