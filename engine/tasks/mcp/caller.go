package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// Headers with which an HTTP client overrides the [Caller].
const (
	HeaderSession      = "X-Agent-Session-Id"
	HeaderTags         = "X-Agent-Tags"         // separated by commas
	HeaderRequirements = "X-Additional-Demands" // a JSON object
)

// Caller describes the client.
type Caller struct {
	Session      string              // its session, the parent of runs that it starts; or ""
	Run          string              // its run, or ""
	Tags         []string            // only blueprints with all of these tags are visible
	Requirements runner.Requirements // added to those of each run that it starts
}

// Check returns an error if an id of the caller is invalid.
func (c Caller) Check() error {
	if c.Session != "" && !run.ValidName(c.Session) {
		return fmt.Errorf("%w: %s is not a session id", run.ErrBadRequest, quote(c.Session))
	}
	if c.Run != "" && !run.ValidName(c.Run) {
		return fmt.Errorf("%w: %s is not a run id", run.ErrBadRequest, quote(c.Run))
	}
	return nil
}

// caller returns the caller of a request. Headers override the options of the server, except
// that requirements are added.
func (s *Server) caller(req *sdk.CallToolRequest) (Caller, error) {
	c := s.o.Caller
	if req.Extra == nil || req.Extra.Header == nil {
		return c, nil
	}
	h := req.Extra.Header
	if id := h.Get(HeaderSession); id != "" {
		c.Session = id
		c.Run = ""
	}
	if h.Values(HeaderTags) != nil {
		c.Tags = ParseTags(strings.Join(h.Values(HeaderTags), ","))
	}
	more, err := headerRequirements(h)
	if err != nil {
		return c, err
	}
	if c.Requirements, err = mergeRequirements(c.Requirements, more, "header "+
		HeaderRequirements); err != nil {
		return c, err
	}
	return c, c.Check()
}

// ParseTags splits a list of tags at commas.
func ParseTags(list string) (tags []string) {
	for t := range strings.SplitSeq(list, ",") {
		if t = strings.TrimSpace(t); t != "" {
			tags = append(tags, t)
		}
	}
	return tags
}

var requirementsDecoder = sync.OnceValue(func() *decoder {
	const path = `#(name=="start_agent_session").inputSchema.properties.additional_demands`
	return newDecoder(json.RawMessage(gjson.GetBytes(toolsJSON, path).Raw))
})

func headerRequirements(h http.Header) (r runner.Requirements, err error) {
	value := h.Get(HeaderRequirements)
	if value == "" {
		return r, nil
	}
	if err := requirementsDecoder().decode(json.RawMessage(value), &r); err != nil {
		return r, fmt.Errorf(`%w: header %s: %w; example: {"tags":["gpu"]}`, run.ErrBadRequest,
			HeaderRequirements, err)
	}
	return r, nil
}

// mergeRequirements adds requirements. source names those that are added in errors.
func mergeRequirements(r, more runner.Requirements, source string) (runner.Requirements, error) {
	merged, err := r.Merge(more)
	if err != nil {
		return r, fmt.Errorf("%w: %s: %w", run.ErrBadRequest, source, err)
	}
	return merged, nil
}

// sees reports whether a blueprint is visible to the caller.
func (c Caller) sees(b run.BlueprintInfo) bool {
	return !slices.ContainsFunc(c.Tags, func(t string) bool { return !slices.Contains(b.Tags, t) })
}
