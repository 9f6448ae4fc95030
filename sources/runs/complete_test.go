package runs

import (
	"testing"

	"acescope/engine/ace"
)

func TestCompletion(t *testing.T) {
	values := func(a string) []string {
		switch a {
		case ace.AttrExit:
			return []string{"success", "wrong", "failed"}
		case ace.AttrExperiment:
			return []string{"finance-7", "two words"}
		}
		return nil
	}
	for _, c := range []struct {
		line string
		from int
		want string // the first option
		all  int    // how many, 0 for not asked
	}{
		{"wr", 0, "wrong", 1},
		{"exp", 0, "exp=", 0},
		{"exp=", 4, "finance-7", 2},
		{"exp=t", 4, `"two words"`, 1},
		{"exit=wrong,f", 11, "failed", 1},
		{"wrong Exper", 6, "experiment=", 0},
		{"ExitStatus ", 11, "= ", len(operators)},
		{"ExitStatus = ", 13, `"success"`, 3},
		{`ExitStatus = "w`, 13, `"wrong"`, 1},
		{`ExitStatus IN ("wrong", `, 24, `"success"`, 3},
		{`ExitStatus NOT IN (`, 19, `"success"`, 3},
		{`ExitStatus = "wrong" `, 21, "AND ", 0},
		{`ExitStatus = "wrong" AND ExitS`, 25, "ExitStatus=", 1},
		{`ExitStatus="wrong" a`, 19, "AND ", 0},
		{"nothing-like-it", 0, "", 0},
	} {
		from, options := Completion(c.line, len(c.line), values)
		first := ""
		if len(options) > 0 {
			first = options[0]
		}
		if from != c.from || first != c.want || c.all > 0 && len(options) != c.all {
			t.Errorf("%q: from %d %q", c.line, from, options)
		}
	}
}

func FuzzCompletion(f *testing.F) {
	for _, s := range []string{"", "exp=a,b", `ExitStatus IN ("a", `, `"`, "a='", "=", "((", "NOT IN (",
		`\"`} {
		f.Add(s, len(s))
	}
	f.Fuzz(func(t *testing.T, line string, cursor int) {
		from, options := Completion(line, cursor, func(string) []string {
			return []string{"a", `b"c`, "d e"}
		})
		if from < 0 || from > len(line) || len(options) > maxOptions {
			t.Fatalf("%q at %d: from %d, %d options", line, cursor, from, len(options))
		}
	})
}
