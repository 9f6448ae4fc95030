package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated table of docs/reference/config.md")

// TestReferenceConfig checks that the table of settings in docs/reference/config.md matches their
// definitions.
func TestReferenceConfig(t *testing.T) {
	const file, begin, end = "../../../../docs/reference/config.md", "<!-- settings -->\n", "<!-- end -->\n"
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(got), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no lines %q and %q", file, begin, end)
	}
	want := before + begin + settingsTable() + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(got) != want {
		t.Errorf("%s is not current; run \"make docs\"", file)
	}
}

func settingsTable() string {
	var s Settings
	s.declare()
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + s + "`"
	}
	var b strings.Builder
	b.WriteString("| setting | default | flag | environment | |\n|---|---|---|---|---|\n")
	for _, d := range s.settings {
		option := ""
		if d.scope != noCommand {
			option = "--" + d.Flag.Name
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.name, code(d.DefValue), code(option), code(d.env),
			d.Usage)
	}
	return b.String()
}
