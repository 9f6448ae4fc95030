package theme

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

//go:embed files/*.toml
var files embed.FS

// Auto is the name that chooses dark or light by the terminal's background.
const Auto = "auto"

const (
	maxThemes = 64       // files of a user that are read; a further one is an error
	maxFile   = 64 << 10 // bytes of a theme's file
)

// Set is the available themes by name.
type Set struct {
	themes  map[string]Theme
	sources map[string]string
}

// Names lists the themes in alphabetical order.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s.themes)) }

// Get returns the theme of a name.
func (s Set) Get(name string) (Theme, bool) {
	t, ok := s.themes[name]
	return t, ok
}

// Source returns the file that a theme was read from, or "built in".
func (s Set) Source(name string) string { return s.sources[name] }

// Pick returns the theme with a name. [Auto] and "" mean the default theme for the background.
func (s Set) Pick(name string, dark bool) (Theme, error) {
	if name == "" || name == Auto {
		return s.themes[Default(dark, false).Name], nil
	}
	if t, ok := s.themes[name]; ok {
		return t, nil
	}
	return Theme{}, fmt.Errorf("theme %q not found; available: %s, %s", name, Auto,
		strings.Join(s.Names(), ", "))
}

// Builtin returns the themes of the program.
var Builtin = sync.OnceValue(func() Set {
	s := Set{map[string]Theme{}, map[string]string{}}
	if errs := s.read(files, "files", func(string) string { return "built in" }); len(errs) > 0 {
		panic(errors.Join(errs...)) // a test reads all built-in themes
	}
	return s
})

func builtin(name string) Theme { return Builtin().themes[name] }

// Load returns the built-in themes and those of the folder's *.toml files, which may replace
// a built-in theme of the same name. A file with a mistake is left out, and the mistake is
// returned with file and line. A missing folder counts as empty.
func Load(fsys fs.FS, folder string) (Set, []error) {
	s := Set{maps.Clone(Builtin().themes), maps.Clone(Builtin().sources)}
	errs := s.read(fsys, ".", func(file string) string { return filepath.Join(folder, file) })
	return s, errs
}

// draft is a theme file of which only name and base are decoded.
type draft struct {
	label, base string
	data        []byte
}

func (s Set) read(fsys fs.FS, dir string, label func(file string) string) []error {
	found, err := fs.Glob(fsys, path.Join(dir, "*.toml"))
	if err != nil {
		return []error{fmt.Errorf("%s: %w", label(""), err)}
	}
	drafts := map[string]draft{}
	var errs []error
	for _, file := range found {
		where := label(path.Base(file))
		if len(drafts) == maxThemes {
			errs = append(errs, fmt.Errorf("%s: not read: more than %d themes", where, maxThemes))
			break
		}
		name, d, err := readDraft(fsys, file, where)
		if err == nil && drafts[name].data != nil {
			err = fmt.Errorf("%s: another file already has the name %q", where, name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		drafts[name] = d
	}
	for _, name := range slices.Sorted(maps.Keys(drafts)) {
		if err := s.finish(name, drafts, nil); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

func readDraft(fsys fs.FS, file, where string) (string, draft, error) {
	info, err := fs.Stat(fsys, file)
	var data []byte
	switch {
	case err == nil && !info.Mode().IsRegular(): // reading a pipe or a device may never end
		err = errors.New("not a regular file")
	case err == nil && info.Size() > maxFile:
		return "", draft{}, errTooLarge(where)
	case err == nil:
		data, err = fs.ReadFile(fsys, file)
	}
	if err != nil {
		return "", draft{}, fmt.Errorf("%s: %w", where, err)
	}
	var header struct { // the rest of the file may still have mistakes
		Name string `toml:"name"`
		Base string `toml:"base"`
	}
	if err := toml.Unmarshal(data, &header); err != nil {
		return "", draft{}, parseError(where, err)
	}
	name := header.Name
	if name == "" {
		name = strings.TrimSuffix(path.Base(file), ".toml")
	}
	if !namePattern.MatchString(name) || name == Auto {
		return "", draft{}, fmt.Errorf(
			"%s: the name %.60q is not allowed: use letters, digits, - and _, and not %q",
			where, name, Auto)
	}
	return name, draft{where, header.Base, data}, nil
}

// finish makes a theme from its draft, after the theme that it builds on, and removes the draft.
// A file whose base is its own name builds on the theme that it replaces.
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
			return fmt.Errorf("%s: base theme %q is invalid: %w", d.label, d.base, err)
		}
	}
	delete(drafts, name)
	base, ok := s.themes[d.base]
	if d.base != "" && !ok {
		return fmt.Errorf("%s: base theme %q not found", d.label, d.base)
	}
	t, err := Parse(d.label, d.data, base)
	if err != nil {
		return err
	}
	t.Name, t.Base = name, d.base
	s.themes[name], s.sources[name] = t, d.label
	return nil
}

// Parse reads a theme from a file's text on top of base. The file's name is used in errors.
// All unknown keys are reported with their lines; of other mistakes only the first.
func Parse(file string, data []byte, base Theme) (Theme, error) {
	if len(data) > maxFile {
		return Theme{}, errTooLarge(file)
	}
	t := base
	t.Name, t.Base = "", ""
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&t)
	if err != nil {
		return Theme{}, parseError(file, err)
	}
	return t, nil
}

func errTooLarge(file string) error {
	return fmt.Errorf("%s: not a theme: larger than %d KB", file, maxFile>>10)
}

// parseError adds the file and the line to a decoding error, one line each.
func parseError(file string, err error) error {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var all []error
		for _, e := range unknown.Errors {
			row, _ := e.Position()
			all = append(all, fmt.Errorf("%s:%d: unknown key %q", file, row, strings.Join(e.Key(), ".")))
		}
		return errors.Join(all...)
	}
	if invalid, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, _ := invalid.Position()
		text := strings.TrimPrefix(invalid.Error(), "toml: ")
		return fmt.Errorf("%s:%d: %s", file, row, strings.Join(strings.Fields(text), " "))
	}
	return fmt.Errorf("%s: %w", file, err)
}
