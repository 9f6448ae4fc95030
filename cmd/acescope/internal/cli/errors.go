package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/store/bucket"
	"acescope/engine/temporal/server"
	"acescope/sources/cluster"
)

// Exit codes, the same for every command.
const (
	ExitFine        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitDiverged    = 4
	ExitUnreachable = 5
	ExitInterrupted = 130
)

// ErrInterrupted is returned by a command that a signal stopped.
var ErrInterrupted = errors.New("interrupted")

// ExitError is an error with its exit code.
type ExitError struct {
	Code int
	Err  error
}

func (c *ExitError) Error() string { return c.Err.Error() }
func (c *ExitError) Unwrap() error { return c.Err }

// UsageError returns an error about flags, arguments or the configuration.
func UsageError(format string, args ...any) error {
	return &ExitError{ExitUsage, fmt.Errorf(format, args...)}
}

// NotFound returns an error about something that does not exist.
func NotFound(format string, args ...any) error {
	return &ExitError{ExitNotFound, fmt.Errorf(format, args...)}
}

// Diverged returns the error of a command that found a difference.
func Diverged(format string, args ...any) error {
	return &ExitError{ExitDiverged, fmt.Errorf(format, args...)}
}

// ExitCode returns the exit code for an error.
func ExitCode(err error) int {
	var c *ExitError
	var missing ace.NotFound
	var noNamespace *serviceerror.NamespaceNotFound
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &c):
		return c.Code
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.As(err, &missing), cluster.NotFound(err), errors.As(err, &noNamespace):
		return ExitNotFound
	case errors.Is(err, engine.ErrUnreachable), errors.Is(err, engine.ErrStore),
		errors.Is(err, engine.ErrStoreChanged), errors.Is(err, bucket.ErrUnavailable),
		errors.Is(err, server.ErrNoAnswer), errors.Is(err, server.ErrBroken),
		cluster.Unreachable(err), isDenied(err) && !errors.Is(err, engine.ErrDenied),
		errors.Is(err, context.DeadlineExceeded):
		return ExitUnreachable
	case errors.Is(err, engine.ErrProfile), errors.Is(err, engine.ErrSecret):
		return ExitUsage
	}
	return ExitFailed
}

// TypeUsageErrors makes cobra's errors about the arguments and flags of a command and its subcommands usage
// errors. A command that does not check its arguments takes those of its usage line. meant maps the names
// that other programs use to commands.
func TypeUsageErrors(cmd *cobra.Command, meant map[string]string) {
	check := cmd.Args
	if check == nil {
		check = argumentCount(cmd)
	}
	cmd.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			if c.HasSubCommands() && len(args) > 0 {
				return unknownCommand(c, args[0], meant)
			}
			return argumentsError(c, check, args, err)
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if c.HasSubCommands() && c.Flags().NArg() > 0 { // the flag belongs to the unknown command
			return unknownCommand(c, c.Flags().Arg(0), meant)
		}
		var invalid *pflag.InvalidValueError
		if errors.As(err, &invalid) {
			f := invalid.GetFlag()
			reason := invalid.Unwrap()
			var number *strconv.NumError
			if errors.As(reason, &number) || strings.HasPrefix(reason.Error(), "time: ") {
				reason = errors.New("must be " + wordsFor(f.Value.Type()))
			}
			return UsageError("--%s %q: %w", f.Name, invalid.GetValue(), reason)
		}
		unknown, ok := errors.AsType[*pflag.NotExistError](err)
		if ok && unknown.GetSpecifiedShortnames() == "" {
			var names []string
			c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
			if near := ace.Nearest(unknown.GetSpecifiedName(), names); near != "" {
				return UsageError("%w; did you mean --%s?", err, near)
			}
		}
		return UsageError("%w", err)
	})
	for _, sub := range cmd.Commands() {
		TypeUsageErrors(sub, meant)
	}
}

// CheckHelp makes the name of an unknown command an error of the help command of root. meant is that of
// [TypeUsageErrors].
func CheckHelp(root *cobra.Command, meant map[string]string) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // InitDefaultHelpCmd adds it
	help.Args = func(_ *cobra.Command, args []string) error {
		of, rest, err := root.Find(args)
		if len(rest) > 0 && of.HasSubCommands() {
			return unknownCommand(of, rest[0], meant)
		}
		return err
	}
}

// argumentsError returns the usage error for arguments that check refuses with an error. Cobra's checks count
// them only.
func argumentsError(c *cobra.Command, check cobra.PositionalArgs, args []string, err error) error {
	if _, own := errors.AsType[*ExitError](err); own {
		return UsageError("%w; usage: %s", err, c.UseLine())
	}
	for n := len(args) - 1; n >= 0; n-- {
		if check(c, args[:n]) == nil {
			return UsageError("unexpected argument %q; usage: %s", args[n], c.UseLine())
		}
	}
	return UsageError("an argument is missing; usage: %s", c.UseLine())
}

