package blueprint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"acescope/engine/tasks/run"
)

const examples = "../../../docs/examples/agents"

// TestExamples checks that every example is valid, has defaults and a timeout, and is documented.
func TestExamples(t *testing.T) {
	all, err := (Library{Dirs: []string{examples}}).Entries(context.Background())
	timeouts := map[string]int{"site-crawler": 3600, "sqlite-backup": 7200, "test-runner": 1800,
		"ace-solver-python": 60, "ace-curator-shell": 60}
	if err != nil || len(all) != len(timeouts) {
		t.Fatalf("%d examples, %v", len(all), err)
	}
	for _, e := range all {
		if e.Problems.any() || len(e.Notes) > 0 {
			t.Errorf("%s: %v %v", e.Name, e.Problems, e.Notes)
			continue
		}
		if e.TimeoutSeconds != timeouts[e.Name] {
			t.Errorf("%s may take %d s", e.Name, e.TimeoutSeconds)
		}
		step := slices.Contains(e.Tags, "ace-step") // what those are given is whole
		if !step && !slices.ContainsFunc(e.Parameters.Parameters(), func(p Parameter) bool {
			return p.Default != nil
		}) {
			t.Errorf("%s has no default", e.Name)
		}
		if _, err := os.Stat(filepath.Join(e.Dir, "README.md")); err != nil {
			t.Error(err)
		}
	}
}

// example runs an example in a directory and decodes its JSON output into out.
func example(t *testing.T, name, params, dir string, out any) (stderr string, err error) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the examples are in Python, and there is no python3 here")
	}
	b, err := (Library{Dirs: []string{examples}}).Load(name)
	if err != nil {
		t.Fatal(err)
	}
	filled, err := b.Check(json.RawMessage(params))
	if err != nil {
		t.Fatal(err)
	}
	var argv []string
	for _, word := range b.Argv {
		argv = append(argv, strings.ReplaceAll(word, run.DirPlaceholder, b.Dir))
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	if b.Strategy == run.StdinJSON {
		cmd.Stdin = bytes.NewReader(filled)
	} else {
		cmd.Args = append(cmd.Args, flags(t, filled)...)
	}
	var stdout, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &errs
	err = cmd.Run()
	if out != nil {
		if bad := json.Unmarshal(stdout.Bytes(), out); bad != nil {
			t.Fatalf("%s: %v: %s%s", name, bad, stdout.Bytes(), errs.Bytes())
		}
	}
	return errs.String(), err
}

// flags returns parameters with the strategy args, as far as the examples need it.
func flags(t *testing.T, params json.RawMessage) (out []string) {
	var obj map[string]any
	d := json.NewDecoder(bytes.NewReader(params))
	d.UseNumber()
	if err := d.Decode(&obj); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		switch v := obj[name].(type) {
		case bool:
			if v {
				out = append(out, "--"+name)
			}
		case []any:
			for _, item := range v {
				out = append(out, fmt.Sprintf("--%s=%v", name, item))
			}
		default:
			out = append(out, fmt.Sprintf("--%s=%v", name, v))
		}
	}
	return out
}

func TestSiteCrawler(t *testing.T) {
	pages := map[string]string{"/": `<title>Home  page</title><a href="/a.html#x">a</a><a href="http://example.com/">out</a><a href="/away">away</a><a href="gone.html">gone</a>`,
		"/a.html": `<title>A</title><a href="b.html">b</a><a href="/">home</a>`,
		"/b.html": `<title>B</title><a href="c.html">c</a>`, "/c.html": "<title>C</title>"}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
			return
		}
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, page)
	}))
	defer site.Close()
	type report struct {
		Count   int
		Pages   []struct{ URL, Title string }
		Broken  []struct{ URL, Error string }
		Foreign []string `json:"foreign_links"`
	}
	var got report
	if stderr, err := example(t, "site-crawler", `{"url": "`+site.URL+`/"}`, t.TempDir(), &got); err != nil {
		t.Fatal(err, stderr)
	}
	if got.Count != 3 || got.Pages[0].Title != "Home page" || got.Pages[2].Title != "B" ||
		len(got.Foreign) != 1 || len(got.Broken) != 2 ||
		!strings.Contains(got.Broken[0].Error, "not on this machine") ||
		!strings.Contains(got.Broken[1].Error, "404") {
		t.Errorf("%+v", got)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"index.html": `<title>I</title><a href="sub/x.html">x</a><a href="../../etc/passwd">p</a>`, "sub/x.html": "<title>X</title>"} {
		put(t, dir, filepath.Dir(name), files{filepath.Base(name): text})
	}
	got = report{}
	if stderr, err := example(t, "site-crawler", `{"url": "file://`+dir+`/index.html", "patterns": ["*"]}`,
		dir, &got); err != nil || got.Count != 2 || len(got.Broken) != 1 ||
		!strings.Contains(got.Broken[0].Error, "outside") {
		t.Errorf("%+v, %v %s", got, err, stderr)
	}
	for _, url := range []string{"http://192.0.2.1/", "http://localhost.example.com/",
		"file://example.com/etc/passwd", "http://127.0.0.1@192.0.2.1/"} {
		if stderr, err := example(t, "site-crawler", `{"url": "`+url+`"}`, dir, nil); err == nil ||
			!strings.Contains(stderr, "refused") {
			t.Errorf("%s: %v %s", url, err, stderr)
		}
	}
}

