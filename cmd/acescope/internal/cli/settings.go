package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"acescope/cmd/acescope/conffile"
	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/webui"
	"acescope/sources/cluster"
	"acescope/sources/telemetry"
	"acescope/theme"
)

// Settings are the effective settings. Their flags point to the fields, so that Settings must not be copied.
type Settings struct {
	ConsoleSettings
	DataDir      string
	ReadOnly     bool
	TrustDataDir bool
	Address      string
	Namespace    string
	Profile      string
	Observe      string // on, spool or off
	NoRunner     bool
	RecordCalls  bool
	Store        string
	TaskQueue    string
	Metrics      string
	OTLP         string
	// Transcripts and AgentsDirs are lists of directories as in PATH, "" for the default directories.
	Transcripts string
	AgentsDirs  string

	UIAddress     string
	CodecEndpoint string
	CodecAuth     string // a secret

	Sources  map[string]Source // by name of the setting
	File     conffile.File
	Warnings []string
	settings []setting
}

type ConsoleSettings struct {
	Theme     string
	Mouse     bool
	Refresh   time.Duration
	FrameRate int
	Links     string // auto, on or off
	EditorURL string
}

// Source is where the value of a setting comes from.
type Source struct {
	level sourceLevel
	Text  string // "flag --theme", "env ACESCOPE_THEME", "FILE:LINE" or "default"
}

// DefaultSource is the source of a setting that is set nowhere.
var DefaultSource = Source{fromDefault, "default"}

// sourceLevel orders sources: a higher level overrides the lower ones.
type sourceLevel int

const (
	fromDefault sourceLevel = iota
	fromFile
	fromEnv
	fromFlag
)

// Values of the setting observe.
const (
	ObserveOn    = "on"
	observeSpool = "spool"
	ObserveOff   = "off"
)

// Values of the setting links.
const (
	LinksAuto = "auto"
	linksOn   = "on"
	linksOff  = "off"
)

// HasLinks reports whether the console draws hyperlinks.
func (s *Settings) HasLinks(getenv func(string) string) bool {
	return s.Links == linksOn || s.Links == LinksAuto && theme.HasLinks(getenv)
}

const (
	minRefresh, maxRefresh     = 500 * time.Millisecond, time.Hour
	minFrameRate, maxFrameRate = 1, 120
	DefaultFrameRate           = 20
)

// setting is one setting. Its flag holds the type, the default, the description and the value.
type setting struct {
	*pflag.Flag
	name  string // in the configuration file
	env   string
	scope scope
}

// scope says which commands have a flag for a setting.
type scope int

const (
	everyCommand scope = iota
	consoleCommands
	serveCommand
	noCommand
)

// declare declares every setting. A setting needs a field of Settings, one line here and, if its type does
// not say which values are valid, a check in checks.
func (s *Settings) declare() {
	s.Sources = map[string]Source{}
	for _, group := range []struct {
		prefix  string // of environment variables
		scope   scope
		declare func(*pflag.FlagSet)
	}{
		{"ACESCOPE_", consoleCommands, s.consoleFlags},
		{"ACESCOPE_", everyCommand, s.dataFlags},
		{"TEMPORAL_", everyCommand, s.clusterFlags},
		{"ACESCOPE_", serveCommand, s.serveFlags},
		{"ACESCOPE_", noCommand, s.fileSettings},
	} {
		f := pflag.NewFlagSet("settings", pflag.ContinueOnError)
		f.SortFlags = false
		group.declare(f)
		f.VisitAll(func(flag *pflag.Flag) {
			name := strings.ReplaceAll(flag.Name, "-", "_")
			env := cmp.Or(envNames[name], group.prefix+strings.ToUpper(name))
			s.settings = append(s.settings, setting{flag, name, env, group.scope})
		})
	}
}

func (s *Settings) consoleFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Theme, "theme", theme.Auto,
		`color theme of the console; "acescope config themes" lists them`)
	f.BoolVar(&s.Mouse, "mouse", true, "use the mouse in the console; M turns it on and off")
	f.DurationVar(&s.Refresh, "refresh", cluster.DefaultInterval,
		"interval between reads of the run list, 500ms to 1h")
	f.IntVar(&s.FrameRate, "frame-rate", DefaultFrameRate,
		"maximum frames per second of the console, 1 to 120")
}

func (s *Settings) dataFlags(f *pflag.FlagSet) {
	f.StringVar(&s.DataDir, "data-dir", "",
		"directory of the embedded server, artifacts and playbooks (default $XDG_DATA_HOME/acescope)")
	f.BoolVar(&s.ReadOnly, "read-only", false,
		"refuse everything that changes something, and execute no runs in this process")
	f.BoolVar(&s.TrustDataDir, "trust-data-dir", false,
		"confirm a data directory that was not made here, whose open runs may start programs on this machine")
	f.StringVar(&s.Store, "store", "",
		"URL of the store that the machines of a cluster share: file:///DIR, s3://…, gs://… or azblob://…")
	f.StringVar(&s.UIAddress, "ui-address", "",
		"URL of the cluster's own Temporal Web UI (default that of Temporal Cloud, else acescope serves one)")
	f.StringVar(&s.Observe, "observe", ObserveOn,
		"what happens to records of agent hooks: on forwards them to their runs, spool keeps them, off ignores them")
	f.BoolVar(&s.RecordCalls, "record-calls", true,
		"keep the requests to models and their answers as artifacts, without secrets")
	f.BoolVar(&s.NoRunner, "no-runner", false,
		"do not start the local runner, which executes blueprint runs in a process with workers for a data directory")
	f.StringVar(&s.TaskQueue, "task-queue", ace.TaskQueue,
		"task queue of acescope's workers and the runs that they execute; no other program may poll it")
}

