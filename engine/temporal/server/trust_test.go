package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func keyOf(secret string) Key {
	return func() ([]byte, error) { return bytes.Repeat([]byte(secret), keySize), nil }
}

// madeHere returns a data directory whose database a host with the key has created.
func madeHere(t *testing.T, key Key) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := OpenDir(dir, testVersion); err != nil {
		t.Fatal(err)
	}
	if err := CheckTrust(dir, key); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	if err := createDatabase(dir, sqlConfig(dir), key); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copied(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func rewrite(t *testing.T, dir, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err == nil {
		err = errors.Join(os.Remove(path), os.WriteFile(path, change(data), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTrust(t *testing.T) {
	mine := keyOf("a")
	noKey := func() ([]byte, error) { return nil, errors.New("no home directory") }
	same := func(dir string) string { return dir }
	record := func(change func(*trustRecord)) func(string) string {
		return func(dir string) string {
			rewrite(t, dir, trustFile, func(data []byte) []byte {
				var r trustRecord
				err := json.Unmarshal(data, &r)
				change(&r)
				out, writeErr := json.Marshal(r)
				if err := errors.Join(err, writeErr); err != nil {
					t.Fatal(err)
				}
				return out
			})
			return dir
		}
	}
	for name, c := range map[string]struct {
		maker, user Key
		change      func(dir string) (path string)
		why         string // "" if it stays confirmed
	}{
		"made here":    {mine, mine, same, ""},
		"made unkeyed": {nil, mine, same, "an earlier version"},
		"no key then":  {noKey, mine, same, "an earlier version"},
		"no key now":   {mine, noKey, same, "no home directory"},
		"other key":    {keyOf("b"), mine, same, "your key has changed"},
		"unchecked":    {keyOf("b"), nil, same, ""},
		"copied":       {mine, mine, func(dir string) string { return copied(t, dir) }, "confirmed as"},
		"moved": {mine, mine, func(dir string) string {
			to := filepath.Join(t.TempDir(), "moved")
			if err := os.Rename(dir, to); err != nil {
				t.Fatal(err)
			}
			return to
		}, "confirmed as"},
		"moved and back": {mine, mine, func(dir string) string {
			if err := errors.Join(os.Rename(dir, dir+"2"), os.Rename(dir+"2", dir)); err != nil {
				t.Fatal(err)
			}
			return dir
		}, ""},
		"copied and moved to its place": {mine, mine, func(dir string) string {
			other := copied(t, dir)
			if err := errors.Join(os.RemoveAll(dir), os.Rename(other, dir)); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "copied, restored"},
		"by a symbolic link": {mine, mine, func(dir string) string {
			if err := os.Symlink(dir, dir+".link"); err != nil {
				t.Skip(err)
			}
			return dir + ".link"
		}, ""},
		"deleted record": {mine, mine, func(dir string) string {
			if err := os.Remove(filepath.Join(dir, trustFile)); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "an earlier version"},
		"damaged record": {mine, mine, func(dir string) string {
			rewrite(t, dir, trustFile, func([]byte) []byte { return []byte("{") })
			return dir
		}, "cannot be read"},
		"no code":     {mine, mine, record(func(r *trustRecord) { r.Code = nil }), "copied, restored"},
		"forged code": {mine, mine, record(func(r *trustRecord) { r.Code[0]++ }), "copied, restored"},
		"long record": {mine, mine, record(func(r *trustRecord) {
			r.Code, r.Path = nil, strings.Repeat("x", 1<<20)
		}), "xxx… by "},
		"only other texts": {mine, mine, record(func(r *trustRecord) { r.Path, r.User = "/x", "eve@x" }), ""},
		"forged by its copy": {mine, mine, func(dir string) string {
			to := copied(t, dir)
			return record(func(r *trustRecord) { r.Path, _ = filepath.EvalSymlinks(to) })(to)
		}, "copied, restored"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := c.change(madeHere(t, c.maker))
			err := CheckTrust(dir, c.user)
			u, unconfirmed := errors.AsType[*Unconfirmed](err)
			switch {
			case c.why == "" && err != nil:
				t.Fatal(err)
			case c.why == "":
				return
			case !unconfirmed || u.Dir != dir || !strings.Contains(u.Why, c.why) || len(u.Why) > 600:
				t.Fatalf("%q, want %q", err, c.why)
			}
			_, keyErr := c.user()
			if err := Confirm(dir, c.user); (err == nil) != (keyErr == nil) {
				t.Error(err)
			}
			if err := CheckTrust(dir, c.user); (err == nil) != (keyErr == nil) {
				t.Errorf("after confirming it: %v", err)
			}
		})
	}
}

// A file system may give a new file the inode of a deleted one, so the path and the inode of a database are
// not enough.
func TestTrustRestored(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the time of birth of a file")
	}
	dir := madeHere(t, keyOf("a"))
	before, err := os.Stat(filepath.Join(dir, databaseFile))
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, dir, databaseFile, bytes.Clone)
	if err := os.Chtimes(filepath.Join(dir, databaseFile), before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := CheckTrust(dir, keyOf("a")); err == nil {
		t.Error("a restored database is confirmed")
	}
}

// TestTrustAtFirstStart: a process that finds the database of a first start finds it confirmed.
func TestTrustAtFirstStart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, databaseFile)
	made := make(chan error, 1)
	go func() { made <- newDatabase(dir, path, keyOf("a")) }()
	for {
		err := CheckTrust(dir, keyOf("a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
}

func TestUserKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "key")
	var keys [8][]byte
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = UserKey(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) < keySize || !bytes.Equal(k, keys[0]) {
			t.Errorf("keys differ: %q", keys)
		}
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	other, err := UserKey(filepath.Join(t.TempDir(), "key"))
	if err != nil || bytes.Equal(other, keys[0]) {
		t.Error("two users have one key", err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := UserKey(path); err == nil || !strings.Contains(err.Error(), "0640") {
			t.Errorf("a key that others can read: %v", err)
		}
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("short"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := UserKey(path); err == nil || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("a short key: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := UserKey(filepath.Join(file, "key")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}
