package llm

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
)

func outcomesOf(c curated) (out []string) {
	for _, op := range c.operations {
		s := fmt.Sprintf("%s %s %s", op.Type, op.BulletID, op.Content)
		if op.Outcome != "" {
			s = string(op.Outcome) + ": " + s
		}
		out = append(out, strings.Join(strings.Fields(s), " "))
	}
	return out
}

func TestReadCurator(t *testing.T) {
	const one = `{"reasoning": "r", "operations": [{"type": "ADD", "section": "OTHERS", "content": "a"}]}`
	for name, c := range map[string]struct {
		text string
		how  ace.ParseKind
		want []string
	}{
		"clean": {one, ace.ParseClean, []string{"ADD a"}},
		"fenced": {"Sure:\n```json\n" + one + "\n```\nBye {not} \"this", ace.ParseExtracted,
			[]string{"ADD a"}},
		"in prose": {"I think [a] {b} so: " + one + " That is all.", ace.ParseExtracted,
			[]string{"ADD a"}},
		"after a brace": {"Sets are written { and so: " + one, ace.ParseExtracted, []string{"ADD a"}},
		"repeated": {one + "\n" + strings.ReplaceAll(one, `"a"`, `"b"`), ace.ParseExtracted,
			[]string{"ADD b"}},
		"begun again": {one + "\n{\"reasoning\": \"agai", ace.ParseExtracted, []string{"ADD a"}},
		"fence cut":   {"```json\n" + one, ace.ParseExtracted, []string{"ADD a"}},
		"thought": {"<think>maybe " + strings.ReplaceAll(one, `"a"`, `"z"`) + "</think>\n" + one,
			ace.ParseClean, []string{"ADD a"}},
		"loose": {`{reasoning: 'r', operations: [{type: 'ADD', content: 'a',},],}`,
			ace.ParseRepaired, []string{"ADD a"}},
		"python":          {`{"reasoning": None, "operations": [{"type": "ADD", "content": "a"}], "ok": True}`, ace.ParseRepaired, []string{"ADD a"}},
		"cut in a second": {`{"operations": [{"type": "ADD", "content": "a"}, {"type": "ADD", "content": "never us`, ace.ParseRepaired, []string{"ADD a", "unparsable: ADD never us"}},
		"cut between": {`{"operations": [{"type": "ADD", "content": "a"}, `, ace.ParseRepaired,
			[]string{"ADD a"}},
		"wrapped": {`{"response": ` + one + `}`, ace.ParseClean, []string{"ADD a"}},
		"a list":  {`[{"type": "ADD", "content": "a"}]`, ace.ParseClean, []string{"ADD a"}},
		"one": {`{"operations": {"type": "ADD", "content": "a"}}`, ace.ParseClean,
			[]string{"ADD a"}},
		"no list": {`{"operations": [["ADD"], 7, null]}`, ace.ParseClean,
			[]string{"unparsable: ADD", "unparsable: 7", "unparsable:"}},
		"types": {`{"Operations": [{"Type": "remove", "ID": 12, "content": ["x", 1.50]}]}`,
			ace.ParseClean, []string{"REMOVE 12 x 1.50"}},
		"none": {`{"reasoning": "nothing new", "operations": []}`, ace.ParseClean, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got curated
			var how ace.ParseKind
			err := read(c.text, func(f found) error { how = f.how; return got.parse(f) })
			if err != nil || how != c.how || !slices.Equal(outcomesOf(got), c.want) {
				t.Errorf("%s %q, %v; want %s %q", how, outcomesOf(got), err, c.how, c.want)
			}
		})
	}
	for _, text := range []string{"", "prose", "[calc-00001] is good", `{"reasoning": "x"}`,
		`{"operations": "none"}`, `"operations"`, "null", "{{{{", strings.Repeat("[", 1000),
		strings.Repeat(" ", maxAnswer) + "x{}"} {
		var got curated
		if err := read(text, got.parse); err == nil {
			t.Errorf("%.40q was taken for %+v", text, got)
		}
	}
}

