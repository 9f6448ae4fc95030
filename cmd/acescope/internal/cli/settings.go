package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"acescope/cmd/acescope/conffile"
	"acescope/engine/temporal/codec"
	"acescope/sources/cluster"
	"acescope/theme"
)

// Settings is what is in force, whoever said it.
type Settings struct {
	Theme     string
	Mouse     bool
	ReadOnly  bool
	Refresh   time.Duration
	FrameRate int
	DataDir   string
	Address   string
	Namespace string
	Profile   string
	Observe   string // on, spool or off
	NoRunner  bool
	// Transcripts are the directories in which agents keep transcripts, "" for the usual ones.
	Transcripts string
	// AgentsDirs are the directories of blueprints, "" for the usual ones.
	AgentsDirs string

	CodecEndpoint string
	CodecAuth     string // a secret

	Origin   map[string]string // by name: "flag --theme", "env ACESCOPE_THEME", "FILE:LINE", "default"
	File     conffile.File
	Warnings []string
}

// Ranges of numbers.
const (
	minRefresh, maxRefresh     = 500 * time.Millisecond, time.Hour
	minFrameRate, maxFrameRate = 1, 120
	UsualFrameRate             = 20
)

// settingDef is one setting: where it may be said and what it may be.
type settingDef struct {
	Name string
	env  string // "" for none
	flag string // "" for none
	kind string // of a value in the file: text, bool, number
	Help string
	// Secrett values are never shown
	Secret bool
	set    func(s *Settings, text string) error
	Get    func(s *Settings) string
}

func SettingDefs() []settingDef {
	text := func(at func(*Settings) *string, check func(string) error) (func(*Settings, string) error, func(*Settings) string) {
		return func(s *Settings, v string) error {
			if check != nil {
				if err := check(v); err != nil {
					return err
				}
			}
			*at(s) = v
			return nil
		}, func(s *Settings) string { return *at(s) }
	}
	flag := func(at func(*Settings) *bool) (func(*Settings, string) error, func(*Settings) string) {
		return func(s *Settings, v string) error {
			on, err := strconv.ParseBool(v)
			if err != nil {
				return fmt.Errorf("%q is neither true nor false", v)
			}
			*at(s) = on
			return nil
		}, func(s *Settings) string { return strconv.FormatBool(*at(s)) }
	}
	var defs []settingDef
	add := func(d settingDef, set func(*Settings, string) error, get func(*Settings) string) {
		d.set, d.Get = set, get
		defs = append(defs, d)
	}
	own := func(name, kind, help string) settingDef {
		return settingDef{Name: name, env: "ACESCOPE_" + strings.ToUpper(name), flag: strings.ReplaceAll(name, "_", "-"), kind: kind, Help: help}
	}
	cluster := func(name, help string) settingDef {
		return settingDef{Name: name, env: "TEMPORAL_" + strings.ToUpper(name), flag: strings.ReplaceAll(name, "_", "-"), kind: "text", Help: help}
	}
	set, get := text(func(s *Settings) *string { return &s.Theme }, nil)
	add(own("theme", "text", "colours, auto for dark or light by the terminal's background"), set, get)
	set, get = flag(func(s *Settings) *bool { return &s.Mouse })
	add(own("mouse", "bool", "the console takes the mouse from the start"), set, get)
	set, get = flag(func(s *Settings) *bool { return &s.ReadOnly })
	add(own("read_only", "bool", "the console changes nothing"), set, get)
	add(own("refresh", "text", "how often the console reads the list of runs, 500ms to 1h"), setRefresh,
		func(s *Settings) string { return s.Refresh.String() })
	add(own("frame_rate", "number", "frames a second at most, 1 to 120"), setFrameRate,
		func(s *Settings) string { return strconv.Itoa(s.FrameRate) })
	set, get = text(func(s *Settings) *string { return &s.DataDir }, nil)
	add(own("data_dir", "text", "where the embedded server, artifacts and playbooks lie"), set, get)
	set, get = text(func(s *Settings) *string { return &s.Address }, nil)
	add(cluster("address", "host:port of a Temporal cluster to use"), set, get)
	set, get = text(func(s *Settings) *string { return &s.Namespace }, nil)
	add(cluster("namespace", "namespace on that cluster"), set, get)
	set, get = text(func(s *Settings) *string { return &s.Profile }, nil)
	add(cluster("profile", "profile of the temporal command's configuration to connect with"), set, get)
	set, get = text(func(s *Settings) *string { return &s.Observe }, checkObserve)
	add(own("observe", "text", "what becomes of what hooks leave in the spool: on, spool (it stays there) or off"), set, get)
	set, get = flag(func(s *Settings) *bool { return &s.NoRunner })
	add(own("no_runner", "bool", "a process that serves brings no local runner along"), set, get)
	set, get = text(func(s *Settings) *string { return &s.Transcripts }, nil)
	add(settingDef{Name: "transcripts", env: "ACESCOPE_TRANSCRIPTS", kind: "text", Help: "configuration directories of Claude Code, apart as in PATH (else $CLAUDE_CONFIG_DIR, else ~/.claude)"}, set, get)
	set, get = text(func(s *Settings) *string { return &s.AgentsDirs }, nil)
	add(settingDef{Name: "agents_dirs", env: "ACESCOPE_AGENTS_DIR", kind: "text", Help: "directories of blueprints, apart as in PATH (else ./agents, ./.acescope/agents and agents beside this file)"}, set, get)
	set, _ = text(func(s *Settings) *string { return &s.CodecEndpoint }, codec.CheckEndpoint)
	add(cluster("codec_endpoint", "URL of the codec server that payloads are read and written through"), set, func(s *Settings) string {
		return codec.Config{Endpoint: s.CodecEndpoint}.Shown()
	})
	set, get = text(func(s *Settings) *string { return &s.CodecAuth }, nil)
	auth := cluster("codec_auth", "what lets you in there, as the header Authorization; never shown")
	auth.Secret = true
	add(auth, set, get)
	return defs
}

