package logfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line string
		want Record
	}{
		{`{"time":"t1","level":"INFO","msg":"a \"b\"","n":1.5e3,"o":{"x":["}",1]},"ok":true}`,
			Record{JSON, "t1", "INFO", `a "b"`, []Pair{{"n", "1.5e3"}, {"o", `{"x":["}",1]}`},
				{"ok", "true"}}}},
		{` { "ts" : 12 , "message" : "m" , "msg":"second" } `,
			Record{JSON, "12", "", "m", []Pair{{"msg", "second"}}}},
		{`{}`, Record{Form: JSON}},
		{`time=2026-05-04T12:00:00Z level=WARN msg="disk \"nearly\" full" pid=4 run=`,
			Record{Key, "2026-05-04T12:00:00Z", "WARN", `disk "nearly" full`,
				[]Pair{{"pid", "4"}, {"run", ""}}}},
		{`level=info started well`, Record{Key, "", "info", "", []Pair{{"", "started well"}}}},
		{`a="unended`, Record{Form: Key, Rest: []Pair{{"a", `"unended`}}}},
		{`12:00:00 ERROR no room`, Record{Form: Plain, Level: "ERROR", Message: "12:00:00 ERROR no room"}},
		{`[warn] low`, Record{Form: Plain, Level: "warn", Message: "[warn] low"}},
		{`no error here`, Record{Form: Plain, Message: "no error here"}},
		{`{"torn":`, Record{Form: Plain, Message: `{"torn":`}},
		{``, Record{Form: Plain}},
	} {
		if got := Parse([]byte(c.line)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.line, got, c.want)
		}
	}
}

func TestLevels(t *testing.T) {
	l := Levels{}
	for i, line := range []string{"panic: broken", "\tmain.go:4", "", " indented", "level=debug x=1",
		`{"level":50}`, "  at x"} {
		want := []Severity{Error, Error, Unknown, Unknown, Debug, Error, Error}[i]
		if got := l.Next("f", []byte(line)); got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

// FuzzParse checks that the members of an object are those that encoding/json reads, and
// that no line breaks the parser.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":"x\n","c":{"d":[1,{"e":"]"}]}}`, `a=1 b="c d" e`,
		`{"a" : "\u00e9\\" , "a":null}`, "\xff{", `a="`, `a="\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		Parse(line)
		pairs, ok := objectPairs(line)
		want, isObject := decoded(line)
		if ok != isObject {
			t.Fatalf("object %v, want %v", ok, isObject)
		}
		if !ok || len(want) > maxPairs {
			return
		}
		if len(pairs) != len(want) {
			t.Fatalf("%d members, want %d", len(pairs), len(want))
		}
		for i, p := range pairs {
			if p.Key != want[i].Key || p.Value != want[i].Value {
				t.Errorf("member %d is %q, want %q", i, p, want[i])
			}
		}
	})
}

// decoded returns the members of an object as encoding/json reads them.
func decoded(line []byte) (pairs []Pair, ok bool) {
	if !json.Valid(line) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		key, err := d.Token()
		var raw json.RawMessage
		if err = errors.Join(err, d.Decode(&raw)); err != nil {
			return nil, false
		}
		value := string(raw)
		if s := ""; raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
			value = s
		}
		pairs = append(pairs, Pair{key.(string), value})
	}
	_, err := d.Token()
	return pairs, err == nil || errors.Is(err, io.EOF)
}
