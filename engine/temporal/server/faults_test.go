package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/server/common/log/tag"
	"go.temporal.io/server/common/primitives"
)

// refused checks that joining fails with one line of the kind and with the words.
func refused(t *testing.T, opts Options, kind error, words ...string) {
	t.Helper()
	opts.Version = testVersion
	n, err := Join(testContext(t), opts)
	if err == nil {
		leave(t, n)
		t.Fatalf("joined, want %v", kind)
	}
	if !errors.Is(err, kind) {
		t.Errorf("error is %v, want %v", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q lacks %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error has several lines: %q", err)
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	refused(t, Options{Dir: dir, Port: port}, ErrPortTaken, "in use", "--port")

	// As a preference, a taken port is no obstacle; the lock was given back.
	if err := errors.Join(createDatabase(dir, sqlConfig(dir), nil), keepPort(dir, port)); err != nil {
		t.Fatal(err)
	}
	n := join(t, Options{Dir: dir})
	if n.Role() != Hosting || n.Endpoint().Port() == port {
		t.Errorf("role %v on %s", n.Role(), n.Endpoint().Address)
	}
}

// A port that is lost between the choice and the start fails the start without ending the
// process or the goroutine.
func TestPortLost(t *testing.T) {
	dir := t.TempDir()
	if err := createDatabase(dir, sqlConfig(dir), nil); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := choosePorts(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	p[primitives.HistoryService] = l.Addr().(*net.TCPAddr).Port
	_, err = startOn(testContext(t), dir, "token", sqlConfig(dir), p, Options{}.withDefaults())
	if !errors.Is(err, errPortLost) || !errors.Is(err, ErrStart) {
		t.Errorf("error is %v", err)
	}
}

func TestDirIsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, Options{Dir: file}, ErrDataDir, file, "not a directory")
	refused(t, Options{Dir: filepath.Join(file, "below")}, ErrDataDir, "not a directory")
	refused(t, Options{}, ErrDataDir, "--data-dir")
}

func TestDirErrors(t *testing.T) {
	for err, word := range map[error]string{
		syscall.EROFS: "read-only", syscall.ENOSPC: "no space", syscall.EACCES: "permission",
		syscall.ENOLCK: "locks",
	} {
		got := dirError("/d", &os.PathError{Op: "open", Path: "/d/x", Err: err})
		if !errors.Is(got, ErrDataDir) || !strings.Contains(got.Error(), word) {
			t.Errorf("%v reads %q", err, got)
		}
	}
}

func TestReadOnlyDir(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ro"), 0o500); err != nil {
		t.Fatal(err)
	}
	refused(t, Options{Dir: filepath.Join(dir, "ro")}, ErrDataDir, "permission")
}

func TestDatabaseDamaged(t *testing.T) {
	dir := t.TempDir()
	if err := stamp(dir, "test"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, databaseFile)
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, Options{Dir: dir}, ErrDatabase, databaseFile, "not a database", "restore it")
}

func TestOtherVersion(t *testing.T) {
	tests := map[string]map[string]string{
		"newer format": {formatFile: `{"format":99,"schema":"0.11","visibility_schema":"0.1","acescope":"9.0"}`},
		"newer schema": {formatFile: `{"format":1,"schema":"0.99","visibility_schema":"0.1","acescope":"9.0"}`},
		"older schema": {formatFile: `{"format":1,"schema":"0.2","visibility_schema":"0.1","acescope":"0.0.1"}`},
		"damaged":      {formatFile: `{"format":`},
		"foreign":      {},
	}
	for name, files := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files[databaseFile] = "precious"
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			refused(t, Options{Dir: dir}, ErrVersion, "nothing was changed")
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != len(files) {
				t.Errorf("the directory has %v, %v", entries, err)
			}
			for file, text := range files {
				if got, _ := os.ReadFile(filepath.Join(dir, file)); string(got) != text {
					t.Errorf("%s became %q", file, got)
				}
			}
		})
	}
}

