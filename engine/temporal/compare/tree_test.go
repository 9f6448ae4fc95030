package compare

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"acescope/engine/internal/plainjson"
)

// sessionJSON returns a result with n calls except those whose number is a multiple of skip.
func sessionJSON(n, skip int) json.RawMessage {
	var list []any
	for i := range n {
		if skip == 0 || i%skip != 0 {
			list = append(list, map[string]any{"id": fmt.Sprint(i), "ok": true, "n": i,
				"args": map[string]any{"x": i * 2, "y": "text"}})
		}
	}
	data, err := plainjson.Marshal(map[string]any{"calls": list})
	if err != nil {
		panic(err)
	}
	return data
}

// BenchmarkChanges compares two payloads, one of them without every 17th element.
func BenchmarkChanges(b *testing.B) {
	for _, n := range []int{100, 1000, 4000} {
		x, y := sessionJSON(n, 0), sessionJSON(n, 17)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				p := &Pair{}
				if got := len(p.changes(x, y, true)) + p.More; got != (n+16)/17 {
					b.Fatalf("%d changes", got)
				}
			}
		})
	}
}

// randomJSON returns a value from a small set, so that equal values are frequent.
func randomJSON(r *rand.Rand, depth int) any {
	switch kind := r.IntN(7); {
	case kind < 2 && depth > 0:
		all := map[string]any{}
		for range r.IntN(4) {
			all[string(rune('a'+r.IntN(4)))+[]string{"", "/", "~"}[r.IntN(3)]] = randomJSON(r, depth-1)
		}
		return all
	case kind < 4 && depth > 0:
		var list []any
		for range r.IntN(5) {
			list = append(list, randomJSON(r, depth-1))
		}
		return append([]any{}, list...)
	case kind == 4:
		return nil
	case kind == 5:
		return r.IntN(2) == 0
	}
	return r.IntN(3)
}

// at returns the value at a JSON pointer.
func at(v any, path string) (any, bool) {
	for _, part := range strings.Split(path, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[part]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Random values have no changes if and only if they are equal; removed values are in A at
// their path, and added values are in B.
func TestChangesAreTrue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		x, _ := plainjson.Marshal(randomJSON(r, 4))
		y, _ := plainjson.Marshal(randomJSON(r, 4))
		changes := (&Pair{}).changes(x, y, true)
		// marshal sorts members, and the numbers are whole
		if (len(changes) == 0) != (string(x) == string(y)) {
			t.Fatalf("%s, %s: %d changes", x, y, len(changes))
		}
		a, _ := parse(x, true)
		b, _ := parse(y, true)
		for _, c := range changes {
			if c.A != nil {
				stands, ok := at(a, c.Path)
				said, _ := plainjson.Marshal(stands)
				if !ok || string(said) != string(c.A) {
					t.Fatalf("%s, %s: %s is said to be at %q", x, y, c.A, c.Path)
				}
				continue
			}
			stands, ok := at(b, c.Path)
			// Within lists of different lengths the place is that in the first one.
			if said, _ := plainjson.Marshal(stands); (!ok || string(said) != string(c.B)) &&
				!strings.Contains(string(y), string(c.B)) {
				t.Fatalf("%s, %s: %s is said to be new at %q", x, y, c.B, c.Path)
			}
		}
	}
}
