package ace

import (
	"strings"
	"testing"
)

func TestRunLogsDir(t *testing.T) {
	for _, c := range []struct{ workflow, run, want string }{
		{"ace/q-1", "0-1", "logs/runs/ace%2Fq-1/0-1"},
		{"..", ".", "logs/runs/%2E./%2E"},
		{"", "a b\x00", "logs/runs/%/a%20b%00"},
		{"../../etc", `c:\x`, "logs/runs/%2E.%2F..%2Fetc/c%3A%5Cx"},
	} {
		if got := RunLogsDir(c.workflow, c.run); got != c.want {
			t.Errorf("%q, %q: %s", c.workflow, c.run, got)
		}
	}
	long := strings.Repeat("ä", 300)
	a, b := FileName(long), FileName(long+"x")
	if len(a) > 250 || a == b {
		t.Errorf("%d bytes, equal: %v", len(a), a == b)
	}
}

func FuzzFileName(f *testing.F) {
	f.Add("ace/q", "..")
	f.Fuzz(func(t *testing.T, a, b string) {
		ea, eb := FileName(a), FileName(b)
		if ea == "" || ea[0] == '.' || strings.ContainsAny(ea, "/\\\x00") || len(ea) > 250 {
			t.Errorf("%q becomes %q", a, ea)
		}
		if (a == b) != (ea == eb) {
			t.Errorf("%q and %q become %q and %q", a, b, ea, eb)
		}
	})
}
