package playbook

// Bullet is one entry of a playbook. The counters say how often a reflector found it
// helpful, harmful or neutral.
type Bullet struct {
	ID      string `json:"id"`
	Section string `json:"section"`
	Content string `json:"content"`
	Helpful int    `json:"helpful"`
	Harmful int    `json:"harmful"`
	Neutral int    `json:"neutral"`
}

// Playbook is an ordered list of bullets. NextID is the number of the next bullet id;
// it never falls, so an id is never given twice in a line of versions. The zero value
// is the empty playbook. Values handed out by a [Store] are shared: do not change them.
type Playbook struct {
	Bullets []Bullet `json:"bullets"`
	NextID  int      `json:"next_id"`
}
