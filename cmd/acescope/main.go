// Command acescope is the console and its headless commands: flags, wiring and exit
// codes. It may import everything; nobody imports it.
//
// Data goes to standard output, everything else to standard error. A command that
// fails says so in one line and exits as exit.go lists.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// version is set by the Makefile; a build without it says what Go knows.
var version = ""

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{out: os.Stdout, err: os.Stderr}
	err := a.root().ExecuteContext(ctx)
	a.codecs.warn(a.err)
	if err != nil && ctx.Err() != nil {
		err = errInterrupted
	}
	if err != nil {
		fmt.Fprintln(a.err, "acescope: "+oneLine(err))
	}
	return exitCode(err)
}
