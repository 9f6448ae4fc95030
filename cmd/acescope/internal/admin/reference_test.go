package admin

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/learning/playbook"
	"acescope/engine/tasks/run"
	"acescope/theme"
	"acescope/tui"
)

// reference is the directory of the generated pages.
const reference = "../../../../docs/reference/"

var update = flag.Bool("update", false, "write the generated pages of docs/reference")

// TestReferenceJSON checks that docs/reference/json.md matches the types that commands write.
func TestReferenceJSON(t *testing.T) {
	p := page{described: map[string]bool{}, objects: map[reflect.Type]string{}}
	checkPage(t, "json.md", p.render())
	for section, fields := range descriptions() {
		for name := range fields {
			if name != aboutType && !p.described[section+"."+name] {
				t.Errorf("descriptions.toml: no field %q in [%s]; delete or rename the entry", name, section)
			}
		}
	}
}

// TestReferenceKeys checks that docs/reference/keys.md matches the key bindings of the screens.
func TestReferenceKeys(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	a := &cli.App{}
	a.Settings.Theme, a.Settings.FrameRate = theme.Auto, cli.DefaultFrameRate
	m, err := dryConsole(a, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkPage(t, "keys.md", tui.KeysPage(m.Keys()))
}

func checkPage(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(reference+name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(reference + name); err != nil || string(got) != want {
		t.Errorf("docs/reference/%s is not current (%v); run \"make docs\"", name, err)
	}
}

// page renders json.md.
type page struct {
	b         strings.Builder
	described map[string]bool         // "section.field" of descriptions.toml that were used
	objects   map[reflect.Type]string // nested objects and their names, in the order of queue
	queue     []reflect.Type
}

// contractTypes are objects that the contract describes.
func contractTypes() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[ace.TaskInput]():   "[task input](contract.md#input-and-result-of-a-task)",
		reflect.TypeFor[ace.PhaseAnswer](): "[`get_current_phase`](contract.md#queries)",
		reflect.TypeFor[ace.SkillAnswer](): "[`get_skill_usage`](contract.md#queries)",
		reflect.TypeFor[ace.DeltaAnswer](): "[`get_playbook_delta`](contract.md#queries)",
		reflect.TypeFor[ace.Operation]():   "[operation](contract.md#run_curator)",
		reflect.TypeFor[ace.Ref]():         "[reference](contract.md#references)",
		reflect.TypeFor[session.State]():   "state of the session workflow",
		reflect.TypeFor[run.State]():       "state of the run workflow",
	}
}

func (p *page) render() string {
	p.b.WriteString(jsonHead)
	p.b.WriteString("| command | types |\n|---|---|\n")
	var lines []lineType
	for _, o := range Outputs {
		var links []string
		for _, l := range o.lines {
			links = append(links, fmt.Sprintf("[`%s`](#%s)", l.name, p.heading(lines, l)))
			if !slices.Contains(lines, l) {
				lines = append(lines, l)
			}
		}
		fmt.Fprintf(&p.b, "| `%s` | %s |\n", o.Command, strings.Join(links, " "))
	}
	for _, l := range lines {
		p.objects[l.of] = p.heading(lines, l)
	}
	p.b.WriteString(jsonRules)
	p.b.WriteString("\n# Lines\n")
	for i, l := range lines {
		if first := slices.IndexFunc(lines, func(m lineType) bool { return m.of == l.of }); first < i {
			continue
		}
		p.line(lines, l)
	}
	p.b.WriteString("\n# Objects\n\nValues of the fields above that are objects themselves.\n")
	for i := 0; i < len(p.queue); i++ {
		p.table(p.objects[p.queue[i]], p.queue[i])
	}
	return p.b.String()
}

// heading returns the name of the section that describes a line. Lines of one type share a section.
func (p *page) heading(lines []lineType, l lineType) string {
	for _, m := range lines {
		if m.of == l.of {
			return m.name
		}
	}
	return l.name
}

func (p *page) line(lines []lineType, l lineType) {
	var names []string
	for _, m := range lines {
		if m.of == l.of {
			names = append(names, "`"+m.name+"`")
		}
	}
	p.table(l.name, l.of)
	if len(names) > 1 {
		fmt.Fprintf(&p.b, "\n`type` is %s.\n", strings.Join(names, ", "))
	}
}

func (p *page) table(name string, of reflect.Type) {
	fmt.Fprintf(&p.b, "\n## %s\n\n", name)
	if about := descriptions()[name][aboutType]; about != "" {
		p.b.WriteString(strings.TrimSpace(about) + "\n\n")
	}
	p.b.WriteString("| field | type | |\n|---|---|---|\n")
	p.fields(name, of, nil)
}

