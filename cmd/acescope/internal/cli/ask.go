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

	"acescope/views/console"
)

var errDeclined = errors.New("nothing was done")

// sure asks on the terminal whether something is to be done; yes is the answer given
// beforehand. Without a terminal there is nobody to ask.
func (a *App) Confirm(ctx context.Context, p console.Prepared, yes bool) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(os.Stdin.Fd()) {
		return UsageError("this asks before it acts, and there is no terminal to ask on: give --yes")
	}
	fmt.Fprintln(a.Err, SafeText(p.Title))
	for _, l := range p.Lines {
		fmt.Fprintln(a.Err, "  "+SafeText(l))
	}
	fmt.Fprintf(a.Err, "y: %s, anything else: leave it  ", p.Yes)
	return answered(ctx, os.Stdin)
}

// sureOnTerminal is [App.sure] for what scripts do without being asked.
func (a *App) ConfirmOnTerminal(ctx context.Context, p console.Prepared, yes bool) error {
	return a.Confirm(ctx, p, yes || !term.IsTerminal(os.Stdin.Fd()))
}

// answered waits for a line; the answer is no unless it begins with y.
func answered(ctx context.Context, in io.Reader) error {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // what cannot be read is no yes
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
