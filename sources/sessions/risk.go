package sessions

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// risks are what commands do that is not easily undone, by how they look. It is help for
// eyes, not a guard: what is not told here may do the same.
var risks = []struct {
	like *regexp.Regexp
	said string
}{
	{regexp.MustCompile(`\b(sudo|doas|su|pkexec|runas)\b`), "runs as another user"},
	{regexp.MustCompile(`\b(rm|rmdir|unlink|shred|truncate)\b|\bfind\b.*-delete\b|\bdel\b|Remove-Item`), "deletes files"},
	{regexp.MustCompile(`\b(mkfs\S*|fdisk|wipefs|parted)\b|\bdd\b.*\bof=`), "overwrites disks"},
	{regexp.MustCompile(`\b(curl|wget|fetch)\b[^|]*\|\s*\S*(sh|python\d?|perl|node)\b`), "runs what it downloads"},
	{regexp.MustCompile(`\bbase64\b.*\|\s*\S*sh\b|\beval\b`), "runs a command that cannot be read here"},
	{regexp.MustCompile(`\bgit\b.*\b(push\b.*(-f\b|--force)|reset\b.*--hard|clean\b|checkout\s+--|restore\b|branch\b.*-D\b)`), "throws work away in git"},
	{regexp.MustCompile(`\bgit\b.*\bpush\b|\b(npm|cargo|twine|gh|docker)\b.*\b(publish|push|upload|release)\b`), "publishes something"},
	{regexp.MustCompile(`\b(chmod|chown|chgrp|setfacl)\b`), "changes who may use files"},
	{regexp.MustCompile(`\b(kill|pkill|killall|shutdown|reboot|halt|systemctl|launchctl)\b`), "ends processes or services"},
	{regexp.MustCompile(`(?i)\b(drop\s+(table|database|schema)|delete\s+from|truncate\s+table)\b`), "deletes data"},
	{regexp.MustCompile(`\.ssh\b|\.aws\b|\.netrc\b|\bid_(rsa|ed25519)\b|\.env\b|\bcredentials?\b|/etc/shadow`), "touches what may be secret"},
	{regexp.MustCompile(`\b(ssh|scp|rsync|sftp|nc|ncat|telnet)\b`), "reaches another machine"},
	{regexp.MustCompile(`\bcrontab\b|\bat\b\s|authorized_keys|\.(bash|zsh)rc\b|\.profile\b`), "changes what runs later"},
}

// redirect is a command's output that goes to a path elsewhere.
var redirect = regexp.MustCompile(`>>?\s*(/|~|\.\./)(\S*)`)

// CallRisk says in a few words what a tool call may do that is not easily undone, "" where
// nothing of the kind is seen. dir is where the session works.
func CallRisk(call ToolRequest, dir string) string {
	var args map[string]any
	_ = json.Unmarshal(call.Args, &args)
	var said []string
	note := func(what string) {
		if !slices.Contains(said, what) {
			said = append(said, what)
		}
	}
	for _, key := range []string{"command", "cmd", "script", "code", "sql", "query"} {
		for _, r := range risks {
			if command := words(args[key]); command != "" && r.like.MatchString(command) {
				note(r.said)
			}
		}
		for _, m := range redirect.FindAllStringSubmatch(words(args[key]), -1) {
			if m[1] != "/" || !strings.HasPrefix(m[2], "dev/null") {
				note("writes outside its directory")
			}
		}
	}
	if writes(call.Name) {
		for _, key := range []string{"file_path", "path", "notebook_path", "absolute_path", "filePath"} {
			if path, ok := args[key].(string); ok && outside(path, dir) {
				note("writes outside its directory")
			}
		}
	}
	if call.ArgsRef != nil {
		note("has more arguments than are shown here")
	}
	return strings.Join(said, ", ")
}

// words is a text, or the texts of a list as one.
func words(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var parts []string
		for _, w := range v {
			if s, ok := w.(string); ok {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, " ")
	}
	return ""
}

func writes(tool string) bool {
	name := strings.ToLower(tool)
	return slices.ContainsFunc([]string{"write", "edit", "replace", "patch", "create", "move", "delete"}, func(s string) bool { return strings.Contains(name, s) })
}

// outside tells whether a path is not below a directory, by its text alone: links are not
// followed here.
func outside(path, dir string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	rel, err := filepath.Rel(dir, path)
	return err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
