package ports

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// A reserved port refuses connections, is not assigned to others, and can be listened on more than once.
func TestReserve(t *testing.T) {
	address, release, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for range 3 {
		if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("nothing listens: %v", err)
		}
		for range 200 {
			other, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if other.Addr().String() == address {
				t.Fatal("the port was assigned")
			}
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
