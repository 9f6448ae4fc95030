package blueprint

import (
	"testing"

	"acescope/engine/tasks/run"
)

// BenchmarkLoad reads a blueprint from its directory, as every start of a run does.
func BenchmarkLoad(b *testing.B) {
	l := Library{Dirs: []string{examples}}
	for b.Loop() {
		if _, err := l.Load("site-crawler"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck fills in and checks parameters, as the start of a run and the runner do.
func BenchmarkCheck(b *testing.B) {
	s, err := Compile([]byte(crawler), run.StdinJSON)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Check([]byte(`{"url": "http://127.0.0.1/", "depth": 3}`)); err != nil {
			b.Fatal(err)
		}
	}
}
