package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/atotto/clipboard"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/views"
)

// themes reads the user's themes and settles which one is in force: where that is none,
// the usual one is, and a warning says so.
func (a *app) themes() theme.Set {
	set, errs := theme.Builtin(), []error(nil)
	if dir, err := configDir(); err == nil {
		folder := filepath.Join(dir, "themes")
		set, errs = theme.Load(os.DirFS(folder), folder)
	}
	for _, err := range errs {
		a.set.warn("%s", oneLine(err))
	}
	if _, err := set.Pick(a.set.Theme, true); err != nil {
		where := a.set.origin["theme"]
		a.set.warn("%s: %v", where, err)
		a.set.Theme, a.set.origin["theme"] = theme.Auto, "default"
	}
	return set
}

// newModel makes the console as the settings want it; how says how it acts, change adds
// what belongs to a console that really opens.
func (a *app) newModel(ctx context.Context, store *sources.Store, how views.Options, change func(*tui.Options)) (*tui.Model, error) {
	set := a.themes()
	glyphs := theme.GlyphsFor(os.Getenv)
	pick := func(name string, dark bool) (theme.Styles, error) {
		if theme.WantsNoColor(os.Getenv) {
			name = "no-color"
		}
		t, err := set.Pick(name, dark)
		return t.Styles(glyphs), err
	}
	styles, err := pick(a.set.Theme, true)
	if err != nil {
		return nil, err
	}
	var filters []views.SavedFilter
	for _, f := range a.set.file.Filters {
		filters = append(filters, views.SavedFilter(f))
	}
	saved := filterFile{}
	more, err := saved.load()
	if err != nil {
		store.SetHealth("filters", false, oneLine(err))
	}
	filters = mergeFilters(filters, more)
	how.Context, how.Controls, how.Filters, how.Saver = ctx, store, filters, saved
	screens, global := views.Console(how)
	o := tui.Options{
		Context: ctx, Store: store, Screens: screens, Global: global,
		Styles: styles, Theme: pick, ThemeName: a.set.Theme, Themes: set.Names(),
		Mouse: a.set.Mouse, ReadOnly: a.set.ReadOnly, CancelWork: store.CancelWork, Clipboard: copyHere(),
		Frame: time.Second / time.Duration(cmp.Or(a.set.FrameRate, usualFrameRate)),
	}
	if change != nil {
		change(&o)
	}
	m, err := tui.New(o)
	if err != nil {
		return nil, err
	}
	for _, wrong := range m.SetKeys(a.set.file.Keys) {
		a.set.warn("%s:%d: %v", a.set.file.Path, a.set.file.KeyLine[wrong.Action], wrong)
	}
	m.Warn(a.set.warnings...)
	return m, nil
}

// source names what the console looks at, for what is kept by source.
func (a *app) source(dir string) string {
	if a.cluster() == nil {
		return "data " + dir
	}
	return "cluster " + cmp.Or(a.set.Address, "profile "+strconv.Quote(a.set.Profile)) + " " + a.set.Namespace
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
