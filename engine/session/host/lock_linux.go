package host

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// holders are the processes that have the file open, but for this one.
func holders(f *os.File) (pids map[int]bool, known bool) {
	want, err := f.Stat()
	if err != nil {
		return nil, false
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	pids = map[int]bool{}
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if hasOpen(pid, want) {
			pids[pid] = true
		}
	}
	return pids, true
}

func hasOpen(pid int, want os.FileInfo) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		info, err := os.Stat(dir + "/" + fd.Name())
		if err != nil {
			continue
		}
		if a, ok := info.Sys().(*syscall.Stat_t); ok {
			if b, ok := want.Sys().(*syscall.Stat_t); ok && a.Ino == b.Ino && a.Dev == b.Dev {
				return true
			}
		}
	}
	return false
}
