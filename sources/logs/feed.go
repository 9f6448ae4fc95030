package logs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	"acescope/sources/logfile"
	"acescope/sources/runs"
)

// Feed follows log files while they are shown: those of the selected run, or the ones that the user chose.
type Feed struct {
	*feed.Feed[ask, *Logs]
	link *cluster.Link
	bad  string // lasting problem that was reported; only the reader uses it

	mu      sync.Mutex
	run     runs.ID // selected
	ask     ask
	session int64 // number of readings
}

// ask selects the logs: of a run, unless files or an artifact are chosen.
type ask struct {
	run   runs.ID
	paths string  // chosen, one per line
	calls ace.Ref // artifact with the tool calls of a run
}

func (a *ask) chosen() bool { return a.paths != "" || a.calls != (ace.Ref{}) }

// NewFeed returns a feed that follows the logs of no run.
func NewFeed(link *cluster.Link) *Feed {
	f := &Feed{link: link}
	f.Feed = feed.New(link.Wake, f.read)
	f.Refine(f.ask)
	return f
}

// Select follows the logs of a run, unless the user chose others.
func (f *Feed) Select(id runs.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run = id
	if !f.ask.chosen() {
		f.ask.run = id
		f.Refine(f.ask)
	}
}

// FollowCalls shows the artifact with all tool calls of a run, one per line.
func (f *Feed) FollowCalls(ref ace.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ask = ask{calls: ref}
	f.Refine(f.ask)
}

