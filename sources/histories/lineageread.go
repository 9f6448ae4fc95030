package histories

import (
	"time"

	"acescope/sources/cluster"
)

// How often a lineage is read again: while a run in it is open, and while none is.
const (
	lineageEvery  = cluster.DefaultInterval
	lineageSeldom = 5 * cluster.DefaultInterval
)

func (t *LineageTree) Rest() time.Duration {
	for i := range t.Nodes {
		if t.Nodes[i].Run.Open() {
			return lineageEvery
		}
	}
	return lineageSeldom
}
