package grade

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/internal/process"
)

// Program is a program that grades answers. It reads a [ProgramInput] from standard input and writes an
// object with its score from 0 to 1, or with whether the answer is correct; see [ParseScore].
type Program struct {
	Argv    []string
	Dir     string // absolute
	Timeout time.Duration
}

// Path returns the path of the program on this machine, as a worker finds it.
func (p Program) Path() (string, error) { return process.LookPath(p.Argv[0], p.Dir, os.Environ()) }

// ProgramInput is what a program gets, as JSON.
type ProgramInput struct {
	TaskID   string `json:"task_id"`
	Question string `json:"question"` // the prompt of the task
	Answer   string `json:"answer"`
	Label    string `json:"label"`
}

var programName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,39}$`)

// ProgramOf returns the name of the program that a grader is, as in program:NAME.
func ProgramOf(grader string) (name string, ok bool) {
	name, ok = strings.CutPrefix(grader, ace.GraderProgram)
	return name, ok && programName.MatchString(name)
}

// ParseScore parses the output of a program: {"score": 0.5} or {"correct": true}, with any other fields.
func ParseScore(output string) (float64, error) {
	var v struct {
		Score   *float64 `json:"score"`
		Correct *bool    `json:"correct"`
	}
	switch err := json.Unmarshal([]byte(output), &v); {
	case err != nil || (v.Score == nil) == (v.Correct == nil):
		return 0, fmt.Errorf(
			`its output is not a JSON object with a number "score" or a boolean "correct": %q`,
			ace.Cut(strings.TrimSpace(output), 80))
	case v.Correct != nil:
		return scoreOf(*v.Correct), nil
	case *v.Score < 0 || *v.Score > 1:
		return 0, fmt.Errorf("its score %v is not from 0 to 1", *v.Score)
	}
	return math.Round(*v.Score*1e6) / 1e6, nil
}
