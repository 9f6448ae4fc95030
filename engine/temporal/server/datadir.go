package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"go.temporal.io/server/common/headers"
	sqliteschema "go.temporal.io/server/schema/sqlite"

	"acescope/engine/ace"
	"acescope/engine/internal/durable"
)

// Names of the files in the data directory.
const (
	lockFile     = "host.lock"
	endpointFile = "endpoint.json"
	formatFile   = "format.json"
	tokenFile    = "token"
	portFile     = "port"
	databaseFile = "temporal.db"
	logDir       = "logs"
	logFile      = "server.log"
)

// openDir creates the data directory or checks an existing one. It rejects a directory of
// another format version before it changes anything.
func openDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if dir == "" || err != nil {
		return "", failf(ErrDataDir, err, "no data directory given: name one with --data-dir")
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(abs, 0o700); err != nil {
			return "", dirError(abs, err)
		}
	case err != nil:
		return "", dirError(abs, err)
	case !info.IsDir():
		return "", dirError(abs, syscall.ENOTDIR)
	default:
		if _, err := readFormat(abs); err != nil {
			return "", err
		}
		if info.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(abs, 0o700); err != nil {
				return "", dirError(abs, err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(abs, logDir), 0o700); err != nil {
		return "", dirError(abs, err)
	}
	return abs, nil
}

func dirError(dir string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok && p.Path == dir {
		err = p.Err
	}
	return failf(ErrDataDir, err, "data directory %s: %v; fix that or choose another with --data-dir", dir, err)
}

func writeFile(dir, name string, data []byte) error {
	if err := durable.WriteFile(filepath.Join(dir, name), dir, data, true); err != nil {
		return dirError(dir, err)
	}
	return nil
}

func writeJSON(dir, name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(dir, name, append(data, '\n'))
}

// Errors that the user can fix. An error from [Join] for one of these reasons wraps it and is
// one line.
var (
	// ErrDataDir means that the data directory cannot be used: it is a file, cannot
	// be written, is full, cannot be locked, or is open to other users.
	ErrDataDir = errors.New("data directory unusable")
	// ErrPortTaken means that another program uses [Options.Port].
	ErrPortTaken = errors.New("port taken")
	// ErrVersion means that an incompatible version wrote or hosts the data.
	ErrVersion = errors.New("other version")
	// ErrNoAnswer means that another process hosts, but its server did not answer in time.
	ErrNoAnswer = errors.New("host does not answer")
	// ErrStart means that the Temporal server failed to start. The message names the log.
	ErrStart = errors.New("server failed to start")
)

// problem is an error with a complete message that matches its kind and cause.
type problem struct {
	kind  error
	text  string
	cause error
}

func (p *problem) Error() string { return p.text }

func (p *problem) Unwrap() []error {
	if p.cause == nil {
		return []error{p.kind}
	}
	return []error{p.kind, p.cause}
}

// failf returns a problem. The cause may be nil and is not added to the message.
func failf(kind, cause error, format string, args ...any) error {
	return &problem{kind: kind, text: fmt.Sprintf(format, args...), cause: cause}
}

// newHostLock returns the lock that is the exclusive right to run a server on a data directory.
// The operating system releases it when the process ends.
func newHostLock(dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
}

// formatVersion is the version of the data directory's layout: its files, the namespace and
// its search attributes.
const formatVersion = 1

type dirFormat struct {
	Format     int    `json:"format"`
	Schema     string `json:"schema"`            // of Temporal's SQLite tables
	Visibility string `json:"visibility_schema"` // of its visibility tables
	Temporal   string `json:"temporal"`          // last server version
	Acescope   string `json:"acescope"`          // last acescope version
}

func currentFormat(acescope string) dirFormat {
	return dirFormat{
		Format:     formatVersion,
		Schema:     sqliteschema.Version,
		Visibility: sqliteschema.VisibilityVersion,
		Temporal:   headers.ServerVersion,
		Acescope:   acescope,
	}
}

// readFormat reads format.json and rejects formats that this version cannot open. It returns
// the zero value for a new directory, and an error for a database without format.json.
func readFormat(dir string) (dirFormat, error) {
	var f dirFormat
	data, err := os.ReadFile(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, databaseFile)); err == nil {
			return f, failf(ErrVersion, nil,
				"data directory %s: holds %s but no %s, so acescope did not write it; nothing was changed, choose another with --data-dir",
				dir, databaseFile, formatFile)
		}
		return f, nil
	}
	if err != nil {
		return f, dirError(dir, err)
	}
	if err := json.Unmarshal(data, &f); err != nil || f.Format == 0 {
		return f, failf(ErrVersion, err,
			"data directory %s: %s is not readable, so its version is unknown; nothing was changed, restore the file or choose another directory with --data-dir",
			dir, formatFile)
	}
	return f, f.check(dir)
}

