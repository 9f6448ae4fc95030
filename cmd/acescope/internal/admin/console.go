// Package admin holds the console, and the commands on the installation, the server and the store.
package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/atotto/clipboard"

	"acescope/cmd/acescope/conffile"
	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/server"
	"acescope/sources"
	"acescope/sources/cluster"
	sourceruns "acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/views"
	"acescope/views/console"
)

// Console opens the console. With --json it writes the changes of all runs instead.
func Console(a *cli.App, ctx context.Context) error {
	if a.JSON {
		return runs.Watch(a, ctx)
	}
	return openConsole(a, ctx, nil)
}

// openConsole draws the console first and connects in the background. begin, if not nil, runs once the engine
// is ready.
func openConsole(a *cli.App, ctx context.Context, begin func(context.Context, *engine.Engine) error) error {
	if a.JSON {
		return cli.UsageError("the console has no --json; use acescope list, show or tail")
	}
	if _, _, ok := cli.Terminal(a.Out); !ok || !cli.IsTerminal(os.Stdin) {
		return cli.UsageError("the console needs a terminal on standard input and output; " +
			"in scripts use acescope list, show or tail")
	}
	dir, err := a.DataDir()
	if err != nil {
		return err
	}
	feeds := sources.NewFeeds()
	link := &Link{app: a, feeds: feeds, dir: dir, frames: &tui.Frames{}}
	screen := screenOptions{source: source(a, dir), views: link.options(), frames: link.frames}
	work := func(ctx context.Context, p *tea.Program) { link.run(ctx, p, begin) }
	err = runConsole(a, ctx, feeds, screen, work)
	return cmp.Or(link.err, err)
}

// screenOptions are the differences between consoles.
type screenOptions struct {
	source string // key of the console's state in the state file
	views  console.Options
	frames *tui.Frames
}

// runConsole shows the console until the user or work quits the program. It returns after work has returned.
func runConsole(
	a *cli.App, ctx context.Context, feeds *sources.Feeds, screen screenOptions,
	work func(ctx context.Context, p *tea.Program),
) error {
	a.Codecs.Silent = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	feeds.Link.SetInterval(a.Settings.Refresh)
	path, err := cli.StatePath()
	if err != nil {
		return err
	}
	saved := &sourceState{path: path, source: screen.source}
	state, warning := saved.load()
	if warning != "" {
		a.Settings.Warn("%s", warning)
	}
	o := tui.Options{State: state, Save: saved.save, Count: screen.frames}
	model, err := newModel(a, ctx, feeds, screen.views, o)
	if err != nil {
		return err
	}
	local, err := agents.Local(a)
	if err != nil {
		return err
	}
	// A signal cancels ctx. A handler of Bubble Tea's own would then block on sending to the stopped loop.
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithoutSignalHandler(),
		tea.WithFPS(a.Settings.FrameRate))
	model.Pace(program)
	var wg sync.WaitGroup
	wg.Go(func() { feeds.Transcripts.Run(ctx, local) })
	wg.Go(func() { work(ctx, program) })
	_, err = program.Run()
	if saveErr := saved.end(model.State()); saveErr != nil {
		fmt.Fprintln(a.Err, "acescope: the console's state is not saved: "+cli.OneLine(saveErr))
	}
	cancel()
	wg.Wait()
	return err
}

// Link connects the feeds with the engine, which starts after the console is drawn.
type Link struct {
	app    *cli.App
	feeds  *sources.Feeds
	dir    string
	frames *tui.Frames
	err    error // why the engine did not start; read after run

	mu     sync.Mutex
	Engine *engine.Engine

	web ownWeb
}

// options returns the console's options that need a connection.
func (l *Link) options() console.Options {
	actions := console.Actions{Runs: l, Launch: l, Forks: l, Sessions: l, Runners: l, Flows: l, Reviews: l}
	return console.Options{Flags: l.app.DataFlags(), Actions: actions, Web: l.openWeb, WebPage: l.webPage,
		Viewer: viewer}
}

// viewer returns the command of this program that shows history files.
func viewer(path string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return exec.Command(program, "open", "--", path)
}

