package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"acescope/tui"
)

// Bounds of the state file: its bytes, and the sources that it remembers; those that
// were not used for longest go first.
const (
	maxState   = 4 << 20
	maxSources = 32
)

// stateVersion is the layout of the state file. Another one is kept aside.
const stateVersion = 1

// stateFile is what consoles leave to later ones, by source.
type stateFile struct {
	Version int                   `json:"version"`
	Sources map[string]*keptState `json:"sources"`
}

type keptState struct {
	Used time.Time `json:"used"`
	tui.State
}

// keeper reads and writes what a console leaves for one source.
type keeper struct {
	path, source string

	mu    sync.Mutex
	ended bool // what comes later is older than what was written last
}

// load is what an earlier console left. A file that cannot be used is moved aside, and
// the warning says where to.
func (k *keeper) load() (state tui.State, warning string) {
	f, err := readState(k.path)
	if err != nil {
		return state, fmt.Sprintf("%s: %v; %s", k.path, err, putAside(k.path))
	}
	if kept := f.Sources[k.source]; kept != nil {
		state = kept.State
	}
	return state, ""
}

func readState(path string) (stateFile, error) {
	f := stateFile{Version: stateVersion}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err == nil && info.Size() > maxState {
		return f, fmt.Errorf("larger than %d MB, so it is not read", maxState>>20)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Version != stateVersion {
		err = fmt.Errorf("version %d, where this program knows %d", f.Version, stateVersion)
	}
	return f, err
}

// putAside moves a damaged file away and says so. One file is kept; the one before it
// goes.
func putAside(path string) string {
	to := path + ".damaged"
	if err := os.Rename(path, to); err != nil {
		return "it stays where it is: " + err.Error()
	}
	return "kept aside as " + filepath.Base(to) + ", starting anew"
}

// save writes the state of the source beside those of the others.
func (k *keeper) save(s tui.State) error { return k.write(s, false) }

// end writes the state for the last time.
func (k *keeper) end(s tui.State) error { return k.write(s, true) }

func (k *keeper) write(s tui.State, last bool) error {
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
		f.Sources = map[string]*keptState{}
	}
	f.Sources[k.source] = &keptState{time.Now().UTC(), s}
	f.forget()
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return writeWhole(k.path, data)
}

// forget drops the sources that were not used for longest, and what is null in a file
// that somebody edited.
func (f *stateFile) forget() {
	var names []string
	for n, kept := range f.Sources {
		if kept == nil {
			delete(f.Sources, n)
			continue
		}
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int { return f.Sources[b].Used.Compare(f.Sources[a].Used) })
	for _, n := range names[min(maxSources, len(names)):] {
		delete(f.Sources, n)
	}
}

// writeWhole replaces a file in one step, readable by its owner only.
func writeWhole(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
