package replay

import "runtime"

// runner is a goroutine that replays one history after the other: its stack has grown to
// what a replay needs, which a new one would have to do again each time.
type runner struct{ jobs chan func() }

// idle holds the runners that wait, at most as many as can run at a time. One whose code
// never ends is not among them again.
var idle = make(chan *runner, runtime.GOMAXPROCS(0))

// background runs a job on a runner.
func background(job func()) {
	select {
	case r := <-idle:
		r.jobs <- job
	default:
		r := &runner{jobs: make(chan func(), 1)}
		r.jobs <- job
		go r.run()
	}
}

func (r *runner) run() {
	for job := range r.jobs {
		job()
		select {
		case idle <- r:
		default:
			return
		}
	}
}