func (s *Settings) clusterFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Address, "address", "",
		"host:port of a Temporal cluster to use instead of the embedded server")
	f.StringVar(&s.Namespace, "namespace", "", "namespace on that cluster (default ace-dev)")
	f.StringVar(&s.Profile, "profile", "", "profile of the temporal command's configuration to connect with")
	f.StringVar(&s.CodecEndpoint, "codec-endpoint", "",
		"URL of a codec server that encodes and decodes payloads")
	f.StringVar(&s.CodecAuth, "codec-auth", "",
		"Authorization header for the codec server (better: $TEMPORAL_CODEC_AUTH)")
}

func (s *Settings) serveFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Metrics, "metrics", telemetry.Off,
		"HOST:PORT where Prometheus reads metrics, such as 127.0.0.1:9464; off for none")
	f.StringVar(&s.OTLP, "otlp", telemetry.Off,
		"URL of an OTLP collector that receives a trace of each run; on for that of "+
			"$OTEL_EXPORTER_OTLP_ENDPOINT")
}

func (s *Settings) fileSettings(f *pflag.FlagSet) {
	f.StringVar(&s.Links, "links", LinksAuto,
		"hyperlinks in the console, to the Temporal Web UI and to files: auto for terminals that are known to show "+
			"them, on or off")
	f.StringVar(&s.EditorURL, "editor-url", "",
		"address by which a link opens a file, such as vscode://file{path} (default file://)")
	f.StringVar(&s.Transcripts, "transcripts", "",
		"directories with transcripts, separated as in PATH: the configuration directory of Claude Code, "+
			"or AGENT=DIR with claude, codex, gemini or opencode (default: those of the agents)")
	f.StringVar(&s.AgentsDirs, "agents-dirs", "", "directories of blueprints, separated as in PATH "+
		"(default ./agents, ./.acescope/agents and agents next to the configuration file)")
}

// envNames are environment variables that do not follow from the name of the setting.
var envNames = map[string]string{"agents_dirs": "ACESCOPE_AGENTS_DIR"}

// checks reject values that have the right type.
var checks = map[string]func(text string) error{
	"codec_endpoint": codec.CheckEndpoint,
	"ui_address":     webui.CheckAddress,
	"metrics":        telemetry.CheckMetrics,
	"otlp":           telemetry.CheckOTLP,
	"editor_url":     theme.CheckEditor,
	"links":          oneOf(LinksAuto, linksOn, linksOff),
	"observe":        oneOf(ObserveOn, observeSpool, ObserveOff),
	"task_queue": func(v string) error {
		if !run.ValidName(v) {
			return fmt.Errorf("%q must consist of letters, digits, dots, dashes and underscores", v)
		}
		return nil
	},
	"refresh": func(v string) error {
		if d, err := time.ParseDuration(v); err != nil || d < minRefresh || d > maxRefresh {
			return fmt.Errorf(`%q must be a duration from 500ms to 1h, such as "2s"`, v)
		}
		return nil
	},
	"frame_rate": func(v string) error {
		if n, err := strconv.Atoi(v); err != nil || n < minFrameRate || n > maxFrameRate {
			return fmt.Errorf("%q must be a number from %d to %d", v, minFrameRate, maxFrameRate)
		}
		return nil
	},
}

// oneOf returns a check for three words.
func oneOf(first, second, third string) func(string) error {
	return func(v string) error {
		if v != first && v != second && v != third {
			return fmt.Errorf("%q must be %s, %s or %s", v, first, second, third)
		}
		return nil
	}
}

// absolutePaths are settings that must be absolute paths in the configuration file.
var absolutePaths = []string{"data_dir", "agents_dirs"}

// set parses text and stores the value. After an error the setting has its default.
func (d setting) set(text string) error {
	if check := checks[d.name]; check != nil {
		if err := check(text); err != nil {
			return err
		}
	}
	if d.Value.Set(text) != nil {
		_ = d.Value.Set(d.DefValue) // a default is valid
		return fmt.Errorf("%q must be true or false", text)
	}
	return nil
}

// setFromFile stores a value of the configuration file.
func (d setting) setFromFile(value any) error {
	switch value.(type) {
	case string, bool, int64:
	default:
		return errors.New("must be a string, a number, true or false")
	}
	text := fmt.Sprint(value)
	relative := func(path string) bool { return !conffile.Absolute(path) }
	if slices.Contains(absolutePaths, d.name) && slices.ContainsFunc(filepath.SplitList(text), relative) {
		return fmt.Errorf("%q must be an absolute path", text)
	}
	return d.set(text)
}

