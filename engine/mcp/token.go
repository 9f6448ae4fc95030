package mcp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// tokens are what may stand in the file of a token.
var tokens = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{16,1000}$`)

// ErrToken means that a file holds no token that can be used.
var ErrToken = errors.New("no usable token")

// Token is the token in a file. Where there is no such file it is made, so that only its
// owner can read it.
func Token(path string) (string, error) {
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := makeToken(path); err != nil {
		return "", fmt.Errorf("make the token's file: %w", err)
	}
	return readToken(path)
}

func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: %s is no file", ErrToken, path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return "", fmt.Errorf("%w: others can read %s (mode %04o): chmod 600 it, or delete it and a new one is made", ErrToken, path, mode)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 2<<10))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if !tokens.MatchString(token) {
		return "", fmt.Errorf("%w: %s must hold one line of 16 to 1000 letters, digits and ._~+/=-: delete it and a new one is made", ErrToken, path)
	}
	return token, nil
}

// makeToken writes a new token. Where another process is faster, its token counts.
func makeToken(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(rand.Text() + rand.Text() + "\n")
	if err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
