package server

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"go.temporal.io/server/common/log/tag"
)

// awaitFailure waits until a node fails and returns the error, which is one line.
func awaitFailure(t *testing.T, n *Node, kind error) string {
	t.Helper()
	select {
	case <-n.Failed():
	case <-testContext(t).Done():
		t.Fatal("the node did not fail")
	}
	<-n.watched // the server has stopped
	if !errors.Is(n.Err(), kind) || strings.Contains(n.Err().Error(), "\n") {
		t.Errorf("%v, want %v", n.Err(), kind)
	}
	return n.Err().Error()
}

// A host whose lock file is removed keeps the right to host and locks the file again: no other process
// starts a second server in between.
func TestLockRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := join(t, Options{Dir: dir})
	if err := os.Remove(filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	second := join(t, Options{Dir: dir})
	if first.Role() != Hosting || second.Role() != Attached {
		t.Fatalf("roles are %v and %v", first.Role(), second.Role())
	}
	await(t, "the lock file", func() bool { return holder(dir) == os.Getpid() })
	file := newLockFile(filepath.Join(dir, lockFile))
	await(t, "the lock on it", func() bool {
		ok, err := file.TryLock()
		_ = file.Close()
		return err == nil && !ok
	})
}

// Where another process got the lock, the host stops its server and attaches.
func TestLockLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := join(t, Options{Dir: dir})
	path := filepath.Join(dir, lockFile)
	other := newLockFile(path + ".other")
	if ok, err := other.TryLock(); !ok {
		t.Fatal(err)
	}
	if err := os.Rename(path+".other", path); err != nil {
		t.Fatal(err)
	}
	awaitRole(t, n, Attached)
	if _, ok := Lookup(dir); ok {
		t.Error("the endpoint still names the host")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	awaitRole(t, n, Hosting)
}

// A host writes the files by which others find it again, with the same token.
func TestFilesRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := join(t, Options{Dir: dir})
	attached := join(t, Options{Dir: dir})
	c := dial(t, attached)
	for _, name := range []string{endpointFile, tokenFile, formatFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	n := join(t, Options{Dir: dir}) // waits for them
	if n.Role() != Attached || n.token != host.token {
		t.Errorf("role %v, same token: %v", n.Role(), n.token == host.token)
	}
	await(t, formatFile, func() bool {
		f, err := readFormat(dir)
		return err == nil && f.Format == formatVersion
	})
	start(t, c, "reachable")
	start(t, dial(t, n), "also")
}

func TestDirMoved(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(dir string) error{
		"moved":   func(dir string) error { return os.Rename(dir, dir+"-2") },
		"deleted": os.RemoveAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "d")
			host := join(t, Options{Dir: dir})
			attached := join(t, Options{Dir: dir})
			if err := lose(dir); err != nil {
				t.Fatal(err)
			}
			for _, n := range []*Node{host, attached} {
				if text := awaitFailure(t, n, ErrMoved); !strings.Contains(text, dir) {
					t.Errorf("%q", text)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, databaseFile)); err == nil {
				t.Error("a new database was created")
			}
		})
	}
}

