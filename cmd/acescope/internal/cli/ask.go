package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"

	"acescope/sources/runs"
)

var errDeclined = errors.New("declined; nothing was done")

// Confirm asks on the terminal whether to do p. With yes it does not ask. Without a terminal it is a usage error.
func (a *App) Confirm(ctx context.Context, p runs.Prepared, yes bool) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(os.Stdin.Fd()) {
		return UsageError("this command asks for confirmation, which needs a terminal; or give --yes")
	}
	fmt.Fprintln(a.Err, SafeText(p.Title))
	for _, l := range p.Lines {
		fmt.Fprintln(a.Err, "  "+SafeText(l))
	}
	fmt.Fprintf(a.Err, "y: %s, any other key: do nothing  ", p.Yes)
	return answered(ctx, os.Stdin)
}

// ConfirmOnTerminal is [App.Confirm], but does not ask scripts, which have no terminal.
func (a *App) ConfirmOnTerminal(ctx context.Context, p runs.Prepared, yes bool) error {
	return a.Confirm(ctx, p, yes || !term.IsTerminal(os.Stdin.Fd()))
}

// answered waits for a line. Any answer but y and yes declines.
func answered(ctx context.Context, in io.Reader) error {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // an unreadable answer declines
		line <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case <-ctx.Done():
		return ErrInterrupted
	case text := <-line:
		if text == "y" || text == "yes" {
			return nil
		}
		return errDeclined
	}
}
