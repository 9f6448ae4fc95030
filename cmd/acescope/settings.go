package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"acescope/cmd/acescope/conffile"
	"acescope/engine/codec"
	"acescope/sources"
	"acescope/theme"
)

// settings is what is in force, whoever said it.
type settings struct {
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

	origin   map[string]string // by name: "flag --theme", "env ACESCOPE_THEME", "FILE:LINE", "default"
	file     conffile.File
	warnings []string
}

// Ranges of numbers.
const (
	minRefresh, maxRefresh     = 500 * time.Millisecond, time.Hour
	minFrameRate, maxFrameRate = 1, 120
	usualFrameRate             = 20
)

// settingDef is one setting: where it may be said and what it may be.
type settingDef struct {
	name string
	env  string // "" for none
	flag string // "" for none
	kind string // of a value in the file: text, bool, number
	help string
	// secret values are never shown
	secret bool
	set    func(s *settings, text string) error
	get    func(s *settings) string
}

func settingDefs() []settingDef {
	text := func(at func(*settings) *string, check func(string) error) (func(*settings, string) error, func(*settings) string) {
		return func(s *settings, v string) error {
			if check != nil {
				if err := check(v); err != nil {
					return err
				}
			}
			*at(s) = v
			return nil
		}, func(s *settings) string { return *at(s) }
	}
	flag := func(at func(*settings) *bool) (func(*settings, string) error, func(*settings) string) {
		return func(s *settings, v string) error {
			on, err := strconv.ParseBool(v)
			if err != nil {
				return fmt.Errorf("%q is neither true nor false", v)
			}
			*at(s) = on
			return nil
		}, func(s *settings) string { return strconv.FormatBool(*at(s)) }
	}
	var defs []settingDef
	add := func(d settingDef, set func(*settings, string) error, get func(*settings) string) {
		d.set, d.get = set, get
		defs = append(defs, d)
	}
	own := func(name, kind, help string) settingDef {
		return settingDef{name: name, env: "ACESCOPE_" + strings.ToUpper(name), flag: strings.ReplaceAll(name, "_", "-"), kind: kind, help: help}
	}
	cluster := func(name, help string) settingDef {
		return settingDef{name: name, env: "TEMPORAL_" + strings.ToUpper(name), flag: strings.ReplaceAll(name, "_", "-"), kind: "text", help: help}
	}
	set, get := text(func(s *settings) *string { return &s.Theme }, nil)
	add(own("theme", "text", "colours, auto for dark or light by the terminal's background"), set, get)
	set, get = flag(func(s *settings) *bool { return &s.Mouse })
	add(own("mouse", "bool", "the console takes the mouse from the start"), set, get)
	set, get = flag(func(s *settings) *bool { return &s.ReadOnly })
	add(own("read_only", "bool", "the console changes nothing"), set, get)
	add(own("refresh", "text", "how often the console reads the list of runs, 500ms to 1h"), setRefresh,
		func(s *settings) string { return s.Refresh.String() })
	add(own("frame_rate", "number", "frames a second at most, 1 to 120"), setFrameRate,
		func(s *settings) string { return strconv.Itoa(s.FrameRate) })
	set, get = text(func(s *settings) *string { return &s.DataDir }, nil)
	add(own("data_dir", "text", "where the embedded server, artifacts and playbooks lie"), set, get)
	set, get = text(func(s *settings) *string { return &s.Address }, nil)
	add(cluster("address", "host:port of a Temporal cluster to use"), set, get)
	set, get = text(func(s *settings) *string { return &s.Namespace }, nil)
	add(cluster("namespace", "namespace on that cluster"), set, get)
	set, get = text(func(s *settings) *string { return &s.Profile }, nil)
	add(cluster("profile", "profile of the temporal command's configuration to connect with"), set, get)
	set, get = text(func(s *settings) *string { return &s.Observe }, checkObserve)
	add(own("observe", "text", "what becomes of what hooks leave in the spool: on, spool (it stays there) or off"), set, get)
	set, get = flag(func(s *settings) *bool { return &s.NoRunner })
	add(own("no_runner", "bool", "a process that serves brings no local runner along"), set, get)
	set, get = text(func(s *settings) *string { return &s.Transcripts }, nil)
	add(settingDef{name: "transcripts", env: "ACESCOPE_TRANSCRIPTS", kind: "text", help: "configuration directories of Claude Code, apart as in PATH (else $CLAUDE_CONFIG_DIR, else ~/.claude)"}, set, get)
	set, get = text(func(s *settings) *string { return &s.AgentsDirs }, nil)
	add(settingDef{name: "agents_dirs", env: "ACESCOPE_AGENTS_DIR", kind: "text", help: "directories of blueprints, apart as in PATH (else ./agents, ./.acescope/agents and agents beside this file)"}, set, get)
	set, _ = text(func(s *settings) *string { return &s.CodecEndpoint }, codec.CheckEndpoint)
	add(cluster("codec_endpoint", "URL of the codec server that payloads are read and written through"), set, func(s *settings) string {
		return codec.Config{Endpoint: s.CodecEndpoint}.Shown()
	})
	set, get = text(func(s *settings) *string { return &s.CodecAuth }, nil)
	auth := cluster("codec_auth", "what lets you in there, as the header Authorization; never shown")
	auth.secret = true
	add(auth, set, get)
	return defs
}

