package histories

import (
	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"context"
)

// LineageFeed reads the lineage of a workflow while it is shown, again and again: other processes may fork it.
type LineageFeed struct {
	*feed.Feed[string, *LineageTree]
	link *cluster.Link
}

// NewLineageFeed returns a feed that reads the lineage of the workflow that it is asked for.
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
		if cluster.Sleep(ctx, t.Rest()) != nil {
			return
		}
	}
}

// readOnce returns the last tree with the reason if reading fails.
func (f *LineageFeed) readOnce(ctx context.Context, workflowID string, last *LineageTree) *LineageTree {
	ctx, stop := context.WithTimeout(ctx, cluster.CallTimeout)
	defer stop()
	t, err := ReadLineage(ctx, f.link.Client, workflowID, last)
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
