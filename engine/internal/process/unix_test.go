//go:build unix

package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func ignore() { signal.Ignore(syscall.SIGTERM) }

// detach puts a child into a group or a session of its own.
func detach(cmd *exec.Cmd, how string) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: strings.Contains(how, "group"),
		Setsid: strings.Contains(how, "session")}
}

// lines is an output in which tests wait for a text.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	word chan struct{}
}

func newLines() *lines { return &lines{word: make(chan struct{}, 1)} }

func (s *lines) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	select {
	case s.word <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (s *lines) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the text is there.
func (s *lines) await(t *testing.T, text string) {
	t.Helper()
	over := time.After(time.Minute)
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.word:
		case <-over:
			t.Fatalf("no %q in %q", text, s.String())
		}
	}
}

// child returns the process id that the program printed.
func (s *lines) child(t *testing.T) int {
	t.Helper()
	s.await(t, "child ")
	var pid int
	if _, err := fmt.Sscanf(s.String()[strings.Index(s.String(), "child "):], "child %d", &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// gone waits until a process has ended or is a zombie.
func gone(t *testing.T, pid int) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if runtime.GOOS == "linux" && (err != nil || strings.Contains(string(stat), ") Z ")) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("process %d still exists: %s", pid, stat)
		}
	}
}

func start(t *testing.T, ctx context.Context, spec Spec, argv ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec.Argv = append([]string{self}, argv...)
	p, err := Start(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(); p.Wait() })
	return p
}

// TestCancel checks that the end of the context ends the group, including children and programs
// that ignore SIGTERM.
func TestCancel(t *testing.T) {
	for _, c := range []struct {
		argv   []string
		forced bool
	}{
		{[]string{"p-sleep"}, false},
		{[]string{"p-ignore"}, true},
		{[]string{"p-parent", "wait", "p-sleep"}, false},
		{[]string{"p-parent", "wait", "p-ignore"}, false},
	} {
		t.Run(strings.Join(c.argv, " "), func(t *testing.T) {
			t.Parallel()
			out := newLines()
			ctx, cancel := context.WithCancel(t.Context())
			p := start(t, ctx, Spec{Stdout: out, Grace: 200 * time.Millisecond}, c.argv...)
			out.await(t, "up")
			child := p.Pid()
			if c.argv[0] == "p-parent" {
				child = out.child(t)
			}
			cancel()
			e := p.Wait()
			if e.Class != Canceled || e.Forced != c.forced || e.Code != -1 || e.Cut {
				t.Errorf("%+v", e)
			}
			gone(t, child)
		})
	}
}

// TestStopAndTimeout checks the class of the exit.
func TestStopAndTimeout(t *testing.T) {
	out := newLines()
	p := start(t, t.Context(), Spec{Stdout: out}, "p-sleep")
	out.await(t, "up")
	p.Stop()
	p.Stop()
	if e := p.Wait(); e.Class != Killed || e.Signal != "terminated" || ok(e) {
		t.Errorf("%+v", e)
	}
	p = start(t, t.Context(), Spec{Timeout: 10 * time.Millisecond}, "p-sleep")
	if e := p.Wait(); e.Class != TimedOut {
		t.Errorf("%+v", e)
	}
	out = newLines()
	p = start(t, t.Context(), Spec{Stdout: out}, "p-sleep")
	out.await(t, "up")
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := p.Wait(); e.Class != Signaled || e.Signal != "killed" || e.Code != -1 {
		t.Errorf("%+v", e)
	}
}

// TestOrphans checks that children that outlive the program are ended, and that children outside of
// the group do not block it.
func TestOrphans(t *testing.T) {
	for _, how := range []string{"same", "group", "session"} {
		for _, what := range []string{"p-sleep", "p-ignore", "p-endless"} {
			t.Run(how+" "+what, func(t *testing.T) {
				t.Parallel()
				out := newLines()
				spec := Spec{Stdout: out, Grace: 200 * time.Millisecond, Drain: 200 * time.Millisecond}
				if what == "p-endless" {
					spec.Stdout = NewTail(1<<10, 1<<10)
				}
				p := start(t, t.Context(), spec, "p-parent", how, what)
				e := p.Wait()
				if e.Class != Exited || e.Code != 0 || e.Cut != (how != "same") {
					t.Errorf("%+v", e)
				}
				if what == "p-endless" {
					return // it ends when its output is closed
				}
				child := out.child(t)
				if how != "same" {
					if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
						t.Errorf("the child that left the group: %v", err)
					}
				}
				gone(t, child)
			})
		}
	}
}

// TestEndless checks that endless output is bounded and can be stopped.
func TestEndless(t *testing.T) {
	tail := NewTail(100, 200)
	ctx, cancel := context.WithCancel(t.Context())
	p := start(t, ctx, Spec{Stdout: tail}, "p-endless")
	for tail.Size() < 10<<20 {
		runtime.Gosched()
	}
	cancel()
	e := p.Wait()
	if e.Class != Canceled || tail.dropped() != tail.Size()-300 || len(tail.Bytes()) > 400 {
		t.Errorf("%+v, %d of %d dropped, %d kept", e, tail.dropped(), tail.Size(), len(tail.Bytes()))
	}
	if !strings.HasPrefix(tail.String(), "endless output") ||
		!strings.Contains(tail.String(), "bytes left out") {
		t.Errorf("%s", tail)
	}
}

// supervise is a worker that is killed while its program holds a lock.
func supervise(args []string) {
	file, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err == nil {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	p, err := Start(context.Background(), Spec{
		Argv: []string{os.Args[0], "p-sleep"}, Files: []*os.File{file}, DieWithParent: args[1] == "die",
		Pipe: true,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	fmt.Println("child", p.Pid())
	time.Sleep(time.Hour)
}

// TestWorkerKilled checks that an inherited lock lasts until the program and its parent are gone,
// and that the program can die with its parent.
func TestWorkerKilled(t *testing.T) {
	for _, how := range []string{"die", "stay"} {
		if how == "die" && runtime.GOOS != "linux" {
			continue
		}
		t.Run(how, func(t *testing.T) {
			path := t.TempDir() + "/lock"
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			out := newLines()
			p := start(t, t.Context(), Spec{Stdout: out, Stderr: out}, "p-supervisor", path, how)
			child := out.child(t)
			lock := func() error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
			if lock() == nil {
				t.Fatal("the lock was free")
			}
			if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			p.Wait()
			if how == "stay" {
				if lock() == nil {
					t.Error("the lock was free while the program lived")
				}
				if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			gone(t, child)
			// The leader of a program can be gone before its last thread, which holds its files.
			err = lock()
			for until := time.Now().Add(10 * time.Second); err != nil &&
				time.Now().Before(until); err = lock() {
				time.Sleep(time.Millisecond)
			}
			if err != nil {
				t.Errorf("the lock is not free although no process holds it: %v", err)
			}
		})
	}
}
