package playbook

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func logPath(dir, name string) string { return filepath.Join(dir, branchesDir, name+logSuffix) }

// TestTornLastLine cuts the last merge at every byte: the head is the previous version, a
// retry reproduces the same version, and nothing else changes.
func TestTornLastLine(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	start(t, s, "main", largePlaybook(16))
	merge(t, s, request("main", 0))
	before, err := os.ReadFile(logPath(dir, "main"))
	if err != nil {
		t.Fatal(err)
	}
	last := merge(t, s, request("main", 1))
	after, err := os.ReadFile(logPath(dir, "main"))
	if err != nil {
		t.Fatal(err)
	}
	for end := len(before); end < len(after); end += 23 {
		cut := after[:end]
		holes := append(bytes.Clone(cut), make([]byte, len(after)-end-1)...)
		for _, torn := range [][]byte{cut, holes, append(bytes.Clone(holes), '\n')} {
			if len(torn) == len(after) && end > len(after)-2 {
				continue // nothing is missing
			}
			if err := os.WriteFile(logPath(dir, "main"), torn, 0o600); err != nil {
				t.Fatal(err)
			}
			s := openStore(t, dir)
			if got := head(t, s, "main"); got != last.Parent {
				t.Fatalf("cut at %d: head %s, want %s", end, got, last.Parent)
			}
			if m := merge(t, s, request("main", 1)); fmt.Sprint(m) != fmt.Sprint(last) {
				t.Fatalf("cut at %d: %+v", end, m)
			}
			if now, err := os.ReadFile(logPath(dir, "main")); err != nil || !bytes.Equal(now, after) {
				t.Fatalf("cut at %d: the log differs, %v", end, err)
			}
		}
	}
}

