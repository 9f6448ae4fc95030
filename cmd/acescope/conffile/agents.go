package conffile

import (
	"path/filepath"
	"regexp"
	"strings"
)

// Agent is how the command line of an agent is called. What is not said is "".
type Agent struct {
	Name       string // claude, codex, gemini or opencode
	Command    string
	Model      string
	WorkingDir string
	Env        []string // names of variables that it is given besides those it needs
	AllowFull  bool
}

// agentNames are the agents that there are.
var agentNames = []string{"claude", "codex", "gemini", "opencode"}

// envName is the name of a variable, or the begin of some with a star.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)

// readAgents takes the tables [agents.NAME], and what counts for all of them.
func (p *parser) readAgents(v any) {
	table, ok := v.(map[string]any)
	if !ok {
		p.mistake("agents", "agents are tables: [agents.claude] and below it command, model, working_dir, env and allow_full")
		return
	}
	full, ok := table["allow_full"].(bool)
	if table["allow_full"] != nil && !ok {
		p.mistake("agents.allow_full", "agents.allow_full is true or false")
	}
	known := map[string]bool{"allow_full": true}
	for _, name := range agentNames {
		known[name] = true
		a := Agent{Name: name, AllowFull: full}
		if e, said := table[name]; said {
			if why := p.agent("agents."+name, e, &a); why != "" {
				p.mistake("agents."+name, "agent %s: %s", name, why)
				continue
			}
		} else if !full {
			continue
		}
		p.Agents = append(p.Agents, a)
	}
	for _, name := range sorted(table) {
		if !known[name] {
			p.mistake("agents."+name, "there is no agent %.40q: there are %s", name, strings.Join(agentNames, ", "))
		}
	}
}

// agent reads one agent; why says what makes it unusable.
func (p *parser) agent(at string, e any, a *Agent) (why string) {
	table, ok := e.(map[string]any)
	if !ok {
		return "it is a table"
	}
	texts := map[string]*string{"command": &a.Command, "model": &a.Model, "working_dir": &a.WorkingDir}
	for _, k := range sorted(table) {
		switch to := texts[k]; {
		case k == "env":
			if a.Env, ok = textList(table[k]); !ok {
				return "env is a list of names of variables"
			}
		case k == "allow_full":
			if a.AllowFull, ok = table[k].(bool); !ok {
				return "allow_full is true or false"
			}
		case to == nil:
			p.mistake(at+"."+k, "an agent has no %q: it has command, model, working_dir, env and allow_full", k)
		default:
			if *to, ok = table[k].(string); !ok {
				return k + " is a text"
			}
		}
	}
	for _, name := range a.Env {
		if !envName.MatchString(name) {
			return "env names variables, such as GH_TOKEN or MY_*: values do not belong into this file"
		}
	}
	if a.WorkingDir != "" && !strings.HasPrefix(a.WorkingDir, "~/") && !filepath.IsAbs(a.WorkingDir) {
		return "working_dir is not absolute"
	}
	if strings.HasPrefix(a.Command, "-") || strings.ContainsAny(a.Command, "\x00\n") {
		return "command is the program's name or path, without arguments"
	}
	return ""
}
