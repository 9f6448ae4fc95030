package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// Variables that name the session and the run of the agent or program that calls a command.
const (
	envSession = "ACESCOPE_SESSION_ID"
	envRun     = "ACESCOPE_RUN_ID"
)

// checkedValue is the value of a flag that is checked when the flag is parsed.
type checkedValue struct {
	kind string
	get  func() string
	set  func(string) error

	choices []string // all values, if they are a few words
}

// Choices returns the values that completion offers.
func (v checkedValue) Choices() []string { return v.choices }

func (v checkedValue) String() string     { return v.get() }
func (v checkedValue) Set(s string) error { return v.set(s) }
func (v checkedValue) Type() string       { return v.kind }

// intVar adds a flag for a number from low to high. The default is *p.
func intVar[N int | int64](fs *pflag.FlagSet, p *N, name string, low, high N, usage string) {
	fs.Var(checkedValue{kind: "int", get: func() string { return strconv.FormatInt(int64(*p), 10) },
		set: func(s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < int64(low) || n > int64(high) {
				return fmt.Errorf("must be a number from %d to %d", low, high)
			}
			*p = N(n)
			return nil
		}}, name, usage)
}

// secondsVar adds a flag for a duration of at least a second, kept in seconds. 0 means that the flag is not
// set.
func secondsVar(fs *pflag.FlagSet, p *int, name, usage string) {
	value := func() string {
		if *p == 0 {
			return ""
		}
		return (time.Duration(*p) * time.Second).String()
	}
	fs.Var(checkedValue{kind: "duration", get: value, set: func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < time.Second || d > math.MaxInt32*time.Second {
			return errors.New("must be a duration of a second or more, such as 90s or 5m")
		}
		*p = int(d / time.Second)
		return nil
	}}, name, usage)
}

// choiceVar adds a flag for one of the choices. The default is *p.
func choiceVar[T ~string](fs *pflag.FlagSet, p *T, name string, choices []T, usage string) {
	var words []string
	for _, c := range choices {
		words = append(words, string(c))
	}
	fs.Var(checkedValue{kind: "string", choices: words, get: func() string { return string(*p) },
		set: func(s string) error {
			if !slices.Contains(choices, T(s)) {
				return fmt.Errorf("must be one of %s", cli.Join(choices))
			}
			*p = T(s)
			return nil
		}}, name, usage)
}

// nameVar adds a flag for the name of a blueprint or the id of a run, session or runner. The default is *p.
func nameVar(fs *pflag.FlagSet, p *string, name, usage string) {
	fs.Var(checkedValue{kind: "string", get: func() string { return *p }, set: func(s string) error {
		*p = s
		return checkName(s)
	}}, name, usage)
}

// checkName rejects what cannot be a name or an id. An empty one is allowed.
func checkName(s string) error {
	if s != "" && !run.ValidName(s) {
		return fmt.Errorf("%q is not a name or an id: use up to 100 letters, digits, dots, dashes and underscores, "+
			"and start with a letter or a digit", s)
	}
	return nil
}

// nameArgs accepts exactly one argument, the name of a blueprint or an id.
func nameArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.ExactArgs(1)(cmd, args); err != nil {
		return err
	}
	if args[0] == "" {
		return cli.UsageError("the name is empty")
	}
	if err := checkName(args[0]); err != nil {
		return cli.UsageError("%w", err)
	}
	return nil
}

// requirementFlags adds the flags for what a run requires of its runner, in addition to its blueprint.
func requirementFlags(fs *pflag.FlagSet, r *runner.Requirements) {
	fs.StringArrayVar(&r.Tags, "require-tag", nil, "tag that the runner must have; can be repeated")
	fs.StringVar(&r.Hostname, "require-host", "", "host name of the runner")
	fs.StringVar(&r.ExecutorType, "require-executor", "",
		"executor type: deterministic, claude-code, codex, gemini, opencode or a custom one")
	fs.StringVar(&r.ProjectDir, "require-project-dir", "", "project directory of the runner")
}

// ReadArgument returns the value of a flag, or the content of a file for @FILE and of standard input for "-".
func ReadArgument(ctx context.Context, flag, value string, limit int64) ([]byte, error) {
	path, isFile := strings.CutPrefix(value, "@")
	if value == "-" {
		path, isFile = "-", true
	}
	if !isFile {
		return []byte(value), nil
	}
	return readInput(ctx, flag, path, limit)
}