func TestDetectsDamage(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	start(t, s, "main", largePlaybook(16))
	start(t, s, "sound", largePlaybook(17))
	for i := range 3 {
		merge(t, s, request("main", i))
	}
	log, err := os.ReadFile(logPath(dir, "main"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(log, []byte("\n"))
	lines[2] = []byte("rubbish\n")
	if err := os.WriteFile(logPath(dir, "main"), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := openStore(t, dir)
	if _, _, err := fresh.Head("main"); !errors.Is(err, ErrCorrupt) ||
		!strings.Contains(err.Error(), "line 3") {
		t.Fatalf("rubbish: %v", err)
	}
	if list, err := fresh.Branches(); len(list) != 1 || list[0].Name != "sound" ||
		!errors.Is(err, ErrCorrupt) {
		t.Fatalf("%+v, %v", list, err)
	}
	merge(t, fresh, request("sound", 1))

	other := bytes.Replace(log, []byte("learnt in task 1"), []byte("learnt in task 7"), 1)
	if err := os.WriteFile(logPath(dir, "main"), other, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh = openStore(t, dir)
	if _, err := fresh.Get(t.Context(), head(t, fresh, "main")); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("changed operation: %v", err)
	}
	if err := os.WriteFile(logPath(dir, "main"), lines[0][:20], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(t, dir).Start(t.Context(), "main", ""); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("torn first line: %v", err)
	}
	newer := bytes.Replace(log, []byte(`{"format":1`), []byte(`{"format":2`), 1)
	if err := os.WriteFile(logPath(dir, "main"), newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openStore(t, dir).Head("main"); err == nil ||
		!strings.Contains(err.Error(), "another version of this program") {
		t.Fatalf("format 2: %v", err)
	}
}

// TestMissingSnapshots damages and removes whole playbooks, which are then rebuilt.
func TestMissingSnapshots(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	root := start(t, s, "main", largePlaybook(16))
	for i := range 2*snapshotEvery + 1 {
		merge(t, s, request("main", i))
	}
	snapshots := 0
	err := filepath.WalkDir(filepath.Join(dir, booksDir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, root) {
			return err
		}
		snapshots++
		if snapshots == 1 {
			return os.Remove(path)
		}
		return os.WriteFile(path, nil, 0o600)
	})
	if err != nil || snapshots != 2 {
		t.Fatalf("%d snapshots, %v", snapshots, err)
	}
	wholeLog(t, dir, "main")
}

// TestKilled repeatedly kills a merging process: every reported merge exists exactly once,
// and the branch remains usable.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("PLAYBOOK_MERGE_FOR_EVER"); dir != "" {
		s := openStore(t, dir)
		log, err := s.Page("main", 1, math.MaxInt)
		if err != nil {
			t.Fatal(err)
		}
		for i := len(log); ; i++ {
			merge(t, s, request("main", i))
			fmt.Println("merged", i)
		}
	}
	dir := t.TempDir()
	start(t, openStore(t, dir), "main", largePlaybook(40))
	told := -1
	for range 5 {
		told = mergeUntilKilled(t, dir, told+10)
		log := wholeLog(t, dir, "main")
		if len(log) != told+1 && len(log) != told+2 {
			t.Fatalf("%d versions; %d were reported", len(log), told+1)
		}
		seen := map[string]bool{}
		for _, v := range log {
			seen[v.DeltaID] = true
		}
		if len(seen) != len(log) {
			t.Fatalf("%d deltas in %d versions", len(seen), len(log))
		}
		newest, bullets := log[0], log[0].Bullets
		s := openStore(t, dir)
		if m := merge(t, s, request("main", len(log)-1)); m.Hash != newest.Hash || m.Bullets != bullets {
			t.Fatalf("the retry gave %+v", m)
		}
		told = len(log) - 1
	}
}

// mergeUntilKilled returns the last merge that the process reported.
func mergeUntilKilled(t *testing.T, dir string, atLeast int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "PLAYBOOK_MERGE_FOR_EVER="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "merged %d", &last); err == nil && last == atLeast {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || last < atLeast {
		t.Fatalf("the process ended by itself after merge %d: %v", last, err)
	}
	return last
}

// TestFullDisk runs a process into a file size limit, which interrupts a write like a full
// disk.
func TestFullDisk(t *testing.T) {
	const limit = 60_000
	if dir := os.Getenv("PLAYBOOK_FULL_DISK"); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE,
			&syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, dir)
		for i := 0; ; i++ {
			if _, err := s.Merge(t.Context(), request("main", i)); err != nil {
				if !errors.Is(err, syscall.EFBIG) || head(t, s, "main") == "" {
					t.Fatal(err)
				}
				return
			}
		}
	}
	dir := t.TempDir()
	start(t, openStore(t, dir), "main", largePlaybook(40))
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
	cmd.Env = append(os.Environ(), "PLAYBOOK_FULL_DISK="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(logPath(dir, "main"))
	if err != nil || len(data) >= limit || data[len(data)-1] != '\n' {
		t.Fatalf("the log has %d bytes and ends in %q, %v", len(data), data[len(data)-1], err)
	}
	log := wholeLog(t, dir, "main")
	merge(t, openStore(t, dir), request("main", len(log)))
	if left, err := os.ReadDir(filepath.Join(dir, tmpDir)); err != nil || len(left) != 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

func TestLockWaitsAndReleases(t *testing.T) {
	dir := t.TempDir()
	holder, other := openStore(t, dir), openStore(t, dir)
	start(t, holder, "main", &Playbook{})
	unlock, err := holder.logs.lock(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{holder, other} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Merge(ctx, request("main", 1)); !errors.Is(err, context.Canceled) {
			t.Fatalf("err = %v", err)
		}
		if _, ok, err := s.Head("main"); !ok || err != nil {
			t.Fatalf("reading needs the lock: %v", err)
		}
	}
	unlock()
	merge(t, other, request("main", 1))
	merge(t, holder, request("main", 2))
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	openStore(t, dir)
	old, young := filepath.Join(dir, tmpDir, "new-old"), filepath.Join(dir, tmpDir, "new-young")
	when := time.Now().Add(-25 * time.Hour)
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, when, when); err != nil {
		t.Fatal(err)
	}
	openStore(t, dir)
	left, err := os.ReadDir(filepath.Join(dir, tmpDir))
	if err != nil || len(left) != 1 || left[0].Name() != "new-young" {
		t.Fatalf("%v, %v", left, err)
	}
}

// TestLongTornLine leaves a torn line that is longer than the next record.
func TestLongTornLine(t *testing.T) {
	dir := t.TempDir()
	start(t, openStore(t, dir), "main", largePlaybook(16))
	f, err := os.OpenFile(logPath(dir, "main"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(strings.Repeat("\x00", 100) + strings.Repeat("x", 10_000) + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	m := merge(t, openStore(t, dir), request("main", 1))
	if log := wholeLog(t, dir, "main"); len(log) != 1 || log[0].Hash != m.Hash {
		t.Fatalf("%+v", log)
	}
}
