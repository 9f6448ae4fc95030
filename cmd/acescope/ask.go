package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"

	"acescope/views"
)

var errDeclined = errors.New("nothing was done")

// sure asks on the terminal whether something is to be done; yes is the answer given
// beforehand. Without a terminal there is nobody to ask.
func (a *app) sure(ctx context.Context, p views.Prepared, yes bool) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(os.Stdin.Fd()) {
		return usage("this asks before it acts, and there is no terminal to ask on: give --yes")
	}
	fmt.Fprintln(a.err, safe(p.Title))
	for _, l := range p.Lines {
		fmt.Fprintln(a.err, "  "+safe(l))
	}
	fmt.Fprintf(a.err, "y: %s, anything else: leave it  ", p.Yes)
	return answered(ctx, os.Stdin)
}

// sureOnTerminal is [app.sure] for what scripts do without being asked.
func (a *app) sureOnTerminal(ctx context.Context, p views.Prepared, yes bool) error {
	return a.sure(ctx, p, yes || !term.IsTerminal(os.Stdin.Fd()))
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
		return errInterrupted
	case text := <-line:
		if text == "y" || text == "yes" {
			return nil
		}
		return errDeclined
	}
}
