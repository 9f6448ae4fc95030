package runner

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Meets tells whether a runner with the capabilities can take a run with the demands. The
// lists of both are sorted, as Merge and a registration leave them.
func (c Capabilities) Meets(d Demands) bool {
	return c.onHost(d) && c.inDir(d) && c.ofType(d) && subset(d.Tags, c.Tags)
}

func (c Capabilities) onHost(d Demands) bool { return d.Hostname == "" || d.Hostname == c.Hostname }

func (c Capabilities) inDir(d Demands) bool {
	return d.ProjectDir == "" || c.AnyProject || d.ProjectDir == c.ProjectDir
}

func (c Capabilities) ofType(d Demands) bool {
	return d.ExecutorType == "" || slices.Contains(c.ExecutorTypes, d.ExecutorType)
}

// subset tells whether all of few are among many; both are sorted.
func subset(few, many []string) bool {
	for _, tag := range few {
		for len(many) > 0 && many[0] < tag {
			many = many[1:]
		}
		if len(many) == 0 || many[0] != tag {
			return false
		}
	}
	return true
}

// Lacks says in words which demands the capabilities do not meet, nothing where they meet
// all: "tag playwright", "hostname db-server (it is web-1)".
func (c Capabilities) Lacks(d Demands) []string {
	c, d = c.normal(), d.normal()
	var lacks []string
	if !c.onHost(d) {
		lacks = append(lacks, "hostname "+d.Hostname+" (it is "+c.Hostname+")")
	}
	if !c.inDir(d) {
		lacks = append(lacks, "project directory "+d.ProjectDir+" (it is "+c.ProjectDir+")")
	}
	if !c.ofType(d) {
		lacks = append(lacks, "executor "+d.ExecutorType+" (it has "+strings.Join(c.ExecutorTypes, ", ")+")")
	}
	for _, tag := range d.Tags {
		if !slices.Contains(c.Tags, tag) {
			lacks = append(lacks, "tag "+tag)
		}
	}
	return lacks
}

// Candidate is a runner that could be asked.
type Candidate struct {
	ID           string
	Queue        string // of its registration
	Capabilities Capabilities
	Status       Status
	Busy         int
}

// Nearest says how near the runners come to the demands: which could take the run, were it
// free or back, or else which lacks least, and what. It is a part of a sentence: of runners
// that come equally near it names the first by id.
func Nearest(d Demands, runners []Candidate, avoid []string) string {
	var busy, away []Candidate
	var best Candidate
	var least []string
	for _, r := range sorted(runners) {
		if r.Status == Gone {
			continue
		}
		lacks := r.Capabilities.Lacks(d)
		if slices.Contains(avoid, r.Queue) {
			lacks = append(lacks, "a new start (it lost the run before)")
		}
		switch {
		case len(lacks) == 0 && r.Status == Online:
			busy = append(busy, r)
		case len(lacks) == 0:
			away = append(away, r)
		case least == nil || len(lacks) < len(least):
			best, least = r, lacks
		}
	}
	switch {
	case len(busy) == 1:
		return "1 runner could take it, " + busy[0].name() + ", and is busy"
	case len(busy) > 1:
		return strconv.Itoa(len(busy)) + " runners could take it, all busy"
	case len(away) > 0:
		return "nearest is " + away[0].name() + ", which is " + string(away[0].Status)
	case least != nil:
		return "nearest is " + best.name() + ", which lacks " + list(least)
	}
	return noRunner
}

const noRunner = "no runner is registered: start one with acescope runner start"

// unmatched is the sentence for a run that nobody took in time.
func unmatched(d Demands, runners []Candidate, avoid []string, waited time.Duration) string {
	return "no runner took it within " + rounded(waited).String() + ": " + Nearest(d, runners, avoid)
}

// rounded is a duration as people say it.
func rounded(d time.Duration) time.Duration {
	if d < time.Second/2 {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

func (c Candidate) name() string { return c.ID + " on " + c.Capabilities.Hostname }

func sorted(runners []Candidate) []Candidate {
	return slices.SortedFunc(slices.Values(runners), func(a, b Candidate) int { return strings.Compare(a.ID, b.ID) })
}

// list is "a", "a and b", "a, b and c"; of many, the first and how many more there are.
func list(items []string) string {
	const most = 4
	if len(items) > most {
		return strings.Join(items[:most], ", ") + " and " + strconv.Itoa(len(items)-most) + " more"
	}
	last := len(items) - 1
	if last == 0 {
		return items[0]
	}
	return strings.Join(items[:last], ", ") + " and " + items[last]
}
