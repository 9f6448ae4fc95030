package memory

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// releasePages returns the pages of the program's code and constants to the system, which maps a page again
// when it is used. A start touches most pages, because every linked package initializes itself. The pages
// stay in the page cache, so that mapping one again takes microseconds. After an error, they stay resident.
func releasePages() {
	_, notTerminal := unix.IoctlGetTermios(unix.Stdout, unix.TCGETS)
	for _, p := range programPages() {
		if notTerminal == nil { // a service could be killed for the system call, if its calls are filtered
			mapSingly(p)
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, p.from, p.to-p.from, unix.MADV_DONTNEED)
	}
}

// pages is a range of addresses.
type pages struct{ from, to uintptr }

// programPages returns the pages of the program's code and constants. Its variables are not among them: these
// pages are copies of the file, and would lose what was written.
func programPages() (list []pages) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var p pages
		var access string
		if !strings.HasSuffix(lines.Text(), " "+program) {
			continue
		}
		_, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &p.from, &p.to, &access)
		if err == nil && strings.HasPrefix(access, "r-") {
			list = append(list, p)
		}
	}
	return list
}

// At an access to a file, Linux maps the 16 pages around it, most of which an idle process does not use: an
// idle console would hold about 30 MB of the program instead of 10. Linux maps a single page where
// userfaultfd(2) tracks writes, and nothing ever writes to the program's code and constants. Since 6.7, files
// can be tracked without privileges; earlier versions refuse, and map 16 pages.
//
// The numbers are those of linux/userfaultfd.h.
const (
	userModeOnly   = 1
	apiVersion     = 0xaa
	askAPI         = 0xc018aa3f // UFFDIO_API
	register       = 0xc020aa00 // UFFDIO_REGISTER
	writesTracked  = 1 << 1     // UFFDIO_REGISTER_MODE_WP
	withoutHandler = 1 << 15    // UFFD_FEATURE_WP_ASYNC
)

// tracker returns the descriptor that tracks writes until the process ends. It may be invalid.
var tracker = sync.OnceValue(func() uintptr {
	fd, _, _ := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|userModeOnly, 0, 0)
	api := struct{ version, features, ioctls uint64 }{version: apiVersion, features: withoutHandler}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, askAPI, uintptr(unsafe.Pointer(&api)))
	return fd
})

// mapSingly makes the system map single pages of a range from now on.
func mapSingly(p pages) {
	r := struct{ from, size, mode, ioctls uint64 }{uint64(p.from), uint64(p.to - p.from), writesTracked, 0}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, tracker(), register, uintptr(unsafe.Pointer(&r)))
}
