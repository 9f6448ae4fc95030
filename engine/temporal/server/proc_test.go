package server

import (
	"encoding/hex"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// procAddress converts the kernel's notation, little-endian words of the address and then the
// port, to host:port.
func procAddress(t *testing.T, s string) string {
	t.Helper()
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(net.IP(raw).String(), strconv.Itoa(int(n)))
}
