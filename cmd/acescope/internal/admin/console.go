// Package admin holds the console, demo, serve, doctor, health, config, schema and version commands.
package admin

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/replay"
	"acescope/engine/workflows"
	"acescope/sources"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/tui"
	"acescope/views/console"
)

func Console(a *cli.App, cmd *cobra.Command, _ []string) error {
	return openConsole(a, cmd.Context(), nil)
}

// openConsole paints first and connects behind the screen. begin, where it is set, runs
// once the engine is ready.
func openConsole(a *cli.App, ctx context.Context, begin func(context.Context, *engine.Engine) error) error {
	if a.JSON {
		return cli.UsageError("the console has no --json; use acescope list, show or tail")
	}
	if !term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stdout.Fd()) {
		return cli.UsageError("the console needs a terminal on standard input and output; use acescope list, show or tail in scripts")
	}
	dir, err := a.DataDir()
	if err != nil {
		return err
	}
	feeds := sources.NewFeeds()
	link := &Link{app: a, feeds: feeds, dir: dir, frames: &tui.Frames{}}
	err = paint(a, ctx, feeds, screenOf{source: source(a, dir), views: console.Options{Actions: link}, frames: link.frames},
		func(ctx context.Context, _ func()) { link.run(ctx, begin) })
	if link.err != nil {
		return link.err
	}
	return err
}

// screenOf is what differs between consoles.
type screenOf struct {
	source string          // what is looked at, for what is kept of it
	views  console.Options // how it acts
	frames *tui.Frames
}

// paint shows the console and runs work behind it, which quit ends too, until it is left.
func paint(a *cli.App, ctx context.Context, feeds *sources.Feeds, screen screenOf, work func(ctx context.Context, quit func())) error {
	a.Codecs.Silent = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	feeds.Link.SetInterval(a.Settings.Refresh)
	kept, model, err := restored(a, ctx, feeds, screen)
	if err != nil {
		return err
	}
	local, err := agents.Local(a)
	if err != nil {
		return err
	}
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithFPS(a.Settings.FrameRate))
	var wg sync.WaitGroup
	wg.Go(func() { feeds.Transcripts.Run(ctx, local) })
	wg.Go(func() { work(ctx, program.Quit) })
	_, err = program.Run()
	if saveErr := kept.end(model.State()); saveErr != nil {
		fmt.Fprintln(a.Err, "acescope: what you saw is not kept: "+cli.OneLine(saveErr))
	}
	cancel()
	wg.Wait()
	return err
}

// restored makes the console as an earlier one on the same source was left.
func restored(a *cli.App, ctx context.Context, feeds *sources.Feeds, screen screenOf) (*keeper, *tui.Model, error) {
	path, err := cli.StatePath()
	if err != nil {
		return nil, nil, err
	}
	kept := &keeper{path: path, source: screen.source}
	state, warning := kept.load()
	if warning != "" {
		a.Settings.Warn("%s", warning)
	}
	model, err := newModel(a, ctx, feeds, screen.views, func(o *tui.Options) {
		o.State, o.Save, o.Count = state, kept.save, screen.frames
	})
	return kept, model, err
}

// Link ties the store to the engine, which comes up while the console is drawn.
type Link struct {
	app    *cli.App
	feeds  *sources.Feeds
	dir    string
	frames *tui.Frames
	err    error // why the engine did not start; read after run

	mu     sync.Mutex
	Engine *engine.Engine
}

func (l *Link) run(ctx context.Context, begin func(context.Context, *engine.Engine) error) {
	e, done := l.connect(ctx, begin != nil)
	if e == nil {
		return
	}
	defer done()
	l.mu.Lock()
	l.Engine = e
	l.mu.Unlock()
	l.connected(e)
	if begin != nil {
		if err := begin(ctx, e); err != nil {
			l.feeds.Link.Report(cli.OneLine(err))
		}
		l.feeds.Refresh()
	}
	go l.watchRole(ctx, e)
	go e.WatchSpace(ctx, l.space)
	l.feeds.Run(ctx, l.deps(e))
}

// connectEvery is how long the console waits before it tries again to connect.
const connectEvery = 2 * time.Second

// connect tries until it succeeds; nil where ctx ended first. serve is for a console that
// starts runs itself.
func (l *Link) connect(ctx context.Context, serve bool) (*engine.Engine, func()) {
	open := l.app.OpenFollowing
	if serve {
		open = func(ctx context.Context) (*engine.Engine, func(), error) { return l.app.Open(ctx, true, true) }
	}
	for {
		e, done, err := open(ctx)
		if err == nil {
			l.err = nil
			return e, done
		}
		if ctx.Err() == nil {
			l.failed(err)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(connectEvery):
		}
	}
}

func (l *Link) deps(e *engine.Engine) cluster.Deps {
	return cluster.Deps{
		Client: e.Client, Namespace: e.Namespace(), TaskQueue: ace.TaskQueue, Books: e.Books, DataDir: l.dir,
		Artifact: e.Artifacts.Get, ArtifactPath: e.Artifacts.Path, Meter: l.app.Meter, Host: host(l.app, e, l.dir), Agents: l.app.AgentChecks(),
		Screen: func() cluster.Screen { return cluster.Screen(l.frames.Rate()) }, Codec: e.Codec, Verify: verifyHere, TurnLog: agents.TurnLog(l.dir, e),
	}
}

// verifyHere replays a history with this program's workflows.
func verifyHere(ctx context.Context, events []*historypb.HistoryEvent, strict bool) histories.ReplayVerdict {
	v := replay.Verifier{Register: workflows.Register, Build: cli.BuildVersion(), Strict: strict}
	return v.Verify(ctx, events)
}

// failed shows why there is no connection, a reason once.
func (l *Link) failed(err error) {
	known := l.err != nil && l.err.Error() == err.Error()
	if l.err = err; known {
		return
	}
	l.feeds.Link.SetConnection(cluster.Connection{State: cluster.ConnLost, Since: time.Now(), Err: cli.OneLine(err)})
	l.feeds.Link.Report(cli.OneLine(err))
}

func (l *Link) connected(e *engine.Engine) {
	l.feeds.Link.SetConnection(cluster.Connection{State: cluster.ConnReady, Mode: string(e.Mode()), Address: e.Address(),
		Namespace: e.Namespace(), Since: time.Now()})
	l.feeds.Link.SetHealth("engine", true, fmt.Sprintf("%s, %s", e.Mode(), e.Address()))
	for _, p := range e.Providers {
		l.feeds.Link.SetHealth("provider "+p.Name(), true, cli.AboutProvider(p))
	}
}

// watchRole shows when this process takes the server over.
func (l *Link) watchRole(ctx context.Context, e *engine.Engine) {
	if e.Node() == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.Node().Changes():
			l.connected(e)
		}
	}
}

// space shows that the disk is nearly full, for as long as it is.
func (l *Link) space(err error) {
	if err == nil {
		l.feeds.Link.SetHealth("disk", true, "has room again")
		return
	}
	l.feeds.Link.SetHealth("disk", false, cli.OneLine(err))
	l.feeds.Link.Report(cli.OneLine(err))
}

// Cancel implements [views.Actions].
func (l *Link) Cancel(ctx context.Context, workflowID, runID string) error {
	l.mu.Lock()
	e := l.Engine
	l.mu.Unlock()
	if e == nil {
		return fmt.Errorf("not connected yet")
	}
	return e.Cancel(ctx, workflowID, runID)
}
