package triage

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNormalise(t *testing.T) {
	for message, want := range map[string]string{
		`model: 529 overloaded`:                                         `model: <n> overloaded`,
		`dial tcp 127.0.0.1:40213: connect: connection refused`:         `dial tcp <addr>: connect: connection refused`,
		`dial tcp [::1]:7233: connect: connection refused`:              `dial tcp [<addr>]:<n>: connect: connection refused`,
		`lookup api.example.com:443: no such host`:                      `lookup <addr>: no such host`,
		`open /var/lib/ace/q-17.json: no such file or directory`:        `open <path>: no such file or directory`,
		`this worker has no provider "oracle"`:                          `this worker has no provider <text>`,
		`can't parse 'a b' or "x \" y"`:                                 `can't parse <text> or <text>`,
		`activity StartToClose timeout; last failure: took 12.5s`:       `activity StartToClose timeout; last failure: took <duration>`,
		`run 01a1fd6d-386b-73aa-8d57-f2c78bde9cf9 of ace/q-0182 failed`: `run <uuid> of <path> failed`,
		`at 2026-05-04T12:00:00Z token 9f86d081884c7d65 expired`:        `at <time> token <hex> expired`,
		`attempt=3, task=finance-7-e1-0042 (bullet calc-00412)`:         `attempt=<n>, task=<id> (bullet <id>)`,
		`POST https://api.example.com/v1/messages?x=1: status 503`:      `POST <url> status 503`,
		`http 404 after 3 retries`:                                      `http 404 after <n> retries`,
		`values [1, 2, 3] and [4,5]`:                                    `values [<n>] and [<n>]`,
		`read and/or write 12% of 3MB`:                                  `read and/or write <n> of <size>`,
		"two\n  lines\tand  spaces":                                     `two lines and spaces`,
		`財務の計算 17 に失敗`:                                                  `財務の計算 <n> に失敗`,
		`rate limit: code 429, retry after 20`:                          `rate limit: code 429, retry after <n>`,
		``:                                                              ``,
	} {
		if got := Normalize(message); got != want {
			t.Errorf("%q\n got %q\nwant %q", message, got, want)
		}
	}
}

func TestNormaliseJoins(t *testing.T) {
	a := Normalize(`persist q-0001: write /data/a/1f2e3d4c5b: disk quota of 12 MB exceeded at 10:11:12`)
	b := Normalize(`persist q-0999: write /data/b/99887766aa: disk quota of 9 MB exceeded at 23:59:59`)
	if a != b {
		t.Errorf("%q is not %q", a, b)
	}
}

func FuzzNormalise(f *testing.F) {
	for _, s := range []string{"dial tcp 127.0.0.1:80: x", `a "b' c`, "1,2,3", "財 \xff", `\`, `'\`, "a:b:c:",
		"::::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Normalize(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t") {
			t.Fatalf("%q gives %q", s, got)
		}
		if len(got) > 8*maxPattern {
			t.Fatalf("%d bytes give %d", len(s), len(got))
		}
		if again := Normalize(s); again != got {
			t.Fatalf("%q gives %q and %q", s, got, again)
		}
	})
}
