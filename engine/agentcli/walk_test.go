package agentcli

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzWalk holds that of any text the same is taken for JSON as encoding/json takes, and that
// the same strings and fields are found in it.
func FuzzWalk(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0.5e+10,true,false,null,"x"],"\u0062":{"c":{}}}`, ` {"a" : 1 , "b" : [ ] } `, `["\ud83d\ude00\ud800\u0041\udc00",""]`,
		`"a\n\t\"\\\/\b\f\r"`, `"\u12"`, `"\x"`, "\"\x01\"", `01`, `-`, `1.`, `1e`, `{"a"}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{1:2}`, `tru`, `nulll`, `{`, `"`, `"\`,
		`{"seven12":"seven12","eight123":"eight123","nine12345":"nine12345"}`, strings.Repeat("[", 9999) + "1" + strings.Repeat("]", 9999),
		strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) + strings.Repeat("]", 10001), "\u2028", "[\v]", "{}x",
	} {
		f.Add(text)
	}
	seeds(f, func(_ CLI, data []byte) {
		for line := range bytes.Lines(data) {
			f.Add(string(line))
		}
	})
	f.Fuzz(func(t *testing.T, text string) {
		if text = strings.Trim(text, " \t\r\n"); text == "" || !utf8.ValidString(text) {
			return
		}
		v := value(text)
		good := v.whole(nil)
		if good != json.Valid([]byte(text)) {
			t.Fatalf("%q: %v", text, good)
		}
		if !good {
			return
		}
		switch {
		case v.isText():
			var want string
			if err := json.Unmarshal([]byte(text), &want); err != nil || v.view() != want {
				t.Errorf("%q is %q, want %q", text, v.view(), want)
			}
		case v.isObject():
			sameFields(t, v)
		}
	})
}

// sameFields holds that the fields of an object are those that encoding/json finds.
func sameFields(t *testing.T, v value) {
	var want map[string]json.RawMessage
	if err := json.Unmarshal([]byte(v), &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]json.RawMessage{}
	v.each(func(key string, field value) bool {
		got[key] = json.RawMessage(field)
		return true
	})
	if len(got) != len(want) {
		t.Errorf("%d fields, want %d", len(got), len(want))
	}
	for key, field := range want {
		if !bytes.Equal(got[key], field) {
			t.Errorf("%q is %s, want %s", key, got[key], field)
		}
	}
}

// TestBrokenLine holds that a line that is good only to its middle is garbage, and changes
// nothing of what is made of those after it.
func TestBrokenLine(t *testing.T) {
	for _, cli := range CLIs() {
		for _, file := range streams(t, cli) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, got := NewParser(cli), NewParser(cli)
			for line := range bytes.Lines(data) {
				broken := append(bytes.TrimRight(bytes.Clone(line), "\r\n }"), ",}"...)
				if events := got.Line(broken); len(events) > 1 || len(events) == 1 && events[0].Kind != KindGarbage {
					t.Fatalf("%s: %s gives %+v", cli, broken, events)
				}
				if a, b := told(want.Line(line)), told(got.Line(line)); a != b {
					t.Errorf("%s: %s\n%s, want\n%s", cli, line, b, a)
				}
			}
		}
	}
}

// told is events as JSON, which goes through their pointers.
func told(events []Event) string {
	data, err := json.Marshal(events)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
