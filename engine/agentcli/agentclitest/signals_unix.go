//go:build unix

package agentclitest

import (
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// left are the children in groups of their own, which the CLIs end when they are asked to end.
var left struct {
	sync.Mutex
	pids []int
}

func remember(pid int) {
	left.Lock()
	defer left.Unlock()
	left.pids = append(left.pids, pid)
}

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

func killSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// onSignals has SIGTERM end the process with its children and without a result, after bye,
// and SIGINT do what is given.
func onSignals(interrupt, bye func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for s := range c {
			if s == syscall.SIGINT {
				interrupt()
				continue
			}
			left.Lock()
			for _, pid := range left.pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			bye()
			os.Exit(143)
		}
	}()
}
