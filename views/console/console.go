// Package console holds what screens share: the selected run, the list with its marks and filters, the filter language,
// and the actions on runs.
package console

import (
	"context"
	"time"
)

// Options are what the screens work on.
type Options struct {
	Context  context.Context // of actions; nil for the background
	Controls Controls
	Actions  Actions // nil for a console that only reads
	// Refuse says, in place of Actions, why an action is impossible and what to do instead; nil if Actions act.
	Refuse   func(verb string, of Target) string
	Filters  []SavedFilter  // the default one applies at the start
	Saver    FilterSaver    // nil if filters cannot be saved
	Location *time.Location // of times of day; nil for local
	WorkDir  string         // where sessions start unless another directory is named
}

// Console has the parts that screens share. A screen keeps only those that it needs.
type Console struct {
	*Navigation
	*Listing
	*Actor
	Controls Controls
	Location *time.Location
	WorkDir  string
}

// New returns the shared parts of a console.
func New(o Options) *Console {
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	nav := &Navigation{Following: true, read: o.Controls.Select}
	listing := &Listing{Filters: o.Filters, context: o.Context, controls: o.Controls, saver: o.Saver}
	actor := &Actor{Context: o.Context, Actions: o.Actions, nav: nav, listing: listing, controls: o.Controls, refuse: o.Refuse}
	listing.StartFilter()
	return &Console{Navigation: nav, Listing: listing, Actor: actor, Controls: o.Controls, Location: o.Location, WorkDir: o.WorkDir}
}
