package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// attempt is one process from its start to its end.
type attempt struct {
	started time.Time
	first   time.Time // when its first line was read
	last    time.Time // when its last line was read
	lines   int
	total   time.Duration // to its end
	cpu     time.Duration // user and system
	peakMB  float64
}

// lineLimit bounds one line of a measured process.
const lineLimit = 4 << 20

// attemptOf runs a command to its end and reads its lines.
func attemptOf(ctx context.Context, env []string, name string, args ...string) (attempt, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return attempt{}, err
	}
	a := attempt{started: time.Now()}
	if err := cmd.Start(); err != nil {
		return a, err
	}
	scanner := bufio.NewScanner(out)
	scanner.Buffer(make([]byte, 1<<16), lineLimit)
	for scanner.Scan() {
		a.last = time.Now()
		if a.lines++; a.lines == 1 {
			a.first = a.last
		}
	}
	err = errors.Join(scanner.Err(), cmd.Wait())
	a.total = time.Since(a.started)
	a.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		a.peakMB = peakMB(u)
	}
	if err != nil {
		return a, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return a, nil
}

// peakMB is the largest resident size: getrusage gives KiB, on macOS bytes.
func peakMB(u *syscall.Rusage) float64 {
	if runtime.GOOS == "darwin" {
		return float64(u.Maxrss) / (1 << 20)
	}
	return float64(u.Maxrss) / (1 << 10)
}

// ownCPU is what this process has used.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ownPeakMB is the largest resident size that this process had.
func ownPeakMB() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return peakMB(&u)
}

// server is a running "acescope serve", or a child that hosts the same with a profiler.
type server struct {
	cmd *exec.Cmd
	env []string
}

// stopPatience is how long a process may take to end once it was asked to.
const stopPatience = 15 * time.Second

// serve starts a host on a data directory and waits until it answers.
func (b *bench) serve(ctx context.Context, dir, profileAs string) (*server, error) {
	cmd := exec.CommandContext(ctx, b.acescope, "serve", "--print-env", "--json", "--data-dir", dir)
	if b.profile != "" {
		cmd = childCommand(ctx, spec{Kind: kindHost, Dir: dir, Profile: b.profile, Name: profileAs})
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopPatience
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var line struct{ Env map[string]string }
	if err := json.NewDecoder(out).Decode(&line); err != nil {
		return nil, errors.Join(fmt.Errorf("serve %s: %w", dir, err), s.stop())
	}
	for name, value := range line.Env {
		s.env = append(s.env, name+"="+value)
	}
	return s, nil
}

func (s *server) address() string {
	for _, v := range s.env {
		if address, ok := strings.CutPrefix(v, "TEMPORAL_ADDRESS="); ok {
			return address
		}
	}
	return ""
}

// stop asks the host to end and waits. How it ends is its own matter.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(stopPatience, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	var ended *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &ended) {
		return err
	}
	return nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
