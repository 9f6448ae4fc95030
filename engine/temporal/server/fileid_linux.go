package server

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileID identifies a file among those that were and will be at its path: by its inode and, because a file
// system can give the inode of a deleted file to the next one, by its time of birth, if it is known.
func fileID(path string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Sprintf("%d %d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}
