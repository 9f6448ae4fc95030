package cli

import (
	"os"
	"path/filepath"
	"testing"

	"acescope/theme"
)

// A message does not continue the line of the progress bar.
func TestProgressBarGivesWay(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := NewOutput(f, nil)
	bar := &ProgressBar{out: out, width: func() int { return 3 }, glyphs: theme.Glyphs{Ellipsis: "."}}
	bar.Draw(func() Progress { return Progress{Done: 12} })
	for range 2 {
		if _, err := out.Write([]byte("lost\n")); err != nil {
			t.Fatal(err)
		}
	}
	bar.Clear()
	got, err := os.ReadFile(f.Name())
	if want := "1.\r\x1b[Klost\nlost\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
