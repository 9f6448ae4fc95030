//go:build !linux

package main

import (
	"context"
	"errors"
	"time"
)

var errLinux = errors.New("this is measured on Linux only")

func paint(context.Context, string, ...string) (frame, error) { return frame{}, errLinux }

func processCPU(int) (time.Duration, error) { return 0, errLinux }

func watchTerminal(context.Context, uint16, uint16, string, ...string) (*watchedTerminal, error) {
	return nil, errLinux
}
