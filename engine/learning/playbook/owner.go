package playbook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// ownerSuffix is the extension of the file with the owner of a branch, which logs of older versions lack.
const ownerSuffix = ".owner"

// ErrOwner means that experiments of another server use a branch.
var ErrOwner = errors.New("playbook branch belongs to another server")

// Own reserves a branch for the experiments of a server, unless it is reserved for another one.
func (s *Store) Own(ctx context.Context, name, server string) error {
	unlock, err := s.logs.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if s.shared != nil {
		owner, err := s.shared.own(ctx, name, server)
		if err != nil {
			return err
		}
		return checkOwner(name, owner, server)
	}
	path, err := s.logs.file(name, ownerSuffix)
	if err != nil {
		return err
	}
	owner, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.logs.write(path, []byte(server+"\n"), true)
	case err != nil:
		return err
	}
	return checkOwner(name, strings.TrimSpace(string(owner)), server)
}

func checkOwner(name, owner, server string) error {
	if owner == server {
		return nil
	}
	return fmt.Errorf("%w: %q is reserved for %s, this server is %s; choose another experiment id", ErrOwner,
		name, owner, server)
}
