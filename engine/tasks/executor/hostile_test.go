//go:build unix

package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"acescope/engine/internal/redact"
	"acescope/engine/tasks/run"
)

// dead waits until a process has ended.
func dead(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatalf("no process: %q", pid)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
	}
	t.Errorf("process %d lives", n)
}

// TestLeavesChildren checks that children of a program end with it.
func TestLeavesChildren(t *testing.T) {
	h := newFixture(t, nil)
	r := h.run("sleep 1000 & echo $! > child; echo done", `{}`, "")
	if r.Status != run.Completed || r.Stdout != "done\n" {
		t.Errorf("%+v", r)
	}
	pid, _ := os.ReadFile(filepath.Join(h.work, "child"))
	dead(t, string(pid))
}

// TestClosesOutput checks a program that closes its outputs early.
func TestClosesOutput(t *testing.T) {
	h := newFixture(t, nil)
	r := h.run("echo one; exec 1>&- 2>&-; sleep 0.05; exit 0", `{}`, "")
	if r.Status != run.Completed || r.Stdout != "one\n" {
		t.Errorf("%+v", r)
	}
}

// TestWritesMuch checks that memory and disk stay bounded.
func TestWritesMuch(t *testing.T) {
	const written = 64 << 20
	h := newFixture(t, nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := h.Run(t.Context(), h.job(
		fmt.Sprintf("yes 'endless output of a program that does not stop' | head -c %d", written), `{}`, ""))
	runtime.GC()
	runtime.ReadMemStats(&after)
	// the end of it is inline
	if r.Status != run.Completed || r.Dropped != written-run.MaxCapture-run.MaxText/2 {
		t.Errorf("%s %s, %d dropped", r.Status, r.Error, r.Dropped)
	}
	if r.StdoutRef == nil || r.StdoutRef.Size != run.MaxCapture || len(r.Stdout) > run.MaxText {
		t.Errorf("%+v, %d bytes inline", r.StdoutRef, len(r.Stdout))
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if after.Sys > before.Sys+64<<20 {
		t.Errorf("memory grew from %d to %d", before.Sys, after.Sys)
	}
	h.bounded(t, r)
}

// TestWritesWithoutEnd checks the timeout of a program that never stops writing.
func TestWritesWithoutEnd(t *testing.T) {
	h := newFixture(t, func(o *Options) { o.Grace = 200 * time.Millisecond })
	j := h.job("yes 'endless output of a program that does not stop'", `{}`, "")
	j.Blueprint.TimeoutSeconds = 1
	r := h.Run(t.Context(), j)
	if r.Status != run.Failed || r.Reason != run.Timeout || r.ExitCode != nil {
		t.Errorf("%s %s", r.Status, r.Error)
	}
	h.bounded(t, r)
}

// bounded checks that the log of a run is bounded.
func (h *fixture) bounded(t *testing.T, r run.Result) {
	t.Helper()
	info, err := os.Stat(h.logs.Path(r.LogPath))
	if err != nil || info.Size() > maxLog+1000 {
		t.Errorf("the log: %v, %v", info.Size(), err)
	}
}

// TestEndlessLine checks that an output without newlines is bounded.
func TestEndlessLine(t *testing.T) {
	h := newFixture(t, nil)
	r := h.run(`head -c 3000000 /dev/zero | tr '\0' x; printf '%s' `+planted, `{}`, "")
	if r.Status != run.Completed || r.StdoutRef == nil || r.OutputIs != run.OutputText {
		t.Fatalf("%s %s", r.Status, r.Error)
	}
	if text := h.stored(r.StdoutRef.SHA256, r.StdoutRef.Size); !strings.HasPrefix(text, "xxx") ||
		len(text) < 3000000 || strings.Contains(text, planted[:20]) {
		t.Errorf("%d bytes", len(text))
	}
}

// TestIgnoresTERM checks that a program that ignores SIGTERM is killed.
func TestIgnoresTERM(t *testing.T) {
	h := newFixture(t, func(o *Options) { o.Grace = 200 * time.Millisecond })
	j := h.job("trap '' TERM; echo $$ > pid; echo up; while :; do sleep 0.05; done", `{}`, "")
	ctx, cancel := context.WithCancel(t.Context())
	j.OnStart = func(int) {
		go func() {
			defer cancel()
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
				if b, _ := os.ReadFile(filepath.Join(h.work, "pid")); len(b) > 1 {
					return
				}
			}
		}()
	}
	r := h.Run(ctx, j)
	if r.Status != run.Stopped || !strings.Contains(r.Error, "ignored SIGTERM") || r.ExitCode != nil ||
		r.Signal != "killed" {
		t.Errorf("%+v", r)
	}
	pid, _ := os.ReadFile(filepath.Join(h.work, "pid"))
	dead(t, string(pid))
}

// TestNotStarted checks the errors of programs that cannot be started.
func TestNotStarted(t *testing.T) {
	h := newFixture(t, nil)
	plain := filepath.Join(h.work, "plain")
	bad := filepath.Join(h.work, "bad")
	if os.WriteFile(plain, []byte("echo"), 0o600) != nil || os.WriteFile(bad, []byte("#!/no/such/shell\n"),
		0o700) != nil {
		t.Fatal("no files")
	}
	for _, c := range []struct {
		change func(*Job)
		want   string
	}{
		{func(j *Job) { j.Blueprint.Argv = []string{"no-such-program-here"} }, "program not found"},
		{func(j *Job) { j.Blueprint.Argv = []string{"/no/such/program"} }, "program not found"},
		{func(j *Job) { j.Blueprint.Argv = []string{plain} }, "is not executable"},
		{func(j *Job) { j.Blueprint.Argv = []string{h.work} }, "is a directory"},
		{func(j *Job) { j.Blueprint.Argv = []string{bad} }, "interpreter"},
		{func(j *Job) { j.Blueprint.Script = "#!/no/such/shell" },
			"interpreter in the first line of agent.command.sh"},
		{func(j *Job) { j.Blueprint.Argv = nil }, "no command"},
		{func(j *Job) { j.Blueprint.Argv = []string{"echo", "a\x00b"} }, "a NUL"},
		{func(j *Job) { j.Blueprint.Argv = []string{"echo"}; j.Blueprint.WorkingDir = "missing" },
			"invalid working directory"},
		{func(j *Job) { j.Blueprint.Argv = []string{"echo"}; j.ProjectDir = plain },
			"invalid working directory"},
	} {
		j := h.job("", `{}`, "")
		c.change(&j)
		r := h.Run(t.Context(), j)
		if r.Status != run.Failed || r.Reason != run.NotStarted || !strings.Contains(r.Error, c.want) ||
			r.ExitCode != nil {
			t.Errorf("%q: %s %s: %s", c.want, r.Status, r.Reason, r.Error)
		}
	}
}

// TestBadParameters checks that invalid parameters are refused before the program starts.
func TestBadParameters(t *testing.T) {
	h := newFixture(t, nil)
	for _, c := range []struct{ in, want string }{
		{``, "use {} for no parameters"}, {`[]`, "expected an object"}, {`null`, "expected an object"},
		{`{"depth":11}`, "$.depth: maximum: got 11, want 10"},
		{`{"v":"` + strings.Repeat("x", run.MaxParams) + `"}`, "are allowed"},
	} {
		j := h.job("touch ran", c.in, "")
		j.Blueprint.Schema = json.RawMessage(`{"type":"object","properties":{"depth":{"maximum":10}}}`)
		r := h.Run(t.Context(), j)
		if r.Status != run.Failed || r.Reason != run.BadParameters || !strings.Contains(r.Error, c.want) {
			t.Errorf("%s: %+v", short(c.in), r)
		}
	}
	if _, err := os.Stat(filepath.Join(h.work, "ran")); err == nil {
		t.Error("the program was run")
	}
	j := h.job("cat", `{"-x":1}`, run.Args)
	if r := h.Run(t.Context(), j); r.Reason != run.BadParameters {
		t.Errorf("%+v", r)
	}
	for _, strategy := range []run.Strategy{run.Args, run.Env} {
		j := h.job("cat", `{"v":"`+strings.Repeat("x", 200<<10)+`"}`, strategy)
		r := h.Run(t.Context(), j)
		if want := "the strategy " + string(strategy) + " can pass at most"; r.Reason != run.BadParameters ||
			!strings.Contains(r.Error, want) {
			t.Errorf("%s: %s %s", strategy, r.Reason, r.Error)
		}
	}
}

// TestExits checks the results of exit codes, signals and cancellation.
func TestExits(t *testing.T) {
	h := newFixture(t, nil)
	r := h.run("echo out; echo first >&2; echo 'the disk is on fire' >&2; exit 7", `{}`, "")
	if r.Status != run.Failed || r.Reason != run.ExitCode || r.ExitCode == nil || *r.ExitCode != 7 ||
		r.Error != "it ended with exit code 7: the disk is on fire" {
		t.Errorf("%+v", r)
	}
	r = h.run("kill -SEGV $$", `{}`, "")
	if r.Reason != run.Signaled || r.Signal != "segmentation fault" || r.ExitCode != nil {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r = h.Run(ctx, h.job("touch ran", `{}`, "")); r.Status != run.Stopped ||
		r.StartedAt.IsZero() == false {
		t.Errorf("%+v", r)
	}
}

// full is a file on a disk that is full after some bytes.
type full struct {
	file
	left int
}

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.left {
		n, _ := f.file.Write(b[:f.left])
		f.left = 0
		return n, &os.PathError{Op: "write", Path: "/secret/path", Err: syscall.ENOSPC}
	}
	f.left -= len(b)
	return f.file.Write(b)
}

// TestDiskFull checks that a program whose output is lost continues, and that its run fails.
func TestDiskFull(t *testing.T) {
	h := newFixture(t, nil)
	made := h.capture
	h.capture = func(lines func([]byte)) (*capture, error) {
		c, err := made(lines)
		if err == nil {
			c.f = &full{c.f, 10}
		}
		return c, err
	}
	r := h.run(`echo '{"a":"0123456789"}'; touch done`, `{}`, "")
	if r.Status != run.Failed || r.Reason != run.Internal || !strings.Contains(r.Error, "no space left") ||
		strings.Contains(r.Error, "/secret") || r.OutputIs != run.OutputInvalid {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(h.work, "done")); err != nil {
		t.Error("the program was disturbed")
	}
	r = h.run(`echo fine; echo 0123456789012345 >&2`, `{}`, "")
	if r.Status != run.Completed || !strings.Contains(r.Error, "standard error could not be stored") {
		t.Errorf("%+v", r)
	}
}

// TestOutputs checks how outputs are classified.
func TestOutputs(t *testing.T) {
	h := newFixture(t, nil)
	for _, c := range []struct{ script, is, output string }{
		{`echo '{"a": [1, 2.50]}'`, run.OutputJSON, `{"a":[1,2.50]}`},
		{`printf '\n  [1]\n\n'`, run.OutputJSON, `[1]`},
		{`echo 42`, run.OutputJSON, `42`},
		{`echo '"x"'`, run.OutputJSON, `"x"`},
		{`echo hello`, run.OutputText, ``},
		{`echo '[info] begins'`, run.OutputText, ``},
		{`echo 'log'; echo '{"a":1}'`, run.OutputText, ``},
		{`echo 1 2`, run.OutputText, ``},
		{`:`, run.OutputNone, ``},
		{`printf '  \n'`, run.OutputNone, ``},
		{`printf '{"a":1'`, run.OutputInvalid, ``},
		{`printf '{"a":"x'`, run.OutputInvalid, ``},
		{`echo '{"a":1}{"b":2}'`, run.OutputInvalid, ``},
		{`echo '{"a":1} trailing'`, run.OutputInvalid, ``},
		{`printf '{"a":"\377"}'`, run.OutputInvalid, ``},
		{`printf '\377\376abc\000'`, run.OutputText, ``},
		{`head -c 20000 /dev/zero | tr '\0' '['`, run.OutputInvalid, ``},
	} {
		r := h.run(c.script, `{}`, "")
		if r.Status != run.Completed || r.OutputIs != c.is || string(r.Output) != c.output {
			t.Errorf("%s: %s %s %q", c.script, r.Error, r.OutputIs, r.Output)
		}
		if _, err := json.Marshal(r); err != nil || strings.ContainsRune(r.Stdout, 0) {
			t.Errorf("%s: %v", c.script, err)
		}
	}
	r := h.run(`printf '['; i=0; while [ $i -lt 5000 ]; do printf '"abcdefgh",'; i=$((i+1)); done; echo '1]'`,
		`{}`, "")
	if r.OutputIs != run.OutputJSON || r.Output != nil || r.OutputRef == nil ||
		r.OutputRef.MediaType != "application/json" {
		t.Fatalf("%+v", r)
	}
	if text := h.stored(r.OutputRef.SHA256, r.OutputRef.Size); !json.Valid([]byte(text)) {
		t.Errorf("%d bytes", len(text))
	}
}

// TestSecrets checks that no secret is stored, in whichever pieces it was written.
func TestSecrets(t *testing.T) {
	h := newFixture(t, nil)
	r := h.run(`printf '{"a":"planted-Zx'; sleep 0.05; echo '81-very-secret-value"}'; echo planted-Zx81-very-secret-value >&2
printf -- '-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n' >&2; sleep 0.05; printf -- 'abc/+=\n-----END RSA PRIVATE KEY-----\n' >&2; exit 3`, `{}`, "")
	if r.OutputIs != run.OutputJSON || string(r.Output) != `{"a":"[redacted:planted]"}` {
		t.Errorf("%+v", r)
	}
	data, _ := json.Marshal(r)
	_ = filepath.WalkDir(h.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, _ := os.ReadFile(path)
			data = append(data, b...)
		}
		return nil
	})
	for _, secret := range []string{"very-secret", "MIIEpAIBAAKCAQEA", "abc/+="} {
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s is kept", secret)
		}
	}
}

