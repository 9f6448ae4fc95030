//go:build !unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

func attributes(bool) *syscall.SysProcAttr { return nil }

func terminateGroup(p *os.Process) { _ = p.Kill() }
func killGroup(p *os.Process)      { _ = p.Kill() }

func groupLives(*os.Process) bool { return false }

func signalOf(*os.ProcessState) string { return "" }

func isNotProgram(error) bool { return false }

// executable finds a program with any of the extensions in PATHEXT.
func executable(path string) (string, error) { return exec.LookPath(path) }