func TestSQLiteBackup(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "a b?.db")
	seed := exec.Command("python3", "-c",
		"import sqlite3, sys\nd = sqlite3.connect(sys.argv[1])\nd.execute('create table t (x)')\nd.executemany('insert into t values (?)', [(i,) for i in range(1000)])\nd.commit()", db)
	type report struct {
		Backup, Integrity, SHA256 string
		Bytes, Pages              int
		Removed                   []string
	}
	params, _ := json.Marshal(map[string]any{"database": db, "destination": filepath.Join(dir, "to", "-here"),
		"keep": 2, "label": []string{"daily", "x"}})
	if _, err := exec.LookPath("python3"); err == nil {
		if out, err := seed.CombinedOutput(); err != nil {
			t.Skip("this Python has no SQLite: ", string(out))
		}
	}
	var got report
	for i := range 3 {
		got = report{}
		if stderr, err := example(t, "sqlite-backup", string(params), dir, &got); err != nil {
			t.Fatal(err, stderr)
		}
		info, err := os.Stat(got.Backup)
		if err != nil || int(info.Size()) != got.Bytes || got.Pages < 2 || got.Integrity != "ok" ||
			len(got.SHA256) != 64 || !strings.HasSuffix(got.Backup, ".daily.x.backup") ||
			len(got.Removed) != i/2 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "to", "-here")); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	if err := os.WriteFile(db, bytes.Repeat([]byte("no database"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if stderr, err := example(t, "sqlite-backup", string(params), dir, nil); err == nil ||
		!strings.Contains(stderr, "sqlite-backup: ") || strings.Contains(stderr, "Traceback") {
		t.Errorf("%v %s", err, stderr)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "to", "-here")); err != nil || len(left) != 2 {
		t.Errorf("a failed one leaves %v, %v", left, err)
	}
}

func TestTestRunner(t *testing.T) {
	dir := put(t, t.TempDir(), "suite", files{"go.mod": "module suite\n\ngo 1.21\n",
		"a_test.go": `package suite

import "testing"

func TestGood(t *testing.T) {}
func TestBad(t *testing.T)  { t.Error("so bad") }
func TestLong(t *testing.T) {
	if testing.Short() {
		t.Skip()
	}
}
`})
	type report struct {
		Passed, Failed, Skipped int
		ExitCode                int `json:"exit_code"`
		Failures                []struct{ Package, Test, Output string }
	}
	var got report
	stderr, err := example(t, "test-runner", `{"short": true}`, dir, &got)
	if err == nil || got.Passed != 1 || got.Failed != 1 || got.Skipped != 1 || len(got.Failures) == 0 ||
		got.Failures[0].Test != "TestBad" || !strings.Contains(got.Failures[0].Output, "so bad") {
		t.Errorf("%+v, %v %s", got, err, stderr)
	}
	got = report{}
	if stderr, err := example(t, "test-runner", `{"run": "Good"}`, dir, &got); err != nil ||
		got.Passed != 1 || got.Failed != 0 {
		t.Errorf("%+v, %v %s", got, err, stderr)
	}
	got = report{}
	if stderr, err := example(t, "test-runner", `{"command": ["sh", "-c", "echo on; exit 3"]}`, dir,
		&got); err == nil || got.ExitCode != 3 || got.Failed != 1 || !strings.Contains(stderr, "on") {
		t.Errorf("%+v, %v %s", got, err, stderr)
	}
	if stderr, err := example(t, "test-runner", `{"command": ["--no-such-program"]}`, dir, nil); err == nil ||
		!strings.Contains(stderr, "test-runner: ") || strings.Contains(stderr, "Traceback") {
		t.Errorf("%v %s", err, stderr)
	}
}
