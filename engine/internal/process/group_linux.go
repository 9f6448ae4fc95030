package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// attributes makes the program the leader of a process group and, with dieWithParent, sends it
// SIGTERM when the thread that started it dies.
func attributes(dieWithParent bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if dieWithParent {
		a.Pdeathsig = syscall.SIGTERM
	}
	return a
}

// groupLives reports whether the group has processes that are not zombies. In a container without
// an init process zombies stay forever.
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

// livesIn reports whether the process is in the group and not a zombie.
func livesIn(pid, group int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// pid (name) state parent group …; the name may contain any character.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X"
}
