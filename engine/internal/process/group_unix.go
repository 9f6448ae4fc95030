//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
)

func terminateGroup(p *os.Process) { signalGroup(p, syscall.SIGTERM) }
func killGroup(p *os.Process)      { signalGroup(p, syscall.SIGKILL) }

// signalGroup sends a signal to the group, which may be empty.
func signalGroup(p *os.Process, s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }

// signalOf returns the name of the signal that ended a program, or "".
func signalOf(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String()
	}
	return ""
}

func isNotProgram(err error) bool {
	return errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.EISDIR)
}

// executable returns the path if the file can be executed.
func executable(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", errors.New("is a directory")
	case info.Mode()&0o111 == 0:
		return "", errors.New("is not executable")
	}
	return path, nil
}
