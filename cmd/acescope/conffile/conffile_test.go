package conffile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func known(name string) bool {
	return slices.Contains([]string{"theme", "mouse", "frame_rate", "refresh"}, name)
}

func TestConfigNamesMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"theme = \"x\"\n\nthme = 3\n": `c.toml:3: there is no setting "thme"`,
		"a = ":                        "c.toml:1: ",
		"mouse = true\n[keys]\nx = 4": "c.toml:3: keys: x is a list of keys",
		"keys = 3":                    "c.toml:1: keys is a table",
		"filters = 3":                 "c.toml:1: filters are tables",
		"[[filters]]\nname = 'a'":     "c.toml:1: filter: it needs a name and a query",
		"\n[[filters]]\nname='a'\nquery='b'\nwhat=1":                                                     `c.toml:5: a filter has no "what"`,
		"[[filters]]\nname = 1\nquery = 'x'":                                                             "c.toml:1: filter: name is of another type",
		"[[filters]]\nname='a'\nquery='b'\n[[filters]]\nname='a'\nquery='c'":                             `c.toml:4: filter: a filter "a" is there already`,
		"[[filters]]\nname='a'\nquery='b'\ndefault=true\n[[filters]]\nname='c'\nquery='c'\ndefault=true": `c.toml:5: filter "c": "a" is the default already`,
		"[other.thing]\nx = 1":     `c.toml:1: there is no setting "other"`,
		"theme = 'a'\ntheme = 'b'": "c.toml:2: ",
		"mouse = true\n\x00":       "c.toml:2: ",
	} {
		_, wrong := Parse("c.toml", []byte(text), known)
		if len(wrong) != 1 || !strings.HasPrefix(wrong[0], want) {
			t.Errorf("%q: warnings are %q, want one that begins %q", text, wrong, want)
		}
	}
}

func TestConfigIsRead(t *testing.T) {
	c, wrong := Parse("c.toml", []byte("theme = \"ember\"\nframe_rate = 20\n\n[keys]\n\"runs.query\" = [\"/\", \"f\"]\nshell.zoom = \"Z\"\nrun = {log = []}\n\n"+
		"[[filters]]\nname = \"bad\"\nquery = \"wrong\"\ndefault = true\n[[filters]]\nname = \"mine\"\nquery = \"exp=x\"\n"), known)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if c.Values["theme"] != (Value{"ember", 1}) || c.Values["frame_rate"] != (Value{int64(20), 2}) {
		t.Errorf("values are %v", c.Values)
	}
	if got := strings.Join(c.Keys["runs.query"], " "); got != "/ f" || c.KeyLine["runs.query"] != 5 || c.Keys["shell.zoom"][0] != "Z" || c.KeyLine["run.log"] != 7 || c.Keys["run.log"] == nil {
		t.Errorf("keys are %v at %v", c.Keys, c.KeyLine)
	}
	if len(c.Filters) != 2 || c.Filters[0] != (Filter{"bad", "wrong", true}) || c.Filters[1].Name != "mine" {
		t.Errorf("filters are %v", c.Filters)
	}
	if c, wrong := Read(filepath.Join(t.TempDir(), "none.toml"), known); len(wrong) > 0 || len(c.Values) > 0 {
		t.Errorf("no file says %v, %v", c, wrong)
	}
}

func TestConfigTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, make([]byte, MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, wrong := Read(path, known); len(wrong) != 1 || !strings.Contains(wrong[0], "larger than 1024 KB") {
		t.Errorf("warnings are %q", wrong)
	}
}

// Whatever a file holds, it is read or each mistake is a line that names the file.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("theme = \"ember\"\n[keys]\n\"runs.query\" = [\"/\"]\na.b.c = 'x'\n[[filters]]\nname='a'\nquery='b'\n"))
	f.Add([]byte("filters = [{name = 'a', query = 'b'}, 3]\nkeys = {a = {b = 1979-05-27}}\n[x.y]\n[[x.z]]\n"))
	f.Add([]byte("[[filters]]\n[filters.name]\n[[filters.x]]\n\"\" = ''\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, wrong := Parse("c.toml", data, known)
		for _, w := range wrong {
			if !strings.HasPrefix(w, "c.toml:") {
				t.Errorf("a warning does not name the file: %q", w)
			}
		}
		for name, v := range c.Values {
			if v.Line < 1 || v.Line > 1+strings.Count(string(data), "\n") {
				t.Errorf("%s is on line %d", name, v.Line)
			}
		}
	})
}
