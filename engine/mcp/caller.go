package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/run"
	"acescope/engine/runner"
)

// Headers by which a client over HTTP says what [Caller] holds.
const (
	HeaderSession = "X-Agent-Session-Id"
	HeaderTags    = "X-Agent-Tags"         // apart by commas
	HeaderDemands = "X-Additional-Demands" // a JSON object
)

// Caller is what is known of who calls.
type Caller struct {
	// Session is the session that the caller is, "" where it is none. Runs that it starts have
	// it as their parent.
	Session string
	// Run is the run that the caller is, or "".
	Run string
	// Tags are those that a blueprint must have to be listed and started.
	Tags []string
	// Demands are added to those of each run that it starts.
	Demands runner.Demands
}

// Check says what is wrong with a caller.
func (c Caller) Check() error {
	if c.Session != "" && !run.ValidName(c.Session) {
		return fmt.Errorf("%w: %s is no session's id", run.ErrBadRequest, cut(fmt.Sprintf("%q", c.Session)))
	}
	if c.Run != "" && !run.ValidName(c.Run) {
		return fmt.Errorf("%w: %s is no run's id", run.ErrBadRequest, cut(fmt.Sprintf("%q", c.Run)))
	}
	return nil
}

// caller is who calls: what the headers say counts more than what the server was told,
// demands are added to each other.
func (s *Server) caller(req *sdk.CallToolRequest) (Caller, error) {
	c := s.o.Caller
	if req.Extra == nil || req.Extra.Header == nil {
		return c, nil
	}
	h := req.Extra.Header
	if id := h.Get(HeaderSession); id != "" {
		c.Session, c.Run = id, ""
	}
	if h.Values(HeaderTags) != nil {
		c.Tags = Tags(strings.Join(h.Values(HeaderTags), ","))
	}
	said, err := demandsOf(h)
	if err != nil {
		return c, err
	}
	if c.Demands, err = merge(c.Demands, said, "header "+HeaderDemands); err != nil {
		return c, err
	}
	return c, c.Check()
}

// Tags are the tags of a list that has commas between them.
func Tags(list string) (tags []string) {
	for t := range strings.SplitSeq(list, ",") {
		if t = strings.TrimSpace(t); t != "" {
			tags = append(tags, t)
		}
	}
	return tags
}

var headerDemands = newChecker(demands())

func demandsOf(h http.Header) (d runner.Demands, err error) {
	said := h.Get(HeaderDemands)
	if said == "" {
		return d, nil
	}
	if err := headerDemands.decode(json.RawMessage(said), &d); err != nil {
		return d, fmt.Errorf(`%w: header %s: %w; write {"tags":["gpu"]}`, run.ErrBadRequest, HeaderDemands, err)
	}
	return d, nil
}

// merge adds demands to demands. What contradicts is refused; who says which of the two
// said the later ones.
func merge(d, more runner.Demands, who string) (runner.Demands, error) {
	for _, f := range []struct {
		name string
		at   *string
		more string
	}{{"hostname", &d.Hostname, more.Hostname}, {"project_dir", &d.ProjectDir, more.ProjectDir}, {"executor_type", &d.ExecutorType, more.ExecutorType}} {
		if f.more != "" && *f.at != "" && *f.at != f.more {
			return d, fmt.Errorf("%w: %s demands %s %s, %s is demanded already: leave one of them out", run.ErrBadRequest, who, f.name,
				cut(fmt.Sprintf("%q", f.more)), cut(fmt.Sprintf("%q", *f.at)))
		}
		if f.more != "" {
			*f.at = f.more
		}
	}
	d.Tags = slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.Tags, more.Tags))))
	return d, nil
}

// sees tells whether the caller's tags let it use a blueprint.
func (c Caller) sees(d run.Described) bool {
	return !slices.ContainsFunc(c.Tags, func(t string) bool { return !slices.Contains(d.Tags, t) })
}
