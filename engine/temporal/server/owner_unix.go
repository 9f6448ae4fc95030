//go:build unix

package server

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// checkOwner rejects a directory of another user, also for root.
func checkOwner(dir string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() {
		return nil
	}
	return failf(ErrDataDir, nil,
		"data directory %s: belongs to %s, and this process runs as %s; nothing was changed, run acescope "+
			"as that user or choose another directory with --data-dir",
		dir, userName(int(st.Uid)), userName(os.Geteuid()))
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s (uid %d)", u.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}

// ownProcess reports whether pid is a live process that this user may signal.
func ownProcess(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }
