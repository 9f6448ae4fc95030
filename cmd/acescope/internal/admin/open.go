package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/offline"
	sourceruns "acescope/sources/runs"
	"acescope/tui"
	"acescope/views/console"
)

// OpenCommand returns the command open. Without a terminal it writes the histories as acescope show does.
func OpenCommand(a *cli.App) *cobra.Command {
	return a.ConsoleFlags(&cobra.Command{
		Use:   "open FILE|DIR|-",
		Short: "Open the console on exported histories, without a server",
		Long: "Open the console on histories that \"temporal workflow show -o json\", the Web UI or acescope replay export\n" +
			"wrote. Reads files, also gzip, directories and standard input. Starts no server and changes nothing. With\n" +
			"--json, or if standard output is not a terminal, it writes each run as acescope show does.",
		Example: "acescope open bug-report.json.gz\nacescope open histories/\nssh host cat q.json | acescope open -\n" +
			"acescope open histories/ --json | jq .status",
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := cli.FilesIn(args[0])
			switch {
			case err != nil:
				return err
			case !a.JSON && hasTerminal(a, args[0]):
				return openFiles(a, cmd.Context(), args[0], files)
			}
			return printFiles(a, cmd.Context(), files)
		},
	})
}

// hasTerminal reports whether the console can open. If standard input is the data, keys are read from
// /dev/tty.
func hasTerminal(a *cli.App, path string) bool {
	if _, _, ok := cli.Terminal(a.Out); !ok {
		return false
	}
	if path != "-" {
		return cli.IsTerminal(os.Stdin)
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = tty.Close() // opened only to see whether it exists
	return !cli.IsTerminal(os.Stdin)
}

// printFiles writes every readable history, then returns the first error.
func printFiles(a *cli.App, ctx context.Context, files []string) error {
	var broken error
	for _, file := range files {
		for _, h := range cli.ReadHistories(a, ctx, file) {
			if len(h.Events) > 0 {
				if err := showHistory(a, h); err != nil {
					return err
				}
			}
			if h.ReadErr != nil && broken == nil {
				broken = h.ReadErr
			}
		}
	}
	return broken
}

func showHistory(a *cli.App, h cli.RunHistory) error {
	d, err := detail.ReadEvents(h.Events)
	if err != nil {
		return err
	}
	return runs.WriteRun(a, d)
}

// showInterval is the time between two updates of the screen while files are read.
const showInterval = 300 * time.Millisecond

// fileConsole fills the feeds with histories that are read after the console is drawn.
type fileConsole struct {
	app    *cli.App
	name   string // of the input
	files  []string
	set    *offline.Files
	feeds  *sources.Feeds
	frames *tui.Frames
	books  *playbook.Store // in a directory that is removed at the end
	err    error           // why there is nothing to show; read after run

	noPlaybooks atomic.Value // why there are no playbooks, a string
}

// openFiles opens the console on histories from files, which are read in the background.
func openFiles(a *cli.App, ctx context.Context, path string, files []string) error {
	// so that the directory is removed when the terminal is closed
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	name, full := cli.InputName(path), path
	if path != "-" {
		var err error
		if full, err = filepath.Abs(path); err != nil {
			return err
		}
		name = filepath.Base(full)
	}
	c := &fileConsole{
		app: a, name: name, files: files, set: offline.New(), feeds: sources.NewFeeds(),
		frames: &tui.Frames{},
	}
	c.feeds.Link.SetConnection(cluster.Connection{
		State: cluster.ConnReady, Mode: cluster.ModeFile, Address: name, Since: time.Now(),
	})
	codec, err := a.FileCodec()
	if err != nil {
		return err
	}
	if codec != nil {
		c.set.Decode = func(ctx context.Context, events []*historypb.HistoryEvent) {
			codec.Events(ctx, events)
		}
	}
	dir, err := os.MkdirTemp("", "acescope-open-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if c.books, err = playbook.OpenStore(dir); err != nil {
		return err
	}
	c.noPlaybooks.Store("the histories are still being read")
	screen := screenOptions{source: "file " + full, views: console.Options{Refuse: c.refuse},
		frames: c.frames}
	err = runConsole(a, ctx, c.feeds, screen, c.run)
	return cmp.Or(c.err, err)
}

func (c *fileConsole) run(ctx context.Context, p *tea.Program) {
	client, err := c.set.Client()
	if err != nil {
		c.err = err
		p.Quit()
		return
	}
	defer client.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.load(ctx, p.Quit) })
	deps := cluster.Deps{
		Client: client, TaskQueue: ace.TaskQueue, Screen: screenOf(c.frames),
		Artifact:  cli.FileArtifacts(c.app),
		Playbooks: c.books, NoPlaybooks: func() string { return c.noPlaybooks.Load().(string) },
	}
	setVerifier(&deps, c.app)
	c.feeds.Run(ctx, deps)
}

