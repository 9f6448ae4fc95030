package theme

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

//go:embed files/*.toml
var files embed.FS

// Auto is the name that chooses dark or light by the terminal's background.
const Auto = "auto"

// maxThemes bounds how many files of a user are read; the rest is named as not read.
const maxThemes = 64

// Set is the themes that there are, by name.
type Set struct {
	themes map[string]Theme
	from   map[string]string
}

// Names lists the themes in alphabetical order.
func (s Set) Names() []string {
	var names []string
	for n := range s.themes {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Get is a theme by name.
func (s Set) Get(name string) (Theme, bool) {
	t, ok := s.themes[name]
	return t, ok
}

// From is the file that a theme was read from, "built in" for those of the program.
func (s Set) From(name string) string { return s.from[name] }

// Pick is the theme of a name; [Auto] and "" are the usual one for the background.
func (s Set) Pick(name string, dark bool) (Theme, error) {
	if name == "" || name == Auto {
		return s.themes[Usual(dark, false).Name], nil
	}
	if t, ok := s.themes[name]; ok {
		return t, nil
	}
	return Theme{}, fmt.Errorf("there is no theme %q; there are %s, %s", name, Auto, strings.Join(s.Names(), ", "))
}

// Builtin is the themes of the program.
var Builtin = sync.OnceValue(func() Set {
	s := Set{map[string]Theme{}, map[string]string{}}
	if errs := s.read(files, "files", func(string) string { return "built in" }); len(errs) > 0 {
		panic(errors.Join(errs...)) // a test reads them all
	}
	return s
})

func builtin(name string) Theme { return Builtin().themes[name] }

// Load is the built-in themes and those of the folder's *.toml files, which may take the
// place of a built-in one of the same name. A file with a mistake is left out, and the
// mistake is returned with file and line. A folder that does not exist is an empty one.
func Load(fsys fs.FS, folder string) (Set, []error) {
	s := Set{map[string]Theme{}, map[string]string{}}
	for n, t := range Builtin().themes {
		s.themes[n], s.from[n] = t, Builtin().from[n]
	}
	errs := s.read(fsys, ".", func(file string) string { return filepath.Join(folder, file) })
	return s, errs
}

// draft is a file that was read, before the themes that it builds on are known.
type draft struct {
	label, base string
	data        []byte
}

func (s Set) read(fsys fs.FS, dir string, label func(file string) string) []error {
	entries, err := fs.ReadDir(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []error{fmt.Errorf("%s: %w", label(""), err)}
	}
	drafts, errs := readDrafts(fsys, dir, entries, label)
	names := make([]string, 0, len(drafts))
	for name := range drafts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := s.finish(name, drafts, nil); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func readDrafts(fsys fs.FS, dir string, entries []fs.DirEntry, label func(string) string) (map[string]draft, []error) {
	drafts := map[string]draft{}
	var errs []error
	for _, e := range entries {
		if path.Ext(e.Name()) != ".toml" || e.IsDir() {
			continue
		}
		where := label(e.Name())
		if len(drafts) == maxThemes {
			errs = append(errs, fmt.Errorf("%s: not read, there are more than %d themes", where, maxThemes))
			break
		}
		name, d, err := readDraft(fsys, path.Join(dir, e.Name()), where)
		if err == nil && drafts[name].data != nil {
			err = fmt.Errorf("%s: the name %q is taken by another file", where, name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		drafts[name] = d
	}
	return drafts, errs
}

func readDraft(fsys fs.FS, file, where string) (string, draft, error) {
	info, err := fs.Stat(fsys, file)
	if err == nil && info.Size() > maxFile {
		return "", draft{}, fmt.Errorf("%s: larger than %d KB, so it is no theme", where, maxFile>>10)
	}
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return "", draft{}, fmt.Errorf("%s: %w", where, err)
	}
	name, base, err := header(where, data)
	if err != nil {
		return "", draft{}, err
	}
	if name == "" {
		name = strings.TrimSuffix(path.Base(file), ".toml")
	}
	if !nameShape.MatchString(name) || name == Auto {
		return "", draft{}, fmt.Errorf("%s: the name %.60q does not do: use letters, digits, - and _, and not %q", where, name, Auto)
	}
	return name, draft{where, base, data}, nil
}

// finish makes a theme out of its draft, the theme it builds on first. A draft that is
// finished is removed; a file that builds on its own name means the one it replaces.
func (s Set) finish(name string, drafts map[string]draft, above []string) error {
	d, waiting := drafts[name]
	if !waiting {
		return nil
	}
	if slices.Contains(above, name) {
		return fmt.Errorf("%s: %q builds on itself through %s", d.label, name, strings.Join(above, ", "))
	}
	if d.base != "" && d.base != name {
		if err := s.finish(d.base, drafts, append(above, name)); err != nil {
			delete(drafts, name)
			return fmt.Errorf("%s: its base %q cannot be used: %w", d.label, d.base, err)
		}
	}
	delete(drafts, name)
	base, ok := s.themes[d.base]
	if d.base != "" && !ok {
		return fmt.Errorf("%s: there is no theme %q to build on", d.label, d.base)
	}
	t, err := Parse(d.label, d.data, base)
	if err != nil {
		return err
	}
	t.Name, t.Base = name, d.base
	s.themes[name], s.from[name] = t, d.label
	return nil
}
