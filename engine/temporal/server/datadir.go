package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"go.temporal.io/server/common/headers"
	sqliteschema "go.temporal.io/server/schema/sqlite"

	"acescope/engine/store/durable"
)

// Names of the files in the data directory.
const (
	lockFile     = "host.lock"
	stayFile     = "serve.lock"
	endpointFile = "endpoint.json"
	formatFile   = "format.json"
	tokenFile    = "token"
	trustFile    = "trust.json"
	portFile     = "port"
	databaseFile = "temporal.db"
	logDir       = "logs"
	logFile      = "server.log"
)

// OpenDir returns the absolute path of a data directory. It creates a missing directory, and accepts an
// empty one or one that acescope made. It rejects every other directory, and those of other users, before
// it changes anything. All code that writes below a data directory calls it first.
func OpenDir(dir, version string) (string, error) {
	abs, err := filepath.Abs(dir)
	if dir == "" || err != nil {
		return "", failf(ErrDataDir, err, "no data directory given: name one with --data-dir")
	}
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(abs, 0o700); err == nil {
			info, err = os.Stat(abs)
		}
	}
	if err != nil {
		return "", dirError(abs, err)
	}
	if !info.IsDir() {
		return "", dirError(abs, syscall.ENOTDIR)
	}
	if err := checkOwner(abs, info); err != nil {
		return "", err
	}
	format, err := readFormat(abs)
	if err == nil && format.Format == 0 {
		err = checkMade(abs)
	}
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(abs, 0o700); err != nil {
			return "", dirError(abs, err)
		}
	}
	if format.Format == 0 { // before any other file, as the sign that acescope made the directory
		err = writeJSON(abs, formatFile, currentFormat(cmp.Or(version, unknownVersion)))
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(abs, logDir), 0o700)
	}
	if err != nil {
		return "", dirError(abs, err)
	}
	return abs, nil
}

// checkMade rejects a directory without format.json unless it is empty or acescope made it: versions up
// to 0.1 wrote no format.json in directories that they used with a cluster only, and a user may have
// deleted the file.
func checkMade(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dirError(dir, err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), durable.TempPrefix) {
			names[e.Name()] = true
		}
	}
	switch {
	case len(names) == 0, names[formatFile], // another process has just made the directory
		names["artifacts"] && names["playbooks"] && !names[databaseFile]:
		return nil
	case names[databaseFile] && isOurDatabase(dir):
		return nil
	case names[databaseFile]:
		return failf(ErrVersion, nil,
			"data directory %s: holds %s but no %s, and acescope did not make the database; nothing was "+
				"changed, choose another with --data-dir",
			dir, databaseFile, formatFile)
	}
	return failf(ErrDataDir, nil,
		"data directory %s: holds files that acescope did not make; nothing was changed, choose an empty "+
			"or a new directory with --data-dir", dir)
}

func dirError(dir string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok && p.Path == dir {
		err = p.Err
	}
	return failf(ErrDataDir, err, "data directory %s: %v; fix that or choose another with --data-dir", dir,
		err)
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
	// ErrDataDir means that the data directory cannot be used: it is a file, holds other files,
	// belongs to another user, cannot be written, is full, or cannot be locked.
	ErrDataDir = errors.New("data directory unusable")
	// ErrPortTaken means that another program uses [Options.Port].
	ErrPortTaken = errors.New("port taken")
	// ErrVersion means that an incompatible version wrote or hosts the data.
	ErrVersion = errors.New("other version")
	// ErrNoAnswer means that another process hosts, but its server did not answer in time.
	ErrNoAnswer = errors.New("host does not answer")
	// ErrDatabase means that the database is damaged or missing.
	ErrDatabase = errors.New("database unusable")
	// ErrMoved means that the data directory was moved, deleted or unmounted while a process used it.
	ErrMoved = errors.New("data directory moved")
	// ErrBroken means that the server of this process stopped answering.
	ErrBroken = errors.New("server broken")
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
// the zero value if there is no format.json.
func readFormat(dir string) (dirFormat, error) {
	var f dirFormat
	data, err := os.ReadFile(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, dirError(dir, err)
	}
	if err := json.Unmarshal(data, &f); err != nil || f.Format == 0 {
		return f, failf(ErrVersion, err,
			"data directory %s: %s is not readable, so its version is unknown; nothing was changed, "+
				"restore or delete the file, or choose another directory with --data-dir",
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
		"data directory %s: written by acescope %s (%s), this version reads %s; nothing was changed, use "+
			"that version or another --data-dir",
		dir, f.Acescope, f.form(), ours.form())
}

func (f dirFormat) form() string {
	return fmt.Sprintf("format %d, schema %s/%s", f.Format, f.Schema, f.Visibility)
}

// stamp writes format.json unless it is up to date.
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
