// Package phaseprompts reads the phase prompts of the store, and compares a version with the previous one.
package phaseprompts

import (
	"context"
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/engine/learning/prompts"
	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// readEvery is the interval between two readings. Versions that are known are not read again.
const readEvery = 2 * time.Second

// Ask selects a version whose text is read.
type Ask struct {
	Phase   ace.Phase
	Name    string
	Version int
}

// AskOf selects a prompt.
func AskOf(p prompts.Prompt) Ask { return Ask{p.Phase, p.Name, p.Version} }

// Prompts are the versions of all phase prompts.
type Prompts struct {
	List    []prompts.Prompt // by phase and name, the newest version first; of each phase first the default
	Of      Ask              // the version that has Text
	Text    string
	Since   string // name of the version before, or of the default
	Before  string // its text
	TextErr string // why there is no text
	Err     string
	Missing string // why there are no prompts
	Updated time.Time
}

// NewFeed returns a feed that reads the prompts again and again while they are shown.
func NewFeed(link *cluster.Link) *feed.Feed[Ask, *Prompts] {
	var f *feed.Feed[Ask, *Prompts]
	f = feed.New(link.Wake, func(ctx context.Context, ask Ask, publish func(*Prompts)) {
		for ctx.Err() == nil {
			if p := read(ctx, link, ask, f.Value()); ctx.Err() == nil {
				publish(p)
			}
			for cluster.Sleep(ctx, readEvery) == nil && link.Paused() {
			}
		}
	})
	f.Want(Ask{})
	return f
}

// read reads the versions, and the wanted text. With an error, the list is the last one.
func read(ctx context.Context, link *cluster.Link, ask Ask, last *Prompts) *Prompts {
	p := &Prompts{Updated: link.Now()}
	store := link.Deps.Prompts
	if store == nil {
		p.Missing = "this console has no store of phase prompts"
		return p
	}
	list, err := store.All(ctx)
	if err != nil {
		p.Err = cluster.PlainError(err)
		if last != nil {
			p.List = last.List
		}
		return p
	}
	p.List = list
	at := slices.IndexFunc(list, func(v prompts.Prompt) bool { return AskOf(v) == ask })
	if at < 0 {
		return p
	}
	p.Of = ask
	since := before(list, at).PhasePrompt
	p.Since = since.String()
	if p.Text, err = store.Text(ctx, list[at].PhasePrompt); err == nil {
		p.Before, err = store.Text(ctx, since)
	}
	if err != nil {
		p.TextErr = cluster.PlainError(err)
	}
	return p
}

// before returns the version with which a version is compared: the one before, or the default for the first.
func before(list []prompts.Prompt, at int) prompts.Prompt {
	if next := at + 1; next < len(list) && list[next].Phase == list[at].Phase &&
		list[next].Name == list[at].Name {
		return list[next]
	}
	return prompts.Default(list[at].Phase)
}