// Values of the setting observe.
const (
	observeOn    = "on"
	observeSpool = "spool"
	observeOff   = "off"
)

func checkObserve(v string) error {
	if v != observeOn && v != observeSpool && v != observeOff {
		return fmt.Errorf("%q is none of on, spool and off", v)
	}
	return nil
}

func setRefresh(s *settings, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < minRefresh || d > maxRefresh {
		return fmt.Errorf(`%q is no time from 500ms to 1h: write "2s"`, v)
	}
	s.Refresh = d
	return nil
}

func setFrameRate(s *settings, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < minFrameRate || n > maxFrameRate {
		return fmt.Errorf("%q is no number from %d to %d", v, minFrameRate, maxFrameRate)
	}
	s.FrameRate = n
	return nil
}

func isSetting(name string) bool { return settingNamed(name) != nil }

func settingNamed(name string) *settingDef {
	defs := settingDefs()
	if i := slices.IndexFunc(defs, func(d settingDef) bool { return d.name == name }); i >= 0 {
		return &defs[i]
	}
	return nil
}

// resolve works out what is in force: flags come before the environment, that before the
// file, and that before the defaults. Mistakes in flags are returned; others are warnings,
// and the next in that order counts.
func resolve(flags *pflag.FlagSet, getenv func(string) string, file conffile.File, warnings []string) (settings, error) {
	s := settings{Theme: theme.Auto, Refresh: sources.DefaultInterval, FrameRate: usualFrameRate, Observe: observeOn, origin: map[string]string{}, file: file, warnings: warnings}
	for _, d := range settingDefs() {
		s.origin[d.name] = "default"
		if f := flags.Lookup(d.flag); f != nil && f.Changed {
			if err := d.set(&s, f.Value.String()); err != nil {
				return s, usage("--%s: %v", d.flag, err)
			}
			s.origin[d.name] = "flag --" + d.flag
			continue
		}
		if v := getenv(d.env); v != "" {
			if err := d.set(&s, v); err == nil {
				s.origin[d.name] = "env " + d.env
				continue
			} else {
				s.warn("$%s: %v", d.env, err)
			}
		}
		s.fromFile(d)
	}
	if theme.WantsNoColor(getenv) {
		s.Theme = "no-color"
		if s.origin["theme"] = "env NO_COLOR"; getenv("NO_COLOR") == "" {
			s.origin["theme"] = "env TERM"
		}
	}
	return s, nil
}

func (s *settings) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

func (s *settings) fromFile(d settingDef) {
	v, ok := s.file.Values[d.name]
	if !ok {
		return
	}
	where := s.file.Path + ":" + strconv.Itoa(v.Line)
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
		what := map[string]string{"text": `a text: ` + d.name + ` = "…"`, "bool": "true or false", "number": "a number"}[d.kind]
		s.warn("%s: %s is %s", where, d.name, what)
		return
	}
	if d.name == "data_dir" && !absolute(text) || d.name == "agents_dirs" && !allAbsolute(text) {
		s.warn("%s: %s %q is not absolute", where, d.name, text)
		return
	}
	if err := d.set(s, text); err != nil {
		s.warn("%s: %s: %v", where, d.name, err)
		return
	}
	s.origin[d.name] = where
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
func (s *settings) rank(name string) int {
	switch o := s.origin[name]; {
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
func (s *settings) wantsCluster() bool {
	named := 0
	for name, v := range map[string]string{"address": s.Address, "profile": s.Profile} {
		if v != "" {
			named = max(named, s.rank(name))
		}
	}
	return named > 0 && named >= s.rank("data_dir")
}
