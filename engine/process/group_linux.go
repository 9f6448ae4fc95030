package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// attributes has the program lead a process group, and get SIGTERM when the thread that
// started it dies.
func attributes(dieWithParent bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if dieWithParent {
		a.Pdeathsig = syscall.SIGTERM
	}
	return a
}

// groupLives tells whether there is anybody left of the group. Those that have ended and are
// not waited for count as gone: where nobody adopts orphans, as in many containers, they
// would stay for ever.
func groupLives(p *os.Process) bool {
	if syscall.Kill(-p.Pid, 0) != nil {
		return false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && livesIn(pid, p.Pid) {
			return true
		}
	}
	return false
}

// livesIn tells whether the process is in the group, and alive.
func livesIn(pid, group int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// pid (name) state parent group …, and the name may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X"
}
