package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"

	"acescope/engine/store/bucket"
)

const (
	probeEvery   = 5 * time.Second
	answerWithin = 5 * time.Second
	outageAfter  = 10 * time.Second // shorter outages are not reported
)

// outageWatch reports an outage of a service of a cluster: one line when it begins and one when it ends,
// whatever the number of retries.
type outageWatch struct {
	service string
	probe   func(context.Context) error
	report  func(line string)
}

// outageWatches returns a watch for each service that a process needs to execute runs of a cluster. Their
// lines go to the log and to warn, which may be nil.
func (e *Engine) outageWatches(warn func(line string)) []outageWatch {
	report := func(line string) {
		e.log.Warn(line)
		if warn != nil {
			warn(line)
		}
	}
	watches := []outageWatch{{"the Temporal server " + e.address, func(ctx context.Context) error {
		_, err := e.Client.DescribeWorkflowExecution(ctx, storeWorkflow, "") // reads the server's database
		if isError[*serviceerror.NotFound](err) {
			return nil
		}
		return err
	}, report}}
	if e.shared != nil {
		watches = append(watches, outageWatch{"the store " + e.shared.String(), func(ctx context.Context) error {
			_, err := bucket.Get(ctx, e.shared, markerKey, 1<<10)
			return err
		}, report})
	}
	return watches
}

// run probes the service at each tick until the context is done.
func (w outageWatch) run(ctx context.Context, tick <-chan time.Time) {
	var since time.Time // tick of the first failure; zero while the service is available
	var reported bool
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-tick:
		}
		err := w.try(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && reported:
			w.report(fmt.Sprintf("%s is available again, after %s", w.service, now.Sub(since).Round(time.Second)))
			fallthrough
		case err == nil:
			since, reported = time.Time{}, false
		case since.IsZero():
			since = now
		case !reported && now.Sub(since) >= outageAfter:
			w.report(fmt.Sprintf("%s has been unavailable since %s; runs wait, and this process retries: %s",
				w.service, since.Format(time.TimeOnly), strings.Join(strings.Fields(err.Error()), " ")))
			reported = true
		}
	}
}

func (w outageWatch) try(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err := w.probe(within)
	if err != nil && within.Err() != nil {
		return fmt.Errorf("no answer within %s", answerWithin)
	}
	return err
}
