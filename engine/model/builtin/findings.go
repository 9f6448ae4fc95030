package builtin

import "encoding/json"

// Bounds of what a curator reads.
const maxFindings = 256 << 10

// findings is what the reflector hands to the curator.
type findings struct {
	Formula    string    `json:"formula"`
	Question   int       `json:"quantities"` // how many quantities the question has
	Candidates []finding `json:"candidates,omitempty"`
	Refine     []refined `json:"refine,omitempty"`
	Trials     int       `json:"trials"`
	Capped     bool      `json:"capped,omitempty"`
}

// finding is a recipe that reproduces a label.
type finding struct {
	Recipe string  `json:"recipe"`
	Value  float64 `json:"value"`
	Score  float64 `json:"score"`
	Unused int     `json:"unused,omitempty"`
	Source string  `json:"source"`
}

// refined is a better wording of a recipe in the playbook.
type refined struct {
	BulletID string `json:"bullet_id"`
	Before   string `json:"before"`
	After    string `json:"after"`
	Why      string `json:"why"`
}

func readFindings(raw json.RawMessage) findings {
	var f findings
	if len(raw) == 0 || len(raw) > maxFindings || json.Unmarshal(raw, &f) != nil {
		return findings{}
	}
	return f
}