// run connects, then reads the feeds until ctx ends.
func (l *Link) run(ctx context.Context, p *tea.Program, begin func(context.Context, *engine.Engine) error) {
	e := l.connect(ctx, begin != nil)
	if e == nil {
		return
	}
	defer l.web.close()
	l.mu.Lock()
	l.Engine = e
	l.mu.Unlock()
	l.showConnection(ctx, e)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	watchers.Go(func() {
		if l.mayServe(ctx, p, e) && begin != nil {
			l.report(begin(ctx, e))
			l.feeds.Refresh()
		}
	})
	watchers.Go(func() { l.watchRole(ctx, e) })
	watchers.Go(func() { e.WatchSpace(ctx, l.showSpace) })
	l.feeds.Run(ctx, l.deps(e))
}

const connectInterval = 2 * time.Second

// connect retries until it succeeds. It returns nil if ctx ends first. With serve, the console starts runs
// itself.
func (l *Link) connect(ctx context.Context, serve bool) *engine.Engine {
	l.app.Note = l.feeds.Link.Report
	local := l.app.Cluster() == nil
	serve = serve && !l.app.Settings.ReadOnly || local
	for {
		e, err := l.app.Connect(ctx,
			engine.Options{Worker: serve, Takeover: serve, LookOnly: local || !serve})
		if err == nil {
			l.err = nil
			return e
		}
		if ctx.Err() == nil {
			l.showFailure(err)
		}
		if cluster.Sleep(ctx, connectInterval) != nil {
			return nil
		}
	}
}

// mayServe shows why this process executes no runs, and reports whether it may start some. It asks once if
// the user trusts the data directory, and then starts the workers. Unless the user does, it waits for the
// end of ctx.
func (l *Link) mayServe(ctx context.Context, p *tea.Program, e *engine.Engine) bool {
	if e.Withheld() == nil || e.Mode() == engine.Cluster {
		return true
	}
	unconfirmed, ask := errors.AsType[*server.Unconfirmed](e.Withheld())
	why := "the data directory is not confirmed"
	if l.app.Settings.ReadOnly {
		ask, why = false, "read-only mode"
	}
	l.feeds.Link.SetHealth("workers", false, "no worker runs here: "+why)
	if !ask {
		return true
	}
	n, err := sourceruns.Count(ctx, e.Client, `ExecutionStatus = "Running"`)
	l.report(err)
	yes := make(chan struct{}, 1)
	p.Send(tui.Asked(tui.Question{Title: "Trust this data directory?", Yes: "trust it and start the workers",
		Lines: []string{cli.SafeText(unconfirmed.Dir), cli.SafeText(unconfirmed.Why), "",
			"It has " + ace.Count(n, "open run") + ", which may start programs and agents on this machine.",
			"With n you only look: no worker runs until you start acescope again and trust it."},
		Long: true, Do: func() tea.Cmd { yes <- struct{}{}; return nil }}))
	select {
	case <-ctx.Done():
		return false
	case <-yes:
	}
	l.report(e.Confirm())
	l.feeds.Link.SetHealth("workers", e.Serves(), "the data directory is confirmed")
	l.feeds.Refresh()
	return e.Serves()
}

// report shows an error, if it is one.
func (l *Link) report(err error) {
	if err != nil {
		l.feeds.Link.Report(cli.OneLine(err))
	}
}

func (l *Link) deps(e *engine.Engine) cluster.Deps {
	d := healthDeps(l.app, e)
	d.ArtifactPath, d.Codec = e.Artifacts.Path, e.Codec
	d.Screen = screenOf(l.frames)
	setVerifier(&d, l.app)
	d.TurnLog = agents.TurnLog(l.dir, e)
	return d
}

// screenOf counts the frames that the console draws.
func screenOf(f *tui.Frames) func() cluster.Screen {
	return func() cluster.Screen { return cluster.Screen(f.Rate()) }
}

// setVerifier lets the console replay histories with the workflows of this program, and with the replayers of
// the user.
func setVerifier(d *cluster.Deps, a *cli.App) {
	d.NewVerifier = func(ctx context.Context, strict bool) cluster.Verifier {
		return history.NewVerifier(ctx, a, strict, nil)
	}
}

