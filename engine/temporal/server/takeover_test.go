package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestTakeoverAfterClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := join(t, Options{Dir: dir})
	second := join(t, Options{Dir: dir})
	if first.Role() != Hosting || second.Role() != Attached {
		t.Fatalf("roles are %v and %v", first.Role(), second.Role())
	}
	if first.Endpoint() != second.Endpoint() {
		t.Errorf("endpoints differ: %+v, %+v", first.Endpoint(), second.Endpoint())
	}
	c := dial(t, second)
	start(t, c, "before")

	leave(t, first)
	awaitRole(t, second, Hosting)
	if was, is := first.Endpoint().Port(), second.Endpoint().Port(); was != is {
		t.Errorf("the port was %d and is %d", was, is)
	}
	work(t, c)
	start(t, c, "after")
	finish(t, c, "before")
	finish(t, c, "after")
}

func TestTakeoverAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := startChild(t, dir)
	if got := host.line(t); got != "hosting" {
		t.Fatalf("the child says %q", got)
	}
	n := join(t, Options{Dir: dir})
	if n.Role() != Attached || n.Endpoint().PID != host.cmd.Process.Pid {
		t.Fatalf("role %v, endpoint %+v", n.Role(), n.Endpoint())
	}
	c := dial(t, n)
	work(t, c)
	start(t, c, "killed")

	killed := time.Now()
	if err := host.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	host.cmd.Wait()
	awaitRole(t, n, Hosting)
	t.Logf("took over %v after the kill", time.Since(killed).Round(time.Millisecond))
	finish(t, c, "killed")
	t.Logf("finished the run %v after the kill", time.Since(killed).Round(time.Millisecond))
}

func TestBriefWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := join(t, Options{Dir: dir})
	brief := join(t, Options{Dir: dir, Brief: true})
	lasting := join(t, Options{Dir: dir})
	leave(t, host)
	awaitRole(t, lasting, Hosting)
	if brief.Role() != Attached {
		t.Errorf("role is %v", brief.Role())
	}
	await(t, "the new endpoint", func() bool { return brief.Endpoint() == lasting.Endpoint() })
}

func TestJoinAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodes := make([]*Node, 4)
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() { nodes[i], errs[i] = Join(testContext(t), Options{Dir: dir, Version: testVersion}) })
	}
	wg.Wait()
	hosts := 0
	for i, n := range nodes {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if n.Role() == Hosting {
			hosts++
		}
		if n.Endpoint() != nodes[0].Endpoint() {
			t.Errorf("endpoints differ: %+v, %+v", n.Endpoint(), nodes[0].Endpoint())
		}
	}
	if hosts != 1 {
		t.Errorf("%d nodes host", hosts)
	}
	for _, n := range nodes { // the attached ones first, lest they take over
		if n.Role() == Attached {
			leave(t, n)
		}
	}
	for _, n := range nodes {
		leave(t, n)
	}
	if _, ok := Lookup(dir); ok {
		t.Error("the endpoint file was not removed")
	}
}

type childProcess struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startChild(t *testing.T, dir string) *childProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var noise strings.Builder
	cmd.Stderr = &noise
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		cmd.Wait()
		if noise.Len() > 0 {
			t.Errorf("the child wrote to stderr: %s", noise.String())
		}
	})
	return &childProcess{cmd: cmd, lines: bufio.NewScanner(out)}
}

func (c *childProcess) line(t *testing.T) string {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatalf("no output from the child: %v", c.lines.Err())
	}
	return c.lines.Text()
}

// A process that connects while the host dies takes over and connects to its own server.
func TestHostDiesMeanwhile(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"before the call": true, "during the call": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			host := startChild(t, dir)
			if got := host.line(t); got != "hosting" {
				t.Fatalf("the child says %q", got)
			}
			n := join(t, Options{Dir: dir})
			die := sync.OnceFunc(func() {
				if err := host.cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
				_ = host.cmd.Wait()
			})
			o := n.ClientOptions()
			o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions,
				grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any,
					cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					err := call(ctx, method, req, reply, cc, opts...)
					if strings.HasSuffix(method, "/GetSystemInfo") && n.Role() == Attached && err == nil {
						die()
						err = status.Error(codes.Unavailable, "error reading from server: EOF")
					}
					return err
				}))
			if before {
				die()
			}
			c, err := n.Dial(testContext(t), o)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			work(t, c)
			start(t, c, "later")
			finish(t, c, "later")
		})
	}
}

// A host that accepts a connection and ends before it answers is no reason to fail.
func TestHostEndsUnanswered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := OpenDir(dir, testVersion); err != nil {
		t.Fatal(err)
	}
	lock := newHostLock(dir)
	if ok, err := lock.tryLock(); !ok {
		t.Fatal(err)
	}
	if _, err := hostToken(dir, ""); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := newEndpoint(l.Addr().(*net.TCPAddr).Port, testVersion)
	if err := writeJSON(dir, endpointFile, e); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		e.remove(dir)
		lock.unlock()
		_, _ = io.Copy(io.Discard, conn) // until the caller gives up
		_ = conn.Close()
	}()
	n := join(t, Options{Dir: dir})
	if n.Role() != Hosting {
		t.Errorf("role is %v", n.Role())
	}
	_ = l.Close()
	<-ended
}
