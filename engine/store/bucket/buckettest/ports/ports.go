// Package ports reserves TCP ports of this machine for tests. Only tests import it.
package ports

import (
	"errors"
	"net"
)

// Reserve returns a loopback address on which nothing listens. Until release is called, only a listener that
// names the port gets it: the port belongs to an open connection, so the system does not assign it to others.
func Reserve() (address string, release func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	defer l.Close()
	address = l.Addr().String()
	out, err := net.Dial("tcp", address)
	if err != nil {
		return "", nil, err
	}
	in, err := l.Accept()
	if err != nil {
		return "", nil, errors.Join(err, out.Close())
	}
	return address, func() {
		_ = out.Close()
		_ = in.Close()
	}, nil
}
