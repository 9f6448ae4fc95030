package playbooks

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"acescope/engine/learning/playbook"
	"acescope/sources/cluster"
)

// Rhythm and bounds of the reader of playbooks.
const (
	BooksEvery      = time.Second
	outcomesEvery   = 15 * time.Second
	MaxRationale    = 300 // bytes of a listed version's
	maxSteps        = 500 // runs whose steps are remembered
	maxOutcomes     = 20_000
	outcomesTimeout = 10 * time.Second
)

// PlaybookReader is what the reader keeps between readings. Only wish is for several goroutines,
// under the store's lock.
type PlaybookReader struct {
	Wish BookWish

	head     *playbook.History // of the shown branch up to its newest version
	past     *playbook.History // of the same up to an older one
	at       *BookAt
	Page     versionPage
	pair     *BookPair
	health   *HealthOf
	outcomes outcomes
	steps    map[RunKey]RunSteps
}

// versionPage is the window of versions that was read last.
type versionPage struct {
	branch   BookBranch
	From     int
	Versions []BookVersion
}

type outcomes struct {
	branch string
	at     time.Time
	list   []playbook.Outcome
}

// Read fills b step by step. What is quick is shown before what may take long.
func (k *PlaybookReader) Read(ctx context.Context, store *playbook.Store, wish BookWish, b *Books, show func(*Books)) error {
	list, partly := store.Branches() // those that can be read, and why others cannot
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
	k.Give(b, wish)
	show(b)
	if err := k.version(ctx, store, wish, b, show); err != nil {
		return err
	}
	k.compare(store, wish)
	k.Give(b, wish)
	return partly
}

// chooseBranch is the branch that is wanted, or the one that changed last.
func chooseBranch(store *playbook.Store, list []BookBranch, want string) (BookBranch, error) {
	if want != "" {
		return store.Branch(want)
	}
	var newest BookBranch
	for _, d := range list {
		if newest.Name == "" || d.At.After(newest.At) {
			newest = d
		}
	}
	return newest, nil
}

// Window lists the versions around the wanted one.
func (k *PlaybookReader) Window(store *playbook.Store, wish BookWish, b *Books) error {
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
			list[i].Rationale = r[:MaxRationale]
		}
	}
	k.Page = versionPage{b.Branch, from, list}
	return nil
}