// readInput reads a file, or standard input for "-". Blank content is an error.
func readInput(ctx context.Context, flag, path string, limit int64) ([]byte, error) {
	data, err := cli.ReadFile(ctx, path, limit)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(data)) == "" {
		return nil, cli.UsageError("%s %s: the input is empty", flag, cli.SafeText(path))
	}
	return data, nil
}

// existingDir returns the absolute path of a directory, by default the current one.
func existingDir(flag, dir string) (string, error) {
	dir = cmp.Or(cli.Home(dir), ".")
	if !cli.IsDir(dir) {
		return "", cli.UsageError("%s %s: no such directory", flag, cli.SafeText(dir))
	}
	return filepath.Abs(dir)
}

// ParseParams returns parameters in the form NAME=VALUE or NAME:=JSON as an object. The blueprint's schema
// decides the type of a VALUE: "2" is a number if the schema allows a number. Without a type in the schema a
// VALUE is a text. A repeated name adds to a list.
func ParseParams(params []string, schema json.RawMessage) (json.RawMessage, error) {
	parameters := map[string]blueprint.Parameter{}
	// an invalid schema is reported when the run starts
	if s, err := blueprint.Compile(schema, run.StdinJSON); err == nil {
		for _, p := range s.Parameters() {
			parameters[p.Name] = p
		}
	}
	values := map[string]any{} // json.RawMessage, or []json.RawMessage for a list that is given by its items
	for _, param := range params {
		name, text, isJSON, err := splitParam(param)
		if err != nil {
			return nil, err
		}
		if err := addParam(values, parameters[name], name, text, isJSON); err != nil {
			return nil, cli.UsageError("--param %s: %w", cli.SafeText(param), err)
		}
	}
	return json.Marshal(values)
}

// splitParam splits NAME=TEXT and NAME:=JSON.
func splitParam(param string) (name, text string, isJSON bool, err error) {
	name, text, ok := strings.Cut(param, "=")
	name, isJSON = strings.CutSuffix(name, ":")
	if !ok || name == "" {
		err = cli.UsageError("--param %s: write NAME=VALUE or NAME:=JSON", cli.SafeText(param))
	}
	return name, text, isJSON, err
}

// addParam adds the value of a parameter, or an item of it.
func addParam(values map[string]any, p blueprint.Parameter, name, text string, isJSON bool) (err error) {
	before, repeated := values[name]
	items, isItems := before.([]json.RawMessage)
	isList := slices.Contains(strings.Split(p.Type, "|"), "array") && !isText(p.Type)
	var value json.RawMessage
	switch {
	case isJSON && !json.Valid([]byte(text)):
		return fmt.Errorf("%s is not JSON; quote a text, or write NAME=TEXT", name)
	case isJSON:
		value = json.RawMessage(text)
	case isList && (!repeated || isItems):
		value, err = valueOf(text, p.Items)
		values[name] = append(items, value)
		return err
	case !isList:
		value, err = valueOf(text, p.Type)
	}
	switch {
	case err != nil:
		return err
	case isItems, repeated && isList:
		return fmt.Errorf("%s is given both by its items and as a whole list", name)
	case repeated:
		return fmt.Errorf("%s is repeated, but its schema is not a list", name)
	}
	values[name] = value
	return nil
}

// isText reports whether any text is a value of the types.
func isText(types string) bool {
	return types == "" || slices.Contains(strings.Split(types, "|"), "string")
}

// valueOf returns the value of one of the types that a text stands for.
func valueOf(text, types string) (json.RawMessage, error) {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		kind := blueprint.TypeOf(value)
		allowed := strings.Split(types, "|")
		// A text is a value as it is written, without quotes.
		if kind != "string" && slices.Contains(allowed, kind) ||
			kind == "number" && slices.Contains(allowed, "integer") {
			return json.RawMessage(strings.TrimSpace(text)), nil
		}
	}
	if isText(types) {
		return json.Marshal(text)
	}
	return nil, errors.New(cli.SafeText(fmt.Sprintf("%q does not match the schema, which requires: %s", text,
		strings.ReplaceAll(types, "|", " or "))))
}
