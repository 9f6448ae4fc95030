package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
)

// freeArguments are the words of usage lines for arguments that have no known set of values.
var freeArguments = []string{"FILE", "DIR", "PATH", "CASES", "PROMPT", "TEXT", "NAME", "JSON", "-", "CALL",
	"BULLET",
	"VERSION", "GROUP", "COMMAND", "TASK@RUN", "-q", "QUERY", "BATCH"}

// listsValues matches the help of a flag that lists three values or more.
var listsValues = regexp.MustCompile(
	`(?:^|: )[a-z][\w-]*(?:, [a-z][\w-]*)+(?:,| or|, or) [a-z][\w-]*(?:$|;| \()`)

// TestEverythingCompletes checks that each argument and each flag completes whose values are known.
func TestEverythingCompletes(t *testing.T) {
	a := &cli.App{}
	cmd, kinds := completing(a), completions(a)
	for _, kind := range flagKinds {
		if kinds[kind] == nil {
			t.Errorf("flagKinds: no kind %s", kind)
		}
	}
	eachCommand(cmd, func(c *cobra.Command) {
		for _, place := range cli.Placeholders(c) {
			for _, kind := range place {
				if kinds[kind] == nil && !slices.Contains(freeArguments, kind) {
					t.Errorf("%s: the argument %s is neither completed nor free", c.UseLine(), kind)
				}
			}
		}
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			_, completes := c.GetFlagCompletionFunc(f.Name)
			_, known := flagKinds[f.Name]
			if !completes && (known || listsValues.MatchString(f.Usage)) {
				t.Errorf("%s --%s (%s) does not complete", c.CommandPath(), f.Name, f.Usage)
			}
		})
	})
}

func eachCommand(c *cobra.Command, do func(*cobra.Command)) {
	if c.IsAvailableCommand() && c.Name() != "completion" {
		do(c)
	}
	for _, sub := range c.Commands() {
		eachCommand(sub, do)
	}
}

// TestCompletions checks what some flags and arguments complete to, and that this starts no server.
func TestCompletions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	for line, want := range map[string]string{
		"list --type ":                        "task experiment blueprint session flow",
		"list --columns task,st":              "task,status",
		"list --sort ver":                     "verdict",
		"reset x --phase re":                  "reflector",
		"ask x --phase cur":                   "curator",
		"config --theme da":                   "dark",
		"cost --by day,mo":                    "day,month day,model",
		"cost --by model,mo":                  "model,month",
		"cost --agent a":                      "acescope",
		"playbook export x --to s":            "skillbook skill",
		"playbook show --format ":             "text skillbook json",
		"experiment show x --metric ac":       "accuracy",
		"logs --level w":                      "warn",
		"import x --order n":                  "name",
		"diff a b --only ch":                  "changed",
		"agent new x --type ":                 "agent deterministic",
		"agent start x --mode async_p":        "async_poll",
		"agent start x --require-executor co": "codex",
		"runner start --executor c":           "claude-code codex",
		"session start --serve-tool r":        "read_file run_command",
		"run --grader j":                      "judge",
		"run --provider b":                    "builtin",
		"run --adapter of":                    "offline",
		"run --phase cur":                     "curator=",
		"run --preset ":                       "ace-paper",
		"flow show package":                   "package-build",
		"show ":                               "",
		"gate x --no-regressions ":            "",
	} {
		args := append([]string{"__complete", "--data-dir", dir}, strings.Split(line, " ")...)
		if got := complete(t, args); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("completion started a server")
	}
}

// complete returns the completions without their descriptions.
func complete(t *testing.T, args []string) string {
	t.Helper()
	var out bytes.Buffer
	a := &cli.App{Out: &out, Err: &bytes.Buffer{}}
	cmd := completing(a)
	cmd.SetOut(&out)
	cmd.SetErr(a.Err)
	cmd.SetArgs(args)
	defer a.Close()
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(args, err)
	}
	var words []string
	for l := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
		if !strings.HasPrefix(word, ":") && !strings.HasPrefix(word, "Completion ended") && word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// TestSuggestions checks the commands that errors about unknown commands name: each of them exists.
func TestSuggestions(t *testing.T) {
	cmd := root(&cli.App{})
	for name, command := range meant {
		words := strings.Fields(command)
		found, rest, err := cmd.Find(words)
		if err != nil || !found.Runnable() || found.HasSubCommands() {
			t.Errorf("%s: %s is no command", name, command)
		}
		for _, w := range rest {
			if flag, ok := strings.CutPrefix(w, "--"); ok && found.Flags().Lookup(flag) == nil {
				t.Errorf("%s: %s has no flag --%s", name, found.CommandPath(), flag)
			}
		}
	}
	for line, want := range map[string]string{
		"runs":                       `unknown command "runs"; did you mean "acescope list"?`,
		"ls --json":                  `did you mean "acescope list"?`,
		"experiments":                `did you mean "acescope experiment list"?`,
		"health":                     `did you mean "acescope doctor"?`,
		"operations x --run y":       `did you mean "acescope show RUN --operations"?`,
		"terminate x --reason y":     `did you mean "acescope cancel RUN --force --reason TEXT"?`,
		"agent stop x":               `did you mean "acescope cancel RUN"?`,
		"agent runs --status failed": `did you mean "acescope list --type blueprint"?`,
		"verify --all":               `did you mean "acescope replay verify"?`,
		"tal":                        `did you mean "acescope tail"?`,
		"heatlh":                     `did you mean "acescope doctor"?`,
		"lsit":                       `did you mean "acescope list"?`,
		"playbook lst":               `did you mean "acescope playbook branches"?`,
		"playbook ls":                `did you mean "acescope playbook branches"?`,
		"experiment ls":              `did you mean "acescope experiment list"?`,
		"session sned":               `did you mean "acescope session send"?`,
		"zzzzz":                      `run "acescope --help"`,
	} {
		cmd := root(&cli.App{})
		cmd.SetArgs(strings.Fields(line))
		err := cmd.ExecuteContext(t.Context())
		if cli.ExitCode(err) != cli.ExitUsage || !strings.HasSuffix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
