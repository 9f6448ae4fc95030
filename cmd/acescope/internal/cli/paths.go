package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/store/durable"
	"acescope/engine/temporal/server"
	"acescope/sources/traces"
)

// Paths are the files and directories of acescope.
type Paths struct {
	Config string `json:"config" jsonschema:"configuration file"`
	Themes string `json:"themes" jsonschema:"directory of themes"`
	State  string `json:"state" jsonschema:"state of the console"`
	Data   string `json:"data" jsonschema:"data directory"`
	Logs   string `json:"logs" jsonschema:"directory of logs"`
}

// xdg returns the directory of acescope below $env, or below the given directory of the home directory.
func xdg(env string, usual ...string) (string, error) {
	if base := os.Getenv(env); filepath.IsAbs(base) {
		return filepath.Join(base, "acescope"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", UsageError("no home directory: %v; set --data-dir, $XDG_CONFIG_HOME and $XDG_STATE_HOME",
			err)
	}
	return filepath.Join(home, filepath.Join(usual...), "acescope"), nil
}

// ConfigDir returns the directory of the configuration file, the themes and the saved filters.
func ConfigDir() (string, error) { return xdg("XDG_CONFIG_HOME", ".config") }

// StatePath returns the file in which the console keeps its state.
func StatePath() (string, error) {
	dir, err := xdg("XDG_STATE_HOME", ".local", "state")
	return filepath.Join(dir, "state.json"), err
}

// TraceCache returns the file that keeps what the agents of closed runs did.
func TraceCache() (string, error) {
	state, err := StatePath()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(state), "traces.cache"), nil
}

// Traces returns a reader of what agents did in runs of an engine, with the cache of this user. Without a state
// directory, nothing is kept.
func Traces(e *engine.Engine) *traces.Reader {
	path, _ := TraceCache()
	return traces.NewReader(traces.New(path, BuildVersion()), e.Client, e.Namespace())
}

// userKey returns the user's key for data directories.
func userKey() ([]byte, error) {
	dir, err := xdg("XDG_STATE_HOME", ".local", "state")
	if err != nil {
		return nil, err
	}
	return server.UserKey(filepath.Join(dir, "trust.key"))
}

// MayExecute returns why this process must not execute the runs of the data directory: read-only mode, or the
// user has not confirmed the directory. On a terminal it asks first.
func (a *App) MayExecute(ctx context.Context, dir string) error {
	if a.Settings.ReadOnly {
		return engine.ErrReadOnly
	}
	err := server.CheckTrust(dir, userKey)
	if err == nil || a.Settings.TrustDataDir {
		return nil
	}
	if a.JSON || !IsTerminal(os.Stdin) {
		return err
	}
	return a.Ask(ctx, false, err.Error(), "trust it and execute its open runs")
}

// DataDir returns the effective data directory.
func (a *App) DataDir() (string, error) {
	if rest, ok := strings.CutPrefix(a.Settings.DataDir, "~/"); ok &&
		a.Settings.Sources["data_dir"].level == fromFile {
		home, err := os.UserHomeDir()
		return filepath.Join(home, rest), err
	}
	if a.Settings.DataDir != "" {
		return filepath.Abs(a.Settings.DataDir)
	}
	return xdg("XDG_DATA_HOME", ".local", "share")
}

// OpenDataDir creates the data directory if it is missing, and returns it.
func (a *App) OpenDataDir() (string, error) {
	if a.Settings.ReadOnly {
		return "", engine.ErrReadOnly
	}
	dir, err := a.DataDir()
	if err != nil {
		return "", err
	}
	return server.OpenDir(dir, BuildVersion())
}

func (a *App) Paths() (Paths, error) {
	config, err := ConfigDir()
	if err != nil {
		return Paths{}, err
	}
	state, err := StatePath()
	if err != nil {
		return Paths{}, err
	}
	data, err := a.DataDir()
	return Paths{
		Config: filepath.Join(config, "config.toml"), Themes: filepath.Join(config, "themes"), State: state,
		Data: data, Logs: filepath.Join(data, "logs"),
	}, err
}

// Home returns path with a leading ~/ replaced by the home directory.
func Home(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(dir, rest)
}

// OpenFile opens a file, or standard input for "-". Opening or reading a pipe or a device, which may never
// have data, ends with the context.
func OpenFile(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == "-" {
		return interruptible(ctx, func() (io.ReadCloser, error) { return os.Stdin, nil }), nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, FileError(err)
	}
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	switch {
	case info.IsDir():
		return nil, UsageError("%s: is a directory", path)
	case info.Mode().IsRegular():
		return open()
	}
	return interruptible(ctx, open), nil
}

func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// InputName names the input of [OpenFile] in messages.
func InputName(path string) string {
	if path == "-" {
		return "stdin"
	}
	return path
}

// interruptible returns a reader of a file whose reads end with the context. Its goroutine can then stay in a
// call of the operating system until the process exits.
func interruptible(ctx context.Context, open func() (io.ReadCloser, error)) io.ReadCloser {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ErrInterrupted) })
	go func() {
		file, err := open()
		if err == nil {
			defer file.Close()
			_, err = io.Copy(w, file)
		}
		w.CloseWithError(err)
	}()
	return r
}

// ReadFile reads at most limit bytes of a file, or of standard input for "-". A longer file is a usage error.
func ReadFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	in, err := OpenFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = UsageError("%s: longer than %s", InputName(path), ace.Count(limit, "byte"))
	}
	return data, err
}

// FileError gives the error about a missing file its exit code.
func FileError(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &ExitError{ExitNotFound, err}
	}
	return err
}

// ReplaceFile writes a file that only its owner can read, atomically: a reader finds either the old or the
// new data.
func ReplaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(path, filepath.Dir(path), data, true)
}

// UpdateFile replaces a file of the user like [ReplaceFile]. It follows symbolic links and keeps the
// permissions of an existing file. Devices and pipes are written, not replaced.
func UpdateFile(path string, data []byte) error {
	if path == "-" {
		return UsageError("name a file; - is not standard output here")
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, data, 0)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	info, statErr := os.Stat(path)
	if err := ReplaceFile(path, data); err != nil || statErr != nil {
		return err
	}
	return os.Chmod(path, info.Mode().Perm())
}
