package traces

import (
	"context"

	"golang.org/x/sync/errgroup"

	"acescope/sources/runs"
)

// ahead is the number of runs that wait for the history of an earlier one.
const ahead = 4 * atOnce

// Stream passes runs on in their order once their histories are read, of several at the same time.
type Stream struct {
	reader *Reader
	put    func(runs.Run) error
	ctx    context.Context
	calls  *errgroup.Group
	queue  []*waiting
}

// waiting is a run whose history is being read until done is closed; nil if there is nothing to read.
type waiting struct {
	run  runs.Run
	done chan struct{}
}

// NewStream returns a stream to put. Its user calls Flush at the end.
func (r *Reader) NewStream(ctx context.Context, put func(runs.Run) error) *Stream {
	s := &Stream{reader: r, put: put}
	s.calls, s.ctx = errgroup.WithContext(ctx)
	s.calls.SetLimit(atOnce)
	return s
}

// Add takes the next run. It passes on the runs that are ready, and waits if too many are not.
func (s *Stream) Add(run runs.Run) error {
	w := &waiting{run: run}
	if unread, _ := s.reader.Unread([]runs.Run{run}, 1); len(unread) > 0 {
		w.done = make(chan struct{})
		s.calls.Go(func() error {
			defer close(w.done)
			return s.reader.readOne(s.ctx, &w.run)
		})
	}
	s.queue = append(s.queue, w)
	for len(s.queue) > 0 && (len(s.queue) > ahead || s.queue[0].ready()) {
		if err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

func (w *waiting) ready() bool {
	if w.done == nil {
		return true
	}
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// next passes on the first run.
func (s *Stream) next() error {
	w := s.queue[0]
	if w.done != nil {
		<-w.done
	}
	if err := s.ctx.Err(); err != nil {
		return context.Cause(s.ctx)
	}
	s.queue = s.queue[1:]
	s.reader.Fill(&w.run)
	return s.put(w.run)
}

// Flush passes on the rest unless err is an error, and waits for the readings. It returns err or the first
// error.
func (s *Stream) Flush(err error) error {
	for err == nil && len(s.queue) > 0 {
		err = s.next()
	}
	s.queue = nil
	if failure := s.calls.Wait(); err == nil {
		err = failure
	}
	return err
}
