package playbook

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

func parse(t testing.TB, text string) (*Playbook, Report) {
	t.Helper()
	p, report, err := Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p, report
}

func fixture(t testing.TB, name string) (*Playbook, Report) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

// same checks the round trip through a format.
func same(t testing.TB, p *Playbook, write func(*bytes.Buffer) error) {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	q, _, err := Parse(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if p.Hash() != q.Hash() {
		t.Fatalf("not the same after a round trip:\n%s\n%s\nby way of\n%s", p.Canonical(), q.Canonical(),
			out.String())
	}
}

func TestACEText(t *testing.T) {
	p, report := fixture(t, "ace.txt")
	if report.Format != FormatText || report.Bullets != 6 || report.Renamed != 1 || report.Skipped != 0 ||
		len(report.Warnings) != 1 ||
		!strings.Contains(report.Warnings[0], "line 7: \"calc-00003\" is already used at line 6") {
		t.Fatalf("%+v", report)
	}
	want := []Bullet{
		{"calc-00002", "FORMULAS & CALCULATIONS", "Return on equity = net income / shareholders' equity", 5,
			1, 0, ""},
		{"calc-00003", "FORMULAS & CALCULATIONS", "Margin :: always in percent", 0, 0, 0, ""},
		{"calc-00010", "FORMULAS & CALCULATIONS", "An id that collides after a resumed run", 1, 2, 0, ""},
		{"calc-00009", "FORMULAS & CALCULATIONS", "Same section in another spelling", 0, 0, 0, ""},
		{"err-00001", "COMMON MISTAKES TO AVOID", "[not an id] helpful=1 is text here", 0, 4, 0, ""},
	}
	for i, w := range want {
		if p.Bullets[i+1] != w {
			t.Errorf("bullet %d: %+v, want %+v", i+1, p.Bullets[i+1], w)
		}
	}
	if p.NextID != 11 {
		t.Errorf("next id %d", p.NextID)
	}
	same(t, p, func(b *bytes.Buffer) error { return WriteText(b, p) })
	same(t, p, func(b *bytes.Buffer) error { return WriteSkillbook(b, p) })
}

func TestAppWorldText(t *testing.T) {
	p, report := fixture(t, "appworld.txt")
	if report.Format != FormatPlain || report.Bullets != 4 || len(report.Warnings) != 0 {
		t.Fatalf("%+v", report)
	}
	b, ok := p.Find("code-00010")
	want := "To write a table without a library:\n# build the rows first\nrows = ['a,b']\n[x for x in rows]\n\nfor r in rows:\n    ## twice as loud, still code\n    print(r)"
	if !ok || b.Content != want {
		t.Fatalf("%q", b.Content)
	}
	same(t, p, func(b *bytes.Buffer) error { return WriteText(b, p) })
}

func TestSkillbook(t *testing.T) {
	p, report := fixture(t, "skillbook.json")
	if report.Format != FormatSkillbook || report.Bullets != 3 || report.Skipped != 1 {
		t.Fatalf("%+v", report)
	}
	want := []Bullet{{"ct-00001", "critical_thinking", "First in the section", 0, 0, 0, ""},
		{"ct-00002", "critical_thinking", "Second in the section", 1, 0, 2, ""},
		{"loose-00004", "OTHERS", "Listed by no section", 0, 0, 0, ""}}
	for i, w := range want {
		b := p.Bullets[i]
		b.Extra = ""
		if b != w {
			t.Errorf("bullet %d: %+v, want %+v", i, b, w)
		}
	}
	if p.NextID != 8 {
		t.Errorf("next id %d", p.NextID)
	}
	same(t, p, func(b *bytes.Buffer) error { return WriteSkillbook(b, p) })
	same(t, p, func(b *bytes.Buffer) error { _, err := b.Write(p.Canonical()); return err })

	old, report := fixture(t, "bullets_v0.json")
	if b, ok := old.Find("a-00001"); !ok || b.Helpful != 4 || b.Harmful != 1 ||
		report.Format != FormatSkillbook {
		t.Fatalf("%+v %+v", b, report)
	}
}

func TestEmptyPlaybook(t *testing.T) {
	p := &Playbook{}
	same(t, p, func(b *bytes.Buffer) error { return WriteText(b, p) })
	same(t, p, func(b *bytes.Buffer) error { return WriteSkillbook(b, p) })
	same(t, p, func(b *bytes.Buffer) error { _, err := b.Write(p.Canonical()); return err })
}

func TestWriteTextIndentsHeaderLikeLines(t *testing.T) {
	p := &Playbook{Bullets: []Bullet{{ID: "a-00001", Section: "A",
		Content: "x\n## NOT A HEADER\n[b-00002] not a bullet\n[c] helpful=1 harmful=1 :: nor this"}}}
	var out bytes.Buffer
	if err := WriteText(&out, p); err != nil {
		t.Fatal(err)
	}
	q, _ := parse(t, out.String())
	if len(q.Bullets) != 1 || strings.Join(strings.Fields(q.Bullets[0].Content),
		" ") != strings.Join(strings.Fields(p.Bullets[0].Content), " ") {
		t.Fatalf("%+v", q.Bullets)
	}
}

func TestNotAPlaybook(t *testing.T) {
	for name, c := range map[string]struct{ file, says string }{
		"empty":       {" \n\n", "the file is empty"},
		"binary":      {"## A\n[a-00001] x\n\x00\x01", "line 3 is not UTF-8"},
		"latin 1":     {"## A\n[a-00001] caf\xe9", "line 2 is not UTF-8"},
		"prose":       {"\nDear reader,\n", `line 2 is "Dear reader,"`},
		"read me":     {"# Title\n\n## Install\nRun it.\n", `line 1 is "# Title"`},
		"json list":   {`[{"a": 1}]`, "no bullet"},
		"other json":  {`{"a": 1}`, `neither "skills" nor "bullets"`},
		"broken json": {"{\"skills\":\n{\"a\": }}", "line 2"},
		"wrong types": {"{\"skills\":\n{\"a\": {\"id\": 3}}}", "line"},
		"next id":     {`{"skills": {}, "next_id": -1}`, "next_id -1"},
		"counter": {`{"skills": {"a": {"content": "x", "helpful": -2}}}`,
			`skill "a" has a counter out of range`},
		"long line":    {"## A\n[a-00001] " + strings.Repeat("x", MaxLine), "line 2 has more than"},
		"half-written": {`{"skills": {"a": {"content": "x"`, "unexpected end"},
	} {
		_, _, err := Parse(strings.NewReader(c.file))
		if !errors.Is(err, ErrNotPlaybook) || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Parse(endless{}); !errors.Is(err, ErrNotPlaybook) {
		t.Errorf("endless: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

func TestParseRemovesControlCharacters(t *testing.T) {
	p, report := parse(t, "\ufeffintro\r\n## A\x1b[31m\r\n[a-00001] one\x1b[0m\rtwo\x07\r\n[a-00002]\r\n[bad id] helpful=1 harmful=0 :: kept\r\n")
	if len(p.Bullets) != 2 || p.Bullets[0].Content != "one[0m\ntwo" || p.Bullets[0].Section != "A[31m" ||
		p.Bullets[1].ID != "a3-00002" || report.Skipped != 2 || report.Renamed != 1 {
		t.Fatalf("%+v %+v", p, report)
	}
}

// parseTextOnly parses the text formats, whatever the data begins with.
func parseTextOnly(data []byte) (*Playbook, error) {
	data, err := readAll(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	p, _, err := parseText(data)
	return p, err
}

func FuzzParseText(f *testing.F) {
	for _, name := range []string{"ace.txt", "appworld.txt"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("[a-00001]\n    ## x\n\n## B\x1b\n[a-00001] y\r## C\n[x] helpful=01 harmful=2 neutral=3 ::z"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseTextOnly(data)
		if err != nil {
			return
		}
		checkValid(t, p)
		for i := range p.Bullets {
			p.Bullets[i].Neutral = 0 // not part of this format
		}
		same(t, p, func(b *bytes.Buffer) error { return WriteText(b, p) })
	})
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"skillbook.json", "bullets_v0.json", "kayba_v1.json", "marketplace.json",
		"sections.json"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"bullets":[{"id":"a-00001","section":"A","content":"x\r\u0000\u2028"},{"id":"a-00001","content":"y"}],"next_id":9}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, _, err := Parse(bytes.NewReader(data))
		if err != nil {
			return
		}
		checkValid(t, p)
		same(t, p, func(b *bytes.Buffer) error { return WriteSkillbook(b, p) })
		same(t, p, func(b *bytes.Buffer) error { _, err := b.Write(p.Canonical()); return err })
	})
}

// checkValid checks the invariants of every playbook that this package creates.
func checkValid(t testing.TB, p *Playbook) {
	t.Helper()
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	for _, b := range p.Bullets {
		if idNumber(b.ID) >= p.NextID {
			t.Fatalf("id %s is not below the next, %d", b.ID, p.NextID)
		}
	}
	if got := grouped(p.Bullets, p.Sections); len(got) > 0 && &got[0] != &p.Bullets[0] {
		t.Fatal("sections are not together")
	}
}
