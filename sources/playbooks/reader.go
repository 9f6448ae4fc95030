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
	"acescope/sources/runs"
)

// Intervals and bounds of the reader of playbooks.
const (
	readEvery       = time.Second
	outcomesEvery   = 15 * time.Second
	MaxRationale    = 300 // bytes of the rationale of a listed version
	maxSteps        = 500 // runs whose steps are remembered
	maxOutcomes     = 20_000
	outcomesTimeout = 10 * time.Second
)

// Reader is the state of the reader between readings. It belongs to one goroutine.
type Reader struct {
	ask Ask

	head     *playbook.History // of the selected branch up to its newest version
	past     *playbook.History // of the same branch up to an older version
	at       *VersionDetail
	Page     versionPage
	pair     *Pair
	health   *VersionHealth
	outcomes outcomes
	steps    map[RunKey]RunSteps
}

// versionPage is the list of versions that was read last.
type versionPage struct {
	branch   playbook.Branch
	From     int
	Versions []playbook.Version
}

type outcomes struct {
	branch string
	at     time.Time
	list   []playbook.Outcome
}

// Read fills b step by step and shows fast results first.
func (k *Reader) Read(ctx context.Context, store *playbook.Store, wish Ask, b *Playbooks, show func(*Playbooks)) error {
	list, partly := store.Branches() // readable branches, and why others are not
	b.Branches = list
	if len(list) == 0 && partly == nil {
		return nil
	}
	var err error
	if b.Branch, err = chooseBranch(store, list, wish.Branch); err != nil {
		return errors.Join(err, partly)
	}
	if b.Branch.Name == "" {
		return partly
	}
	if err := k.Window(store, wish, b); err != nil {
		return err
	}
	k.fill(b, wish)
	show(b)
	if err := k.version(ctx, store, wish, b, show); err != nil {
		return err
	}
	k.compare(store, wish)
	k.fill(b, wish)
	return partly
}

// chooseBranch returns the wanted branch, or the one that changed last.
func chooseBranch(store *playbook.Store, list []playbook.Branch, want string) (playbook.Branch, error) {
	if want != "" {
		return store.Branch(want)
	}
	if len(list) == 0 {
		return playbook.Branch{}, nil
	}
	return slices.MaxFunc(list, func(a, b playbook.Branch) int { return a.At.Compare(b.At) }), nil
}

// Window lists the versions around the wanted one.
func (k *Reader) Window(store *playbook.Store, wish Ask, b *Playbooks) error {
	total := b.Branch.Versions
	around := wish.Around
	if around < 0 || around > total {
		around = total
	}
	from := max(min(around-VersionWindow/2, total-VersionWindow+1), 1)
	if k.Page.branch == b.Branch && k.Page.From == from {
		return nil
	}
	list, err := store.Page(b.Branch.Name, from, from+VersionWindow-1)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].Operations = nil
		if r := list[i].Rationale; len(r) > MaxRationale {
			list[i].Rationale = strings.ToValidUTF8(r[:MaxRationale], "")
		}
	}
	k.Page = versionPage{b.Branch, from, list}
	return nil
}

// fill sets in b what is known of the ask.
func (k *Reader) fill(b *Playbooks, wish Ask) {
	b.From, b.Versions = k.Page.From, k.Page.Versions
	if k.at != nil && k.at.Branch == b.Branch.Name {
		b.Version = k.at
	}
	if wish.Compare && k.pair != nil && k.pair.A == wish.A && k.pair.B == wish.B {
		b.Compared = k.pair
	}
	if wish.Health && k.health != nil && k.health.Branch == b.Branch.Name {
		b.Health = k.health
	}
	b.Steps = k.steps
}

// version reads the selected version: first the operations of its merge, which are shown at once, then on
// request its bullets with their histories.
func (k *Reader) version(ctx context.Context, store *playbook.Store, wish Ask, b *Playbooks, show func(*Playbooks)) error {
	mark := VersionRef{b.Branch.Name, wish.Seq}
	if mark.Seq < 0 || mark.Seq > b.Branch.Versions {
		mark.Seq = b.Branch.Versions
	}
	hash, err := store.At(mark.Branch, mark.Seq)
	if err != nil {
		return err
	}
	if k.at == nil || k.at.VersionRef != mark || k.at.Hash != hash {
		at, err := bookAt(store, mark, hash, b.Branch)
		if err != nil {
			return err
		}
		k.at, k.health = at, nil
	}
	if k.at.HasBullets || !wish.Bullets && !wish.Health {
		return nil
	}
	if k.head == nil || k.head.Branch != mark.Branch || mark.Seq != b.Branch.Versions {
		k.fill(b, wish)
		show(b) // the history of a long branch takes a moment
		// Wait until the cursor rests, because each row that it passes asks for another version.
		if err := cluster.Sleep(ctx, cluster.CursorRest); err != nil {
			return err
		}
	}
	return k.blame(ctx, store, b.Branch.Versions)
}

// blame adds the history of each bullet to the selected version.
func (k *Reader) blame(ctx context.Context, store *playbook.Store, total int) error {
	h, err := k.history(ctx, store, k.at.VersionRef, total)
	if err != nil {
		return err
	}
	book, err := store.Get(k.at.Hash)
	if err != nil {
		return err
	}
	at := *k.at
	at.HasBullets, at.Bullets, at.Totals, at.Sizes = true, h.Blame(book), h.Totals(), h.Sizes()
	k.at = &at
	return nil
}

