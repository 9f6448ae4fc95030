package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// turn is how many tasks a child runs before it is the other's turn. Short turns let
// whatever else the machine does fall on both alike.
const turn = 100

// player is a load child that takes turns with another. Between its turns it idles.
type player struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	sum mark // of its turns
}

func play(ctx context.Context, s spec) (*player, error) {
	s.Kind, s.Turns = kindLoad, true
	p := &player{cmd: childCommand(ctx, s)}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	return p, p.cmd.Start()
}

// next reads the mark of the stretch that is under way.
func (p *player) next() (m mark, err error) {
	if !p.out.Scan() {
		return m, errors.Join(fmt.Errorf("a load child ended early"), p.out.Err())
	}
	return m, json.Unmarshal(p.out.Bytes(), &m)
}

// turn has the child run one stretch.
func (p *player) turn() error {
	if _, err := fmt.Fprintln(p.in, "go"); err != nil {
		return err
	}
	m, err := p.next()
	p.sum = p.sum.add(m)
	return err
}

// end waits for the child. One that is not through is told to stop.
func (p *player) end(err error) error {
	if err != nil {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	p.in.Close()
	return errors.Join(err, p.cmd.Wait())
}

// alternate lets two children take turns, A B A B, and ends both.
func alternate(a, b *player, turns int) error {
	var err error
	for n := 0; n < turns && err == nil; n++ {
		if err = a.turn(); err == nil {
			err = b.turn()
		}
	}
	return errors.Join(a.end(err), b.end(err))
}
