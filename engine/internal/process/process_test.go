//go:build unix

package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestExits(t *testing.T) {
	var out, errs bytes.Buffer
	p := start(t, t.Context(), Spec{Stdout: &out, Stderr: &errs}, "p-exit", "7")
	if e := p.Wait(); e.Class != Exited || e.Code != 7 || ok(e) || errs.String() != "bye" || e.Duration <= 0 {
		t.Errorf("%+v %q", e, errs.String())
	}
	out.Reset()
	args := []string{"p-echo", "-x", "a b", "$(id)", "`id`", "*", "", "ü\n"}
	if e := start(t, t.Context(), Spec{Stdout: &out}, args...).Wait(); !ok(e) ||
		out.String() != strings.Join(args[1:], "|") {
		t.Errorf("%+v %q", e, out.String())
	}
}

func TestInput(t *testing.T) {
	var out bytes.Buffer
	if e := start(t, t.Context(), Spec{Stdout: &out}, "p-cat").Wait(); !ok(e) || out.Len() != 0 {
		t.Errorf("nothing: %+v %d", e, out.Len())
	}
	big := bytes.Repeat([]byte("0123456789"), 1<<17)
	if e := start(t, t.Context(), Spec{Stdout: &out, Input: big}, "p-cat").Wait(); !ok(e) ||
		!bytes.Equal(out.Bytes(), big) {
		t.Errorf("bytes: %+v, %d of %d", e, out.Len(), len(big))
	}
	// A program that does not read its input does not hang anything.
	if e := start(t, t.Context(), Spec{Input: big}, "p-exit", "0").Wait(); !ok(e) {
		t.Errorf("unread: %+v", e)
	}
	echo := newLines()
	p := start(t, t.Context(), Spec{Stdout: echo, Pipe: true}, "p-cat")
	for _, line := range []string{"one\n", "two\n"} {
		if err := p.Write(t.Context(), []byte(line)); err != nil {
			t.Fatal(err)
		}
		echo.await(t, line)
	}
	p.CloseInput()
	if e := p.Wait(); !ok(e) || echo.String() != "one\ntwo\n" {
		t.Errorf("pipe: %+v %q", e, echo)
	}
	if err := p.Write(t.Context(), []byte("more")); err == nil {
		t.Error("wrote to a program that has ended")
	}
}

// TestWriteIsInterrupted checks that a program that does not read its input does not block its writer.
func TestWriteIsInterrupted(t *testing.T) {
	p := start(t, t.Context(), Spec{Pipe: true}, "p-sleep", "60")
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() { written <- p.Write(ctx, make([]byte, 8<<20)) }()
	cancel()
	if err := <-written; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := p.Write(t.Context(), []byte("the rest of a line\n")); err == nil {
		t.Error("wrote after a part of a line")
	}
	p.Stop()
	p.Wait()
}

