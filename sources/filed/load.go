package filed

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"

	"acescope/engine/historyfile"
)

// MaxEvents bounds the events that are held, some two kilobytes each.
const MaxEvents = 1_000_000

// maxProblems bounds the problems that are kept; the rest is counted.
const maxProblems = 100

// Source is a file to read.
type Source struct {
	Name string // for the eye
	Open func() (io.ReadCloser, error)
}

// Problem is why a file, or part of it, is not there.
type Problem struct {
	Source string
	Err    error
	Minor  bool // nothing is missing for it
}

func (p Problem) Error() string { return fmt.Sprintf("%s: %v", p.Source, p.Err) }

// Unwrap gives the reason.
func (p Problem) Unwrap() error { return p.Err }

// Load reads files, several at a time, and adds their histories as they come. progress,
// which may be nil, is told how many files are read. It returns when all are read, or ctx
// ends; whoever waits for a run that is not there is then told so.
func (f *Files) Load(ctx context.Context, files []Source, progress func(done, total int)) error {
	defer f.finish()
	work := make(chan Source)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			for s := range work {
				f.read(ctx, s)
				mu.Lock()
				done++
				if progress != nil {
					progress(done, len(files))
				}
				mu.Unlock()
			}
		})
	}
	for _, s := range files {
		select {
		case work <- s:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(work)
	wg.Wait()
	if err := ctx.Err(); err != nil && done < len(files) {
		f.problem(Problem{Source: fmt.Sprintf("%d of %d files", len(files)-done, len(files)), Err: fmt.Errorf("not read: reading was stopped")})
		return err
	}
	return nil
}

// read adds the histories of one file.
func (f *Files) read(ctx context.Context, s Source) {
	if f.full() {
		f.problem(Problem{Source: s.Name, Err: fmt.Errorf("not read: %d events are held already, and more are not; open fewer files", MaxEvents)})
		return
	}
	r, err := s.Open()
	if err != nil {
		f.problem(Problem{Source: s.Name, Err: err})
		return
	}
	list, err := historyfile.Read(r)
	_ = r.Close() // it was only read
	for i, h := range list {
		if len(h.Events) == 0 {
			f.problem(Problem{Source: s.Name, Err: fmt.Errorf("history %d has no events", i+1)})
			continue
		}
		if f.Decode != nil {
			f.Decode(ctx, h.Events)
		}
		broken := ""
		if err != nil && i == len(list)-1 {
			broken = fmt.Sprintf("%s breaks off here: %v", filepath.Base(s.Name), err)
		}
		run := newRun(h, s.Name, i+1, broken)
		if old := f.add(run); old != "" {
			f.problem(Problem{Source: s.Name, Minor: true,
				Err: fmt.Errorf("the run %s is in %s too; the longer history is shown", run.name(), old)})
		}
		if n := len(h.Unread); n > 0 {
			f.problem(Problem{Source: s.Name, Minor: true,
				Err: fmt.Errorf("%d events of %s are known by id and time only, the first is a %s", n, run.name(), h.Unread[0].Type)})
		}
	}
	if err != nil {
		f.problem(Problem{Source: s.Name, Err: err})
	}
}
