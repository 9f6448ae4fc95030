package filelock

import (
	"fmt"
	"os"
	"strconv"
)

// holders returns the other processes that have the file open.
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
		if err == nil && pid != os.Getpid() && hasOpen(pid, want) {
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
		if info, err := os.Stat(dir + "/" + fd.Name()); err == nil && os.SameFile(info, want) {
			return true
		}
	}
	return false
}
