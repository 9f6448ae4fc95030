package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"acescope/cmd/acescope/conffile"
	"acescope/cmd/acescope/internal/cli"
	"acescope/tui"
)

// Bounds of the state file: its bytes, and the number of sources. The least recently used sources are
// dropped.
const (
	maxState   = 4 << 20
	maxSources = 32
)

// stateVersion is the version of the state file. A file of another version is moved aside.
const stateVersion = 1

// stateFile holds the state of consoles, by source.
type stateFile struct {
	Version int                    `json:"version"`
	Sources map[string]*savedState `json:"sources"`
}

type savedState struct {
	Used time.Time `json:"used"`
	tui.State
}

// sourceState reads and writes the state of one source.
type sourceState struct {
	path, source string

	mu    sync.Mutex
	ended bool // the last state is written; later calls of save are outdated
}

// load returns the state of the last console. An unusable file is moved aside, and the warning says where to.
func (k *sourceState) load() (state tui.State, warning string) {
	f, err := readState(k.path)
	if err != nil {
		return state, fmt.Sprintf("%s: %v; %s", k.path, err, moveAside(k.path))
	}
	if kept := f.Sources[k.source]; kept != nil {
		state = kept.State
	}
	return state, ""
}

func readState(path string) (stateFile, error) {
	f := stateFile{Version: stateVersion}
	data, err := conffile.ReadFile(path, maxState)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Version != stateVersion {
		err = fmt.Errorf("version %d; this program reads version %d", f.Version, stateVersion)
	}
	return f, err
}

// moveAside renames a damaged file, replacing an earlier one, and describes what it did.
func moveAside(path string) string {
	to := path + ".damaged"
	if err := os.Rename(path, to); err != nil {
		return "it could not be moved aside: " + err.Error()
	}
	return "moved to " + filepath.Base(to) + "; starting with an empty state"
}

func (k *sourceState) save(s tui.State) error { return k.write(s, false) }

// end writes the final state of the source; later calls of save do nothing.
func (k *sourceState) end(s tui.State) error { return k.write(s, true) }

func (k *sourceState) write(s tui.State, last bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return nil
	}
	k.ended = last
	f, err := readState(k.path)
	if err != nil {
		f = stateFile{Version: stateVersion}
	}
	if f.Sources == nil {
		f.Sources = map[string]*savedState{}
	}
	f.Sources[k.source] = &savedState{time.Now().UTC(), s}
	f.dropOldest()
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return cli.ReplaceFile(k.path, data)
}

// dropOldest drops the least recently used sources, and null values of a file that was edited by hand.
func (f *stateFile) dropOldest() {
	maps.DeleteFunc(f.Sources, func(_ string, s *savedState) bool { return s == nil })
	names := slices.SortedFunc(maps.Keys(f.Sources), func(a, b string) int {
		return f.Sources[b].Used.Compare(f.Sources[a].Used)
	})
	for _, n := range names[min(maxSources, len(names)):] {
		delete(f.Sources, n)
	}
}
