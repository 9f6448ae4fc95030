package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func lines(t *testing.T, path string) (records []Record, broken int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		if r, ok := Parse(line); ok {
			records = append(records, r)
		} else {
			broken++
		}
	}
	return records, broken
}

func TestAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "spool")
	if err := Append(dir, Hook, []byte("{\"a\":\r\n 1}")); err != nil {
		t.Fatal(err)
	}
	records, broken := lines(t, filepath.Join(dir, Active))
	if len(records) != 1 || broken != 0 {
		t.Fatalf("%d records, %d broken", len(records), broken)
	}
	r := records[0]
	if r.Kind != Hook || string(r.Payload) != `{"a":   1}` || r.PID != os.Getpid() ||
		time.Since(time.UnixMicro(r.Micros)) > time.Minute {
		t.Errorf("%+v", r)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, Active): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// TestPartialRecords checks that a partial record does not affect others.
func TestPartialRecords(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Active)
	whole := encode(Record{Kind: Event, Micros: 1, PID: 2, ID: "x", Payload: []byte("12345")})
	for n := range whole {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Append(dir, Hook, []byte("whole")); err != nil {
			t.Fatal(err)
		}
		records, _ := lines(t, path)
		if k := len(records); k == 0 || string(records[k-1].Payload) != "whole" || k > 1 && n < len(whole)-1 {
			t.Fatalf("cut at %d: %d records", n, k)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestManyWriters checks that no record is lost or mixed while many writers write and the file is
// rotated, locked and removed repeatedly.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	const writers, each = 20, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				payload := strings.Repeat(string(rune('a'+w)), 1+n*7) + fmt.Sprintf(".%d.%d", w, n)
				if err := Append(dir, Hook, []byte(payload)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	got := map[string]bool{}
	collect := func(path string) {
		records, broken := lines(t, path)
		if broken > 0 {
			t.Errorf("%d broken lines", broken)
		}
		for _, r := range records {
			got[string(r.Payload)] = true
		}
		os.Remove(path)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for n := 0; ; n++ {
		aside := filepath.Join(dir, fmt.Sprint(n, RotatedExt))
		if os.Rename(filepath.Join(dir, Active), aside) == nil {
			f, err := os.Open(aside)
			if err != nil {
				t.Fatal(err)
			}
			for !Lock(f) {
			}
			collect(aside)
			f.Close()
		}
		select {
		case <-done:
			if left := filepath.Join(dir, Active); exists(left) {
				collect(left)
			}
			if len(got) != writers*each {
				t.Fatalf("%d of %d records", len(got), writers*each)
			}
			return
		default:
		}
	}
}

func TestInvalidDirectories(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := t.TempDir()
	if err := os.Symlink(file, filepath.Join(link, Active)); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, Active), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, file + "/x", link, folder, "/proc/nothing/here"} {
		if err := Append(dir, Hook, []byte("x")); err == nil {
			t.Errorf("%s accepted a record", dir)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Size() > 0 {
		t.Error("wrote to the target of a link")
	}
}

// TestSharedSpool checks that a spool which other users can write to is named, that the next record ends
// their access, and that a spool with a file of another user is not used.
func TestSharedSpool(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	if err := Check(dir); err != nil {
		t.Errorf("a missing spool: %v", err)
	}
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := Check(dir); err == nil || !strings.Contains(err.Error(), "run chmod 700 "+dir) {
		t.Errorf("a spool of mode 0777: %v", err)
	}
	if err := Append(dir, Hook, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 || Check(dir) != nil {
		t.Errorf("mode %v, %v, %v", info.Mode(), err, Check(dir))
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	for _, path := range []string{filepath.Join(dir, Active), dir} {
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if err := Append(dir, Hook, []byte("x")); err == nil || !strings.Contains(err.Error(),
			"another user owns") {
			t.Errorf("%s of another user: %v", path, err)
		}
		if err := os.Chown(path, 0, -1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFull checks that a full spool does not grow and counts dropped records.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, Active))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(MaxBytes - 10); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := CheckSpace(dir); err == nil || !strings.Contains(err.Error(), "run acescope serve") {
		t.Errorf("a full spool: %v", err)
	}
	for range 3 {
		if err := Append(dir, Hook, []byte("x")); !errors.Is(err, ErrFull) {
			t.Errorf("a full spool: %v", err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, Dropped)); err != nil || info.Size() != 3 {
		t.Errorf("%v dropped, %v", info, err)
	}
}

func TestDir(t *testing.T) {
	for _, c := range []struct{ spool, state, home, want string }{
		{"/s", "/x", "/h", "/s"}, {"", "/x", "/h", "/x/acescope/spool"},
		{"", "rel", "/h", "/h/.local/state/acescope/spool"}, {"", "", "", ""}, {"rel", "/x", "/h", ""},
	} {
		if got := Dir(func(name string) string {
			return map[string]string{Env: c.spool, "XDG_STATE_HOME": c.state, "HOME": c.home}[name]
		}); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	whole := encode(Record{Kind: Event, Micros: 1, PID: 2, ID: "x", Payload: []byte(`{"a":1}`)})
	f.Add(whole[1 : len(whole)-1])
	f.Add([]byte("ace1 h 1 2 x 3 0 abc"))
	f.Add([]byte("ace1 h "))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, ok := Parse(line)
		if !ok {
			return
		}
		if again, ok := Parse(bytes.Trim(encode(r), "\n")); !ok || again.ID != r.ID ||
			again.Micros != r.Micros || !bytes.Equal(again.Payload, r.Payload) {
			t.Errorf("%+v became %+v", r, again)
		}
	})
}
