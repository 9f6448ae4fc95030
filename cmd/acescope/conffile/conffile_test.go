package conffile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"acescope/sources/runs"
)

func known(name string) bool {
	return slices.Contains([]string{"theme", "mouse", "frame_rate", "refresh"}, name)
}

func TestParseNamesMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"theme = \"x\"\n\nthme = 3\n": `c.toml:3: unknown setting "thme"`,
		"a = ":                        "c.toml:1: ",
		"mouse = true\n[keys]\nx = 4": "c.toml:3: keys: x must be a list of keys",
		"keys = 3":                    "c.toml:1: keys must be a table",
		"filters = 3":                 "c.toml:1: filters must be an array of tables",
		"[[filters]]\nname = 'a'":     "c.toml:1: filter: needs a name and a query",
		"\n[[filters]]\nname='a'\nquery='b'\nwhat=1":                                                     `c.toml:5: unknown key "what"`,
		"[[filters]]\nname = 1\nquery = 'x'":                                                             "c.toml:1: filter: name has the wrong type",
		"[[filters]]\nname='a'\nquery='b'\n[[filters]]\nname='a'\nquery='c'":                             `c.toml:4: filter: duplicate name "a"`,
		"[[filters]]\nname='a'\nquery='b'\ndefault=true\n[[filters]]\nname='c'\nquery='c'\ndefault=true": `c.toml:5: filter "c": "a" is already the default`,
		"[other.thing]\nx = 1":     `c.toml:1: unknown setting "other"`,
		"theme = 'a'\ntheme = 'b'": "c.toml:2: ",
		"mouse = true\n\x00":       "c.toml:2: ",
		"prompts = 3":              "c.toml:1: prompts must be a table",
		"[prompts]\npersist = 'a'": `c.toml:2: prompts: unknown phase "persist"`,
		"[prompts]\nskills = 'A'":  "c.toml:2: prompts: skills must be the name of a prompt",
		"[prompts]\nskills = 3":    "c.toml:2: prompts: skills must be the name of a prompt",
	} {
		_, warnings := Parse("c.toml", []byte(text), known)
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0], want) {
			t.Errorf("%q: warnings %q, want one that begins with %q", text, warnings, want)
		}
	}
}

func TestParse(t *testing.T) {
	c, warnings := Parse("c.toml", []byte(`theme = "ember"
frame_rate = 20

[keys]
"runs.query" = ["/", "f"]
shell.zoom = "Z"
run = {log = []}

[prompts]
generator = "brief@2"
skills = "default"

[[filters]]
name = "bad"
query = "wrong"
default = true
[[filters]]
name = "mine"
query = "exp=x"
`), known)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	if c.Values["theme"] != (Value{"ember", 1}) || c.Values["frame_rate"] != (Value{int64(20), 2}) {
		t.Errorf("values are %v", c.Values)
	}
	if strings.Join(c.Keys["runs.query"], " ") != "/ f" || c.KeyLine["runs.query"] != 5 ||
		c.Keys["shell.zoom"][0] != "Z" || c.KeyLine["run.log"] != 7 || c.Keys["run.log"] == nil {
		t.Errorf("keys are %v at %v", c.Keys, c.KeyLine)
	}
	if c.Prompts["generator"] != "brief@2" || c.Prompts["skills"] != "default" || len(c.Prompts) != 2 {
		t.Errorf("prompts are %v", c.Prompts)
	}
	if len(c.Filters) != 2 || c.Filters[0] != (runs.SavedFilter{Name: "bad", Query: "wrong",
		Default: true}) || c.Filters[1].Name != "mine" {
		t.Errorf("filters are %v", c.Filters)
	}
	if c, warnings := Read(filepath.Join(t.TempDir(), "missing.toml"), known); len(warnings) > 0 ||
		len(c.Values) > 0 {
		t.Errorf("a missing file contains %v, %v", c, warnings)
	}
}

func TestReadTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	if _, warnings := Read(os.DevNull, known); len(warnings) != 1 ||
		!strings.Contains(warnings[0], "not a regular file") {
		t.Errorf("a device: %q", warnings)
	}
	if err := os.WriteFile(path, make([]byte, MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, warnings := Read(path, known); len(warnings) != 1 ||
		!strings.Contains(warnings[0], "larger than 1024 KB") {
		t.Errorf("warnings are %q", warnings)
	}
}

// FuzzConfig checks for any file that every warning names the file and every value has a line.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("theme = \"ember\"\n[keys]\n\"runs.query\" = [\"/\"]\na.b.c = 'x'\n[[filters]]\nname='a'\nquery='b'\n"))
	f.Add([]byte("filters = [{name = 'a', query = 'b'}, 3]\nkeys = {a = {b = 1979-05-27}}\n[x.y]\n[[x.z]]\n"))
	f.Add([]byte("[[filters]]\n[filters.name]\n[[filters.x]]\n\"\" = ''\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, warnings := Parse("c.toml", data, known)
		for _, w := range warnings {
			if !strings.HasPrefix(w, "c.toml:") {
				t.Errorf("a warning without the file: %q", w)
			}
		}
		for name, v := range c.Values {
			if v.Line < 1 || v.Line > 1+strings.Count(string(data), "\n") {
				t.Errorf("%s is on line %d", name, v.Line)
			}
		}
	})
}
