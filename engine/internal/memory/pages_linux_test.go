package memory

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReleasePages checks that the resident size of the program's file shrinks, and that the program runs on.
func TestReleasePages(t *testing.T) {
	before := fileKB(t)
	releasePages()
	if after := fileKB(t); after >= before {
		t.Errorf("%d kB of files are resident after the release, %d before", after, before)
	}
}

// TestSinglePages checks that the system tracks writes to the program's code, and so maps single pages of it.
func TestSinglePages(t *testing.T) {
	for _, p := range programPages() {
		mapSingly(p)
	}
	if _, err := unix.FcntlInt(tracker(), unix.F_GETFD, 0); err != nil {
		t.Skip("userfaultfd(2) is not allowed here")
	}
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(system.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	if major < 6 || major == 6 && minor < 7 {
		t.Skip("Linux tracks writes to files since 6.7")
	}
	data, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(data), " r-xp ")
	_, flags, _ := strings.Cut(code, "VmFlags:")
	flags, _, _ = strings.Cut(flags, "\n")
	if !strings.Contains(flags, " uw ") {
		t.Errorf("the program's code has the flags%s, want uw", flags)
	}
}

func fileKB(t *testing.T) (kb int) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "RssFile:")
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}
