package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"acescope/engine/ace"
	"acescope/engine/store/durable"
)

// Unconfirmed is the error of a data directory whose runs must not be executed, because the user has not
// confirmed it where it is.
type Unconfirmed struct{ Dir, Why string }

func (u *Unconfirmed) Error() string {
	return fmt.Sprintf("data directory %s is not confirmed: %s; its open runs may start programs, so none "+
		"is executed; look at it in the console, which asks, or confirm it with --trust-data-dir",
		u.Dir, u.Why)
}

// Key returns the secret of a user, which confirms data directories. A nil Key confirms every directory.
type Key func() ([]byte, error)

// keySize is the minimum size of a key in bytes.
const keySize = 32

// UserKey returns the key in a file. It creates the file if it is missing.
func UserKey(path string) ([]byte, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = durable.Create(path, []byte(rand.Text()+rand.Text()+"\n"))
	}
	info, statErr := os.Stat(path) // also of a key that another user has made
	if statErr != nil {
		return nil, errors.Join(err, statErr)
	}
	key, err := os.ReadFile(path)
	if err == nil && (len(key) < keySize || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0) {
		err = fmt.Errorf("%s has %d bytes and mode %04o, and needs %d bytes that only you can read: "+
			"delete it", path, len(key), info.Mode().Perm(), keySize)
	}
	return key, err
}

// trustRecord is the content of trust.json. Only the code counts; the other fields, which anybody can write,
// explain a wrong code.
type trustRecord struct {
	Code []byte `json:"code"`
	Path string `json:"path"`
	User string `json:"user"` // with the host
}

// newTrustRecord returns the record that confirms the database in a data directory. Its code holds for this
// path without symbolic links, this user and this file: a copied or restored database is another file.
func newTrustRecord(dir, database string, key Key) (r trustRecord, err error) {
	if r.Path, err = filepath.EvalSymlinks(dir); err == nil {
		r.Path, err = filepath.Abs(r.Path)
	}
	id, idErr := fileID(database)
	secret, keyErr := key()
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "acescope data directory\n%q\n%d\n%s", r.Path, os.Getuid(), id)
	r.Code, r.User = mac.Sum(nil), ace.User()
	return r, errors.Join(err, idErr, keyErr)
}

// CheckTrust returns an [*Unconfirmed] unless the user has confirmed the data directory, or it has no
// database and so no runs. Hosts confirm a database that they create.
func CheckTrust(dir string, key Key) error {
	database := filepath.Join(dir, databaseFile)
	if _, err := os.Lstat(database); key == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	want, err := newTrustRecord(dir, database, key)
	if err != nil {
		return &Unconfirmed{dir, err.Error()}
	}
	var have trustRecord
	data, err := os.ReadFile(filepath.Join(dir, trustFile))
	if err == nil {
		err = json.Unmarshal(data, &have)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Unconfirmed{dir, "an earlier version of acescope made it, or it is from elsewhere"}
	case err != nil:
		return &Unconfirmed{dir, trustFile + " cannot be read: " + err.Error()}
	case hmac.Equal(have.Code, want.Code):
		return nil
	case have.Path == want.Path && have.User == want.User:
		return &Unconfirmed{dir, "its database was copied, restored or replaced, or your key has changed"}
	}
	const most = 200 // bytes of a text from elsewhere
	return &Unconfirmed{dir, fmt.Sprintf("%s says that it was confirmed as %s by %s", trustFile,
		ace.Cut(have.Path, most), ace.Cut(have.User, most))}
}

// Confirm records that the user trusts the runs in a data directory.
func Confirm(dir string, key Key) error { return confirm(dir, filepath.Join(dir, databaseFile), key) }

func confirm(dir, database string, key Key) error {
	if key == nil {
		return nil
	}
	r, err := newTrustRecord(dir, database, key)
	if err != nil {
		return err
	}
	return writeJSON(dir, trustFile, r)
}