func (f dirFormat) check(dir string) error {
	ours := currentFormat("")
	if f.Format == ours.Format && f.Schema == ours.Schema && f.Visibility == ours.Visibility {
		return nil
	}
	return failf(ErrVersion, nil,
		"data directory %s: written by acescope %s (%s), this version reads %s; nothing was changed, use that version or another --data-dir",
		dir, f.Acescope, f.form(), ours.form())
}

func (f dirFormat) form() string {
	return fmt.Sprintf("format %d, schema %s/%s", f.Format, f.Schema, f.Visibility)
}

// stamp writes format.json unless it is up to date. It is called before the database is
// created, so that no database exists without it.
func stamp(dir, acescope string) error {
	have, err := readFormat(dir)
	if err != nil {
		return err
	}
	want := currentFormat(acescope)
	if have == want {
		return nil
	}
	return writeJSON(dir, formatFile, want)
}

// Endpoint is the content of endpoint.json: the address of the server and its host.
type Endpoint struct {
	Address   string    `json:"address"` // host:port of the frontend, on loopback
	Namespace string    `json:"namespace"`
	PID       int       `json:"pid"`
	Started   time.Time `json:"started_at"`
	Version   string    `json:"version"` // acescope version of the host
	Format    int       `json:"format"`  // format version of the data directory
}

// Port returns the port of Address, or 0.
func (e Endpoint) Port() int {
	_, port, err := net.SplitHostPort(e.Address)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(port)
	return n
}

func newEndpoint(port int, version string) Endpoint {
	return Endpoint{
		Address:   loopback(port),
		Namespace: ace.DefaultNamespace,
		PID:       os.Getpid(),
		Started:   time.Now().UTC().Truncate(time.Millisecond),
		Version:   version,
		Format:    formatVersion,
	}
}

// Lookup returns the endpoint of the process that hosts a data directory, from endpoint.json. It
// returns false if the file is missing or damaged, or if it does not name a live process of this
// user: then another program may use the port, which must not receive the token.
func Lookup(dir string) (Endpoint, bool) {
	var e Endpoint
	data, err := os.ReadFile(filepath.Join(dir, endpointFile))
	if err != nil || json.Unmarshal(data, &e) != nil {
		return Endpoint{}, false
	}
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil || !net.ParseIP(host).IsLoopback() || !ownProcess(e.PID) {
		return Endpoint{}, false
	}
	return e, true
}

// remove deletes endpoint.json unless another host has replaced it.
func (e Endpoint) remove(dir string) {
	if have, ok := Lookup(dir); ok && have == e {
		os.Remove(filepath.Join(dir, endpointFile))
	}
}

func readPort(dir string) int {
	data, err := os.ReadFile(filepath.Join(dir, portFile))
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || port < 1 || port > 65535 {
		return 0
	}
	return port
}

// keepPort stores the port for the next host, so that known addresses stay valid.
func keepPort(dir string, port int) error {
	if readPort(dir) == port {
		return nil
	}
	return writeFile(dir, portFile, []byte(strconv.Itoa(port)+"\n"))
}
