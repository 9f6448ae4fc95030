package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
)

// clusterFork is what must be known of a fork on a cluster before it costs something: its
// workers may keep artifacts and playbooks elsewhere, where nobody can look from here.
// Zero for a server of our own.
type clusterFork struct {
	cluster bool
	dir     string
	needs   []engine.ForkNeed
	workers int // that poll the task queue
}

func AboutCluster(ctx context.Context, e *engine.Engine, p *fork.Plan) (clusterFork, error) {
	if e.Mode() != engine.Cluster {
		return clusterFork{}, nil
	}
	needs, err := e.ForkNeeds(p)
	if err != nil {
		return clusterFork{}, err
	}
	r, err := e.Client.DescribeTaskQueue(ctx, ace.TaskQueue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return clusterFork{}, err
	}
	return clusterFork{cluster: true, dir: e.DataDir(), needs: needs, workers: recentPollers(r.GetPollers())}, nil
}

// pollerAge is how old the last poll of a worker may be that is still there: a poll takes
// up to a minute.
const pollerAge = 2 * time.Minute

// recentPollers counts the workers that are there; the server lists one for five minutes
// after it has gone.
func recentPollers(all []*taskqueuepb.PollerInfo) int {
	n := 0
	for _, p := range all {
		if time.Since(p.GetLastAccessTime().AsTime()) < pollerAge {
			n++
		}
	}
	return n
}

// text says it in lines of the question.
func (c clusterFork) text() []string {
	if !c.cluster {
		return nil
	}
	var lines []string
	for i, n := range c.needs {
		where := "which is in " + c.dir
		if !n.Here {
			where = "which is NOT in " + c.dir
		}
		lines = append(lines, []string{"needs       ", "            "}[min(i, 1)]+shortHashes(n.What)+", "+where)
	}
	if len(c.needs) > 0 {
		lines = append(lines, "            the cluster's workers must have it; that cannot be seen from here",
			"            where one has not, the steps that read it fail")
	}
	return append(lines, "served by   "+c.served())
}

func (c clusterFork) served() string {
	switch c.workers {
	case 0:
		return "nobody now: it waits until a worker polls the task queue " + ace.TaskQueue
	case 1:
		return "1 worker of the cluster"
	}
	return fmt.Sprintf("%d workers of the cluster", c.workers)
}

// warnings are what who has said yes beforehand must know all the same.
func (c clusterFork) warnings() []string {
	var said []string
	for _, n := range c.needs {
		if !n.Here {
			said = append(said, "it needs "+n.What+", which is not in "+c.dir+": unless the cluster's workers have it, the steps that read it fail")
		}
	}
	if c.cluster && c.workers == 0 {
		said = append(said, "served by "+c.served())
	}
	return said
}

// shortHashes cuts the hashes in a text to their begin.
func shortHashes(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		if hash := strings.TrimRight(w, ")"); len(hash) == 64 {
			words[i] = hash[:12] + w[64:]
		}
	}
	return strings.Join(words, " ")
}
