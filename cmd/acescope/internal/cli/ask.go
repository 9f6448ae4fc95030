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

// Confirm asks on the terminal whether to do p. With yes it does not ask. Without a terminal it is a usage
// error.
func (a *App) Confirm(ctx context.Context, p runs.Prepared, yes bool) error {
	if !yes && !term.IsTerminal(os.Stdin.Fd()) {
		return UsageError("this command asks for confirmation, which needs a terminal; or give --yes")
	}
	return a.ConfirmOnTerminal(ctx, p, yes)
}

// ConfirmOnTerminal is [App.Confirm], but does not ask scripts, which have no terminal.
func (a *App) ConfirmOnTerminal(ctx context.Context, p runs.Prepared, yes bool) error {
	return a.Ask(ctx, yes, p.Title, p.Yes, p.Lines...)
}

// Ask asks on the terminal, if there is one, and unless yes is set. consent is the verb phrase for yes.
func (a *App) Ask(ctx context.Context, yes bool, title, consent string, lines ...string) error {
	if yes || !term.IsTerminal(os.Stdin.Fd()) {
		return nil
	}
	fmt.Fprintln(a.Err, SafeText(title))
	for _, l := range lines {
		fmt.Fprintln(a.Err, "  "+SafeText(l))
	}
	fmt.Fprintf(a.Err, "y: %s, any other key: do nothing  ", consent)
	return answered(ctx, os.Stdin)
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
