package blueprint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"acescope/engine/run"
)

// ErrExists says that there is something already where a new blueprint was to be.
var ErrExists = errors.New("there is something of that name already")

// New writes a new blueprint into a directory of a library, whole or not at all, and never
// over something. It can be run as it is. strategy is for programs, "" for stdin_json.
// It returns the blueprint's directory.
func New(library, name string, of run.BlueprintType, strategy run.Strategy) (string, error) {
	if !run.ValidName(name) {
		return "", fmt.Errorf("%w: %s is no blueprint's name: letters, digits, dot, dash and underscore only, beginning with a letter or digit, at most 100", run.ErrBadRequest, quoted(name))
	}
	files, err := starter(name, of, strategy)
	if err != nil {
		return "", err
	}
	library, err = filepath.Abs(library)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(library, 0o755); err != nil {
		return "", err
	}
	dir := filepath.Join(library, name)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s: %w", dir, ErrExists)
		}
		return "", err
	}
	making, err := os.MkdirTemp(library, ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(making) // nothing is left of it where it was renamed
	for file, text := range files {
		mode := fs.FileMode(0o644)
		if file == CommandFile {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(making, file), []byte(text), mode); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(making, 0o755); err != nil {
		return "", err
	}
	return dir, os.Rename(making, dir)
}

// starter is the files of a new blueprint.
func starter(name string, of run.BlueprintType, strategy run.Strategy) (map[string]string, error) {
	switch of {
	case run.Agent:
		if strategy != "" {
			return nil, fmt.Errorf("%w: a parameter strategy is for programs", run.ErrBadRequest)
		}
		main, err := pretty(struct {
			Name        string   `json:"name"`
			Description string   `json:"description"`
			Type        string   `json:"type"`
			Tags        []string `json:"tags"`
		}{name, "Answers in one sentence.", "agent", []string{}})
		return map[string]string{AgentFile: main, PromptFile: "Answer in one sentence. Say what you do not know.\n"}, err
	case run.Deterministic:
		if strategy == "" {
			strategy = run.StdinJSON
		}
		script, ok := scripts()[strategy]
		if !ok {
			return nil, fmt.Errorf("%w: there is no strategy %s: stdin_json, args, env or file", run.ErrBadRequest, quoted(string(strategy)))
		}
		main, err := pretty(struct {
			Name        string   `json:"name"`
			Description string   `json:"description"`
			Type        string   `json:"type"`
			Tags        []string `json:"tags"`
			Strategy    string   `json:"parameter_strategy"`
			Timeout     int      `json:"timeout_seconds"`
		}{name, "Gives back the parameters that it gets.", "deterministic", []string{}, string(strategy), 60})
		return map[string]string{AgentFile: main, ParamsFile: starterSchema, CommandFile: script}, err
	}
	return nil, fmt.Errorf("%w: there is no type %s: agent or deterministic", run.ErrBadRequest, quoted(string(of)))
}

func pretty(v any) (string, error) {
	raw, err := json.MarshalIndent(v, "", "  ")
	return string(raw) + "\n", err
}

const starterSchema = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "greeting": {
      "type": "string",
      "default": "hello",
      "description": "What to give back"
    },
    "times": {
      "type": "integer",
      "minimum": 1,
      "maximum": 10,
      "default": 1,
      "description": "How often"
    }
  }
}
`

// scripts are programs that give back their parameters, one for each strategy.
func scripts() map[run.Strategy]string {
	const begin = "#!/bin/sh\n"
	return map[run.Strategy]string{
		run.StdinJSON: begin + "# The parameters are one JSON object on standard input. JSON on standard output is the run's output.\nexec cat\n",
		run.Args:      begin + "# The parameters are flags: --greeting=hello --times=1.\nfor flag; do\n\tprintf '%s\\n' \"$flag\"\ndone\n",
		run.Env:       begin + "# The parameters are variables: PARAM_GREETING, PARAM_TIMES.\nprintf '%s\\n' \"$PARAM_GREETING\" \"$PARAM_TIMES\"\n",
		run.File:      begin + "# The parameters are one JSON object in a file, whose path is the last argument.\nexec cat \"$1\"\n",
	}
}