// showFailure shows why there is no connection. The same error is shown once.
func (l *Link) showFailure(err error) {
	known := l.err != nil && l.err.Error() == err.Error()
	if l.err = err; known {
		return
	}
	l.feeds.Link.SetConnection(cluster.Connection{State: cluster.ConnLost, Since: time.Now(),
		Err: cli.OneLine(err)})
	l.feeds.Link.Report(cli.OneLine(err))
}

func (l *Link) showConnection(ctx context.Context, e *engine.Engine) {
	l.feeds.Link.SetConnection(cluster.Connection{State: cluster.ConnReady, Mode: string(e.Mode()),
		Address: e.Address(), Namespace: e.Namespace(), Since: time.Now()})
	l.feeds.Link.SetHealth("engine", true, fmt.Sprintf("%s, %s", e.Mode(), e.Address()))
	for _, c := range cli.ProviderChecks(ctx, l.app) {
		c.Name = "provider " + c.Name
		l.feeds.Link.SetCheck(c)
	}
}

// watchRole updates the connection when this process takes over the server. It returns when ctx ends.
func (l *Link) watchRole(ctx context.Context, e *engine.Engine) {
	if e.Node() == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.Node().Changes():
			l.showConnection(ctx, e)
		}
	}
}

// showSpace shows that the disk is nearly full. A nil err clears it.
func (l *Link) showSpace(err error) {
	if err == nil {
		l.feeds.Link.SetHealth("disk", true, "has enough free space again")
		return
	}
	l.feeds.Link.SetHealth("disk", false, cli.OneLine(err))
	l.feeds.Link.Report(cli.OneLine(err))
}

// ThemeNames returns the names of the themes that come with acescope and of the user's.
func ThemeNames(a *cli.App) []string { return append(loadThemes(a).Names(), theme.Auto) }

// loadThemes loads the user's themes. An unknown theme in the settings is a warning, and the default theme is
// used.
func loadThemes(a *cli.App) theme.Set {
	set, errs := theme.Builtin(), []error(nil)
	if dir, err := cli.ConfigDir(); err == nil {
		folder := filepath.Join(dir, "themes")
		set, errs = theme.Load(os.DirFS(folder), folder)
	}
	for _, err := range errs {
		a.Settings.Warn("%s", cli.OneLine(err))
	}
	if _, err := set.Pick(a.Settings.Theme, true); err != nil {
		a.Settings.Warn("%s: %v", a.Settings.Sources["theme"].Text, err)
		a.Settings.Theme, a.Settings.Sources["theme"] = theme.Auto, cli.DefaultSource
	}
	return set
}

// newModel returns the console with the settings applied to the options.
func newModel(
	a *cli.App, ctx context.Context, feeds *sources.Feeds, how console.Options, o tui.Options,
) (*tui.Model, error) {
	set := loadThemes(a)
	glyphs := theme.GlyphsFor(os.Getenv)
	links := theme.Links{On: a.Settings.HasLinks(os.Getenv), Run: how.WebPage, Editor: a.Settings.EditorURL}
	pick := func(name string, dark bool) (theme.Styles, error) {
		if theme.WantsNoColor(os.Getenv) {
			name = "no-color"
		}
		t, err := set.Pick(name, dark)
		s := t.Styles(glyphs)
		s.Links = links
		return s, err
	}
	styles, err := pick(a.Settings.Theme, true)
	if err != nil {
		return nil, err
	}
	filters, err := a.Filters()
	if err != nil {
		feeds.Link.SetHealth("filters", false, cli.OneLine(err))
	}
	how.Context, how.Controls, how.Filters, how.Saver = ctx, feeds, filters, cli.FilterFile{}
	o.Context, o.Source, o.CancelWork = ctx, views.NewSource(feeds), feeds.Link.CancelWork
	o.Screens, o.Global = views.Screens(how, views.FeedsOf(feeds))
	o.Styles, o.Theme, o.ThemeName, o.Themes = styles, pick, a.Settings.Theme, set.Names()
	o.Mouse, o.ReadOnly, o.Clipboard = a.Settings.Mouse, a.Settings.ReadOnly, systemClipboard()
	o.Frame = time.Second / time.Duration(a.Settings.FrameRate)
	m, err := tui.New(o)
	if err != nil {
		return nil, err
	}
	for _, wrong := range m.SetKeys(a.Settings.File.Keys) {
		a.Settings.Warn("%s:%d: %v", a.Settings.File.Path, a.Settings.File.KeyLine[wrong.Action], wrong)
	}
	m.Warn(a.Settings.Warnings...)
	return m, nil
}