func (s *Settings) isSetting(name string) bool {
	return slices.ContainsFunc(s.settings, func(d setting) bool { return d.name == name })
}

func (a *App) addFlags(f *pflag.FlagSet, scope scope) {
	if a.Settings.settings == nil {
		a.Settings.declare()
	}
	for _, d := range a.Settings.settings {
		if d.scope == scope {
			f.AddFlag(d.Flag)
		}
	}
}

// SettingFlags adds the flags of the settings that every command has.
func (a *App) SettingFlags(f *pflag.FlagSet) { a.addFlags(f, everyCommand) }

// ServeFlags adds the flags of the settings of acescope serve.
func (a *App) ServeFlags(f *pflag.FlagSet) { a.addFlags(f, serveCommand) }

// ConsoleFlags adds the flags of the settings of the console to a command that shows warnings itself.
func (a *App) ConsoleFlags(cmd *cobra.Command) *cobra.Command {
	a.addFlags(cmd.Flags(), consoleCommands)
	cmd.Annotations = map[string]string{showsWarnings: "yes"}
	return cmd
}

// showsWarnings marks commands that show the warnings of the configuration themselves.
const showsWarnings = "shows-warnings"

// resolve sets the settings that no flag set. The environment overrides the file, and the file overrides the
// default. A wrong flag is an error. Another wrong value is a warning and is skipped.
func (s *Settings) resolve(getenv func(string) string, file conffile.File, warnings []string) error {
	s.File, s.Warnings = file, warnings
	for _, d := range s.settings {
		source, err := s.resolveOne(d, getenv)
		if err != nil {
			return err
		}
		s.Sources[d.name] = source
	}
	if theme.WantsNoColor(getenv) {
		s.Theme = "no-color"
		s.Sources["theme"] = Source{fromEnv, "env NO_COLOR"}
		if getenv("NO_COLOR") == "" {
			s.Sources["theme"] = Source{fromEnv, "env TERM"}
		}
	}
	return nil
}

func (s *Settings) resolveOne(d setting, getenv func(string) string) (Source, error) {
	if d.Changed {
		if err := d.set(d.Value.String()); err != nil {
			return Source{}, UsageError("--%s: %v", d.Name, err)
		}
		return Source{fromFlag, "flag --" + d.Name}, nil
	}
	if v := getenv(d.env); v != "" {
		err := d.set(v)
		if err == nil {
			return Source{fromEnv, "env " + d.env}, nil
		}
		s.Warn("$%s: %v", d.env, err)
	}
	if v, ok := s.File.Values[d.name]; ok {
		where := s.File.Path + ":" + strconv.Itoa(v.Line)
		err := d.setFromFile(v.Value)
		if err == nil {
			return Source{fromFile, where}, nil
		}
		s.Warn("%s: %s: %v", where, d.name, err)
	}
	return DefaultSource, nil
}

func (s *Settings) Warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// wantsCluster reports whether the settings name a cluster, and no higher source names a data directory.
func (s *Settings) wantsCluster() bool {
	named := fromDefault
	if s.Address != "" {
		named = s.Sources["address"].level
	}
	if s.Profile != "" {
		named = max(named, s.Sources["profile"].level)
	}
	return named > fromDefault && named >= s.Sources["data_dir"].level
}

// SettingLine is a setting in the output of acescope config.
type SettingLine struct {
	Name        string `json:"name"`
	Value       string `json:"value" jsonschema:"effective value"`
	Source      string `json:"source"`
	Description string `json:"description" jsonschema:"meaning"`
}

// SettingLines returns the effective settings, without secrets.
func (a *App) SettingLines() []SettingLine {
	var out []SettingLine
	for _, d := range a.Settings.settings {
		l := SettingLine{d.name, d.Value.String(), a.Settings.Sources[d.name].Text, d.Usage}
		switch d.name {
		case "codec_auth":
			if l.Value != "" {
				l.Value = "(set)"
			}
		case "codec_endpoint":
			l.Value = codec.Config{Endpoint: l.Value}.Shown()
		case "data_dir":
			l.Value, _ = a.DataDir() // without a data directory, config has failed before
		}
		out = append(out, l)
	}
	return out
}

// dataSettings are those that choose the data of a command, besides the data directory, on a cluster.
var dataSettings = []string{"address", "namespace", "profile", "task_queue", "store", "codec_endpoint"}

// DataFlags returns the flags with which another command uses the same data. It leaves out what the
// configuration file sets.
func (a *App) DataFlags() (flags []string) {
	for i, l := range a.SettingLines() {
		chooses := l.Name == "data_dir" || a.Cluster() != nil && slices.Contains(dataSettings, l.Name)
		if chooses && a.Settings.Sources[l.Name].level >= fromEnv {
			flags = append(flags, "--"+a.Settings.settings[i].Name, l.Value)
		}
	}
	return flags
}