// FollowLogs follows files or directories by name, "~/" being the home directory. No names go back to the
// logs of the selected run.
func (f *Feed) FollowLogs(paths []string) {
	paths = slices.Clone(paths)
	for i, p := range paths {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			if home, err := os.UserHomeDir(); err == nil {
				paths[i] = filepath.Join(home, rest)
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ask = ask{paths: strings.Join(paths, "\n")}
	if len(paths) == 0 {
		f.ask.run = f.run
	}
	f.Refine(f.ask)
}

// read follows logs until ctx ends.
func (f *Feed) read(ctx context.Context, a ask, publish func(*Logs)) {
	id := func() (workflowID, runID string) { return a.run.WorkflowID, a.run.RunID }
	if err := f.link.Mirror.Once(ctx, a.run.WorkflowID, a.run.RunID); err != nil && ctx.Err() == nil {
		f.link.Report("logs of other machines: " + cluster.PlainError(err))
	}
	var mirroring sync.WaitGroup
	defer mirroring.Wait()
	mirroring.Go(func() { f.link.Mirror.Keep(ctx, id, f.link.Report) })
	for f.follow(ctx, a, publish) {
	}
}

// follow follows logs until ctx ends, or returns true when the run has logs of its own that it lacked before.
func (f *Feed) follow(ctx context.Context, a ask, publish func(*Logs)) (again bool) {
	f.mu.Lock()
	f.session++
	session := f.session
	f.mu.Unlock()
	choice, err := choose(ctx, f.link.Deps, a)
	o := choice.Options
	r := &logReader{feed: f, publish: publish, choice: choice, open: map[string]Entry{},
		first: &merger{},
		rates: map[string]lineRate{}, ring: Ring{MaxLines: MaxLines, MaxBytes: maxBytes}}
	r.out = Logs{
		Description: choice.Description, Chosen: a.chosen(), Mention: choice.Mention,
		Session: session,
	}
	if len(o.Paths) == 0 && err == nil {
		err = errors.New("no data directory; press o to choose log files")
	}
	if err != nil {
		r.out.Err = err.Error()
		r.show()
		return false
	}
	if !r.out.Chosen {
		r.out.Base = Dir(f.link.DataDir)
	}
	r.show()
	o.Tail, o.Partial, o.MaxLine = tailLines, true, MaxLine
	err = logfile.Follow(ctx, o, logfile.Handler{Lines: r.lines, Event: r.event, Files: r.state})
	switch {
	case errors.Is(err, errBegan):
		return true
	case err != nil:
		r.out.Err = err.Error()
		r.show()
		f.setHealth(err.Error())
		<-ctx.Done()
	}
	return false
}

// setHealth reports a lasting problem, or its end.
func (f *Feed) setHealth(bad string) {
	if bad != f.bad {
		f.bad = bad
		f.link.SetHealth("logs", bad == "", cmp.Or(bad, "log files are read"))
	}
}

// errBegan ends reading the logs of the data directory when the run has logs of its own.
var errBegan = errors.New("the run has logs now")

func choose(ctx context.Context, d cluster.Deps, a ask) (Choice, error) {
	switch {
	case a.calls != (ace.Ref{}):
		return callLog(ctx, d, a.calls)
	case a.paths != "":
		return ChoosePaths(strings.Split(a.paths, "\n")), nil
	case d.DataDir == "":
		return Choice{Description: "no logs"}, nil
	case a.run.WorkflowID == "":
		return ChooseAll(d.DataDir), nil
	}
	return ChooseRunOrAll(d.DataDir, a.run.WorkflowID, a.run.RunID), nil
}

func callLog(ctx context.Context, d cluster.Deps, ref ace.Ref) (Choice, error) {
	choice := Choice{Description: "of the run's tool calls, complete, from their artifact"}
	if d.ArtifactPath == nil {
		return choice, errors.New("no artifact store on this machine")
	}
	path, err := d.ArtifactPath(ctx, ref)
	choice.Options.Paths = []string{path}
	return choice, err
}

// logReader keeps the newest lines of followed files, and publishes them when the follower pauses. It belongs
// to one goroutine. Lines that do not fit are dropped and counted.
type logReader struct {
	feed    *Feed
	publish func(*Logs)
	choice  Choice
	out     Logs // without lines
	ring    Ring
	first   *merger          // sorts the lines that were written before the reader started; nil afterwards
	open    map[string]Entry // by file: the incomplete last line
	rates   map[string]lineRate
}

func (r *logReader) lines(batch []logfile.Line) error {
	for _, l := range batch {
		if !r.choice.Keeps(l.Path, l.Text) {
			continue
		}
		e := Entry{
			File: l.Path, Number: l.Number, Offset: l.Offset, At: l.At, Text: string(l.Text), Cut: l.Cut,
			Incomplete: l.Torn,
		}
		if l.Partial {
			r.open[l.Path] = e
			continue
		}
		delete(r.open, l.Path)
		r.add(e)
	}
	return nil
}

// add keeps a line. Lines that were written before the reader started wait for those of other files, to be
// sorted.
func (r *logReader) add(e Entry) {
	if r.first == nil {
		r.ring.Add(e)
		return
	}
	if r.first.add(e); len(r.first.lines) >= MaxLines || r.first.bytes >= maxBytes {
		r.ordered()
	}
}

// ordered moves the lines that were written before the reader started to the ring, sorted.
func (r *logReader) ordered() {
	if r.first != nil {
		r.first.flush(r.ring.Add)
		r.first = nil
	}
}

func (r *logReader) event(e logfile.Event) error {
	switch e.Kind {
	case logfile.Opened:
	case logfile.Polling, logfile.LeftOut:
		r.out.Problem = e.Text
	default:
		r.add(Entry{File: e.Path, At: e.At, Text: e.Text, Note: e.Kind})
	}
	return nil
}

func (r *logReader) state(files []logfile.File) error {
	if r.choice.began(files) {
		return errBegan
	}
	r.ordered() // after all lines from before the start, or a timeout
	r.out.Files = make([]File, len(files))
	for i, f := range files {
		r.out.Files[i] = r.rated(f)
	}
	r.feed.setHealth(healthText(r.out))
	r.show()
	return nil
}

// rated adds the lines per second of a file.
func (r *logReader) rated(f logfile.File) File {
	now, old := r.feed.link.Now(), r.rates[f.Path]
	if old.at.IsZero() {
		r.rates[f.Path] = lineRate{at: now, lines: f.Lines}
		return File{File: f}
	}
	if took := now.Sub(old.at); took >= rateOver {
		old = lineRate{at: now, lines: f.Lines, perSecond: float64(f.Lines-old.lines) / took.Seconds()}
		r.rates[f.Path] = old
	}
	return File{File: f, PerSecond: old.perSecond, RatedAt: old.at}
}

// show publishes the lines so far.
func (r *logReader) show() {
	l := r.out
	l.Lines, l.First, l.Dropped = r.ring.Lines(), r.ring.Dropped, r.ring.Dropped
	for _, path := range slices.Sorted(maps.Keys(r.open)) {
		l.Open = append(l.Open, r.open[path])
	}
	l.Updated = r.feed.link.Now()
	r.publish(&l)
}