// wordsFor describes the values of a type of flags.
func wordsFor(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 90s or 12h"
	case "float64":
		return "a number"
	default:
		return "a whole number"
	}
}

// checkFlags returns the usage error of required flags that are missing, of flags that exclude each other, of
// an empty value, such as that of an unset variable, and of a flag that took the next one as its path. Cobra
// checks the first two later; its errors have no type and print names as Go values.
func checkFlags(cmd *cobra.Command) error {
	var missing []string
	var excluded, empty, path error
	set := map[string]string{} // a flag that is set, by the group of its excluding flags
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			if f.Annotations[cobra.BashCompOneRequiredFlag] != nil {
				missing = append(missing, "--"+f.Name)
			}
			return
		}
		for _, group := range f.Annotations[exclusiveFlags] {
			if other := set[group]; other != "" {
				excluded = UsageError("--%s and --%s exclude each other", other, f.Name)
			}
			set[group] = f.Name
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if _, may := f.Annotations[MayBeEmpty]; !may && slices.Contains(values, "") {
			empty = UsageError("--%s is empty; give it a value, or omit it", f.Name)
		}
		value := strings.TrimLeft(f.Value.String(), "[") // of a list
		if pathFlag.MatchString(f.Name) && strings.HasPrefix(value, "--") {
			path = UsageError("--%s needs a path, not the flag %s; write a path that begins with -- as ./--…",
				f.Name, strings.TrimRight(value, "]"))
		}
	})
	if len(missing) > 0 {
		return UsageError("needs %s; usage: %s", strings.Join(missing, " and "), cmd.UseLine())
	}
	return cmp.Or(excluded, empty, path)
}

// MayBeEmpty is the annotation of a flag whose empty value has a meaning.
const MayBeEmpty = "acescope_may_be_empty"

// exclusiveFlags is the annotation of a flag with its groups in which the flags exclude each other; see
// [cobra.Command.MarkFlagsMutuallyExclusive].
const exclusiveFlags = "cobra_annotation_mutually_exclusive"

// pathFlag matches the names of flags whose values are paths.
var pathFlag = regexp.MustCompile(`(^|-)(dir|file|path)$|^(junit|output|walk)$`)

// Advise adds what to do to an error about the namespace of a cluster, or about rights there.
func Advise(a *App, err error) error {
	if missing, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); ok {
		space := missing.Namespace
		return fmt.Errorf("namespace %s does not exist; create it: %s", space, setupCommand(a, space))
	}
	if isDenied(err) && !errors.Is(err, engine.ErrUnreachable) && !errors.Is(err, engine.ErrDenied) {
		return fmt.Errorf("%s; %s", strings.TrimSuffix(err.Error(), "."), engine.CredentialsAdvice)
	}
	return err
}

// setupCommand returns the command that sets up a namespace of the cluster of the settings.
func setupCommand(a *App, namespace string) string {
	if a.Settings.Address == "" && a.Settings.Profile != "" {
		return shellquote.Join("acescope", "setup", "--profile", a.Settings.Profile, "--namespace", namespace)
	}
	return ace.SetupCommand(a.Settings.Address, namespace)
}

func isDenied(err error) bool {
	_, denied := errors.AsType[*serviceerror.PermissionDenied](err)
	return denied || status.Code(err) == codes.Unauthenticated
}

// OneLine returns the text of an error as one line without control characters.
func OneLine(err error) string {
	return strings.Join(strings.Fields(SafeText(err.Error())), " ")
}

// QueryError returns a usage error that shows where a visibility query is wrong, or err if it is about
// something else.
func QueryError(query string, err error) error {
	var invalid *serviceerror.InvalidArgument
	if query == "" || !errors.As(err, &invalid) {
		return err
	}
	text := ace.Cut(SafeText(cluster.PlainError(invalid)), maxQuoted)
	if at := cluster.QueryErrorAt(query, err); at >= 0 {
		return UsageError("query, column %d, at %q: %s", at+1, ace.Cut(query[at:], maxQuoted), text)
	}
	return UsageError("query %q: %s", ace.Cut(query, maxQuoted), text)
}

// maxQuoted bounds the bytes of a query and of a server's answer that an error quotes.
const maxQuoted = 300

// CheckJSON rejects an argument that is not JSON. An empty argument is allowed.
func CheckJSON(argument []byte) error {
	var v any
	if len(argument) == 0 {
		return nil
	}
	if err := json.Unmarshal(argument, &v); err != nil {
		return UsageError("the argument is not JSON: %v", err)
	}
	return nil
}