// dryConsole creates the console without opening it, which finds all warnings about themes and keys.
func dryConsole(a *cli.App, ctx context.Context) (*tui.Model, error) {
	return newModel(a, ctx, sources.NewFeeds(), (&Link{app: a}).options(), tui.Options{})
}

// source returns the key of the console's state in the state file.
func source(a *cli.App, dir string) string {
	if a.Cluster() == nil {
		return "data " + dir
	}
	cluster := cmp.Or(a.Settings.Address, "profile "+strconv.Quote(a.Settings.Profile))
	return "cluster " + cluster + " " + a.Settings.Namespace
}

// clipboardTimeout bounds a write to the system's clipboard, whose program may wait for a display forever.
const clipboardTimeout = 2 * time.Second

var errClipboardTimeout = errors.New("the clipboard did not answer")

// systemClipboard returns a function that writes to the system's clipboard, nil if there is no clipboard.
func systemClipboard() func(string) error {
	if clipboard.Unsupported {
		return nil
	}
	return func(text string) error {
		done := make(chan error, 1)
		go func() { done <- clipboard.WriteAll(text) }()
		select {
		case err := <-done:
			return err
		case <-time.After(clipboardTimeout):
			return errClipboardTimeout
		}
	}
}

// Bounds of the state file: its bytes, and the number of sources. The least recently used sources are
// dropped.
const (
	maxState   = 4 << 20
	maxSources = 32
)

// stateVersion is the version of the state file. A file of another version is moved aside.
const stateVersion = 1

// stateFile holds the state of consoles, by source.
type stateFile struct {
	Version int                    `json:"version"`
	Sources map[string]*savedState `json:"sources"`
}

type savedState struct {
	Used time.Time `json:"used"`
	tui.State
}

// sourceState reads and writes the state of one source.
type sourceState struct {
	path, source string

	mu    sync.Mutex
	ended bool // the last state is written; later calls of save are outdated
}

// load returns the state of the last console. An unusable file is moved aside, and the warning says where to.
func (k *sourceState) load() (state tui.State, warning string) {
	f, err := readState(k.path)
	if err != nil {
		return state, fmt.Sprintf("%s: %v; %s", k.path, err, moveAside(k.path))
	}
	if kept := f.Sources[k.source]; kept != nil {
		state = kept.State
	}
	return state, ""
}

func readState(path string) (stateFile, error) {
	f := stateFile{Version: stateVersion}
	data, err := conffile.ReadFile(path, maxState)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Version != stateVersion {
		err = fmt.Errorf("version %d; this program reads version %d", f.Version, stateVersion)
	}
	return f, err
}

// moveAside renames a damaged file, replacing an earlier one, and describes what it did.
func moveAside(path string) string {
	to := path + ".damaged"
	if err := os.Rename(path, to); err != nil {
		return "it could not be moved aside: " + err.Error()
	}
	return "moved to " + filepath.Base(to) + "; starting with an empty state"
}

func (k *sourceState) save(s tui.State) error { return k.write(s, false) }

// end writes the final state of the source; later calls of save do nothing.
func (k *sourceState) end(s tui.State) error { return k.write(s, true) }

func (k *sourceState) write(s tui.State, last bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil
	}
	k.ended = last
	f, err := readState(k.path)
	if err != nil {
		f = stateFile{Version: stateVersion}
	}
	if f.Sources == nil {
		f.Sources = map[string]*savedState{}
	}
	f.Sources[k.source] = &savedState{time.Now().UTC(), s}
	f.dropOldest()
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return cli.ReplaceFile(k.path, data)
}

// dropOldest drops the least recently used sources, and null values of a file that was edited by hand.
func (f *stateFile) dropOldest() {
	maps.DeleteFunc(f.Sources, func(_ string, s *savedState) bool { return s == nil })
	names := slices.SortedFunc(maps.Keys(f.Sources), func(a, b string) int {
		return f.Sources[b].Used.Compare(f.Sources[a].Used)
	})
	for _, n := range names[min(maxSources, len(names)):] {
		delete(f.Sources, n)
	}
}