// fields writes the fields of a type, except the hidden ones: those of an outer type with the same names
// replace them.
func (p *page) fields(name string, of reflect.Type, hidden []string) {
	own := slices.Clone(hidden)
	for i := range of.NumField() {
		tag, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		own = append(own, tag)
	}
	for i := range of.NumField() {
		f := of.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous || tag != "" && slices.Contains(hidden, tag):
			continue
		case f.Anonymous && tag == "":
			p.fields(name, indirect(f.Type), own)
			continue
		case tag == "type" && f.Type.Kind() == reflect.String && !strings.Contains(name, "."):
			continue
		}
		kind := p.kind(name+"."+tag, f.Type)
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			kind += ", optional"
		}
		fmt.Fprintf(&p.b, "| `%s` | %s | %s |\n", tag, kind, p.describe(name, tag, f.Tag.Get("jsonschema")))
	}
}

// describe returns the description of a field: that of its struct tag, its own in descriptions.toml, or the
// one that all fields of this name share.
func (p *page) describe(section, field, tag string) string {
	if tag != "" {
		return tag
	}
	for _, s := range []string{section, commonFields} {
		if text := descriptions()[s][field]; text != "" {
			p.described[s+"."+field] = true
			return strings.ReplaceAll(text, "|", `\|`)
		}
	}
	return ""
}

// kind returns the JSON type of a Go type, with a link if it is an object.
func (p *page) kind(path string, of reflect.Type) string {
	of = indirect(of)
	if of == reflect.TypeFor[json.RawMessage]() {
		return "any"
	}
	if of == reflect.TypeFor[time.Time]() {
		return "time"
	}
	if of == reflect.TypeFor[playbook.Extra]() {
		return "object: name → any"
	}
	if link := contractTypes()[of]; link != "" {
		return link
	}
	if s := knownTypes()[of]; s != nil && len(s.Enum) > 0 {
		var words []string
		for _, w := range s.Enum {
			words = append(words, fmt.Sprintf("`%v`", w))
		}
		return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "``" }), ", ")
	}
	switch of.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Slice, reflect.Array:
		return "list of " + p.kind(path, of.Elem())
	case reflect.Map:
		return "object: name → " + p.kind(path, of.Elem())
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		return p.object(path, of)
	}
	return "number"
}

// object returns a link to the section of a nested object, and queues the section.
func (p *page) object(path string, of reflect.Type) string {
	name, known := p.objects[of]
	if !known {
		name = path
		p.objects[of] = name
		p.queue = append(p.queue, of)
	}
	return fmt.Sprintf("[object](#%s)", strings.ReplaceAll(name, ".", ""))
}

func indirect(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

const jsonHead = `# JSON output

Every command takes ` + "`--json`" + `. Standard output then has one JSON object per line, each with a ` + "`type`" + `. Everything else goes
to standard error.

` + "```console" + `
$ acescope list --limit 1 --json | jq -c '[.type, .task_id, .status, .verdict, .duration_ms]'
["task","finance-1-e1-0040","completed","correct",70.2]
` + "```" + `

` + "`acescope schema COMMAND`" + ` prints the JSON Schema of a command's lines. This page is generated from the same types by
` + "`make docs`" + `; the descriptions are in ` + "`cmd/acescope/internal/admin/descriptions.toml`" + `.

## Commands

`

const jsonRules = `
` + "`problems`" + ` writes a data set, one ` + "`{\"context\", \"target\"}`" + ` per line, with and without ` + "`--json`" + `. The console and ` + "`demo`" + `
have no ` + "`--json`" + `.

## Rules

- Fields are added, never renamed or removed. Ignore fields that you do not know.
- An *optional* field is left out if it is empty. All other fields are always there.
- Times are RFC 3339 in UTC. Durations (` + "`…_ms`" + `) are milliseconds. Costs are US dollars. Hashes are SHA-256 in lower-case hexadecimal.

## Exit codes

| code | meaning |
|---|---|
| 0 | success. Wrong answers are not failures: ` + "`run`" + ` exits 0 if its tasks completed |
| 1 | failed: the run failed or was canceled, a data set was read only in part, an id is already used, a data directory or port cannot be used, ` + "`doctor`" + ` found a problem |
| 2 | usage: a flag, an argument, a query, a data set or a playbook does not parse |
| 3 | not found: a namespace, a run, a file, a playbook version, a branch or a bullet |
| 4 | differs (` + "`diff`, `playbook diff`" + `) or nondeterministic (` + "`replay verify`" + `) |
| 5 | unreachable: the cluster, its store, or the process that hosts the embedded server, does not answer or denies access; or the store of the namespace has changed |
| 130 | interrupted. Commands that only an interruption ends exit 0: ` +
	"`serve`, `mcp`, `runner start`, `tail -q`, `playbook sync --watch` and `acescope --json`" + ` |

A command that fails writes one line to standard error. The line begins with ` + "`acescope: `" + `.
`
