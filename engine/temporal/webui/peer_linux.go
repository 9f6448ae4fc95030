package webui

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// foreignUser reports whether another user of this machine opened the connection from an address. Root is not
// foreign, because its programs forward connections for users; for a process of root, no user is foreign.
func foreignUser(address string) bool {
	own := os.Getuid()
	uid, ok := userOf(address)
	return ok && own != 0 && uid != 0 && uid != own
}

// userOf returns the user whose socket has a local IPv4 address, as the kernel lists it.
func userOf(address string) (uid int, ok bool) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Is4() {
		return 0, false
	}
	ip := at.Addr().As4()
	want := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], at.Port())
	f, err := os.Open("/proc/self/net/tcp")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	const local, user = 1, 7 // columns
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if columns := strings.Fields(lines.Text()); len(columns) > user && columns[local] == want {
			uid, err := strconv.Atoi(columns[user])
			return uid, err == nil
		}
	}
	return 0, false
}