func TestDatabaseReplaced(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	n, replaced := join(t, Options{Dir: dir}), join(t, Options{Dir: other})
	if err := os.Rename(filepath.Join(dir, databaseFile), filepath.Join(dir, "moved.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "other.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(other, "other.db"), filepath.Join(other, databaseFile)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*Node{n, replaced} {
		if text := awaitFailure(t, n, ErrMoved); !strings.Contains(text, databaseFile) {
			t.Errorf("%q", text)
		}
	}
	refused(t, Options{Dir: dir}, ErrDatabase, databaseFile, "missing", "restore it", portFile)
}

// A fatal line ends one goroutine of the server. The host then ends as a whole and frees the directory.
func TestServerBreaks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := join(t, Options{Dir: dir})
	logger := n.ownHost().log
	go logger.Fatal("shard lost", tag.Error(errors.New("no lease")))
	if text := awaitFailure(t, n, ErrBroken); !strings.Contains(text, "shard lost: no lease") {
		t.Errorf("%q", text)
	}
	if next := join(t, Options{Dir: dir}); next.Role() != Hosting {
		t.Errorf("role is %v", next.Role())
	}
}

func TestDamageReported(t *testing.T) {
	t.Parallel()
	n := join(t, Options{Dir: t.TempDir()})
	for _, suffix := range []string{"-wal", ""} {
		path := filepath.Join(n.Dir(), databaseFile+suffix)
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, bytes.Repeat([]byte{0xee}, len(data)), 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // SQLite may remove the log
			t.Fatal(err)
		}
	}
	n.ownHost().log.Error("read failed", tag.Error(errors.New("database disk image is malformed (11)")))
	if text := awaitFailure(t, n, ErrDatabase); !strings.Contains(text, "restore it from a backup") {
		t.Errorf("%q", text)
	}
}

// A server that does not stop keeps the lock.
func TestLockKeptWhileServerRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := join(t, Options{Dir: dir})
	h := n.ownHost()
	stopped := make(chan struct{})
	real := h.server
	h.server = &stuckServer{stopped}
	t.Cleanup(func() { _ = real.Stop() })
	n.opts.stopTimeout = 10 * time.Millisecond
	h.log.report("stuck")
	awaitFailure(t, n, ErrBroken)
	if ok, err := newHostLock(dir).tryLock(); ok || err != nil {
		t.Errorf("locked while the server runs: %v, %v", ok, err)
	}
	close(stopped)
}

type stuckServer struct{ stopped chan struct{} }

func (s *stuckServer) Start() error { return nil }
func (s *stuckServer) Stop() error  { <-s.stopped; return nil }

// A process that has the port of a dead host does not receive the token.
func TestImpostor(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	impostor := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(impostor, health.NewServer())
	go func() { _ = impostor.Serve(l) }()
	t.Cleanup(impostor.Stop)
	e := newEndpoint(l.Addr().(*net.TCPAddr).Port, testVersion)
	if err := verifyHost(testContext(t), e, strings.Repeat("0", 64)); !errors.Is(err, errNotHost) {
		t.Errorf("%v", err)
	}
	host := join(t, Options{Dir: t.TempDir()})
	if err := verifyHost(testContext(t), host.Endpoint(), host.token); err != nil {
		t.Errorf("the host: %v", err)
	}
	other := host.Endpoint()
	other.PID++
	if err := verifyHost(testContext(t), other, host.token); !errors.Is(err, errNotHost) {
		t.Errorf("another process: %v", err)
	}
}

func TestForeignDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644),
		os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	refused(t, Options{Dir: dir}, ErrDataDir, dir, "nothing was changed", "--data-dir")
	info, err := os.Stat(dir)
	entries, _ := os.ReadDir(dir)
	if err != nil || info.Mode().Perm() != 0o755 || len(entries) != 1 {
		t.Errorf("mode %v, entries %v, %v", info.Mode(), entries, err)
	}
}

func TestDirOfOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Skip(err)
	}
	refused(t, Options{Dir: dir}, ErrDataDir, dir, "12345", "nothing was changed")
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("the directory has %v", entries)
	}
}

// Directories without format.json that acescope made open: those that an earlier version used with a
// cluster only, and those whose format.json was deleted.
func TestDirWithoutFormat(t *testing.T) {
	t.Parallel()
	old := t.TempDir()
	for _, name := range []string{"artifacts", "playbooks"} {
		if err := os.Mkdir(filepath.Join(old, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenDir(old, testVersion); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	n := join(t, Options{Dir: dir})
	start(t, dial(t, n), "kept")
	leave(t, n)
	if err := os.Remove(filepath.Join(dir, formatFile)); err != nil {
		t.Fatal(err)
	}
	c := dial(t, join(t, Options{Dir: dir}))
	work(t, c)
	finish(t, c, "kept")
}
