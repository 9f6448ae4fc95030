package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/filed"
	"acescope/tui"
	"acescope/views/console"
)

// showEvery is how often what was read so far is shown while more is read.
const showEvery = 300 * time.Millisecond

// fileConsole ties the store to histories that are read while the console is drawn.
type fileConsole struct {
	app    *cli.App
	path   string // as given
	files  []string
	set    *filed.Files
	feeds  *sources.Feeds
	frames *tui.Frames
	books  *playbook.Store // in a directory that goes with the console
	err    error           // why there is nothing to show; read after run

	mu    sync.Mutex
	short string // why there are no playbooks
}

// openFiles opens the console on histories from files. It begins painted and empty.
func openFiles(a *cli.App, ctx context.Context, path string, files []string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // so that nothing stays when the terminal is closed
	defer stop()
	c := &fileConsole{app: a, path: path, files: files, set: filed.New(), feeds: sources.NewFeeds(), frames: &tui.Frames{}}
	c.feeds.Link.SetConnection(cluster.Connection{State: cluster.ConnReady, Mode: cluster.ModeFile, Address: nameOfInput(path), Since: time.Now()})
	codec, err := a.FileCodec()
	if err != nil {
		return err
	}
	if codec != nil {
		c.set.Decode = func(ctx context.Context, events []*historypb.HistoryEvent) { codec.Events(ctx, events) }
	}
	dir, err := os.MkdirTemp("", "acescope-open-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if c.books, err = playbook.OpenStore(dir); err != nil {
		return err
	}
	c.short = "the histories are still being read"
	err = paint(a, ctx, c.feeds, screenOf{source: sourceOfInput(path), views: console.Options{Refuse: c.refuse}, frames: c.frames}, c.run)
	if c.err != nil {
		return c.err
	}
	return err
}

// nameOfInput is what the header calls the input.
func nameOfInput(path string) string {
	if path == "-" {
		return "standard input"
	}
	if full, err := filepath.Abs(path); err == nil {
		return filepath.Base(full)
	}
	return path
}

// sourceOfInput names the input for what is kept of how it was looked at.
func sourceOfInput(path string) string {
	if full, err := filepath.Abs(path); err == nil && path != "-" {
		return "file " + full
	}
	return "file " + path
}

func (c *fileConsole) run(ctx context.Context, quit func()) {
	client, err := c.set.Client()
	if err != nil {
		c.err = err
		quit()
		return
	}
	defer client.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.load(ctx, quit) })
	c.feeds.Run(ctx, cluster.Deps{Client: client, TaskQueue: ace.TaskQueue, Screen: func() cluster.Screen { return cluster.Screen(c.frames.Rate()) }, Artifact: c.artifacts(),
		Books: c.books, NoBooks: c.noBooks, Verify: verifyHere})
}

// makeBooks makes the playbooks again from what the tasks did to them.
func (c *fileConsole) makeBooks(ctx context.Context) {
	working, _, end := c.feeds.Link.StartWork(ctx, "making the playbooks again")
	defer end()
	short, err := c.set.Books(working, c.books)
	if err != nil && ctx.Err() == nil {
		short = append(short, "the playbooks were not made again: "+cli.OneLine(err))
	}
	for _, why := range short {
		c.feeds.Link.Report(why)
	}
	if len(short) == 0 {
		short = []string{"no task in the files changed a playbook"}
	}
	c.mu.Lock()
	c.short = short[0]
	c.mu.Unlock()
}

// noBooks is why no playbook is shown.
func (c *fileConsole) noBooks() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.short
}

// artifacts are those of the data directory, where that is there: they are named by what
// they hold, so that the right one is found or none.
func (c *fileConsole) artifacts() func(ace.Ref, int64) ([]byte, error) {
	dir, err := c.app.DataDir()
	if err != nil {
		return nil
	}
	path := filepath.Join(dir, "artifacts")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return artifact.OpenReadOnly(path).Get
}

// load reads the files, shows what there is while more comes, and says what is not there.
// Where there is nothing at all to show, it ends the console.
func (c *fileConsole) load(ctx context.Context, quit func()) {
	working, progress, end := c.feeds.Link.StartWork(ctx, "reading "+nameOfInput(c.path))
	defer end()
	var shown time.Time
	read := make(chan struct{})
	go func() {
		defer close(read)
		_ = c.set.Load(working, c.inputs(), func(done, total int) { // one that was stopped is among the problems
			progress(int64(done), int64(total))
			if time.Since(shown) > showEvery {
				shown = time.Now()
				c.feeds.Refresh()
			}
		})
	}()
	select {
	case <-read:
	case <-ctx.Done():
		return // a pipe may give nothing for ever: it is not waited for
	}
	runs, events := c.set.Size()
	problems, more := c.set.Problems()
	if runs == 0 && ctx.Err() == nil {
		c.err = errors.New("no history was read")
		if len(problems) > 0 {
			c.err = problems[0]
		}
		quit()
		return
	}
	text := fmt.Sprintf("%d runs, %d events, from %d files", runs, events, len(c.files))
	if bad := c.say(problems, more); bad > 0 {
		text += fmt.Sprintf("; %d could not be read whole, ! lists them", bad)
	}
	c.feeds.Link.SetHealth("files", true, text)
	c.feeds.Refresh()
	c.makeBooks(ctx)
}

// lasting is how many files that cannot be read have a row of their own on the health
// screen.
const lasting = 10

// say tells what could not be read, each by itself and the first of what matters also
// lastingly, and counts the latter.
func (c *fileConsole) say(problems []filed.Problem, more int) (bad int) {
	for _, p := range problems {
		if !p.Minor {
			if bad++; bad <= lasting {
				c.feeds.Link.SetHealth(filepath.Base(p.Source), false, cli.OneLine(p.Err))
			}
		}
		c.feeds.Link.Report(cli.OneLine(p))
	}
	if more > 0 {
		c.feeds.Link.Report(fmt.Sprintf("and %d more problems with the files", more))
	}
	return bad + more
}

// inputs are the files to read.
func (c *fileConsole) inputs() []filed.Source {
	list := make([]filed.Source, len(c.files))
	for i, path := range c.files {
		list[i] = filed.Source{Name: path, Open: func() (io.ReadCloser, error) {
			if path == "-" {
				return io.NopCloser(os.Stdin), nil
			}
			f, err := os.Open(path)
			if err != nil {
				return nil, cli.FileError(err)
			}
			return f, nil
		}}
	}
	return list
}

// refuse says what to do in place of what a console on files does not do. A fork is made
// of a file that holds one history; everything else is for where the run itself is.
func (c *fileConsole) refuse(what string, of console.Target) string {
	name := ace.TaskIDOf(of.WorkflowID)
	if source, alone := c.set.SourceOf(of.RunID); what == "fork" && alone {
		name = source
	}
	return fmt.Sprintf("a file is not changed: acescope %s %s", what, name)
}
