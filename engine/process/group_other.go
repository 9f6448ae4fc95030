//go:build !unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

func attributes(bool) *syscall.SysProcAttr { return nil }

func terminateGroup(p *os.Process) { _ = p.Kill() } // there is no gentler way
func interruptGroup(p *os.Process) { _ = p.Signal(os.Interrupt) }
func killGroup(p *os.Process)      { _ = p.Kill() }

func groupLives(*os.Process) bool { return false }

func signalOf(*os.ProcessState) string { return "" }

func notProgram(error) bool { return false }

// runnable finds a program with any of the endings of programs.
func runnable(path string) (string, error) { return exec.LookPath(path) }