// TestSecretAcrossPieces checks that a secret at the border of two pieces of a long line is found.
func TestSecretAcrossPieces(t *testing.T) {
	var got []byte
	c, err := newCapture(t.TempDir(), redact.New(), func(text []byte) { got = append(got, text...) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for before := maxHeld - 60; before < maxHeld; before += 7 {
		got = nil
		_, _ = c.Write([]byte(strings.Repeat("x", before) +
			" sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWx and more"))
		c.release(true)
		if !bytes.HasSuffix(got, []byte("x [redacted:anthropic] and more")) {
			t.Errorf("%d bytes before: %s", before, got[max(len(got)-100, 0):])
		}
	}
}

// TestLiveLog checks that the log is written while the program runs, and then stored as an artifact.
func TestLiveLog(t *testing.T) {
	h := newFixture(t, nil)
	j := h.job("echo one; echo two >&2; while [ ! -e go ]; do sleep 0.02; done; printf three", `{}`, "")
	seen := make(chan string, 1)
	j.OnStart = func(int) {
		go func() {
			path := h.logs.Path(j.Log.Path())
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
				if b, _ := os.ReadFile(path); bytes.Count(b, []byte("\n")) == 2 {
					seen <- string(b)
					break
				}
			}
			_ = os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600)
		}()
	}
	r := h.Run(t.Context(), j)
	if r.Status != run.Completed || r.Log == nil || r.LogPath != j.Log.Path() {
		t.Fatalf("%+v", r)
	}
	if early := <-seen; !strings.Contains(early, `"stream":"stdout","text":"one"`) ||
		!strings.Contains(early, `"stream":"stderr","text":"two"`) {
		t.Error(early)
	}
	text := h.stored(r.Log.SHA256, r.Log.Size)
	for line := range strings.Lines(text) {
		var l LogLine
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.At.IsZero() {
			t.Errorf("%s: %v", line, err)
		}
	}
	if !strings.Contains(text, `"text":"three"`) {
		t.Error(text)
	}
}

// TestNoLog checks a run whose log cannot be created.
func TestNoLog(t *testing.T) {
	h := newFixture(t, nil)
	if err := os.WriteFile(filepath.Join(h.dir, "logs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := h.run("echo fine", `{}`, "")
	if r.Status != run.Completed || r.Stdout != "fine\n" || r.Log != nil || r.Error == "" {
		t.Errorf("%+v", r)
	}
}