// Give puts what is there into b, as far as it answers the wish.
func (k *PlaybookReader) Give(b *Books, wish BookWish) {
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

// version makes the chosen version: first what its merge did, which is shown at once, then,
// where that is wanted, its bullets with their pasts.
func (k *PlaybookReader) version(ctx context.Context, store *playbook.Store, wish BookWish, b *Books, show func(*Books)) error {
	mark := BookMark{b.Branch.Name, wish.Seq}
	if mark.Seq < 0 || mark.Seq > b.Branch.Versions {
		mark.Seq = b.Branch.Versions
	}
	hash, err := store.At(mark.Branch, mark.Seq)
	if err != nil {
		return err
	}
	if k.at == nil || k.at.BookMark != mark || k.at.Hash != hash {
		at, err := bookAt(store, mark, hash, b.Branch)
		if err != nil {
			return err
		}
		k.at, k.health = at, nil
	}
	if k.at.Blamed || !wish.Bullets && !wish.Health {
		return nil
	}
	if k.head == nil || k.head.Branch != mark.Branch || mark.Seq != b.Branch.Versions {
		k.Give(b, wish)
		show(b) // the past takes a moment where there is much of it
		if err := rest(ctx); err != nil {
			return err
		}
	}
	return k.blame(ctx, store, b.Branch.Versions)
}

// rest waits until the cursor does: each row that it passes asks for another version.
func rest(ctx context.Context) error {
	select {
	case <-time.After(cluster.CursorRest):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// blame adds the past of each bullet to the chosen version.
func (k *PlaybookReader) blame(ctx context.Context, store *playbook.Store, total int) error {
	h, err := k.history(ctx, store, k.at.BookMark, total)
	if err != nil {
		return err
	}
	book, err := store.Get(k.at.Hash)
	if err != nil {
		return err
	}
	at := *k.at
	at.Blamed, at.Bullets, at.Totals, at.Sizes = true, h.Blame(book), h.Totals(), h.Sizes()
	k.at = &at
	return nil
}

// history is that of a branch up to a version. The one up to the newest is kept and goes
// on from where it was, that of an older one too.
func (k *PlaybookReader) history(ctx context.Context, store *playbook.Store, mark BookMark, total int) (*playbook.History, error) {
	keep := &k.past
	if mark.Seq == total {
		keep = &k.head
	}
	if *keep == nil || (*keep).Branch != mark.Branch {
		*keep = playbook.NewHistory(mark.Branch)
	}
	return *keep, store.Read(ctx, *keep, mark.Seq)
}

func bookAt(store *playbook.Store, mark BookMark, hash string, branch BookBranch) (*BookAt, error) {
	book, err := store.Get(hash)
	if err != nil {
		return nil, err
	}
	at := &BookAt{BookMark: mark, Hash: hash, Record: BookVersion{Hash: hash, Bullets: len(book.Bullets)}, Changes: &BookDiff{}}
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

// compare makes the difference of the wanted pair.
func (k *PlaybookReader) compare(store *playbook.Store, wish BookWish) {
	if !wish.Compare || k.pair != nil && k.pair.Err == "" && k.pair.A == wish.A && k.pair.B == wish.B {
		return
	}
	k.pair = &BookPair{A: wish.A, B: wish.B}
	a, err := bookOf(store, wish.A)
	if err == nil {
		var b *playbook.Playbook
		if b, err = bookOf(store, wish.B); err == nil {
			k.pair.Diff = playbook.Diff(a, b)
		}
	}
	if err != nil {
		k.pair.Err = cluster.PlainError(err)
	}
}

func bookOf(store *playbook.Store, m BookMark) (*playbook.Playbook, error) {
	hash, err := store.At(m.Branch, m.Seq)
	if err != nil {
		return nil, err
	}
	return store.Get(hash)
}

// Ask finds what takes a server: the outcomes that health needs, and the steps of a run.
// It tells whether there is anything new.
func (k *PlaybookReader) Ask(ctx context.Context, d cluster.Deps, wish BookWish, b *Books) bool {
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

// learn remembers the steps of a run. The map is replaced: snapshots share the old one.
func (k *PlaybookReader) learn(key RunKey, steps RunSteps) {
	next := map[RunKey]RunSteps{}
	if len(k.steps) < maxSteps {
		maps.Copy(next, k.steps)
	}
	next[key] = steps
	k.steps = next
}

// check looks the chosen version over, anew where the outcomes are.
func (k *PlaybookReader) check(ctx context.Context, d cluster.Deps, b *Books) bool {
	at := b.Version
	fresh := k.judge(ctx, d, at.Branch)
	if k.health != nil && k.health.BookMark == at.BookMark && !fresh {
		return false
	}
	book, err := bookOf(d.Books, at.BookMark)
	if err != nil {
		return false
	}
	h := k.head
	if h == nil || h.Branch != at.Branch || h.Seq != at.Seq {
		h = k.past
	}
	if h == nil || h.Branch != at.Branch || h.Seq != at.Seq {
		return false
	}
	var list []playbook.Outcome
	if k.outcomes.branch == at.Branch {
		if list = k.outcomes.list; at.Seq < b.Branch.Versions {
			list = UpTo(list, at.Record.At)
		}
	}
	k.health = &HealthOf{BookMark: at.BookMark, BookHealth: playbook.Check(book, h, list), Judged: len(list)}
	return true
}

// UpTo is the outcomes that were known at a time.
func UpTo(list []playbook.Outcome, at time.Time) []playbook.Outcome {
	return slices.DeleteFunc(slices.Clone(list), func(o playbook.Outcome) bool { return o.At.After(at) })
}

// judge reads how the tasks of a branch were judged, from time to time.
func (k *PlaybookReader) judge(ctx context.Context, d cluster.Deps, branch string) bool {
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
