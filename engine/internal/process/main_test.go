//go:build unix

package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary act as the programs that the tests run, chosen by its first
// argument.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if f, ok := programs[os.Args[1]]; ok {
			f(os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

var programs = map[string]func(args []string){
	"p-echo": func(args []string) { fmt.Print(strings.Join(args, "|")) },
	"p-exit": func(args []string) {
		n, _ := strconv.Atoi(args[0])
		fmt.Fprint(os.Stderr, "bye")
		os.Exit(n)
	},
	"p-cat":     func([]string) { _, _ = io.Copy(os.Stdout, os.Stdin) },
	"p-env":     func([]string) { fmt.Print(strings.Join(os.Environ(), "\n")) },
	"p-dir":     func([]string) { d, _ := os.Getwd(); fmt.Print(d) },
	"p-sleep":   func([]string) { fmt.Println("up"); time.Sleep(time.Hour) },
	"p-endless": func([]string) { endless() },
	"p-ignore": func([]string) {
		ignore()
		fmt.Println("up")
		time.Sleep(time.Hour)
	},
	// Starts a child, prints its id, and with "wait" waits for it.
	"p-parent": func(args []string) {
		cmd := exec.Command(os.Args[0], args[1:]...)
		cmd.Stdout = os.Stdout
		detach(cmd, args[0])
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(9)
		}
		fmt.Println("child", cmd.Process.Pid)
		if strings.Contains(args[0], "wait") {
			_ = cmd.Wait()
		}
	},
	// Runs a program with a locked file and is then killed.
	"p-supervisor": supervise,
}

func endless() {
	line := []byte(strings.Repeat("endless output ", 100) + "\n")
	for {
		if _, err := os.Stdout.Write(line); err != nil {
			os.Exit(1)
		}
	}
}
