//go:build !unix

package agentclitest

import (
	"os"
	"os/exec"
	"os/signal"
)

func killOnTerm(int) {}

func ownGroup(*exec.Cmd) {}

func ignoreTerm() {}

func killSelf() { os.Exit(137) }

func onSignals(interrupt, _ func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt)
	go func() {
		for range c {
			interrupt()
		}
	}()
}