// history returns the history of a branch up to a version. It extends the kept history up to the newest
// version, or up to an older one.
func (k *Reader) history(ctx context.Context, store *playbook.Store, mark VersionRef, total int) (*playbook.History, error) {
	keep := &k.past
	if mark.Seq == total {
		keep = &k.head
	}
	if *keep == nil || (*keep).Branch != mark.Branch {
		*keep = playbook.NewHistory(mark.Branch)
	}
	return *keep, store.Read(ctx, *keep, mark.Seq)
}

func bookAt(store *playbook.Store, mark VersionRef, hash string, branch playbook.Branch) (*VersionDetail, error) {
	book, err := store.Get(hash)
	if err != nil {
		return nil, err
	}
	at := &VersionDetail{VersionRef: mark, Hash: hash, Record: playbook.Version{Source: playbook.Source{Hash: hash}, Bullets: len(book.Bullets)}, Changes: &playbook.Difference{}}
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
	before, err := store.Get(at.Record.Parent)
	if err != nil {
		return nil, err
	}
	at.Changes = playbook.Diff(before, book)
	return at, nil
}

// compare computes the difference of the wanted pair.
func (k *Reader) compare(store *playbook.Store, wish Ask) {
	if !wish.Compare || k.pair != nil && k.pair.Err == "" && k.pair.A == wish.A && k.pair.B == wish.B {
		return
	}
	k.pair = &Pair{A: wish.A, B: wish.B}
	a, errA := bookOf(store, wish.A)
	b, errB := bookOf(store, wish.B)
	if err := cmp.Or(errA, errB); err != nil {
		k.pair.Err = cluster.PlainError(err)
		return
	}
	k.pair.Diff = playbook.Diff(a, b)
}

func bookOf(store *playbook.Store, m VersionRef) (*playbook.Playbook, error) {
	hash, err := store.At(m.Branch, m.Seq)
	if err != nil {
		return nil, err
	}
	return store.Get(hash)
}

// readServer reads from the server: the outcomes for health, and the steps of a run. It reports whether
// anything is new.
func (k *Reader) readServer(ctx context.Context, d cluster.Deps, wish Ask, b *Playbooks) bool {
	news := false
	if wish.Health && b.Version != nil {
		news = k.check(ctx, d, b)
	}
	if key := wish.Run; key.WorkflowID != "" && d.Client != nil {
		if have, known := k.steps[key]; !known || have.Err != "" {
			k.learn(key, StepsOf(ctx, d.Client, key))
			news = true
		}
	}
	return news
}

// learn remembers the steps of a run. It replaces the map, because published values share the old one.
func (k *Reader) learn(key RunKey, steps RunSteps) {
	next := map[RunKey]RunSteps{}
	if len(k.steps) < maxSteps {
		maps.Copy(next, k.steps)
	}
	next[key] = steps
	k.steps = next
}

// check computes the findings about the selected version, again if the outcomes have changed.
func (k *Reader) check(ctx context.Context, d cluster.Deps, b *Playbooks) bool {
	at := b.Version
	fresh := k.judge(ctx, d, at.Branch)
	if k.health != nil && k.health.VersionRef == at.VersionRef && !fresh {
		return false
	}
	book, err := bookOf(d.Playbooks, at.VersionRef)
	if err != nil {
		return false
	}
	var h *playbook.History
	for _, known := range []*playbook.History{k.head, k.past} {
		if known != nil && known.Branch == at.Branch && known.Seq == at.Seq {
			h = known
		}
	}
	if h == nil {
		return false
	}
	var list []playbook.Outcome
	if k.outcomes.branch == at.Branch {
		if list = k.outcomes.list; at.Seq < b.Branch.Versions {
			list = UpTo(list, at.Record.At)
		}
	}
	k.health = &VersionHealth{VersionRef: at.VersionRef, Health: playbook.Check(book, h, list), Judged: len(list)}
	return true
}

// UpTo returns the outcomes known at a time.
func UpTo(list []playbook.Outcome, at time.Time) []playbook.Outcome {
	return slices.DeleteFunc(slices.Clone(list), func(o playbook.Outcome) bool { return o.At.After(at) })
}

// judge reads the outcomes of a branch's tasks from time to time.
func (k *Reader) judge(ctx context.Context, d cluster.Deps, branch string) bool {
	if d.Client == nil || k.outcomes.branch == branch && time.Since(k.outcomes.at) < outcomesEvery {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, outcomesTimeout)
	defer cancel()
	list, err := Outcomes(ctx, d.Client, branch)
	if err != nil {
		return false
	}
	k.outcomes = outcomes{branch, time.Now(), list}
	return true
}

// StepsOf finds the history events of a run that changed a playbook.
func StepsOf(ctx context.Context, c client.Client, key RunKey) RunSteps {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	var steps RunSteps
	var decoder history.Decoder
	iter := c.GetWorkflowHistory(ctx, key.WorkflowID, key.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	err := cluster.Drain(iter, func(e *historypb.HistoryEvent) error {
		fact, ok, _ := decoder.Fact(e) // an input of another workflow type does not matter here
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

// Outcomes returns the outcomes of an experiment's tasks, correct or wrong, the newest maxOutcomes. The
// experiment's branch has its name.
func Outcomes(ctx context.Context, c client.Client, experiment string) ([]playbook.Outcome, error) {
	query := ace.AttrExperiment + " = " + strconv.Quote(experiment) + ` AND WorkflowType = "` + ace.TaskWorkflow + `"`
	var list []playbook.Outcome
	err := runs.List(ctx, c, query, maxOutcomes, func(r runs.Run) error {
		if r.Exit == ace.Success || r.Exit == ace.Wrong {
			list = append(list, playbook.Outcome{At: r.Close, Correct: r.Exit == ace.Success})
		}
		return nil
	})
	return list, err
}
