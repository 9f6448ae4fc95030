package engine_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// skewEnv is the difference between the wall clock of a program and that of the machine.
const skewEnv = "ACESCOPE_TEST_SKEW"

func init() {
	d, err := time.ParseDuration(os.Getenv(skewEnv))
	if err == nil {
		err = skewClock(d)
	}
	if os.Getenv(skewEnv) != "" && err != nil {
		panic(err)
	}
}

// skew is by how many seconds the wall clock of this process is ahead of the machine's, nil if it cannot be
// set. The process may change it while it runs.
var skew *atomic.Int64

// skewClock adds d to the wall clock of this process. The product has no setting for that, so skewClock
// replaces the function that the kernel maps into each process to read clocks by one that calls the kernel
// and adds skew. The monotonic clock and the times of files stay as they are.
func skewClock(d time.Duration) error {
	const access, kind = syscall.PROT_READ | syscall.PROT_WRITE | syscall.PROT_EXEC,
		syscall.MAP_ANON | syscall.MAP_PRIVATE
	at, err := syscall.Mmap(-1, 0, os.Getpagesize(), access, kind)
	if err != nil {
		return err
	}
	skew = (*atomic.Int64)(unsafe.Pointer(&at[0]))
	skew.Store(int64(d / time.Second))
	code := at[8:]
	instructions := binary.LittleEndian.AppendUint64([]byte{
		0xb8, 228, 0, 0, 0, // mov eax, SYS_clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x75, 16, // jnz to the return, unless the clock is CLOCK_REALTIME
		0x48, 0xb9, // mov rcx, address of skew
	}, uint64(uintptr(unsafe.Pointer(skew))))
	copy(code, append(instructions,
		0x48, 0x8b, 0x09, // mov rcx, [rcx]
		0x48, 0x01, 0x0e, // add [rsi], rcx: the seconds
		0xc3, // ret
	))
	jump := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, uint64(uintptr(unsafe.Pointer(&code[0]))))
	jump = append(jump, 0xff, 0xe0) // mov rax, code; jmp rax
	entry, err := clockFunction()
	if err != nil {
		return err
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	before := time.Now()
	if _, err := memory.WriteAt(jump, entry); err != nil {
		return err
	}
	if got := time.Now().Round(0).Sub(before.Round(0)) - d; got.Abs() > time.Minute {
		return fmt.Errorf("the clock differs by %s from %s", got, d)
	}
	return nil
}

// clockFunction returns the address of the kernel's function that reads clocks.
func clockFunction() (int64, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	fields := regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$`).FindSubmatch(maps)
	if fields == nil {
		return 0, errors.New("no functions of the kernel are mapped")
	}
	from, fromErr := strconv.ParseInt(string(fields[1]), 16, 64)
	to, toErr := strconv.ParseInt(string(fields[2]), 16, 64)
	memory, err := os.Open("/proc/self/mem")
	if err := errors.Join(fromErr, toErr, err); err != nil {
		return 0, err
	}
	defer memory.Close()
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, from); err != nil {
		return 0, err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return from + int64(s.Value), nil
		}
	}
	return 0, errors.New("the kernel maps no function that reads clocks")
}
