package memory

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releasePages returns the pages of the program's code and constants to the system, which maps a page again
// when it is used. A start touches most pages, because every linked package initializes itself and the kernel
// maps 64 KB around each access. The pages stay in the page cache, so that mapping one again takes
// microseconds. After an error, the pages stay resident.
func releasePages() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		var access string
		if !strings.HasSuffix(lines.Text(), " "+program) {
			continue
		}
		// Writable pages are copies of the file, and would lose what was written.
		_, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &access)
		if err == nil && strings.HasPrefix(access, "r-") {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}