// rebuildPlaybooks rebuilds the playbooks from the deltas of the tasks.
func (c *fileConsole) rebuildPlaybooks(ctx context.Context) {
	working, _, end := c.feeds.Link.StartWork(ctx, "rebuilding the playbooks")
	defer end()
	problems, err := c.set.Playbooks(working, c.books)
	if err != nil && ctx.Err() == nil {
		problems = append(problems, "the playbooks were not rebuilt: "+cli.OneLine(err))
	}
	for _, why := range problems {
		c.feeds.Link.Report(why)
	}
	if len(problems) == 0 {
		problems = []string{"no task in the files changed a playbook"}
	}
	c.noPlaybooks.Store(problems[0])
}

// load reads the files and updates the screen meanwhile. If no history can be read, it ends the console.
func (c *fileConsole) load(ctx context.Context, quit func()) {
	working, progress, end := c.feeds.Link.StartWork(ctx, "reading "+c.name)
	defer end()
	var shown time.Time
	read := make(chan struct{})
	go func() {
		defer close(read)
		_ = c.set.Load(working, c.inputs(ctx), func(done, total int) { // Problems returns the errors
			progress(int64(done), int64(total))
			if time.Since(shown) > showInterval {
				shown = time.Now()
				c.feeds.Refresh()
			}
		})
	}()
	select {
	case <-read:
	case <-ctx.Done():
		return // do not wait for the reader: a pipe may block forever
	}
	count, events := c.set.Size()
	problems, more := c.set.Problems()
	if count == 0 && ctx.Err() == nil {
		c.err = errors.New("no history was read")
		if len(problems) > 0 {
			c.err = problems[0]
		}
		quit()
		return
	}
	text := fmt.Sprintf("%s, %s in %s", ace.Count(count, "run"), ace.Count(events, "event"),
		ace.Count(len(c.files), "file"))
	if bad := c.report(problems, more); bad > 0 {
		text += "; " + ace.Count(bad, "problem") + ", press ! for the list"
	}
	c.feeds.Link.SetHealth("files", true, text)
	c.feeds.Refresh()
	c.rebuildPlaybooks(ctx)
}

// maxFileRows bounds the unreadable files that have a row on the health screen.
const maxFileRows = 10

// report reports each problem. Problems that are not minor are counted and, up to maxFileRows, shown on the
// health screen.
func (c *fileConsole) report(problems []offline.Problem, more int) (bad int) {
	for _, p := range problems {
		if !p.Minor {
			if bad++; bad <= maxFileRows {
				c.feeds.Link.SetHealth(filepath.Base(p.Source), false, cli.OneLine(p.Err))
			}
		}
		c.feeds.Link.Report(cli.OneLine(p))
	}
	if more > 0 {
		c.feeds.Link.Report("and " + ace.Count(more, "more problem") + " in the files")
	}
	return bad + more
}

func (c *fileConsole) inputs(ctx context.Context) (list []offline.Source) {
	for _, path := range c.files {
		open := func() (io.ReadCloser, error) { return cli.OpenFile(ctx, path) }
		list = append(list, offline.Source{Name: path, Open: open})
	}
	return list
}

// refuse returns why an action is not available on files, and the command to use instead. A fork can start
// from a file with a single history; every other action needs the run itself.
func (c *fileConsole) refuse(what string, of sourceruns.ID) string {
	name := ace.TaskIDOf(of.WorkflowID)
	if source, alone := c.set.SourceOf(of.RunID); what == "fork" && alone {
		name = source
	}
	command := what + " " + name
	if what == "terminate" {
		command = "cancel " + name + " --force"
	}
	return "not available on files; use: acescope " + command
}