// Values of the setting observe.
const (
	ObserveOn    = "on"
	observeSpool = "spool"
	ObserveOff   = "off"
)

func checkObserve(v string) error {
	if v != ObserveOn && v != observeSpool && v != ObserveOff {
		return fmt.Errorf("%q is none of on, spool and off", v)
	}
	return nil
}

func setRefresh(s *Settings, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < minRefresh || d > maxRefresh {
		return fmt.Errorf(`%q is no time from 500ms to 1h: write "2s"`, v)
	}
	s.Refresh = d
	return nil
}

func setFrameRate(s *Settings, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < minFrameRate || n > maxFrameRate {
		return fmt.Errorf("%q is no number from %d to %d", v, minFrameRate, maxFrameRate)
	}
	s.FrameRate = n
	return nil
}

func isSetting(name string) bool { return settingNamed(name) != nil }

func settingNamed(name string) *settingDef {
	defs := SettingDefs()
	if i := slices.IndexFunc(defs, func(d settingDef) bool { return d.Name == name }); i >= 0 {
		return &defs[i]
	}
	return nil
}

// resolve works out what is in force: flags come before the environment, that before the
// file, and that before the defaults. Mistakes in flags are returned; others are warnings,
// and the next in that order counts.
func resolve(flags *pflag.FlagSet, getenv func(string) string, file conffile.File, warnings []string) (Settings, error) {
	s := Settings{Theme: theme.Auto, Refresh: cluster.DefaultInterval, FrameRate: UsualFrameRate, Observe: ObserveOn, Origin: map[string]string{}, File: file, Warnings: warnings}
	for _, d := range SettingDefs() {
		s.Origin[d.Name] = "default"
		if f := flags.Lookup(d.flag); f != nil && f.Changed {
			if err := d.set(&s, f.Value.String()); err != nil {
				return s, UsageError("--%s: %v", d.flag, err)
			}
			s.Origin[d.Name] = "flag --" + d.flag
			continue
		}
		if v := getenv(d.env); v != "" {
			if err := d.set(&s, v); err == nil {
				s.Origin[d.Name] = "env " + d.env
				continue
			} else {
				s.Warn("$%s: %v", d.env, err)
			}
		}
		s.fromFile(d)
	}
	if theme.WantsNoColor(getenv) {
		s.Theme = "no-color"
		if s.Origin["theme"] = "env NO_COLOR"; getenv("NO_COLOR") == "" {
			s.Origin["theme"] = "env TERM"
		}
	}
	return s, nil
}

func (s *Settings) Warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

func (s *Settings) fromFile(d settingDef) {
	v, ok := s.File.Values[d.Name]
	if !ok {
		return
	}
	where := s.File.Path + ":" + strconv.Itoa(v.Line)
	text, kind := "", ""
	switch value := v.Value.(type) {
	case string:
		text, kind = value, "text"
	case bool:
		text, kind = strconv.FormatBool(value), "bool"
	case int64:
		text, kind = strconv.FormatInt(value, 10), "number"
	}
	if kind != d.kind {
		what := map[string]string{"text": `a text: ` + d.Name + ` = "…"`, "bool": "true or false", "number": "a number"}[d.kind]
		s.Warn("%s: %s is %s", where, d.Name, what)
		return
	}
	if d.Name == "data_dir" && !absolute(text) || d.Name == "agents_dirs" && !allAbsolute(text) {
		s.Warn("%s: %s %q is not absolute", where, d.Name, text)
		return
	}
	if err := d.set(s, text); err != nil {
		s.Warn("%s: %s: %v", where, d.Name, err)
		return
	}
	s.Origin[d.Name] = where
}

// absolute tells whether a path means the same wherever a command is called.
func absolute(path string) bool { return strings.HasPrefix(path, "~/") || filepath.IsAbs(path) }

func allAbsolute(list string) bool {
	for _, path := range filepath.SplitList(list) {
		if !absolute(path) {
			return false
		}
	}
	return true
}

// How much say whoever said something has.
const (
	fileRank = 1 + iota
	envRank
	flagRank
)

// rank is who said a setting, 0 where nobody did.
func (s *Settings) rank(name string) int {
	switch o := s.Origin[name]; {
	case strings.HasPrefix(o, "flag "):
		return flagRank
	case strings.HasPrefix(o, "env "):
		return envRank
	case o == "" || o == "default":
		return 0
	}
	return fileRank
}

// wantsCluster tells whether a cluster was asked for, and no data directory by somebody
// with more say.
func (s *Settings) wantsCluster() bool {
	named := 0
	for name, v := range map[string]string{"address": s.Address, "profile": s.Profile} {
		if v != "" {
			named = max(named, s.rank(name))
		}
	}
	return named > 0 && named >= s.rank("data_dir")
}