func TestReadAnswers(t *testing.T) {
	var g generated
	if err := read(`{"Reasoning": ["one", "two"], "bullet_ids": "calc-00001, [misc-00002]", "finalAnswer": 12.50}`, g.parse); err != nil ||
		g.answer != "12.50" || g.reasoning != "one\ntwo" ||
		!slices.Equal(g.bullets, []string{"calc-00001", "misc-00002"}) {
		t.Errorf("%+v, %v", g, err)
	}
	if err := read(`{"reasoning": "x", "final_answer": "12`, g.parse); err == nil ||
		!strings.Contains(err.Error(), "cut off") {
		t.Errorf("half an answer was taken: %+v", g)
	}
	var r reflected
	if err := read(`{"key_insight": "k", "bullet_tags": {"b-1": "helpful", "a-1": "HARMFUL"}}`,
		r.parse); err != nil ||
		!slices.Equal(r.tags, []ace.BulletTag{{ID: "a-1", Tag: "harmful"}, {ID: "b-1", Tag: "helpful"}}) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := read(`{"key_insight": "k", "bullet_tags": [{"id": "b-1", "tag": "helpful"}, {"id": "b-2", "tag": "harmful`, r.parse); err != nil || len(r.tags) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	var s generated
	if err := read("The answer is\n{\"final_answer\": true}", s.parse); err != nil || s.answer != "true" {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestRepairIsBounded checks that the library does not get input on which it fails.
func TestRepairIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"deep":   `{"operations": ` + strings.Repeat("[", maxRepair/2),
		"calls":  "{" + strings.Repeat("a(", 20000),
		"quotes": "{" + strings.Repeat(`"a" "b" `, maxRepair/10),
		"commas": "{" + strings.Repeat("a b\n", maxRepair/5),
		"slash":  `{"` + strings.Repeat(`\`, maxRepair-10),
		"ticks":  strings.Repeat("```\n{\n", 10000),
		"braces": strings.Repeat("{ ", 30000),
	} {
		done := make(chan struct{})
		go func() { defer close(done); var c curated; _ = read(text, c.parse) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s: not done after a minute", name)
		}
	}
}

var unicodeEscape = regexp.MustCompile(`\\u([0-9a-fA-F]{4})`)

// letters returns the ASCII letters and digits of a text, with escapes resolved.
func letters(s string) string {
	s = unicodeEscape.ReplaceAllStringFunc(s, func(e string) string {
		n, err := strconv.ParseUint(e[2:], 16, 32)
		if err != nil {
			return e
		}
		return string(rune(n)) + e
	})
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

func within(part, whole string) bool {
	for i := range len(part) {
		at := strings.IndexByte(whole, part[i])
		if at < 0 {
			return false
		}
		whole = whole[at+1:]
	}
	return true
}

// FuzzRead checks that no answer causes a panic and that nothing is invented: the type, the
// bullet and the content of every accepted operation occur in the text in this order.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"reasoning": "r", "operations": [{"type": "ADD", "section": "OTHERS", "content": "a"}]}`,
		"```json\n{\"operations\": [{\"type\": \"UPDATE\", \"bullet_id\": \"calc-00001\", \"content\": \"b \\u0041\"}]}\n```",
		`{operations: [{type: 'REMOVE', id: misc-00002,}],}`,
		`{"operations": [{"type": "TAG", "bullet_id": "calc-00001", "metadata": {"helpful": "2"`,
		`prose { "a": [1, {"final_answer": null}] } more`, "<think>{</think>{\"final_answer\": 1e9}",
		`[{"type":"ADD","content":"x"}`,
		`{"a":"` + "\\", `{"key_insight": ["x"], "bullet_tags": {"calc-00001": "helpful"}}`,
		"{'a': b(1, /* c */ \"d\" + 'e')}",
	} {
		f.Add(s)
	}
	book := &playbook.Playbook{NextID: 3,
		Bullets: []playbook.Bullet{{ID: "calc-00001", Section: "OTHERS", Content: "one"},
			{ID: "misc-00002", Section: "OTHERS", Content: "two"}}}
	f.Fuzz(func(t *testing.T, text string) {
		var g generated
		var r reflected
		var s generated
		var c curated
		_ = read(text, g.parse)
		_ = read(text, s.parse)
		_ = read(text, r.parse)
		if read(text, c.parse) != nil {
			return
		}
		if n := strings.Count(text, "{"); len(c.operations) > len(text) || len(c.operations) > 0 && n == 0 {
			t.Fatalf("%d operations of %d braces", len(c.operations), n)
		}
		all := letters(text)
		accepted, _ := tryAll(book, nil, c.operations)
		for _, op := range accepted {
			if op.Type == ace.OpAdd || op.Type == ace.OpUpdate {
				if !within(letters(op.Content), all) {
					t.Fatalf("content %q is not in the answer", op.Content)
				}
			}
			if !strings.Contains(all, letters(string(op.Type))) ||
				!strings.Contains(all, letters(op.BulletID)) {
				t.Fatalf("%s %s is not in the answer", op.Type, op.BulletID)
			}
		}
	})
}