func TestHostDoesNotAnswer(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenDir(dir, testVersion); err != nil {
		t.Fatal(err)
	}
	lock := newHostLock(dir)
	if ok, err := lock.tryLock(); !ok {
		t.Fatal(err)
	}
	defer lock.unlock()
	if _, err := lock.claim(); err != nil {
		t.Fatal(err)
	}
	refused(t, Options{Dir: dir, StartTimeout: 50 * time.Millisecond}, ErrNoAnswer, dir,
		fmt.Sprintf("process %d", os.Getpid()))

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Join(ctx, Options{Dir: dir, Version: testVersion}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestStaleEndpoint(t *testing.T) {
	dir := t.TempDir()
	e := newEndpoint(7233, "test")
	if err := writeJSON(dir, endpointFile, e); err != nil {
		t.Fatal(err)
	}
	if got, ok := Lookup(dir); !ok || got != e {
		t.Errorf("got %+v, %v", got, ok)
	}
	for name, change := range map[string]func(*Endpoint){
		"dead process": func(e *Endpoint) { e.PID = 1 << 30 },
		"not loopback": func(e *Endpoint) { e.Address = "192.0.2.1:7233" },
		"no address":   func(e *Endpoint) { e.Address = "" },
	} {
		bad := e
		change(&bad)
		if err := writeJSON(dir, endpointFile, bad); err != nil {
			t.Fatal(err)
		}
		if got, ok := Lookup(dir); ok {
			t.Errorf("%s: took %+v", name, got)
		}
	}
}

// failing executes statements on a database and returns the text of the error.
func failing(t *testing.T, dsn string, statements ...string) string {
	t.Helper()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			return "UpdateWorkflowExecution failed. Error: " + err.Error()
		}
	}
	t.Fatalf("no error from %s", dsn)
	return ""
}

// An error of the disk is not told as damage of the database, also if SQLite cannot tell them apart.
func TestStorageErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := createDatabase(dir, sqlConfig(dir), nil); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	path := filepath.Join(broken, databaseFile)
	failing(t, "file:"+path, "CREATE TABLE t (x)", "INSERT INTO t VALUES (zeroblob(20000))", "no statement")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(data); i++ {
		data[i] = 0xee
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	other := "file:" + filepath.Join(t.TempDir(), "other.db")
	failing(t, other, "CREATE TABLE t (x)", "no statement")
	malformed := failing(t, "file:"+path, "SELECT * FROM t")
	type test struct {
		name, dir, text string
		kind            error
		word            string
	}
	tests := []test{
		{"damaged", broken, malformed, ErrDatabase, "is damaged"},
		{"read wrongly once", dir, malformed, ErrDataDir, databaseFile + " is intact"},
		{"gone", filepath.Join(dir, "gone"), malformed, ErrDataDir, "unable to open"},
		{"read-only", dir, failing(t, other+"?mode=ro", "INSERT INTO t VALUES (1)"), ErrDataDir, "readonly"},
		{"full", dir, failing(t, other, "PRAGMA max_page_count = 2",
			"INSERT INTO t VALUES (zeroblob(20000))"),
			ErrDataDir, "full"},
	}
	if runtime.GOOS == "linux" { // an address without memory
		tests = append(tests, test{"disk error", dir,
			failing(t, "file:/proc/self/mem?mode=ro", "SELECT * FROM t"), ErrDataDir, "disk I/O error"})
	}
	for _, test := range tests {
		err := storageError(test.dir, test.text)
		if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.word) ||
			strings.Contains(err.Error(), "restore") != (test.kind == ErrDatabase) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if err := storageError(dir, "context deadline exceeded"); err != nil {
		t.Error(err)
	}
}

// A host whose disk failed says so, also if SQLite reports damage.
func TestDiskFails(t *testing.T) {
	t.Parallel()
	n := join(t, Options{Dir: t.TempDir()})
	n.ownHost().log.Error("Operation failed", tag.Error(errors.New("database disk image is malformed (11)")))
	<-n.Failed()
	if err := n.Err(); !errors.Is(err, ErrDataDir) || !strings.Contains(err.Error(), "disk failed") {
		t.Error(err)
	}
}
