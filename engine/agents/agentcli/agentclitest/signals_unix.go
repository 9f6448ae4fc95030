//go:build unix

package agentclitest

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// children are the processes that the CLIs kill on SIGTERM.
var children struct {
	sync.Mutex
	pids []int
}

func killOnTerm(pid int) {
	children.Lock()
	defer children.Unlock()
	children.pids = append(children.pids, pid)
}

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

func killSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// onSignals makes SIGTERM kill the children, call exit and end the process without a result.
// SIGINT calls interrupt.
func onSignals(interrupt, exit func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for s := range c {
			if s == syscall.SIGINT {
				interrupt()
				continue
			}
			children.Lock()
			for _, pid := range children.pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			exit()
			os.Exit(143)
		}
	}()
}
