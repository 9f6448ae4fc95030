// Command acescope is the console and its headless commands.
//
// Commands write data to standard output and everything else to standard error. A command that fails writes
// one line and exits with one of the codes in internal/cli.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
)

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	a := &cli.App{Err: cli.NewOutput(os.Stderr, nil), Fail: fail}
	a.Out = cli.NewOutput(os.Stdout, &a.JSON)
	log.SetOutput(a.Err) // of libraries, such as servers of HTTP
	command := root
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], cobra.ShellCompRequestCmd) {
		command = completing
	}
	err := command(a).ExecuteContext(ctx)
	a.Close()
	a.Codecs.Warn(a.Err)
	if lost, ok := errors.AsType[*cli.HostError](context.Cause(ctx)); ok {
		err = lost
	} else if err != nil && ctx.Err() != nil {
		err = cli.ErrInterrupted
	}
	if err != nil {
		fmt.Fprintln(a.Err, "acescope: "+cli.OneLine(cli.Advise(a, err)))
	}
	return cli.ExitCode(err)
}
