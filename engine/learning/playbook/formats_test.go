package playbook

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"acescope/engine/ace"
)

// TestL3Formats reads formats of the field: the counters have several names, no field is lost silently.
func TestL3Formats(t *testing.T) {
	for name, want := range map[string]struct {
		format Format
		bullet Bullet
		losses []Loss
	}{
		"marketplace.json": {FormatList, Bullet{"pat-001", "troubleshooting_and_pitfalls",
			"Wait as long as Retry-After says", 7, 1, 0,
			`{"confidence":0.875,"evidence":[{"file":"client.py","line":12}],"tags":["http","retry"],"title":"Retry on 429"}`},
			[]Loss{{"version", 1, "a field of the file, not of a bullet"}}},
		"sections.json": {FormatSections, Bullet{"ctx-1", "strategies_and_hard_rules",
			"Read the specification first", 3, 0, 0,
			`{"confidence":0.9}`}, nil},
		"kayba_v1.json": {FormatSkillbook,
			Bullet{"reasoning-00001", "reasoning", "Check the premise before the conclusion", 3, 1, 2,
				`{"created_at":"2026-02-19T10:07:42.138094+00:00","embedding":null,"evidence":"Answered yes; the label was no.",` +
					`"justification":"The answer was valid but false.","sources":[{"step":2,"trace":"t-1"}],` +
					`"updated_at":"2026-02-19T10:08:35.468149+00:00"}`}, nil},
		"skillbook.json": {FormatSkillbook, Bullet{"ct-00001", "critical_thinking", "First in the section", 0,
			0, 0, ""},
			[]Loss{{"invalid skill", 1, "only active skills are read"}}},
	} {
		p, report := fixture(t, name)
		if report.Format != want.format || p.Bullets[0] != want.bullet ||
			!reflect.DeepEqual(report.Losses, want.losses) {
			t.Errorf("%s: %+v\n%+v", name, report, p.Bullets[0])
		}
		same(t, p, func(b *bytes.Buffer) error { return WriteSkillbook(b, p) })
		same(t, p, func(b *bytes.Buffer) error { _, err := b.Write(p.Canonical()); return err })
		if err := p.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestL3Skillbook writes every field that it read.
func TestL3Skillbook(t *testing.T) {
	data, err := os.ReadFile("testdata/kayba_v1.json")
	if err != nil {
		t.Fatal(err)
	}
	p, _ := parse(t, string(data))
	var out bytes.Buffer
	if err := WriteSkillbook(&out, p); err != nil {
		t.Fatal(err)
	}
	var before, after any
	if json.Unmarshal(data, &before) != nil || json.Unmarshal(out.Bytes(), &after) != nil ||
		!reflect.DeepEqual(before, after) {
		t.Errorf("%s", out.String())
	}
}

// TestL3Canonical names the canonical form only for files that have no other field.
func TestL3Canonical(t *testing.T) {
	p, _ := fixture(t, "kayba_v1.json")
	for _, book := range []*Playbook{p, {}, {Bullets: []Bullet{{ID: "a-1", Section: "A", Content: "x"}},
		NextID: 2}} {
		q, report := parse(t, string(book.Canonical()))
		if report.Format != FormatCanonical || len(report.Losses) > 0 || q.Hash() != book.Hash() {
			t.Errorf("%+v of %s", report, book.Canonical())
		}
	}
	for _, file := range []string{
		`{"bullets":[{"id":"a-1","content":"x","score":1}]}`,
		`{"bullets":[{"id":"a-1","content":"x","helpful_count":1}]}`,
		`{"bullets":[{"id":"a-1","content":"x"}],"owner":"me"}`,
		`{"bullets":[{"id":"a-1","content":"x","extra":1,"y":2}]}`,
	} {
		if _, report := parse(t, file); report.Format != FormatList {
			t.Errorf("%s is %s", file, report.Format)
		}
	}
}

func TestL3ExtraBounds(t *testing.T) {
	p, report := parse(t, `{"bullets":[{"id":"a-1","content":"x","big":"`+strings.Repeat("y", maxExtraField)+
		`","extra":{"status":"gone","kept":1.50}}]}`)
	want := []Loss{{"big", 1, "a bullet cannot hold it"}, {"status", 1, "a bullet cannot hold it"}}
	if p.Bullets[0].Extra != `{"kept":1.50}` || !reflect.DeepEqual(report.Losses, want) {
		t.Errorf("%s %+v", p.Bullets[0].Extra, report.Losses)
	}
}

// TestL3EmptySections keeps sections without bullets, because the reference implementation files a bullet of
// an unknown section under OTHERS.
func TestL3EmptySections(t *testing.T) {
	data, err := os.ReadFile("testdata/empty_sections.txt")
	if err != nil {
		t.Fatal(err)
	}
	p, _ := parse(t, string(data))
	var out bytes.Buffer
	if err := WriteText(&out, p); err != nil || out.String() != string(data) {
		t.Errorf("%v\n%s", err, out.String())
	}
	same(t, p, func(b *bytes.Buffer) error { return WriteSkillbook(b, p) })
	same(t, p, func(b *bytes.Buffer) error { _, err := b.Write(p.Canonical()); return err })

	ops := []ace.Operation{
		{Type: ace.OpAdd, Section: "common mistakes to avoid", Content: "mixed units"},
		{Type: ace.OpAdd, Section: "strategies and insights", Content: "read twice"},
		{Type: ace.OpRemove, BulletID: "calc-00001"},
	}
	q, done := Apply(p, ops)
	if got := strings.Join(q.Sections,
		","); got != "STRATEGIES & INSIGHTS,FORMULAS & CALCULATIONS,COMMON MISTAKES TO AVOID,OTHERS" ||
		q.Bullets[0].Content != "read twice" {
		t.Errorf("%+v", q)
	}
	if r := replay(p, done); r.Hash() != q.Hash() {
		t.Errorf("replay: %s\n%s", r.Canonical(), q.Canonical())
	}
	q, _ = Apply(q, []ace.Operation{{Type: ace.OpAdd, Section: "OTHERS", Content: "x"},
		{Type: ace.OpAdd, Section: "FORMULAS & CALCULATIONS", Content: "y"}})
	if q.Sections != nil || q.Bullets[1].Content != "y" {
		t.Errorf("all sections have bullets: %+v", q)
	}
}

// TestL3TextLosses names what the text format cannot hold.
func TestL3TextLosses(t *testing.T) {
	p, _ := fixture(t, "kayba_v1.json")
	var fields []string
	for _, l := range p.Losses(FormatText) {
		fields = append(fields, l.Field)
	}
	if got := strings.Join(fields,
		" "); got != "neutral created_at evidence justification sources updated_at next_id" {
		t.Error(got)
	}
	if l := p.Losses(FormatSkillbook); l != nil {
		t.Errorf("%+v", l)
	}
}