// TestClosedOutput checks that a write error does not end the program and is reported.
func TestClosedOutput(t *testing.T) {
	broken := errors.New("the disk is full")
	e := start(t, t.Context(), Spec{Stdout: failing{broken}, Input: bytes.Repeat([]byte("x"), 1<<20)},
		"p-cat").Wait()
	if !ok(e) || !errors.Is(e.OutputErr, broken) {
		t.Errorf("%+v", e)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestSlowWriter checks that a slow writer gets all of the output, even after the drain period.
func TestSlowWriter(t *testing.T) {
	slow := &slowly{to: newLines()}
	p := start(t, t.Context(), Spec{Stdout: slow, Drain: time.Millisecond,
		Input: bytes.Repeat([]byte("x"), 200_000)}, "p-cat")
	if e := p.Wait(); !ok(e) || e.Cut || len(slow.to.String()) != 200_000 {
		t.Errorf("%+v, %d bytes", e, len(slow.to.String()))
	}
}

type slowly struct{ to *lines }

func (s *slowly) Write(b []byte) (int, error) {
	time.Sleep(30 * time.Millisecond)
	return s.to.Write(b)
}

func TestDirAndEnvironment(t *testing.T) {
	var out bytes.Buffer
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if e := start(t, t.Context(), Spec{Stdout: &out, Dir: dir}, "p-dir").Wait(); !ok(e) ||
		out.String() != dir {
		t.Errorf("%+v %q, want %q", e, out.String(), dir)
	}
	out.Reset()
	t.Setenv("SECRET_OF_THE_PARENT", "x")
	start(t, t.Context(), Spec{Stdout: &out}, "p-env").Wait()
	if strings.Contains(out.String(), "SECRET") || strings.Contains(out.String(), "PATH=") {
		t.Errorf("the environment was inherited: %s", out.String())
	}
	env := environ([]string{"A=1", "AB=2", "B=3", "C=4", "=x", "odd"}, []string{"A*", "C", "NOT"},
		[]string{"AB"}, []string{"C=5", "D=6", "bad"})
	if got := strings.Join(env, " "); got != "A=1 C=5 D=6" {
		t.Errorf("environment %q", got)
	}
	if got := Environ([]string{"SECRET_OF_*"}, nil, nil); len(got) != 1 ||
		got[0] != "SECRET_OF_THE_PARENT=x" {
		t.Errorf("%q", got)
	}
}

// TestCannotStart checks that every reason is reported in one line.
func TestCannotStart(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file("plain", "x", 0o644)
	empty := file("nothing", "", 0o755)
	noInterpreter := file("script", "#!/no/such/interpreter\n", 0o755)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		spec   Spec
		reason Reason
	}{
		{"no program", nil, Spec{}, BadSpec},
		{"empty name", nil, Spec{Argv: []string{""}}, BadSpec},
		{"NUL", nil, Spec{Argv: []string{"x", "a\x00b"}}, BadSpec},
		{"two inputs", nil, Spec{Argv: []string{plain}, Input: []byte{}, Pipe: true}, BadSpec},
		{"missing in the path", nil, Spec{Argv: []string{"no-such-program"}, Env: []string{"PATH=" + dir}},
			NotFound},
		{"no path", nil, Spec{Argv: []string{"sh"}}, NotFound},
		{"path that is not absolute", nil, Spec{Argv: []string{"plain"}, Env: []string{"PATH=.:"}, Dir: dir},
			NotFound},
		{"missing", nil, Spec{Argv: []string{filepath.Join(dir, "missing")}}, NotFound},
		{"not executable", nil, Spec{Argv: []string{plain}}, NotExecutable},
		{"not executable in the path", nil, Spec{Argv: []string{"plain"}, Env: []string{"PATH=" + dir}},
			NotExecutable},
		{"a directory", nil, Spec{Argv: []string{dir}}, NotExecutable},
		{"an empty file", nil, Spec{Argv: []string{empty}}, NotExecutable},
		{"no interpreter", nil, Spec{Argv: []string{noInterpreter}}, NotExecutable},
		{"no directory", nil, Spec{Argv: []string{"/bin/sh"}, Dir: filepath.Join(dir, "missing")}, BadDir},
		{"a file as directory", nil, Spec{Argv: []string{"/bin/sh"}, Dir: plain}, BadDir},
		{"canceled before", done, Spec{Argv: []string{"/bin/sh"}}, ContextDone},
		{"too long", nil, Spec{Argv: []string{"/bin/sh", strings.Repeat("x", 8<<20)}}, Other},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			e := Run(c.ctx, c.spec)
			if e.Class != NotStarted || e.Code != -1 || !IsStartError(e.Err, c.reason) || e.Err == nil ||
				strings.Contains(e.Err.Error(), "\n") {
				t.Errorf("%+v", e)
			}
			t.Log(e.Err)
		})
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		head, tail int
		writes     []string
		want       string
		dropped    int64
	}{
		{3, 3, nil, "", 0},
		{3, 3, []string{"abc"}, "abc", 0},
		{3, 3, []string{"abcdef"}, "abcdef", 0},
		{3, 3, []string{"ab", "cdefg"}, "abc\n… bytes left out: 1 …\nefg", 1},
		{3, 3, []string{"abcdefghij", "k"}, "abc\n… bytes left out: 5 …\nijk", 5},
		{0, 4, []string{"abcdef", "gh", "i"}, "\n… bytes left out: 5 …\nfghi", 5},
		{2, 0, []string{"abc", "d"}, "ab\n… bytes left out: 2 …\n", 2},
	} {
		tail := NewTail(c.head, c.tail)
		size := 0
		for _, w := range c.writes {
			n, err := tail.Write([]byte(w))
			if n != len(w) || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
			size += n
		}
		if tail.String() != c.want || tail.dropped() != c.dropped || tail.Size() != int64(size) {
			t.Errorf("%v: %q, %d dropped of %d; want %q", c.writes, tail, tail.dropped(), tail.Size(), c.want)
		}
	}
}

// ok reports whether the program exited with code 0.
func ok(e Exit) bool { return e.Class == Exited && e.Code == 0 }
