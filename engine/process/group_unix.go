//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
)

func terminateGroup(p *os.Process) { signalGroup(p, syscall.SIGTERM) }
func interruptGroup(p *os.Process) { signalGroup(p, syscall.SIGINT) }
func killGroup(p *os.Process)      { signalGroup(p, syscall.SIGKILL) }

// signalGroup sends a signal to all of the group. That nobody is left of it is fine.
func signalGroup(p *os.Process, s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }

// signalOf is the name of the signal that ended a program, "" of none.
func signalOf(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String()
	}
	return ""
}

func notProgram(err error) bool {
	return errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.EISDIR)
}

// runnable tells whether a file can be run.
func runnable(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", errors.New("it is a directory")
	case info.Mode()&0o111 == 0:
		return "", errors.New("it is not executable")
	}
	return path, nil
}
