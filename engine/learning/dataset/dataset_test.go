package dataset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/store/artifact"
)

func store(t *testing.T) *artifact.Store {
	t.Helper()
	s, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ingest reads a data set of the given content.
func ingest(ctx context.Context, s *artifact.Store, content string, limit int) (Set, error) {
	return Ingest(ctx, "sets/set.jsonl", strings.NewReader(content), s, limit)
}

func TestParseLine(t *testing.T) {
	for line, want := range map[string]string{
		`{"context":"c","target":"t"}`:      "c=t",
		`{"question":"q","answer":3.50}`:    "q=3.50",
		`{"prompt":"p","label":null}`:       "p",
		`{"prompt":"p","label":["a",1]}`:    `p=["a",1]`,
		`{"context":"c","target":"","x":1}`: "c=",

		`{"context":"c","question":"q","target":"t"}`: "c\n\nq=t",
		`{"context":"","question":"q","target":"t"}`:  "q=t",
		`{"context":"c","question":"c"}`:              "c",
		`{"input":"i","output":"o"}`:                  "i=o",
	} {
		task, _, err := parseLine([]byte(line))
		got := task.Prompt
		if task.Label != nil {
			got += "=" + *task.Label
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", line, got, err)
		}
	}
	if task, _, _ := parseLine([]byte(`{"context":"c","question":"q","target":"t"}`)); task.Subject != "q" {
		t.Errorf("subject %q", task.Subject)
	}
	for _, bad := range []string{``, `{`, `[]`, `{"target":"t"}`, `{"context":"  "}`, `{"context":3}`} {
		if task, _, err := parseLine([]byte(bad)); err == nil {
			t.Errorf("%s was read as %+v", bad, task)
		}
	}
}

func TestL2LostFields(t *testing.T) {
	content := `{"context":"c","question":"q","target":"t","answer":"a"}` + "\n" +
		`{"context":"c","others":{"n":1},"id":null}` + "\n" + `{"context":"c","others":{"n":2}}` + "\n"
	s := store(t)
	set, err := ingest(t.Context(), s, content, 0)
	if want := []LostField{{"answer", 1}, {"others", 2}}; err != nil || !slices.Equal(set.Lost, want) {
		t.Errorf("%+v, %v; want %+v", set.Lost, err, want)
	}
	tasks, err := Load(t.Context(), s, set.Ref, 0, 1)
	if err != nil || tasks[0].Prompt != "c\n\nq" {
		t.Errorf("%+v, %v", tasks, err)
	}
	line := []string{}
	for i := range 2 * maxLost {
		line = append(line, fmt.Sprintf(`"f%d":1`, i))
	}
	set, err = ingest(t.Context(), s, `{"context":"c",`+strings.Join(line, ",")+"}", 0)
	if n := len(set.Lost); err != nil || n != maxLost+1 ||
		set.Lost[maxLost] != (LostField{moreLost, maxLost}) {
		t.Errorf("many fields: %+v, %v", set.Lost, err)
	}
}

func TestL7Header(t *testing.T) {
	s := store(t)
	set, err := ingest(t.Context(), s, "\n{\"grader\": \"numeric:1%\"}\n{\"context\":\"a\"}\n", 0)
	if err != nil || set.Grader != "numeric:1%" || set.Tasks != 1 {
		t.Fatalf("%+v, %v", set, err)
	}
	if tasks, err := Load(t.Context(), s, set.Ref, 0, 2); err != nil || len(tasks) != 1 ||
		tasks[0].Prompt != "a" {
		t.Errorf("%+v, %v", tasks, err)
	}
	var bad *LineError
	for content, line := range map[string]int{
		"{\"grader\": \"best\"}\n{\"context\":\"a\"}\n":        1,
		"{\"context\":\"a\"}\n{\"grader\": \"choice\"}\n":      2,
		"{\"grader\": \"choice\"}\n{\"grader\": \"choice\"}\n": 2,
	} {
		if _, err := ingest(t.Context(), s, content, 0); !errors.As(err, &bad) || bad.Line != line {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// A shuffled data set has the same tasks; equal seeds give equal orders, others do not.
func TestShuffle(t *testing.T) {
	var content strings.Builder
	for i := range 20 {
		fmt.Fprintf(&content, "{\"context\":\"%02d\",\"target\":\"%d\"}\n", i, i)
	}
	s := store(t)
	set, err := ingest(t.Context(), s, content.String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	prompts := func(seed uint64) (ace.Ref, []string) {
		ref, err := Shuffle(t.Context(), s, set.Ref, seed)
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := Load(t.Context(), s, ref, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, task := range tasks {
			list = append(list, task.Prompt)
		}
		return ref, list
	}
	ref, one := prompts(1)
	if again, _ := prompts(1); again.SHA256 != ref.SHA256 {
		t.Error("equal seeds give different orders")
	}
	if other, _ := prompts(2); other.SHA256 == ref.SHA256 || ref.SHA256 == set.Ref.SHA256 {
		t.Error("the order does not depend on the seed")
	}
	// The order of seed 1 is part of the record of an experiment and must not change.
	if got := strings.Join(one[:5], " "); got != "13 15 09 02 06" {
		t.Errorf("seed 1 begins with %s", got)
	}
	slices.Sort(one)
	if len(one) != 20 || one[0] != "00" || one[19] != "19" || len(slices.Compact(one)) != 20 {
		t.Errorf("tasks %v", one)
	}
	if _, err := Shuffle(t.Context(), s, ace.Ref{SHA256: set.Ref.SHA256, Size: MaxShuffled + 1},
		1); err == nil {
		t.Error("a data set that is too large was shuffled")
	}
}

func TestIngestKeepsTasksBeforeError(t *testing.T) {
	content := "{\"context\":\"a\"}\n\n{\"context\":\"b\"}\n{\"context\":\n{\"context\":\"d\"}\n"
	s := store(t)
	set, err := ingest(t.Context(), s, content, 0)
	var bad *LineError
	if !errors.As(err, &bad) || bad.Line != 4 || set.Tasks != 2 || set.ID != "set" {
		t.Fatalf("%+v, %v", set, err)
	}
	tasks, err := Load(t.Context(), s, set.Ref, 0, 10)
	if err != nil || len(tasks) != 2 || tasks[1].Prompt != "b" {
		t.Fatalf("%+v, %v", tasks, err)
	}
}

// A byte order mark and CR before LF are no part of the lines.
func TestIngestFromWindows(t *testing.T) {
	s := store(t)
	content := "\ufeff{\"context\":\"a\"}\r\n{\"context\":\"b\"}\r\n"
	set, err := ingest(t.Context(), s, content, 0)
	if err != nil || set.Tasks != 2 {
		t.Fatalf("%+v, %v", set, err)
	}
	tasks, err := Load(t.Context(), s, set.Ref, 0, 10)
	if err != nil || len(tasks) != 2 || tasks[0].Prompt != "a" || tasks[1].Prompt != "b" {
		t.Errorf("%+v, %v", tasks, err)
	}
}

func TestIngestErrors(t *testing.T) {
	s := store(t)
	if _, err := ingest(t.Context(), s, "\n \n", 0); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty: %v", err)
	}
	long := `{"context":"` + strings.Repeat("x", MaxLine) + `"}`
	var bad *LineError
	if _, err := ingest(t.Context(), s, long, 0); !errors.As(err, &bad) || bad.Line != 1 {
		t.Errorf("long line: %v", err)
	}
	_, err := ingest(t.Context(), s, "\xff\xfe{\x00\"\x00", 0)
	if err == nil || !strings.Contains(err.Error(), "not a text in UTF-8") {
		t.Errorf("UTF-16: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ingest(ctx, s, `{"context":"a"}`, 0); err == nil {
		t.Error("a canceled ingest succeeded")
	}
}

func TestLoadRanges(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "{\"context\":\"task %d\"}\n", i)
	}
	s := store(t)
	set, err := ingest(t.Context(), s, b.String(), 190)
	if err != nil || set.Tasks != 190 {
		t.Fatalf("%+v, %v", set, err)
	}
	for _, from := range []int{0, 1, 63, 64, 65, 127, 128, 180} {
		tasks, err := Load(t.Context(), s, set.Ref, from, 10)
		if err != nil || len(tasks) != 10 {
			t.Fatalf("from %d: %d tasks, %v", from, len(tasks), err)
		}
		for i, task := range tasks {
			if task.Index != from+i || task.Prompt != fmt.Sprint("task ", from+i) {
				t.Errorf("from %d, %d: %+v", from, i, task)
			}
		}
	}
	if _, err := Load(t.Context(), s, set.Ref, 300, 1); err == nil {
		t.Error("a task beyond the end was loaded")
	}
}

func TestLoadIsBounded(t *testing.T) {
	big := strings.Repeat("y", ace.InlineBytes)
	var b strings.Builder
	for range 30 {
		fmt.Fprintf(&b, "{\"context\":%q}\n", big)
	}
	fmt.Fprintf(&b, "{\"context\":%q}\n", big+"z")
	s := store(t)
	set, err := ingest(t.Context(), s, b.String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := Load(t.Context(), s, set.Ref, 0, 31)
	if err != nil || len(tasks) == 0 || len(tasks) > maxBatch/len(big) {
		t.Fatalf("%d tasks, %v", len(tasks), err)
	}
	last, err := Load(t.Context(), s, set.Ref, 30, 1)
	if err != nil || last[0].PromptRef == nil || last[0].Prompt != "" {
		t.Fatalf("%+v, %v", last, err)
	}
}

func FuzzScan(f *testing.F) {
	f.Add("{\"context\":\"a\",\"target\":1}\n{\"context\":\"b\"}")
	f.Add("\n\n\x00{}\r\n")
	f.Fuzz(func(t *testing.T, content string) {
		n := 0
		err := scan(lines(strings.NewReader(content)), "f", nil,
			func(task ace.Task, raw []byte, _ []string) (bool, error) {
				if task.Index != n || strings.TrimSpace(task.Prompt) == "" || len(raw) == 0 {
					t.Fatalf("task %d: %+v", n, task)
				}
				n++
				return true, nil
			})
		var bad *LineError
		if err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
	})
}
