package admin

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/atotto/clipboard"

	"acescope/cmd/acescope/internal/cli"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/views"
	"acescope/views/console"
)

// themes reads the user's themes and settles which one is in force: where that is none,
// the usual one is, and a warning says so.
func themes(a *cli.App) theme.Set {
	set, errs := theme.Builtin(), []error(nil)
	if dir, err := cli.ConfigDir(); err == nil {
		folder := filepath.Join(dir, "themes")
		set, errs = theme.Load(os.DirFS(folder), folder)
	}
	for _, err := range errs {
		a.Settings.Warn("%s", cli.OneLine(err))
	}
	if _, err := set.Pick(a.Settings.Theme, true); err != nil {
		where := a.Settings.Origin["theme"]
		a.Settings.Warn("%s: %v", where, err)
		a.Settings.Theme, a.Settings.Origin["theme"] = theme.Auto, "default"
	}
	return set
}

// newModel makes the console as the settings want it; how says how it acts, change adds
// what belongs to a console that really opens.
func newModel(a *cli.App, ctx context.Context, feeds *sources.Feeds, how console.Options, change func(*tui.Options)) (*tui.Model, error) {
	set := themes(a)
	glyphs := theme.GlyphsFor(os.Getenv)
	pick := func(name string, dark bool) (theme.Styles, error) {
		if theme.WantsNoColor(os.Getenv) {
			name = "no-color"
		}
		t, err := set.Pick(name, dark)
		return t.Styles(glyphs), err
	}
	styles, err := pick(a.Settings.Theme, true)
	if err != nil {
		return nil, err
	}
	var filters []console.SavedFilter
	for _, f := range a.Settings.File.Filters {
		filters = append(filters, console.SavedFilter(f))
	}
	saved := cli.FilterFile{}
	more, err := saved.Load()
	if err != nil {
		feeds.Link.SetHealth("filters", false, cli.OneLine(err))
	}
	filters = cli.MergeFilters(filters, more)
	how.Context, how.Controls, how.Filters, how.Saver = ctx, feeds, filters, saved
	screens, global := views.Screens(how, views.FeedsOf(feeds))
	o := tui.Options{
		Context: ctx, Source: views.NewSource(feeds), Screens: screens, Global: global,
		Styles: styles, Theme: pick, ThemeName: a.Settings.Theme, Themes: set.Names(),
		Mouse: a.Settings.Mouse, ReadOnly: a.Settings.ReadOnly, CancelWork: feeds.Link.CancelWork, Clipboard: copyHere(),
		Frame: time.Second / time.Duration(cmp.Or(a.Settings.FrameRate, cli.UsualFrameRate)),
	}
	if change != nil {
		change(&o)
	}
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

// source names what the console looks at, for what is kept by source.
func source(a *cli.App, dir string) string {
	if a.Cluster() == nil {
		return "data " + dir
	}
	return "cluster " + cmp.Or(a.Settings.Address, "profile "+strconv.Quote(a.Settings.Profile)) + " " + a.Settings.Namespace
}

// clipboardTimeout bounds how long the machine's clipboard may take. Its program may wait
// for a display that never answers.
const clipboardTimeout = 2 * time.Second

var errClipboardTimeout = errors.New("the clipboard did not answer")

// copyHere writes to the clipboard of this machine; nil where it has none.
func copyHere() func(string) error {
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
