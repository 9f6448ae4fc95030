package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What a console's first frame has in it: the alternate screen, then the title.
var (
	altScreen = []byte("\x1b[?1049h")
	title     = []byte("acescope")
)

// paintLimit bounds the wait for a frame.
const paintLimit = 20 * time.Second

// paint runs a program in a terminal of its own until its first frame is there, and
// ends it.
func paint(ctx context.Context, name string, args ...string) (f frame, err error) {
	ctx, cancel := context.WithTimeout(ctx, paintLimit)
	defer cancel()
	at := time.Now()
	cmd, master, err := inTerminal(ctx, 120, 40, name, args...)
	if err != nil {
		return f, err
	}
	defer master.Close()
	stop := context.AfterFunc(ctx, func() { master.Close() })
	defer stop()
	err = awaitFrame(master)
	f = frame{wall: time.Since(at), cpu: threadsCPU(cmd.Process.Pid)}
	go discard(master)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	var ended *exec.ExitError
	if waitErr := cmd.Wait(); err == nil && waitErr != nil && !errors.As(waitErr, &ended) {
		err = waitErr
	}
	return f, err
}

// inTerminal starts a program in a terminal of that size, whose other end it returns.
func inTerminal(ctx context.Context, columns, lines uint16, name string, args ...string) (*exec.Cmd, *os.File, error) {
	master, slave, err := openTerminal(columns, lines)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		master.Close()
	}
	return cmd, master, err
}

// watchTerminal runs a program in a terminal and counts what it writes there.
func watchTerminal(ctx context.Context, columns, lines uint16, name string, args ...string) (*watchedTerminal, error) {
	cmd, master, err := inTerminal(ctx, columns, lines, name, args...)
	if err != nil {
		return nil, err
	}
	w := &watchedTerminal{cmd: cmd, file: master, cpu: func() time.Duration { return threadsCPU(cmd.Process.Pid) }}
	go func() {
		buf := make([]byte, 1<<14)
		for {
			n, err := master.Read(buf)
			w.bytes.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	return w, nil
}

// awaitFrame reads until the title stands on the alternate screen.
func awaitFrame(terminal *os.File) error {
	var seen []byte
	buf := make([]byte, 1<<14)
	for {
		n, err := terminal.Read(buf)
		seen = append(seen, buf[:n]...)
		if at := bytes.Index(seen, altScreen); at >= 0 && bytes.Contains(seen[at:], title) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("no frame; the terminal has %q: %w", seen, err)
		}
	}
}

func discard(f *os.File) {
	buf := make([]byte, 1<<14)
	for {
		if _, err := f.Read(buf); err != nil {
			return
		}
	}
}

// openTerminal makes a pseudo-terminal of that size.
func openTerminal(columns, lines uint16) (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	var number int
	fd := master.Fd()
	if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err != nil {
		return nil, nil, err
	}
	if err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns}); err != nil {
		return nil, nil, err
	}
	if err = unix.SetNonblock(int(fd), true); err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return master, slave, err
}

// threadsCPU is the time on a processor of a running process, to the nanosecond
// (proc_pid_schedstat(5)).
func threadsCPU(pid int) (total time.Duration) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var ns int64
		if _, err := fmt.Sscan(string(data), &ns); err == nil {
			total += time.Duration(ns)
		}
	}
	return total
}

// processCPU is the user and system time of a running process, in steps of 10 ms
// (proc_pid_stat(5), fields 14 and 15).
func processCPU(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d: no times", pid)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
