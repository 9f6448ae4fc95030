package playbook

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func bullet(id, section, content string, helpful, harmful int) Bullet {
	return Bullet{ID: id, Section: section, Content: content, Helpful: helpful, Harmful: harmful}
}

func book(bullets ...Bullet) *Playbook { return &Playbook{Bullets: bullets} }

func TestDiff(t *testing.T) {
	a := book(
		bullet("a-00001", "A", "the same", 1, 0),
		bullet("a-00002", "A", "round at the end", 1, 0),
		bullet("a-00003", "A", "counted", 1, 0),
		bullet("a-00004", "A", "gone", 1, 0),
		bullet("a-00005", "A", "moved", 1, 0),
		bullet("a-00006", "A", "numbered again", 1, 0),
	)
	b := book(
		bullet("b-00009", "B", "new", 0, 0),
		bullet("a-00005", "B", "moved", 1, 0),
		bullet("a-00001", "A", "the same", 1, 0),
		bullet("a-00002", "A", "round only at the end", 2, 0),
		bullet("a-00003", "A", "counted", 1, 3),
		bullet("a-00016", "A", "numbered  again", 1, 0),
	)
	before := fmt.Sprint(a, b)
	d := Diff(a, b)
	if fmt.Sprint(a, b) != before {
		t.Error("the playbooks were changed")
	}
	if d.Same != 1 || len(d.Added) != 1 || d.Added[0].ID != "b-00009" || len(d.Removed) != 1 ||
		d.Removed[0].ID != "a-00004" {
		t.Errorf("%+v", d)
	}
	var got []string
	for _, c := range d.Changed {
		got = append(got, fmt.Sprintf("%s from=%s content=%v counts=%v moved=%v", c.ID, c.From, c.Content,
			c.Counts, c.Moved))
	}
	want := []string{
		"a-00005 from= content=false counts=false moved=true",
		"a-00002 from= content=true counts=true moved=false",
		"a-00003 from= content=false counts=true moved=false",
		"a-00016 from=a-00006 content=true counts=false moved=false",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("changed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if w := d.Changed[1].Words; !reflect.DeepEqual(w, []Hunk{{HunkSame, "round "}, {HunkAdded, "only "},
		{HunkSame, "at the end"}}) {
		t.Errorf("%+v", w)
	}
	if d.Empty() || !Diff(a, a).Empty() || Diff(a, a).Same != len(a.Bullets) {
		t.Error("a playbook differs from itself")
	}
}

// Content that several bullets share does not match them.
func TestDiffMatchesByContent(t *testing.T) {
	d := Diff(book(bullet("a-00001", "A", "x", 0, 0), bullet("a-00002", "A", "x", 0, 0)),
		book(bullet("b-00001", "A", "x", 0, 0)))
	if len(d.Added) != 1 || len(d.Removed) != 2 || len(d.Changed) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""},
		{"", "x", "+x"},
		{"x", "", "-x"},
		{"a b c", "a b c", "=a b c"},
		{"a b c", "a x c", "=a |-b|+x|= c"},
		{"one two three", "one 2 3", "=one |-two three|+2 3"},
		{"net income / equity", "net income / shareholders' equity",
			"=net income / |+shareholders' |=equity"},
		{"財務 a", "財務 b", "=財務 |-a|+b"},
		{"a\nb", "a\nb\nc", "=a\nb|+\nc"},
	} {
		var parts []string
		for _, h := range Words(c.a, c.b) {
			parts = append(parts, map[HunkKind]string{HunkSame: "=", HunkAdded: "+",
				HunkRemoved: "-"}[h.Kind]+h.Text)
		}
		if got := strings.Join(parts, "|"); got != c.want {
			t.Errorf("Words(%q, %q) is %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// Long texts with little in common are compared in bounded time.
func TestWordsOfLongTexts(t *testing.T) {
	var a, b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&a, "a%d ", i)
		fmt.Fprintf(&b, "b%d ", i)
	}
	if h := Words("x "+a.String()+"y", "x "+b.String()+"y"); len(h) != 4 {
		t.Errorf("%d hunks", len(h))
	}
}

func FuzzWords(f *testing.F) {
	f.Add("a b c", "a c b")
	f.Add("", "x\n\ty")
	f.Add("財務 x", "x 財務\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		var before, after strings.Builder
		last := Hunk{}
		for _, h := range Words(a, b) {
			if h.Text == "" || h.Kind == last.Kind || last.Kind == HunkAdded && h.Kind == HunkRemoved {
				t.Fatalf("%q after %q", h, last)
			}
			if h.Kind != HunkAdded {
				before.WriteString(h.Text)
			}
			if h.Kind != HunkRemoved {
				after.WriteString(h.Text)
			}
			last = h
		}
		if before.String() != a || after.String() != b {
			t.Fatalf("%q, %q came back as %q, %q", a, b, before.String(), after.String())
		}
	})
}
