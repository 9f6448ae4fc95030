package theme

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxFile bounds a theme's file, in bytes.
const maxFile = 64 << 10

// Parse reads a theme from a file's text on top of base. The file's name serves in
// errors. Every key that means nothing is named with its line; of other mistakes the
// first is.
func Parse(file string, data []byte, base Theme) (Theme, error) {
	if len(data) > maxFile {
		return Theme{}, fmt.Errorf("%s: larger than %d KB, so it is no theme", file, maxFile>>10)
	}
	t := base
	t.Name, t.Base = "", ""
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&t)
	if err != nil {
		return Theme{}, mistake(file, err)
	}
	return t, nil
}

// header reads only what a theme's file says of itself, mistakes in the rest aside.
func header(file string, data []byte) (name, base string, err error) {
	if len(data) > maxFile {
		return "", "", fmt.Errorf("%s: larger than %d KB, so it is no theme", file, maxFile>>10)
	}
	var h struct {
		Name string `toml:"name"`
		Base string `toml:"base"`
	}
	if err := toml.Unmarshal(data, &h); err != nil {
		return "", "", mistake(file, err)
	}
	return h.Name, h.Base, nil
}

// mistake says in one line where a file is wrong.
func mistake(file string, err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		var all []error
		for _, e := range unknown.Errors {
			row, _ := e.Position()
			all = append(all, fmt.Errorf("%s:%d: a theme has no %q", file, row, strings.Join(e.Key(), ".")))
		}
		return errors.Join(all...)
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		row, _ := wrong.Position()
		text := strings.TrimPrefix(wrong.Error(), "toml: ")
		return fmt.Errorf("%s:%d: %s", file, row, strings.Join(strings.Fields(text), " "))
	}
	return fmt.Errorf("%s: %w", file, err)
}

var nameShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)
