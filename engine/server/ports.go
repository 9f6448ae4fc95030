package server

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// ports are those of the server's services, all on 127.0.0.1.
type ports struct {
	frontend, internal, history, matching, worker int
}

// choosePorts finds free ports. The frontend gets want if that is not 0, or else
// prefer if that is free. The server stops dead on a port in use, so they are tried
// here first; all are held until the last is found, lest one be handed out twice.
func choosePorts(want, prefer int) (ports, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	take := func(port int) (int, error) {
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			return 0, err
		}
		held = append(held, l)
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	var p ports
	var err error
	if p.frontend, err = take(want); err != nil {
		return p, portError(want, err)
	}
	if want == 0 && prefer != 0 {
		if again, err := take(prefer); err == nil {
			p.frontend = again
		}
	}
	for _, port := range []*int{&p.internal, &p.history, &p.matching, &p.worker} {
		if *port, err = take(0); err != nil {
			return p, fmt.Errorf("no free port on 127.0.0.1: %w", err)
		}
	}
	return p, nil
}

func portError(port int, err error) error {
	switch {
	case port == 0:
		return fmt.Errorf("no free port on 127.0.0.1: %w", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return failf(ErrPortTaken, err,
			"port %d on 127.0.0.1 is in use by another program: stop that, choose another with --port, or leave --port out for a free one", port)
	case errors.Is(err, syscall.EACCES):
		return failf(ErrPortTaken, err, "port %d may not be used by this user: choose one above 1023 with --port", port)
	}
	return failf(ErrPortTaken, err, "port %d on 127.0.0.1 cannot be used (%v): choose another with --port", port, err)
}
